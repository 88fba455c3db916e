"""DuckDB counts, joins and writes the same whatever the order of rows, the number of threads, the names of columns."""

from __future__ import annotations

import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.encoding import count_cells, learn_domain
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.engine import duckdb_session
from anon_pipeline.engine.base import Recoding
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType, ReleaseSpec, Source
from anon_pipeline.tables import Cells, Domain
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import random_frame, write_spec

QI = "quasi_identifier"
CATEGORY, NUMBER = ColumnType.CATEGORICAL, ColumnType.NUMERIC


def people(n: int, seed: int = 0, kinds: dict[str, str] | None = None) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = random_frame(
        generator, n, kinds or {"age": "whole", "born": "date", "city": "text", "income": "tenths"}, 8, 0.05
    )
    return frame.assign(t=np.where(generator.random(n) < 0.4, "ill", "well"))


def stored(
    engine: DuckDBEngine, folder: Path, table: pa.Table | pd.DataFrame, roles: dict[str, Any] | None = None, k: int = 2
) -> tuple[ReleaseSpec, Path, dict[str, ColumnType]]:
    """The spec, the stored table and its types; every column but `t` is a quasi-identifier where nothing is said."""
    table = pa.Table.from_pandas(table, preserve_index=False) if isinstance(table, pd.DataFrame) else table
    pq.write_table(table, folder / "people.parquet")
    roles = {name: QI for name in table.column_names if name != "t"} | {"t": "sensitive"} | (roles or {})
    spec = write_spec(folder, roles, "people.parquet", k=k)
    facts = engine.store_source(spec, folder / "stored.parquet")
    return spec, folder / "stored.parquet", facts.types()


def counted(
    engine: DuckDBEngine, spec: ReleaseSpec, table: Path, types: dict[str, ColumnType]
) -> tuple[tuple[Domain, ...], Cells]:
    """Cells with the number of people as guidance."""
    domains = engine.domains(table, {name: types[name] for name in spec.quasi_identifiers})
    key = np.concatenate(
        [np.repeat(batch.key, batch.people, axis=0) for batch in engine.batches(table, spec, types, domains)]
    )
    distinct, counts = np.unique(key, axis=0, return_counts=True)
    return domains, engine.cells(domains, distinct, counts.astype(np.int64), counts[:, None].astype(np.int64))


def released(
    engine: DuckDBEngine, folder: Path, table: pa.Table | pd.DataFrame, form: str = "value", k: int = 2, **more: Any
) -> pa.Table:
    """The whole way of a table through the engine, guided by nothing."""
    spec, place, types = stored(engine, folder, table, k=k)
    _, cells = counted(engine, spec, place, types)
    tree = AnonymizerTree(k=k, **more).fit_cells(cells)
    shown = recoded_table(tree.summaries_, form)
    data = folder / "data.parquet"
    content = engine.write_release(
        place, Recoding(cells, tree.partition_.apply(cells.codes), shown), spec.released, data
    )
    assert content == engine.content_hash(data), "the hash counted while writing is that of the written table"
    return pq.read_table(data)


# ------------------------------------------------------------------ cells


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_the_engines_cells_are_the_cells_of_the_frame(engine: DuckDBEngine, tmp_path: Path, seed: int) -> None:
    kinds = {
        "age": "whole",
        "key": "huge",
        "income": "near_unique",
        "city": "text",
        "smoker": "boolean",
        "x": "unknown",
    }
    frame = people(500, seed, kinds).replace({"city": {"": " "}})  # an empty text of a source is a missing value
    spec, place, types = stored(engine, tmp_path, frame, roles={"x": {"role": QI, "type": "numeric"}})
    _, ours = counted(engine, spec, place, types)
    learned = [learn_domain(name, frame[name]) for name in spec.quasi_identifiers]
    codes = np.stack([code for _, code in learned], axis=1)
    theirs, _ = count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((500, 1)))
    assert (ours.codes == theirs.codes).all()
    assert (ours.counts == theirs.counts).all()
    for one, other in zip(ours.domains, theirs.domains, strict=True):
        told = [text.lower() for text in other.values] if one.storage == "BOOLEAN" else other.values
        assert list(one.values) == list(told)
        assert (one.counts == other.counts).all()
        assert one.type is other.type


def test_dates_are_counted_as_days_and_moments_as_microseconds(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = pa.table(
        {
            "day": [date(1969, 12, 31), date(1970, 1, 2), None, date(1970, 1, 2)],
            "moment": [datetime(1970, 1, 1, 0, 0, 1), None, datetime(1969, 12, 31, 23, 59, 59), None],
            "t": ["a", "b", "a", "b"],
        }
    )
    spec, place, types = stored(engine, tmp_path, table)
    domains, cells = counted(engine, spec, place, types)
    assert domains[0].values.tolist() == [-1, 1]
    assert domains[1].values.tolist() == [-1_000_000, 1_000_000]
    assert domains[0].counts.tolist() == [1, 1, 2]
    assert cells.n == 4


def test_moments_finer_than_a_microsecond_may_be_categories(engine: DuckDBEngine, tmp_path: Path) -> None:
    """They are rounded to the microsecond, like a column of dates: the hash is of microseconds."""
    fine = pa.array([1001, 1999, 2000, None], pa.timestamp("ns"))
    table = pa.table({"x": [1, 1, 2, 2], "fine": fine, "t": list("abab")})
    _spec, place, types = stored(engine, tmp_path, table, roles={"fine": {"role": QI, "type": "categorical"}})
    domain = engine.domains(place, {"fine": types["fine"]})[0]
    assert domain.values.tolist() == ["1970-01-01 00:00:00.000001", "1970-01-01 00:00:00.000002"]
    assert domain.counts.tolist() == [1, 1, 2]


@pytest.mark.long
def test_a_table_of_many_wide_columns_has_keys_in_several_parts(engine: DuckDBEngine, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": generator.integers(-(2**30), 2**30, 300) for i in range(5)})
    frame["y"] = generator.choice([-(10**17), 10**17, 3], 300)
    frame = frame.sample(600, replace=True, random_state=1).reset_index(drop=True)
    spec, place, types = stored(engine, tmp_path, frame.assign(t=["a", "b"] * 300))
    domains, cells = counted(engine, spec, place, types)
    values = np.stack([domain.values[code - 1] for domain, code in zip(domains, cells.codes.T, strict=True)], axis=1)
    expected = frame.groupby(list(frame)).size()
    assert dict(zip(map(tuple, values.tolist()), cells.counts.tolist(), strict=True)) == expected.to_dict()
    table = released(engine, tmp_path, frame.assign(t=["a", "b"] * 300), k=20)
    assert table.num_rows == 600


# ------------------------------------------------------------------ bounds and classes


def test_a_value_beyond_one_end_of_its_bounds_passes(engine: DuckDBEngine, tmp_path: Path) -> None:
    pd.DataFrame({"low": [-1, 0, 5], "high": [0, 10, 11], "in": [0, 5, 10]}).to_parquet(tmp_path / "x.parquet")
    found = engine.out_of_bounds(tmp_path / "x.parquet", {name: [0, 10] for name in ("low", "high", "in")})
    assert found == {"low": 1, "high": 1, "in": 0}


def test_a_class_with_a_missing_quasi_identifier_loses_its_histogram(engine: DuckDBEngine, tmp_path: Path) -> None:
    frame = pd.DataFrame({"q": ["a", "a", None, None, None], "s": ["x", "y", "x", "z", "z"]})
    frame.to_parquet(tmp_path / "x.parquet")
    counts = engine.classes(tmp_path / "x.parquet", ["q"], ["s"])
    told = sorted((int(counts.sizes[one]), value, people) for one, value, people in counts.sensitive["s"].to_numpy())
    assert told == [(2, "x", 1), (2, "y", 1), (3, "x", 1), (3, "z", 2)]


# ------------------------------------------------------------------ release

TYPED = pa.table(
    {
        "flag": pa.array([True, True, False, False, True, True, None, None]),
        "small": pa.array([1, 1, 2, 2, 127, 127, None, None], pa.int8()),
        "unsigned": pa.array([1, 1, 2, 2, 2**32 - 1, 2**32 - 1, 3, 3], pa.uint32()),
        "day": pa.array([date(2020, 2, 29)] * 4 + [date(1969, 7, 20)] * 4),
        "moment": pa.array([datetime(2020, 2, 29, 12, 30)] * 4 + [datetime(1969, 7, 20)] * 4, pa.timestamp("us")),
        "price": pa.array([Decimal("0.10")] * 4 + [Decimal("-1234.55")] * 4, pa.decimal128(12, 2)),
        "single": pa.array([0.1] * 4 + [2.5] * 4, pa.float32()),
        "text": pa.array(["007", "007", "a", "a", "é", "é", None, None]),
        "time": pa.array([1_000_000] * 8, pa.time64("us")),
        "t": ["a", "b"] * 4,
    }
)


@pytest.mark.long
def test_a_release_has_the_column_types_of_its_source(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = released(engine, tmp_path, TYPED, spread=1.0)
    assert table.schema.names == TYPED.schema.names
    assert table.schema.types == TYPED.schema.types
    assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, TYPED.to_pylist()))  # classes of two equal people


@pytest.mark.long
def test_ranges_of_every_type_are_texts(engine: DuckDBEngine, tmp_path: Path) -> None:
    people = pa.concat_tables([TYPED] * 3 + [TYPED.slice(4)])  # the last four are eight each, the first four six
    table = released(engine, tmp_path, people, form="range", k=7)
    shown = {name: set(table[name].to_pylist()) for name in table.column_names}
    assert shown["flag"] == {"missing", "true", "{true, *}"}  # six are not k people who have the value "false"
    assert len(shown["small"]) == 3 and "missing" in shown["small"]
    assert shown["day"] == {"1969-07-20", "2020-02-29"}
    assert shown["moment"] == {"1969-07-20T00:00:00.000000", "2020-02-29T12:30:00.000000"}
    assert shown["price"] == {"-1234.55", "0.1"}
    assert shown["text"] == {"missing", "é", "*"}
    assert len(shown["time"]) == 1
    assert sorted(table["t"].to_pylist()) == sorted(people["t"].to_pylist())


@pytest.mark.parametrize(
    ("values", "kind", "grid", "expected"),
    [
        ([127] * 2, pa.int8(), 50, [150] * 2),
        ([255] * 2, pa.uint8(), 100, [300] * 2),
        ([Decimal("99.9")] * 2, pa.decimal128(3, 1), 10, [100.0] * 2),
        ([1, 4], pa.int32(), 0.5, [2.5, 2.5]),
        ([1, 4], pa.int32(), 1, [2, 2]),
    ],
)
def test_a_rounded_number_wraps_around_or_is_rounded_twice_where_its_type_is_too_small(
    engine: DuckDBEngine, tmp_path: Path, values: list[Any], kind: pa.DataType, grid: float, expected: list[Any]
) -> None:
    table = pa.table({"x": pa.array(values, kind), "t": ["a", "b"]})
    assert released(engine, tmp_path, table, grids={"x": grid})["x"].to_pylist() == expected


def test_whole_numbers_of_any_width_are_shown_whole(engine: DuckDBEngine, tmp_path: Path) -> None:
    """DuckDB's sums are HUGEINT, and Snowflake's whole numbers decimals: children were 2.5 in a column of floats."""
    table = pa.table({name: pa.array([1, 1, 4, 4]).cast(kind) for name, kind in WIDE.items()} | {"t": ["a", "b"] * 2})
    shown = released(engine, tmp_path, table, k=4)
    assert shown.select(list(WIDE)).to_pylist() == 4 * [shown.select(list(WIDE)).to_pylist()[0]]
    assert {kind for name, kind in zip(shown.column_names, shown.schema.types, strict=True) if name in WIDE} == {
        pa.int64()
    }


WIDE = {"unsigned": pa.uint64(), "exact": pa.decimal128(19, 0), "long": pa.decimal128(38, 0)}
ODD_NAMES = ["a b", 'q"uote', "Łódź", "select", "class", "value", "source", "person", "shown", "people", "count"]
ODD_NAMES += [
    "key0",
    "row_hash",
    "codes0",
    "known",
    "class_of_cell",
    "a'b",
    "a,b",
    "*",
    "-- x",
    "a;b",
    "x%s",
]


@pytest.mark.long
def test_a_column_has_a_name_of_our_own(engine: DuckDBEngine, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    columns = {name: generator.integers(0, 2, 200).astype(str if i % 2 else int) for i, name in enumerate(ODD_NAMES)}
    columns["far apart"] = generator.choice([0, 10**15], 200)  # a dictionary of codes, not a dense run
    frame = pd.DataFrame(columns).assign(t=["a", "b"] * 100)
    table = released(engine, tmp_path, frame, k=5)
    assert table.column_names == list(frame)
    assert table.num_rows == 200
    spec, place, types = stored(engine, tmp_path, frame)
    counts = engine.classes(tmp_path / "data.parquet", spec.quasi_identifiers, ["t"])
    assert counts.sizes.min() >= 5
    assert list(counts.classes) == spec.quasi_identifiers
    assert counts.sensitive["t"]["count"].sum() == 200
    assert len(engine.sample(place, spec, types, 50).hash) == 50
    surveyed = engine.survey(Source(path="people.parquet"), tmp_path / "people.parquet")
    assert {one.name: one.known for one in surveyed.columns} == dict.fromkeys(frame, 200)
    assert engine.foreign_values(tmp_path / "data.parquet", place, ODD_NAMES) == dict.fromkeys(ODD_NAMES, 0)


def test_a_table_that_is_looked_at_in_full_is_counted_exactly_and_by_its_owner_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": range(5_000), "t": ["a"] * 5_000}), tmp_path / "people.parquet")
    before = os.umask(0)
    try:
        surveyed = DuckDBEngine(tmp_path / "spill").survey(Source(path="people.parquet"), tmp_path / "people.parquet")
    finally:
        os.umask(before)
    assert [column.distinct for column in surveyed.columns] == [5_000, 1]  # an estimate is a few hundredths away
    assert (tmp_path / "spill").stat().st_mode & 0o777 == 0o700


@pytest.mark.long
@pytest.mark.parametrize("size", [7, 300])
def test_a_sample_is_the_same_however_many_batches_it_is_drawn_from(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Rows that cannot be among the smallest are dropped on the way, once there are many."""
    draw = np.random.default_rng(0)
    table = pa.table({"x": draw.integers(0, 10**9, 260_000), "t": draw.choice(["a", "b"], 260_000)})
    spec, place, types = stored(engine, tmp_path, table)
    whole = engine.sample(place, spec, types, size)
    assert len(whole.hash) == size
    assert (np.diff(whole.hash) >= 0).all()
    monkeypatch.setattr(duckdb_session, "BATCH_ROWS", 40_000)
    parts = engine.sample(place, spec, types, size)
    assert (parts.hash == whole.hash).all()
    assert parts.features.reset_index(drop=True).equals(whole.features.reset_index(drop=True))


def test_a_stored_table_is_given_as_a_frame_and_by_its_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1.5, None, 3.0, 4.0], "city": ["a", None, "b", "b"], "t": list("xyxy")})
    _, place, types = stored(engine, tmp_path, frame)
    found = engine.frame(place, {**types, "absent": ColumnType.NUMERIC}).sort_values("age", ignore_index=True)
    assert list(found) == list(types)
    assert found["age"].tolist()[:3] == [1.5, 3.0, 4.0] and np.isnan(found["age"].iloc[3])
    assert found["city"].tolist()[:3] == ["a", "b", "b"] and found["city"].isna().iloc[3]
    numbers = engine.frame(place, types | {"city": ColumnType.NUMERIC, "age": ColumnType.CATEGORICAL})
    assert sorted(numbers["city"].dropna()) == ["a", "b", "b"], "texts stay texts"
    assert sorted(numbers["age"].dropna()) == ["1.5", "3.0", "4.0"]
    values = pa.chunked_array(list(engine.values(place, "age"))).to_pylist()
    assert sorted(value for value in values if value is not None) == [1.5, 3.0, 4.0]


def test_sets_of_categories_have_a_content_too(engine: DuckDBEngine, tmp_path: Path) -> None:
    """A published table of classes has them."""
    hashes = []
    for rows in ([["a"], None], [None, ["a"]], [["a"], []], [["a"], ["b"]], [["a", "b"], None], [["b", "a"], None]):
        pq.write_table(pa.table({"city": pa.array(rows, pa.list_(pa.string()))}), tmp_path / "classes.parquet")
        hashes.append(engine.content_hash(tmp_path / "classes.parquet")[1])
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5


def test_each_is_found_in_their_class_but_who_is_left_out(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2, 3, 3], "id": list("abcd"), "t": list("yzyz")})
    spec, place, types = stored(engine, tmp_path, table, roles={"id": {"role": "identifier"}})
    cells = counted(engine, spec, place, types)[1]
    rows = engine.classes_of_people(place, cells, np.array([0, -1, 1]), "id")
    found = pa.Table.from_batches(list(rows))
    assert dict(zip(*(column.to_pylist() for column in found.columns), strict=True)) == {"a": 0, "c": 1, "d": 1}
    rows = engine.classes_of_people(place, cells, np.array([0, -1, 1]), "x", "t", distinct=True)
    assert sorted(map(tuple, pa.Table.from_batches(list(rows)).to_pandas().to_numpy().tolist())) == [
        (1, "y", 0), (3, "y", 1), (3, "z", 1),
    ]  # fmt: skip


def test_a_table_of_one_row_is_looked_at_and_one_of_none_is_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": [1], "t": ["a"]}), table)
    surveyed = engine.survey(Source(path="people.parquet"), table)
    assert (surveyed.rows, surveyed.sample.num_rows) == (1, 1)
    pq.write_table(pa.table({"x": [1], "t": ["a"]}).slice(1), table)
    with pytest.raises(InputError, match=r"people\.parquet: the table is empty"):
        engine.survey(Source(path="people.parquet"), table)


@pytest.mark.long
def test_the_order_of_the_release_tells_the_order_of_the_source(engine: DuckDBEngine, tmp_path: Path) -> None:
    frame = people(300)
    first = released(engine, tmp_path, frame, k=10)
    shuffled = frame.sample(frac=1, random_state=3)
    second = released(DuckDBEngine(tmp_path / "spill", threads=4), tmp_path, shuffled, k=10)
    assert first.equals(second)
    assert first.num_rows == 300


@pytest.mark.long
def test_suppressed_people_are_released_or_others_lost(engine: DuckDBEngine, tmp_path: Path) -> None:
    frame = people(300)
    spec, place, types = stored(engine, tmp_path, frame)
    _, cells = counted(engine, spec, place, types)
    tree = AnonymizerTree(k=10).fit_cells(cells)
    group = tree.partition_.apply(cells.codes)
    group[group == 3] = -1
    shown = recoded_table(tree.summaries_, "value")
    engine.write_release(place, Recoding(cells, group, shown), spec.released, tmp_path / "data.parquet")
    rows, _ = engine.content_hash(tmp_path / "data.parquet")
    assert rows == 300 - tree.sizes_[3]


@pytest.mark.long
@settings(max_examples=times(15))
@given(st.integers(0, 500), st.sampled_from([2, 7, 30]), st.sampled_from(["value", "range"]))
def test_a_release_loses_no_row_and_has_k_of_a_kind(
    tmp_path_factory: pytest.TempPathFactory, seed: int, k: int, form: str
) -> None:
    folder = tmp_path_factory.mktemp("release")
    names = ["whole", "date", "moment", "text", "near_unique", "boolean", "unknown", "huge", "tenths"]
    chosen = np.random.default_rng(seed).choice(names, 3, replace=False)
    frame = people(90, seed, {str(name): str(name) for name in chosen})
    roles = [name for name in frame if name != "t"]
    frame = frame.assign(**{name: frame[name].astype(float) for name in roles if name == "unknown"})
    table = released(DuckDBEngine(folder, threads=2), folder, frame, form=form, k=k).to_pandas()
    sizes = table.groupby(roles, dropna=False).size()
    assert sizes.min() >= k
    assert sizes.sum() == 90
    assert table["t"].value_counts().to_dict() == frame["t"].value_counts().to_dict()


def test_an_altered_release_is_not_noticed(engine: DuckDBEngine, tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [30] * 5 + [60] * 5, "t": ["a", "b"] * 5})
    _, place, _ = stored(engine, tmp_path, frame)
    pq.write_table(pa.Table.from_pandas(frame.replace({"t": {"b": "c"}, "age": {60: 61}})), tmp_path / "other.parquet")
    assert engine.foreign_values(tmp_path / "other.parquet", place, ["age", "t"]) == {"age": 5, "t": 5}
    assert engine.out_of_bounds(tmp_path / "other.parquet", {"age": [30, 60]}) == {"age": 5}
    counts = engine.classes(tmp_path / "other.parquet", ["age"], ["t"])
    assert sorted(counts.sizes.tolist()) == [5, 5]


def test_duckdbs_own_words_leave_the_engine(engine: DuckDBEngine, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["Ottilie-W-HIV"]}), tmp_path / "x.parquet")
    with pytest.raises(InputError) as error:
        engine.domains(tmp_path / "x.parquet", {"x": NUMBER})
    assert "Ottilie" not in str(error.value)
    with pytest.raises(InputError):
        engine.columns(tmp_path / "absent.parquet")


def test_a_population_is_counted_by_its_values_and_dates_are_moments(engine: DuckDBEngine, tmp_path: Path) -> None:
    people = pd.DataFrame({"born": ["1990-01-31", "1990-01-31", "2000-02-29", None], "age": [30, 30, 20, 20]})
    people.assign(t="x").to_csv(tmp_path / "people.csv", index=False)
    columns = {"born": {"role": "quasi_identifier", "type": "date"}, "age": "quasi_identifier", "t": "sensitive"}
    spec = write_spec(tmp_path, columns, "people.csv")
    kinds = {"born": ColumnType.DATE, "age": ColumnType.NUMERIC}
    counted = engine.population_table(spec, kinds, "people.csv")
    assert pd.api.types.is_datetime64_any_dtype(counted["born"])
    found = {(str(born)[:10], float(age)): count for born, age, count in counted.itertuples(index=False)}
    assert found == {("1990-01-31", 30.0): 2, ("2000-02-29", 20.0): 1, ("NaT", 20.0): 1}
