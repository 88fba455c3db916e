"""People as batches for a model: the chosen ones, their order, and the values that the model sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine.base import Repetition, SourceFacts
from anon_pipeline.engine.content import sample_hash
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain
from anon_pipeline_tests.people import write_spec

QI = "quasi_identifier"


def test_a_batch_without_hashes_has_none_and_long_numbers_are_the_nearest_float(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    """A number of more digits than a float holds is no error."""
    pq.write_table(pa.table({"x": [10**17 + 1, 2, None], "t": ["a", None, "b"]}), tmp_path / "people.parquet")
    spec = write_spec(tmp_path, {"x": QI, "t": "sensitive"}, "people.parquet", missing_target="release")
    types = engine.store_source(spec, tmp_path / "stored.parquet").types()
    for hashed in (False, True):
        (found,) = engine.batches(tmp_path / "stored.parquet", spec, types, (), hashed)
        assert len(found.hash) == (3 if hashed else 0)
        assert found.key.shape == (3, 0)
        assert sorted(found.features["x"].dropna()) == [2.0, 1e17]
        assert found.target.isna().sum() == 1
    (by_default,) = engine.batches(tmp_path / "stored.parquet", spec, types, ())
    assert len(by_default.hash) == 3


def test_a_sample_is_drawn_by_the_upper_bits_of_the_first_lane() -> None:
    lanes = np.array([[2**64 - 1, 2**63, 3, 2, 1], [7, 7, 7, 7, 7]], dtype=np.uint64)
    found = sample_hash(lanes)
    assert found.dtype == np.int64
    assert found.tolist() == [2**63 - 1, 2**62, 1, 1, 0]


def test_cells_are_in_the_order_of_their_codes_whatever_the_order_of_their_keys(engine: DuckDBEngine) -> None:
    """Each of these columns fills an integer of its own."""
    values = np.array([0, 2**30, 2**31 - 1])
    names = [f"x{i}" for i in range(6)]
    domains = tuple(Domain(name, ColumnType.NUMERIC, values, np.ones(4, dtype=np.int64)) for name in names)
    key = np.random.default_rng(0).permutation(
        np.array([[a, b, c] for a in range(3) for b in range(3) for c in (0, 1)])
    )
    counts = np.arange(1, len(key) + 1)
    cells = engine.cells(domains, key, counts, counts[:, None] * 10)
    assert key.shape[1] == 3
    order = sorted(range(len(key)), key=lambda row: tuple(key[row]))
    assert cells.counts.tolist() == counts[order].tolist()
    assert cells.guidance[:, 0].tolist() == (10 * counts[order]).tolist()
    assert [tuple(row) for row in cells.codes] == sorted(tuple(row) for row in cells.codes)


def test_facts_without_identifiers_or_of_an_older_version_are_read() -> None:
    facts = SourceFacts(7, "hash", (), ())
    assert (facts.duplicate_persons, facts.left_out, facts.table) == (0, 0, None)
    older = {name: value for name, value in facts.to_json().items() if name not in ("table", "left_out")}
    assert SourceFacts.from_json(older) == facts
    repeated = SourceFacts(7, "hash", (), (Repetition("a", 2, 2), Repetition("b", 5, 3)), {"format": "delta"}, 4)
    assert SourceFacts.from_json(repeated.to_json()) == repeated
    assert repeated.duplicate_persons == 5


# ------------------------------------------------------------------ tables of few and of nobody


def test_a_stored_table_of_nobody_has_nobody(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = tmp_path / "stored.parquet"
    empty = pa.table({"x": pa.array([], pa.int64()), "t": pa.array([], pa.string()), PEOPLE: pa.array([], pa.int64())})
    pq.write_table(empty, table)
    spec = write_spec(tmp_path, {"x": QI, "t": "sensitive"}, "people.csv")
    types = {"x": ColumnType.NUMERIC, "t": ColumnType.CATEGORICAL}
    facts = engine.describe(table, spec, types)
    assert (facts.rows, [(column.missing, column.distinct) for column in facts.columns]) == (0, [(0, 0), (0, 0)])
    domains = engine.domains(table, types)
    assert engine.rows(table) == engine.content_hash(table)[0] == engine.count_cells(table, domains) == 0
    assert [domain.counts.tolist() for domain in domains] == [[0], [0]]
    assert engine.out_of_bounds(table, {"x": [0, 1]}) == {"x": 0}
    assert engine.foreign_values(table, table, ["x"]) == {"x": 0}
    assert engine.everybody(table, 5).num_rows == engine.everybody(table).num_rows == 0
    binned, texts = engine.domains(table, types, {"x": 3})
    assert binned.counts.tolist() == texts.counts.tolist() == [0]


def test_a_stored_table_is_described_by_its_people(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = tmp_path / "stored.parquet"
    pq.write_table(pa.table({"x": [1, 2, None], "t": ["a", None, None], PEOPLE: [2, 3, 4]}), table)
    spec = write_spec(tmp_path, {"x": "identifier", "t": "sensitive", "y": QI}, "people.csv")
    facts = engine.describe(table, spec, {"x": ColumnType.NUMERIC, "t": ColumnType.CATEGORICAL})
    assert facts.rows == 9
    assert [(column.missing, column.distinct) for column in facts.columns] == [(4, 2), (7, 1)]
    assert facts.identifiers == (Repetition("x", 5, 3),)
    assert engine.rows(table) == 3
    assert engine.columns(table) == {"x": "BIGINT", "t": "VARCHAR"}
    assert engine.out_of_bounds(table, {"x": [1, 1]}) == {"x": 3}
    (binned,) = engine.domains(table, {"x": ColumnType.NUMERIC}, {"x": 5})
    assert (binned.values.tolist(), binned.counts.tolist()) == ([1, 2], [4, 2, 3])


@pytest.mark.parametrize(("about", "everybody"), [(1, False), (20, True), (39, True), (40, True), (41, True)])
def test_about_as_many_people_as_are_asked_for_are_drawn(
    engine: DuckDBEngine, tmp_path: Path, about: int, everybody: bool
) -> None:
    """Where half of them or more are wanted, no sample is drawn but at whole steps."""
    table = tmp_path / "stored.parquet"
    pq.write_table(pa.table({"x": range(40)}), table)
    found = engine.everybody(table, about).num_rows
    step = max(40 // about, 1)
    with engine._session() as session:
        ((expected,),) = session.rows(f"SELECT count(*) FROM range(40) AS n(x) WHERE hash(x) % {step} = 0")
    assert found == expected
    assert (found == 40) == (step == 1)


@pytest.mark.parametrize(("codes", "rows"), [([1, 1, 2, 2], 2), ([1, 1, 2, 3], 4), ([7, 7], 1), ([7], 1)])
def test_equal_people_are_counted_together_where_that_halves_the_rows(
    engine: DuckDBEngine, tmp_path: Path, codes: list[int], rows: int
) -> None:
    table, made = tmp_path / "stored.parquet", tmp_path / "made.parquet"
    for counted in (True, False):
        people = pa.table({"x": codes, **({PEOPLE: [2] * len(codes)} if counted else {})})
        pq.write_table(people, table)
        engine.rewrite(table, ["x"], lambda _, relation: f"SELECT * FROM {relation}", made)
        found = pq.read_table(made)
        assert found.num_rows == rows
        assert sum(found[PEOPLE].to_pylist()) == len(codes) * (1 + counted)
