"""The content of the people who may be released, by which a release is known that was made from the same.

What is not in a release has no part in it: identifiers that nobody is followed by, excluded columns, and people who are
withheld. If they had, a new release, or none, would tell that something about them has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from anon_pipeline.arrays import BoolArray
from anon_pipeline.engine.content import ContentHash, kind_of, row_hashes
from anon_pipeline.engine.stored_kinds import as_kind
from anon_pipeline.engine.stored_rows import stored_rows

#: The kinds that a column can have in place of another, as people come who are withheld, and in which it is hashed.
WIDEST = {"whole": "real", "single": "real", "day": "moment"}


def content_of(table: Path, columns: Sequence[str], of: Callable[[pa.RecordBatch], BoolArray]) -> str:
    """A hash of some rows of a stored table in any order, by these columns; the same where numbers are only wider.

    It can be tried for a guess at the rows, so nobody may see it without a key.

    Parameters
    ----------
    of : says of a batch of rows which of them count, shape (n,)
    """
    content, names = ContentHash(), sorted(columns)
    for every in stored_rows(table):
        rows = every.filter(pa.array(of(every)))  # before: one who does not count may have a number that is not widened
        hashes = row_hashes([_widest(rows.column(name)) for name in names], names)
        content.add(hashes, np.ones(len(rows), dtype=np.int64))
    return content.hexadecimal((name, "") for name in names)


def _widest(column: pa.Array) -> pa.Array:
    kind = WIDEST.get(kind_of(column.type))
    wide = None if kind is None else as_kind(column, kind)
    return column if wide is None else wide
