"""The table technique that groups at least k people alike in several numbers and shows each group's mean."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from typing_extensions import override

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import number_of
from anon_pipeline.masking.base import ORDERED, Applied, Columns, Context, Guarantee, TableTechnique
from anon_pipeline.masking.microaggregation import centres
from anon_pipeline.masking.numbers import from_floats, to_floats
from anon_pipeline.tables import scale_of

#: Up to this many rows MDAV groups all of them together.
WHOLE = 30_000
#: With more rows, it groups blocks of at most this many; a half of a longer one has room for two groups of any k.
BLOCK = 4_000


class Mdav(TableTechnique):
    """People are grouped by k to 2k - 1 who are near in several numbers, and show the group's means or medians.

    MDAV, maximum distance to average vector (J. Domingo-Ferrer, V. Torra: Ordinal, continuous and heterogeneous
    k-anonymity through microaggregation, Data Mining and Knowledge Discovery 11(2), 2005), on columns scaled to
    variance 1. Its time grows with the square of the rows, so above 30,000 rows these are first cut at medians along
    the widest column into blocks of at most 4,000 (A. Solanas et al.: A 2^d-tree-based blocking method for
    microaggregating very large data sets, ARES 2006). People who lack the same values are grouped among themselves;
    where they are fewer than k, all their values in these columns are hidden. Medians are those of `microaggregate`.
    """

    technique: Literal["mdav"] = "mdav"
    k: int = Field(ge=2, le=1000, description="the smallest group")
    show: Literal["mean", "median"] = Field(default="mean", description="what a group shows")

    meaning: ClassVar[str] = "shows the means of k or more people who are near in several numbers"
    guarantee: ClassVar[Guarantee] = "k"
    use_when: ClassVar[str] = "several numbers together single people out, and their means and correlations matter"
    accepts: ClassVar = ORDERED

    @override
    def apply(self, columns: Columns, context: Context) -> Applied:
        values = np.column_stack([to_floats(columns[name]) for name in self.columns])
        missing = np.isnan(values)
        changed = values.copy()
        _, pattern = np.unique(missing, axis=0, return_inverse=True)
        pattern = pattern.ravel()
        sizes: list[int] = []
        hidden = 0
        for kind in np.unique(pattern):
            rows = np.flatnonzero(pattern == kind)
            present = np.flatnonzero(~missing[rows[0]])
            if not len(present):
                continue
            if len(rows) < self.k:
                changed[rows] = np.nan
                hidden += len(rows)
                continue
            part = values[np.ix_(rows, present)]
            groups = mdav_groups(_scaled(part), self.k)
            changed[np.ix_(rows, present)] = _centres(part, groups, self.show)
            sizes += np.bincount(groups).tolist()
        masked = {name: from_floats(changed[:, place], columns[name].type) for place, name in enumerate(self.columns)}
        notes: tuple[str, ...] = ()
        empty = int(np.isnan(changed).all(axis=1).sum())
        if 0 < empty < self.k:
            alone = "person, fewer than k, shows no value in these columns"
            several = "people, fewer than k, show no value in these columns and are alike only in that"
            notes = (number_of(empty, alone, several),)
        return Applied(
            masked,
            facts={
                "groups": len(sizes),
                "smallest": min(sizes, default=0),
                "largest": max(sizes, default=0),
                "rows_hidden": hidden,
            },
            notes=notes,
            guarantee="none" if notes else "k",
        )


def mdav_groups(points: FloatArray, k: int) -> IntArray:
    """The number of the group of each row, k to 2k - 1 rows per group, shape (n, p) -> (n,); needs n >= k."""
    groups = np.zeros(len(points), dtype=np.int64)
    next_group = 0
    blocks = [np.arange(len(points))] if len(points) <= WHOLE else _blocks(points, BLOCK)
    for block in blocks:
        groups[block] = next_group + _grouped(points[block], k)
        next_group = int(groups[block].max()) + 1
    return groups


def _grouped(points: FloatArray, k: int) -> IntArray:
    """MDAV on all rows together."""
    groups = np.zeros(len(points), dtype=np.int64)
    left, rest = np.arange(len(points)), points
    group = 0

    def take(nearest_to: int) -> None:
        nonlocal left, rest, group
        chosen = _nearest(_squared(rest, rest[nearest_to]), k)
        groups[left[chosen]] = group
        left, rest = left[~chosen], rest[~chosen]
        group += 1

    while len(left) >= 3 * k:
        farthest = int(_squared(rest, rest.mean(axis=0)).argmax())
        distances = _squared(rest, rest[farthest])
        opposite = left[int(distances.argmax())]
        chosen = _nearest(distances, k)
        was_chosen = chosen[np.searchsorted(left, opposite)]
        groups[left[chosen]] = group
        left, rest = left[~chosen], rest[~chosen]
        group += 1
        # With many equal points, the farthest from the farthest may be among its k nearest; then any other serves.
        take(0 if was_chosen else int(np.searchsorted(left, opposite)))
    if len(left) >= 2 * k:
        take(int(_squared(rest, rest.mean(axis=0)).argmax()))
    groups[left] = group
    return groups


def _squared(points: FloatArray, centre: FloatArray) -> FloatArray:
    """Squared distances to a point, shape (n,); added column by column, so that no library decides the order."""
    total = np.zeros(len(points))
    for column in range(points.shape[1]):
        total += (points[:, column] - centre[column]) ** 2
    return total


def _nearest(distances: FloatArray, k: int) -> npt.NDArray[np.bool_]:
    """Which distances are the k smallest, shape (n,); of equal ones at the border, the first are taken."""
    border = np.partition(distances, k - 1)[k - 1]
    chosen: npt.NDArray[np.bool_] = distances < border
    chosen[np.flatnonzero(distances == border)[: k - int(chosen.sum())]] = True
    return chosen


def _blocks(points: FloatArray, most: int) -> list[IntArray]:
    """Rows cut at medians along the widest column until no block has more than `most`."""
    done, pending = [], [np.arange(len(points))]
    while pending:
        block = pending.pop()
        if len(block) <= most:
            done.append(np.sort(block))
            continue
        widest = int(points[block].var(axis=0).argmax())
        order = block[np.argsort(points[block, widest], kind="stable")]
        pending += [order[: len(order) // 2], order[len(order) // 2 :]]
    return done


def _scaled(values: FloatArray) -> FloatArray:
    """The columns, scaled to mean 0 and variance 1; constant columns become 0."""
    values = values / np.array([scale_of(column) for column in values.T])
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    scaled: FloatArray = centred / np.where(spread > 0, spread, 1)
    return scaled


def _centres(values: FloatArray, groups: IntArray, show: Literal["mean", "median"]) -> FloatArray:
    """The mean or median of each row's group, shape of `values`."""
    centred = np.empty_like(values)
    for column in range(values.shape[1]):
        order = np.lexsort((values[:, column], groups))
        starts = np.r_[0, np.flatnonzero(np.diff(groups[order])) + 1].astype(np.int64)
        sizes = np.diff(np.r_[starts, len(order)])
        centred[order, column] = np.repeat(centres(values[order, column], starts, show), sizes)
    return centred
