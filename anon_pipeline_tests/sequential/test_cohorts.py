"""Cohorts go down the tree together: no part of one is ever smaller than k, whatever tree and people are drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.anonymize.tree import SplitTree
from anon_pipeline.arrays import IntArray
from anon_pipeline.sequential.cohorts import NOT_RELEASED, WITHHELD, MinimumCohortSize, in_company, place
from anon_pipeline_tests.people import KEY
from anon_pipeline_tests.trees import tree_over

LEAVES = 8
TREE = tree_over(LEAVES)  # over one column with the values 0 ... 7


@st.composite
def populations(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    cohorts = draw(st.integers(1, 4))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, LEAVES - 1), st.integers(0, cohorts - 1), st.integers(1, 9)),
            min_size=1,
            max_size=30,
            unique_by=lambda row: row[:2],
        )
    )
    codes, history, counts = (np.array(column) for column in zip(*rows, strict=True))
    departed = np.array(draw(st.lists(st.integers(0, 6), min_size=cohorts, max_size=cohorts)))
    return codes[:, None].astype(np.int32), history.astype(np.int64), counts.astype(np.int64), departed.astype(np.int64)


def parts(values: IntArray, counts: IntArray) -> dict[int, int]:
    return {int(one): int(counts[values == one].sum()) for one in np.unique(values)}


@given(populations(), st.integers(2, 5), st.integers(0, 4), st.booleans())
def test_no_part_of_a_cohort_is_smaller_than_k(
    population: tuple[np.ndarray, ...], k: int, reserve: int, departures: bool
) -> None:
    codes, history, counts, departed = population
    codes, history = np.repeat(codes, counts, axis=0), np.repeat(history, counts)  # a row a person
    counts = np.ones(len(history), np.int64)
    drawn = in_company(history, departed, np.arange(len(history)), k, KEY, "newest") if departures else history
    node = place(TREE, codes, drawn, counts, MinimumCohortSize(k, k + reserve))
    for cohort in np.unique(history):
        own = history == cohort
        released = {one: people for one, people in parts(node[own], counts[own]).items() if one != NOT_RELEASED}
        assert all(people >= k for people in released.values())
        absent = int(departed[cohort] + counts[own & (node == NOT_RELEASED)].sum())
        if departures and cohort > 0:  # the departed are enough, too, unless the cohort is smaller than that
            assert absent == 0 or absent >= k or not released
            assert not released or absent == max(departed[cohort], k * (departed[cohort] > 0))  # and nobody needless
        if not departures:
            assert released or counts[own].sum() < k


@given(populations(), st.randoms())
def test_the_order_of_the_rows_does_not_matter(population: tuple[np.ndarray, ...], random: object) -> None:
    codes, history, counts, _ = population
    order = np.random.default_rng(random.randrange(100)).permutation(len(codes))  # type: ignore[attr-defined]
    minimum_size = MinimumCohortSize(2, 3)
    shuffled = place(TREE, codes[order], history[order], counts[order], minimum_size)
    assert (place(TREE, codes, history, counts, minimum_size)[order] == shuffled).all()


def leaf_of(codes: list[int], history: list[int], counts: list[int], minimum_size: MinimumCohortSize) -> list[int]:
    node = place(TREE, np.array(codes, np.int32)[:, None], np.array(history), np.array(counts), minimum_size)
    return [int(TREE.leaf[one]) if one != NOT_RELEASED else NOT_RELEASED for one in node]


def test_newcomers_part_where_both_parts_are_large_enough() -> None:
    assert leaf_of([0, 7], [0, 0], [5, 5], MinimumCohortSize(5, 5)) == [0, 7]


def test_a_small_part_keeps_all_where_they_part() -> None:
    assert leaf_of([0, 7], [0, 0], [5, 3], MinimumCohortSize(5, 5)) == [-1, -1]  # an inner node: the leaf of none
    assert NOT_RELEASED not in place(
        TREE, np.array([[0], [7]], np.int32), np.array([0, 0]), np.array([5, 3]), MinimumCohortSize(5, 5)
    )


def test_a_stray_goes_with_its_cohort() -> None:
    assert leaf_of([2, 7], [1, 1], [12, 1], MinimumCohortSize(10, 13)) == [2, 2]


def test_a_quarter_of_a_cohort_are_strays_and_more_are_not() -> None:
    assert leaf_of([2, 7], [1, 1], [9, 3], MinimumCohortSize(10, 13)) == [2, 2]
    assert leaf_of([2, 7], [1, 1], [11, 4], MinimumCohortSize(10, 13)) == [-1, -1]


def test_every_cohort_goes_down_as_if_it_were_alone() -> None:
    draws = np.random.default_rng(1)
    history = np.repeat(np.arange(60), 12)
    codes = (draws.integers(0, LEAVES, 60)[history] + draws.choice([0, 0, 1, 4], len(history)))[:, None] % LEAVES
    codes, counts, minimum_size = codes.astype(np.int32), np.ones(len(history), np.int64), MinimumCohortSize(3, 4)
    together = place(TREE, codes, history, counts, minimum_size)
    assert len(np.unique(together)) > LEAVES  # at inner nodes, too
    for cohort in range(60):
        own = history == cohort
        alone = place(TREE, codes[own], history[own], counts[own], minimum_size)
        assert together[own].tolist() == alone.tolist()


def test_a_cohort_that_lost_too_many_waits_as_a_whole() -> None:
    assert leaf_of([2, 3, 3], [1, 1, 0], [5, 4, 10], MinimumCohortSize(10, 13)) == [
        NOT_RELEASED,
        NOT_RELEASED,
        3,
    ]


def test_others_go_with_those_who_leave_where_that_is_asked() -> None:
    def withheld(people: int, cohort: int, departed: list[int]) -> int:
        own = np.full(people, cohort, np.int64)
        return int((in_company(own, np.array(departed), np.arange(people), 3, KEY, "newest") == WITHHELD).sum())

    assert withheld(12, 1, [0, 1]) == 2
    assert withheld(12, 1, [0, 2]) == 1
    assert withheld(12, 1, [0, 3]) == 0  # three have left together: nobody else need
    assert withheld(12, 1, [0, 0]) == 0
    assert withheld(4, 1, [0, 1]) == 4  # two would be left, who are too few
    assert withheld(5, 1, [0, 1]) == 2
    assert withheld(5, 0, [1]) == 0  # a newcomer was in no release that another has left


def test_who_is_withheld_is_no_cohort() -> None:
    assert leaf_of([1, 2, 2], [WITHHELD, WITHHELD, 1], [9, 9, 3], MinimumCohortSize(3, 3)) == [-1, -1, 2]


@pytest.mark.parametrize("leaves", [1, 2, 3, 7, 64])
def test_the_tree_over_numbers_gives_every_number_back(leaves: int) -> None:
    tree = tree_over(leaves)
    assert tree.leaves == leaves
    assert tree.apply(np.arange(leaves, dtype=np.int32)[:, None]).tolist() == list(range(leaves))


def test_parts_are_told_by_cohort_and_not_by_node_alone() -> None:
    # Two cohorts of four stand at one node; together they are eight, each alone too few to part.
    tree = SplitTree(
        (SplitFeature(0, np.arange(2, dtype=np.int32)),),
        np.array([0, -1, -1]),
        np.array([0.5, 0.0, 0.0]),
        np.array([1, -1, -1]),
        np.array([2, -1, -1]),
        np.array([-1, 0, 1]),
    )
    codes = np.array([[0], [1], [0], [1]], np.int32)
    node = place(tree, codes, np.array([1, 1, 2, 2]), np.array([2, 2, 2, 2]), MinimumCohortSize(4, 4))
    assert node.tolist() == [0, 0, 0, 0]
