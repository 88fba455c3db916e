"""Texts of a foreign table that may be dates or numbers, of which nobody has said how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.profiling.value_formats import dates_of, numbers_of

#: Distinct values of a column that are looked at.
LOOKED_AT = 100


def formats_not_stated(table: Path, columns: Sequence[str]) -> list[str]:
    """A sentence on each of some columns of texts that seem to be numbers or dates; it names no value.

    Parameters
    ----------
    table : a Parquet file with these columns
    """
    notes = []
    for name in columns:
        kind = pq.read_schema(table).field(name).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue
        known = pq.read_table(table, columns=[name])[name].unique().drop_null()
        texts = known.slice(0, LOOKED_AT).to_pylist()
        formats, _ = dates_of(texts)
        numbers = numbers_of({name: texts})
        if formats:
            seem = f"dates ({' and '.join(formats)}), and --quasi-identifiers cannot say so"
        elif name in numbers.columns and (numbers.decimal, numbers.thousands, numbers.symbols) != (".", None, ()):
            seem = "numbers that are not written as SQL writes them"
        else:
            continue
        notes.append(
            f"{name}: its texts seem to be {seem}; they are judged as categories, without an order, and --spec judges "
            "them in the order that a spec states"
        )
    return notes
