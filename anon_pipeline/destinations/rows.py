"""Rows of a released table for another kind of table, and the comparison of a copy with the released file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.duckdb import DuckDBEngine

#: Rows that are in memory at a time.
BATCH_ROWS = 65_536


def rows_of(file: Path) -> pa.RecordBatchReader:
    """The rows of a released file, in types that every kind of table has."""
    source = pq.ParquetFile(file)
    schema = pa.schema([(field.name, _common(field.type)) for field in source.schema_arrow])
    batches = (_cast(batch, schema) for batch in source.iter_batches(BATCH_ROWS))
    return pa.RecordBatchReader.from_batches(schema, batches)


def same_rows(file: Path, batches: Iterable[pa.RecordBatch], scratch: Path) -> bool:
    """Whether some batches hold the rows of a released file, in whatever order, under the same names and types.

    Parameters
    ----------
    scratch : a private folder, to which the batches are written during the comparison
    """
    schema = pq.read_schema(file)
    plain = pa.schema([(field.name, _without_codes(field.type)) for field in schema])
    copy = scratch / "copy.parquet"
    try:
        with pq.ParquetWriter(copy, plain) as writer:
            for batch in batches:
                if batch.schema.names != plain.names:
                    return False
                try:
                    writer.write_batch(_cast(batch, plain))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    return False
        engine = DuckDBEngine(scratch)
        return engine.content_hash(copy) == engine.content_hash(file)
    finally:
        copy.unlink(missing_ok=True)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_plain(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.record_batch(columns, schema=schema)


def _plain(column: pa.Array, to: pa.DataType) -> pa.Array:
    # The driver gives a number of any length as its text, in an extension type of its own.
    storage = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
    return storage.cast(to)


def _common(kind: pa.DataType) -> pa.DataType:
    """The type of a column in other kinds of tables: few of them have small or unsigned integers, or nanoseconds."""
    kind, types = _without_codes(kind), pa.types
    if types.is_uint64(kind):
        return pa.decimal128(20, 0)
    if types.is_uint32(kind):
        return pa.int64()
    if types.is_integer(kind) and kind.bit_width < 32:
        return pa.int32()
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return kind


def _without_codes(kind: pa.DataType) -> pa.DataType:
    """The type of the values themselves, where they are stored as codes or with long offsets."""
    if pa.types.is_dictionary(kind):
        return _without_codes(kind.value_type)
    return pa.string() if pa.types.is_large_string(kind) else kind
