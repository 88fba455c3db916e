"""Intersection over releases: how many people share a person's class in every release of a window.

Whoever knows of each release which class a person is in, or that they are in none, and can link the records of one
person from release to release by what is kept as it is, is left with the people of one history: the same class, or
absence, in each release. This is the attack at its strongest; who links less is left with more people (composition
attacks: S. R. Ganta, S. P. Kasiviswanathan, A. Smith, KDD 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import IntArray

#: The class of somebody who is in a release, and of no class of it.
ABSENT = -1


def histories(classes: Sequence[IntArray], people: int) -> IntArray:
    """A number per person, equal for people who were in the same class of every release, shape (n,).

    0 stands for those who were in none; the rest are numbered by their classes, the oldest release first.

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
    if not known.all():  # nobody's history is the smallest there is, and so 0 already
        return history
    return history + 1


@dataclass(frozen=True)
class Intersection:
    """What a new release would leave an attacker with.

    Attributes
    ----------
    releases : how many releases are intersected, the new one included
    people : people in the new release
    fewest : candidates of the person with the fewest
    below : people with fewer candidates than demanded
    alone : people with no candidate but themselves
    left : people who are in a former release, and not in the new one
    left_below : those of them who stand out: fewer than demanded are of their history
    """

    releases: int
    people: int
    fewest: int
    below: int
    alone: int
    left: int
    left_below: int


def intersection(former: Sequence[IntArray], new: IntArray, k: int) -> Intersection:
    """The candidates of everybody in a new release, given the former ones of the window; of no one, the fewest is 0.

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
