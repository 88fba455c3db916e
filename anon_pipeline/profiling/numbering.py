"""Numbers that hardly two people share: whether they number rows or people, encode something, or measure something."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.arrays import FloatArray
from anon_pipeline.profiling import identifiers
from anon_pipeline.profiling.column_names import named_by
from anon_pipeline.profiling.reading import CODES

#: From this share of distinct values on, whole numbers may be those of people, and nothing in them shows otherwise.
HARDLY_REPEAT = 0.99
#: The share of values that occur equally often, several times, from which on each stands for somebody.
EQUALLY_OFTEN = 0.9
#: The number of pieces of a column's range within which numbers are taken for evenly spread.
PIECES = 10
#: A gap between two numbers that follow one another is wide from this many times the median gap on.
WIDE = 15.0
#: How many standard deviations, and by what factor, numbers must be more different than chance makes them.
DEVIATIONS, FACTOR = 4.0, 1.02


def no_measure(name: str, column: pa.ChunkedArray) -> str | None:
    """The reason why a column of numbers that hardly two people share measures nothing; None where it may."""
    if identifiers.numbers_by_name(name) or named_by(name, CODES):
        return "by its name a number or a code of something, nearly unique to a person"
    numbers = pd.to_numeric(column.drop_null().to_pandas(), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = numbers[~np.isnan(numbers)]
    if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        return None  # nobody is numbered with fractions
    distinct, times = np.unique(numbers, return_counts=True)
    if len(distinct) >= HARDLY_REPEAT * len(numbers):
        return (
            "whole numbers, different in nearly every row, as numbers of rows and people are; if it measures "
            "something, quasi_identifier groups it"
        )
    usual = int(np.bincount(times).argmax())
    if usual > 1 and (times == usual).mean() >= EQUALLY_OFTEN:
        return f"whole numbers that occur {usual} times each, as numbers of people and households do"
    if _are_given_out(numbers, distinct):
        return "a running number: its whole numbers repeat less than measured ones would"
    return None


def _are_given_out(numbers: FloatArray, distinct: FloatArray) -> bool:
    """Whether whole numbers are more different than chance makes them, so that they were given out one after another.

    Of n numbers drawn evenly from m, about m (1 - exp(-n / m)) are different, with the variance m q (1 - (1 + n / m) q)
    where q = exp(-n / m) (the occupancy of n balls in m urns). Numbers that measure something are less different, since
    some are commoner than others. The range is cut into pieces by quantiles, and wide gaps do not count: neither a few
    far numbers nor blocks of numbers (1001, 1002, 2001, 2002) hide anything.
    """
    cuts = np.quantile(numbers, np.linspace(0, 1, PIECES + 1)[1:-1], method="lower")
    ends = np.unique(np.concatenate([[distinct[0]], cuts, [distinct[-1] + 1]]))
    drawn = np.histogram(numbers, ends)[0].astype(np.float64)
    urns = np.array([_used(distinct, low, high) for low, high in pairwise(ends)])
    empty = np.exp(-drawn / urns)
    expected = float((urns * (1 - empty)).sum())
    variance = float((urns * empty * (1 - (1 + drawn / urns) * empty)).sum())
    return bool(len(distinct) > max(expected + DEVIATIONS * max(variance, 0.0) ** 0.5, FACTOR * expected))


def _used(distinct: FloatArray, low: float, high: float) -> float:
    """How many whole numbers from `low` to below `high` may have been drawn: those in wide gaps were not."""
    within = distinct[(low <= distinct) & (distinct <= high)]
    gaps = np.diff(within)
    wide = gaps > WIDE * np.median(gaps) if len(gaps) else np.zeros(0, dtype=bool)
    return float(high - low - (gaps[wide] - 1).sum())
