"""From classes of k people to classes that meet every demand: merge what fails, split again what became too large.

All in class space. A class that fails is merged with a near class, Ward's cost in the space of the tree's criterion
deciding, and one that repairs it before one that does not; then merged classes are split again (cuts.py) where both
halves meet every demand. Suppressing a class is taken instead where it costs less.

Who repeats this for every value that somebody may have must not learn from the outcome which one it was (the minimality
attack: Wong, Fu, Wang and Pei, VLDB 2007). So nothing follows for certain from a class that failed. Some classes that
hold are merged as if they failed; which partner is taken, where a class is split, and whether it is split at all is
left to chance, drawn under the private key (chance.py). Demands decide nothing else: people change classes by their
quasi-identifiers alone (refinement.py), before any demand is looked at, and nobody is moved for the value they bear.

It ends whether or not a demand is monotone. Splitting ends, since each split adds a class and a class has at least one
cell. After the first rounds, rounds that split leave fewer failing classes than any round before; all others leave
fewer classes. What is returned has been judged as a whole; only a table that fails as a single class comes back
failing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.anonymize.chance import Chance, pairs_of
from anon_pipeline.anonymize.classes import members
from anon_pipeline.anonymize.cuts import Cutter, rounded
from anon_pipeline.anonymize.neighbours import nearest
from anon_pipeline.arrays import BoolArray, FloatArray, IntArray
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.tables import Cells

Holds = Callable[[ClassStatistics], BoolArray]
#: Takes the statistics of the cells, the class of each cell (-1: suppressed) and the number of classes.
Recount = Callable[[ClassStatistics, IntArray, int], ClassStatistics]

#: How many of the nearest classes a class may be merged with. More would repair more classes at once, at the price of
#: merging people who are far apart: on Adult with two incomes to a class 3 lose less than 5 or 8.
NEIGHBOURS = 3
#: A partner that does not repair a failing class counts as so many times as dear.
NO_REPAIR = 3.0
#: In so many rounds this share of the classes that hold is merged as if they failed.
ROUNDS, DECOYS = 2, 0.03
#: Share of the merged classes that are not split again, though they could be; and of those merged without need, since a
#: class that had to be merged can seldom be split.
WHOLE, DECOYS_WHOLE = 0.03, 0.5
#: Scale of the chance in what a partner costs (see `Chance.factor`).
PARTNER = 0.05


@dataclass(eq=False)
class Work:
    """A partition under repair.

    Attributes
    ----------
    outputs : the criterion per cell, shape (C, o)
    people : what the demands look at, per cell
    group : class of each cell, -1 where its people are suppressed, shape (C,)
    suppressible : how many more people may be suppressed
    chance : what the key leaves open, for the people of the cells
    cutter : where merged classes may be split
    """

    outputs: FloatArray
    people: ClassStatistics
    group: IntArray
    suppressible: int
    chance: Chance
    cutter: Cutter

    @property
    def classes(self) -> int:
        return int(self.group.max()) + 1

    def members(self) -> sparse.csr_array:
        """Which cells each class has, as a 0-1 matrix of shape (J, C)."""
        return members(self.group, self.classes)


def enforce(  # noqa: PLR0913 (a `Repair` holds them all)
    cells: Cells,
    features: tuple[SplitFeature, ...],
    class_of_cell: IntArray,
    outputs: FloatArray,
    people: ClassStatistics,
    holds: Holds,
    chance: Chance,
    suppressible: int = 0,
    recount: Recount | None = None,
    least: int = 1,
) -> IntArray:
    """The class of each cell, -1 where its people are left out; all classes hold if the table as one class does.

    Parameters
    ----------
    features : the axes of the tree, along which merged classes are split again where a hierarchy is strict
    class_of_cell : the classes to begin with, 0 ... J - 1, numbered so that neighbours have near numbers, shape (C,)
    outputs : the tree's criterion per cell, shape (C, o)
    people : statistics of the cells, each as if it were a class
    holds : every demand at once, judged per class
    chance : what the private key leaves open, for the people of the cells
    suppressible : how many people may be left out where that costs less than merging them
    recount : counts anew, for the classes of a round, what does not simply add up when classes merge (people of a
        population); then nothing is split, since such counts cannot be taken apart
    least : no class is split into one with fewer people, since it could not hold
    """
    work = Work(
        outputs=outputs,
        people=people,
        group=class_of_cell,
        suppressible=suppressible,
        chance=chance,
        cutter=Cutter(features, cells.codes, rounded(outputs), chance, holds, least),
    )
    merged = np.zeros(work.classes, dtype=bool)
    fewest, rounds = work.classes + 1, 0
    while True:
        if recount is not None:
            work.people = recount(work.people, work.group, work.classes)
        failing = ~holds(work.people.pool(work.members()))
        if work.classes == 1 or (rounds >= ROUNDS and not failing.any()):
            return work.group
        # Splitting creates classes, so it goes on only while every round leaves fewer that fail than any before;
        # after that classes are merged and suppressed only, and become fewer until one is left.
        splitting = recount is None and (rounds < ROUNDS or failing.sum() < fewest)
        fewest = min(fewest, int(failing.sum()))
        numbers = chance.joined(work.members())
        decoys = (rounds < ROUNDS) & (chance.uniform(f"merged though it holds {rounds}", numbers) < DECOYS)
        new, merged = _merge(work, failing | decoys, merged, holds)
        work.group = np.where(work.group >= 0, new[work.group], -1)
        if splitting:
            needed = np.zeros(work.classes, dtype=bool)
            needed[new[failing & (new >= 0)]] = True
            merged = _split(work, merged, np.where(needed, WHOLE, DECOYS_WHOLE))
            if not suppressible:  # the table stays what it is, so what could not be split never can
                merged[:] = False
        rounds += 1


def _merge(work: Work, asking: BoolArray, merged: BoolArray, holds: Holds) -> tuple[IntArray, BoolArray]:
    """One round of merges and suppressions; `asking` are the classes that need a partner, or are treated as if.

    Returns
    -------
    The new number of each class (-1: suppressed), and which of the new classes came from a merge, now or before.
    """
    chosen = work.members()
    statistics = work.people.pool(chosen)
    weight = statistics.sizes.astype(float)
    mean = (chosen @ (work.outputs * work.people.sizes[:, None])) / weight[:, None]
    numbers = work.chance.joined(chosen)
    target = np.arange(len(weight))
    used = np.zeros(len(weight), dtype=bool)
    if asking.any():
        pairs, cost = nearest(mean, weight, np.flatnonzero(asking), min(NEIGHBOURS, len(weight) - 1))
        repairs = holds(statistics.pool(_unions(pairs, len(weight))))
        price = cost * work.chance.factor("partner", pairs_of(numbers, pairs), PARTNER)
        price = np.where(repairs, price, price * NO_REPAIR)
        used = _suppress(work, asking, np.minimum.reduceat(price, _starts(pairs[:, 0])), mean, weight)
        target[used] = -1
        if used.any():
            work.people = work.people.without((work.group < 0) | used[work.group])
        order = np.lexsort((pairs[:, 1], pairs[:, 0], price))
        for first, second in pairs[order].tolist():
            if not used[first] and not used[second]:
                used[first] = used[second] = True
                target[max(first, second)] = min(first, second)
    touched = merged | (target != np.arange(len(target)))
    kept, new = np.unique(target[target >= 0], return_inverse=True)
    renumbered = np.full(len(target), -1)
    renumbered[target >= 0] = new
    was_merged = np.zeros(len(kept), dtype=bool)
    was_merged[new[touched[target >= 0]]] = True
    return renumbered, was_merged


def _starts(ascending: IntArray) -> IntArray:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.r_[True, np.diff(ascending) != 0])


def _suppress(work: Work, asking: BoolArray, cheapest: FloatArray, mean: FloatArray, weight: FloatArray) -> BoolArray:
    """Which asking classes to leave out: those whose loss is least beside what merging them would lose, per person.

    A suppressed person has lost all: the whole variance of the criterion, of which a class has lost a part already.
    `cheapest` is what merging costs, one number per asking class.
    """
    chosen = np.zeros(len(weight), dtype=bool)
    if not work.suppressible:
        return chosen
    everyone = work.people.sizes / work.people.sizes.sum()
    centre = np.einsum("c,co->o", everyone, work.outputs)
    variance = float(np.einsum("c,co->", everyone, (work.outputs - centre) ** 2))
    squares = work.members() @ (work.people.sizes * (work.outputs**2).sum(axis=1))
    within = squares - weight * (mean**2).sum(axis=1)
    saved = cheapest - (weight * variance - within)[asking]
    for group in np.flatnonzero(asking)[np.argsort(-saved / weight[asking], kind="stable")][
        : (saved > 0).sum()
    ].tolist():
        if weight[group] <= work.suppressible and (~chosen).sum() > 1:
            work.suppressible -= int(weight[group])
            chosen[group] = True
    return chosen


def _unions(pairs: IntArray, classes: int) -> sparse.csr_array:
    """A 0-1 matrix whose rows each add up two classes."""
    row = np.repeat(np.arange(len(pairs)), 2)
    return sparse.csr_array(
        (np.ones(2 * len(pairs), dtype=np.int64), (row, pairs.ravel())), shape=(len(pairs), classes)
    )


def _split(work: Work, candidates: BoolArray, whole: FloatArray) -> BoolArray:
    """Split merged classes where both halves hold, again and again; returns which classes are still of that kind.

    `whole` is the share of classes like each one that are left as they are, shape (J,).
    """
    merged, stem = candidates, np.arange(work.classes)
    while candidates.any():
        cells = np.flatnonzero(candidates[work.group] & (work.group >= 0))
        cells = cells[np.argsort(work.group[cells], kind="stable")]
        starts = np.flatnonzero(np.r_[True, np.diff(work.group[cells]) != 0])
        numbers = np.add.reduceat(work.chance.members[cells], starts)
        left = work.chance.uniform("left whole", numbers) < whole[work.group[cells[starts]]]
        cells = cells[~np.repeat(left, np.diff(np.r_[starts, len(cells)]))]
        if not len(cells):
            break
        starts = np.flatnonzero(np.r_[True, np.diff(work.group[cells]) != 0])
        known = len(whole)
        split = []
        for half in work.cutter.halves(work.people, cells, starts):
            split.append(int(work.group[half[0]]))
            work.group[half] = known + len(split) - 1
        added = len(split)
        stem = np.r_[stem, stem[split]]
        whole = np.r_[whole, np.full(added, WHOLE)]
        merged = np.r_[merged, np.ones(added, dtype=bool)]
        candidates = np.zeros(known + added, dtype=bool)
        candidates[split] = candidates[known:] = True
    # Numbers stay near where people are near: what comes from one class stands side by side.
    order = np.argsort(stem, kind="stable")
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), -1  # the last is the place of class -1
    work.group = place[work.group]
    return merged[order]
