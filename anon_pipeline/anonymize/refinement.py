"""Local search after the tree: cells move to other classes, and new classes are seeded, where that lowers the loss.

A tree splits people at one threshold after another. So its classes are boxes, and many have nearly 2k people because no
threshold splits them. Four kinds of changes are made, in rounds that end when no change helps, or after a fixed number:

- A cell moves to the class where it costs least (the exchange of J. A. Hartigan, "Clustering Algorithms", 1975,
  chapter 4, with a smallest size: no class falls below k people).
- Where k is small, two cells with equally many people change places, since classes can hardly spare anybody.
- A new class of k people is seeded from people whom their classes can spare (as groups are begun in the
  microaggregation of J. Domingo-Ferrer and V. Torra, DMKD 2005).
- Cells move once more with the *set cover* added to the squared error, so that a class has few different values. The
  set cover is the share of a column's span, or of its other categories, that occurs in a class.

The moves depend only on the quasi-identifiers and on the guidance that these alone would give: the mean over a leaf of
a tree or over classes, never the guidance of a single person, which depends on other columns too. A cell moves as a
whole. Demands beyond k are met afterwards (enforce.py): a move that was left out because of a demand would reveal whose
value was in its way. Sums run in a fixed order, and matrix products are of whole numbers, so the result does not depend
on the number of threads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, starmap
from typing import Any

import numpy as np
import numpy.typing as npt

from anon_pipeline.anonymize.classes import information_loss
from anon_pipeline.anonymize.cluster_statistics import TABULATED, ClusterStatistics
from anon_pipeline.anonymize.criterion import Criterion
from anon_pipeline.anonymize.tree import fit_leaves
from anon_pipeline.arrays import BoolArray, FloatArray, IntArray
from anon_pipeline.tables import Cells
from anon_pipeline.threads import one_thread
from anon_pipeline.workers import ALONE, Workers

log = logging.getLogger("anon_pipeline")

#: Classes that are improved together: at most so many, and at most so many classes times tabulated values.
CLASSES, NUMBERS = 500, 1_000_000
#: Parts that each process is given at a time.
TASKS = 8
#: How many of the classes near its own each cell may move to.
CHOICES = 3


@dataclass(frozen=True)
class Effort:
    """How much is tried.

    Attributes
    ----------
    near : with how many of the nearest classes a cell is compared
    companions : one number for each time that classes are seeded, each time from other seeds: from so many classes
        beside the seed's own the people of a new class are taken
    decays : which share of its cost in the set cover a value keeps for each cell of the class that has it already: at
        first a large one, so that a class can lose a value cell by cell, at last 0, which is the set cover
    rounds : of moves in a row, at most
    moves_often : whether cells move before and after classes are seeded, and the near classes are found once more at
        the end; otherwise they only move once, when the set cover counts
    """

    near: int
    companions: tuple[int, ...]
    decays: tuple[float, ...]
    rounds: int = 12
    moves_often: bool = True


#: Tables of more cells than these get ever less effort, which gains nearly as much.
LARGE, VERY_LARGE, HUGE = 50_000, 400_000, 1_000_000
THOROUGH = Effort(48, (4, 4, 8, 16, 16, 16), (0.8, 0.5, 0.0))
QUICK, BRIEF = Effort(24, (4, 8), (0.0,)), Effort(24, (4,), (0.0,))
SPARING = Effort(12, (4,), (0.0,), rounds=4, moves_often=False)
#: Where the classes of a large table lose less than this share of the variance, they are not refined.
LITTLE = 0.001
#: Rounds of exchanges in a row.
ROUNDS = 12
#: Up to this k cells also change places, since small classes can hardly spare anybody.
SWAPPED = 5
#: At most this share of a class moves in one round.
AT_ONCE = 0.1
#: A cell whose move would cost so much more than it saves, as a share of the cost, is not tried again in these rounds.
FAR = 0.25
#: A change must save this much of one person's variance.
LEAST = 1e-4
#: Smallest number of people in a leaf whose mean is the guidance that the quasi-identifiers alone would give.
MINIMUM_LEAF_SIZE = 50
#: Weight of a column's set cover beside the share of its variance that is lost.
COVER = 2.5


def refine(cells: Cells, class_of_cell: IntArray, k: int, spread: float, workers: Workers = ALONE) -> IntArray:
    """The class of each cell, shape (C,), after the changes; each class has k people as before.

    The classes of a large table that lose next to nothing stay as they are, and the log says so.

    Parameters
    ----------
    class_of_cell : classes 0 ... J - 1, numbered so that neighbours have near numbers (a tree's leaves, left to
        right)
    workers : processes that improve the parts of a large table side by side; the classes are the same without them
    """
    if len(cells.counts) > LARGE and (lost := _little_lost(cells, class_of_cell)) is not None:
        log.info("the tree loses %.3f %% of the variance: its classes need not be made tighter", 100 * lost)
        return class_of_cell
    leaf = _neighbours(class_of_cell, k) if len(cells.counts) > VERY_LARGE else _leaves(cells, k)
    criterion = Criterion(replace(cells, guidance=_expected(cells, leaf)), spread, 0, at_once=False, weighed=True)
    effort = _effort(len(cells.counts))
    refined = class_of_cell.copy()
    count = 0
    parts = list(_parts(cells, class_of_cell))
    tasks = ((criterion.of_cells(members), group, k, COVER * spread, effort) for members, group in parts)
    side_by_side = _side_by_side(tasks, workers if len(cells.counts) > LARGE else ALONE)
    for (members, _), improved in zip(parts, side_by_side, strict=True):
        refined[members] = improved + count
        count += int(improved.max()) + 1
    return refined


def _side_by_side(tasks: Iterator[tuple[Any, ...]], workers: Workers) -> Iterator[IntArray]:
    """The improved classes of each part, in their order; no more parts are made at a time than are soon needed."""
    if workers.count == 1:
        yield from starmap(_improved, tasks)
        return
    while some := list(islice(tasks, TASKS * workers.count)):
        yield from workers.map(_improved, some)


def _improved(criterion: Criterion, group: IntArray, k: int, cover: float, effort: Effort) -> IntArray:
    """The class of each cell of a part after the changes, counted from 0."""
    with one_thread():  # several threads would mostly wait for each other over so little
        part = LocalSearch(ClusterStatistics(criterion, group), k, cover, effort)
        part.improve()
    return part.clusters.group


def _effort(cells: int) -> Effort:
    if cells > HUGE:
        return SPARING
    if cells > VERY_LARGE:
        return BRIEF
    return QUICK if cells > LARGE else THOROUGH


def _little_lost(cells: Cells, class_of_cell: IntArray) -> float | None:
    """The share of the quasi-identifiers' variance that lies within classes, their mean; None from `LITTLE` on.

    Mostly the first columns lose so much already that the others need not be asked.
    """
    columns, lost = len(cells.domains), 0.0
    for place in range(columns):
        lost += sum(information_loss(cells.of_columns([place]), class_of_cell, int(class_of_cell.max()) + 1).values())
        if lost / columns >= LITTLE:
            return None
    return lost / columns


def _leaves(cells: Cells, k: int) -> IntArray:
    """The leaf of each cell in a tree that is grown for the guidance alone, shape (C,)."""
    return fit_leaves(cells, max(k, MINIMUM_LEAF_SIZE), 0.0, "guidance", 0)[1]


def _neighbours(class_of_cell: IntArray, k: int) -> IntArray:
    """Neighbouring classes as one, at least `MINIMUM_LEAF_SIZE` people together, shape (C,).

    In a very large table they stand for the leaves of `_leaves`: they are as many, and another tree would cost half as
    much as the first.
    """
    together = -(-MINIMUM_LEAF_SIZE // k)
    whole = max(1, (int(class_of_cell.max()) + 1) // together)  # so that the last ones are not too few
    return np.minimum(class_of_cell // together, whole - 1)


def _expected(cells: Cells, leaf: IntArray) -> IntArray:
    """The guidance that the quasi-identifiers alone would give: each cell's share of its leaf's sum, shape (C, g)."""
    share = cells.counts / np.bincount(leaf, weights=cells.counts)[leaf]
    summed = np.stack([np.bincount(leaf, weights=output) for output in cells.guidance.T.astype(np.float64)], axis=1)
    return np.round(summed[leaf] * share[:, None]).astype(np.int64)


def _parts(cells: Cells, class_of_cell: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """The cells of the classes that are improved together, and the class of each, counted from 0.

    Cells are in the order of their codes, and levels in their own order, so that names decide nothing.
    """
    values = sum(min(len(domain), TABULATED if domain.ordered else len(domain)) for domain in cells.domains)
    at_once = min(CLASSES, max(64, NUMBERS // max(1, values)))
    classes = int(class_of_cell.max()) + 1
    keys = [
        cells.codes[:, column] if domain.levels is None else np.r_[0, domain.levels + 1][cells.codes[:, column]]
        for column, domain in enumerate(cells.domains)
    ]
    # A stable sort by class takes a third of the time, and keeps the order that most cells are in.
    order = class_of_cell.argsort(kind="stable") if _ascending(keys) else np.lexsort((*keys[::-1], class_of_cell))
    ends = np.linspace(0, classes, -(-classes // at_once) + 1).astype(np.int64)
    cuts = np.searchsorted(class_of_cell[order], ends)
    for first, start, end in zip(ends, cuts, cuts[1:], strict=False):
        members = order[start:end]
        yield members, class_of_cell[members] - first


def _ascending(keys: Sequence[npt.NDArray[np.integer[Any]]]) -> bool:
    """Whether rows of several keys, the first of which counts most, come in ascending order."""
    equal = np.ones(max(0, len(keys[0]) - 1), dtype=bool)
    for key in keys:
        if (equal & (key[1:] < key[:-1])).any():
            return False
        equal &= key[1:] == key[:-1]
    return True


class LocalSearch:
    """Improves some neighbouring classes by moving their cells.

    Attributes
    ----------
    clusters : the classes as they are
    """

    def __init__(
        self,
        clusters: ClusterStatistics,
        k: int,
        cover: float,
        effort: Effort = THOROUGH,
    ) -> None:
        self.k = k
        self._effort = effort
        self.clusters = clusters
        self._cover = cover

    def improve(self) -> None:
        """Move cells and seed classes until neither saves anything, or for a fixed number of rounds."""
        self._find_near()
        if self._effort.moves_often:
            self._relocate()
        for rank in range(len(self._effort.companions)):
            if self._seed_clusters(rank):
                self._find_near()
                if self._effort.moves_often:
                    self._relocate()
        if self._effort.moves_often:
            self._find_near()
        for decay in self._effort.decays:
            self.clusters.weigh_cover(self._cover, decay)
            self._rank_candidates()
            self._move()

    def _find_near(self) -> None:
        self._near = self.clusters.near(self._effort.near)

    def _relocate(self) -> None:
        self._rank_candidates()
        self._move()
        if self.k <= SWAPPED:
            self._swap()
            self._rank_candidates()
            self._move()

    def _rank_candidates(self) -> None:
        """Find the classes near its own to which each cell may move, and the costs."""
        self._choice, self._costs = self.clusters.choices(self._near, CHOICES)

    def _move(self) -> None:
        """Rounds of moves: several per class at once, or only one per class where several at once do not help."""
        clusters = self.clusters
        at_once = AT_ONCE
        before = clusters.objective()
        active = np.ones(len(clusters.group), dtype=bool)
        asked = active.copy()
        stale = np.zeros(self._choice.shape, dtype=bool)
        if clusters.classes == 1:
            return
        for _ in range(self._effort.rounds):
            cell = np.flatnonzero(active & (clusters.size[clusters.group] - clusters.people >= self.k))
            rank, position = np.nonzero(stale[:, cell])
            again = cell[position]
            self._costs[rank, again] = clusters.insertion_cost(again, self._choice[rank, again])
            stale[rank, again] = False
            choice = self._choice[:, cell]
            cost = np.where(choice == clusters.group[cell], np.inf, self._costs[:, cell])
            best = cost.argmin(axis=0)
            least = cost[best, np.arange(len(cell))]
            saved = clusters.removal_cost(cell) - least
            asked[cell] = saved > -FAR * least
            order = np.flatnonzero(saved > LEAST)
            if not len(order):
                return
            order = order[np.argsort(-saved[order], kind="stable")]
            cell, best = cell[order], best[order]
            source, to = clusters.group[cell], self._choice[best, cell]
            chosen = self._compatible(source, to, clusters.people[cell], at_once)
            cell, best, source, to = cell[chosen], best[chosen], source[chosen], to[chosen]
            clusters.change(cell, to)
            after = clusters.objective()
            if after >= before and at_once:
                clusters.change(cell, source)
                at_once = 0.0
                continue
            before = after
            touched = np.zeros(clusters.classes, dtype=bool)
            touched[source] = touched[to] = True
            other = touched[self._choice]
            stale |= other
            active = (touched[clusters.group] | other.any(axis=0)) & asked

    def _swap(self) -> None:
        """Rounds of exchanges of two cells with equally many people, at most one exchange per class in a round."""
        clusters = self.clusters
        touched = np.ones(clusters.classes, dtype=bool)
        for _ in range(ROUNDS):
            cell, other, saved = self._pairs(touched)
            best = np.argsort(-saved, kind="stable")
            best = best[saved[best] > LEAST]
            cell, other = cell[best], other[best]
            source, to = clusters.group[cell], clusters.group[other]
            chosen = self._compatible(source, to, clusters.people[cell], 0.0)
            cell, other, source, to = cell[chosen], other[chosen], source[chosen], to[chosen]
            if not len(cell):
                return
            both, former = np.r_[cell, other], np.r_[source, to]
            clusters.change(both, np.r_[to, source])
            touched = np.zeros(clusters.classes, dtype=bool)
            touched[former] = True

    def _pairs(self, touched: BoolArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells, others with equally many people in classes to which they may move, and what an exchange would save.

        Only pairs with a class that is `touched`.
        """
        clusters = self.clusters
        by_class = np.argsort(clusters.group, kind="stable")
        starts = np.searchsorted(clusters.group[by_class], np.arange(clusters.classes + 1))
        own = clusters.distance(np.arange(len(clusters.group)), clusters.group)
        rank, cell = np.nonzero((self._choice != clusters.group) & (touched[clusters.group] | touched[self._choice]))
        to = self._choice[rank, cell]
        nearer = own[cell] - clusters.distance(cell, to)
        count = starts[to + 1] - starts[to]
        first = np.repeat(starts[to] - (np.cumsum(count) - count), count)
        other, cell, nearer = by_class[first + np.arange(len(first))], np.repeat(cell, count), np.repeat(nearer, count)
        alike = clusters.people[cell] == clusters.people[other]
        other, cell, nearer = other[alike], cell[alike], nearer[alike]
        people, source, to = clusters.people[cell], clusters.group[cell], clusters.group[other]
        nearer += own[other] - clusters.distance(other, source)
        nearer += people * (1 / clusters.size[source] + 1 / clusters.size[to]) * clusters.apart(cell, other)
        return cell, other, people * nearer

    def _compatible(self, source: IntArray, to: IntArray, people: FloatArray, at_once: float) -> IntArray:
        """The positions of moves, in their order, that hardly influence each other.

        These are the first move of each class, and further ones while at most the share `at_once` of the class leaves
        or comes. A class keeps k people.
        """
        clusters = self.clusters
        rank = np.arange(len(source))
        leaves, comes = _before(source, people), _before(to, people)
        few = (leaves + people <= at_once * clusters.size[source]) & (comes + people <= at_once * clusters.size[to])
        first = np.full(clusters.classes, len(source))
        np.minimum.at(first, source, rank)
        np.minimum.at(first, to, rank)
        alone = (first[source] == rank) & (first[to] == rank)
        return np.flatnonzero(alone | (few & (leaves + people <= clusters.size[source] - self.k)))

    def _seed_clusters(self, rank: int) -> bool:
        """Seed new classes: each of a cell far from the centre of its class and the nearest cells that can be spared.

        The seed is the cell furthest from the centre where `rank` is 0, the next where it is 1, and so on.
        """
        clusters = self.clusters
        spare = clusters.size - self.k
        if clusters.classes == 1 or np.maximum(spare, 0).sum() < self.k:
            return False
        own = clusters.distance(np.arange(len(clusters.group)), clusters.group)
        by_class = np.lexsort((-own, clusters.group))
        starts = np.searchsorted(clusters.group[by_class], np.arange(clusters.classes + 1))
        seed = by_class[np.minimum(starts[:-1] + rank, starts[1:] - 1)]
        # The cells of each seed's class and of the classes near it, as pairs of the block and the cell.
        near = self._near[:, : self._effort.companions[rank]]
        around = np.c_[np.arange(clusters.classes), near].ravel()
        count = np.diff(starts).take(around)
        first = np.repeat(starts.take(around) - (np.cumsum(count) - count), count)
        cell = by_class.take(first + np.arange(len(first)))
        block = np.repeat(np.arange(len(around)), count)
        may_go = clusters.people <= spare.take(clusters.group)
        may = np.flatnonzero(may_go.take(cell))
        block, cell = block.take(may), cell.take(may)
        # From each class its nearest ones, as many as it can spare, and of these the k nearest.
        block, cell, apart = _by_distance(block, cell, clusters.apart(cell, seed.take(block // (near.shape[1] + 1))))
        stays = np.flatnonzero(_so_far(block, clusters.people.take(cell)) <= spare.take(around).take(block))
        of, cell, _ = _by_distance(block.take(stays) // (near.shape[1] + 1), cell.take(stays), apart.take(stays))
        people = clusters.people.take(cell)
        so_far = _so_far(of, people) - people
        reached = np.bincount(of, weights=people, minlength=clusters.classes) >= self.k
        needed = (so_far < self.k) & reached[of]
        of, cell = of[needed], cell[needed]
        if not len(of):
            return False
        gain = np.bincount(of, weights=clusters.removal_cost(cell), minlength=clusters.classes) - clusters.error(
            of, cell
        )
        taken = np.zeros(clusters.classes, dtype=bool)
        former, before, classes = clusters.group, clusters.objective(), clusters.classes
        bounds = np.searchsorted(of, np.arange(classes + 1))
        seeded = []
        for candidate in np.argsort(-gain, kind="stable").tolist():
            members_of_seed = cell[bounds[candidate] : bounds[candidate + 1]]
            if gain[candidate] <= LEAST or not len(members_of_seed):
                break
            if not taken[former[members_of_seed]].any():  # no two new classes take cells from the same class
                taken[former[members_of_seed]] = True
                seeded.append(members_of_seed)
        clusters.arrange(_with(former, classes, seeded))
        if clusters.classes > classes and clusters.objective() < before:
            return True
        clusters.arrange(former)
        return False


def _with(group: IntArray, classes: int, seeded: list[IntArray]) -> IntArray:
    """The class of each cell, if the members of each seed become a class of their own, numbered after the others."""
    group = group.copy()
    for number, members_of_seed in enumerate(seeded, start=classes):
        group[members_of_seed] = number
    return group


def _by_distance(of: IntArray, cell: IntArray, apart: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Entries by `of`, the nearest first and the cell deciding between equals, each array of shape (q,)."""
    # All three packed into one number, which sorts many times faster than three; a distance keeps six decimals.
    ones, groups = int(cell.max(initial=0)).bit_length(), int(of.max(initial=0)).bit_length()
    steps = np.round(apart * 1e6).clip(0, 2.0 ** (62 - ones - groups)).astype(np.int64)
    key = np.sort((((of << (63 - ones - groups)) | steps) << ones) | cell)
    return key >> (63 - groups), key & ((1 << ones) - 1), (key >> ones & ((1 << (63 - ones - groups)) - 1)) / 1e6


def _so_far(group: IntArray, people: FloatArray) -> FloatArray:
    """How many people of the same group stand up to each entry, groups in ascending order, shape (q,)."""
    ends = np.cumsum(np.bincount(group))
    before = np.r_[0.0, np.cumsum(people)]
    so_far: FloatArray = before[1:] - before.take(np.r_[0, ends]).take(group)
    return so_far


def _before(group: IntArray, people: FloatArray) -> FloatArray:
    """How many people of the same group stand before each entry, shape (q,)."""
    order = np.argsort(group, kind="stable")
    before = np.empty(len(group))
    before[order] = _so_far(group[order], people[order]) - people[order]
    return before
