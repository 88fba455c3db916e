"""The replay attack on an actual release: whose values does the grouping reveal to an attacker who runs it again?

R. C.-W. Wong, A. W.-C. Fu, K. Wang, J. Pei (VLDB 2007). Some people are drawn. Each exchanges their value with a member
of their class who has another value, so that the histogram of the class stays the same. The probability of the class
after the exchange is compared with its probability under the true values. If another value gives the class many times
less often, it is ruled out. Classes that the demands have not changed reveal nothing: they follow from the
quasi-identifiers, whichever person has which value.

Every class came from a union of the ladder (enforce.py), by some cuts. An exchange within the union changes no counts
outside of the union or of a cut-off half. So the probability can be computed without trying keys. It is the probability
that the union stays, that each cut is chosen among those after which both halves hold, and that the class is not cut
further. The directions of the cuts are taken as the private key drew them. Given the published classes, the key's draws
are a fair sample of all draws that could have led there, and the ratio is right in the mean over them (conditional
Monte Carlo; A. B. Owen, "Monte Carlo theory, methods and examples", 2013, chapter 8).

The attack does not use the guide, which a run also trains on sensitive values, nor the values of several people
together. So it can find leaks, but it proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import beta

from anon_pipeline.anonymize import enforce
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.classes import members
from anon_pipeline.anonymize.cuts import Cutter, Tried, rounded
from anon_pipeline.anonymize.ladder import all_of, ladder, nearly_fails
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.statistics import ClassStatistics

#: A person's cell and value, and the cell and value of the member with whom they exchange it.
Exchange = tuple[int, int, int, int]

#: A value is ruled out if it gives the class so many times less often than the true one.
SELDOM = 100.0
#: People drawn per sensitive column.
PEOPLE = 400
#: Members of the class with whom each other value is exchanged.
PARTNERS = 4
#: Confidence of the upper bound of the share.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Regrouped:
    """The result of the replay attack on a sensitive column.

    Attributes
    ----------
    column : the sensitive column
    people : people who were drawn, from classes with more than one value
    certain : the share of them for whom every other value was ruled out
    undecided : the share for whom even the true values do not give the class again
    """

    column: str
    people: int
    certain: float
    undecided: float

    @property
    def high(self) -> float:
        """The upper end of the exact one-sided 95 % interval of the share who are certain or undecided.

        C. J. Clopper, E. S. Pearson (Biometrika 1934).
        """
        count = round((self.certain + self.undecided) * self.people)
        return float(beta.ppf(CONFIDENCE, count + 1, self.people - count)) if count < self.people else 1.0

    def to_json(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return {
            "column": self.column,
            "people": self.people,
            "certain": round(self.certain, 4),
            "undecided": round(self.undecided, 4),
            "high": round(self.high, 4),
            "seldom": SELDOM,
        }


def regrouped(repair: Repair, class_of_cell: IntArray, key: Key) -> list[Regrouped]:
    """The attack on a sample of people, for every sensitive column that a demand protects.

    Parameters
    ----------
    repair : the classes before the demands, and the demands
    class_of_cell : the released class of each cell, -1 where its people are left out, shape (C,)
    key : the private key, which draws the sample
    """
    unions = Unions(repair, class_of_cell, key)
    return [_of_column(unions, class_of_cell, key, column) for column in repair.people.sensitive]


def _of_column(unions: Unions, class_of_cell: IntArray, key: Key, column: str) -> Regrouped:
    """The attack on a sample of the people whose class has more than one value of the column."""
    counts = sparse.csr_array(unions.repair.people.sensitive[column].counts)
    counts_of_class = sparse.csr_array(members(class_of_cell, int(class_of_cell.max()) + 1) @ counts)
    diverse = np.diff(counts_of_class.indptr) > 1
    in_diverse = np.flatnonzero((class_of_cell >= 0) & diverse[class_of_cell])
    random = np.random.default_rng(list(key.derived("replayed", column, 16)))
    entries = counts[in_diverse].tocoo()
    if not entries.nnz:
        return Regrouped(column, 0, 0.0, 0.0)
    cells = in_diverse[entries.row]
    drawn = random.choice(len(cells), PEOPLE, p=entries.data / entries.data.sum())
    certain = []
    for cell, value in zip(cells[drawn].tolist(), entries.col[drawn].tolist(), strict=True):
        odds = unions.odds(np.flatnonzero(class_of_cell == class_of_cell[cell]), cell, value, column, random)
        certain.append(None if odds is None else odds < 1 / SELDOM)
    return Regrouped(column, len(certain), certain.count(True) / len(certain), certain.count(None) / len(certain))


class Unions:
    """The ladder of a table, and the unions that its classes came from.

    Parameters
    ----------
    repair : the classes before the demands, and the demands
    class_of_cell : the released class of each cell
    key : the private key
    """

    def __init__(self, repair: Repair, class_of_cell: IntArray, key: Key) -> None:
        self.repair = repair
        kept = class_of_cell >= 0
        self.classes = np.full(len(class_of_cell), -1)
        self.classes[kept] = np.unique(repair.class_of_cell[kept], return_inverse=True)[1]
        self.people = repair.people.without(~kept)
        self.chance = repair.chance(key)
        work = enforce.Work(self.people, self.classes.copy(), self.chance, repair.former)
        self.mixing = repair.mixing()
        self.rungs = ladder(self.people, self.classes, repair.outputs, repair.holds, repair.recount, self.mixing)
        enforce.descend(work, self.rungs, enforce.union_chances(self.rungs, repair.former))
        self.union = work.group
        points = rounded(repair.outputs)
        self.places = (enforce.means(points, self.classes, self.people.sizes), points)

    def union_of(self, here: IntArray) -> Union | None:
        """The union that a class came from; None where the class was there before the demands.

        Parameters
        ----------
        here : the cells of the class, ascending
        """
        inside = np.flatnonzero(self.union == self.union[here[0]])
        levels = [np.unique(rung.group[inside], return_inverse=True)[1] for rung in self.rungs]
        depth = next(number for number, level in enumerate(levels) if not level.any())
        return Union(self, inside, levels[:depth], np.searchsorted(inside, here)) if depth else None

    def odds(self, here: IntArray, cell: int, value: int, column: str, random: np.random.Generator) -> float | None:
        """How likely the best other value of a person gives their class, relative to the true value.

        None where the true value does not give it. A ratio of at least 1 / `SELDOM` is not computed exactly.

        Parameters
        ----------
        here : the cells of the class, ascending
        cell, value : the person's own cell and value
        """
        union = self.union_of(here)
        if union is None:
            return 1.0
        if not union.truth:
            return None
        best = 0.0
        for exchanges in union.exchanges(cell, value, column).values():
            some = random.permutation(len(exchanges))[:PARTNERS]
            mean = 0.0
            for place in some.tolist():
                mean += union.ratio(exchanges[place], column) / len(some)
                if mean >= 1 / SELDOM:
                    return mean
            best = max(best, mean)
        return best


@dataclass(frozen=True, eq=False)
class Step:
    """A class on the way from a union to the attacked class: its cells, and the stages in which cuts were tried.

    Each stage is a cutter, the cuts that it tries, the share of classes that it passes over, and whether it cut this
    class.
    """

    cells: IntArray
    stages: list[tuple[Cutter, Tried | None, float, bool]]


class Union:
    """A union that stayed, and the class that was cut from it.

    Parameters
    ----------
    inside : the cells of the union
    levels : the unions within it that each cell is in, from the classes up
    here : which of these cells are the class
    """

    def __init__(self, table: Unions, inside: IntArray, levels: list[IntArray], here: IntArray) -> None:
        repair = table.repair
        self._inside, self._holds, self._levels, self._here = inside, repair.holds, levels, here
        self._mixing = table.mixing
        self._former = None if repair.former is None else repair.former[inside]
        self._classes = np.array([int(levels[0].max()) + 1])
        self._people = table.people.some(inside)
        self._chance = Chance(table.chance.key, table.chance.members[inside])
        codes = repair.cells.codes[inside]
        self._cutters = [
            (Cutter(repair.features, codes, places[inside], self._chance, repair.holds, repair.least), passed)
            for places, passed in zip(table.places, (enforce.PASSED, 0.0), strict=True)
        ]
        self._counts = {name: sparse.lil_array(histogram.counts) for name, histogram in self._people.sensitive.items()}
        can, nearly, _ = self._parts(self._people)
        self._path = self._cuts(self._whole(can, nearly))
        self.truth = self.likelihood(self._people) if np.array_equal(np.sort(self._path[-1].cells), here) else 0.0

    def exchanges(self, cell: int, value: int, column: str) -> dict[int, list[Exchange]]:
        """The possible exchanges of a person's value with another member, by the other member's value."""
        exchanges: dict[int, list[Exchange]] = {}
        entries = sparse.csr_array(self._counts[column])[self._here].tocoo()
        for there, other in zip(self._here[entries.row].tolist(), entries.col.tolist(), strict=True):
            if other != value:
                exchanges.setdefault(other, []).append((cell, value, int(self._inside[there]), other))
        return exchanges

    def ratio(self, exchange: Exchange, column: str) -> float:
        """The probability of the class after an exchange, relative to that with the true values.

        It is 0 if the exchange changes the values expected from the guidance, since the ladder may then be another.
        """
        if self._mixing is not None and self._mixing.moved_by(column, exchange[:2], exchange[2:]):
            return 0.0
        return self.likelihood(self._exchanged(exchange, column)) / self.truth

    def _exchanged(self, exchange: Exchange, column: str) -> ClassStatistics:
        """The people of the cells after an exchange."""
        counts = self._counts[column].copy()
        (own, value), (there, other) = (
            (int(np.searchsorted(self._inside, cell)), value) for cell, value in (exchange[:2], exchange[2:])
        )
        counts[own, value] -= 1
        counts[own, other] += 1
        counts[there, other] -= 1
        counts[there, value] += 1
        changed = sparse.csr_array(counts)
        changed.eliminate_zeros()
        histogram = replace(self._people.sensitive[column], counts=changed)
        return replace(self._people, sensitive={**self._people.sensitive, column: histogram})

    def likelihood(self, people: ClassStatistics) -> float:
        """The probability that the union of these people stays and is cut as it was; 0 where that is impossible."""
        can, nearly, held = self._parts(people)
        together = self._were_together(np.arange(len(self._inside)))
        stays = enforce.chance_to_stay(
            np.array([can]), np.array([held]), self._classes, np.array([nearly.any()]), np.array([together])
        )
        likelihood = float(stays[0])
        if not likelihood:
            return 0.0
        whole = self._whole(can, nearly)
        for step in self._path:
            share = self._share_whole(step.cells, whole)
            chance = 1.0
            for cutter, tried, passed, cut in step.stages:
                ways = cutter.ways(people, tried)
                if cut:
                    chance *= (1 - passed) / ways if ways else 0.0
                elif ways:
                    chance *= passed
            was_cut = any(cut for *_, cut in step.stages)
            likelihood *= (1 - share) * chance if was_cut else share + (1 - share) * chance
        return likelihood

    def _whole(self, can: bool, nearly: BoolArray) -> float:
        """The chance that the union is not cut, where these of its parts nearly fail."""
        marks = np.array([nearly.any()]), np.array([nearly.all()])
        return float(enforce.share_whole(np.array([can]), self._classes, *marks)[0])

    def _share_whole(self, cells: IntArray, whole: float) -> float:
        """The chance that a class within the union is not cut, where that of the union is `whole`."""
        if self._were_together(cells):
            return enforce.AGAIN
        return whole if len(cells) == len(self._inside) else enforce.WHOLE

    def _were_together(self, cells: IntArray) -> bool:
        """Whether the people of some cells of the union were one class of the former release."""
        former = None if self._former is None else self._former[cells]
        return bool(enforce.were_together(former, np.zeros(len(cells), dtype=np.int64), 1)[0])

    def _parts(self, people: ClassStatistics) -> tuple[bool, BoolArray, bool]:
        """Whether all parts of the union hold or can be split so, which nearly fail, and whether the union holds."""
        holds, parted = self._holds, np.zeros(0, dtype=bool)
        for number, level in enumerate(self._levels):
            counted = people.merge(level, int(level.max()) + 1)
            held = holds(counted)
            if number:
                above = np.zeros(len(parted), dtype=np.int64)
                above[self._levels[number - 1]] = level
                held = held | all_of(parted, above, len(held))
            parted = held
        nearly = holds(counted) & nearly_fails(counted, holds)
        everybody = holds(people.merge(np.zeros(len(people.sizes), dtype=np.int64), 1))
        return bool(parted.all()), nearly, bool(everybody[0])

    def _cuts(self, whole: float) -> list[Step]:
        """The classes that were cut from the union on the way to the attacked class, which is the last."""
        cells, steps, stages = np.arange(len(self._people.sizes)), [], []
        for cutter, passed in self._cutters:
            while True:
                numbers = self._chance.members[cells].sum(axis=0)[None]
                share = self._share_whole(cells, whole)
                left = bool(enforce.is_left(self._chance, numbers, np.array([share]), passed)[0])
                tried = cutter.tried(cells, self._people.sizes)
                fit = [] if left or tried is None else cutter.fit(self._people, tried).tolist()
                half = tried.half(fit[0]) if tried is not None and fit else None
                stages.append((cutter, tried, passed, half is not None))
                if half is None:
                    break
                steps.append(Step(cells, stages))
                cells, stages = half if np.isin(self._here[0], half) else np.setdiff1d(cells, half), []
        return [*steps, Step(cells, stages)]
