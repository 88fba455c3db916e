"""Intersection over releases: how many people share a person's class in every release of a window.

Suppose that an attacker knows for each release the class of a person, or that they are in none, and can link the
records of one person from release to release by columns that are kept as they are. Then the candidates are the people
of one history: the same class, or absence, in each release. This is the strongest form of the attack; an attacker who
can link less is left with more people (composition attacks: S. R. Ganta, S. P. Kasiviswanathan, A. Smith, KDD 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import IntArray

#: The class of somebody who is in no class of a release.
ABSENT = -1


def histories(classes: Sequence[IntArray], people: int) -> IntArray:
    """A number per person, the same for people who were in the same class of every release, shape (n,).

    People who were in no release have 0; the others are numbered by their classes, the oldest release first.

    Parameters
    ----------
    classes : per release, oldest first, the class of each person, `ABSENT` for none, shape (n,)
    """
    history = np.zeros(people, dtype=np.int64)
    for of_release in classes:
        width = int(of_release.max(initial=ABSENT)) + 2
        _, history = np.unique(history * width + of_release + 1, return_inverse=True)
    known = np.zeros(people, dtype=bool)
    for of_release in classes:
        known |= of_release != ABSENT
    if not known.all():  # the history of absence everywhere is the smallest, and so has 0 already
        return history
    return history + 1


def classes_of_histories(history: IntArray, newest: IntArray) -> IntArray:
    """The class of each history in the newest former release, `ABSENT` for none, by the history's number.

    Parameters
    ----------
    history : the history of each person, in which the newest release counts, shape (n,)
    newest : the class of each person in that release, `ABSENT` for none, shape (n,)
    """
    classes = np.full(int(history.max(initial=0)) + 1, ABSENT)
    classes[history] = newest
    return classes


@dataclass(frozen=True)
class Intersection:
    """The candidates that a new release would leave to an attacker.

    Attributes
    ----------
    releases : the number of intersected releases, including the new one
    people : people in the new release
    fewest : candidates of the person with the fewest
    below : people with fewer candidates than demanded
    alone : people with no candidate but themselves
    left : people who are in a former release and not in the new one
    left_below : those of them who stand out, since fewer people than demanded have their history
    """

    releases: int
    people: int
    fewest: int
    below: int
    alone: int
    left: int
    left_below: int


def intersection(former: Sequence[IntArray], new: IntArray, k: int) -> Intersection:
    """The candidates of all people in a new release, given the former releases of the window; 0 if it has nobody.

    Parameters
    ----------
    former, new : the class of each person, `ABSENT` for none, shape (n,); the former releases from the oldest on
    """
    history = histories([*former, new], len(new))
    alike = np.bincount(history)[history]
    present = new != ABSENT
    left = ~present & (history > 0)
    return Intersection(
        releases=len(former) + 1,
        people=int(present.sum()),
        fewest=int(alike[present].min()) if present.any() else 0,
        below=int((alike[present] < k).sum()),
        alone=int((alike[present] == 1).sum()),
        left=int(left.sum()),
        left_below=int((alike[left] < k).sum()),
    )
