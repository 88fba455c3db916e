"""From classes of k people to classes that meet every demand: a ladder of unions, and cuts of those that are left.

The steps work on classes, not on rows. Near classes are paired, pairs are paired again, and so on up to the whole
table. This ladder follows from the quasi-identifiers and the guidance (ladder.py). From the top down, a union is split
into its two parts where both meet every demand, and stays where one does not. Unions that stayed are then cut in other
ways (cuts.py) where both halves hold. Before all this, a class that fails is left out instead where that costs less.

An attacker may repeat these steps for every value that somebody may have, and compare the outcomes with the release.
The outcome must not tell which value it was (the minimality attack: Wong, Fu, Wang and Pei, VLDB 2007). Suppose that
two members of a class exchange their values. All larger unions around the class count the same as before, so every
union and cut on the way to the class still holds. Three things can change. Each of them is also decided at random under
the private key (chance.py), so that no outcome is ruled out:

- A union stayed because one of its two parts failed, and now both would hold. So some such unions stay at random.
- A cut was passed over because one half failed, and now it would hold. So the order in which cuts are tried is random.
- Nothing could be cut, and now something could. So some classes that could be cut are left whole at random.

A class that is left out failed, and now it would hold. So some classes that hold are left out at random, too, of those
that are dear to merge; which these are, no sensitive value decides.

Where releases follow each other, a union of people who were one class of the former release mostly stays again.

Only few such random factors multiply on the way to a class. To merge each failing class with its nearest neighbour,
and to repeat that, would lose less information; but a class of many such merges comes out under a single assignment of
values.

Demands decide nothing else. People change classes by their quasi-identifiers alone (refinement.py), before any demand
is looked at, and nobody is moved because of a sensitive value. The result fails only if the whole table fails as a
single class, and every part into which the ladder splits it fails too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.classes import members
from anon_pipeline.anonymize.cuts import Cutter, rounded
from anon_pipeline.anonymize.ladder import Recount, Rung, all_of, ladder, nearly_fails
from anon_pipeline.anonymize.mixing import Mixing
from anon_pipeline.anonymize.neighbours import nearest
from anon_pipeline.arrays import BoolArray, FloatArray, IntArray
from anon_pipeline.privacy.statistics import ClassStatistics, Holds
from anon_pipeline.tables import Cells
from anon_pipeline.threads import one_thread

#: The chance that a union of two classes stays although both of its parts hold: `STAYS` where a part would fail if one
#: person had another value, `STAYS_ELSE` elsewhere. For a union of m classes the chance is multiplied by
#: (2 / m) ** SIZE, since a union of more classes loses more.
STAYS, STAYS_ELSE, SIZE = 0.4, 0.02, 0.3
#: The same for a union of more than `LARGEST` classes, whatever its size. With larger chances, one key in ten would
#: lose a tenth of all information or more. With none in the first case, an attacker who repeats the grouping would
#: learn the values of people whose large union had to stay; with none in the second, of people whose large union stayed
#: by chance, since a part would fail if one person had another value.
LARGEST, STAYS_LARGE, STAYS_LARGE_ELSE = 64, 0.04, 0.0008
#: Share of the classes that are not cut although they could be. The second share is for unions that stayed by chance
#: and are likest to those that have to stay, which can seldom be cut: all of their parts would fail if one person had
#: another value, or one would and the union is large. `STAYS_LARGE * STAYS_WHOLE` must not be so seldom that a large
#: union that is not cut is known for one that had to stay.
WHOLE, STAYS_WHOLE = 0.15, 0.3
#: Share of the unions that are not cut between their former classes: they are only cut through these classes.
PASSED = 0.3
#: The chance that people who were one class of the former release are one again, although they could be apart: that
#: their union stays where a part would fail if one person had another value, and that a class is not cut. A union that
#: has to stay does so in every release. If those that stay by chance did not, the two would soon be told apart.
AGAIN = 0.98


@dataclass(eq=False)
class Work:
    """A partition under repair.

    Attributes
    ----------
    people : what the demands look at, per cell
    group : class of each cell, -1 where its people are suppressed, shape (C,)
    chance : random decisions under the key, for the people of the cells
    former : see `Prepared`
    """

    people: ClassStatistics
    group: IntArray
    chance: Chance
    former: IntArray | None = None

    @property
    def classes(self) -> int:
        return int(self.group.max()) + 1


@dataclass(frozen=True, eq=False)
class UnionChances:
    """The chances of the unions of a rung; the key decides by them.

    Attributes
    ----------
    stays : how likely each union is to stay as it is, shape (u,)
    whole : how likely it is that a union which stays is not cut, shape (u,)
    """

    stays: FloatArray
    whole: FloatArray


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table made ready to be repaired under any key: everything that the key does not decide is computed.

    Attributes
    ----------
    people : what the demands look at, per cell, without suppressed people
    group : the classes to begin with, -1 where people are suppressed, shape (C,)
    rungs : see `ladder`
    union_chances : see `union_chances`
    features, codes, holds, least : see `Cutter`
    rounds : for each round of cuts the places of the cells, and the share of unions that is not cut in it
    former : the class of each cell in the former release, -1 for none or several, shape (C,); None without a release
    """

    people: ClassStatistics
    group: IntArray
    rungs: list[Rung]
    union_chances: list[UnionChances]
    features: tuple[SplitFeature, ...]
    codes: npt.NDArray[np.int32]
    holds: Holds
    least: int
    rounds: list[tuple[npt.NDArray[np.float32], float]]
    former: IntArray | None = None

    def under(self, chance: Chance) -> IntArray:
        """The class of each cell, -1 where its people are left out.

        All classes hold if the table as a single class does.

        Parameters
        ----------
        chance : random decisions under the private key, for the people of the cells
        """
        work = Work(self.people, self.group, chance, self.former)
        united, whole = descend(work, self.rungs, self.union_chances)
        for places, passed in self.rounds:
            cutter = Cutter(self.features, self.codes, places, chance, self.holds, self.least)
            united, whole = split(work, cutter, united, whole, passed)
        return work.group


def prepare(  # noqa: PLR0913 (a `Repair` holds them all)
    cells: Cells,
    features: tuple[SplitFeature, ...],
    class_of_cell: IntArray,
    outputs: FloatArray,
    people: ClassStatistics,
    holds: Holds,
    recount: Recount | None,
    least: int,
    mixing: Mixing | None,
    former: IntArray | None,
) -> Prepared:
    """Everything that does not depend on the key.

    Parameters
    ----------
    features : the axes of the tree, along which unions are cut where a hierarchy is strict
    class_of_cell : the classes to begin with, 0 ... J - 1, numbered so that neighbours have near numbers, and -1 where
        people were left out, shape (C,)
    outputs : the tree's criterion per cell, shape (C, o)
    people : statistics of the cells, each as if it were a class, without people who were left out
    holds : every demand at once, judged per class
    recount : counts the people of a population anew for the unions of a rung, since these counts do not add up when
        classes merge; with it nothing is cut, since such counts cannot be taken apart
    least : no class is cut into one with fewer people, since it could not hold
    mixing : the sensitive values expected from the guidance; None where classes are paired by nearness alone
    former : see `Prepared`
    """
    group = class_of_cell
    with one_thread():  # the matrix products of neighbouring blocks are small: several threads wait for each other
        rungs = ladder(people, group, outputs, holds, recount, mixing)
    rounds = []
    if recount is None:
        points = rounded(outputs)
        rounds = [(means(points, group, people.sizes), PASSED), (points, 0.0)]
    chances = union_chances(rungs, former)
    return Prepared(people, group, rungs, chances, features, cells.codes, holds, least, rounds, former)


def chance_to_stay(
    can: BoolArray, held: BoolArray, classes: IntArray, nearly: BoolArray, together: BoolArray
) -> FloatArray:
    """How likely unions are to stay as they are, shape (u,).

    Parameters
    ----------
    can : whether all parts of a union hold, or can be split into parts that hold
    held : whether the union holds
    classes : how many classes the union has
    nearly : whether a part of the union nearly fails
    together : whether the people of the union were one class of the former release
    """
    by_chance = np.where(nearly, STAYS, STAYS_ELSE) * (2 / np.maximum(classes, 2)) ** SIZE
    large = np.where(nearly, STAYS_LARGE, STAYS_LARGE_ELSE)
    by_chance = np.where(together & nearly, AGAIN, np.where(classes <= LARGEST, by_chance, large))
    return np.where(can, np.where(held, by_chance, 0.0), 1.0)


def union_chances(rungs: list[Rung], former: IntArray | None) -> list[UnionChances]:
    """How likely unions are to stay, rung by rung from the top down; for `former` see `Prepared`."""
    chances = []
    for upper, rung in zip(rungs[:0:-1], rungs[-2::-1], strict=True):
        unions = len(upper.holds)
        can = all_of(rung.parted, rung.above, unions)
        nearly = ~all_of(~rung.nearly, rung.above, unions)
        several = np.bincount(rung.above, minlength=unions) > 1
        together = were_together(former, upper.group, unions)
        stays = chance_to_stay(can, upper.holds & several, upper.classes, nearly, together)
        whole = share_whole(can, upper.classes, nearly, all_of(rung.nearly, rung.above, unions))
        chances.append(UnionChances(stays, whole))
    return chances


def descend(work: Work, rungs: list[Rung], chances: list[UnionChances]) -> tuple[BoolArray, FloatArray]:
    """Split unions from the top down, and set the classes.

    Returns
    -------
    Which classes are unions, and for each class the chance that it is not cut, both of shape (J,).
    """
    reached = np.ones(1, dtype=bool)
    number = np.full(len(rungs[0].group), -1)
    whole: list[FloatArray] = []
    stands = 0
    people = [work.chance.joined(members(rungs[0].group, len(rungs[0].holds)))]
    for rung, upper in pairwise(rungs):
        people.append(np.zeros((len(upper.holds), 2), dtype=np.int64))
        np.add.at(people[-1], rung.above, people[-2])
    for upper, rung, of_union, joined in zip(rungs[:0:-1], rungs[-2::-1], chances, people[:0:-1], strict=True):
        stays = reached & (work.chance.uniform("stays", joined) <= of_union.stays)
        _number(number, upper.group, stays, stands)
        whole.append(of_union.whole[stays])
        stands += int(stays.sum())
        reached = (reached & ~stays)[rung.above]
    united = stands
    _number(number, rungs[0].group, reached, stands)
    stands += int(reached.sum())
    # Neighbouring classes keep neighbouring numbers: a union takes the place of its first class.
    order = np.argsort(_first(rungs[0].group, number, stands), kind="stable")
    place = np.append(np.argsort(order), -1)  # the last is the place of class -1
    work.group = place[number]
    shares = np.concatenate([*whole, np.zeros(stands - united)])
    return (np.arange(stands) < united)[order], shares[order]


def share_whole(can: BoolArray, classes: IntArray, nearly: BoolArray, all_nearly: BoolArray) -> FloatArray:
    """The chance that each union is not cut, shape (u,); see `STAYS_WHOLE`.

    Parameters
    ----------
    can, classes, nearly : see `chance_to_stay`
    all_nearly : whether all parts of the union nearly fail
    """
    return np.where(can & (all_nearly | (nearly & (classes > LARGEST))), STAYS_WHOLE, WHOLE)


def were_together(former: IntArray | None, group: IntArray, classes: int) -> BoolArray:
    """Which classes have only people who were one class of the former release, shape (J,); see `former_classes`."""
    if former is None:
        return np.zeros(classes, dtype=bool)
    together: BoolArray = former_classes(former, group, classes) >= 0
    return together


def former_classes(former: IntArray, group: IntArray, classes: int) -> IntArray:
    """The class of the former release in which all cells of each class were, -1 where there is none, shape (J,).

    Parameters
    ----------
    former : the class of each cell in the former release, -1 for none or several, shape (C,)
    group : the class of each cell, -1 where its people are left out, shape (C,)
    classes : the number of classes, J
    """
    kept = group >= 0
    least, most = np.full(classes, np.iinfo(np.int64).max), np.full(classes, -1)
    np.minimum.at(least, group[kept], former[kept])
    np.maximum.at(most, group[kept], former[kept])
    return np.where(least == most, least, -1)


def _number(number: IntArray, group: IntArray, chosen: BoolArray, start: int) -> None:
    """Number the cells of the chosen classes, from `start` on."""
    numbers = start + np.cumsum(chosen) - 1
    here = (group >= 0) & chosen[group]
    number[here] = numbers[group[here]]


def _first(group: IntArray, number: IntArray, stands: int) -> IntArray:
    """The smallest old class number among the cells of each new class, shape (stands,)."""
    least = np.full(stands, len(group))
    np.minimum.at(least, number[number >= 0], group[number >= 0])
    return least


def means(points: npt.NDArray[np.float32], classes: IntArray, people: IntArray) -> npt.NDArray[np.float32]:
    """Every cell where its class is, in whole numbers, shape (C, d); suppressed cells where they are."""
    kept = classes >= 0
    chosen = members(classes, int(classes.max()) + 1)
    weight = chosen @ people
    places = points.copy()
    places[kept] = np.rint((chosen @ (points.astype(np.float64) * people[:, None])) / weight[:, None])[classes[kept]]
    return places


def leave_out(
    people: ClassStatistics, group: IntArray, outputs: FloatArray, holds: Holds, suppressible: int, chance: Chance
) -> tuple[ClassStatistics, IntArray]:
    """Leave out dear classes that fail, and at random under the key some that hold.

    If only classes that fail were left out, everybody would know which values their people have: the values with which
    they fail.

    Returns
    -------
    The statistics of the cells without the people who are left out, and the class of each cell, -1 for these people.
    """
    chosen = members(group, int(group.max()) + 1)
    counted = people.pool(chosen)
    held = holds(counted)
    odds = np.where(held, np.where(held & nearly_fails(counted, holds), STAYS, STAYS_ELSE), 1.0)
    drawn = chance.uniform("left out", chance.joined(chosen))
    left_out = dear(people.sizes, chosen, outputs, suppressible) & (drawn <= odds)
    if not left_out.any():
        return people, group
    return people.without(left_out[group]), np.where(left_out, -1, np.cumsum(~left_out) - 1)[group]


def dear(sizes: IntArray, chosen: sparse.csr_array, outputs: FloatArray, suppressible: int) -> BoolArray:
    """The classes that lose more by any merging than by being left out, as many as may be; by no sensitive value.

    Those that save most per person come first. A person who is left out loses the whole variance of the criterion, of
    which a class has lost a part already.

    Parameters
    ----------
    sizes : people per cell, shape (C,)
    chosen : the cells of each class, a 0-1 matrix of shape (J, C)
    suppressible : how many people may be left out
    """
    weight = (chosen @ sizes).astype(float)
    result = np.zeros(len(weight), dtype=bool)
    if len(weight) == 1:
        return result
    mean = (chosen @ (outputs * sizes[:, None])) / weight[:, None]
    cheapest = nearest(mean, weight, np.arange(len(weight)), 1)[1]
    everyone = sizes / sizes.sum()
    centre = np.einsum("c,co->o", everyone, outputs)
    variance = float(np.einsum("c,co->", everyone, (outputs - centre) ** 2))
    within = chosen @ (sizes * (outputs**2).sum(axis=1)) - weight * (mean**2).sum(axis=1)
    saved = cheapest - (weight * variance - within)
    for place in np.argsort(-saved / weight, kind="stable")[: (saved > 0).sum()].tolist():
        if weight[place] <= suppressible and (~result).sum() > 1:
            suppressible -= int(weight[place])
            result[place] = True
    return result


def is_left(chance: Chance, numbers: IntArray, whole: FloatArray, passed: float) -> BoolArray:
    """Which classes are left as they are, for good or for this time; `numbers` are those of their people, (g, 2)."""
    left = chance.uniform("left whole", numbers) < whole
    return left | (chance.uniform("passed", numbers) < passed) if passed else left


def split(
    work: Work, cutter: Cutter, candidates: BoolArray, whole: FloatArray, passed: float
) -> tuple[BoolArray, FloatArray]:
    """Cut unions where both halves hold, again and again; returns which classes are unions or parts of one.

    `whole` is the chance of each class to be left as it is, shape (J,); the chances of the new classes are returned
    too. People who were one class of the former release are one again with the chance `AGAIN`. With the chance `passed`
    a class is not cut this time.
    """
    merged, stem = candidates, np.arange(work.classes)
    while candidates.any():
        # A class that is too small for two halves is not looked at any further.
        people = np.bincount(work.group + 1, weights=work.people.sizes, minlength=len(candidates) + 1)[1:]
        candidates = candidates & (people >= 2 * cutter.least)
        cells = np.flatnonzero(candidates[work.group] & (work.group >= 0))
        cells = cells[np.argsort(work.group[cells], kind="stable")]
        starts = np.flatnonzero(np.diff(work.group[cells], prepend=-1))
        numbers = np.add.reduceat(work.chance.members[cells], starts)
        candidate = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(cells)))
        share = whole[work.group[cells[starts]]]
        if work.former is not None:
            share = np.where(were_together(work.former[cells], candidate, len(starts)), AGAIN, share)
        cells = cells[~is_left(work.chance, numbers, share, passed)[candidate]]
        if not len(cells):
            break
        starts = np.flatnonzero(np.diff(work.group[cells], prepend=-1))
        known = len(whole)
        halved = []
        for half in cutter.halves(work.people, cells, starts):
            halved.append(int(work.group[half[0]]))
            work.group[half] = known + len(halved) - 1
        added = len(halved)
        stem = np.append(stem, stem[halved])
        whole = np.append(whole, np.full(added, WHOLE))
        merged = np.append(merged, np.ones(added, dtype=bool))
        candidates = np.zeros(known + added, dtype=bool)
        candidates[halved] = candidates[known:] = True
    # Neighbouring classes keep neighbouring numbers: the parts of a class follow each other.
    order = np.argsort(stem, kind="stable")
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), -1  # the last is the place of class -1
    work.group = place[work.group]
    return merged[order], whole[order]
