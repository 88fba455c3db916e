"""In which kinds the values of a stored table are, and the same content in the kinds in which it was stored before.

The same people are whole numbers in one export and texts, decimals or moments in another. The hash of a content is of
values in their kinds, so it tells two such exports apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_pipeline.engine.content import ContentHash, kind_of, row_hashes
from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.engine.stored_rows import stored_rows

#: A type of each kind.
TYPES = {
    "boolean": pa.bool_(),
    "whole": pa.int64(),
    "single": pa.float32(),
    "real": pa.float64(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
    "text": pa.string(),
}
DECIMAL = re.compile(r"decimal128\((\d+), (\d+)\)")


def kinds_of(table: Path) -> dict[str, str]:
    """The kind of each column of a stored table."""
    return {field.name: kind_of(field.type) for field in pq.read_schema(table) if field.name != PEOPLE}


def as_kind(column: pa.Array, kind: str) -> pa.Array | None:
    """The same values in another kind; None where they have no such values, or the kind is not known."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind_of(column.type) == kind:
        return column
    decimal = DECIMAL.fullmatch(kind)
    wanted = pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else TYPES.get(kind)
    if wanted is None:
        return None
    try:
        if pa.types.is_float32(column.type):  # .1 is the nearest number to .1 in another width, too
            column = column.cast(pa.string()).cast(pa.float64())
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        written = column.cast(wanted)
        is_same = kind == "single" or written.cast(column.type).equals(column)
    except pa.ArrowException:
        return None
    return written if is_same else None


def content_hash_as(table: Path, kinds: Mapping[str, str]) -> str | None:
    """The content hash that a stored table would have in other kinds; None where it has no such values."""
    content, names = ContentHash(), sorted(kinds)
    if names != sorted(kinds_of(table)):
        return None
    for rows in stored_rows(table):
        columns = [as_kind(rows.column(name), kinds[name]) for name in names]
        if any(column is None for column in columns):
            return None
        content.add(row_hashes(columns, names), rows.column(PEOPLE).to_numpy())
    return content.hexadecimal(kinds.items())
