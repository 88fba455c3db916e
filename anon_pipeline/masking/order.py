"""The order in which steps see rows: that of 128 bits per row, never that in which they stand.

Where rows tie (equal numbers, equal distances) the order decides, and so the private key does: a public order would
tell, of two equal people who are shown differently, something of the rest of their rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import IntArray


def canonical_order(rows: npt.NDArray[np.uint64]) -> IntArray:
    """The positions of the rows in the order of their bits, shape (n, 2) -> (n,)."""
    order: IntArray = np.lexsort((rows[:, 1], rows[:, 0])).astype(np.int64)  # stable, so ties stay as they stand
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
