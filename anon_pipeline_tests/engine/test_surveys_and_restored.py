"""How much of an unknown table is looked at, what is found in it, and recoded values in the types of the source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine import duckdb as engine_module
from anon_pipeline.engine import typed
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.expressions import bin_code
from anon_pipeline.engine.restoring import value_expressions, with_decimals
from anon_pipeline.engine.typed import Reader
from anon_pipeline.profiling.proposal import proposal_of
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role, Source
from anon_pipeline.tables import Domain
from anon_pipeline_tests.people import write_spec

PEOPLE = Source(path="people.parquet")


@pytest.mark.parametrize(
    ("rows", "most_rows", "most_cells", "step"),
    [(40, 40, 1000, 1), (40, 39, 1000, 2), (41, 20, 1000, 3), (40, 1000, 80, 1), (40, 1000, 79, 2), (5, 1000, 1, 5)],
)
def test_of_a_large_table_so_many_rows_are_looked_at(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    rows: int, most_rows: int, most_cells: int, step: int,
) -> None:  # fmt: skip
    """Every `step`-th on average, by a hash of its position; a single row at the least is aimed at."""
    monkeypatch.setattr(engine_module, "SURVEYED_ROWS", most_rows)
    monkeypatch.setattr(engine_module, "SURVEYED_CELLS", most_cells)
    pq.write_table(pa.table({"x": range(rows), "t": ["a"] * rows}), tmp_path / "people.parquet")
    found = engine.survey(PEOPLE, tmp_path / "people.parquet")
    with engine._session() as session:
        chosen = session.rows(f"SELECT n - 1 FROM range(1, {rows + 1}) AS p(n) WHERE hash(n) % {step} = 0")
    assert sorted(found.sample["x"].to_pylist()) == sorted(row for (row,) in chosen)
    assert found.rows == rows
    assert [column.known for column in found.columns] == [rows, rows]
    assert all(column.present == len(chosen) for column in found.columns)


def test_few_distinct_values_of_a_large_table_are_counted(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HyperLogLog takes some pairs of values for one, and so a column that tells people apart for one that does not."""
    monkeypatch.setattr(engine_module, "SURVEYED_ROWS", 30)
    rows = 600
    pairs = {f"x{pair}": [f"{'ab'[row == 3]}{pair}" for row in range(rows)] for pair in range(200, 320)}
    same = {"same": ["one"] * rows, "nobody": pa.nulls(rows, pa.string()), "some": [None, "a", "b"] * (rows // 3)}
    pq.write_table(pa.table({**pairs, **same}), tmp_path / "people.parquet")
    with engine._session() as session:
        from_file = f"FROM '{tmp_path / 'people.parquet'}'"
        (estimated,) = session.rows(
            f"SELECT {', '.join(f'approx_count_distinct({name})' for name in pairs)} {from_file}"
        )
    assert 1 in estimated
    found = engine.survey(PEOPLE, tmp_path / "people.parquet")
    assert [column.distinct for column in found.columns] == [2] * len(pairs) + [1, 0, 2]
    assert [column.known for column in found.columns[-3:]] == [rows, 0, 2 * rows // 3]


def test_of_a_large_table_it_is_counted_whether_anybody_has_a_value_of_another(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the estimate a column that numbers people seemed to repeat: the proposed spec did not check it for people."""
    monkeypatch.setattr(engine_module, "SURVEYED_ROWS", 30)
    rows = 3000
    names = {f"x{place}": [f"person {row}, {place}" for row in range(rows)] for place in range(12)}
    twice = [f"person {max(row, 1)}" for row in range(rows)]
    gaps = [None if row % 2 else float(row) for row in range(rows)]
    pq.write_table(pa.table({**names, "twice": twice, "gaps": gaps}), tmp_path / "people.parquet")
    with engine._session() as session:
        estimates = session.rows(
            f"SELECT {', '.join(f'approx_count_distinct({name})' for name in names)} "
            f"FROM '{tmp_path / 'people.parquet'}'"
        )[0]
    assert min(estimates) < 0.95 * rows
    found = engine.survey(PEOPLE, tmp_path / "people.parquet")
    assert [column.distinct for column in found.columns] == [rows] * len(names) + [rows - 1, rows // 2]
    nothing = np.empty(0, np.int64)
    roles = [proposal_of(found, column, nothing, None).role for column in found.columns[:-1]]
    assert roles == [Role.IDENTIFIER] * len(names) + [Role.EXCLUDE]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("chosen", [100, 10])
def test_nan_is_no_value_as_in_a_run(
    kind: pa.DataType, chosen: int, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """polars and Arrow write it into Parquet, where pandas writes that there is no value."""
    monkeypatch.setattr(engine_module, "SURVEYED_ROWS", chosen)
    numbers = pa.array([np.nan] * 20 + [None] * 10 + [1.0, 2.0] * 10, kind)
    pq.write_table(pa.table({"x": numbers}), tmp_path / "people.parquet")
    surveyed = engine.survey(Source(path="people.parquet"), tmp_path / "people.parquet")
    (column,) = surveyed.columns
    assert (column.known, column.distinct) == (20, 2)
    assert column.present == column.numbers == len(surveyed.sample["x"].drop_null())
    assert set(surveyed.sample["x"].to_pylist()) <= {1.0, 2.0, None}


def test_a_column_is_described_by_what_its_texts_may_be(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = pa.table(
        {
            "mixed": ["1", "2.5", "07", "2024-02-29", "NA", "", None, "x"],
            "number": [1, 2, 2, None, 4, 5, 6, 7],
            "yes": [True, False, None, True, True, True, True, True],
            "marked": ["-", "?", "a", "a", "b", "b", "b", "NULL"],
        }
    )
    pq.write_table(table, tmp_path / "people.parquet")
    found = engine.survey(Source(path="people.parquet", missing=("-",)), tmp_path / "people.parquet")
    assert found.missing == ("-", "?", "NA", "NULL")
    facts = {
        column.name: (column.known, column.distinct, column.present, column.numbers, column.codes, column.dates)
        for column in found.columns
    }
    assert facts["mixed"] == (5, 5, 5, 3, 1, 1)
    assert facts["number"] == (7, 6, 7, 7, 0, 0)
    assert facts["yes"][:3] == (7, 2, 7)
    assert facts["marked"] == (5, 2, 5, 0, 0, 0)
    assert found.empty == 0
    assert found.sample["marked"].null_count == 3


def test_a_table_without_texts_has_no_markers_and_empty_lines_are_counted(engine: DuckDBEngine, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "people.parquet")
    assert engine.survey(PEOPLE, tmp_path / "people.parquet").missing == ()
    (tmp_path / "people.csv").write_text("x,t\n1,a\n,\n2,b\n")
    found = engine.survey(Source(path="people.csv"), tmp_path / "people.csv")
    assert (found.rows, found.empty) == (2, 1)


@pytest.mark.long
def test_hundreds_of_columns_are_counted_in_little_memory(tmp_path: Path) -> None:
    """Exact counts of all of them at the same time took more than 3 MB each, however few the rows."""
    table = pa.table({f"x{number}": [row * number % 7 for row in range(20)] for number in range(1, 201)})
    pq.write_table(table, tmp_path / "people.parquet")
    found = DuckDBEngine(tmp_path / "spill", "300MB").survey(PEOPLE, tmp_path / "people.parquet")
    assert [column.distinct for column in found.columns] == [1 if number % 7 == 0 else 7 for number in range(1, 201)]
    assert all(column.known == 20 for column in found.columns)


def test_settings_of_an_engine_make_a_database_of_its_own(tmp_path: Path) -> None:
    """The same settings share it, and an error leaves it."""
    first = engine_module._database(tmp_path, None, 1)
    assert engine_module._database(tmp_path, None, 1) is first
    other = engine_module._database(tmp_path, None, 2)
    assert other is not first
    assert other.execute("SELECT current_setting('threads')").fetchall() == [(2,)]
    for setting in ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_file_cache"):
        assert other.execute(f"SELECT current_setting('{setting}')").fetchall() == [(False,)]
    limited = engine_module._database(tmp_path, "50MB", 2)
    assert limited is not other
    assert limited.execute("SELECT current_setting('memory_limit')").fetchall() == [("47.6 MiB",)]


def test_what_is_counted_without_being_stored_spills_to_its_owners_folder(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("x,t\n1,a\n2,b\n")
    spec = write_spec(tmp_path, {"x": "quasi_identifier", "t": "sensitive"}, "people.csv")
    before = os.umask(0)
    try:
        found = DuckDBEngine(tmp_path / "spill").aggregated(spec, lambda _, rows: f"SELECT count(*) AS n FROM {rows}")
    finally:
        os.umask(before)
    assert found["n"].to_pylist() == [2]
    assert (tmp_path / "spill").stat().st_mode & 0o777 == 0o700


def clinic(folder: Path, name: str, kind: str) -> ReleaseSpec:
    """A dataset of people of one clinic, in a file that is converted before it is read."""
    folder.mkdir()
    file, source = ("people.json", {}) if kind == "json" else ("people.csv", {"encoding": kind})
    text = f'{{"x": "{name}", "t": "a"}}\n' if kind == "json" else f"x,t\n{name},a\n"
    (folder / file).write_text(text, "utf-8" if kind == "json" else kind)
    return write_spec(folder, {"x": "quasi_identifier", "t": "sensitive"}, file, source=source)


@contextmanager
def reading_meanwhile(engine: DuckDBEngine, spec: ReleaseSpec) -> Iterator[None]:
    """Another run has opened its source, and reads it when the block has ended."""
    is_open, may_read = Event(), Event()

    def query(_: Reader, rows: str) -> str:
        is_open.set()
        may_read.wait()
        return f"SELECT DISTINCT x FROM {rows}"

    with ThreadPoolExecutor(1) as others:
        found = others.submit(engine.aggregated, spec, query)
        is_open.wait()
        try:
            yield
        finally:
            may_read.set()
        assert found.result()["x"].to_pylist() == ["Bonn"]


@pytest.mark.parametrize("kind", ["json", "cp1252"])
@pytest.mark.parametrize("of_population", [False, True])
def test_two_runs_at_once_read_each_its_own_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, of_population: bool
) -> None:
    """Datasets of two clinics have the same columns. What a source is converted to lay under one name for all runs of a
    home, so that the statistics of one clinic were those of the people of the other."""
    ours, theirs = (DuckDBEngine(tmp_path / "spill", threads=threads) for threads in (1, 2))
    spec, other = clinic(tmp_path / "ulm", "Ulm", kind), clinic(tmp_path / "bonn", "Bonn", kind)
    with ExitStack() as meanwhile:

        def query(_: Reader, rows: str) -> str:
            meanwhile.enter_context(reading_meanwhile(theirs, other))
            return f"SELECT DISTINCT x FROM {rows}"

        if of_population:
            genuine = typed.typed_quasi_identifiers

            def begun(*arguments: Any) -> list[typed.TypedColumn]:
                meanwhile.enter_context(reading_meanwhile(theirs, other))
                return genuine(*arguments)

            monkeypatch.setattr(typed, "typed_quasi_identifiers", begun)
            types = {"x": ColumnType.CATEGORICAL}
            read = ours.population_table(spec, types, spec.source.path)["x"].tolist()
        else:
            read = ours.aggregated(spec, query)["x"].to_pylist()
        assert read == ["Ulm"]
    assert [path.name for path in (tmp_path / "spill" / "sources").iterdir()] == ["lock"]


# ------------------------------------------------------------------ restored values


def domain(kind: ColumnType, storage: str, name: str = "x") -> Domain:
    values = np.array(["a"], dtype=object) if kind is ColumnType.CATEGORICAL else np.array([1])
    return Domain(name, kind, values, np.ones(2, dtype=np.int64), storage)


NUMBER, CATEGORY, DATE = ColumnType.NUMERIC, ColumnType.CATEGORICAL, ColumnType.DATE


@pytest.mark.parametrize(
    ("kind", "storage", "shown", "cast"),
    [
        (NUMBER, "TINYINT", pa.array([1.0, 127.0]), True),
        (NUMBER, "TINYINT", pa.array([1.0, 128.0]), False),
        (NUMBER, "BIGINT", pa.array([1.0, 1.5]), False),
        (NUMBER, "BIGINT", pa.array([1.0, None]), True),
        (NUMBER, "FLOAT", pa.array([0.1, 0.2]), True),
        (NUMBER, "DOUBLE", pa.array(["1-2", "3"]), False),
        (NUMBER, "DECIMAL(3,1)", pa.array([Decimal("1.5"), None], pa.decimal128(3, 1)), False),
        (CATEGORY, "BOOLEAN", pa.array(["true", None]), True),
        (CATEGORY, "BOOLEAN", pa.array(["true", "{true, false}"]), False),
        (CATEGORY, "VARCHAR", pa.array(["a", "*"]), True),
    ],
)
def test_a_recoded_value_has_the_type_of_the_source_where_that_can_hold_it(
    engine: DuckDBEngine, kind: ColumnType, storage: str, shown: pa.Array, cast: bool
) -> None:
    table = pa.table({"x": shown})
    with engine._session() as session:
        session.register("shown", table)
        expression = value_expressions(session, (domain(kind, storage),), table)["x"]
        found = session.arrow(f"SELECT {expression} AS x FROM shown")["x"]
    assert expression == (f'TRY_CAST(shown."x" AS {storage})' if cast else 'shown."x"')
    assert found.null_count == shown.null_count


def test_a_recoded_moment_is_a_moment_or_a_range(engine: DuckDBEngine) -> None:
    with engine._session() as session:
        days, ranges = pa.table({"x": [1.0]}), pa.table({"x": ["1970-01-01/1970-01-05"]})
        day, moment = domain(DATE, "DATE"), domain(DATE, "TIMESTAMP")
        assert value_expressions(session, (day,), days)["x"] == "DATE '1970-01-01' + CAST(shown.\"x\" AS INTEGER)"
        assert value_expressions(session, (moment,), days)["x"] == 'make_timestamp(shown."x")'
        assert value_expressions(session, (day,), ranges)["x"] == 'shown."x"'


def test_decimals_are_restored_where_all_of_them_fit() -> None:
    recoded = pa.table({"w": [1.5, 2.0], "x": [1.5, None], "y": [99.9, 100.0], "z": ["a", "b"], "v": [1, 2]})
    domains = (
        domain(NUMBER, "DECIMAL(3,1)", "x"),
        domain(NUMBER, "DECIMAL(3,1)", "y"),
        domain(NUMBER, "DECIMAL(3,1)", "z"),
        domain(NUMBER, "DECIMAL(3,1)", "v"),
        domain(NUMBER, "DECIMAL(3,1)", "absent"),
        domain(NUMBER, "DOUBLE", "w"),
    )
    found = with_decimals(recoded, domains)
    assert found.column_names == recoded.column_names
    assert found["x"].type == pa.decimal128(3, 1)
    assert found["x"].to_pylist() == [Decimal("1.5"), None]
    assert found.drop_columns(["x"]).equals(recoded.drop_columns(["x"]))
    assert with_decimals(recoded.select(["w"]), (domain(NUMBER, "DECIMAL(2,1)", "w"),))["w"].type == pa.decimal128(2, 1)


def test_a_domain_without_bins_has_one_code_for_all() -> None:
    empty = np.array([], dtype=np.int64)
    nothing = Domain("x", NUMBER, empty, np.array([3]), "BIGINT", lows=empty, highs=empty)
    assert bin_code(nothing, "v") == "0"
    single = Domain("x", NUMBER, np.array([5]), np.array([0, 3]), "BIGINT", lows=np.array([4]), highs=np.array([6]))
    assert bin_code(single, "v") == "1"
    lows, highs = np.array([0, 3]), np.array([2, 9])
    two = Domain("x", NUMBER, lows, np.array([0, 3, 3]), "BIGINT", lows=lows, highs=highs)
    assert bin_code(two, "v") == "CASE WHEN v <= 2 THEN 1 ELSE 2 END"
