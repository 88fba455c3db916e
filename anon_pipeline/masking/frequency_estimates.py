"""Unbiased counts of the categories of a column under local differential privacy, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import InputError
from anon_pipeline.masking.base import Technique
from anon_pipeline.masking.local_randomizers import LocalRandomizer

CONFIDENCE = 0.95


@dataclass(frozen=True)
class EstimatedCount:
    """How many people have a category: an unbiased estimate, which may be below 0, and a 95 % interval."""

    category: str
    reported: int
    count: float
    low: float
    high: float


@dataclass(frozen=True)
class FrequencyEstimates:
    """The estimates of a column.

    Attributes
    ----------
    people : the number of people who reported something
    p, q : the probability that a category is reported by a person who has it, and by a person who has another one
    """

    technique: str
    epsilon: float
    people: int
    p: float
    q: float
    counts: list[EstimatedCount]


def estimate_counts(answers: pa.Array, step: LocalRandomizer) -> FrequencyEstimates:
    """Estimate the counts of a column that `step` has randomized.

    A category that c of n people have is reported Bin(c, p) + Bin(n - c, q) times, so (reported - n q) / (p - q) is
    unbiased (Wang et al., USENIX Security 2017, equation 1). The interval has all counts c at which that many reports
    would be no surprise; see `interval`. It covers 95 % for each category, not for all at once.

    Raises
    ------
    ValueError
        With a sentence where the column has other values than reports of this step.
    """
    reported, n = step.counts(answers)
    p, q = step.rates
    estimates = (reported - n * q) / (p - q)
    low, high = interval(reported, n, (p, q))
    rows = zip(step.categories, reported, estimates, low, high, strict=True)
    counts = [EstimatedCount(name, int(seen), *map(float, numbers)) for name, seen, *numbers in rows]
    return FrequencyEstimates(step.chosen.technique, step.epsilon, n, p, q, counts)


def interval(reported: IntArray, n: int, rates: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """The ends of the 95 % intervals of counts, each of the shape of `reported`.

    They have all c from 0 to n at which the reports differ from what is expected by at most half a report and z of
    their own standard deviations: |reported - c p - (n - c) q| <= 1/2 + z sqrt(c p (1 - p) + (n - c) q (1 - q)). With
    the variance at the estimate in place of that at c, 78 of 100 intervals of two people among 50 held the two, at an
    epsilon of 6 (E. B. Wilson, JASA 22, 1927; R. G. Newcombe, Statistics in Medicine 17, 1998, on the half).
    """
    p, q = rates
    slope, others, more = p - q, n * q * (1 - q), p * (1 - p) - q * (1 - q)
    square = float(ndtri((1 + CONFIDENCE) / 2)) ** 2
    ends = []
    for sign in (-1, 1):
        beyond = reported + sign / 2 - n * q  # equal to c (p - q) at the end, but for z standard deviations
        middle = beyond * slope + square * more / 2
        discriminant = middle**2 - slope**2 * (beyond**2 - square * others)
        root = (middle + sign * np.sqrt(np.maximum(discriminant, 0))) / slope**2
        root = np.where(discriminant < 0, beyond / slope, root)  # no c fits: fewer or more reports than any would bring
        # Of two roots one may belong to counts that no table has.
        end = np.where(beyond <= 0, 0, root) if sign < 0 else np.where(beyond >= n * slope, n, root)
        ends.append(np.clip(end, 0, n))
    return ends[0], ends[1]


def randomizer_of(steps: Sequence[Technique], column: str) -> LocalRandomizer:
    """The step of a column by which its counts are estimated: the last one.

    Raises
    ------
    InputError
        Where the last step of the column is no local randomizer.
    """
    last = steps[-1] if steps else None
    if not isinstance(last, LocalRandomizer):
        raise InputError(
            f"columns.{column}: does not end with randomized_response, unary_encoding or local_frequencies, so its "
            "counts can be read off the table, or cannot be estimated"
        )
    return last
