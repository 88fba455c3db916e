"""Rows that agree in some columns: codes per column and a number per group. A missing value is a value of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anon_pipeline.arrays import IntArray

#: Keys are packed into one integer as long as they stay below this.
LARGEST = 2**62


def codes_of(array: pa.Array) -> tuple[IntArray, pa.Array]:
    """Codes from 1 in the order of first appearance, 0 where missing, shape (n,); and the value of each code from 1."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.int64), pa.nulls(0)
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    codes = np.asarray(coded.indices.cast(pa.int64()).fill_null(-1), dtype=np.int64) + 1
    return codes, coded.dictionary


def keys_of(codes: Sequence[IntArray]) -> IntArray:
    """One integer per row that two rows share if and only if all their codes agree, shape (n,)."""
    key = np.zeros(len(codes[0]), dtype=np.int64)
    size = 1
    for column in codes:
        radix = int(column.max(initial=0)) + 1
        if size * radix > LARGEST:  # then number the keys that occur
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
        key = key * radix + column
        size *= radix
    return key


def groups_of(columns: Sequence[pa.Array]) -> IntArray:
    """A number from 0 per group of rows that agree in all columns, shape (n,)."""
    groups: IntArray = np.unique(keys_of([codes_of(column)[0] for column in columns]), return_inverse=True)[1]
    return groups
