"""The rows of a stored table, read directly from its file: texts are numbers in a dictionary, as Parquet holds them.

An engine would write out every text, and hashing would have to number the texts again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.session import BATCH_ROWS
from anon_pipeline.errors import InputError


def is_as_stored(table: Path, schema: pa.Schema) -> bool:
    """Whether the file has each column of a schema with the same type (engines give a UUID as text, for example)."""
    stored = pq.read_schema(table)
    return all(stored.field(field.name).type == field.type for field in schema)


def stored_rows(table: Path) -> Iterator[pa.RecordBatch]:
    """All columns, batch by batch, in the order of the file.

    Raises
    ------
    InputError
        Where the file is damaged.
    """
    try:
        texts = [field.name for field in pq.read_schema(table) if pa.types.is_string(field.type)]
        with pq.ParquetFile(table, read_dictionary=texts) as file:
            yield from file.iter_batches(BATCH_ROWS, use_threads=False)
    except (OSError, pa.ArrowException):
        raise InputError(f"{table.name}: a file could not be read or written") from None
