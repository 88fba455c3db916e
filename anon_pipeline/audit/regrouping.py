"""The replay attack on the release at hand: whom does the grouping betray to somebody who runs it again?

R. C.-W. Wong, A. W.-C. Fu, K. Wang, J. Pei (VLDB 2007). Some people are drawn. Each exchanges their value with
a member of their class who has another, so that the histogram of the class stays; what stands around the class is
grouped again under other keys, and how likely the class comes out is held against how likely it does with the true
values. Another value is told to be wrong where it gives the class many times more seldom. Classes that no demand has
touched tell nothing: they follow from the quasi-identifiers, whoever bears which value.

Most classes come out seldom under another key, so chance leans towards what leads to them, and each run is weighed by
how much likelier it is without that (importance sampling; A. B. Owen, "Monte Carlo theory, methods and examples", 2013,
chapter 9).

It does not see what the guide tells (a run trains it on values, too), nor what several people's values tell together,
nor what could reach the class from further away than its nearest classes. So it finds leaks; it proves nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.anonymize.chance import Chance, pairs_of
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.keys import Key
from anon_pipeline.tables import IntArray

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

#: A value is told for certain where every other gives the class so many times more seldom, and likely where so many.
CERTAIN, LIKELY = 100.0, 10.0
#: So many people are drawn per sensitive column. For the truth and for each other value their class is grouped again so
#: often, until it was found so often; and so many cells are grouped in all, so that an audit of large classes ends.
PEOPLE, TRIES, FOUND, WORK = 60, 240, 12, 1_200_000
#: So many of the nearest classes stand around the one that is attacked; the others cannot reach it.
AROUND = 12
#: Of what leads to the class, half the draws are taken from this share of the most favourable ones.
FAVOURED = 0.03
#: Unions of at most so many classes are looked out for.
UNITED = 4


@dataclass(frozen=True)
class Regrouped:
    """What grouping again says of one sensitive column.

    Attributes
    ----------
    column : the sensitive column
    people : people who were drawn, from classes with more than one value
    certain : the share of them of whom every other value gives the class a hundred times more seldom
    likely : of whom every other value gives it ten times more seldom, the certain ones among them
    undecided : of whom so many tries did not tell whether they are likely
    """

    column: str
    people: int
    certain: float
    likely: float
    undecided: float

    def to_json(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        shares = {name: round(getattr(self, name), 4) for name in ("certain", "likely", "undecided")}
        return {"column": self.column, "people": self.people, **shares}


@dataclass(frozen=True)
class Odds:
    """How much more seldom the likeliest other value gives the class: from at least to at most so many times."""

    low: float
    high: float


def regrouped(repair: Repair, class_of_cell: IntArray, key: Key) -> list[Regrouped]:
    """The attack on a sample of people, for every sensitive column that a demand protects.

    Parameters
    ----------
    repair : the classes before the demands, and the demands
    class_of_cell : the released class of each cell, -1 where its people are left out, shape (C,)
    key : the private key, which draws the sample; it is none of the keys that are tried
    """
    return [_of_column(repair, class_of_cell, key, column) for column in repair.people.sensitive]


def _of_column(repair: Repair, class_of_cell: IntArray, key: Key, column: str) -> Regrouped:
    counts = sparse.csr_array(repair.people.sensitive[column].counts)
    kept = np.flatnonzero(class_of_cell >= 0)
    of_class = sparse.csr_array(
        (np.ones(len(kept), np.int64), (class_of_cell[kept], kept)),
        shape=(int(class_of_cell.max()) + 1, len(class_of_cell)),
    )
    diverse = np.diff(sparse.csr_array(of_class @ counts).indptr) > 1
    random = np.random.default_rng(list(key.derived("replayed", column, 16)))
    borne = counts[kept[diverse[class_of_cell[kept]]]].tocoo()
    if not borne.nnz:
        return Regrouped(column, 0, 0.0, 0.0, 0.0)
    cells = kept[diverse[class_of_cell[kept]]][borne.row]
    drawn = random.choice(len(cells), PEOPLE, p=borne.data / borne.data.sum())
    odds = []
    for cell, value in zip(cells[drawn].tolist(), borne.col[drawn].tolist(), strict=True):
        attacked = _Attacked(repair, class_of_cell == class_of_cell[cell], key, column)
        odds.append(attacked.odds(cell, value, random))
    return Regrouped(
        column,
        len(odds),
        float(np.mean([one.low >= CERTAIN for one in odds])),
        float(np.mean([one.low >= LIKELY for one in odds])),
        float(np.mean([one.low < LIKELY <= one.high for one in odds])),
    )


class _Attacked:
    """One class, and what stands around it.

    Parameters
    ----------
    members : the cells of the class, a mask of shape (C,)
    """

    def __init__(self, repair: Repair, members: BoolArray, key: Key, column: str) -> None:
        around = _around(repair, members)
        self._repair, self._here = repair.around(around), np.flatnonzero(members[around])
        self._place = np.cumsum(around) - 1
        self._key, self._column = key, column
        before = self._repair.class_of_cell
        self._parts = np.unique(before[self._here])
        self._untouched = len(self._parts) == 1 and int((before == self._parts[0]).sum()) == len(self._here)
        self._counts = sparse.lil_array(self._repair.people.sensitive[column].counts)
        self._tries = max(FOUND, min(TRIES, WORK // (PEOPLE * int(around.sum()))))

    def odds(self, cell: int, value: int, random: np.random.Generator) -> Odds:
        """How much likelier the class is with a person's true value than with the likeliest other one."""
        if self._untouched:
            return Odds(1.0, 1.0)
        own = int(self._place[cell])
        others = [
            (there, int(other))
            for there in self._here.tolist()
            for other in np.flatnonzero(self._counts[[there]].toarray()[0])
            if other != value
        ]
        truth = self._likelihood([None], random)
        if not truth.found:
            return Odds(0.0, math.inf)
        found = []
        for other in sorted({one for _, one in others}):
            exchanges = [(own, value, there, one) for there, one in others if one == other]
            found.append(self._likelihood(exchanges, random))
        # Where it was never found, it is no likelier than what three finds of the heaviest kind would say.
        most = max(max(one.share, 3 * max(truth.heaviest, one.heaviest) / one.tries) for one in found)
        least = max(one.share for one in found)
        seen = max(one.found for one in found) >= 3
        low = truth.share / (least if seen else most)
        return Odds(low, low if seen else (truth.share / least if least else math.inf))

    def _likelihood(
        self, exchanges: list[tuple[int, int, int, int] | None], random: np.random.Generator
    ) -> _Likelihood:
        """How likely the class is where two people have changed their values, drawn anew for each try."""
        weights = []
        tries = 0
        while tries < self._tries and len(weights) < FOUND:
            tries += 1
            exchange = exchanges[random.integers(len(exchanges))]
            counts = self._counts.copy()
            if exchange is not None:
                own, value, there, other = exchange
                counts[own, value] -= 1
                counts[own, other] += 1
                counts[there, other] -= 1
                counts[there, value] += 1
            weight = self._comes_out(sparse.csr_array(counts), Key(random.bytes(32)))
            if weight:
                weights.append(weight)
        return _Likelihood(len(weights), tries, sum(weights) / tries, max(weights, default=0.0))

    def _comes_out(self, counts: sparse.csr_array, key: Key) -> float:
        """The weight of a run in which the class comes out; 0 where it does not."""
        counts.eliminate_zeros()
        local, here = self._repair, self._here
        histogram = replace(local.people.sensitive[self._column], counts=counts)
        people = replace(local.people, sensitive={**local.people.sensitive, self._column: histogram})
        chance = Leaning.towards(key, local, here)
        group = local.repaired(key, people, chance)
        together = group[here[0]] >= 0 and np.array_equal(np.flatnonzero(group == group[here[0]]), here)
        return chance.weight if together else 0.0


@dataclass(frozen=True)
class _Likelihood:
    """How often a class was found in so many tries, how likely that makes it, and the heaviest find."""

    found: int
    tries: int
    share: float
    heaviest: float


class Leaning(Chance):
    """Chance that leans towards one class, and how much likelier what it drew is without that.

    Attributes
    ----------
    weight : the likelihood of all that was drawn so far, over that under which it was drawn
    """

    def __init__(self, key: Key, members: IntArray, wanted: dict[str, tuple[set[bytes], bool]]) -> None:
        """`wanted` says by the first word of a decision about which groups it leans, and whether to large numbers."""
        super().__init__(key, members)
        self._coins = Key(key.derived("leaning", "coins"))
        self._wanted = wanted
        self._weighed: set[tuple[str, bytes]] = set()
        self.weight = 1.0

    @classmethod
    def towards(cls, key: Key, repair: Repair, here: IntArray) -> Leaning:
        """Towards the class of the cells `here`: its parts are merged, parted from others, and then left whole."""
        members = Chance.of(key, repair.cells).members
        before = repair.class_of_cell
        parts = [members[before == one].sum(axis=0) for one in np.unique(before[here])][: UNITED + 1]
        own = members[here].sum(axis=0)
        unions = [np.sum(some, axis=0) for size in range(1, UNITED + 1) for some in combinations(parts, size)]
        pairs = np.array([(one, other) for one in range(len(parts)) for other in range(len(parts)) if one != other])
        partners = pairs_of(np.array(parts), pairs) if len(pairs) else np.empty((0, 2), np.int64)
        wanted = {
            "merged": (_names(parts), False),
            "left": (_names([own]), False),
            "partner": (_names(partners), False),
            "split": (_names([own, *(one - own for one in unions)]), True),
        }
        return cls(key, members, wanted)

    def uniform(self, decision: str, people: IntArray) -> FloatArray:
        drawn = super().uniform(decision, people)
        names, large = self._wanted.get(decision.split(" ")[0], (set(), False))
        if not names:
            return drawn
        places = [place for place, one in enumerate(people) if one.tobytes() in names]
        if not places:
            return drawn
        coins = self._coins.pseudorandom("coin", decision, people[places].view(np.uint64))[:, 0] % np.uint64(2)
        for place, coin in zip(places, coins.tolist(), strict=True):
            favourable = 1 - drawn[place] if large else drawn[place]
            favourable = favourable * FAVOURED if coin else favourable
            drawn[place] = 1 - favourable if large else favourable
            name = (decision, people[place].tobytes())
            if name not in self._weighed:
                self._weighed.add(name)
                self.weight /= 0.5 + (0.5 / FAVOURED if favourable < FAVOURED else 0.0)
        return drawn


def _names(groups: list[IntArray] | IntArray) -> set[bytes]:
    return {np.ascontiguousarray(one, dtype=np.int64).tobytes() for one in groups}


def _around(repair: Repair, attacked: BoolArray) -> BoolArray:
    """The cells of the classes that an attacked one was made of, and of the nearest others, a mask of shape (C,)."""
    own = np.unique(repair.class_of_cell[attacked])
    number = int(repair.class_of_cell.max()) + 1
    weight = repair.people.sizes
    people = np.bincount(repair.class_of_cell, weights=weight, minlength=number)
    summed = np.stack(
        [np.bincount(repair.class_of_cell, weights=weight * one, minlength=number) for one in repair.outputs.T], axis=1
    )
    mean = summed / people[:, None]
    apart = np.min([((mean - mean[one]) ** 2).sum(axis=1) for one in own.tolist()], axis=0)
    near = np.argsort(apart, kind="stable")[: AROUND + len(own)]
    return np.isin(repair.class_of_cell, np.union1d(near, own))
