"""The replay attack on anonymizers of which it is known what they tell."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.attack.replay import TRUTH_HITS, _exchange, replay, same_groups

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


@pytest.mark.parametrize(("attempt", "counts"), [(0, True), (1, True), (2, False), (3, False)])
def test_a_guess_counts_what_is_found_in_the_first_quarter_of_the_tries(attempt: int, counts: bool) -> None:
    """Later assignments are chosen, and so say nothing of how likely values are. Two people have a value each."""
    group, calls = np.zeros(2, dtype=np.int64), []

    def regroup(assigned: np.ndarray, number: int) -> np.ndarray:
        calls.append(number)
        same = len(calls) <= TRUTH_HITS or len(calls) - TRUTH_HITS - 1 == attempt
        return group if same else np.full(2, -1)

    found = replay(group, np.array([0, 1]), regroup, tries=8)
    assert (found.guessed != found.expected).all() == counts


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


def watched(tries: int, seed: int, often: int) -> tuple[list[int], str]:
    """The keys that are tried, and a digest of all assignments and of what is found."""
    keys: list[int] = []
    assignments: list[list[int]] = []

    def regroup(assigned: np.ndarray, number: int) -> np.ndarray:
        keys.append(number)
        assignments.append(assigned.tolist())
        return GROUP if len(keys) % often == 0 else np.zeros(len(assigned), dtype=np.int64)

    found = replay(GROUP, VALUES, regroup, tries=tries, seldom=0.5, seed=seed)
    told = [found.certain.tolist(), found.undecided.tolist(), found.guessed.round(6).tolist()]
    return keys, hashlib.sha256(repr((assignments, told)).encode()).hexdigest()[:12]


@pytest.mark.parametrize(
    ("tries", "seed", "often", "digest"),
    [
        (7, 0, 3, "2686aab47648"),
        (20, 1, 2, "1c2e4201be8b"),
        (23, 2, 5, "542e0a058819"),
        (60, 3, 9, "37cc76b4c796"),
        (40, 4, 1000, "19ceb322ea87"),
        (40, 5, 3, "ace70869c111"),
    ],
)
def test_the_tries_of_a_seed_are_the_same_in_every_version(tries: int, seed: int, often: int, digest: str) -> None:
    keys, found = watched(tries, seed, often)
    truths = min(tries, TRUTH_HITS * often)
    spread = int(np.random.default_rng(seed).integers(0, 2**62))  # keys of the attacker's own, not those of the truth
    assert keys == [*range(truths), *range(spread, spread + len(keys) - truths)]
    assert found == digest


def test_a_replay_without_a_seed_is_that_of_seed_0() -> None:
    def told(**more: int) -> list[list[int]]:
        assignments: list[list[int]] = []

        def regroup(assigned: np.ndarray, number: int) -> np.ndarray:
            assignments.append(assigned.tolist())
            return np.zeros(len(assigned), dtype=np.int64)

        replay(GROUP, VALUES, regroup, tries=20, **more)
        return assignments

    assert told() == told(seed=0) != told(seed=1)


def test_without_tries_nothing_is_certain() -> None:
    found = replay(GROUP, VALUES, lambda values, number: GROUP, tries=0)
    assert not found.certain.any()
    assert found.undecided.tolist() == [True] * 7 + [False]
    assert found.guessed.tolist() == found.expected.tolist()


def test_a_value_is_ruled_out_where_a_possible_one_would_hardly_fail_so_often() -> None:
    """The truth gives the release once in one try, and the exchange does not in another one."""

    def regroup(values: np.ndarray, number: int) -> np.ndarray:
        return group if (values == truth).all() else np.full(2, -1)

    truth, group = np.array([0, 1]), np.zeros(2, dtype=np.int64)
    certain = {seldom: replay(group, truth, regroup, 1, seldom).certain.tolist() for seldom in (0.2, 0.25)}
    assert certain == {0.2: [True, True], 0.25: [False, False]}  # one try, where .92 and 1.15 are enough


def test_a_person_is_given_a_value_in_exchange_with_somebody_of_their_class_who_has_it() -> None:
    number = np.array([0, 0, 0, 1, 1, 1])
    for seed in range(10):
        random = np.random.default_rng(seed)
        assigned = np.array([0, 1, 2, 0, 1, 2])
        _exchange(assigned, number, 4, 2, random)
        assert assigned.tolist() == [0, 1, 2, 0, 2, 1]
        _exchange(assigned, number, 4, 2, random)
        assert assigned.tolist() == [0, 1, 2, 0, 2, 1]


@pytest.mark.parametrize(
    ("some", "others", "same"),
    [
        ([0, 1, 1], [5, 2, 2], True),
        ([0, 1, 1], [0, 0, 1], False),
        ([0, 1, 2], [0, 1, 1], False),
        ([0, 1, 1], [0, 1, 2], False),
        ([-1, 0, 1], [0, -1, 1], False),
        ([-1, 0, 0], [-1, 1, 1], True),
        ([0, 1, -1], [1, 0, -1], True),
        ([0, 0, -1], [0, 0, 0], False),
    ],
)
def test_groups_are_equal_where_their_members_are(some: list[int], others: list[int], same: bool) -> None:
    assert same_groups(np.array(some), np.array(others)) == same
