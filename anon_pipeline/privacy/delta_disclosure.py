"""delta-disclosure privacy: every value of a sensitive column is about as frequent in a class as in the table.

J. Brickell, V. Shmatikov: The cost of privacy: destruction of data-mining utility in anonymized data publishing, KDD
2008, definition 2.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from anon_pipeline.arrays import FloatArray
from anon_pipeline.privacy.exact import ROUNDING_MARGIN, as_written, logarithm
from anon_pipeline.privacy.sensitive import SensitiveModel
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.value_counts import ValueCounts


class DeltaDisclosure(SensitiveModel):
    """|ln(q_s / p_s)| < delta, strictly, in every class.

    `strict`, the published model: for all values s of the table; where one is absent from a class, the logarithm is
    infinite and the class fails. `observed`: only for the values that occur in the class. That is what some software
    measures under the model's name; it says nothing about who is known *not* to have a value.

    The strict kind is monotone: every q_s must lie between p_s e^-delta and p_s e^delta, and the share in a merged
    class is a mean of the two. The observed kind is not. Let half the table have s, and delta = .7: a class of 8
    without s holds (ln 2 = .69 for the other value), a class of 2 with one s holds (0), their union has q_s = .1 and
    fails (1.6).
    """

    name: ClassVar[str] = "delta_disclosure"
    larger_is_safer: ClassVar[bool] = False
    delta: float = Field(gt=0, allow_inf_nan=False)
    kind: Literal["strict", "observed"] = "strict"

    @property
    def monotone(self) -> bool:  # type: ignore[override] # hangs on the kind
        """Whether merging keeps it: only the strict kind."""
        return self.kind == "strict"

    def values_in(self, classes: ClassStatistics) -> FloatArray:
        return largest_disclosure(self.counts(classes), observed_only=self.kind == "observed")

    def holds_in(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        counts = self.counts(classes)
        delta = as_written(self.delta)
        measured = _disclosure(counts)
        holds = measured < self.delta
        # e to a rational number other than 0 is irrational, so no ratio is ever at the limit, and digits decide.
        for i in np.flatnonzero(np.abs(measured - self.delta) <= ROUNDING_MARGIN * (1 + self.delta)):
            expected = int(counts.sizes[counts.row[i]]) * int(counts.total[counts.column[i]])
            exact = logarithm(int(counts.entry[i]) * counts.n, expected)
            holds[i] = abs(exact) * delta.denominator < delta.numerator
        within: npt.NDArray[np.bool_] = ~counts.row_max(~holds) & ~counts.foreign
        return within if self.kind == "observed" else within & (counts.distinct == counts.m)

    def demand(self) -> str:
        values = "value of the table" if self.kind == "strict" else "value observed in the class"
        return (
            f"for every {values}, the logarithm of the ratio of the share of {self.column} in the class "
            f"to that in the table lies strictly between -{self.delta:g} and {self.delta:g}"
        )


def largest_disclosure(counts: ValueCounts, *, observed_only: bool = False) -> FloatArray:
    """max over s of |ln(q_s / p_s)| in each class; infinite if a value is absent, unless only observed ones count."""
    largest = counts.row_max(_disclosure(counts))
    return np.where(((counts.distinct == counts.m) | observed_only) & ~counts.foreign, largest, np.inf)


def _disclosure(counts: ValueCounts) -> FloatArray:
    """|ln(q_s / p_s)| of each entry."""
    expected = counts.sizes[counts.row] * counts.total[counts.column]
    observed = counts.entry * counts.n
    excess = (observed - expected) / expected
    # Near a ratio of 1 the integer difference is exact although the ratio is rounded; far from it log1p gains nothing.
    disclosure: FloatArray = np.abs(np.where(np.abs(excess) < 0.5, np.log1p(excess), np.log(observed / expected)))
    return disclosure
