"""What a class shows of a column, where one person more or less decides it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize.encoding import apply_domain, learn_domain
from anon_pipeline.anonymize.recode import WITHHELD, OrderedSummary, summarize_category, summarize_ordered
from anon_pipeline.privacy.statistics import histogram


def shown(values: list[float | None]) -> OrderedSummary:
    """The summary of one class of these people, told to the unit."""
    domain, code = learn_domain("x", pd.Series(values, dtype="float64"))
    ones = np.ones(len(code), dtype=np.int64)
    return summarize_ordered(domain, histogram(np.zeros_like(ones), code.astype(np.int64), ones, (1, len(domain))), 1.0)


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
        (["a", "b", "c"], "*"),
    ],
)
def test_the_most_common_category_and_what_breaks_ties(values: list[str | None], representative: str | None) -> None:
    domain, code = learn_domain("x", pd.Series(values, dtype=object))
    ones = np.ones(len(code), dtype=np.int64)
    members = histogram(np.zeros_like(ones), code.astype(np.int64), ones, (1, len(domain)))
    told = [None, *domain.values.tolist(), "*"]  # WITHHELD is the last
    assert WITHHELD == -1
    assert told[summarize_category(domain, members).representative[0]] == representative


def test_a_number_between_two_known_ones_takes_the_nearer_and_the_lower_on_a_tie() -> None:
    domain, _ = learn_domain("x", pd.Series([10.0, 20.0]))
    assert apply_domain(domain, pd.Series([14.0, 15.0, 16.0, 0.0, 99.0])).tolist() == [1, 1, 2, 1, 2]
