"""The class of each tuple of quasi-identifiers in a release of rows, kept in private to judge other releases beside it.

Neither `data.parquet` nor `classes.parquet` tells it: classes show rounded ends, and may overlap. Tuples are kept as
hashes of 64 bits, which say no more than the stored copy of the source does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.content import row_hashes
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, write_file

#: The file beside a candidate, and the folder of a dataset's releases in the private zone.
FILE, FOLDER = "known_classes.parquet", "known_classes"
TUPLE, CLASS = "tuple", "class"
#: Why a release cannot be judged, and what helps where its source is still there.
NOT_KNOWN = "who is in which of its classes is not known in this home; run its spec again, from the same source"


def write(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], destination: Path, narrowed: Collection[str] = ()
) -> None:
    """Write the classes of a candidate; `batches` hold the named columns and the class, a row per tuple or person.

    Parameters
    ----------
    narrowed : columns of whole numbers or days that were floats or moments before others left the table. Their tuples
        are known by what they were, since the source is still read so
    """
    hashes, classes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for batch in batches:
        columns = [
            _widened(column) if name in narrowed else column for name, column in zip(names, batch.columns, strict=False)
        ]
        hashes.append(_hashed(columns, names))
        classes.append(batch.column(len(names)).to_numpy(zero_copy_only=False).astype(np.int64))
    tuple_hash, number = np.concatenate(hashes), np.concatenate(classes)
    order = np.lexsort((number, tuple_hash))
    tuple_hash, number = tuple_hash[order], number[order]
    # A tuple is there once for each of its classes, which is one, or it cannot be judged.
    is_new = np.append(True, (np.diff(tuple_hash) != 0) | (np.diff(number) != 0))[: len(order)]
    pq.write_table(pa.table({TUPLE: tuple_hash[is_new], CLASS: number[is_new]}), destination)


def keep(home: Home, dataset: str, version: str, file: Path) -> None:
    """Store the classes of a release; called before it is published."""
    write_file(home.private_folder(dataset, FOLDER) / f"{version}.parquet", file.read_bytes())


def kept(home: Home, dataset: str, version: str) -> Path:
    """Where the classes of a release are, if they are."""
    return home.private / dataset / FOLDER / f"{version}.parquet"


def classes_of(columns: Sequence[pa.Array], names: Sequence[str], file: Path, left_out: int) -> IntArray:
    """The class of each row, `left_out` for tuples without a class, shape (n,).

    Raises
    ------
    InputError
        If the file is not there or is none, or a tuple has two classes.
    """
    try:
        known = pq.read_table(file)
        tuples, classes = known.column(TUPLE).to_numpy(), known.column(CLASS).to_numpy()
    except (OSError, KeyError, pa.ArrowInvalid):
        raise InputError(NOT_KNOWN) from None
    if len(np.unique(tuples)) < len(tuples):
        raise InputError("its classes do not follow from the quasi-identifiers")
    people = _hashed(columns, names)
    if not len(tuples):
        return np.full(len(people), left_out, dtype=np.int64)
    at = np.minimum(np.searchsorted(tuples, people), len(tuples) - 1)
    found: IntArray = np.where(tuples[at] == people, classes[at], left_out)
    return found


def _widened(column: pa.Array) -> pa.Array:
    """Whole numbers as floats, and days as moments."""
    return column.cast(pa.float64() if pa.types.is_integer(column.type) else pa.timestamp("us"))


def _hashed(columns: Sequence[pa.Array], names: Sequence[str]) -> IntArray:
    """64 bits of each row, shape (n,)."""
    hashed: IntArray = row_hashes(columns, names)[0].view(np.int64)
    return hashed
