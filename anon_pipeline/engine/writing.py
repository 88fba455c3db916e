"""Writes rows that stand for several people each as a row per person, in Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP = 1_000_000


def write_repeated(batches: Iterable[pa.RecordBatch], schema: pa.Schema, people: str, destination: Path) -> None:
    """Write every row as often as its column `people` says, in the order of the rows, without that column.

    Texts are repeated as places in a dictionary, which is also how Parquet stores them. So a release of 10 million
    people with 100,000 different rows costs little more than these rows.
    """
    kept = [field for field in schema if field.name != people]
    coded = pa.schema([pa.field(field.name, _coded(field.type)) for field in kept])
    measured = [field.name for field in kept if not pa.types.is_string(field.type)]
    # Without Arrow's own schema the file says "text", not "dictionary of text". Statistics of smallest and largest
    # texts help no reader and cost as much as all the rest.
    with pq.ParquetWriter(
        destination, coded, compression="zstd", store_schema=False, write_statistics=measured
    ) as writer:
        for batch in in_groups(batches):
            columns = [_dictionary(batch.column(field.name), field.type) for field in kept]
            counts = batch.column(people).to_numpy()
            ends = np.cumsum(counts)
            for start in range(0, int(ends[-1]), ROW_GROUP):
                stop = min(start + ROW_GROUP, int(ends[-1]))
                first, last = np.searchsorted(ends, start, "right"), np.searchsorted(ends, stop, "left")
                inside = np.minimum(ends[first : last + 1], stop) - np.maximum(
                    ends[first : last + 1] - counts[first : last + 1], start
                )
                place = pa.array(np.repeat(np.arange(first, last + 1), inside))
                writer.write_table(pa.table([column.take(place) for column in columns], schema=coded))


def in_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined until they make about a row group; a file of many small groups is slow to read."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            pending.append(batch)
            rows += batch.num_rows
        if rows >= ROW_GROUP:
            yield pa.Table.from_batches(pending)
            pending, rows = [], 0
    if pending:
        yield pa.Table.from_batches(pending)


def _coded(type_: pa.DataType) -> pa.DataType:
    return pa.dictionary(pa.int32(), pa.string()) if pa.types.is_string(type_) else type_


def _dictionary(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    column = column.combine_chunks()
    return column.dictionary_encode() if pa.types.is_string(type_) else column
