"""Match a population table with a release: how many of its people match each class.

The verdict counts the people inside the box that a class shows. Enforcement needs counts that add up when classes
merge, and that never exceed the verdict's counts. So it sends everyone of the population down the tree, and counts the
people who are inside the box of the class where they end. The box of a merged class contains the boxes it was merged
from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.arrays import LARGEST_EXACT, BoolArray, IntArray
from anon_pipeline.distinct import factorized
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.statistics import ClassStatistics

#: Column of a population table that counts people; every other column is a quasi-identifier.
PEOPLE = "#people"


def people_in_own_box(
    classes: pd.DataFrame, quasi_identifiers: Sequence[str], population_table: pd.DataFrame, own: IntArray
) -> IntArray:
    """People of the population inside the box of the class to which the tree sends them, shape (J,).

    Parameters
    ----------
    classes : a class table
    own : class of each row of the population table, -1 for a row that is suppressed
    """
    inside = own >= 0
    for name in quasi_identifiers:
        fits, place = _inside(classes, name, population_table[name])
        inside &= fits[own, place]
    people = population_table[PEOPLE].to_numpy(np.int64)
    return np.bincount(own[inside], weights=people[inside], minlength=len(classes)).astype(np.int64)


def boxed(classes: pd.DataFrame, quasi_identifiers: Sequence[str], population_table: pd.DataFrame) -> ClassStatistics:
    """Statistics of the rows of a class table, with the people of the population inside each row's box.

    Parameters
    ----------
    classes : a class table as a release publishes it (`name_low`, `name_high`, `name_missing`, or `name_values`)
    """
    return _boxed(classes, quasi_identifiers, population_table)[0]


def boxed_alike(
    classes: pd.DataFrame, quasi_identifiers: Sequence[str], population_table: pd.DataFrame
) -> ClassStatistics:
    """As `boxed`, with rows whose boxes hold the same people of the population counted as one class.

    Whoever matches one of them matches all of them, and is in the table if they are in any: two rows of five people
    each beside the same ten tell that all ten are.
    """
    rows, matched = _boxed(classes, quasi_identifiers, population_table)
    _, first, place = np.unique(matched, return_index=True, return_inverse=True)
    sizes = np.bincount(place, weights=rows.sizes, minlength=len(first)).astype(np.int64)
    people = None if rows.population is None else rows.population[first]
    return replace(rows, sizes=sizes, population=people)


def _boxed(
    classes: pd.DataFrame, quasi_identifiers: Sequence[str], population_table: pd.DataFrame
) -> tuple[ClassStatistics, np.ndarray]:
    """The statistics of `boxed`, and a hash of who is inside each row's box, of 16 bytes, shape (J,)."""
    people = population_table[PEOPLE].to_numpy(np.int64)
    inside_columns = [_inside(classes, name, population_table[name]) for name in quasi_identifiers]
    population = np.empty(len(classes), dtype=np.int64)
    matched = np.empty(len(classes), dtype="V16")
    somewhere = np.zeros(len(population_table), dtype=bool)
    step = max(1, 20_000_000 // max(1, len(population_table)))
    for start in range(0, len(classes), step):
        chunk = slice(start, start + step)
        inside = np.logical_and.reduce([fits[chunk][:, place] for fits, place in inside_columns])
        population[chunk] = inside @ people
        somewhere |= inside.any(axis=0)
        packed = np.packbits(inside, axis=1)
        matched[chunk] = [np.void(blake2b(row.tobytes(), digest_size=16).digest()) for row in packed]
    statistics = ClassStatistics(
        sizes=classes["class_size"].to_numpy(np.int64),
        population=population,
        population_unmatched=int(people[~somewhere].sum()),
    )
    return statistics, matched


def told_by_ends(
    classes: pd.DataFrame, quasi_identifiers: Sequence[str], population_table: pd.DataFrame, most: float
) -> int:
    """How many ends of intervals and listed categories tell who is in the table, with a chance above `most`.

    An end is mostly the value of somebody who is released, and a listed category that of two, as it is that some have
    no number. Of m people of the population inside a class's box who have it, each is then in the table with a chance
    of 1/m, or 2/m.

    Parameters
    ----------
    classes : as for `boxed`
    most : the largest chance of presence that is demanded
    """
    people = population_table[PEOPLE].to_numpy(np.int64)
    inside_columns = [_inside(classes, name, population_table[name]) for name in quasi_identifiers]
    known = {name: _known_values(classes, name, population_table[name]) for name in quasi_identifiers}
    shown = {name: _shown_values(classes, name) for name in quasi_identifiers}
    told = 0
    for row in range(len(classes)):
        matching = np.flatnonzero(np.logical_and.reduce([fits[row][place] for fits, place in inside_columns]))
        for name, (values, missing) in known.items():
            for value, least in shown[name][row].items():
                has_it = missing[matching] if value is None else (values[matching] == value) & ~missing[matching]
                told += 0 < int(people[matching][has_it].sum()) * most < least
    return told


def _known_values(classes: pd.DataFrame, name: str, column: pd.Series) -> tuple[np.ndarray, BoolArray]:
    """The values of a population's column as `_shown_values` has them, and which are missing."""
    if f"{name}_low" in classes:
        return _coded(column)
    missing = column.isna().to_numpy(bool)
    return np.array([str(value) for value in column], dtype=object), missing


def _shown_values(classes: pd.DataFrame, name: str) -> list[dict[Any, int]]:
    """The ends of each class that are told, or its categories, None for missing, with how many members have each."""
    if f"{name}_low" not in classes:
        return [{None if value is None else str(value): 2 for value in named} for named in classes[f"{name}_values"]]
    ends = [_coded(classes[f"{name}_{end}"]) for end in ("low", "high")]
    some_missing = classes[f"{name}_missing"].fillna(False).to_numpy(bool)
    return [
        {number[row].item(): 1 for number, absent in ends if not absent[row]} | ({None: 2} if some_missing[row] else {})
        for row in range(len(classes))
    ]


def _inside(classes: pd.DataFrame, name: str, column: pd.Series) -> tuple[np.ndarray, IntArray]:
    """Whether each class encloses each distinct value of a column, and the distinct value of each row.

    Raises
    ------
    InputError
        For numbers of a population that may have lost their last digits, beside whole ones of classes.
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        column = pd.Series(pd.arrays.IntegerArray(*_coded(column)))
    place, values = pd.factorize(column, use_na_sentinel=False) if column.isna().any() else factorized(column)
    missing = pd.isna(values)
    if f"{name}_low" in classes:
        (low, no_low), (high, no_high) = (_coded(classes[f"{name}_{end}"]) for end in ("low", "high"))
        number, _ = _coded(pd.Series(values))
        # A whole number is compared as such: as floats, whole numbers beyond 2^53 that differ would be one.
        least, most = number, number
        if np.result_type(low, high) == np.int64 and number.dtype != np.int64:
            if (np.abs(number) > LARGEST_EXACT).any():
                raise InputError(
                    f"columns.{name}: the population has numbers beyond 2^53 that it does not store as whole numbers, "
                    "so that several of them look like one; store them as whole numbers, as the source does"
                )
            least, most = np.floor(number).astype(np.int64), np.ceil(number).astype(np.int64)
        elif number.dtype == np.int64:
            low, high = np.ceil(low).astype(np.int64), np.floor(high).astype(np.int64)
        # One end that is missing is open. Where both are missing, no value of the column is published; nobody counts.
        above, below = low[:, None] <= least, most <= high[:, None]
        fits = (above | no_low[:, None]) & (below | no_high[:, None]) & ~(no_low & no_high)[:, None]
        fits[:, missing] = classes[f"{name}_missing"].fillna(False).to_numpy(bool)[:, None]
    else:
        sets = [{None if value is None else str(value) for value in named} for named in classes[f"{name}_values"]]
        names = [None if is_missing else str(value) for value, is_missing in zip(values, missing, strict=True)]
        fits = np.array([[value in named for value in names] for named in sets], dtype=bool)
        fits = fits.reshape(len(sets), len(names))
    return fits, place


def _coded(numbers: pd.Series) -> tuple[np.ndarray, BoolArray]:
    """Numbers and dates as a Domain codes them, and which are missing: dates are microseconds since 1970."""
    missing = numbers.isna().to_numpy(bool)
    if pd.api.types.is_datetime64_any_dtype(numbers.dtype):
        return numbers.to_numpy("datetime64[us]").astype(np.int64), missing
    kind = np.int64 if pd.api.types.is_integer_dtype(numbers.dtype) else np.float64
    return numbers.to_numpy(kind, na_value=0), missing
