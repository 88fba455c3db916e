"""What a class shows of a column, where one person more or less decides it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.anonymize.classes import information_loss, loss_as_released
from anon_pipeline.anonymize.encoding import apply_domain, count_cells, learn_domain
from anon_pipeline.anonymize.recode import (
    WITHHELD,
    OrderedSummary,
    default_grid,
    grid_index,
    grid_value,
    summarize,
    summarize_category,
    summarize_ordered,
)
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.statistics import histogram
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain

#: Each person of these tests stands for so many, so that every value may be named.
K = 3


def shown(values: list[float | None]) -> OrderedSummary:
    """The summary of one class of K people of each of these, told to the unit."""
    domain, code = learn_domain("x", pd.Series(values, dtype="float64"))
    people = np.full(len(code), K)
    members = histogram(np.zeros_like(people), code.astype(np.int64), people, (1, len(domain)))
    return summarize_ordered(domain, members, 1.0, K)


@pytest.mark.parametrize(
    ("values", "median"),
    [
        ([1, 1, 9, 9], 1),  # of two middle people the lower
        ([1, 1, 1, 9, 9, 9], 1),
        ([1, 1, 9, 9, 9], 9),
        ([1, 1, 3, 9, 9], 3),
    ],
)
def test_the_median_is_the_lower_one(values: list[float], median: float) -> None:
    assert shown([*values]).representative.tolist() == [median]


@pytest.mark.parametrize(("missing", "withheld"), [(0, False), (3, False), (4, True)])
def test_a_number_is_told_unless_more_people_have_none_than_one(missing: int, withheld: bool) -> None:
    assert shown([5, 5, 5, *[None] * missing]).withheld.tolist() == [withheld]


@pytest.mark.parametrize(
    ("values", "representative"),
    [
        (["b", "b", "a", "a"], "a"),  # on a tie the smallest
        (["a", "a", None, None], "a"),  # and a missing value last
        (["a", "a", None, None, None], None),
        (["a", "b", "c"], "a"),
    ],
)
def test_the_most_common_category_and_what_breaks_ties(values: list[str | None], representative: str | None) -> None:
    assert category(values, people=K) == representative


@pytest.mark.parametrize(
    ("values", "representative"),
    [
        (["a", "b", "c"], "*"),  # one person each
        (["a", "a", "b", "b"], "*"),  # fewer than k
        (["a", "a", "b", "b", "b"], "b"),
        (["a", "a", "a", "b", "b", "b", "b", "c"], "b"),
    ],
)
def test_a_category_that_fewer_than_k_people_have_stands_for_nobody(values: list[str], representative: str) -> None:
    assert category(values, people=1) == representative


def category(values: list[str | None], people: int) -> str | None:
    """What one class of so many people of each of these shows."""
    domain, code = learn_domain("x", pd.Series(values, dtype=object))
    each = np.full(len(code), people)
    members = histogram(np.zeros_like(each), code.astype(np.int64), each, (1, len(domain)))
    told = [None, *domain.values.tolist(), "*"]  # WITHHELD is the last
    assert WITHHELD == -1
    shown: str | None = told[summarize_category(domain, members, K).representative[0]]
    return shown


def test_a_number_between_two_known_ones_takes_the_nearer_and_the_lower_on_a_tie() -> None:
    domain, _ = learn_domain("x", pd.Series([10.0, 20.0]))
    assert apply_domain(domain, pd.Series([14.0, 15.0, 16.0, 0.0, 99.0])).tolist() == [1, 1, 2, 1, 2]


@given(
    st.lists(st.integers(-3_000, 0), min_size=3, max_size=20),
    st.sampled_from([1.0, 7.0, 365.0, 10_000.0]),
    st.sampled_from(["DATE", "TIMESTAMP"]),
    st.booleans(),
)
def test_dates_at_the_end_of_the_calendar_stay_on_it(days: list[int], grid: float, storage: str, last: bool) -> None:
    """A date of 9999-12-31 stands for "no end"; a step of the grid further is no date in most libraries."""
    unit = 1 if storage == "DATE" else 86_400_000_000
    sign, end = (1, np.datetime64("9999-12-31")) if last else (-1, np.datetime64("0001-01-01"))
    values, code = np.unique(
        (end.astype("datetime64[D]").astype(int) + sign * np.array(days)) * unit, return_inverse=True
    )
    people = np.full(len(code), K)
    domain = Domain("x", ColumnType.DATE, values, np.r_[0, np.bincount(code) * K], storage)
    members = histogram(np.zeros_like(people), code.astype(np.int64) + 1, people, (1, len(domain)))
    summary = summarize_ordered(domain, members, grid * unit, K)
    shown = np.r_[summary.low, summary.representative, summary.high]
    assert summary.low[0] <= values[0] and summary.high[0] >= values[-1]
    years = domain.readable(shown).astype("datetime64[Y]").astype(int) + 1970
    assert years.min() >= 1 and years.max() <= 9999


def test_groups_that_show_the_same_lose_what_lies_between_them() -> None:
    domain, code = learn_domain("x", pd.Series([0.0, 10.0, 20.0, 30.0]))
    cells, _ = count_cells((domain,), code[:, None], np.zeros((4, 1)))
    group = np.array([0, 0, 1, -1])  # the last person is left out
    apart = information_loss(cells, group, 2)
    assert loss_as_released(cells, group, apart, np.array([0, 1])) == apart
    alike = loss_as_released(cells, group, apart, np.array([0, 0]))
    assert alike == information_loss(cells, np.array([0, 0, 0, -1]), 1)
    assert alike["x"] == pytest.approx(200 / 500 + 1 / 4) and apart["x"] == pytest.approx(50 / 500 + 1 / 4)


def of_two_classes(first: list[float], others: list[float], grid: float) -> OrderedSummary:
    """The summaries of two classes, a person of each of these, told on the grid."""
    domain, code = learn_domain("x", pd.Series([*first, *others], dtype="float64"))
    group = np.r_[np.zeros(len(first), dtype=np.int64), np.ones(len(others), dtype=np.int64)]
    members = histogram(group, code.astype(np.int64), np.ones(len(code), dtype=np.int64), (2, len(domain)))
    return summarize_ordered(domain, members, grid, K)


def test_halfway_stands_for_a_class_whose_median_is_the_only_person_at_its_end() -> None:
    summary = of_two_classes([0, 10], [value for value in range(11) for _ in range(K)], 1.0)
    assert summary.representative[0] == 5


def test_numbers_that_differ_by_rounding_alone_are_told_together() -> None:
    summary = of_two_classes([0.3, 0.3], [0.1 * 3] * (K - 1), 0.1)
    assert 0.1 * 3 != 0.3
    assert summary.representative.tolist() == [0.3, 0.3]
    assert summary.high.tolist() == [0.3, 0.3]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 10])
def test_whole_numbers_are_rounded_to_whole_steps(step: int) -> None:
    values = np.arange(-23, 24)
    down, near, up = (grid_index(values, float(step), towards).tolist() for towards in (0.0, 0.5, 1.0))
    assert down == [value // step for value in range(-23, 24)]
    assert up == [-(-value // step) for value in range(-23, 24)]
    assert near == [(2 * value + step) // (2 * step) for value in range(-23, 24)]  # halves go up
    assert grid_index(values, float(step)).tolist() == near


@pytest.mark.parametrize(
    ("value", "grid", "down", "near", "up"),
    [
        (0.3, 0.1, 3, 3, 3),
        (0.1 * 3, 0.1, 3, 3, 3),  # a little more than .3
        (0.34, 0.1, 3, 3, 4),
        (0.375, 0.25, 1, 2, 2),
        (-0.375, 0.25, -2, -1, -1),
        (1e9 + 0.5, 1.0, 10**9, 10**9 + 1, 10**9 + 1),
        (7.0, 2.5, 2, 3, 3),
    ],
)
def test_numbers_are_rounded_to_steps(value: float, grid: float, down: int, near: int, up: int) -> None:
    found = [grid_index(np.array([value]), grid, towards)[0] for towards in (0.0, 0.5, 1.0)]
    assert found == [down, near, up]


@pytest.mark.parametrize(
    ("index", "grid", "like", "number"),
    [
        (3, 5.0, 0, 15),
        (3, 0.5, 0, 1.5),
        (3, 5.0, 0.0, 15.0),
        (3, 0.1, 0.0, 0.3),
        (3, 0.3, 0.0, 0.9),
        (7, 0.7, 0.0, 4.9),
        (3, 2.5, 0.0, 7.5),
        (-1, 2.5, 0.0, -2.5),
    ],
)
def test_a_step_stands_for_a_short_number(index: int, grid: float, like: float, number: float) -> None:
    (found,) = grid_value(np.array([index]), grid, np.array([like])).tolist()
    assert (found, type(found)) == (number, type(number))


MOMENT = 86_400_000_000


@pytest.mark.parametrize(
    ("column", "k", "grid"),
    [
        (pd.Series([], dtype=float), 2, 1.0),
        (pd.Series([7, 7, 7]), 2, 1.0),
        (pd.Series(range(100)), 2, 2.0),
        (pd.Series(range(100)), 5, 5.0),
        (pd.Series(range(100)), 6, 10.0),
        (pd.Series(range(100)), 90, 100.0),
        (pd.Series([0, 5]), 3, 10.0),  # the first step that is longer than all of them
        (pd.Series(np.arange(100) / 8), 1, 1e-8),
        (pd.Series([0.0] * 9), 20, 1.0),
        (pd.Series([0.25] * 9), 2, 1e-10),
        (pd.Series([1e6 + 0.5] * 9 + [1e6]), 2, 1e-6),
        (pd.Series([-1e6 - 0.5] * 9 + [0.5]), 2, 1e-3),
        (pd.Series([1] * 5 + [50, 60, 70, 80]), 3, 1.0),
        (pd.Series([1] * 4 + [50, 60, 70, 80]), 3, 50.0),  # of two middle people the one of fewer
        (pd.Series(pd.date_range("2001-01-01", periods=40)), 2, 2.0 * MOMENT),
        (pd.Series(pd.date_range("2001-01-01", periods=40, freq="h")), 2, 2.0 * MOMENT / 24),
        (pd.Series(pd.date_range("2001-01-01", periods=40, freq="min")), 2, 2.0 * MOMENT / 24 / 60),
        (pd.Series(pd.date_range("2001-01-01", periods=40, freq="s")), 2, 2e6),
        (pd.Series(pd.date_range("2001-01-01", periods=40, freq="us")), 2, 2.0),
    ],
)
def test_the_grid_is_the_finest_at_which_the_middle_person_is_among_k(column: pd.Series, k: int, grid: float) -> None:
    domain, _ = learn_domain("x", column)
    assert default_grid(domain, k) == pytest.approx(grid, rel=1e-12)


def test_only_who_is_in_a_class_decides_the_grid() -> None:
    domain, _ = learn_domain("x", pd.Series(range(100)))
    only = np.where(np.arange(100) < 10, 1, 0)
    assert default_grid(domain, 6, only) == 10.0
    assert default_grid(domain, 6, only * 6) == 1.0


def test_a_grid_so_fine_that_neighbours_are_one_float_is_refused() -> None:
    domain, codes = learn_domain("x", pd.Series([0.0, 1e14, 1e14 + 1]))
    cells, _ = count_cells((domain,), codes[:, None], np.zeros((3, 1)))
    group = np.zeros(3, dtype=np.int64)
    (summary,) = summarize(cells, group, 1, 1, {"x": 2.0})
    assert summary.domain is domain
    with pytest.raises(InputError, match=r"columns\.x\.grid: 1\.0 is too fine"):
        summarize(cells, group, 1, 1, {"x": 1.0})
    whole, codes = learn_domain("x", pd.Series([0, 10**15, 10**15 + 1]))
    cells, _ = count_cells((whole,), codes[:, None], np.zeros((3, 1)))
    assert len(summarize(cells, group, 1, 1, {"x": 1.0})) == 1  # whole numbers on whole steps are exact


@pytest.mark.parametrize("far", [1e6 + 0.5, -3e7, 1e300, -1e300])
def test_who_is_suppressed_may_be_as_far_away_as_they_are(far: float) -> None:
    """Their number is in no class, so it neither refuses a grid nor moves what classes show."""
    near, summaries = [30.5, 30.5, *[30.0] * 9, *[31.0] * 9], []
    for numbers in (near, [*near, far]):
        domain, codes = learn_domain("x", pd.Series(numbers))
        cells, cell = count_cells((domain,), codes[:, None], np.zeros((len(numbers), 1)))
        group = np.zeros(len(cells.counts), dtype=np.int64)
        if far in numbers:
            group[cell[-1]] = -1
        with warnings.catch_warnings(action="error"):
            (summary,) = summarize(cells, group, 1, 5, {})
        assert isinstance(summary, OrderedSummary)
        summaries.append((summary.ranges(), summary.representative.tolist(), summary.known.tolist()))
    assert summaries[0] == summaries[1]
