"""l-diversity: every class has l well-represented values of a sensitive column.

A. Machanavajjhala, D. Kifer, J. Gehrke, M. Venkitasubramaniam: l-diversity: privacy beyond k-anonymity, ACM TKDD 1(1),
2007. A missing value is no diversity: it counts as one more bearer of the most frequent value of its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from scipy import sparse

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.exact import DIGITS, ROUNDING_MARGIN, as_written, compare, logarithm
from anon_pipeline.privacy.missing import as_the_most_frequent
from anon_pipeline.privacy.sensitive import SensitiveModel
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram
from anon_pipeline.privacy.value_counts import ValueCounts


class LDiversity(SensitiveModel):
    """At least l well-represented values in every class, in one of three senses.

    `distinct`: l different values. `entropy`: exp(H) >= l, where H is the entropy of the class; l may be any real
    number above 1. `recursive`: with counts r_1 >= r_2 >= ..., r_1 < c (r_l + ... + r_m), strictly.

    With `bins`, the edges e_1 < e_2 < ..., numbers or dates are first put into the intervals below e_1, from e_1 to
    below e_2, and so on; missing is no bin. Different numbers that are nearly equal protect nobody.

    All three are monotone. The values of a merged class are the union, and entropy is concave. For the recursive kind
    the largest sum of l-1 counts is subadditive, so r_l + ... + r_m of the merged class is at least the sum of both,
    while its r_1 is at most the sum of both; the ratio of two sums is at most the larger of the ratios. Missing values
    change none of this: with them on the most frequent value, the largest j counts of a merged class are still at most
    the sum of those of its parts.
    """

    name: ClassVar[str] = "l_diversity"
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    l: int | float = Field(gt=1, le=2**31)  # noqa: E741 - the literature's name, and the spec's
    c: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    bins: tuple[float, ...] | tuple[date, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> LDiversity:
        if self.kind != "entropy" and self.l != int(self.l):
            raise ValueError(f"l: must be a whole number for the kind {self.kind}; only entropy takes a fraction")
        if self.kind == "recursive" and self.c is None:
            raise ValueError("c: is missing; the kind recursive demands r_1 < c (r_l + ... + r_m)")
        if self.kind != "recursive" and self.c is not None:
            raise ValueError(f"c: has no meaning for the kind {self.kind}; remove it, or ask for recursive")
        edges: Sequence[Any] = self.bins or ()
        if not all(low < high for low, high in pairwise(edges)):
            raise ValueError("bins: the edges must be finite and ascend, none twice")
        return self

    @property
    def larger_is_safer(self) -> bool:  # type: ignore[override] # the smallest c that holds is a danger, not a safety
        """Many values are safe; for the recursive kind a small c is."""
        return self.kind != "recursive"

    def histograms(self, histogram: Histogram) -> tuple[Histogram, ...]:
        return (as_the_most_frequent(histogram if self.bins is None else self._binned(histogram, self.bins)),)

    def counts(self, classes: ClassStatistics) -> ValueCounts:
        return ValueCounts.within(self.histogram(classes))

    def values_in(self, classes: ClassStatistics) -> FloatArray:
        counts = self.counts(classes)
        if self.kind == "distinct":
            return counts.distinct.astype(float)
        return entropy_l(counts) if self.kind == "entropy" else recursive_c(counts, int(self.l))

    def holds_in(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        counts = self.counts(classes)
        if self.kind == "distinct":
            return counts.distinct >= self.l
        if self.c is not None:  # given for the recursive kind, and for no other
            return compare(counts.top, as_written(self.c), _tail(counts, int(self.l))) < 0
        return _entropy_at_least(counts, as_written(self.l))

    def demand(self) -> str:
        of = f"{self.column} in bins" if self.bins else self.column
        if self.kind == "distinct":
            return f"every class has at least {self.l:g} distinct values of {of}"
        if self.kind == "entropy":
            return f"the exponential of the entropy of {of} is at least {self.l:g} in every class"
        return (
            f"in every class the most frequent value of {of} has fewer people than {self.c:g} times all values "
            f"from the {self.l:g}. most frequent on"
        )

    def shortfall(self, everybody: ClassStatistics) -> str:
        if self.kind == "entropy":
            value = float(self.values(everybody)[0])
            return f"the exponential of the entropy of {self.column} is {value:.6g} in the whole table"
        distinct = int(self.counts(self.readings(everybody)[0]).distinct[0])
        if distinct < self.l:
            of = "bins" if self.bins else "distinct values"
            return f"{self.column} has {distinct} {of} in the whole table"
        return f"{self.column} needs c above {float(self.values(everybody)[0]):.6g} even in the whole table"

    def _binned(self, histogram: Histogram, bins: Sequence[float] | Sequence[date]) -> Histogram:
        """The counts per bin, len(bins) + 2 of them; the first is the missing value's."""
        present = np.array([value is not None for value in histogram.values], dtype=bool)
        known = [value for value in histogram.values if value is not None]
        dates = isinstance(bins[0], date)
        kind: Any = "datetime64[us]" if dates else float
        try:
            # numpy would read a number as microseconds since 1970
            if not histogram.ordered or any(isinstance(value, date | np.datetime64) != dates for value in known):
                raise ValueError
            place = np.searchsorted(np.array(bins, dtype=kind), np.array(known, dtype=kind), side="right")
        except (TypeError, ValueError):
            raise InputError(
                f"privacy.{self.name}.bins: the edges cannot be compared with {self.column!r}; bins are for columns of "
                "numbers (edges are numbers) or of dates (edges are dates)"
            ) from None
        code = np.zeros(len(present), dtype=np.int64)
        code[present] = place + 1
        membership = sparse.csr_array(
            (np.ones(len(code), dtype=np.int64), (np.arange(len(code)), code)), shape=(len(code), len(bins) + 2)
        )
        return replace(
            histogram,
            values=(None, *range(1, len(bins) + 2)),
            counts=sparse.csr_array(histogram.counts @ membership),
            table=np.asarray(histogram.total @ membership),
        )


def entropy_l(counts: ValueCounts) -> FloatArray:
    """exp(H) of each class: the number of equally frequent values that would be as diverse. Never floored."""
    sizes = np.maximum(counts.sizes, 1).astype(float)
    entry = counts.entry.astype(float)
    entropy = np.log(sizes) - counts.row_sum(entry * np.log(entry)) / sizes
    # H = ln f - (sum of c ln c) / f cancels for even classes; there the answer is known to be a whole number.
    return np.where(_even(counts), counts.distinct.astype(float), np.exp(entropy))


def recursive_c(counts: ValueCounts, l: int) -> FloatArray:  # noqa: E741
    """r_1 / (r_l + ... + r_m): recursive (c,l)-diversity holds for every c above it. Infinite below l values."""
    tail = _tail(counts, l)
    return np.where(tail > 0, counts.top / np.maximum(tail, 1), np.inf)


def _even(counts: ValueCounts) -> npt.NDArray[np.bool_]:
    """Whether all values of a class are equally frequent."""
    even: npt.NDArray[np.bool_] = counts.top * counts.distinct == counts.sizes
    return even


def _tail(counts: ValueCounts, l: int) -> IntArray:  # noqa: E741
    """r_l + ... + r_m of each class."""
    descending = counts.entry[np.lexsort((-counts.entry, counts.row))]
    rank = np.arange(len(descending)) - np.repeat(counts.counts.indptr[:-1], counts.distinct)
    return counts.row_sum(np.where(rank >= l - 1, descending, 0))


def _entropy_at_least(counts: ValueCounts, l: Fraction) -> npt.NDArray[np.bool_]:  # noqa: E741
    """Whether exp(H) >= l. Even classes are compared as integers, classes near the limit with `DIGITS` digits."""
    measured = entropy_l(counts)
    holds = measured >= float(l)
    even = _even(counts)
    holds[even] = compare(counts.distinct[even], l, np.ones(int(even.sum()), dtype=np.int64)) >= 0
    bounds = counts.counts.indptr
    for j in np.flatnonzero(~even & (np.abs(measured - float(l)) <= ROUNDING_MARGIN * float(l))):
        row = sorted(counts.entry[bounds[j] : bounds[j + 1]].tolist())
        holds[j] = _reaches_entropy(tuple(row), l)
    return holds


@lru_cache(maxsize=1 << 12)  # many classes are near a limit only where they have the same counts
def _reaches_entropy(row: tuple[int, ...], l: Fraction) -> bool:  # noqa: E741
    """Whether f (H - ln l) >= 0 but for rounding: uneven counts can meet a whole l exactly, as (4, 1, 1, 1, 1) do 4."""
    size = sum(row)
    with localcontext(prec=DIGITS):
        excess = size * (logarithm(size) - logarithm(l.numerator, l.denominator))
        excess -= sum((count * logarithm(count) for count in row), Decimal(0))
        return excess > -(Decimal(10) ** -40)
