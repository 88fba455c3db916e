"""The values that each group of a released column may stand for (its box), and how unlikely a person is in each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.attack.generalized_values import numbers, texts
from anon_pipeline.attack.nearness import apart

CostArray = npt.NDArray[np.int32]

#: Costs are logarithms of likelihood ratios in thousandths, so that sums are exact and equal sums are equal.
UNIT = 1000

#: The cost of a cell that does not fit, if the attacker trusts every cell: cells that fit cannot outweigh it.
IMPOSSIBLE = 60.0

#: The cost of a value other than the one shown, where a shown value stands for others near to it.
UNLIKE = 6.0


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of people in a column, in ascending order; code 0 is a missing value, others follow."""

    name: str
    ordered: bool
    values: npt.NDArray[np.float64] | npt.NDArray[np.object_]
    shares: FloatArray

    @classmethod
    def learn(cls, name: str, ordered: bool, columns: Sequence[pd.Series]) -> Domain:
        """The values of some columns together, and the share of the first one's people who have each, by code.

        The first column is that of the people in the release. If people who are not in it had a part in the shares,
        and with them in what is found about the others, exact figures about the others would tell of them.
        """
        read = [numbers(column) if ordered else texts(column) for column in columns]
        codes, distinct = pd.factorize(np.concatenate(read), sort=True)
        counts = np.bincount(codes[: len(read[0])] + 1, minlength=len(distinct) + 1)
        values = np.asarray(distinct, dtype=np.float64 if ordered else object)
        return cls(name, ordered, values, counts / max(counts.sum(), 1))

    def encode(self, column: pd.Series) -> IntArray:
        """The code of each cell, -1 for a value that nobody has, shape (n,)."""
        if self.ordered:
            cells = numbers(column)
            if not len(self.values):
                return np.where(np.isnan(cells), 0, -1)
            place = np.minimum(np.searchsorted(self.values, cells), len(self.values) - 1)
            code = np.where(self.values[place] == cells, place + 1, -1)
            return np.where(np.isnan(cells), 0, code).astype(np.int64)
        codes, distinct = pd.factorize(pd.Series(texts(column)))
        index = {value: code for code, value in enumerate(self.values, 1)}
        known = np.array([*[index.get(value, -1) for value in distinct], 0], dtype=np.int64)
        return known[codes]

    def __len__(self) -> int:
        return len(self.values) + 1


@dataclass(frozen=True, eq=False)
class OrderedBoxes:
    """The values that the distinct boxes of an ordered column allow.

    Attributes
    ----------
    domain : the column's values among people
    low, high, missing : the numbers of each box, and whether it may hold a missing value, shape (B,)
    representative : the number that stands for each box, NaN for none, shape (B,)
    nearest : whether the column shows single values that others may be near to, instead of intervals
    """

    domain: Domain
    low: FloatArray
    high: FloatArray
    missing: npt.NDArray[np.bool_]
    representative: FloatArray
    nearest: bool

    def fits(self, codes: IntArray) -> npt.NDArray[np.bool_]:
        """Whether people of these codes may be in each box, shape (len(codes), B)."""
        value = self._values(codes)
        return np.where((codes == 0)[:, None], self.missing, (value >= self.low) & (value <= self.high))

    def costs(self, codes: IntArray, wrong: float) -> CostArray:
        """How much less likely these codes are in each box than in the likeliest box, shape (len(codes), B).

        Within a box people are taken to be distributed as in the whole table, except that half of them lie on either
        side of the number shown, since tools choose a median or mean.
        """
        if self.nearest:
            far = apart(self._values(codes), self.low, self.domain.values.astype(np.float64))
            far = np.where((codes == 0)[:, None] & self.missing, 0, far)
            return np.ceil(UNLIKE * UNIT * far).astype(np.int32)  # only an equal value costs nothing
        below, above = self._mass(self.low, self.representative), self._mass(self.representative, self.high)
        absent = np.where(self.missing, self.domain.shares[0], 0.0)
        whole = self._mass(self.low, self.high) + absent
        named = ~np.isnan(self.representative) & (below > 0) & (above > 0)
        left, right = np.where(named, 2 * below, whole), np.where(named, 2 * above, whole)
        value = self._values(codes)
        middle = np.where(named, np.minimum(left, right), whole)
        mass = np.where(value < self.representative, left, np.where(value > self.representative, right, middle))
        mass = np.where((codes == 0)[:, None], whole, mass)
        return _costs(self.fits(codes) / np.maximum(mass, 1e-12), wrong)

    def points(self) -> IntArray | None:
        """The code that each box shows, -1 for a value that nobody has; None unless all boxes are single values."""
        return self.domain.encode(pd.Series(np.where(self.missing, math.nan, self.low))) if self.nearest else None

    def widths(self) -> FloatArray:
        """The share of the people that each box would hold by this column alone, shape (B,)."""
        return self._mass(self.low, self.high) + np.where(self.missing, self.domain.shares[0], 0.0)

    def _values(self, codes: IntArray) -> FloatArray:
        values: FloatArray = np.r_[math.nan, self.domain.values.astype(np.float64)]
        return values[codes][:, None]

    def _mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The share of the people with a value from `low` to `high`."""
        reached = np.r_[0.0, np.cumsum(self.domain.shares[1:])]
        first = np.searchsorted(self.domain.values, low, "left")
        last = np.searchsorted(self.domain.values, high, "right")
        mass: FloatArray = np.maximum(reached[last] - reached[first], 0.0)
        return mass


@dataclass(frozen=True, eq=False)
class CategoryBoxes:
    """The values that the distinct boxes of a category allow.

    Attributes
    ----------
    domain : the column's values among people
    named : the codes that each box names, sparse, shape (B, m)
    others : whether each box may hold categories that it does not name, shape (B,)
    representative : the code that stands for each box, -1 for none, shape (B,)
    rest : the share of a box's people whose category it does not name
    nearest : whether the column shows single values that stand for others too, instead of sets
    """

    domain: Domain
    named: sparse.csc_array
    others: npt.NDArray[np.bool_]
    representative: IntArray
    rest: float
    nearest: bool

    def fits(self, codes: IntArray) -> npt.NDArray[np.bool_]:
        """Whether people of these codes may be in each box, shape (len(codes), B)."""
        return np.asarray(self.named[:, codes].toarray().T | self.others)

    def costs(self, codes: IntArray, wrong: float) -> CostArray:
        """How much less likely these codes are in each box than in the likeliest box, shape (len(codes), B).

        Over the named categories people are taken to be distributed as in the whole table, except that half of them
        have the category shown, which is the most common one. Few people have a category that is not named.
        """
        inside = self.named[:, codes].toarray().T
        if self.nearest:
            cost = np.where(inside, 0.0, np.where(self.others, UNLIKE / 2, UNLIKE))
            return (UNIT * cost).astype(np.int32)
        shares = self.domain.shares
        number = np.asarray(self.named.sum(axis=1)).ravel()
        mass = np.asarray(self.named @ shares).ravel()
        # Half of the people have a category that stands for several; all have a category that stands for itself.
        half = np.where(self.representative >= 0, 0.5, 0.0)
        ratio = (1 - half) * inside / np.maximum(mass, 1e-12)
        ratio += np.where(
            codes[:, None] == self.representative, half / np.maximum(shares[self.representative], 1e-12), 0.0
        )
        rest = np.where(number == 0, 1.0, self.rest)
        ratio = np.where(
            self.others, np.where(inside, (1 - rest) * ratio, rest / np.maximum(1 - mass, 1e-3)), ratio * inside
        )
        return _costs(ratio, wrong)

    def points(self) -> IntArray | None:
        """The code that each box shows, -1 for a value that nobody has; None unless all boxes are single values."""
        rows = self.named.tocsr()
        number = np.diff(rows.indptr)
        if self.others.any() or (number > 1).any():
            return None
        points = np.full(len(number), -1, dtype=np.int64)
        points[number == 1] = rows.indices
        return points

    def widths(self) -> FloatArray:
        """The share of the people that each box would hold by this column alone, shape (B,)."""
        return np.where(self.others, 1.0, np.asarray(self.named @ self.domain.shares).ravel())


def _costs(ratio: FloatArray, wrong: float) -> CostArray:
    """Costs from the ratio of a code's probability in each box to that in the whole table, shape (u, B).

    A cell that is wrong is a draw from the whole table, so its ratio is 1.
    """
    likely = np.log((1 - wrong) * ratio + max(wrong, math.exp(-IMPOSSIBLE)))
    costs: CostArray = np.rint(UNIT * (likely.max(axis=1, keepdims=True) - likely)).astype(np.int32)
    return costs


Boxes = OrderedBoxes | CategoryBoxes
