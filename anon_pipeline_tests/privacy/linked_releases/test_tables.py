"""Tables of groups of the same people: what they tell together, compared with every sum and difference there is."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.privacy.linked_releases.tables import NOT_IN, LinkedTable, newly_known_counts, newly_known_means

T = 4


def table(groups: Sequence[int], shown: Sequence[int], threshold: int = T) -> LinkedTable:
    """A table that shows these groups."""
    of = np.array(groups)
    return LinkedTable(of, np.isin(np.arange(of.max(initial=0) + 1), shown), threshold)


def in_row_space(rows: FloatArray, wanted: FloatArray) -> bool:
    """Whether a row is a combination of others, by their rank."""
    return int(np.linalg.matrix_rank(np.vstack([rows, wanted]))) == int(np.linalg.matrix_rank(rows))


def rows_of(families: Sequence[IntArray], cells: IntArray) -> FloatArray:
    """The published equations on cells, a row each: how much of a cell is in the equation."""
    rows = []
    for family in families:
        for value in np.unique(family[family != NOT_IN]):
            rows.append([float((family[cells == cell] == value).all()) for cell in np.unique(cells)])
    return np.array(rows)


def known_unions(tables: Sequence[LinkedTable], cells: IntArray, known: IntArray | None) -> set[tuple[int, ...]]:
    """Every union of cells with fewer people than the threshold that the tables tell: each set is tried."""
    families = [family for one in tables for family in (one.equations(one.published), one.everybody)]
    rows = rows_of([*families, *([] if known is None else [known])], cells)
    counts = np.bincount(cells)
    light = [
        chosen
        for size in range(1, T)
        for chosen in combinations(range(len(counts)), size)
        if counts[list(chosen)].sum() < T
    ]
    unit = np.eye(len(counts))
    return {chosen for chosen in light if in_row_space(rows, unit[list(chosen)].sum(axis=0))}


def told_newly(candidate: LinkedTable, others: Sequence[LinkedTable], known: IntArray | None) -> bool:
    """Whether all tables tell a union that neither the candidate alone nor the others tell."""
    labels = [one.groups for one in (candidate, *others)] + ([] if known is None else [known])
    cells = np.unique(np.stack(labels, axis=1), axis=0, return_inverse=True)[1]
    alone = known_unions([candidate], cells, known) | known_unions(others, cells, known)
    return bool(known_unions([candidate, *others], cells, known) - alone)


@st.composite
def linked(draw: st.DrawFn, tables: int, classes: int) -> tuple[list[LinkedTable], IntArray | None]:
    """Small tables of the same people, each hiding its groups below the threshold and perhaps more."""
    n = draw(st.integers(4, 24))
    made = []
    for _ in range(tables):
        groups = np.unique(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), return_inverse=True)[1]
        counts = np.bincount(groups)
        hidden = draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
        shown = [group for group, count in enumerate(counts) if count >= T and not hidden[group]]
        left = counts[[group for group in range(len(counts)) if group not in shown]].sum()
        made.append(table(groups.tolist(), shown if left == 0 or left >= T else []))
    known = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))) if classes else None
    return made, known


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(linked(2, 0))
def test_two_tables_are_judged_exactly_as_by_trying_every_union(made: tuple[list[LinkedTable], None]) -> None:
    (candidate, other), _ = made
    assert (newly_known_counts(candidate, [other]) > 0) == told_newly(candidate, [other], None)


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(st.one_of(linked(2, 3), linked(3, 0)))
def test_nothing_is_missed_of_more_tables_or_beside_what_readers_know(
    made: tuple[list[LinkedTable], IntArray | None],
) -> None:
    (candidate, *others), known = made
    if told_newly(candidate, others, known):
        assert newly_known_counts(candidate, others, known) > 0


def test_a_coarser_table_tells_a_group_that_a_finer_one_hides() -> None:
    finer = table([0] * 9 + [1] * 3 + [2] * 8 + [3] * 2, [0, 2])  # 3 of the first twelve and 2 of the last ten
    coarser = table([0] * 12 + [1] * 10, [0, 1])
    assert newly_known_counts(coarser, [finer]) == newly_known_counts(finer, [coarser]) == 2
    assert newly_known_counts(coarser, [coarser]) == newly_known_counts(finer, [finer]) == 0
    assert newly_known_counts(finer, []) == 0


def test_two_hidden_groups_with_enough_people_hide_one_another() -> None:
    finer = table([0] * 9 + [1] * 3 + [2] * 2 + [3] * 8, [0, 3])
    assert newly_known_counts(table([0] * 14 + [1] * 8, [0, 1]), [finer]) == 0  # 3 and 2 are 5 together


def test_groups_that_are_all_shown_tell_those_between_their_ends() -> None:
    to_nineteen, to_twenty = table([0] * 8 + [1] * 12, [0, 1]), table([0] * 10 + [1] * 10, [0, 1])
    assert newly_known_counts(to_twenty, [to_nineteen]) == 1  # two people are nineteen


def test_what_former_tables_tell_already_is_not_the_candidates_fault() -> None:
    finer, coarser = table([0] * 9 + [1] * 3 + [2] * 8 + [3] * 2, [0, 2]), table([0] * 12 + [1] * 10, [0, 1])
    assert newly_known_counts(table([0] * 22, [0]), [finer, coarser]) == 0


def test_three_tables_may_tell_what_no_two_of_them_do() -> None:
    cells = np.repeat(np.arange(4), [5, 5, 5, 2])
    whole = table([0] * 17, [0])
    first, second = table((cells > 0).astype(int).tolist(), [0]), table((cells == 1).astype(int).tolist(), [1])
    third = table((cells == 2).astype(int).tolist(), [1])
    for pair in ([whole, first], [whole, second], [first, second], [second, third], [first, third]):
        assert newly_known_counts(pair[0], [pair[1]]) == 0
    assert newly_known_counts(first, [second, third]) > 0


def test_readers_who_know_how_many_share_a_value_learn_more() -> None:
    """Two of three sums of two cells each tell nothing; with the third, half of what is left over is the first cell."""
    sizes = [3, 5, 5, 7]
    first, second, town = (np.repeat(of, sizes) for of in ([0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]))
    tables = table(first.tolist(), [0, 1]), table(second.tolist(), [0, 1])
    assert newly_known_counts(tables[0], [tables[1]]) == 0
    assert newly_known_counts(tables[0], [tables[1]], town) == 1


@pytest.mark.parametrize("hidden", ["few", "large"])
def test_a_coarser_mean_tells_the_hidden_mean_of_a_part(hidden: str) -> None:
    groups = np.repeat([0, 1], [10, 3] if hidden == "few" else [10, 10])
    values = np.arange(len(groups), dtype=float) + 50
    if hidden == "large":
        values[-1] = 1e6
    everybody = np.zeros(len(groups), dtype=int)
    means = {"income": np.array([True, False])}
    finer = LinkedTable(groups, np.array([True, hidden == "large"]), T, means, 2.2)
    coarser = LinkedTable(everybody, np.array([True]), T, {"income": np.array([True])}, 2.2)
    assert newly_known_means(coarser, [finer], "income", values) == 1
    assert newly_known_means(finer, [coarser], "income", values) == 1
    without = LinkedTable(everybody, np.array([True]), T)
    assert newly_known_means(without, [finer], "income", values) == 0
    assert newly_known_means(coarser, [without], "income", values) == 0
    assert newly_known_means(finer, [finer], "income", values) == 0
