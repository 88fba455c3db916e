"""Rows of a release for another kind of table, and what counts as the same rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.destinations.rows import rows_of, same_rows

ROWS = pa.table({"age": pa.array([20, 50, None], pa.int16()), "ill": ["yes", "no", "no"]})


def stored(folder: Path, table: pa.Table) -> Path:
    pq.write_table(table, folder / "data.parquet")
    return folder / "data.parquet"


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.uint64(), [2**64 - 1, None], pa.decimal128(20, 0)),
        (pa.uint32(), [2**32 - 1, None], pa.int64()),
        (pa.uint16(), [2**16 - 1, None], pa.int32()),
        (pa.int8(), [-128, None], pa.int32()),
        (pa.int32(), [-(2**31), None], pa.int32()),
        (pa.int64(), [-(2**63), None], pa.int64()),
        (pa.timestamp("ns"), [10**9, None], pa.timestamp("us")),
        (pa.timestamp("ms", "UTC"), [10**9, None], pa.timestamp("us", "UTC")),
        (pa.large_string(), ["a", None], pa.string()),
        (pa.dictionary(pa.int32(), pa.large_string()), ["a", None], pa.string()),
        (pa.decimal128(20, 3), [Decimal("1.500"), None], pa.decimal128(20, 3)),
    ],
)
def test_every_kind_of_table_has_the_types(tmp_path: Path, kind: pa.DataType, values: list[Any], expected: Any) -> None:
    if pa.types.is_dictionary(kind):  # the oldest pyarrow makes none from values
        table = pa.table({"x": pa.array(values, kind.value_type).dictionary_encode()})
    else:
        table = pa.table({"x": pa.array(values, kind)})
    assert table.schema.field("x").type == kind
    read = rows_of(stored(tmp_path, table)).read_all()
    assert read.schema.field("x").type == expected
    assert read["x"].to_pylist() == table.cast(read.schema)["x"].to_pylist()
    assert same_rows(tmp_path / "data.parquet", read.to_batches(), tmp_path)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (ROWS, True),
        (ROWS.take([2, 0, 1]), True),
        (ROWS.slice(1), False),
        (pa.concat_tables([ROWS, ROWS.slice(0, 1)]), False),
        (ROWS.rename_columns(["ages", "ill"]), False),
        (ROWS.select(["ill", "age"]), False),
        (ROWS.select(["age"]), False),
        (ROWS.set_column(0, "age", pa.array([20, 51, None], pa.int64())), False),
        (ROWS.set_column(0, "age", pa.array([20, 50, None], pa.int64())), True),
        (ROWS.set_column(0, "age", pa.array([20, 2**40, None])), False),
        (ROWS.set_column(0, "age", pa.array(["20", "fifty", None])), False),
        (ROWS.set_column(0, "age", pa.array([[20], [50], None])), False),
        (ROWS.set_column(1, "ill", ROWS["ill"].dictionary_encode()), True),
    ],
)
def test_rows_are_the_same_in_any_order_and_no_others_are(tmp_path: Path, other: pa.Table, same: bool) -> None:
    file = stored(tmp_path, ROWS)
    assert same_rows(file, other.to_batches(), tmp_path) is same
    assert list(tmp_path.iterdir()) == [file], "what was compared is not left there"
