"""Guidance that is given beside rows, as numbers: what the tree should keep apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.errors import InputError
from anon_pipeline.tables import scale_of

#: Labels of a column of guidance, each of which becomes a column; numbers written as texts have more.
MOST_LABELS = 1000


def guidance_of(y: npt.ArrayLike | None, rows: int) -> npt.NDArray[np.float64]:
    """Guidance as numbers of shape (n, g); labels become one column per label of each of their columns."""
    if y is None:
        return np.zeros((rows, 1))
    given = np.asarray(y)
    if given.ndim == 0 or len(given) != rows:
        raise InputError(f"the guidance has {given.shape[0] if given.ndim else 1} rows, the table {rows}")
    if not given.size:
        raise InputError("the guidance has no columns; leave it out, or give predictions")
    columns = given.reshape(rows, -1)
    if given.dtype.kind not in "fiub":
        return np.concatenate([_of_objects(column) for column in columns.T], axis=1)
    return _of_numbers(columns)


def _of_numbers(columns: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = columns.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("the guidance holds infinity or missing values")
    return numbers / scale_of(numbers)


def _of_objects(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Numbers that are stored as objects, shape (n, 1), or a column for each label, 1 where a row has it."""
    if pd.api.types.infer_dtype(column, skipna=True) in ("integer", "floating", "mixed-integer-float", "decimal"):
        return _of_numbers(np.where(pd.isna(column), np.nan, column)[:, None])
    labels, label = np.unique(column.astype(str), return_inverse=True)
    if len(labels) > MOST_LABELS:
        raise InputError(f"the guidance has {len(labels)} different labels, more than {MOST_LABELS}; give numbers")
    return np.asarray(label[:, None] == np.arange(len(labels)), dtype=np.float64)
