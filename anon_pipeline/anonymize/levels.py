"""Ordered categories: a spec's order of a column's values, and what classes show of such a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.anonymize.hierarchy import key_of
from anon_pipeline.anonymize.naming import named_ends
from anon_pipeline.arrays import IntArray
from anon_pipeline.errors import InputError
from anon_pipeline.tables import Domain


def in_order(domain: Domain, levels: Sequence[str]) -> Domain:
    """The column with its values in the order of `levels`, lowest first.

    Raises
    ------
    InputError
        For a column of numbers or dates, or values that are not among the levels; none of these is named.
    """
    if domain.ordered:
        raise InputError(
            f"columns.{domain.name}.levels: are of texts, and the column holds {domain.type} values, which have an "
            "order; say type: categorical, or leave out the levels"
        )
    key = key_of(domain.storage)
    place = {key(level): number for number, level in enumerate(levels)}
    level_of = np.array([place.get(key(str(value)), -1) for value in domain.values], dtype=np.int64)
    if (level_of < 0).any():
        people = int(domain.counts[1:][level_of < 0].sum())
        raise InputError(
            f"columns.{domain.name}.levels: {(level_of < 0).sum()} of the column's {len(level_of)} values (of {people} "
            "people) are not among them; add these, or name them under source.missing"
        )
    return replace(domain, levels=level_of)


def median_levels(levels: IntArray, members: sparse.csr_array, withheld: int, named: npt.NDArray[np.bool_]) -> IntArray:
    """The code of the level that stands for each class, shape (J,).

    The level is the lower median of the members who have a value. Where fewer than two members have that level, or it
    may not be named, it is the nearest level that two have and that may be named, the lower one on a tie. It is missing
    (0) where most members have no value, and `withheld` where there is no such level.

    Parameters
    ----------
    levels : place of each value in the order, shape (m,)
    members : people by class and code, shape (J, m + 1)
    named : which codes may be named, shape (m + 1,)
    """
    classes = members.shape[0]
    code_of = np.argsort(levels) + 1  # codes in the order of their levels
    entries = members[:, code_of].tocoo()
    group, place, people = entries.coords[0], entries.coords[1], entries.data
    order = np.lexsort((place, group))
    group, place, people = group[order], place[order], people[order]
    known = np.bincount(group, weights=people, minlength=classes).astype(np.int64)
    reached = np.cumsum(people)
    before = np.cumsum(known) - known
    median = np.zeros(classes, dtype=np.int64)
    some = known > 0
    median[some] = place[np.searchsorted(reached, before[some] + (known[some] + 1) // 2)]

    borne = np.flatnonzero((people > 1) & named[code_of[place]])
    apart = np.abs(levels[code_of - 1][place[borne]] - levels[code_of - 1][median[group[borne]]])
    nearest = borne[np.lexsort((place[borne], apart, group[borne]))]
    has, first = np.unique(group[nearest], return_index=True)
    representative = np.full(classes, withheld, dtype=np.int64)
    representative[has] = code_of[place[nearest[first]]]
    missing = np.asarray(members[:, [0]].sum(axis=1)).ravel()
    representative[missing > known] = 0 if named[0] else withheld
    return representative


def named_spans(
    levels: IntArray, members: sparse.csr_array, named: npt.NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray]:
    """As `spans`, with each end moved outwards to a level that may be named, 0 where it is open; `named` by code."""
    code_of = np.argsort(levels) + 1
    rank = np.argsort(code_of)  # of each value among those that occur
    low, high, known = spans(levels, members)
    some = np.flatnonzero(known)
    bearers = np.asarray(members.sum(axis=0)).ravel()[code_of]
    first, last = named_ends(rank[low[some] - 1], rank[high[some] - 1], bearers, named[code_of])
    low[some], high[some] = np.r_[0, code_of][first + 1], np.r_[0, code_of][last + 1]
    return low, high, known


def spans(levels: IntArray, members: sparse.csr_array) -> tuple[IntArray, IntArray, IntArray]:
    """The codes of the lowest and the highest level in each class (0 where nobody has a value), and how many have one.

    Each of shape (J,).
    """
    code_of = np.argsort(levels) + 1
    by_level = members[:, code_of].tocsr()
    by_level.sort_indices()
    some = np.flatnonzero(np.diff(by_level.indptr))
    low, high = np.zeros(members.shape[0], dtype=np.int64), np.zeros(members.shape[0], dtype=np.int64)
    low[some] = code_of[by_level.indices[by_level.indptr[some]]]
    high[some] = code_of[by_level.indices[by_level.indptr[some + 1] - 1]]
    return low, high, np.asarray(by_level.sum(axis=1)).ravel().astype(np.int64)
