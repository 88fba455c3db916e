"""What the privacy models on one sensitive column share: its histogram, and the test with everybody together."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from scipy import sparse

from anon_pipeline.errors import InputError
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram
from anon_pipeline.privacy.value_counts import ValueCounts


class SensitiveModel(PrivacyModel):
    """A demand on the distribution of one sensitive column within every class."""

    column: str = Field(min_length=1)

    def histogram(self, classes: ClassStatistics) -> Histogram:
        """The histogram of the column."""
        try:
            return classes.sensitive[self.column]
        except KeyError:
            raise InputError(
                f"privacy.{self.name}.column: {self.column!r} has not been counted; name a sensitive column"
            ) from None

    def counts(self, classes: ClassStatistics) -> ValueCounts:
        """The counts of the column's values, beside the table's."""
        return ValueCounts.compared(self.histogram(classes))

    def impossible(self, classes: ClassStatistics) -> str | None:
        """Every grouping can be merged into one class, and merging keeps a monotone demand: so that class must hold."""
        one = self.histogram(classes)
        # Not a merge of the classes: they may be hypothetical ones that are no partition of the table.
        total = one.total
        table = Histogram(one.values, sparse.csr_array(total[np.newaxis, :]), one.ordered)
        everybody = ClassStatistics(total.sum(keepdims=True), {self.column: table})
        if self.holds(everybody).all():
            return None
        return f"{self.shortfall(everybody)}, so no grouping can meet the demand that {self.demand()}"

    def shortfall(self, everybody: ClassStatistics) -> str:
        """What is amiss in the single class of the whole table, which does not hold.

        Models that compare a class with the table need no word of their own: the table is never far from itself.
        """
        return f"{self.column} falls short in the whole table of {everybody.n} people"
