"""The column technique that shows the mean of at least k people of near rank in place of each value."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field
from typing_extensions import override

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.masking.base import ORDERED, Applied, Columns, ColumnTechnique, Context, Guarantee
from anon_pipeline.masking.numbers import from_floats, to_floats
from anon_pipeline.tables import scale_of

#: Above this many values the sorted column is cut into blocks; each is grouped optimally, all at the same time.
#: The shortest has room for several groups of any k.
BLOCK = 20_000
SHORTEST_BLOCK = 5_000


class Microaggregate(ColumnTechnique):
    """Values are sorted into groups of k to 2k - 1 people, and each shows its group's mean or median.

    `optimal`: the groups with the least sum of squared errors (S. Hansen, S. Mukherjee: A polynomial algorithm for
    optimal univariate microaggregation, IEEE TKDE 15(4), 2003), within blocks of at least 5,000 ranks where there are
    more than 20,000. `fixed`: k people to a group (D. Defays, P. Nanopoulos 1993). Where fewer than k people have a
    value, none is shown; where the median is one person's own, the mean of the middle three is. Who has no value is
    shown without one, also where fewer than k people have none.
    """

    technique: Literal["microaggregate"] = "microaggregate"
    k: int = Field(ge=2, le=1000, description="the smallest group")
    method: Literal["optimal", "fixed"] = Field(default="optimal", description="how the sorted values are cut")
    show: Literal["mean", "median"] = Field(default="mean", description="what a group shows")

    meaning: ClassVar[str] = "shows the mean of k or more people of near rank"
    guarantee: ClassVar[Guarantee] = "k"
    use_when: ClassVar[str] = "a single number must be shared by k people and keep its mean; the k holds in it alone"
    accepts: ClassVar = ORDERED

    @override
    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        values = to_floats(column)
        known = np.flatnonzero(~np.isnan(values))
        if len(known) < self.k:
            return Applied({name: pa.nulls(len(column), column.type)}, facts={"groups": 0, "rows_hidden": len(known)})
        ranked = known[np.argsort(values[known], kind="stable")]
        ordered = values[ranked]
        starts = optimal_starts(ordered, self.k) if self.method == "optimal" else fixed_starts(len(ordered), self.k)
        sizes = np.diff(np.r_[starts, len(ordered)])
        values[ranked] = np.repeat(centres(ordered, starts, self.show), sizes)
        return Applied(
            {name: from_floats(values, column.type)},
            facts={"groups": len(sizes), "smallest": int(sizes.min()), "largest": int(sizes.max())},
        )


def centres(ordered: FloatArray, starts: IntArray, show: Literal["mean", "median"]) -> FloatArray:
    """The mean or median of each group of ascending values, shape (groups,).

    A median that one person alone has would be that person's own number, so the mean of the middle three stands for it.
    """
    ends = np.r_[starts[1:], len(ordered)]
    if show == "median":
        medians: FloatArray = (ordered[(starts + ends - 1) // 2] + ordered[(starts + ends) // 2]) / 2
        odd = np.flatnonzero((ends - starts) % 2 & (ends - starts > 1))
        middle = (starts + ends)[odd] // 2
        below, own, above = ordered[middle - 1], ordered[middle], ordered[middle + 1]
        medians[odd] = np.where((below < own) & (own < above), own + ((below - own) + (above - own)) / 3, own)
        return medians
    # The smallest value is subtracted before adding up, so that the mean of equal values is exactly their value.
    low = ordered[starts]
    means: FloatArray = low + np.add.reduceat(ordered - np.repeat(low, ends - starts), starts) / (ends - starts)
    return means


def fixed_starts(n: int, k: int) -> IntArray:
    """The starts of groups of k among n sorted values; the values left over join the last group."""
    return np.arange(n // k, dtype=np.int64) * k


def optimal_starts(ordered: FloatArray, k: int) -> IntArray:
    """The starts of the groups with the least squared error among ascending values, shape (groups,); needs n >= k."""
    n = len(ordered)
    blocks = 1 if n <= BLOCK else n // SHORTEST_BLOCK
    firsts = np.arange(blocks + 1) * n // blocks
    lengths = np.diff(firsts)
    starts = []
    for length in np.unique(lengths):  # at most two lengths, which differ by one
        chosen = firsts[:-1][lengths == length]
        table = ordered[chosen[:, None] + np.arange(length)]
        starts += [first + start for first, start in zip(chosen, _shortest_paths(table, k), strict=True)]
    return np.sort(np.concatenate(starts))


def _shortest_paths(table: FloatArray, k: int) -> list[IntArray]:
    """As `optimal_starts`, for each row of a table of ascending values, shape (b, n), n >= k.

    One dynamic program serves all rows at the same time: cost[i] is the least error of the first i values, and from_[i]
    is the start of the last of their groups.
    """
    b, n = table.shape
    table = table / scale_of(table)
    scale = np.maximum(np.abs(table[:, [0]] - table[:, [-1]]), np.finfo(float).tiny)
    centred = (table - table.mean(axis=1, keepdims=True)) / scale  # so that sums of squares keep their digits
    sums = np.concatenate([np.zeros((b, 1)), np.cumsum(centred, axis=1)], axis=1)
    squares = np.concatenate([np.zeros((b, 1)), np.cumsum(centred**2, axis=1)], axis=1)
    cost = np.full((b, n + 1), np.inf)
    cost[:, 0] = 0
    from_ = np.zeros(cost.shape, dtype=np.int64)
    rows = np.arange(b)
    for i in range(k, n + 1):
        low = max(0, i - 2 * k + 1)
        j = np.arange(low, i - k + 1)
        error = squares[:, [i]] - squares[:, j] - (sums[:, [i]] - sums[:, j]) ** 2 / (i - j)
        total = cost[:, j] + np.maximum(error, 0)
        best = total.argmin(axis=1)
        cost[:, i], from_[:, i] = total[rows, best], j[best]
    paths = []
    for row in range(b):
        path, i = [], n
        while i:
            i = int(from_[row, i])
            path.append(i)
        paths.append(np.array(path[::-1], dtype=np.int64))
    return paths
