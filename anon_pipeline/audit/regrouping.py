"""The replay attack on the release at hand: whom does the grouping betray to somebody who runs it again?

R. C.-W. Wong, A. W.-C. Fu, K. Wang, J. Pei (VLDB 2007). Some people are drawn. Each exchanges their value with
a member of their class who has another, so that the histogram of the class stays; what stands around the class is
grouped again under other keys, and how likely the class comes out is held against how likely it does with the true
values. Another value is ruled out where it gives the class many times more seldom. Classes that no demand has
touched tell nothing: they follow from the quasi-identifiers, whoever bears which value.

Most classes come out seldom under another key, so chance leans towards what leads to them, and each run is weighed by
how much likelier it is without that (importance sampling; A. B. Owen, "Monte Carlo theory, methods and examples", 2013,
chapter 9).

It does not see what the guide tells (a run trains it on values, too), nor what several people's values tell together,
nor what could reach the class from further away than its nearest classes. So it finds leaks; it proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from anon_pipeline.anonymize.chance import Chance, pairs_of
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import BoolArray, FloatArray, IntArray
from anon_pipeline.keys import Key

#: A person's cell and value, and the cell and value of whom they exchange it with.
Exchange = tuple[int, int, int, int]

#: A value counts as ruled out that gives the class so many times more seldom than the true one.
SELDOM = 100.0
#: So many people are drawn per sensitive column, and their class is grouped again so often for the truth, and for each
#: other value; so many cells are grouped in all, so that an audit of large classes ends.
PEOPLE, TRIES, WORK = 40, 150, 1_500_000
#: So often the class must be found to say how likely it is.
TRUTH_HITS = 3
#: So many of the nearest classes stand around the one that is attacked; the others cannot reach it.
NEIGHBOURS = 12
#: Of what leads to the class, a run takes this share of the draws from the most favourable ones, of which there are so
#: many. Every third run does not lean, so that no run weighs more than three.
LEANING, FAVOURED = (0.0, 0.2, 0.5), 0.03
#: Unions of at most so many classes are looked out for.
UNITED = 4


@dataclass(frozen=True)
class Regrouped:
    """What grouping again says of one sensitive column.

    Attributes
    ----------
    column : the sensitive column
    people : people who were drawn, from classes with more than one value
    certain : the share of them of whom every other value was ruled out; too few tries make it larger, not smaller
    undecided : of whom even the true value hardly ever gave the class
    """

    column: str
    people: int
    certain: float
    undecided: float

    def to_json(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return {
            "column": self.column,
            "people": self.people,
            "certain": round(self.certain, 4),
            "undecided": round(self.undecided, 4),
            "seldom": SELDOM,
        }


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
        return Regrouped(column, 0, 0.0, 0.0)
    cells = kept[diverse[class_of_cell[kept]]][borne.row]
    drawn = random.choice(len(cells), PEOPLE, p=borne.data / borne.data.sum())
    found = []
    for cell, value in zip(cells[drawn].tolist(), borne.col[drawn].tolist(), strict=True):
        attacked = _Attacked(repair, class_of_cell == class_of_cell[cell], key, column)
        found.append(attacked.certain(cell, value, random))
    return Regrouped(column, len(found), found.count(True) / len(found), found.count(None) / len(found))


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
        self._tries = max(1, min(TRIES, WORK // (PEOPLE * int(around.sum()))))

    def certain(self, cell: int, value: int, random: np.random.Generator) -> bool | None:
        """Whether every other value is ruled out for somebody with this one; None where the tries do not tell."""
        if self._untouched:
            return False
        own = int(self._place[cell])
        exchanges: dict[int, list[Exchange]] = {}
        for there in self._here.tolist():
            for other in np.flatnonzero(self._counts[[there]].toarray()[0]).tolist():
                if other != value:
                    exchanges.setdefault(other, []).append((own, value, there, other))
        truth = [self._weight(None, random) for _ in range(self._tries)]
        if np.count_nonzero(truth) < TRUTH_HITS:
            return None
        enough = sum(truth) / SELDOM  # what as many tries of another value must weigh
        return not any(self._reaches(enough, possible, random) for possible in exchanges.values())

    def _reaches(self, enough: float, exchanges: list[Exchange], random: np.random.Generator) -> bool:
        """Whether another value gives the class often enough."""
        summed = 0.0
        for _ in range(self._tries):
            summed += self._weight(exchanges[random.integers(len(exchanges))], random)
            if summed >= enough:
                return True
        return False

    def _weight(self, exchange: Exchange | None, random: np.random.Generator) -> float:
        """The weight of one run after an exchange of values; 0 where the class does not come out."""
        counts = self._counts.copy()
        if exchange is not None:
            own, value, there, other = exchange
            counts[own, value] -= 1
            counts[own, other] += 1
            counts[there, other] -= 1
            counts[there, value] += 1
        return self._comes_out(sparse.csr_array(counts), Key(random.bytes(32)))

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


class Leaning(Chance):
    """Chance that leans towards one class, more in some runs than in others.

    The key decides how much a run leans. Its weight is held against all ways to lean at once (the balance heuristic of
    E. Veach and L. J. Guibas, SIGGRAPH 1995), and so bounded.
    """

    def __init__(self, key: Key, members: IntArray, wanted: dict[str, tuple[set[bytes], bool]]) -> None:
        """`wanted` says by the first word of a decision about which groups it leans, and whether to large numbers."""
        super().__init__(key, members)
        drawn = key.derived("leaning", "coins")
        self._coins, self._leaning = Key(drawn), LEANING[int.from_bytes(drawn[:8], "big") % len(LEANING)]
        self._wanted = wanted
        self._weighed: set[tuple[str, bytes]] = set()
        self._likelihoods = np.ones(len(LEANING))

    @property
    def weight(self) -> float:
        """The likelihood of all that was drawn so far without leaning, over that with it."""
        return float(1 / self._likelihoods.mean())

    @classmethod
    def towards(cls, key: Key, repair: Repair, here: IntArray) -> Leaning:
        """Towards the class of the cells `here`: its parts are merged, parted from others, and then left whole."""
        members = Chance.of(key, repair.cells).members
        before = repair.class_of_cell
        parts = [members[before == group].sum(axis=0) for group in np.unique(before[here])][: UNITED + 1]
        own = members[here].sum(axis=0)
        unions = [np.sum(some, axis=0) for size in range(1, UNITED + 1) for some in combinations(parts, size)]
        pairs = np.array(
            [(first, second) for first in range(len(parts)) for second in range(len(parts)) if first != second]
        )
        partners = pairs_of(np.array(parts), pairs) if len(pairs) else np.empty((0, 2), np.int64)
        wanted = {
            "merged": (_names(parts), False),
            "left": (_names([own]), False),
            "partner": (_names(partners), False),
            "split": (_names([own, *(union - own for union in unions)]), True),
        }
        return cls(key, members, wanted)

    def uniform(self, decision: str, people: IntArray) -> FloatArray:
        drawn = super().uniform(decision, people)
        names, large = self._wanted.get(decision.split(" ")[0], (set(), False))
        if not names:
            return drawn
        places = [place for place, members in enumerate(people) if members.tobytes() in names]
        if not places:
            return drawn
        coins = self._coins.pseudorandom("coin", decision, people[places].view(np.uint64))[:, 0]
        for place, coin in zip(places, (coins >> np.uint64(11)).tolist(), strict=True):
            favourable = 1 - drawn[place] if large else drawn[place]
            favourable = favourable * FAVOURED if coin < self._leaning * 2.0**53 else favourable
            drawn[place] = 1 - favourable if large else favourable
            name = (decision, people[place].tobytes())
            if name not in self._weighed:
                self._weighed.add(name)
                leaning = np.array(LEANING)
                self._likelihoods *= 1 - leaning + (leaning / FAVOURED if favourable < FAVOURED else 0.0)
        return drawn


def _names(groups: list[IntArray] | IntArray) -> set[bytes]:
    return {np.ascontiguousarray(group, dtype=np.int64).tobytes() for group in groups}


def _around(repair: Repair, attacked: BoolArray) -> BoolArray:
    """The cells of the classes that an attacked one was made of, and of the nearest others, a mask of shape (C,)."""
    own = np.unique(repair.class_of_cell[attacked])
    number = int(repair.class_of_cell.max()) + 1
    weight = repair.people.sizes
    people = np.bincount(repair.class_of_cell, weights=weight, minlength=number)
    summed = np.stack(
        [np.bincount(repair.class_of_cell, weights=weight * output, minlength=number) for output in repair.outputs.T],
        axis=1,
    )
    mean = summed / people[:, None]
    apart = np.min([((mean - mean[group]) ** 2).sum(axis=1) for group in own.tolist()], axis=0)
    near = np.argsort(apart, kind="stable")[: NEIGHBOURS + len(own)]
    return np.isin(repair.class_of_cell, np.union1d(near, own))
