"""(alpha,k)-anonymity: at least k people in a class, and no value of a sensitive column has a share above alpha.

R. C.-W. Wong, J. Li, A. W.-C. Fu, K. Wang: (alpha, k)-anonymity: an enhanced k-anonymity model for privacy preserving
data publishing, KDD 2006; here with alpha for every value of the column.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import number_of
from anon_pipeline.privacy.exact import as_written, compare
from anon_pipeline.privacy.missing import as_the_most_frequent
from anon_pipeline.privacy.sensitive import SensitiveModel
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram
from anon_pipeline.privacy.value_counts import ValueCounts


class AlphaKAnonymity(SensitiveModel):
    """max q_s <= alpha and f_j >= k. The measured value is max q_s, the chance of the best guess within the class.

    A missing value counts as one more bearer of the most frequent value.

    Monotone: a share in a merged class is a weighted mean of the two shares, and sizes add.
    """

    name: ClassVar[str] = "alpha_k_anonymity"
    larger_is_safer: ClassVar[bool] = False
    alpha: float = Field(gt=0, le=1)
    k: int = Field(ge=2)

    def histograms(self, histogram: Histogram) -> tuple[Histogram, ...]:
        return (as_the_most_frequent(histogram),)

    def counts(self, classes: ClassStatistics) -> ValueCounts:
        return ValueCounts.within(self.histogram(classes))

    def values_in(self, classes: ClassStatistics) -> FloatArray:
        return top_share(self.counts(classes))

    def holds_in(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        counts = self.counts(classes)
        return (compare(counts.top, as_written(self.alpha), counts.sizes) <= 0) & (classes.sizes >= self.k)

    def demand(self) -> str:
        return (
            f"every class has at least {self.k} people and no value of {self.column} "
            f"has a share above {100 * self.alpha:g} % in it"
        )

    def shortfall(self, everybody: ClassStatistics) -> str:
        if everybody.n < self.k:
            return f"the table has {number_of(everybody.n, 'person', 'people')}, fewer than k = {self.k}"
        share = float(self.values(everybody)[0])
        return f"the most frequent value of {self.column} has a share of {share:.6g} in the whole table"


def top_share(counts: ValueCounts) -> FloatArray:
    """max q_s of each class."""
    share: FloatArray = counts.top / np.maximum(counts.sizes, 1)
    return share
