"""The replay attack: who reruns the code for every value that somebody may have, which values can they rule out?

R. C.-W. Wong, A. W.-C. Fu, K. Wang, J. Pei (VLDB 2007) call what is learned so a minimality attack. The attacker knows
everybody's quasi-identifiers, the code, the demands and the published histogram of every class; they lack the private
key, and try others. An assignment of values to people that never gives the published classes, whatever the key, is
ruled out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import BoolArray, IntArray

#: Groups people who have these values, under the key of this number; the group of each, -1 for who is left out.
Regroup = Callable[[IntArray, int], IntArray]

#: That a value is not found tells that it is ruled out where it would be found otherwise but for such a chance.
FALSE_EXCLUSION_RATE = 0.01
#: So often the truth is looked for, to know how likely it is.
TRUTH_HITS = 5
#: What the histogram says of a person weighs as much as so many assignments that were found to give the release.
HISTOGRAM = 4.0


@dataclass(frozen=True, eq=False)
class Replay:
    """What an attacker learns of the values of n people, apart from what the published histograms say.

    Attributes
    ----------
    certain : whose value is learned for certain: every other that their class has is ruled out, shape (n,)
    undecided : of whom so many tries did not tell, shape (n,)
    guessed, expected : the chance that the best guess after the attack is right, and before it, shape (n,)
    """

    certain: BoolArray
    undecided: BoolArray
    guessed: npt.NDArray[np.float64]
    expected: npt.NDArray[np.float64]


def same_groups(some: IntArray, others: IntArray) -> bool:
    """Whether two groupings are the same but for the numbers of the groups; -1 stands for nobody's group."""
    if ((some < 0) != (others < 0)).any():
        return False
    pairs = len(np.unique(np.stack([some, others]), axis=1).T)
    return pairs == len(np.unique(some)) == len(np.unique(others))


def replay(
    group: IntArray, values: IntArray, regroup: Regroup, tries: int, seldom: float = 100.0, seed: int = 0
) -> Replay:
    """Attack a release of n people.

    Parameters
    ----------
    group : the published class of each person, -1 for who is left out, shape (n,)
    values : the true value of each, codes 0 ... m - 1, shape (n,)
    regroup : the anonymizer, to be run again
    tries : how often it is run for the truth, and again for all that is not the truth
    seldom : a value is ruled out that gives the release so many times more seldom than the truth
    seed : of the attacker's choices
    """
    random = np.random.default_rng(seed)
    n, m = len(values), int(values.max()) + 1
    number = np.unique(group, return_inverse=True)[1]
    histogram = np.zeros((number.max() + 1, m), dtype=np.int64)
    np.add.at(histogram, (number, values), 1)
    histogram = histogram[number]  # of each person's class, shape (n, m)
    possible = histogram > 0
    truth_found, truth_tries = 0, 0
    while truth_tries < tries and truth_found < TRUTH_HITS:
        truth_found += same_groups(regroup(values, truth_tries), group)
        truth_tries += 1
    explained = np.zeros((n, m), dtype=bool)
    explained[np.arange(n), values] = truth_found > 0
    tried, found = np.zeros((n, m), dtype=np.int64), np.zeros((n, m), dtype=np.int64)
    spread = random.integers(0, 2**62)
    for attempt in range(tries):
        missing = np.argwhere(possible & ~explained)
        if not len(missing):
            break
        assigned = _assigned(number, values, random)
        if attempt >= tries // 4:  # first blindly, which tells how likely values are; then those not found yet
            person, value = missing[random.integers(len(missing))]
            _exchange(assigned, number, int(person), int(value), random)
        tried[np.arange(n), assigned] += 1
        if same_groups(regroup(assigned, int(spread) + attempt), group):
            explained[np.arange(n), assigned] = True
            if attempt < tries // 4:
                found[np.arange(n), assigned] += 1
    rate = truth_found / max(1, truth_tries)
    enough = tried * rate >= -seldom * math.log(FALSE_EXCLUSION_RATE)
    others = possible.copy()
    others[np.arange(n), values] = False
    uncertain = others.any(axis=1)
    ruled_out = ~explained & enough
    certain = np.asarray(uncertain & (ruled_out | ~others).all(axis=1))
    undecided = np.asarray(uncertain & ~certain & ~(explained & others).any(axis=1))
    share = histogram / histogram.sum(axis=1, keepdims=True)
    return Replay(
        certain=certain,
        undecided=undecided,
        guessed=_right(found + HISTOGRAM * share, values),
        expected=_right(share, values),
    )


def _assigned(number: IntArray, values: IntArray, random: np.random.Generator) -> IntArray:
    """Values handed out anew at random within every class."""
    order = np.lexsort((random.random(len(values)), number))
    assigned = np.empty_like(values)
    assigned[np.argsort(number, kind="stable")] = values[order]
    return assigned


def _exchange(assigned: IntArray, number: IntArray, person: int, value: int, random: np.random.Generator) -> None:
    """Give a person a value, in exchange with somebody of their class who has it."""
    if assigned[person] != value:
        holders = np.flatnonzero((number == number[person]) & (assigned == value))
        other = holders[random.integers(len(holders))]
        assigned[[person, other]] = assigned[[other, person]]


def _right(likelihood: npt.NDArray[np.float64], values: IntArray) -> npt.NDArray[np.float64]:
    """The chance that the likeliest value is the true one, ties drawn by lot, shape (n,)."""
    best = np.isclose(likelihood, likelihood.max(axis=1, keepdims=True))
    right: npt.NDArray[np.float64] = best[np.arange(len(values)), values] / best.sum(axis=1)
    return right
