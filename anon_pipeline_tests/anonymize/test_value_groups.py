"""Groups of values: everybody is in one, none is too small, and their names are round."""

from __future__ import annotations

from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize.encoding import learn_domain
from anon_pipeline.anonymize.value_groups import MISSING, OTHERS, group_values
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import Table, tables

few = settings(max_examples=times(30))


def counted(column: pd.Series, smallest: int, alone: int = 0) -> dict[str, int]:
    domain, codes = learn_domain("x", column)
    groups = group_values(domain, smallest, alone)
    return dict(zip(groups.labels, np.bincount(groups.of_code[codes], minlength=len(groups.labels)), strict=True))


@few
@given(tables(), st.integers(1, 12), st.integers(0, 12))
def test_everybody_is_in_a_group_and_no_group_is_too_small(table: Table, smallest: int, alone: int) -> None:
    for name in table.frame:
        domain, codes = learn_domain(str(name), table.frame[name])
        groups = group_values(domain, smallest, alone)
        if len(table.frame) < smallest:
            assert groups.labels == ()
            continue
        sizes = np.bincount(groups.of_code[codes], minlength=len(groups.labels))
        assert len(sizes) == len(groups.labels) and sizes.min() >= smallest
        if groups.place is not None:  # a value is placed where its code is
            assert (groups.place(domain.values) == groups.of_code[1:]).all()


@few
@given(tables(), st.integers(1, 12), st.randoms(use_true_random=False))
def test_whatever_the_noise_everybody_is_in_a_group(table: Table, smallest: int, random: Random) -> None:
    """Of few people who have a value, noise puts the low end of all ranges above the high one."""
    for name in table.frame:
        domain, codes = learn_domain(str(name), table.frame[name])
        groups = group_values(domain, smallest, noise=lambda _: random.randint(-40, 40))
        if groups.labels:
            assert set(groups.of_code[codes]) <= set(range(len(groups.labels)))


@pytest.mark.parametrize(("fractions", "written"), [(0, "30\u201339"), (1, "30\u201339"), (30, "30 to under 40")])
def test_nobody_decides_alone_how_groups_are_written(fractions: int, written: str) -> None:
    """Else the report of a release would tell that somebody's age has a fraction."""
    ages = pd.Series(np.arange(400) % 60 + 20.0)
    ages[:fractions] += 0.5
    assert written in counted(ages, 5)


def test_numbers_are_cut_at_round_ones() -> None:
    assert counted(pd.Series(np.arange(100) % 60), 5) == {
        "under 10": 20,
        "10\u201319": 20,
        "20\u201329": 20,
        "30\u201339": 20,
        "40\u201349": 10,
        "50 and over": 10,
    }
    assert list(counted(pd.Series(np.linspace(-1, 1, 50)), 2)) == [
        "under \u22120.5",
        "\u22120.5 to under 0",
        "0 to under 0.5",
        "0.5 and over",
    ]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (np.linspace(100_000.05, 100_000.75, 40), ["under 100000.2", "100000.2 to under 100000.3", "100000.3 to"]),
        (np.linspace(12_345.005, 12_345.245, 40), ["under 12345.05", "12345.05 to under 12345.1", "12345.1 to"]),
        (np.linspace(-1_234_567.9, -1_234_567, 40), ["under \u22121234567.8", "\u22121234567.8 to under"]),
        (
            10**17 + np.arange(40) * 100_000,
            ["under 100,000,000,000,500,000", "100,000,000,000,500,000\u2013100,000,000,000,9"],
        ),
        (np.linspace(0.000_001, 0.000_009, 40), ["under 2e\u221206", "2e\u221206 to under 4e\u221206"]),
    ],
    ids=["tenths", "hundredths", "negative", "beyond floats", "small"],
)
def test_names_have_all_digits_of_their_ends(values: np.ndarray, labels: list[str]) -> None:
    """Six digits made "100000 to under 100000" of two ranges, which nobody could tell apart or read."""
    domain, _ = learn_domain("x", pd.Series(values))
    found = group_values(domain, 5).labels
    assert len(set(found)) == len(found)
    assert all(name.startswith(label) for name, label in zip(found, labels, strict=False))


@pytest.mark.parametrize("step", [0.1, 0.001, 1e-13])
def test_who_is_just_at_an_end_is_in_the_group_that_is_named_so(step: float) -> None:
    """500001 times .2 is a little more than 100000.2: who has this number was in the group below it."""
    first = 0 if step < 1e-9 else 100_000
    values = [float(f"{first + number * step:.15g}") for number in range(1, 9)]
    names = counted(pd.Series(values * 10), 5)
    for name, people in list(names.items())[1:]:
        low, _, high = name.replace("\u2212", "-").removesuffix(" and over").partition(" to under ")
        assert people == 10 * sum(float(low) <= value < float(high or "inf") for value in values)


@pytest.mark.parametrize("value", [MISSING, OTHERS])
def test_a_category_is_no_word_of_ours(value: str) -> None:
    """People of whom a table says "missing" as a text stood beside those without a value, under one name."""
    towns = pd.Series([value] * 20 + ["Ulm"] * 20 + ["Bonn"] * 3 + ["Hof"] * 3 + [None] * 10, dtype=object)
    domain, _ = learn_domain("x", towns)
    assert sorted(group_values(domain, 5).labels) == sorted(["Ulm", MISSING, OTHERS, f"\u201c{value}\u201d"])


def test_ranges_that_are_too_small_are_joined_and_so_are_rare_categories() -> None:
    assert counted(pd.Series([1] * 50 + [2] * 50 + [9, 10]), 5) == {"under 2": 50, "2 and over": 52}
    rare = pd.Series(["a"] * 20 + ["b"] * 9 + ["c"] * 2 + ["d"])
    assert counted(rare, 5) == {"a": 20, OTHERS: 12}  # b joins: three people cannot stand together
    assert counted(rare, 3) == {"a": 20, "b": 9, OTHERS: 3}
    assert counted(rare, 3, alone=10) == {"a": 20, OTHERS: 12}


def test_dates_are_years_months_or_days() -> None:
    years = pd.Series(pd.date_range("1950-01-01", "2005-12-31", periods=500))
    assert (
        list(counted(years, 5))[:2] == ["before 1960", "1960\u20131969"] and list(counted(years, 5))[-1] == "from 2000"
    )
    months = pd.Series(pd.date_range("2020-01-01", "2020-12-05", periods=500))
    assert "2020-03\u20132020-04" in counted(months, 5)
    assert "2020-01-04\u20132020-01-08" in counted(pd.Series(pd.date_range("2020-01-01", "2020-01-28", periods=500)), 5)


def test_the_missing_stand_alone_only_where_they_are_many() -> None:
    numbers = [1.0] * 10 + [5.0] * 20
    assert counted(pd.Series([*numbers, *[np.nan] * 8]), 5)[MISSING] == 8
    assert "under 2 or missing" in counted(pd.Series([*numbers, np.nan]), 5)
    assert counted(pd.Series([np.nan] * 9), 5) == {MISSING: 9}
    assert counted(pd.Series([np.nan] * 9 + [3.0]), 5) == {"any or missing": 10}


@pytest.mark.parametrize("zero", [0, 0.0])
def test_a_column_of_nearly_one_number_still_has_groups(zero: float) -> None:
    assert counted(pd.Series([zero] * 990 + [5.0] * 10).astype(type(zero)), 5) == {"under 1": 990, "1 and over": 10}


def test_fewer_people_than_a_group_has_are_in_none() -> None:
    domain, _ = learn_domain("x", pd.Series([1, 2, 2]))
    assert group_values(domain, 3).labels != ()
    groups = group_values(domain, 4)
    assert groups.labels == () and groups.of_code.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("values", "smallest", "labels"),
    [
        ([*range(8)] * 5, 5, ["under 1", "1", "2", "3", "4", "5", "6", "7 and over"]),  # the most groups that there are
        ([*range(9)] * 5, 5, ["under 2", "2\u20133", "4\u20135", "6\u20137", "8 and over"]),
        ([7] * 30, 5, ["any"]),
        ([7] * 30 + [8] * 30, 5, ["under 8", "8 and over"]),
        ([0.5] * 30 + [0.7] * 30, 5, ["under 0.55", "0.55 and over"]),
        ([9_999] * 30 + [10_000] * 30, 5, ["under 10,000", "10,000 and over"]),
        ([-10_001] * 30 + [-10_000] * 30, 5, ["under \u221210,000", "\u221210,000 and over"]),
        ([1.0] * 10 + [2.0] * 30 + [3.0] * 20 + [np.nan], 5, ["under 2 or missing", "2", "3 and over"]),
        ([1.0] * 30 + [2.0] * 10 + [3.0] * 20 + [np.nan], 5, ["under 2", "2 or missing", "3 and over"]),
        ([1.0] * 30 + [2.0] * 20 + [3.0] * 10 + [np.nan] * 4, 5, ["under 2", "2", "3 and over or missing"]),
        ([1.0] * 30 + [2.0] * 20 + [3.0] * 10 + [np.nan] * 5, 5, ["under 2", "2", "3 and over", MISSING]),
        ([1.0] * 5 + [np.nan] * 5, 5, ["any", MISSING]),
        ([1.0] * 4 + [np.nan] * 5, 5, ["any or missing"]),
    ],
)  # fmt: skip
def test_which_ranges_there_are(values: list[float], smallest: int, labels: list[str]) -> None:
    assert list(counted(pd.Series(values), smallest)) == labels


def test_what_nobody_has_counts_in_the_first_range() -> None:
    domain, _ = learn_domain("x", pd.Series([1, 2] * 9))
    assert group_values(domain, 5).of_code.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("first", "days", "label"),
    [
        ("2020-01-01", 3 * 365, "2021"),  # three years are cut into years, a day less into months
        ("2020-01-01", 3 * 365 - 1, "2020-06\u20132020-10"),
        ("2020-01-01", 90, "2020-02"),
        ("2020-01-01", 89, "2020-01-19\u20132020-02-07"),
    ],
)
def test_dates_are_cut_into_years_months_or_days_by_how_long_they_last(first: str, days: int, label: str) -> None:
    dates = pd.Series(pd.to_datetime(first) + pd.to_timedelta(np.arange(days + 1), "D"))
    assert label in counted(dates, 5)


@pytest.mark.parametrize(
    ("people", "smallest", "alone", "groups"),
    [
        ({"a": 5, "b": 5}, 5, 0, {"a": 5, "b": 5}),
        ({"a": 5, "b": 4, "c": 1}, 5, 0, {"a": 5, OTHERS: 5}),
        ({"a": 5, "b": 4}, 5, 0, {OTHERS: 9}),
        ({None: 6, "b": 5}, 5, 0, {MISSING: 6, "b": 5}),
        (dict.fromkeys("abcdefgh", 5), 5, 0, dict.fromkeys("abcdefgh", 5)),
        (dict.fromkeys("abcdefghi", 5), 5, 0, {**dict.fromkeys("abcdefgh", 5), OTHERS: 5}),
        ({"a": 9, "b": 8, "c": 7}, 5, 8, {"a": 9, "b": 8, OTHERS: 7}),
    ],
)
def test_which_categories_stand_alone(
    people: dict[str | None, int], smallest: int, alone: int, groups: dict[str, int]
) -> None:
    values = [value for value, number in people.items() for _ in range(number)]
    assert counted(pd.Series(values, dtype=object), smallest, alone) == groups
