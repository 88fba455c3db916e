"""Which named values too few people share, counted person by person as the rule says it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.privacy.named_values import unshared_categories, unshared_numbers, unshared_texts
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain, Nodes
from anon_pipeline_tests.examples import times

#: Lower end, shown number and upper end of a class; None where it is open.
Told = tuple[float | None, float | None, float | None]


def column_of(people: Sequence[float | str], missing: int = 0, kind: ColumnType = ColumnType.NUMERIC) -> Domain:
    values, counts = np.unique(np.array(people), return_counts=True)
    return Domain("age", kind, values, np.r_[missing, counts].astype(np.int64))


def classes_of(told: Sequence[Told], dtype: str) -> pd.DataFrame:
    columns = zip(("age_low", "age", "age_high"), zip(*told, strict=True), strict=True)
    return pd.DataFrame({name: pd.array(list(values), dtype) for name, values in columns})


def counted(people: Sequence[float], told: Sequence[Told], k: int, left_out: int) -> int:
    """The rule of `unshared_numbers`, one named number after another."""
    lows, shown, highs = ({row[at] for row in told if row[at] is not None} for at in range(3))
    ends, named = lows | highs, sorted(lows | highs | shown)
    step = min((b - a for a, b in pairwise(named)), default=0)
    few = 0
    for low in lows:
        few += sum(low <= value < min((end for end in lows if end > low), default=inf) for value in people) < k
    for high in highs:
        few += sum(max((end for end in highs if end < high), default=-inf) < value <= high for value in people) < k
    for number in shown:
        before = max((end for end in ends if end < number), default=-inf)
        after = min((end for end in ends if end > number), default=inf)
        few += sum(before < value < after for value in people) < k
    for number in named:
        bearers = sum(value == number for value in people)
        few += left_out < bearers < k and sum(number <= value < number + step for value in people) < k
    if any(low is None and high is not None for low, _, high in told):
        few += sum(value < min(lows, default=inf) for value in people) < k
    if any(low is not None and high is None for low, _, high in told):
        few += sum(value > max(highs, default=-inf) for value in people) < k
    return few


@st.composite
def told_of_people(draw: st.DrawFn) -> tuple[list[float], list[Told], str]:
    whole = draw(st.booleans())
    numbers = st.integers(0, 12) if whole else st.integers(0, 12).map(lambda number: number / 4)
    people = draw(st.lists(numbers, min_size=1, max_size=40))
    end = st.one_of(st.none(), st.sampled_from(people), numbers)
    told = draw(st.lists(st.tuples(end, end, end), min_size=1, max_size=5))
    return people, told, "Int64" if whole else "Float64"


@pytest.mark.long
@settings(max_examples=times(300))
@given(told_of_people(), st.integers(2, 6), st.integers(0, 3))
def test_the_numbers_that_a_few_share_are_counted(
    content: tuple[list[float], list[Told], str], k: int, left_out: int
) -> None:
    people, told, dtype = content
    found = unshared_numbers(column_of(people), classes_of(told, dtype), k, left_out)
    assert found == counted(people, told, k, left_out)


def test_a_number_is_told_as_it_was_written_and_borne_with_a_last_bit_more() -> None:
    told: list[Told] = [(0.3, 0.3, 0.3), (0.7, 0.7, 0.7)]
    for people in ([0.1 + 0.2] * 3 + [0.7] * 3, [0.3] * 3 + [0.7 - 1e-16] * 3):
        assert unshared_numbers(column_of(people), classes_of(told, "Float64"), 3, 0) == 0
    assert unshared_numbers(column_of([0.3 + 1e-9] * 3 + [0.7] * 3), classes_of(told, "Float64"), 3, 0) > 0


def test_numbers_above_what_a_float_can_tell_apart_stay_apart() -> None:
    large = 2**53
    told: list[Told] = [(large + 1, large + 1, large + 1)]
    assert unshared_numbers(column_of([large + 1] * 3), classes_of(told, "Int64"), 3, 0) == 0
    assert unshared_numbers(column_of([large] * 3), classes_of(told, "Int64"), 3, 0) > 0


@pytest.mark.parametrize(("storage", "unit"), [("DATE", "D"), ("TIMESTAMP", "us")])
def test_dates_are_counted_in_the_unit_in_which_they_are_stored(storage: str, unit: str) -> None:
    days = np.array(["2001-02-03", "2001-02-04"], "datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)
    domain = Domain("born", ColumnType.DATE, days, np.array([0, 3, 2]), storage)
    for day, few in (("2001-02-03", 0), ("2001-02-04", 2)):  # as a lower end, and as a value that two bear
        named = pd.Series(pd.to_datetime([day]))
        classes = pd.DataFrame({"born_low": named, "born": named, "born_high": named})
        assert unshared_numbers(domain, classes, 3, 0) == few


def test_the_categories_that_a_few_bear_are_counted() -> None:
    column = column_of(["a"] * 3 + ["b"] * 2 + ["c"] * 4, missing=2, kind=ColumnType.CATEGORICAL)
    assert unshared_categories(column, ["a", "c", "*"], 3) == 0
    assert unshared_categories(column, ["a", "b", "b"], 3) == 1
    assert unshared_categories(column, ["b", "nobody's", None], 3) == 3
    assert unshared_categories(column, ["a", "b", None], 2) == 0


TEXTS = column_of(["high"] * 3 + ["low"] * 3 + ["middle"] * 2, kind=ColumnType.CATEGORICAL)


@pytest.mark.parametrize(
    ("text", "few"),
    [
        ("low", 0),
        ("middle", 1),
        ("*", 0),
        ("missing", 0),
        ("low .. high", 0),
        ("low .. middle", 1),
        ("middle .. high", 1),
        ("≥ low", 0),
        ("≤ middle", 1),
        ("low or missing", 0),
        ("≥ low or *", 0),
        ("middle or missing", 1),
        ("nobody's", 1),
    ],
)
def test_the_words_of_a_text_are_shared(text: str, few: int) -> None:
    assert unshared_texts(TEXTS, [text, text], 3) == few


def test_a_node_of_a_hierarchy_has_the_people_below_it() -> None:
    """Two nodes of one name are two: the larger has to be large enough. A value's own people count for its name."""
    nodes = Nodes(np.array([[0, 0], [0, 0], [1, 0]]), (("some", "others"), ("*",)), False, 1)
    column = Domain("zip", ColumnType.CATEGORICAL, np.array(["1", "2", "3"]), np.array([0, 2, 1, 2]), nodes=nodes)
    assert unshared_texts(column, ["some"], 3) == 0
    assert unshared_texts(column, ["some", "others"], 3) == 1
    assert unshared_texts(column, ["others", "3"], 2) == 0
    twice = Nodes(np.array([[0], [0], [1]]), (("same", "same"),), False, 1)
    column = Domain("zip", ColumnType.CATEGORICAL, np.array(["1", "2", "3"]), np.array([0, 2, 1, 2]), nodes=twice)
    assert unshared_texts(column, ["same"], 3) == 0
    assert unshared_texts(column, ["same"], 4) == 1
