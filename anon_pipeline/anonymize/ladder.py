"""The ladder: unions of near classes, unions of those, and so on up to everybody; the demands split it (enforce.py).

The ladder follows from the quasi-identifiers, and from the sensitive values that the guidance lets expect in the whole
table. So it is the same whichever person has which value. Usually the nearest classes are paired. But near people often
have the same sensitive values; where that would lose much, classes are paired that are expected to hold together
(mixing.py). Of the two ladders the one on which the demands are expected to cost less is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from anon_pipeline.anonymize.classes import members
from anon_pipeline.anonymize.mixing import Mixing
from anon_pipeline.anonymize.neighbours import nearest
from anon_pipeline.arrays import BoolArray, FloatArray, IntArray
from anon_pipeline.privacy.statistics import ClassStatistics, Holds

#: Takes the statistics of the cells, the class of each cell (-1: suppressed) and the number of classes.
Recount = Callable[[ClassStatistics, IntArray, int], ClassStatistics]

#: With how many of the nearest classes a class may be paired; if all of them are taken, it stays alone on this rung.
NEIGHBOURS = 3
#: Mixed pairs are tried where near pairs are expected to lose so many times what the classes have lost already.
DEAR = 2.25
#: They are taken where they are expected to lose at most this share of what near pairs lose.
WORTH = 0.75


@dataclass(frozen=True, eq=False)
class Rung:
    """Some unions of classes; each of them is a part of a union on the next rung.

    Attributes
    ----------
    group : the union of each cell, -1 where its people are suppressed, shape (C,)
    holds : which unions meet every demand, shape (u,)
    parted : which unions hold, or can be split into parts that hold, shape (u,)
    nearly : which unions hold, but would not if one person had another value, shape (u,)
    above : the union on the next rung that each is a part of, shape (u,)
    classes : how many classes each union has, shape (u,)
    """

    group: IntArray
    holds: BoolArray
    parted: BoolArray
    nearly: BoolArray
    above: IntArray
    classes: IntArray


def ladder(
    people: ClassStatistics,
    group: IntArray,
    outputs: FloatArray,
    holds: Holds,
    recount: Recount | None,
    mixing: Mixing | None,
) -> list[Rung]:
    """The rungs, from the classes up to a single union of everybody.

    Parameters
    ----------
    people : statistics of the cells, each as if it were a class
    group : the classes, 0 ... J - 1, -1 where people are left out, shape (C,)
    outputs : the tree's criterion per cell, shape (C, o)
    holds : every demand at once
    recount : see `enforce`
    mixing : the sensitive values expected from the guidance; None where classes are paired by nearness alone
    """
    near = _rungs(people, group, outputs, holds, recount, None)
    if mixing is None:
        return near
    apart = outputs.copy()
    apart[:, : mixing.outputs] = 0  # without the guidance: only the loss of the quasi-identifiers counts
    expected, before = _expected_loss(near, people, apart, mixing, holds)
    if expected <= DEAR * before:
        return near
    mixed = _rungs(people, group, outputs, holds, None, mixing)
    return mixed if _expected_loss(mixed, people, apart, mixing, holds)[0] <= WORTH * expected else near


def _rungs(
    people: ClassStatistics,
    group: IntArray,
    outputs: FloatArray,
    holds: Holds,
    recount: Recount | None,
    mixing: Mixing | None,
) -> list[Rung]:
    chosen = members(group, int(group.max()) + 1)
    weight = (chosen @ people.sizes).astype(float)
    summed = chosen @ (outputs * people.sizes[:, None])
    guidance = None if mixing is None else chosen @ mixing.guidance
    counted = people.pool(chosen)
    classes = np.ones(len(weight), dtype=np.int64)
    parted = np.zeros(0, dtype=bool)
    rungs: list[Rung] = []
    while True:
        if recount is not None:
            counted = recount(people, group, len(weight)).pool(members(group, len(weight)))
        held = holds(counted)
        nearly = held & nearly_fails(counted, holds)
        parted = held | all_of(parted, rungs[-1].above, len(weight)) if rungs else held
        if len(weight) == 1:
            return [*rungs, Rung(group, held, parted, nearly, np.zeros(1, dtype=np.int64), classes)]
        mean = summed / weight[:, None]
        if mixing is None or guidance is None:
            above = _paired(*_near(mean, weight), len(weight))
        else:
            above = _paired(*mixing.partners(counted, mean, guidance, holds), len(weight))
            guidance = members(above, int(above.max()) + 1) @ guidance
        rungs.append(Rung(group, held, parted, nearly, above, classes))
        joined = members(above, int(above.max()) + 1)
        weight, summed, counted = joined @ weight, joined @ summed, counted.pool(joined)
        classes = joined @ classes
        group = np.where(group >= 0, above[group], -1)


def _near(mean: FloatArray, weight: FloatArray) -> tuple[IntArray, FloatArray]:
    return nearest(mean, weight, np.arange(len(weight)), min(NEIGHBOURS, len(weight) - 1))


def _paired(pairs: IntArray, cost: FloatArray, classes: int) -> IntArray:
    """The pair of each class, made by ascending cost, shape (J,); some classes stay alone, but not all."""
    first = np.arange(classes)
    taken = np.zeros(classes, dtype=bool)
    for left, right in pairs[np.lexsort((pairs[:, 1], pairs[:, 0], cost))].tolist():
        if not taken[left] and not taken[right]:
            taken[left] = taken[right] = True
            first[max(left, right)] = min(left, right)
    pair: IntArray = np.unique(first, return_inverse=True)[1]
    return pair


def _expected_loss(
    rungs: Sequence[Rung], people: ClassStatistics, outputs: FloatArray, mixing: Mixing, holds: Holds
) -> tuple[float, float]:
    """The squared error of the unions that would stay if values were as the guidance says, and that of the classes."""
    sizes = people.sizes.astype(float)
    weighted, squares = outputs * sizes[:, None], sizes * (outputs**2).sum(axis=1)
    parted: list[BoolArray] = []
    error: list[FloatArray] = []
    for rung in rungs:
        chosen = members(rung.group, len(rung.classes))
        weight = chosen @ sizes
        held = mixing.holds(people.pool(chosen), weight, chosen @ mixing.guidance, holds)
        parted.append(held | all_of(parted[-1], rungs[len(parted) - 1].above, len(weight)) if parted else held)
        error.append(chosen @ squares - ((chosen @ weighted) ** 2).sum(axis=1) / weight)
    reached, lost = np.ones(1, dtype=bool), 0.0
    for number in range(len(rungs) - 1, 0, -1):
        stays = reached & ~all_of(parted[number - 1], rungs[number - 1].above, len(reached))
        lost += float(error[number][stays].sum())
        reached = (reached & ~stays)[rungs[number - 1].above]
    return lost + float(error[0][reached].sum()), float(error[0].sum())


def all_of(marked: BoolArray, above: IntArray, unions: int) -> BoolArray:
    """Whether all parts of each union are marked, shape (unions,)."""
    all_marked: BoolArray = np.bincount(above, weights=~marked, minlength=unions) == 0
    return all_marked


def nearly_fails(statistics: ClassStatistics, holds: Holds) -> BoolArray:
    """Which classes fail if a member with the class's rarest value had its most frequent one instead, shape (J,)."""
    fails = np.zeros(len(statistics.sizes), dtype=bool)
    for column, histogram in statistics.sensitive.items():
        counts = sparse.csr_array(histogram.counts, copy=True)
        row = np.repeat(np.arange(len(fails)), np.diff(counts.indptr))
        order = np.lexsort((histogram.total[counts.indices], counts.data, row))
        several = np.flatnonzero(np.diff(counts.indptr) > 1)
        counts.data[order[counts.indptr[several]]] -= 1
        counts.data[order[counts.indptr[several + 1] - 1]] += 1
        counts.eliminate_zeros()
        changed = replace(histogram, counts=counts, table=histogram.total)
        fails |= ~holds(replace(statistics, sensitive={**statistics.sensitive, column: changed}))
    return fails
