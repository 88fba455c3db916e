"""When a table is refused and when not, at the very limit, and how a column's values are coded and told apart."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unicodedata import normalize
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anon_pipeline.engine import typed
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType
from anon_pipeline_tests.people import write_spec

QI, TARGET = "quasi_identifier", {"t": "sensitive"}
CATEGORY, NUMBER, DATE = ColumnType.CATEGORICAL, ColumnType.NUMERIC, ColumnType.DATE


def stored(engine: DuckDBEngine, folder: Path, table: pa.Table, columns: dict[str, Any], **more: Any) -> SourceFacts:
    pq.write_table(table, folder / "people.parquet")
    spec = write_spec(folder, {**columns, **TARGET}, "people.parquet", **more)
    return engine.store_source(spec, folder / "stored.parquet")


def refused(engine: DuckDBEngine, folder: Path, table: pa.Table, columns: dict[str, Any], **more: Any) -> str:
    with pytest.raises(InputError) as told:
        stored(engine, folder, table, columns, **more)
    return str(told.value)


@pytest.mark.parametrize(("texts", "rows", "learnt"), [(110, 1100, True), (111, 1100, False), (100, 200, True)])
def test_of_many_rows_a_tenth_may_be_texts_of_the_target(
    engine: DuckDBEngine, tmp_path: Path, texts: int, rows: int, learnt: bool
) -> None:
    table = pa.table({"x": [0] * rows, "t": [f"name {row % texts}" for row in range(rows)]})
    if learnt:
        assert stored(engine, tmp_path, table, {"x": QI}).rows == rows
    else:
        assert f"t has {texts} different texts in {rows} rows" in refused(engine, tmp_path, table, {"x": QI})


def test_a_target_of_numbers_may_have_as_many_as_there_are_rows(engine: DuckDBEngine, tmp_path: Path) -> None:
    assert stored(engine, tmp_path, pa.table({"x": [0] * 150, "t": range(150)}), {"x": QI}).rows == 150


@pytest.mark.parametrize(("k", "rows", "refusal"), [(3, 3, None), (3, 2, "has 2 rows, fewer than k = 3")])
def test_a_table_has_at_least_k_people(
    engine: DuckDBEngine, tmp_path: Path, k: int, rows: int, refusal: str | None
) -> None:
    table = pa.table({"x": range(rows), "t": ["a", "b", "b"][:rows]})
    if refusal is None:
        assert stored(engine, tmp_path, table, {"x": QI}, k=k).rows == rows
    else:
        assert refusal in refused(engine, tmp_path, table, {"x": QI}, k=k)


@pytest.mark.parametrize(
    ("weights", "refusal"),
    [
        ([1.0, 1.0], None),
        ([0.5, 1.5], None),
        ([1 - 1e-9, 1 - 1e-9], None),
        ([1 - 1e-8, 1 - 1e-8], "adds up to fewer people"),
        ([1.0, 0.9], "adds up to fewer people"),
        ([3.0, 0.0], "is missing or not above 0 in 1 row"),
        ([3.0, None], "is missing or not above 0 in 1 row"),
        ([3.0, 1e18], None),
        ([3.0, 1.1e18], "is beyond 1e18 in 1 row"),
        ([1.7e308, 1.7e308], "is beyond 1e18 in 2 rows"),
    ],
)
def test_weights_add_up_to_as_many_people_but_for_rounding(
    engine: DuckDBEngine, tmp_path: Path, weights: list[float | None], refusal: str | None
) -> None:
    table = pa.table({"x": [1, 2], "w": pa.array(weights, pa.float64()), "t": ["a", "b"]})
    said = {"x": QI, "w": "exclude"}
    if refusal is None:
        assert stored(engine, tmp_path, table, said, sampling_weight="w").rows == 2
    else:
        assert refusal in refused(engine, tmp_path, table, said, sampling_weight="w")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["x", "y", "a", "b"], "columns: the source has columns without a role: a, b;"),
        (["x", "a", "b", "c"], "columns: the source has few of the spec's columns"),
        (["a", "b"], "columns: the source has none of the spec's columns"),
        (["x"], "columns: the source has no column y, z, t;"),
        (["x", "y", "z", "tt", "u"], "columns: the source has columns without a role: tt, u;"),
        (["x", "y", "town"], "columns: the source has columns without a role: town;"),
        (
            ["x", "y", "z", "county"],
            "(exclude leaves it out), and where one is a column of the spec that is not there (t) under a new name, "
            "write source.rename, such as {county: t}",
        ),
        (["X", "y", "z", "t"], "columns: the source has no column x; did you mean X? correct the name or remove it"),
        (["x", "y", "z", "t", "made"], "columns: the source has made, which a step is said to make"),
        (["t", "z", "y", "x"], None),
    ],
)
def test_columns_are_compared_with_those_of_the_spec(tmp_path: Path, names: list[str], sentence: str | None) -> None:
    """Half of the spec's four columns are enough to take the names for names; what a step makes does not count."""
    steps = [{"technique": "grid_cell", "columns": ["y", "z"], "into": "made", "metres": 5000}]
    columns = {"x": QI, "y": "exclude", "z": "exclude", "made": {"role": QI, "made": True}}
    spec = write_spec(tmp_path, {**columns, **TARGET}, "people.csv", steps=steps)
    if sentence is None:
        typed.check_columns(names, "the source", spec)
        return
    with pytest.raises(InputError) as told:
        typed.check_columns(names, "the source", spec)
    assert sentence in str(told.value)


@pytest.mark.parametrize(("stated", "found"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_name_in_another_form_of_unicode_is_told_as_it_can_be_written(
    tmp_path: Path, stated: Any, found: Any
) -> None:
    ours, theirs = normalize(stated, "größe"), normalize(found, "größe")
    with pytest.raises(InputError, match=r"writes größe in another form|writes gro\u0308ße in another form") as told:
        typed.check_columns([theirs, "t"], "the source", write_spec(tmp_path, {ours: QI, **TARGET}, "people.csv"))
    written = re.search('write (".*") in', str(told.value))
    assert written is not None
    assert yaml.safe_load(written[1]) == theirs


@pytest.mark.parametrize(
    ("kind", "storage", "expression"),
    [
        (CATEGORY, "VARCHAR", '"x"'),
        (CATEGORY, "BIGINT", 'CAST("x" AS VARCHAR)'),
        (DATE, "DATE", "CAST((\"x\" - DATE '1970-01-01') AS BIGINT)"),
        (DATE, "TIMESTAMP", 'epoch_us(CAST("x" AS TIMESTAMP))'),
        (NUMBER, "BIGINT", 'CAST("x" AS BIGINT)'),
        (NUMBER, "UBIGINT", 'CAST("x" AS DOUBLE)'),
        (NUMBER, "DOUBLE", 'CAST("x" AS DOUBLE)'),
        (NUMBER, "DECIMAL(15,2)", 'CAST("x" AS DOUBLE)'),
        (NUMBER, "DECIMAL(16,2)", 'CAST(CAST("x" AS VARCHAR) AS DOUBLE)'),
        (NUMBER, "DECIMAL(9,20)", 'CAST("x" AS DOUBLE)'),
        (DATE, "TIMESTAMPTZ_NS", 'epoch_us(CAST(CAST("x" AS TIMESTAMPTZ) AS TIMESTAMP))'),
    ],
)
def test_a_value_is_coded_by_its_type_and_its_storage(kind: ColumnType, storage: str, expression: str) -> None:
    assert typed.coded("x", kind, storage) == expression
    assert typed.coded("x", kind, storage, "source") == expression.replace('"x"', 'source."x"')


def test_storage_types_are_told_apart() -> None:
    kinds = ["BIGINT", "UBIGINT", "DOUBLE", "DECIMAL(9,2)", "DATE", "TIMESTAMP_NS", "VARCHAR", "BOOLEAN", "ENUM('a')"]
    assert [kind for kind in kinds if typed.is_whole(kind)] == ["BIGINT"]
    assert [kind for kind in kinds if typed.is_ordered(kind)] == kinds[:6]
    assert [typed.natural_type(kind) for kind in kinds] == [NUMBER] * 4 + [DATE] * 2 + [CATEGORY] * 3
    assert typed.is_ordered("TIMESTAMPTZ_NS")
    assert typed.natural_type("TIMESTAMPTZ_NS") is DATE
    assert typed.restored_moment("x", "DATE") == "DATE '1970-01-01' + CAST(x AS INTEGER)"
    assert typed.restored_moment("x", "TIMESTAMP") == "make_timestamp(x)"


@pytest.mark.parametrize(
    ("values", "said", "refusal"),
    [
        (pa.array([10**18, -(10**18)]), {"role": QI}, None),
        (pa.array([10**18, 10**18 + 1000]), {"role": QI}, "1 value is infinite or beyond 1e18"),
        (pa.array([10**18, 2**62]), {"role": "insensitive"}, None),
        (pa.array([1.0, float("inf")]), {"role": "insensitive"}, "1 value is infinite; replace them"),
        (pa.array([float("nan"), 2.0]), {"role": QI}, None),
        (pa.array([2932896, -719162], pa.date32()), {"role": QI}, None),
        (pa.array([2932897, 0], pa.date32()), {"role": QI}, "1 dates are infinite or lie outside of the years 1 to"),
        (pa.array([0, -719163], pa.date32()), {"role": QI}, "1 dates are infinite or lie outside of the years 1 to"),
        (pa.array([0, -719163], pa.date32()), {"role": "insensitive"}, None),
        (pa.array(["1", "x"]), {"role": QI, "type": "numeric"}, "1 value is no number"),
        (pa.array([1, 2], pa.time64("us")), {"role": QI, "type": "numeric"}, "the source holds TIME values"),
        (pa.array([1, 2], pa.date32()), {"role": QI, "type": "numeric"}, "the source holds DATE values"),
        (pa.array([1, 2]), {"role": QI, "type": "date"}, "is date, but the source holds BIGINT"),
        (pa.array([{"a": 1}, {"a": 2}]), {"role": QI}, "holds records; exclude it"),
    ],
)
def test_what_is_no_measurement_is_no_quasi_identifier(
    engine: DuckDBEngine, tmp_path: Path, values: pa.Array, said: dict[str, str], refusal: str | None
) -> None:
    table, columns = pa.table({"x": values, "y": [1, 2], "t": ["a", "b"]}), {"x": said, "y": QI}
    if refusal is None:
        assert stored(engine, tmp_path, table, columns).rows == 2
    else:
        assert refusal in refused(engine, tmp_path, table, columns)


def test_a_stored_column_has_the_storage_of_its_source(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = pa.table(
        {
            "single": pa.array([0.1, -0.0, float("nan")], pa.float32()),
            "money": pa.array([Decimal("1.25"), None, Decimal("-2.50")], pa.decimal128(9, 2)),
            "coded": pa.array(["a", "?", None]).dictionary_encode(),
            "dated": pa.array(["2024-02-29", "", "2000-01-01"]).dictionary_encode(),
            "t": ["a", "b", "b"],
        }
    )
    dated = {"role": QI, "type": "date"}
    columns = {"single": QI, "money": QI, "coded": QI, "dated": dated}
    facts = stored(engine, tmp_path, table, columns, source={"missing": ["?"]})
    assert [column.storage for column in facts.columns] == ["FLOAT", "DECIMAL(9,2)", "VARCHAR", "DATE", "VARCHAR"]
    assert [column.missing for column in facts.columns] == [1, 1, 2, 1, 0]
    found = pq.read_table(tmp_path / "stored.parquet")["single"].drop_null().to_pylist()
    assert sorted(map(str, found)) == ["0.0", str(float(np.float32(0.1)))], "there is one zero"


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize(("said", "storage"), [("date", "TIMESTAMP"), ("categorical", "TIMESTAMP WITH TIME ZONE")])
def test_moments_with_a_time_zone_and_nanoseconds_are_read_as_those_with_microseconds(
    engine: DuckDBEngine, tmp_path: Path, unit: str, said: str, storage: str
) -> None:
    """pandas writes its moments so, and DuckDB has a type of their own for them, which few functions take."""
    moments = [datetime(2024, 5, day, 23, 59, tzinfo=ZoneInfo("Europe/Berlin")) for day in (1, 2, 2)]
    table = pa.table({"x": pa.array(moments, pa.timestamp(unit, "Europe/Berlin")), "t": ["a", "b", "b"]})
    column = stored(engine, tmp_path, table, {"x": {"role": QI, "type": said}}).columns[0]
    assert (column.storage, column.missing) == (storage, 0)
    found = pq.read_table(tmp_path / "stored.parquet")["x"].cast(pa.timestamp("us")).to_pylist()
    expected = [moment.astimezone(UTC).replace(tzinfo=None) for moment in moments]
    assert sorted(set(found)) == sorted(set(expected))


@pytest.mark.parametrize(
    ("said", "storage"), [({}, "VARCHAR"), ({"type": "numeric"}, "BIGINT"), ({"type": "date"}, "DATE")]
)
def test_a_column_without_a_type_has_the_one_that_is_stated(
    engine: DuckDBEngine, tmp_path: Path, said: dict[str, str], storage: str
) -> None:
    """A Parquet file in which nobody has a value need not say of what type the values would be."""
    table = pa.table({"x": pa.nulls(3), "y": [1, 2, 2], "t": ["a", "b", "b"]})
    column = stored(engine, tmp_path, table, {"x": {"role": QI, **said}, "y": QI}).columns[0]
    assert (column.name, column.storage, column.missing) == ("x", storage, 3)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "2.5", "-1e3", None], NUMBER),
        (["0", "0.5", "-0.25"], NUMBER),
        (["1", "x"], CATEGORY),
        (["1", "07"], CATEGORY),
        (["1", " -07"], CATEGORY),
        (["123456789012345678"], NUMBER),
        (["1234567890123456789"], CATEGORY),
        ([None, None], CATEGORY),
    ],
)
def test_texts_are_numbers_where_all_of_them_are_and_none_is_a_code(
    engine: DuckDBEngine, tmp_path: Path, texts: list[str | None], kind: ColumnType
) -> None:
    with engine._session() as session:
        session.register("people", pa.table({"x": pa.array(texts, pa.string())}))
        assert typed.detected(session, typed.OpenSource("people", "people"), '"x"') is kind


@pytest.mark.parametrize("said", ["leave_out", "release", None])
def test_people_without_a_target_are_counted_as_the_spec_says(
    engine: DuckDBEngine, tmp_path: Path, said: str | None
) -> None:
    table = pa.table({"x": [1, 2, 3, 4], "t": ["a", None, "b", "?"]})
    more: dict[str, Any] = {"source": {"missing": ["?"]}} | ({"missing_target": said} if said else {})
    if said is None:
        assert "t is missing in 2 rows" in refused(engine, tmp_path, table, {"x": QI}, **more)
        return
    facts = stored(engine, tmp_path, table, {"x": QI}, **more)
    assert (facts.rows, facts.left_out) == ((2, 2) if said == "leave_out" else (4, 0))
