"""Grouping of people who are in former releases: cohorts go down the tree together, so that releases do not intersect.

A cohort is all people with the same history: the same class in each former release of the window, or absent from it.
Somebody who can link a person's records over the releases still finds the whole part of the cohort that shares the new
class, and no part has fewer than k people. Newcomers, who are in no former release, are a cohort too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_pipeline.anonymize.axes import feature_matrix
from anon_pipeline.anonymize.tree import SplitTree
from anon_pipeline.arrays import BoolArray, IntArray

#: A cohort follows its majority at a split if at most this share of it would go the other way.
STRAYS = 0.25

#: The class of people who are not released yet.
NOT_RELEASED = -1


@dataclass(frozen=True)
class MinimumCohortSize:
    """The smallest number of people of a cohort who must stay together.

    Attributes
    ----------
    k : no part of a cohort is released with fewer people
    split_threshold : a cohort is split only where each part has at least this many people, at least k
    departures : whether the people of a cohort who left must also be at least k, or nobody; where too few left, more
        people of the cohort are withheld
    """

    k: int
    split_threshold: int
    departures: bool = False


def place(
    tree: SplitTree,
    codes: npt.NDArray[np.int32],
    history: IntArray,
    counts: IntArray,
    departed: IntArray,
    minimum_size: MinimumCohortSize,
) -> IntArray:
    """The node of the tree at which each group of equal people is released, shape (n,), or `NOT_RELEASED`.

    A cohort is split at a node if at least `minimum_size.split_threshold` of its people go each way. If all but a few
    strays go one way, the whole cohort goes there. Otherwise it stays at that node. All people at one node are one
    class, whatever their history. A class is recoded from its members' own values, including those of strays.

    Parameters
    ----------
    codes : the tree's codes of the quasi-identifiers, a row per group of people equal in these and in history, (n, p)
    history : cohort of each row, 0 for newcomers, shape (n,)
    counts : people of each row, shape (n,)
    departed : people of each cohort who are no longer in the table, shape (cohorts,)
    """
    released = _held_together(history, counts, departed, minimum_size)
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


def _held_together(
    history: IntArray, counts: IntArray, departed: IntArray, minimum_size: MinimumCohortSize
) -> BoolArray:
    """Which groups may be released at all, shape (n,): none of a cohort of which fewer than k people are left."""
    cohorts = len(departed)
    people = np.bincount(history, weights=counts, minlength=cohorts).astype(np.int64)
    released = np.ones(len(history), dtype=bool)
    if minimum_size.departures:
        missing = np.where((departed > 0) & (departed < minimum_size.k), minimum_size.k - departed, 0)
        missing[0] = 0  # newcomers are in no former release, so nobody can miss them
        order = np.lexsort((np.arange(len(history)), counts, history))
        before = np.cumsum(counts[order]) - counts[order]
        before -= (np.cumsum(people) - people)[history[order]]
        released[order] = before >= missing[history[order]]
        people = np.bincount(history, weights=counts * released, minlength=cohorts).astype(np.int64)
    result: BoolArray = released & (people >= minimum_size.k)[history]
    return result
