"""Grouping of people who are in former releases: cohorts go down the tree together, so that releases do not intersect.

A cohort is all people with the same history: the same class in each former release of the window, or absent from it.
Somebody who can link a person's records over the releases still finds the whole part of the cohort that shares the new
class, and no part has fewer than k people. Newcomers, who are in no former release, are a cohort too.

Where people who left must have company, others of their cohort are withheld with them. Who is withheld is drawn under
the private key, person by person. A rule without the key could be repeated for each of those who are gone, and only the
one who really left would fit. If all equal people were withheld together, somebody who is missing alone would be known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_pipeline.anonymize.axes import feature_matrix
from anon_pipeline.anonymize.tree import SplitTree
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.keys import Key

#: A cohort follows its majority at a split if at most this share of it would go the other way.
STRAYS = 0.25

#: The class of people who are not released yet.
NOT_RELEASED = -1

#: The number in place of a cohort's of people who are withheld so that those who left have company.
WITHHELD = -1


@dataclass(frozen=True)
class MinimumCohortSize:
    """The smallest number of people of a cohort who must stay together.

    Attributes
    ----------
    k : no part of a cohort is released with fewer people
    split_threshold : a cohort is split only where each part has at least this many people, at least k
    """

    k: int
    split_threshold: int


def in_company(history: IntArray, departed: IntArray, person: IntArray, k: int, key: Key, newest: str) -> IntArray:
    """The cohorts again, with `WITHHELD` for people who are withheld so that at least k of a cohort are gone together.

    Nobody is withheld from a cohort that nobody left, or that at least k people left. If fewer than k people would
    remain, the whole cohort is withheld. For who does not have the key, each of those who are gone is equally likely to
    be one who left. The order of the draw is another one after each release. Otherwise somebody who was once withheld
    would be so again and again, and among those who are gone the others would stand out.

    Parameters
    ----------
    history : cohort of each person, 0 for newcomers, shape (n,)
    departed : people of each cohort who are no longer in the table, shape (cohorts,)
    person : a number for each person, the same in every table, shape (n,)
    key : the dataset's private key
    newest : the newest of the former releases
    """
    missing = np.where((departed > 0) & (departed < k), k - departed, 0)
    missing[0] = 0  # newcomers are in no former release, so nobody can miss them
    concerned = np.flatnonzero(missing[history])
    cohort = history[concerned]
    blocks = np.stack([person[concerned], cohort], axis=1).astype(np.uint64)
    order = np.lexsort((key.pseudorandom("departures", newest, blocks)[:, 0], cohort))
    people = np.bincount(cohort, minlength=len(departed))
    place_in_cohort = np.arange(len(order)) - (np.cumsum(people) - people)[cohort[order]]
    withheld = np.where(people - missing < k, people, missing)
    result = history.copy()
    result[concerned[order[place_in_cohort < withheld[cohort[order]]]]] = WITHHELD
    return result


def place(
    tree: SplitTree,
    codes: npt.NDArray[np.int32],
    history: IntArray,
    counts: IntArray,
    minimum_size: MinimumCohortSize,
) -> IntArray:
    """The node of the tree at which each group of equal people is released, shape (n,), or `NOT_RELEASED`.

    A cohort is split at a node if at least `minimum_size.split_threshold` of its people go each way. If all but a few
    strays go one way, the whole cohort goes there. Otherwise it stays at that node. All people at one node are one
    class, whatever their history. A class is recoded from its members' own values, including those of strays.

    Parameters
    ----------
    codes : the tree's codes of the quasi-identifiers, a row per group of people equal in these and in history, (n, p)
    history : cohort of each row, 0 for newcomers, `WITHHELD` for those who are withheld in any case, shape (n,)
    counts : people of each row, shape (n,)
    """
    released = may_be_released(history, counts, minimum_size.k)
    ranks = feature_matrix(tree.features, codes)
    node = np.zeros(len(codes), dtype=np.int64)
    active = np.flatnonzero(released)
    while len(active):
        # All people of one cohort at one node count together.
        _, group = np.unique(history[active] * len(tree.feature) + node[active], return_inverse=True)
        axis = tree.feature[node[active]]
        inner = axis >= 0
        goes_left = ranks[active, np.maximum(axis, 0)] <= tree.threshold[node[active]]
        people = counts[active].astype(np.float64)
        left = np.bincount(group, weights=people * goes_left)
        right = np.bincount(group, weights=people * ~goes_left)
        fewer = np.minimum(left, right)
        parts = fewer >= minimum_size.split_threshold
        follows = ~parts & (fewer <= STRAYS * (left + right))
        moves = inner & (parts | follows)[group]
        goes_left = np.where(parts[group], goes_left, (left >= right)[group])
        active, goes_left = active[moves], goes_left[moves]
        node[active] = np.where(goes_left, tree.left[node[active]], tree.right[node[active]])
    return np.where(released, node, NOT_RELEASED)


def may_be_released(history: IntArray, counts: IntArray, k: int) -> BoolArray:
    """Which groups may be released at all, shape (n,): none of a cohort of which fewer than k people are left.

    Parameters
    ----------
    history : cohort of each group, 0 for newcomers, `WITHHELD` for those who are withheld in any case, shape (n,)
    counts : people of each group, shape (n,)
    """
    people = np.bincount(history - WITHHELD, weights=counts)
    result: BoolArray = (history != WITHHELD) & (people >= k)[history - WITHHELD]
    return result
