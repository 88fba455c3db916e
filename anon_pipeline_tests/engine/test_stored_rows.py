"""A stored table is hashed from its file, and its content is that of the same people one by one."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.engine.stored_rows import is_as_stored, stored_rows
from anon_pipeline.errors import InputError

#: Every type that a stored column may have, with values that are easily taken for others.
COLUMNS = {
    "text": "CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'straße ' || i % 7 END",
    "text.of": "'nr ' || i",
    "boolean": "CASE WHEN i % 3 > 0 THEN i % 3 = 1 END",
    "tiny": "(i % 100)::TINYINT",
    "unsigned": "18446744073709551615::UBIGINT - i::UBIGINT",
    "huge": "(i % 10)::HUGEINT",
    "single": "CASE i % 4 WHEN 0 THEN 'nan'::FLOAT WHEN 1 THEN NULL ELSE i / 3::FLOAT END",
    "real": "CASE i % 4 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN -0.0 ELSE i / 3 END",
    "exact": "(i % 1000)::DECIMAL(9, 2) / 4",
    "day": "DATE '1960-02-29' + (i % 900)::INTEGER",
    "moment": "TIMESTAMP '1960-02-29 12:00:00.000001' + INTERVAL (i % 900) SECOND",
    "fine": "TIMESTAMP_NS '1990-02-28 12:00:00.000001'",
    "coarse": "TIMESTAMP_S '1990-02-28 12:00:00'",
    "zoned": "TIMESTAMPTZ '1990-02-28 12:00:00+05:30' + INTERVAL (i % 7) HOUR",
    "time": "CASE WHEN i % 2 = 0 THEN TIME '23:59:59.999999' END",
    "uuid": "CASE WHEN i % 2 = 0 THEN '01234567-89ab-cdef-0123-456789abcdef'::UUID END",
    "nothing": "NULL::VARCHAR",
}


@pytest.mark.parametrize("column", COLUMNS)
def test_people_together_have_the_content_of_people_one_by_one(
    engine: DuckDBEngine, tmp_path: Path, column: str
) -> None:
    together, apart = tmp_path / "together.parquet", tmp_path / "apart.parquet"
    distinct = f'SELECT {COLUMNS[column]} AS "{column}", i % 3 + 1 AS "{PEOPLE}" FROM range(3000) AS n(i)'
    duckdb.sql(f"COPY ({distinct}) TO '{together}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    duckdb.sql(
        f'COPY (SELECT "{column}" FROM \'{together}\', range(3) AS n(i) WHERE i < "{PEOPLE}") '
        f"TO '{apart}' (FORMAT parquet)"
    )
    assert engine.content_hash(together) == engine.content_hash(apart)
    assert engine.content_hash(together)[0] == 6000


def test_texts_come_as_they_are_stored_and_what_an_engine_reads_otherwise_is_left_to_it(tmp_path: Path) -> None:
    table = tmp_path / "people.parquet"
    duckdb.sql(f"COPY (SELECT 'a' AS town, gen_random_uuid() AS id, 2 AS people FROM range(9)) TO '{table}'")
    (rows,) = stored_rows(table)
    assert pa.types.is_dictionary(rows.schema.field("town").type)
    assert rows.column("town").to_pylist() == ["a"] * 9
    assert is_as_stored(table, pa.schema([("town", pa.string()), ("people", pa.int32())]))
    assert not is_as_stored(table, pa.schema([("town", pa.string()), ("id", pa.string())]))


def test_a_damaged_file_is_told_without_a_row(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = tmp_path / "people.parquet"
    pq.write_table(pa.table({"town": [f"Ulm {i}" for i in range(20_000)], PEOPLE: [1] * 20_000}), table)
    content = bytearray(table.read_bytes())
    content[1000:50_000] = bytes(49_000)
    table.write_bytes(content)
    with pytest.raises(InputError, match=r"people\.parquet: a file could not be read") as told:
        engine.content_hash(table)
    assert "Ulm" not in str(told.value)


def test_the_content_of_every_type_is_what_it_always_was(engine: DuckDBEngine, tmp_path: Path) -> None:
    """A column each, so that the hash of no type moves unseen."""
    columns = {
        "day": pa.array([date(1969, 12, 31), None]),
        "unsigned": pa.array([2**64 - 1, 0], pa.uint64()),
        "single": pa.array([0.1, -0.0], pa.float32()),
        "nan": pa.array([float("nan"), 1.0]),
        "yes": pa.array([True, False]),
        "text": pa.array(["", None]),
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "list": pa.array([["a", None], None]),
        "nothing": pa.array([None, None], pa.string()),
        "zoned": pa.array([0, 1], pa.timestamp("us", "UTC")),
    }
    found = {}
    for name, values in columns.items():
        pq.write_table(pa.table({name: values}), tmp_path / "x.parquet")
        rows, content = engine.content_hash(tmp_path / "x.parquet")
        assert rows == 2
        found[name] = content[:12]
    assert found == {
        "day": "002ea96cd815",
        "unsigned": "7089a137231d",
        "single": "0d51d177486f",
        "nan": "ff869e3f7925",
        "yes": "2bfe7367ab64",
        "text": "1ee44d2a17b3",
        "price": "1ee0da0e7c06",
        "list": "de0f345fa178",
        "nothing": "4a4a5a2917b6",
        "zoned": "4494b52db254",
    }
