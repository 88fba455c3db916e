"""How far a noisy figure may lie from the exact one, with 95 % confidence, told from public numbers alone."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

CONFIDENCE = 0.95
#: 97.5 % of a normal distribution lie below so many deviations.
NORMAL = 1.959963984540054


@cache
def half_width(scale: float) -> float:
    """Half of the interval of a count with discrete Gaussian noise; whole where single steps matter.

    At least 95 % of the noise lies within it.
    """
    if scale > 50:
        return NORMAL * scale
    places = np.arange(-math.ceil(12 * scale) - 2, math.ceil(12 * scale) + 3)
    weights = np.exp(-(places.astype(float) ** 2) / (2 * scale * scale))
    weights /= weights.sum()
    for width in range(len(places)):
        if weights[np.abs(places) <= width].sum() >= CONFIDENCE:
            return float(width)
    raise AssertionError("a distribution sums to one")


def ratio(numerator: float, denominator: float, scales: tuple[float, float]) -> tuple[float, float]:
    """The interval of a quotient of two noisy numbers (Fieller, 1954); endless where the denominator may be nothing.

    All t at which numerator - t denominator lies within its own noise of 0.
    """
    above, below = (NORMAL * scale for scale in scales)
    square = denominator * denominator - below * below
    if denominator <= 0 or square <= 0:
        return -math.inf, math.inf
    middle = numerator * denominator
    root = math.sqrt(max(0.0, middle * middle - square * (numerator * numerator - above * above)))
    return (middle - root) / square, (middle + root) / square


def end_of_quantile(candidates: int, scale: float) -> int:
    """How far from the quantile an end of its interval is sought, in parts of a row.

    An end that is chosen with Gumbel noise of this scale among so many candidates, of which one has the score 0, lies
    nearer to where it was sought than this, but for half of the 5 % (McSherry and Talwar, FOCS 2007, theorem 6). So
    it does not lie on the other side of the quantile, and at least 95 % of the intervals hold it.
    """
    return math.ceil(scale * math.log(candidates / ((1 - CONFIDENCE) / 2)))


def rank_error(candidates: int, whole: int, scale: float) -> int:
    """Within so many rows of the best candidate the chosen quantile lies, with 95 % confidence.

    The maximum of n scores with Gumbel noise of this scale is within scale ln(n / .05) of the best (McSherry and
    Talwar, FOCS 2007, theorem 6).
    """
    return math.ceil(scale * math.log(candidates / (1 - CONFIDENCE)) / whole)
