"""The canonical order in which steps get rows: the order of 128 bits per row, never that of the table.

Where rows tie (equal numbers, equal distances) this order decides, and so the private key decides. A public order would
reveal something about the other columns of two equal people who are shown differently.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import IntArray


def canonical_order(rows: npt.NDArray[np.uint64]) -> IntArray:
    """The positions of the rows in the order of their bits, shape (n, 2) -> (n,)."""
    order: IntArray = np.lexsort((rows[:, 1], rows[:, 0])).astype(np.int64)  # stable, so equal rows keep their order
    return order


def undone(order: IntArray, kept: IntArray | None = None) -> IntArray:
    """The positions that put rows back into the order before `canonical_order`.

    Parameters
    ----------
    order : the canonical order of all n rows
    kept : the positions in canonical order of the rows that are left, shape (m,); None where all are

    Returns
    -------
    Positions among the rows that are left, shape (m,).
    """
    back: IntArray = np.argsort(order if kept is None else order[kept], kind="stable").astype(np.int64)
    return back
