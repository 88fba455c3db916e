"""What a class shows of a column, where one person more or less decides it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize.encoding import apply_domain, learn_domain
from anon_pipeline.anonymize.recode import WITHHELD, OrderedSummary, summarize_category, summarize_ordered
from anon_pipeline.privacy.statistics import histogram

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
