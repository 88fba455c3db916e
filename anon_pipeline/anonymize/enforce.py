"""From classes of k people to classes that meet every demand: merge what fails, split again what became too large.

All in class space. A class that fails is merged with the nearest class that repairs it (Ward's cost in the space of
the tree's criterion), the cheapest repairs first; then every merged class is split again, at a threshold of one split
feature, where both halves meet every demand. Suppressing a class is taken instead where it costs less.

It ends whether or not a demand is monotone. Splitting ends, since each split adds a class and a class has at least one
cell. Rounds that split leave fewer failing classes than any round before; all others leave fewer classes. What is
returned has been judged as a whole; only a table that fails as a single class comes back failing.

People never change classes one by one for the value they bear, although that would lose less: a person taken into a
class for it stands out there, and who knows the algorithm knows why (the minimality attack of Wong et al., VLDB 2007).
Refinement afterwards (refinement.py) chooses moves by the quasi-identifiers alone, and makes none that a demand
forbids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.anonymize.classes import members
from anon_pipeline.anonymize.tree import FloatArray, SplitFeature, feature_matrix
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.tables import Cells, IntArray

BoolArray = npt.NDArray[np.bool_]
Holds = Callable[[ClassStatistics], BoolArray]
#: Takes the statistics of the cells, the class of each cell (-1: suppressed) and the number of classes.
Recount = Callable[[ClassStatistics, IntArray, int], ClassStatistics]

#: How many of the nearest classes a failing class looks at before it widens its search.
NEIGHBOURS = (24, 192, 1536)
#: The cells of either half.
Halves = tuple[IntArray, IntArray]
#: How many of the best thresholds of a merged class are tried, in this many goes.
THRESHOLDS, GOES = 12, 4


@dataclass(eq=False)
class Work:
    """A partition under repair.

    Attributes
    ----------
    features : the axes along which merged classes may be split again
    outputs : the criterion per cell, shape (C, o)
    codes, ranks : quasi-identifiers and split features per cell, shapes (C, p) and (C, F)
    people : what the demands look at, per cell
    group : class of each cell, -1 where its people are suppressed, shape (C,)
    suppressible : how many more people may be suppressed
    """

    features: tuple[SplitFeature, ...]
    outputs: FloatArray
    codes: npt.NDArray[np.int32]
    ranks: npt.NDArray[np.float32]
    people: ClassStatistics
    group: IntArray
    suppressible: int

    @property
    def classes(self) -> int:
        return int(self.group.max()) + 1

    def members(self) -> sparse.csr_array:
        """Which cells each class has, as a 0-1 matrix of shape (J, C)."""
        return members(self.group, self.classes)


def enforce(
    cells: Cells,
    features: tuple[SplitFeature, ...],
    class_of_cell: IntArray,
    outputs: FloatArray,
    people: ClassStatistics,
    holds: Holds,
    suppressible: int = 0,
    recount: Recount | None = None,
) -> IntArray:
    """The class of each cell, -1 where its people are left out; all classes hold if the table as one class does.

    Parameters
    ----------
    features : the axes of the tree, along which merged classes may be split again
    class_of_cell : the classes to begin with, 0 ... J - 1, shape (C,)
    outputs : the tree's criterion per cell, shape (C, o)
    people : statistics of the cells, each as if it were a class
    holds : every demand at once, judged per class
    suppressible : how many people may be left out where that costs less than merging them
    recount : counts anew, for the classes of a round, what does not simply add up when classes merge (people of a
        population); then nothing is split, since such counts cannot be taken apart
    """
    work = Work(
        features=features,
        outputs=outputs,
        codes=cells.codes,
        ranks=feature_matrix(features, cells.codes),
        people=people,
        group=class_of_cell,
        suppressible=suppressible,
    )
    merged = np.zeros(work.classes, dtype=bool)
    fewest = work.classes + 1
    while True:
        if recount is not None:
            work.people = recount(work.people, work.group, work.classes)
        failing = ~holds(work.people.pool(work.members()))
        if not failing.any() or work.classes == 1:
            return work.group
        # Splitting creates classes, so it goes on only while every round leaves fewer that fail than any before;
        # after that classes are merged and suppressed only, and become fewer until one is left.
        splitting = recount is None and failing.sum() < fewest
        fewest = min(fewest, int(failing.sum()))
        new, merged = _merge(work, failing, merged, holds)
        work.group = np.where(work.group >= 0, new[work.group], -1)
        if splitting:
            merged = _split(work, merged, holds)
            if not suppressible:  # the table stays what it is, so what could not be split never can
                merged[:] = False


def _merge(work: Work, failing: BoolArray, merged: BoolArray, holds: Holds) -> tuple[IntArray, BoolArray]:
    """One round of merges and suppressions.

    Returns
    -------
    The new number of each class (-1: suppressed), and which of the new classes came from a merge, now or before.
    """
    statistics = work.people.pool(work.members())
    weight = statistics.sizes.astype(float)
    mean = (work.members() @ (work.outputs * work.people.sizes[:, None])) / weight[:, None]
    repairs: dict[int, list[tuple[float, int]]] = {int(one): [] for one in np.flatnonzero(failing)}
    asking = np.flatnonzero(failing)
    for width in NEIGHBOURS:
        pairs, cost = _nearest(mean, weight, asking, min(width, len(weight) - 1))
        good = holds(statistics.pool(_unions(pairs, len(weight))))
        for (one, other), price in zip(pairs[good].tolist(), cost[good].tolist(), strict=True):
            repairs[one].append((price, other))
        asking = np.array([one for one in asking.tolist() if not repairs[one]], dtype=np.int64)
        if not len(asking) or width >= len(weight) - 1:
            break
    if len(asking):  # nothing near repairs these alone: each joins its nearest, and is judged again in company
        for (one, other), price in zip(*(part.tolist() for part in _nearest(mean, weight, asking, 1)), strict=True):
            repairs[one].append((price, other))

    target = np.arange(len(weight))
    used = _suppress(work, failing, repairs, mean, weight)
    target[used] = -1
    if used.any():
        work.people = work.people.without((work.group < 0) | used[work.group])
    for _, one, other in sorted((price, one, other) for one, offers in repairs.items() for price, other in offers):
        if not used[one] and not used[other]:
            used[one] = used[other] = True
            target[max(one, other)] = min(one, other)
    touched = merged | (target != np.arange(len(target)))
    kept, new = np.unique(target[target >= 0], return_inverse=True)
    numbers = np.full(len(target), -1)
    numbers[target >= 0] = new
    was_merged = np.zeros(len(kept), dtype=bool)
    was_merged[new[touched[target >= 0]]] = True
    return numbers, was_merged


def _suppress(
    work: Work, failing: BoolArray, repairs: dict[int, list[tuple[float, int]]], mean: FloatArray, weight: FloatArray
) -> BoolArray:
    """Which failing classes to leave out: those whose loss is least beside what merging them would lose, per person.

    A suppressed person has lost all: the whole variance of the criterion, of which a class has lost a part already.
    """
    chosen = np.zeros(len(weight), dtype=bool)
    if not work.suppressible:
        return chosen
    everyone = work.people.sizes / work.people.sizes.sum()
    centre = np.einsum("c,co->o", everyone, work.outputs)
    variance = float(np.einsum("c,co->", everyone, (work.outputs - centre) ** 2))
    members = work.members()
    squares = members @ (work.people.sizes * (work.outputs**2).sum(axis=1))
    within = squares - weight * (mean**2).sum(axis=1)
    savings = []
    for one in np.flatnonzero(failing).tolist():
        cheapest = min((price for price, _ in repairs[one]), default=np.inf)
        saved = cheapest - (weight[one] * variance - within[one])
        if saved > 0:
            savings.append((-saved / weight[one], one))
    for _, one in sorted(savings):
        if weight[one] <= work.suppressible and (~chosen).sum() > 1:
            work.suppressible -= int(weight[one])
            chosen[one] = True
    return chosen


def _nearest(mean: FloatArray, weight: FloatArray, asking: IntArray, width: int) -> tuple[IntArray, FloatArray]:
    """The `width` cheapest partners of each asking class by Ward's cost, as pairs of shape (a * width, 2).

    Candidates come from a matrix product, whose last bits depend on threads; which of them are the cheapest is decided
    by costs that do not, a tie by the lower number.
    """
    pairs, costs = [], []
    square = np.einsum("jo,jo->j", mean, mean)
    for start in range(0, len(asking), 128):  # small enough for a cache
        some = asking[start : start + 128]
        rough = square[some, None] + square - 2 * (mean[some] @ mean.T)
        rough *= weight[some, None] * weight / (weight[some, None] + weight)
        rough[np.arange(len(some)), some] = np.inf
        doubt = 1e-11 * weight[some] * (square[some] + square.max())
        row, near = np.nonzero(rough <= (np.partition(rough, width - 1, axis=1)[:, width - 1] + doubt)[:, None])
        own = some[row]
        distance = square[own] + square[near] - 2 * np.einsum("po,po->p", mean[own], mean[near])
        cost = np.maximum(distance, 0) * (weight[own] * weight[near] / (weight[own] + weight[near]))
        order = np.lexsort((cost, row))
        first = np.searchsorted(row, np.arange(len(some)))
        order = order[np.arange(len(order)) - first[row] < width]
        pairs.append(np.stack([own[order], near[order]], axis=1))
        costs.append(cost[order])
    return np.concatenate(pairs), np.concatenate(costs)


def _unions(pairs: IntArray, classes: int) -> sparse.csr_array:
    """A 0-1 matrix whose rows each add up two classes."""
    row = np.repeat(np.arange(len(pairs)), 2)
    return sparse.csr_array(
        (np.ones(2 * len(pairs), dtype=np.int64), (row, pairs.ravel())), shape=(len(pairs), classes)
    )


def _split(work: Work, candidates: BoolArray, holds: Holds) -> BoolArray:
    """Split merged classes where both halves hold, again and again; returns which classes are still of that kind."""
    open_ = set(np.flatnonzero(candidates).tolist())
    merged = set(open_)
    while open_:
        proposals = _proposals(work, sorted(open_))
        open_ = set()
        for go in range(GOES):
            tried = {one: thresholds[go * THRESHOLDS : (go + 1) * THRESHOLDS] for one, thresholds in proposals.items()}
            tried = {one: thresholds for one, thresholds in tried.items() if thresholds}
            if not tried:
                break
            halves = [half for thresholds in tried.values() for both in thresholds for half in both]
            good: BoolArray = np.all(holds(work.people.pool(_halves(halves, len(work.group)))).reshape(-1, 2), axis=1)
            position = 0
            for one, thresholds in tried.items():
                fit = np.flatnonzero(good[position : position + len(thresholds)])
                position += len(thresholds)
                if len(fit):
                    new = work.classes
                    work.group[thresholds[fit[0]][1]] = new
                    del proposals[one]
                    open_ |= {one, new}
                    merged.add(new)
    still = np.zeros(work.classes, dtype=bool)
    still[sorted(merged)] = True
    return still


def _halves(halves: list[IntArray], cells: int) -> sparse.csr_array:
    pointer = np.cumsum([0, *(len(half) for half in halves)])
    index = np.concatenate(halves)
    return sparse.csr_array((np.ones(len(index), dtype=np.int64), index, pointer), shape=(len(halves), cells))


def _proposals(work: Work, groups: list[int]) -> dict[int, list[Halves]]:
    """Thresholds of each class, those that reduce the squared error most first."""
    order = np.argsort(work.group, kind="stable")
    sorted_groups = work.group[order]
    proposals = {}
    for one in groups:
        start, end = np.searchsorted(sorted_groups, [one, one + 1])
        cells = order[start:end]
        found = []
        weight = work.people.sizes[cells].astype(float)
        outputs = work.outputs[cells] * weight[:, None]
        total, people = outputs.sum(axis=0), weight.sum()
        base = float(total @ total) / people
        for feature, axis in enumerate(work.features):
            if not axis.splits(work.codes[cells, axis.column]):
                continue
            ranks = work.ranks[cells, feature]
            by_rank = np.argsort(ranks, kind="stable")
            cut = np.flatnonzero(np.diff(ranks[by_rank]) > 0)
            if not len(cut):
                continue
            left = np.cumsum(outputs[by_rank], axis=0)[cut]
            left_people = np.cumsum(weight[by_rank])[cut]
            right, right_people = total - left, people - left_people
            gain = (left**2).sum(axis=1) / left_people + (right**2).sum(axis=1) / right_people - base
            for position in range(len(cut)):
                found.append((-gain[position], feature, cut[position], by_rank))
        found.sort(key=lambda one: one[:3])
        ranked = []
        for _, _, cut, by_rank in found[: THRESHOLDS * GOES]:
            ranked.append((cells[by_rank[: cut + 1]], cells[by_rank[cut + 1 :]]))
        proposals[one] = ranked
    return proposals
