"""Unbiased counts of the categories of a column under local differential privacy, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

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
    unbiased (Wang et al., USENIX Security 2017, equation 1). The interval is the normal one, with the variance at the
    estimate, clamped to possible counts; it covers 95 % for each category, not for all at once.

    Raises
    ------
    ValueError
        With a sentence where the column has other values than reports of this step.
    """
    reported, n = step.counts(answers)
    p, q = step.rates
    estimates = (reported - n * q) / (p - q)
    possible = np.clip(estimates, 0, n)
    variance = (possible * p * (1 - p) + (n - possible) * q * (1 - q)) / (p - q) ** 2
    reach = float(ndtri((1 + CONFIDENCE) / 2)) * np.sqrt(variance)
    low, high = np.clip(estimates - reach, 0, n), np.clip(estimates + reach, 0, n)
    rows = zip(step.categories, reported, estimates, low, high, strict=True)
    counts = [EstimatedCount(name, int(seen), *map(float, numbers)) for name, seen, *numbers in rows]
    return FrequencyEstimates(step.chosen.technique, step.epsilon, n, p, q, counts)


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
