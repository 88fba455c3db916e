"""Rows beside several tables of groups: what no two of the releases tell."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.linked_releases.classes import (
    LinkedClasses,
    known_by_difference,
    newly_known_beside_groups,
    with_few_candidates,
)
from anon_pipeline.privacy.linked_releases.rows_and_groups import newly_known_unions

#: People in a cell each: a class of rows has the last three, and two tables show a group of ten of them each.
CELLS = np.repeat(np.arange(4), [20, 10, 10, 2])
ROWS = LinkedClasses((CELLS > 0).astype(np.int64), 10)
FIRST, SECOND = (LinkedClasses((group == CELLS).astype(np.int64), 10) for group in (1, 2))


def test_a_class_less_a_group_of_each_of_two_tables() -> None:
    """Of twenty-two people of a class ten are a group of the one table and ten of the other: two are left."""
    for groups in (FIRST, SECOND):
        assert known_by_difference(ROWS, groups) == 0
    assert known_by_difference(FIRST, SECOND) == 0
    assert newly_known_unions(ROWS, [], [FIRST, SECOND], has_rows=True) == 1
    assert newly_known_unions(FIRST, [ROWS], [SECOND], has_rows=False) == 1
    assert (
        newly_known_unions(ROWS, [], [FIRST], has_rows=True)
        == newly_known_unions(FIRST, [ROWS], [], has_rows=False)
        == 0
    )


def test_so_are_people_who_share_the_classes_of_two_releases_of_rows() -> None:
    cells = np.repeat(np.arange(6), [10, 10, 2, 20, 20, 20])  # the first three share age and town
    by_age, by_town, first, second = (
        LinkedClasses(np.isin(cells, members).astype(np.int64), 10)
        for members in ([0, 1, 2, 3], [0, 1, 2, 4], [0], [1])
    )
    assert with_few_candidates(by_age, [by_town]) == 0
    for groups in (first, second):
        assert newly_known_beside_groups(by_age, [by_town], groups) == 0
    assert newly_known_unions(by_age, [], [first, second], has_rows=True) == 0
    weak = LinkedClasses(np.zeros(len(cells), dtype=np.int64), 2)
    for rows in ([by_town], [by_town, weak]):
        assert newly_known_unions(by_age, rows, [first, second], has_rows=True) == 1
        assert newly_known_unions(first, [by_age, *rows], [second], has_rows=False) == 1


def test_what_the_others_tell_without_the_candidate_is_not_held_against_it() -> None:
    everybody = LinkedClasses(np.zeros(len(CELLS), dtype=np.int64), 10)
    assert newly_known_unions(everybody, [ROWS], [FIRST, SECOND], has_rows=True) == 0
    assert newly_known_unions(everybody, [ROWS], [FIRST, SECOND], has_rows=False) == 0


def lightest(releases: Sequence[LinkedClasses], cells: IntArray, k: int) -> list[int]:
    """Of each cell, the people of the smallest union with it in the span of the classes, or k: each union is tried."""
    people, first = np.bincount(cells), np.unique(cells, return_index=True)[1]
    labels = [of.classes[first] for of in releases]
    columns = [of == value for of in labels for value in np.unique(of)]
    span, smallest = np.array(columns, dtype=float).T, [k] * len(people)
    projection = span @ np.linalg.pinv(span)
    for size in range(1, k):
        for union in combinations(range(len(people)), size):
            row, weight = np.isin(range(len(people)), union).astype(float), int(people[list(union)].sum())
            if weight < k and np.allclose(projection @ row, row):
                for cell in union:
                    smallest[cell] = min(smallest[cell], weight)
    return smallest


@pytest.mark.long
def test_nothing_is_missed_of_rows_and_two_tables() -> None:
    draws, newly = np.random.default_rng(0), 0
    for _ in range(4):
        rows, first, second = (LinkedClasses(draws.integers(0, 3, 14), 5) for _ in range(3))
        together = [rows, first, second]
        cells = np.unique(np.stack([of.classes for of in together], axis=1), axis=0, return_inverse=True)[1]
        for candidate in (rows, first):
            others = [of for of in together if of is not candidate]
            known, mine, theirs = (lightest(part, cells, 5) for part in (together, [candidate], others))
            told = any(light < min(alone) for light, *alone in zip(known, mine, theirs, strict=True))
            if candidate is rows:
                assert newly_known_unions(rows, [], [first, second], has_rows=True) or not told
            else:
                assert newly_known_unions(first, [rows], [second], has_rows=False) or not told
            newly += told
    assert newly
