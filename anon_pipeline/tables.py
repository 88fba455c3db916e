"""The small tables from which a release is made: the values of a column (Domain) and the distinct people (Cells).

Both are independent of the engine that counted them and of its order of counting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import IntArray
from anon_pipeline.spec import ColumnType

#: The added column with the cohort of each person: people who were in the same class of every former release.
HISTORY = "#history"

#: The first and the last microsecond of the years 1 to 9999, from 1970 on. Few libraries can hold other dates.
FIRST_MOMENT = int(np.datetime64("0001-01-01", "us").astype(np.int64))
LAST_MOMENT = int(np.datetime64("9999-12-31T23:59:59.999999", "us").astype(np.int64))

#: Guidance is summed in integers of this unit: sums then do not depend on row order, thread or engine, and a
#: difference in the last bits of a prediction (summation order inside a forest) is rounded away. 100 million people
#: at a guidance of 1,000 standard deviations still fit into 64 bits.
GUIDANCE_UNIT = 2.0**-24

#: Fewer people than this at an end of a column, far from all others, are lone extremes.
FEWEST_AT_AN_END = 3
#: A column in which fewer people have another value than the most common one is nearly constant.
FEWEST_APART = 10


def nearly_constant(apart: float, people: float) -> bool:
    """Whether fewer than ten people, or of few a tenth, have another value than the most common one.

    Parameters
    ----------
    apart : the people who have another value
    people : the people whose values count
    """
    return apart < min(FEWEST_APART, people / 10)


@dataclass(frozen=True, eq=False)
class Nodes:
    """The hierarchy of the m values of a column: the nodes above each value, up to the node of all values.

    Attributes
    ----------
    node : the node of each value, level by level upwards, int64 of shape (m, h); nodes are numbered per level, in
        the order of ranges, and each is within one node of the next level
    labels : the names of each level's nodes; two nodes of a level may have the same name
    strict : whether people may be split only between nodes that are directly below the same node
    named : levels up to this one have names; wider sets of values are shown as a range of nodes of this level
    """

    node: IntArray
    labels: tuple[tuple[str, ...], ...]
    strict: bool
    named: int

    @property
    def height(self) -> int:
        """Number of levels above the values, h."""
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of one column in their natural order.

    Attributes
    ----------
    name : the column
    type : how its values are compared
    values : the m distinct values, ascending; int64 or float64 where ordered (dates: days or microseconds since
        1970), str otherwise (by code point). Code 0 means missing, code i > 0 means `values[i - 1]`
    counts : people per code, int64 of shape (m + 1,)
    storage : the engine's name of the column's type in the source, so that a release can restore it
    lows, highs : if several values share a code (an ordered column coarsened into bins), the smallest and largest
        value of each code; `values` then holds the medians of the bins. Absent if every value has its own code
    levels : for categories with an order, the position of each value in it, from 0, int64 of shape (m,)
    nodes : the hierarchy of the values, if there is one
    """

    name: str
    type: ColumnType
    values: npt.NDArray[np.generic]
    counts: IntArray
    storage: str = ""
    lows: npt.NDArray[np.generic] | None = None
    highs: npt.NDArray[np.generic] | None = None
    levels: IntArray | None = None
    nodes: Nodes | None = None

    @property
    def low(self) -> npt.NDArray[np.generic]:
        """The smallest value of each code except 0, shape (m,)."""
        return self.values if self.lows is None else self.lows

    @property
    def high(self) -> npt.NDArray[np.generic]:
        """The largest value of each code except 0, shape (m,)."""
        return self.values if self.highs is None else self.highs

    @property
    def binned(self) -> bool:
        """Whether several values share a code."""
        return self.lows is not None

    @property
    def ordered(self) -> bool:
        return self.type is not ColumnType.CATEGORICAL

    @property
    def positions(self) -> npt.NDArray[np.generic] | None:
        """The positions of the values on a line, shape (m,); None for categories without an order."""
        return self.values if self.ordered else self.levels

    @cached_property
    def without_extremes(self) -> Domain:
        """The column with lone extremes moved in: a number far from all others would decide mean and variance alone.

        Three people lie at or below one number, and three at or above another. A number outside of these two counts as
        no farther from them than they are from each other. Where both are the same number, none is moved.
        """
        if not self.ordered or len(self) < 3:
            return self
        people = self.counts[1:]
        place = min(FEWEST_AT_AN_END, (int(people.sum()) + 1) // 2)
        low = self.values[np.searchsorted(np.cumsum(people), place)].item()
        high = self.values[::-1][np.searchsorted(np.cumsum(people[::-1]), place)].item()
        first, last = max(self.values[0].item(), 2 * low - high), min(self.values[-1].item(), 2 * high - low)
        if low >= high or (first, last) == (self.values[0], self.values[-1]):
            return self
        return replace(self, values=np.clip(self.values, first, last))

    @property
    def apart(self) -> int:
        """The people who have another value than the most common one; a missing value counts for categories only."""
        people = self.counts if self.positions is None else self.counts[1:]
        return int(people.sum() - people.max(initial=0))

    @property
    def nearly_constant(self) -> bool:
        """Whether hardly anybody has another value than the most common one."""
        return nearly_constant(self.apart, int(self.counts.sum()))

    def readable(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Values of this column for people: dates as dates, all other values unchanged."""
        if self.type is not ColumnType.DATE:
            return values
        return values.astype(np.int64).astype("datetime64[D]" if self.storage == "DATE" else "datetime64[us]")

    def __len__(self) -> int:
        """Number of codes, including the one for missing values."""
        return len(self.values) + 1


@dataclass(frozen=True, eq=False)
class Cells:
    """One row per distinct quasi-identifier tuple, in ascending order of its codes.

    Attributes
    ----------
    domains : the p quasi-identifiers
    codes : int32 of shape (C, p)
    counts : people per cell, int64 of shape (C,)
    guidance : summed guidance per cell in units of `GUIDANCE_UNIT`, int64 of shape (C, g)
    """

    domains: tuple[Domain, ...]
    codes: npt.NDArray[np.int32]
    counts: IntArray
    guidance: IntArray

    @property
    def n(self) -> int:
        """People in the table."""
        return int(self.counts.sum())

    def mean_guidance(self) -> npt.NDArray[np.float64]:
        """Mean guidance per cell, shape (C, g)."""
        return self.guidance * GUIDANCE_UNIT / self.counts[:, None]

    def of_columns(self, places: Sequence[int]) -> Cells:
        """The same cells with some of the columns only, of which several can have the same codes."""
        domains = tuple(self.domains[place] for place in places)
        return replace(self, domains=domains, codes=self.codes[:, list(places)])

    def part(self, members: slice | IntArray) -> Cells:
        """Some of the cells, by their positions."""
        if not isinstance(members, slice):
            codes = self.codes.take(members, axis=0)  # a quarter of the time of an index
            return replace(self, codes=codes, counts=self.counts[members], guidance=self.guidance[members])
        return replace(self, codes=self.codes[members], counts=self.counts[members], guidance=self.guidance[members])


def fixed_point(guidance: npt.NDArray[np.float64]) -> IntArray:
    """Guidance in units of `GUIDANCE_UNIT`, rounded half to even, same shape."""
    return np.rint(guidance / GUIDANCE_UNIT).astype(np.int64)


def scale_of(guidance: npt.NDArray[np.float64]) -> float:
    """A power of two that scales guidance to at most 1 in size, so that its unit of measure has no effect.

    Division by a power of two is exact. Guidance within [-1, 1], such as probabilities, is not changed unless all of
    it is tiny.
    """
    largest = float(np.abs(guidance).max()) if guidance.size else 0.0
    return 1.0 if largest == 0 or 2.0**-8 <= largest <= 1 else float(2.0 ** np.ceil(np.log2(largest)))
