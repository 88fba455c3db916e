"""The replay attack: an attacker reruns the code for every value that a person may have, to rule some values out.

R. C.-W. Wong, A. W.-C. Fu, K. Wang, J. Pei (VLDB 2007) call this a minimality attack. The attacker knows everybody's
quasi-identifiers, the code, the demands and the published histogram of every class. They lack the private key, and try
other keys. If an assignment of values to people gives the published classes under no key, it is ruled out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import BoolArray, IntArray

#: Groups people with these values, under the key of this number: gives the group of each, -1 for people left out.
Regroup = Callable[[IntArray, int], IntArray]

#: A value that gives the release in no try is ruled out if a possible value would fail so only with this probability.
FALSE_EXCLUSION_RATE = 0.01
#: The true values are tried until they give the release so many times, to estimate how often they do.
TRUTH_HITS = 5
#: The weight of a class's histogram in a guess, in assignments that gave the release.
HISTOGRAM = 4.0


@dataclass(frozen=True, eq=False)
class Replay:
    """What an attacker learns about the values of n people beyond the published histograms.

    Attributes
    ----------
    certain : people whose value is learned for certain: every other value of their class is ruled out, shape (n,)
    undecided : people for whom the tries were too few to decide, shape (n,)
    guessed, expected : the chance that the best guess after the attack is right, and before it, shape (n,)
    """

    certain: BoolArray
    undecided: BoolArray
    guessed: npt.NDArray[np.float64]
    expected: npt.NDArray[np.float64]


def same_groups(some: IntArray, others: IntArray) -> bool:
    """Whether two groupings are equal except for the numbers of the groups; -1 stands for people left out."""
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
    group : the published class of each person, -1 for people left out, shape (n,)
    values : the true value of each person, codes 0 ... m - 1, shape (n,)
    regroup : the anonymizer, to be run again
    tries : how often it is run for the true values at most, and again for other assignments
    seldom : a value is ruled out if it gives the release so many times less often than the true one
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
        if attempt >= tries // 4:  # first at random, to learn how likely values are; then values not explained yet
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
    """The values, shuffled within every class."""
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
