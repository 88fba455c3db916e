"""A person's number under a name that says nothing: one that repeats, and that settles who the person is.

In a table with several rows per person, such as one per visit, the number of a person determines what does not change
between their rows: date of birth, sex, origin. So does the number of a household or an employer, which is why a person
is asked. What is worked out from a number (a band of ages, a logarithm) is determined by it, too, but along the number
it changes seldom, or goes one way; such columns do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.profiling import separation
from anon_pipeline.profiling.reading import CODE

#: The shares of distinct values among the rows between which a number may be that of a person with several rows.
SELDOM, OFTEN = 0.95, 0.05
#: How many columns that do not follow from each other a person's number determines at least.
SETTLED = 2
#: The share of the smaller direction from which on values do not go one way.
BOTH_WAYS = 0.1


def number_of_a_person(
    sample: pa.Table, codes: Mapping[str, IntArray], eligible: Sequence[str]
) -> tuple[str, list[str]] | None:
    """The column that seems to number people who have several rows, and the columns that it determines; else None.

    Parameters
    ----------
    sample : the columns that say who somebody is, so without the target
    codes : the codes of every column of the sample
    eligible : the columns that may be such a number as far as their names say
    """
    found: dict[str, list[str]] = {}
    for name in eligible:
        known = codes[name] > 0
        distinct = len(separation.class_sizes(codes[name][known]))
        if OFTEN * known.sum() < distinct < SELDOM * known.sum() and _may_number(sample.column(name)):
            of_known = {column: codes[column][known] for column in sample.column_names}
            determined = _determined(name, sample.filter(pa.array(known)), of_known)
            if determined is not None:
                found[name] = determined
    best = max(found, key=lambda name: len(found[name]), default=None)
    return None if best is None else (best, found[best])


def _may_number(column: pa.ChunkedArray) -> bool:
    """Whether all values are whole numbers, or codes with a digit."""
    values = column.unique().drop_null()
    if pa.types.is_integer(values.type):
        return True
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        numbers = values.cast(pa.float64()).to_numpy()
        return bool((np.floor(numbers) == numbers).all())
    return pa.types.is_string(values.type) and all(CODE.fullmatch(value.strip()) for value in values.to_pylist())


def _determined(name: str, sample: pa.Table, codes: Mapping[str, IntArray]) -> list[str] | None:
    """The columns that a number determines and that are not worked out from it, if there are enough; else None."""
    own = codes[name]
    determined = [
        column
        for column, code in codes.items()
        if column != name and separation.determines(own, code) and separation.is_seen_often_enough(own, code)
    ]
    if len(determined) < SETTLED:
        return None
    first = np.unique(_ranks(sample.column(name)), return_index=True)[1]  # a row of each of its values, in their order
    settled = {column: _ranks(sample.column(column).take(pa.array(first))) for column in determined}
    sizes = {column: len(separation.class_sizes(rank)) for column, rank in settled.items()}
    half = len(first) / 2
    coarse = [
        c for c, rank in settled.items() if 1 < sizes[c] <= half and np.count_nonzero(np.diff(rank)) > 2 * sizes[c]
    ]
    fine = [c for c, rank in settled.items() if sizes[c] > half and _goes_both_ways(rank)]
    apart: list[str] = []
    for column in sorted(coarse, key=lambda column: -sizes[column]):
        if not any(separation.determines(settled[finer], settled[column]) for finer in apart):
            apart.append(column)
    return [*fine, *coarse] if len(apart) + bool(fine) >= SETTLED else None


def _ranks(column: pa.ChunkedArray) -> IntArray:
    """A whole number per row, equal for equal values and in their order; 0 for a missing one."""
    values = column.to_pandas()
    try:
        codes = pd.factorize(values, sort=True)[0]
    except TypeError:  # records and lists have no order
        return np.zeros(len(values), dtype=np.int64)
    return np.asarray(codes, dtype=np.int64) + 1


def _goes_both_ways(values: IntArray) -> bool:
    steps = np.diff(values)
    ups, downs = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
    return bool(min(ups, downs) >= BOTH_WAYS * (ups + downs) > 0)
