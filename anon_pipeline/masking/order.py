"""Randomness that depends on a seed and on what rows hold, never on where they stand: row order and draws.

Rows are brought into the order of their content's hash before anything is drawn, and back afterwards. Rows with the
same content are interchangeable: they get different draws, but which of them gets which changes nothing in the release.

Draws are SHAKE-256 output and not a numpy Generator. The same numbers come out under every version of numpy, and who
knows some of them (the noise on their own value) cannot find the others, as they could from the state of PCG64 (C.
Bouillaguet, F. Martinez, J. Sauvage: Practical seed-recovery for the PCG pseudo-random number generator, 2020).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import ndtri

from anon_pipeline.engine.content import Lanes, row_hashes
from anon_pipeline.keys import Key
from anon_pipeline.tables import IntArray

FloatArray = npt.NDArray[np.float64]

#: Draws made of one call of the hash; only memory depends on it.
CHUNK = 1 << 20


def canonical_order(table: pa.Table, hashes: Lanes | None = None) -> IntArray:
    """The positions of the rows in the order of their content's hash, shape (n,).

    Parameters
    ----------
    table : all columns that tell people apart
    hashes : their 128-bit hashes, shape (2, n), where the caller has them; then the table's columns are not looked at
    """
    if hashes is None:
        hashes = row_hashes([table.column(name).combine_chunks() for name in table.column_names], table.column_names)
    order: IntArray = np.lexsort((hashes[1], hashes[0])).astype(np.int64)  # stable, so ties stay as they stand
    return order


def undone(order: IntArray, kept: IntArray | None = None) -> IntArray:
    """Where to take rows from to have them as they stood before `canonical_order`.

    Parameters
    ----------
    order : of all n rows
    kept : the positions in canonical order that are still there, shape (m,); None where all are

    Returns
    -------
    Positions among the rows that are left, shape (m,).
    """
    back: IntArray = np.argsort(order if kept is None else order[kept], kind="stable").astype(np.int64)
    return back


class Draws:
    """Random numbers for one step: they follow from the seed, the key, the columns, the technique, and nothing else."""

    def __init__(self, seed: int, columns: Sequence[str], technique: str, number: int = 0, key: Key | None = None):
        """`number` counts the earlier steps of the same technique on the same columns."""
        label = json.dumps([seed, list(columns), technique, number])
        self._material = hashlib.sha256(label.encode()).digest() if key is None else key.derived("draws", label)
        self._calls = 0

    def uniform(self, n: int) -> FloatArray:
        """Numbers strictly between 0 and 1, shape (n,)."""
        bits = np.empty(n, dtype=np.uint64)
        for number, start in enumerate(range(0, n, CHUNK)):
            size = min(CHUNK, n - start)
            label = self._material + self._calls.to_bytes(8, "big") + number.to_bytes(8, "big")
            bits[start : start + size] = np.frombuffer(hashlib.shake_256(label).digest(8 * size), dtype="<u8")
        self._calls += 1
        drawn: FloatArray = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return drawn

    def normal(self, n: int) -> FloatArray:
        """Standard normal numbers, shape (n,)."""
        drawn: FloatArray = ndtri(self.uniform(n))
        return drawn

    def laplace(self, n: int) -> FloatArray:
        """Laplace numbers of scale 1, shape (n,)."""
        centred = self.uniform(n) - 0.5
        drawn: FloatArray = -np.sign(centred) * np.log1p(-2 * np.abs(centred))
        return drawn

    def shuffled(self, n: int) -> IntArray:
        """A random order of n things."""
        order: IntArray = np.argsort(self.uniform(n), kind="stable").astype(np.int64)
        return order

    def below(self, limits: IntArray) -> IntArray:
        """A whole number from 0 to below each limit (at least 1), shape of `limits`."""
        drawn = (self.uniform(len(limits)) * limits).astype(np.int64)
        return np.minimum(drawn, limits - 1)
