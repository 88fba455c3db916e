"""How far a number is from one that a release shows, where a shown number stands for others near to it."""

from __future__ import annotations

import numpy as np

from anon_pipeline.arrays import FloatArray


def apart(value: FloatArray, representative: FloatArray, known: FloatArray) -> FloatArray:
    """The distance of each value from each representative in two standard deviations; 1 at most, and where one lacks.

    Beyond the third numbers from both ends, others count as no farther out than these two are apart. Else a lone
    extreme would take the deviation, all others would be near to each other, and the column would tell nobody apart.

    Parameters
    ----------
    value, representative : numbers, NaN or infinite where there is none; of shapes that can be combined
    known : the distinct numbers of people, ascending
    """
    first, last = _ends(known)
    spread = (2 * float(np.std(np.clip(known, first, last))) if len(known) else 0.0) or 1.0
    exists = np.isfinite(value) & np.isfinite(representative)
    with np.errstate(invalid="ignore"):
        distance = np.abs(np.clip(value, first, last) - np.clip(representative, first, last)) / spread
    least = np.where(value == representative, 0.0, np.finfo(np.float64).tiny)  # two far out are not equal either
    distances: FloatArray = np.where(exists, np.minimum(np.maximum(distance, least), 1.0), 1.0)
    return distances


def _ends(known: FloatArray) -> tuple[float, float]:
    """The ends beyond which a number counts as no farther out; there are none where the third numbers are equal."""
    if len(known) < 3:
        return -np.inf, np.inf
    low, high = float(known[2]), float(known[-3])
    return (2 * low - high, 2 * high - low) if low < high else (-np.inf, np.inf)
