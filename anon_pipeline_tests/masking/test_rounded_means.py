"""Means of groups: whoever knows how many people a group counts cannot tell from the digits how many have a value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.masking.aggregation import Aggregate
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.masking.rounded_means import parts_of_unit, rounded, unit_of
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.masking.tables import CATEGORICAL, KEY, NUMERIC


def numbers_that_fit(mean: float, people: int, unit: float, width: float) -> list[int]:
    """The attack: of how many values a mean can be, if it is a sum of whole units and was rounded to a step."""
    fitting = []
    for number in range(1, people + 1):
        units = np.rint(mean * number / unit)
        if abs(units * unit / number - mean) <= width / 2 + 1e-9 * max(abs(mean), 1):
            fitting.append(number)
    return fitting


@settings(max_examples=times(100))
@given(
    people=st.integers(2, 400),
    missing=st.floats(0, 0.5),
    unit=st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(1, 4), Fraction(7), Fraction(500)]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_number_of_values_from_half_the_group_up_gives_the_mean(
    people: int, missing: float, unit: Fraction, seed: int
) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(-100, 1000, people - int(missing * people)) * float(unit)
    mean = rounded(np.array([values.mean()]), np.array([people]), unit)[0]
    width = float(unit) / int(parts_of_unit(np.array([people]))[0])
    assert abs(mean - values.mean()) <= width / 2 * (1 + 1e-9)
    assert set(range((people + 1) // 2, people + 1)) <= set(numbers_that_fit(mean, people, float(unit), width))


def test_a_table_of_groups_does_not_tell_who_has_no_value() -> None:
    """Groups of 12 and of 30, in which one person or a few have no number; exact means tell it of most of them."""
    random = np.random.default_rng(5)
    types = {"town": CATEGORICAL, "visits": NUMERIC}
    step = Aggregate(columns=("town",), means=("visits",), threshold=10)
    told = exact = with_gap = 0
    for _ in range(40):
        towns = np.repeat([f"town {number}" for number in range(10)], [12, 30] * 5)
        visits = random.integers(0, 9, len(towns)).astype(float)
        visits[random.random(len(towns)) < 0.05] = np.nan
        table = pa.table({"town": towns, "visits": pa.array(visits, from_pandas=True)})
        made, _ = apply_steps(table, types, {}, [step], Resources("figures", KEY))
        for row in made.to_pylist():
            people, values = row["people"], visits[towns == row["town"]]
            if row["mean_visits"] is None or not np.isnan(values).any():
                continue
            with_gap += 1
            width = 1 / int(parts_of_unit(np.array([people]))[0])
            told += people not in numbers_that_fit(row["mean_visits"], people, 1, width)
            exact += people not in numbers_that_fit(np.nanmean(values), people, 1, 0)
    assert told == 0
    assert exact > with_gap / 2 > 50


@pytest.mark.parametrize("places", range(13))
def test_values_of_many_decimal_places_do_not_tell_it_either(places: int) -> None:
    """Whoever knows in how many places values were measured tries each number of values, as far as digits go."""
    random = np.random.default_rng(places)
    told = exact = 0
    for _ in range(50):
        values = random.integers(1, 10**places + 1, (20, 12)) / 10**places
        values[0, 0] = np.nan
        unit, mean = unit_of(values.ravel()), float(np.nanmean(values[0]))
        shown = rounded(np.array([mean]), np.array([12]), unit)[0]
        told += 12 not in numbers_that_fit(shown, 12, 10.0**-places, float(unit) / 5)
        sums = Fraction(mean) * 10**places * 12  # exactly, as an attacker can
        exact += abs(sums - round(sums)) > Fraction(1, 100)
    assert told == 0
    assert exact > 25 or not places  # each value is 1 then


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([1, 2, 3, 4, 5, 0], Fraction(1)),
        ([0.25, 0.5, 1.75, np.nan], Fraction(1, 4)),
        ([19.99, 5.01, 0.02, 7.0, 3.33], Fraction(1, 100)),
        ([1200, 2500, -700, 1234.56, 0, 0], Fraction(100)),  # one of four is written to the cent
        ([10_007, 0, 10_007, np.nan], Fraction(10_007)),  # a fee that people pay or do not
        ([17 * number for number in range(20)], Fraction(17)),
        ([0.0, np.nan, 0.0], Fraction(0)),
        ([], Fraction(0)),
        ([1 / 3, 0.1234567891, 2**0.5], Fraction(1, 10**7)),  # finer than any unit that is looked for
        ([100 / 3, 123.4567891, 200 / 7], Fraction(1, 10**5)),
        ([0.0000012, 0.0000031, 0.0000044, 0.0000059], Fraction(1, 10**7)),
        ([1.1e-30, 3.1e-30, 4.3e-30], Fraction(1, 10**31)),
        ([1e30, 2e30], Fraction(10**24)),
        ([1e300, 2e300], Fraction(0)),  # nothing counts in units there
        ([0.1, 0.2, 0.1 + 0.2], Fraction(1, 10)),
    ],
)
def test_a_unit_is_one_of_most_values(values: list[float], unit: Fraction) -> None:
    assert unit_of(np.array(values, dtype=np.float64)) == unit


@settings(max_examples=times(50))
@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=50),
    st.sampled_from([Fraction(1), Fraction(1, 20), Fraction(30)]),
)
def test_at_least_two_thirds_of_the_values_are_multiples(units: list[int], unit: Fraction) -> None:
    values = np.array(units, dtype=np.float64) * float(unit)
    found = unit_of(values)
    nonzero = values[values != 0]
    if not len(nonzero):
        assert found == 0
        return
    multiples = nonzero / float(found)
    assert (np.abs(multiples - np.rint(multiples)) < 1e-6).mean() >= 2 / 3
    assert found >= unit


def test_parts_are_one_two_or_five_and_at_most_half_of_the_people() -> None:
    counts = np.array([1, 2, 3, 4, 5, 9, 10, 19, 20, 39, 40, 99, 100, 200, 399, 400, 1000])
    assert parts_of_unit(counts).tolist() == [1, 1, 1, 2, 2, 2, 5, 5, 10, 10, 20, 20, 50, 100, 100, 200, 500]


def test_whole_units_and_values_without_a_unit_are_shown_as_they_are() -> None:
    means, counts = np.array([7.0, 0.1, 12.5]), np.array([12, 12, 12])
    assert rounded(means, counts, Fraction(0)).tolist() == means.tolist()
    assert rounded(np.array([7.0, 14.0]), np.array([12, 399]), Fraction(7)).tolist() == [7.0, 14.0]
    assert rounded(np.array([0.37]), np.array([12]), Fraction(1)).tolist() == [0.4]


@pytest.mark.parametrize("hidden", ["group", "mean"])
def test_a_value_behind_no_mean_decides_no_step(hidden: str) -> None:
    """The attack: all values but one are known, two thirds of all are hundreds if that one is, and its group is hidden.

    The steps of all means, and the unit in the manifest, told whether the last value is a whole number of hundreds.
    """
    towns = ["Ulm"] * 12 + ["Graz"] * 12 + (["Bonn"] * 3 + ["Isle"] * 3 if hidden == "group" else ["Bonn"] * 6)
    incomes = [100.0 * number for number in range(3, 17)] + [151.0 + number for number in range(10)]
    step = Aggregate(columns=("town",), means=("income",), threshold=6)
    made = []
    for last in (90_000.0, 90_001.0):  # it dominates its group, of which the mean is hidden
        table = pa.table({"town": towns, "income": [*incomes, *[100.0] * 5, last]})
        shown = apply_steps(table, {"town": CATEGORICAL, "income": NUMERIC}, {}, [step], Resources("incomes", KEY))[0]
        made.append(shown.to_pydict())
    assert made[0] == made[1]
    assert None in made[0]["mean_income"] if hidden == "mean" else made[0]["town"] == ["Graz", "Ulm"]
    assert len({unit_of(np.array([*incomes, *[100.0] * 5, last])) for last in (90_000.0, 90_001.0)}) == 2
