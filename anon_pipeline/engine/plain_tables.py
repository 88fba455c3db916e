"""JSON and Arrow tables as Parquet: columns of plain values with their own types."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.paths import PACKED, PLAIN, exactly, packing
from anon_pipeline.engine.sql import literal

#: A list of objects, or one object a line.
JSON_FILES = (".json", ".jsonl", ".ndjson", *(f".{kind}{packed}" for kind in ("jsonl", "ndjson") for packed in PACKED))
ARROW_FILES = (".arrow", ".feather", ".ipc", ".arrows")
#: The first bytes of an Arrow file that is not a stream.
ARROW_HEAD = b"ARROW1"


def store_json(connection: duckdb.DuckDBPyConnection, path: Path, destination: Path) -> None:
    """Write the objects of a JSON file as a new Parquet file; the type of a column is decided from all objects."""
    with exactly(path) as (place,):
        rows = f"read_json({place}, {packing(path)}, sample_size=-1, {PLAIN})"
        connection.execute(f"COPY (FROM {rows}) TO {literal(str(destination))} (FORMAT parquet)")


def store_arrow(path: Path, destination: Path) -> None:
    """Write the rows of an Arrow IPC file or stream as a new Parquet file, batch by batch."""
    with pa.OSFile(str(path)) as file:
        is_file = file.read(len(ARROW_HEAD)) == ARROW_HEAD
        file.seek(0)
        if is_file:
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            reader = batches = pa.ipc.open_stream(file)
        with pq.ParquetWriter(destination, reader.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
