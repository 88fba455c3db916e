"""The small tables that carry a release: the values of a column (Domain) and the distinct people (Cells).

Both are independent of the engine that counted them and of the order in which it did so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import IntArray
from anon_pipeline.spec import ColumnType

#: A column of our own: the cohort of each person, who were in the same class of every former release.
HISTORY = "#history"

#: Guidance is summed in integers of this unit: sums then do not depend on row order, thread or engine, and a
#: difference in the last bits of a prediction (summation order inside a forest) is rounded away. 100 million people
#: at a guidance of 1,000 standard deviations still fit into 64 bits.
GUIDANCE_UNIT = 2.0**-24


@dataclass(frozen=True, eq=False)
class Nodes:
    """Where the m values of a column stand in a hierarchy: the nodes above each, up to the one that holds all.

    Attributes
    ----------
    node : the node of each value, level by level upwards, int64 of shape (m, h); nodes are numbered per level, in the
        order in which ranges name them, and each lies within one of the next level
    labels : the names of each level's nodes; two nodes of a level may have one name
    strict : whether people may be parted only between nodes that lie directly below one node
    named : levels up to this one have names; what is spread wider is shown as a range of nodes of this level
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
    type : how its values compare
    values : the m distinct values, ascending; int64 or float64 where ordered (dates: days or microseconds since
        1970), str otherwise (by code point). Code 0 means missing, code i > 0 means `values[i - 1]`
    counts : people per code, int64 of shape (m + 1,)
    storage : the type of the column in the source, as the engine names it, so that a release can restore it
    lows, highs : where several values share a code (an ordered column coarsened into bins), the smallest and largest
        value of each; `values` then holds the bins' medians. Absent where every value has a code of its own
    levels : where categories have an order: the place of each value in it, from 0, int64 of shape (m,)
    nodes : where the values have a hierarchy
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
        """The smallest value that each code but 0 stands for, shape (m,)."""
        return self.values if self.lows is None else self.lows

    @property
    def high(self) -> npt.NDArray[np.generic]:
        """The largest value that each code but 0 stands for, shape (m,)."""
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
        """Where the values stand on a line, shape (m,); None for categories without an order."""
        return self.values if self.ordered else self.levels

    def readable(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Values of this column as people read them: dates as dates, everything else as it is."""
        if self.type is not ColumnType.DATE:
            return values
        return values.astype(np.int64).astype("datetime64[D]" if self.storage == "DATE" else "datetime64[us]")

    def __len__(self) -> int:
        """Number of codes, the one for missing included."""
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


def fixed_point(guidance: npt.NDArray[np.float64]) -> IntArray:
    """Guidance in units of `GUIDANCE_UNIT`, rounded half to even, same shape."""
    return np.rint(guidance / GUIDANCE_UNIT).astype(np.int64)


def scale_of(guidance: npt.NDArray[np.float64]) -> float:
    """A power of two that brings guidance to at most 1 in size, so that its unit of measure decides nothing.

    Dividing by a power of two is exact; guidance within [-1, 1], as probabilities are, is left as it is unless all of
    it is tiny.
    """
    largest = float(np.abs(guidance).max()) if guidance.size else 0.0
    return 1.0 if largest == 0 or 2.0**-8 <= largest <= 1 else float(2.0 ** np.ceil(np.log2(largest)))
