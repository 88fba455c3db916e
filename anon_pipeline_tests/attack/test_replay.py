"""The replay attack on anonymizers of which it is known what they tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.attack.replay import TRUTH_HITS, replay, same_groups

GROUP = np.array([0, 0, 0, 1, 1, 1, 1, -1])
VALUES = np.array([0, 1, 1, 0, 0, 0, 1, 1])


def test_who_groups_without_looking_at_values_tells_nothing() -> None:
    found = replay(GROUP, VALUES, lambda values, number: GROUP, tries=200)
    assert not found.certain.any()
    assert not found.undecided.any()


def test_who_groups_one_way_for_one_assignment_tells_all_but_what_the_histogram_tells() -> None:
    def regroup(values: np.ndarray, number: int) -> np.ndarray:
        return GROUP if (values == VALUES).all() else np.zeros(len(values), dtype=np.int64)

    found = replay(GROUP, VALUES, regroup, tries=900, seldom=10.0)
    assert found.certain.tolist() == [True] * 7 + [False]  # the last one's class has one value, which is published
    assert found.guessed[:7].mean() > 0.9


def test_one_value_that_decides_is_learned_of_that_person_alone() -> None:
    def regroup(values: np.ndarray, number: int) -> np.ndarray:
        return GROUP if values[3] == 0 else np.zeros(len(values), dtype=np.int64)

    assert np.flatnonzero(replay(GROUP, VALUES, regroup, tries=900, seldom=10.0).certain).tolist() == [3]


@pytest.mark.parametrize(("often", "certain"), [(3, 0), (1_000_000, 7)])
def test_a_key_that_now_and_then_gives_the_same_for_other_values_hides_them(often: int, certain: int) -> None:
    def regroup(values: np.ndarray, number: int) -> np.ndarray:
        same = (values == VALUES).all() or number % often == 0
        return GROUP if same else np.zeros(len(values), dtype=np.int64)

    assert replay(GROUP, VALUES, regroup, tries=900, seldom=10.0).certain.sum() == certain


@pytest.mark.parametrize("seed", range(12))
def test_a_guess_weighs_what_was_found_against_the_histogram(seed: int) -> None:
    """Of three people one has another value: 4 * 2/3 for the frequent one, 4 * 1/3 and one for each find for theirs."""
    values, group = np.array([0, 0, 1]), np.zeros(3, dtype=np.int64)
    told: list[bool] = []

    def regroup(assigned: np.ndarray, number: int) -> np.ndarray:
        told.append((assigned == values).all())
        return group if told[-1] else np.full(3, -1)

    found = replay(group, values, regroup, tries=8, seed=seed)
    blind = told[TRUTH_HITS : TRUTH_HITS + 8 // 4]
    assert found.guessed[2] == float(4 / 3 + sum(blind) > 8 / 3)


def test_too_few_tries_are_told_and_not_taken_for_safety() -> None:
    def regroup(values: np.ndarray, number: int) -> np.ndarray:
        return GROUP if (values == VALUES).all() and number == 7 else np.zeros(len(values), dtype=np.int64)

    found = replay(GROUP, VALUES, regroup, tries=20)
    assert not found.certain.any()
    assert found.undecided.tolist() == [True] * 7 + [False]


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=12), st.permutations([0, 1, 2, 3]))
def test_groups_are_the_same_whatever_their_numbers(labels: list[int], names: list[int]) -> None:
    some = np.array(labels)
    renamed = np.array([-1 if one < 0 else names[one] for one in labels])
    assert same_groups(some, renamed)
    other = some.copy()
    other[0] = 9 if some[0] < 0 else -1
    assert not same_groups(some, other)
