"""The class table as numbers: sizes and histograms, which are all that a privacy model uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.arrays import BoolArray, IntArray


def histogram(group: IntArray, code: IntArray, count: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    """Count people by group and code.

    Parameters
    ----------
    group, code, count : integer arrays of shape (n,)
        `count[i]` people are in group `group[i]` and have the code `code[i]`.
    shape : (groups, codes)

    Returns
    -------
    sparse array of shape (groups, codes), int64, indices sorted within a row, no stored zeros.
    """
    counted = sparse.coo_array((count.astype(np.int64), (group, code)), shape=shape).tocsr()
    counted.sum_duplicates()
    counted.eliminate_zeros()
    return counted


@dataclass(frozen=True)
class Histogram:
    """How often each value of one sensitive column occurs in each class.

    Attributes
    ----------
    values : the m distinct values of the table in their natural order (numbers and dates ascending, texts by code
        point); a missing value is counted like a value and stands first, as None
    counts : sparse int64 array of shape (J, m)
    ordered : whether the values are numbers or dates, so that distances along their order have a meaning
    table : counts over the whole table, shape (m,), where the J classes are not a partition of it
    missing_is_a_value : whether a missing value is an answer of its own; otherwise see `anon_pipeline.privacy.missing`
    categorical : whether the spec declares categories, whatever stands for them: codes of occupations are numbers
    """

    values: tuple[object, ...]
    counts: sparse.csr_array
    ordered: bool
    table: IntArray | None = None
    missing_is_a_value: bool = False
    categorical: bool = False

    @cached_property
    def total(self) -> IntArray:
        """Counts over the whole table, shape (m,)."""
        if self.table is not None:
            return self.table
        return np.asarray(self.counts.sum(axis=0)).ravel().astype(np.int64)


@dataclass(frozen=True)
class ClassStatistics:
    """All that the privacy models need to know about J equivalence classes.

    Attributes
    ----------
    sizes : int64 array of shape (J,), the f_j
    sensitive : histogram per sensitive column
    population : int64 array of shape (J,), the F_j, where a population is known
    population_unmatched : people of the population who are in no class, where a population is known
    """

    sizes: IntArray
    sensitive: Mapping[str, Histogram] = field(default_factory=dict)
    population: IntArray | None = None
    population_unmatched: int | None = None

    @property
    def n(self) -> int:
        """People in the table."""
        return int(self.sizes.sum())

    def merge(self, group: IntArray, groups: int) -> ClassStatistics:
        """The statistics after class j has become part of group `group[j]`; `groups` is their number."""
        ones = np.ones(len(group), dtype=np.int64)
        return self.pool(sparse.csr_array((ones, (group, np.arange(len(group)))), shape=(groups, len(group))))

    def pool(self, chosen: sparse.csr_array) -> ClassStatistics:
        """Hypothetical classes, each the union of some of these, compared with the same table.

        Parameters
        ----------
        chosen : 0-1 matrix of shape (classes, J); a class may stand in several unions or in none
        """
        return ClassStatistics(
            sizes=np.asarray(chosen @ self.sizes),
            sensitive={
                column: replace(of_column, counts=chosen @ of_column.counts, table=of_column.total)
                for column, of_column in self.sensitive.items()
            },
            population=None if self.population is None else np.asarray(chosen @ self.population),
            population_unmatched=self.population_unmatched,
        )

    def without(self, left_out: npt.NDArray[np.bool_]) -> ClassStatistics:
        """The same classes, compared with the table without those `left_out`, a mask of shape (J,)."""
        kept = np.flatnonzero(~left_out)
        return ClassStatistics(
            sizes=self.sizes,
            sensitive={
                column: replace(
                    of_column, table=np.asarray(of_column.counts[kept].sum(axis=0)).ravel().astype(np.int64)
                )
                for column, of_column in self.sensitive.items()
            },
            population=self.population,
            population_unmatched=None
            if self.population is None
            else (self.population_unmatched or 0) + int(self.population[left_out].sum()),
        )

    def some(self, kept: IntArray) -> ClassStatistics:
        """A few of the classes, by position, compared with the same table."""
        return self.pool(sparse.csr_array(sparse.eye_array(len(self.sizes), dtype=np.int64, format="csr")[kept]))


#: Whether each class meets every demand, shape (J,), by the statistics of the classes.
Holds = Callable[[ClassStatistics], BoolArray]
