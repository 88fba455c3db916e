"""95 % confidence intervals of noisy figures, computed from public numbers alone."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

CONFIDENCE = 0.95
#: 97.5 % of a normal distribution are below this many standard deviations.
NORMAL = 1.959963984540054


@cache
def half_width(scale: float) -> float:
    """Half of the interval of a count with discrete Gaussian noise, a whole number.

    At least 95 % of the noise is within it.
    """
    if scale > 50:
        return float(math.ceil(NORMAL * scale - 0.5))
    places = np.arange(-math.ceil(12 * scale) - 2, math.ceil(12 * scale) + 3)
    weights = np.exp(-(places.astype(float) ** 2) / (2 * scale * scale))
    weights /= weights.sum()
    for width in range(len(places)):
        if weights[np.abs(places) <= width].sum() >= CONFIDENCE:
            return float(width)
    raise AssertionError("a distribution sums to one")


def reach(scale: float) -> float:
    """How far from 0 the noise of a part of a quotient is in 95 of 100 draws, as if it were no whole number.

    Of whole numbers at least 95 % are so near only with half a step more: at a deviation of 1, 88 % are within 1.96.
    """
    return NORMAL * scale + 0.5


def ratio(numerator: float, denominator: float, scales: tuple[float, float]) -> tuple[float, float]:
    """The interval of a quotient of two noisy numbers (Fieller, 1954); infinite where the denominator may be 0.

    It has all t at which numerator - t denominator differs from 0 by no more than its own noise.
    """
    above, below = map(reach, scales)
    square = denominator * denominator - below * below
    if denominator <= 0 or square <= 0:
        return -math.inf, math.inf
    middle = numerator * denominator
    # The discriminant, middle^2 - square * (numerator^2 - above^2), without differences of nearly equal numbers.
    root = math.hypot(above * math.sqrt(square), below * numerator)
    return (middle - root) / square, (middle + root) / square


def end_of_quantile(candidates: int, scale: float) -> int:
    """The distance from the quantile at which an end of its interval is sought, in parts of a row.

    An end is chosen with Gumbel noise of this scale among `candidates` values, of which one has the score 0. With a
    probability of at least 97.5 % it is nearer to the place where it was sought than this distance (McSherry and
    Talwar, FOCS 2007, theorem 6). So it is not on the other side of the quantile, and at least 95 % of the intervals
    contain the quantile.
    """
    return math.ceil(scale * math.log(candidates / ((1 - CONFIDENCE) / 2)))


def rank_error(candidates: int, whole: int, scale: float) -> int:
    """The number of rows within which the chosen quantile is from the best candidate, with 95 % confidence.

    The maximum of n scores with Gumbel noise of this scale is within scale ln(n / .05) of the best (McSherry and
    Talwar, FOCS 2007, theorem 6).
    """
    return math.ceil(scale * math.log(candidates / (1 - CONFIDENCE)) / whole)
