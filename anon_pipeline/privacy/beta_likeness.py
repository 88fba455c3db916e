"""beta-likeness: no value of a sensitive column is much more frequent in a class than in the table.

J. Cao, P. Karras: Publishing microdata with a robust privacy guarantee, PVLDB 5(11), 2012. Unlike a distance over all
values together, the gain is bounded for each value relative to its own share, so rare values are protected too.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from anon_pipeline.arrays import FloatArray
from anon_pipeline.privacy.exact import DIGITS, ROUNDING_MARGIN, as_written, compare, logarithm
from anon_pipeline.privacy.sensitive import SensitiveModel
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.value_counts import ValueCounts


class BetaLikeness(SensitiveModel):
    """The gain (q_s - p_s) / p_s of every value with q_s > p_s is at most beta, or at most min(beta, -ln p_s).

    `basic` is the first, `enhanced` the second, which also limits values so frequent that beta would allow q_s = 1. The
    measured value is the smallest beta for which a class holds, 0 where no value is over-represented. For the enhanced
    kind it is infinite where a gain is above -ln p_s: then no beta whatever can hold on that class. Where values are
    missing the shares are also taken among the people who have one.

    Monotone: for each s the limit on q_s is a constant, and a share in a merged class is a mean of the two shares.
    """

    name: ClassVar[str] = "beta_likeness"
    larger_is_safer: ClassVar[bool] = False
    beta: float = Field(gt=0, allow_inf_nan=False)
    kind: Literal["basic", "enhanced"] = "basic"

    def values_in(self, classes: ClassStatistics) -> FloatArray:
        counts = self.counts(classes)
        gain = largest_gain(counts)
        return gain if self.kind == "basic" else np.where(below_logarithm(counts), gain, np.inf)

    def holds_in(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        counts = self.counts(classes)
        expected = counts.sizes[counts.row] * counts.total[counts.column]
        surplus = np.maximum(counts.entry * counts.n - expected, 0)
        exceeded = compare(surplus, as_written(self.beta), expected) > 0
        holds: npt.NDArray[np.bool_] = ~counts.row_max(exceeded) & ~counts.foreign
        return holds if self.kind == "basic" else holds & below_logarithm(counts)

    def demand(self) -> str:
        limit = f"{self.beta:g}" if self.kind == "basic" else f"min({self.beta:g}, -ln of its share in the table)"
        return f"no value of {self.column} gains more than {limit}, relative to its share in the table, in any class"


def largest_gain(counts: ValueCounts) -> FloatArray:
    """max over s of (q_s - p_s) / p_s in each class, 0 if no value is over-represented, infinite if foreign."""
    expected = counts.sizes[counts.row] * counts.total[counts.column]
    gain = counts.row_max(np.maximum((counts.entry * counts.n - expected) / expected, 0.0))
    return np.where(counts.foreign, np.inf, gain)


def below_logarithm(counts: ValueCounts) -> npt.NDArray[np.bool_]:
    """Whether every gain of a class is at most -ln p_s: whether some beta makes it hold in the enhanced sense."""
    n, total = counts.n, counts.total[counts.column]
    expected = counts.sizes[counts.row] * total
    surplus = counts.entry * n - expected
    gain, limit = surplus / expected, np.log(n / total)
    exceeded = (surplus > 0) & (gain > limit)
    # ln of a rational number other than 1 is irrational, so a gain never equals it, and enough digits always decide.
    for i in np.flatnonzero((surplus > 0) & (np.abs(gain - limit) <= ROUNDING_MARGIN * (1 + limit))):
        with localcontext(prec=DIGITS):
            exceeded[i] = Decimal(int(surplus[i])) / Decimal(int(expected[i])) > logarithm(n, int(total[i]))
    return ~counts.row_max(exceeded)
