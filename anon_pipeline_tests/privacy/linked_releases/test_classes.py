"""Releases of the same people together: who is left with few candidates, and what follows by subtraction."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.linked_releases.classes import (
    LinkedClasses,
    known_by_difference,
    newly_known_beside_groups,
    newly_known_beside_rows,
    with_few_candidates,
)
from anon_pipeline.privacy.linked_releases.tables import NOT_IN


def classes(*sizes: int, k: int = 10) -> LinkedClasses:
    return LinkedClasses(np.repeat(np.arange(len(sizes)), sizes), k)


def test_the_last_of_a_class_is_known_by_subtracting_the_others() -> None:
    """Eleven people of 30 to 34 less ten of 30 to 33 are one person of 34."""
    rows, groups = classes(11, 20), classes(10, 21)
    assert known_by_difference(rows, groups) == 1
    assert with_few_candidates(rows, [groups]) == 1


def test_the_same_classes_and_larger_ones_tell_nothing() -> None:
    rows = classes(11, 20, 10)
    for other in (rows, classes(31, 10), classes(41), classes(11, 10, 10, 10)):
        assert known_by_difference(rows, other) == known_by_difference(other, rows) == 0
        assert with_few_candidates(rows, [other]) == with_few_candidates(other, [rows]) == 0


def test_who_is_left_out_of_one_release_is_what_the_other_has_more() -> None:
    rows = LinkedClasses(np.r_[np.zeros(10), np.full(4, NOT_IN), np.ones(10)].astype(np.int64), 10)
    everybody = classes(24)
    assert known_by_difference(rows, everybody) == 4
    assert with_few_candidates(rows, [everybody]) == with_few_candidates(everybody, [rows]) == 4


def test_people_whom_the_weaker_release_shows_have_its_k() -> None:
    few, many = classes(5, 6, 9, k=5), classes(11, 9, k=9)
    assert with_few_candidates(few, [many]) == 0
    assert with_few_candidates(classes(4, 7, 9, k=4), [classes(11, 9, k=9)]) == 0


def test_who_has_enough_for_the_larger_k_in_each_release_has_it_in_both() -> None:
    """A release at k = 2 that leaves everybody ten left three of them beside one at k = 10, and passed."""
    strict, crossed = classes(10, 10), LinkedClasses(np.repeat([0, 1, 0, 1], [3, 7, 7, 3]), 2)
    assert with_few_candidates(strict, [crossed]) == with_few_candidates(crossed, [strict]) == 20
    # Whom the weaker release leaves fewer than ten had them never.
    finer = LinkedClasses(np.repeat([0, 1, 2], [3, 7, 10]), 2)
    assert with_few_candidates(strict, [finer]) == with_few_candidates(finer, [strict]) == 0


def test_so_it_is_with_what_follows_by_subtraction() -> None:
    """A class of 24 at k = 20 less a group of twelve left twelve people, who are in a group of 48, and passed."""
    rows, groups = classes(24, 36, k=20), classes(12, 48, k=10)
    for one, other in ((rows, groups), (groups, rows)):
        assert known_by_difference(one, other) == 12  # not those of the group, which tells them alone
    assert known_by_difference(replace(rows, k=10), groups) == 0


def test_a_third_release_that_demands_less_lowers_nothing_between_the_others() -> None:
    """With everybody in one class at k = 2 in the home, no two releases at k = 10 were refused."""
    crossed = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 5, axis=0)
    first, second = (LinkedClasses(column, 10) for column in crossed.T)
    assert with_few_candidates(first, [second, classes(20, k=2)]) == 20
    assert with_few_candidates(replace(first, k=2), [second, classes(20, k=2)]) == 20
    assert newly_known_beside_groups(FIRST, [SECOND, classes(48, k=2)], GROUPS) == 2
    assert newly_known_beside_rows(GROUPS, [FIRST, SECOND, classes(48, k=2)]) == 2


@pytest.mark.parametrize("seed", range(6))
def test_every_part_of_the_releases_leaves_enough_candidates(seed: int) -> None:
    """The textbook: of each set of releases with the candidate, whose rows are linked, everybody is asked about.

    The larger of several k is asked of all, and of those that demand more than the rest.
    """
    draws, counted = np.random.default_rng(seed), 0
    for _ in range(10):
        candidate, *others = (
            LinkedClasses(draws.integers(0, 2, 16), int(draws.integers(2, 6))) for _ in range(draws.integers(2, 5))
        )

        def alike(person: int, of: Sequence[LinkedClasses]) -> int:
            return int(np.all([part.classes == part.classes[person] for part in of], axis=0).sum())

        expected = 0
        for person in range(16):
            parts = [part for size in range(len(others)) for part in combinations(others, size + 1)]
            few = False
            for part in parts:
                together, ks = alike(person, [candidate, *part]), [of.k for of in (candidate, *part)]
                apart = min(alike(person, [candidate]), alike(person, part))
                as_strict = min(ks[1:]) > max([0, *(of.k for of in others if of not in part)])
                few |= together < min(apart, *ks) or (as_strict and any(together < k <= apart for k in ks))
            expected += few and alike(person, [candidate, *others]) < alike(person, others)
        assert with_few_candidates(candidate, others) == expected
        counted += expected
    assert counted


def test_what_others_tell_without_the_candidate_is_not_held_against_it() -> None:
    others = [classes(11, 20), classes(10, 21)]
    assert with_few_candidates(classes(31), others) == 0
    assert with_few_candidates(classes(13, 18), others) == 2


def test_overlapping_classes_cannot_be_subtracted_but_rows_can_be_linked() -> None:
    crossed = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 5, axis=0)
    one, other = (LinkedClasses(column, 10) for column in crossed.T)
    assert known_by_difference(one, other) == 0
    assert with_few_candidates(one, [other]) == 20


def test_of_a_sample_both_who_is_in_it_and_who_is_not_have_company() -> None:
    """Of twelve people nine were drawn: who knows that looks for them among nine rows, and for the others in three."""
    everybody, sample = classes(24), classes(12, 12)
    drawn = replace(sample, drawn=np.r_[np.full(9, True), np.full(3, False), np.full(12, True)])
    assert with_few_candidates(everybody, [sample]) == with_few_candidates(sample, [everybody]) == 0
    assert with_few_candidates(replace(sample, k=9), [classes(12, 12, k=9)]) == 0
    assert with_few_candidates(replace(drawn, k=9), [classes(12, 12, k=9)]) == 3
    assert with_few_candidates(classes(6, 6, 12, k=6), [replace(drawn, k=6)]) == 6


#: Two releases of rows with twelve people in each joint cell, and a table of groups with ten of the first twelve.
FIRST, SECOND, GROUPS = (
    LinkedClasses(np.repeat(np.array(of), [10, 2, 12, 12, 12]), 10)
    for of in ([0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [0, 1, 1, 1, 1])
)


def test_linked_rows_are_classes_from_which_groups_are_subtracted() -> None:
    """Twelve share both classes; less a group of ten of them, two are left, whom no two of the releases tell."""
    assert with_few_candidates(FIRST, [SECOND]) == with_few_candidates(SECOND, [FIRST]) == 0
    assert known_by_difference(FIRST, GROUPS) == known_by_difference(SECOND, GROUPS) == 0
    assert newly_known_beside_groups(FIRST, [SECOND], GROUPS) == newly_known_beside_groups(SECOND, [FIRST], GROUPS) == 2
    assert newly_known_beside_rows(GROUPS, [FIRST, SECOND]) == 2


def test_what_is_told_without_the_candidate_or_by_two_alone_is_not_counted_again() -> None:
    everybody = classes(48)
    assert newly_known_beside_groups(everybody, [FIRST, SECOND], GROUPS) == 0
    assert newly_known_beside_groups(FIRST, [], GROUPS) == 0
    assert newly_known_beside_groups(classes(11, 20), [classes(31)], classes(10, 21)) == 0
    assert newly_known_beside_rows(classes(10, 21), [classes(11, 20), classes(31)]) == 0


def test_a_kept_column_that_readers_of_another_release_know_tells_the_rows_of_a_class_apart() -> None:
    """Of the ten of a class, three have an income that is a quasi-identifier of the other release."""
    income = {"income": np.repeat([0, 1], [3, 7])}
    keeps = LinkedClasses(np.zeros(10, dtype=np.int64), 5, frozenset(["age"]), income)
    knows = LinkedClasses(np.zeros(10, dtype=np.int64), 5, frozenset(["income"]))
    for one, other in ((keeps, knows), (knows, keeps)):
        assert with_few_candidates(one, [other]) == 3
        assert known_by_difference(one, other) == 3
    of_others = LinkedClasses(np.zeros(10, dtype=np.int64), 5, frozenset(["town"]))
    assert with_few_candidates(keeps, [of_others]) == known_by_difference(keeps, of_others) == 0
    assert with_few_candidates(keeps, [keeps, knows]) == 0  # it stood beside the other before


def by_rank(one: IntArray, other: IntArray, k: int) -> int:
    """The same by the definition: every union of cells is compared with the span of the classes."""
    cells, people = np.unique(np.stack([one, other], axis=1), axis=0, return_counts=True)
    columns = [cells[:, place] == value for place in (0, 1) for value in np.unique(cells[:, place]) if value != NOT_IN]
    span = np.array(columns, dtype=float)
    rank, known = np.linalg.matrix_rank(span), set[int]()
    for size in range(1, len(cells) + 1):
        for union in combinations(range(len(cells)), size):
            few = people[list(union)].sum() < k
            if few and np.linalg.matrix_rank(np.vstack([span, np.isin(range(len(cells)), union)])) == rank:
                known |= set(union)
    return int(people[sorted(known)].sum())


@pytest.mark.parametrize("seed", range(12))
def test_every_union_in_the_span_of_the_classes_is_found_and_no_other(seed: int) -> None:
    draws = np.random.default_rng(seed)
    found = 0
    for _ in range(8):
        one, other = draws.integers(0, 4, 14), draws.integers(0, 3, 14)
        if seed % 2:
            one, other = one - 1, other - 1  # some are in no class
        seen = (one != NOT_IN) | (other != NOT_IN)
        one, other = one[seen], other[seen]
        expected = by_rank(one, other, 4)
        assert known_by_difference(LinkedClasses(one, 4), LinkedClasses(other, 4)) == expected
        found += expected
    assert found or seed != 1
