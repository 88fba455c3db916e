"""The base of privacy models on one sensitive column: its histogram, and the check of the whole table as one class."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy import sparse

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.missing import with_and_without
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram
from anon_pipeline.privacy.value_counts import ValueCounts


class SensitiveModel(PrivacyModel):
    """A demand on the distribution of one sensitive column within every class, whatever its missing values stand for.

    A subclass says how a class is measured and judged in one reading of them (`values_in`, `holds_in`); a class holds
    where it does in every reading.
    """

    column: str = Field(min_length=1)

    @property
    def sensitive_column(self) -> str:
        return self.column

    @abstractmethod
    def values_in(self, classes: ClassStatistics) -> FloatArray:
        """The measured quantity in each class, shape (J,), in one reading of the missing values."""

    @abstractmethod
    def holds_in(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        """Whether each class meets the demand, shape (J,), in one reading of the missing values."""

    def histograms(self, histogram: Histogram) -> tuple[Histogram, ...]:
        """The readings of the column; by default those for a demand that compares a class with the table."""
        return with_and_without(histogram)

    def readings(self, classes: ClassStatistics) -> tuple[ClassStatistics, ...]:
        """The classes in every reading of the column's missing values."""
        histograms = self.histograms(self.histogram(classes))
        return tuple(
            replace(classes, sensitive={**classes.sensitive, self.column: histogram}) for histogram in histograms
        )

    def values(self, classes: ClassStatistics) -> FloatArray:
        worst = np.minimum if self.larger_is_safer else np.maximum
        measured: FloatArray = worst.reduce([self.values_in(reading) for reading in self.readings(classes)])
        return measured

    def holds(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        holds: npt.NDArray[np.bool_] = np.logical_and.reduce(
            [self.holds_in(reading) for reading in self.readings(classes)]
        )
        return holds

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
        """The reason why the whole table fails as a single class; None if it holds.

        Every grouping can be merged into a single class, and merging keeps a monotone demand. So if the single class
        fails, every grouping fails.
        """
        histogram = self.histogram(classes)
        # The classes are not merged: they may be hypothetical and no partition of the table.
        total = histogram.total
        table = replace(histogram, counts=sparse.csr_array(total[np.newaxis, :]), table=None)
        everybody = ClassStatistics(total.sum(keepdims=True), {self.column: table})
        if self.holds(everybody).all():
            return None
        return f"{self.shortfall(everybody)}, so no grouping can meet the demand that {self.demand()}"

    def shortfall(self, everybody: ClassStatistics) -> str:
        """What is wrong with the single class of the whole table, which does not hold.

        Models that compare a class with the table need no message of their own, since the table never differs from
        itself.
        """
        return f"{self.column} falls short in the whole table of {everybody.n} people"
