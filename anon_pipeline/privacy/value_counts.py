"""Arithmetic on the rows of a sparse histogram. The privacy models say what the numbers mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.statistics import Histogram


@dataclass(frozen=True)
class ValueCounts:
    """Counts of m values in J classes, and in the table they are compared with.

    Every array that has "entry" in its description runs along the stored, non-zero counts, class by class.

    Attributes
    ----------
    counts : sparse int64 array of shape (J, m), indices sorted within a row, no stored zeros
    total : int64 array of shape (m,), the counts in T
    foreign : mask of shape (J,), the classes with a value that nobody in T has. Only hypothetical classes have one (see
        `ClassStatistics.without`). They cannot be compared with T, and their shares are meaningless.
    """

    counts: sparse.csr_array
    total: IntArray
    foreign: npt.NDArray[np.bool_]

    @classmethod
    def within(cls, histogram: Histogram) -> ValueCounts:
        """The counts for measures of the classes alone, without the table."""
        counts = histogram.counts
        if not isinstance(counts, sparse.csr_array) or counts.dtype != np.int64:
            counts = sparse.csr_array(counts, dtype=np.int64)
        if not counts.has_canonical_format or not counts.data.all():  # a product of sparse arrays has unsorted rows
            counts = counts.copy()
            counts.sum_duplicates()
            counts.eliminate_zeros()
        return cls(counts, histogram.total, np.zeros(counts.shape[0], dtype=bool))

    @classmethod
    def compared(cls, histogram: Histogram) -> ValueCounts:
        """The counts for comparing the classes with the table: only of the values that somebody in T has."""
        every = cls.within(histogram)
        known = every.total > 0
        if known.all():
            return every
        counts = every.counts[:, known]
        return cls(counts, every.total[known], np.diff(counts.indptr) < every.distinct)

    @property
    def n(self) -> int:
        """People in the table."""
        return int(self.total.sum())

    @property
    def m(self) -> int:
        """Distinct values in the table."""
        return len(self.total)

    @cached_property
    def sizes(self) -> IntArray:
        """People in each class, shape (J,)."""
        return self.row_sum(self.entry)

    @cached_property
    def distinct(self) -> IntArray:
        """Distinct values in each class, shape (J,)."""
        bounds: IntArray = np.asarray(self.counts.indptr, dtype=np.int64)
        return bounds[1:] - bounds[:-1]

    @cached_property
    def top(self) -> IntArray:
        """The count of the most frequent value in each class, shape (J,)."""
        return self.row_max(self.entry)

    @property
    def entry(self) -> IntArray:
        """Count of each entry."""
        entry: IntArray = self.counts.data
        return entry

    @cached_property
    def row(self) -> IntArray:
        """Class of each entry."""
        return np.repeat(np.arange(self.counts.shape[0], dtype=np.int64), self.distinct)

    @cached_property
    def column(self) -> IntArray:
        """Value of each entry, as its position in `total`."""
        return np.asarray(self.counts.indices, dtype=np.int64)

    def row_sum(self, entries: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum of `entries` within each class, in their own type: integers stay exact."""
        return self._reduce(np.add, entries)

    def row_max(self, entries: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Largest of `entries` within each class."""
        return self._reduce(np.maximum, entries)

    def rows(self, chosen: npt.NDArray[Any]) -> ValueCounts:
        """Some of the classes, compared with the same table."""
        return ValueCounts(self.counts[chosen], self.total, self.foreign[chosen])

    def _reduce(self, operation: np.ufunc, entries: npt.NDArray[Any]) -> npt.NDArray[Any]:
        result = np.zeros(self.counts.shape[0], dtype=entries.dtype)
        filled = self.distinct > 0  # reduceat takes the next row's first entry for an empty row
        if filled.any():
            result[filled] = operation.reduceat(entries, self.counts.indptr[:-1][filled])
        return result
