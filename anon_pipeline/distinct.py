"""The distinct values of a column, of which texts are told apart to their last character, and those of lists."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

Made = TypeVar("Made")


def factorized(column: Any, sort: bool = False) -> tuple[npt.NDArray[np.intp], Any]:
    """The place of each value among the distinct ones, -1 where it is missing, and the distinct values.

    As `pandas.factorize`, which takes texts for one that differ after a character of code 0 only, as padded exports
    have them: a demand that compares a class with the table would then hold where it does not.

    Parameters
    ----------
    column : series or array, shape (n,)
    sort : whether the distinct values ascend; else they come in any order
    """
    if (column.dtype == object or isinstance(column.dtype, pd.StringDtype)) and _has_code_0(column):
        distinct, place = np.unique(np.asarray(column), return_inverse=True)
        return place, distinct
    place, values = pd.factorize(column, sort=sort)
    return place, values


def of_each_list(
    codes: npt.NDArray[np.integer[Any]], ends: npt.NDArray[np.integer[Any]], make: Callable[[list[int]], Made]
) -> list[Made]:
    """What `make` gives for each of some lists of codes, made once for all that are equal.

    Parameters
    ----------
    codes : those of all lists, one list after another
    ends : where the lists begin, and where the last one ends: list i is codes[ends[i]:ends[i + 1]], shape (J + 1,)
    """
    stored, width = codes.tobytes(), codes.itemsize
    made: dict[bytes, Made] = {}
    of_lists = []
    places = ends.tolist()
    for start, end in pairwise(places):
        key = stored[start * width : end * width]
        if key not in made:
            made[key] = make(codes[start:end].tolist())
        of_lists.append(made[key])
    return of_lists


def _has_code_0(column: Any) -> bool:
    """Whether all values are texts, and one has such a character; among others than texts pandas makes no mistake."""
    try:
        return "\0" in "".join(column)
    except TypeError:
        return False
