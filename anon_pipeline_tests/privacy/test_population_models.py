"""k-map and delta-presence against hand counts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anon_pipeline.errors import InputError
from anon_pipeline.privacy.delta_presence import DeltaPresence
from anon_pipeline.privacy.k_map import KMap
from anon_pipeline.privacy.statistics import ClassStatistics


def classes_of(sizes: list[int], population: list[int], unmatched: int | None = None) -> ClassStatistics:
    return ClassStatistics(np.array(sizes), population=np.array(population), population_unmatched=unmatched)


def presence(least: float, most: float) -> DeltaPresence:
    return DeltaPresence(population="people.csv", min=least, max=most)


def test_k_map_counts_the_population_and_not_the_table() -> None:
    classes = classes_of([1, 50], [10, 9])
    model = KMap(population="people.csv", k=10)
    assert model.values(classes).tolist() == [10, 9]
    assert model.holds(classes).tolist() == [True, False]
    assert model.measured(classes) == 9


def test_k_map_is_impossible_in_a_small_population() -> None:
    assert "match 5 people of the population, fewer than k = 10" in str(
        KMap(population="p", k=10).impossible(classes_of([2, 2], [3, 2], 100))
    )
    assert "the table 8" in str(KMap(population="p", k=2).impossible(classes_of([6, 2], [3, 2], 2)))
    assert KMap(population="p", k=2).impossible(classes_of([6, 2], [3, 2], 3)) is None
    assert "has 7 people and the table 8" in str(KMap(population="p", k=2).impossible(classes_of([6, 2], [3, 4])))
    assert KMap(population="p", k=6).impossible(classes_of([1, 1], [3, 3])) is None


@pytest.mark.long
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 24)), min_size=1, max_size=6),
    st.sampled_from([0, 0.1, 0.25, 0.3, 0.5]),
    st.sampled_from([0.5, 0.6, 0.7, 0.75, 1]),
)
def test_delta_presence_agrees_with_the_definition(people: list[tuple[int, int]], least: float, most: float) -> None:
    classes = classes_of([f for f, _ in people], [F for _, F in people])
    low, high = Fraction(str(least)), Fraction(str(most))
    expected = [F > 0 and low <= Fraction(f, F) <= high for f, F in people]
    assert presence(least, most).holds(classes).tolist() == expected
    assert presence(least, most).values(classes).tolist() == [f / F if F else math.inf for f, F in people]


def test_a_population_person_in_no_class_is_present_with_chance_zero() -> None:
    classes = classes_of([1, 2], [2, 4], unmatched=1)
    assert presence(0, 0.5).holds(classes).all()
    assert not presence(0.1, 0.5).holds(classes).any()
    assert presence(0.1, 0.5).measured(classes) == 0
    assert "of the population, 1 person matches no class" in str(presence(0.1, 0.5).impossible(classes))
    assert presence(0, 0.5).impossible(classes) is None


def test_merging_keeps_the_people_in_no_class() -> None:
    assert classes_of([1, 2], [2, 4], unmatched=7).merge(np.array([0, 0]), 1).population_unmatched == 7


def test_the_worst_presence_may_be_the_lowest() -> None:
    classes = classes_of([1, 6, 5], [10, 10, 10])
    assert presence(0.3, 0.7).measured(classes) == 0.1  # .2 below the limits; .6 is within
    assert presence(0.05, 0.55).measured(classes) == 0.6
    assert presence(0, 0.9).measured(classes) == 0.6  # with no lower limit, only certainty of presence counts


def test_the_mean_presence_is_the_same_for_every_grouping() -> None:
    classes = classes_of([1, 3], [2, 2])  # 4 of 4 people: 1/2 and 3/2 is no population; 4/4 = 1 for everybody together
    assert "1 of the people" in str(presence(0.1, 0.9).impossible(classes))
    assert presence(0.1, 0.5).impossible(classes_of([1, 3], [2, 6])) is None
    assert "0.5 of the people" in str(presence(0.1, 0.4).impossible(classes_of([1, 3], [2, 6])))
    assert "the table 4" in str(presence(0, 1).impossible(classes_of([1, 3], [1, 1], 1)))
    assert presence(0, 1).impossible(classes_of([1, 3], [0, 0], 9)) is not None  # nobody of the table is in it


def test_a_population_that_was_not_counted_is_an_input_error() -> None:
    unknown = ClassStatistics(np.array([3]))
    with pytest.raises(InputError, match=r"privacy\.k_map\.population"):
        KMap(population="p", k=2).holds(unknown)
    with pytest.raises(InputError, match=r"privacy\.delta_presence\.population"):
        presence(0, 1).impossible(unknown)


@pytest.mark.parametrize(("least", "most"), [(0.5, 0.4), (-0.1, 0.5), (0.5, 1.1), (1.1, 1.2), (0.0, 0.0)])
def test_chances_of_presence_are_chances(least: float, most: float) -> None:
    with pytest.raises(ValueError, match=r"min|max"):
        presence(least, most)
    assert (presence(0, 1).min, presence(0, 1).max) == (0, 1)


@pytest.mark.parametrize(("least", "most"), [(0.5, 0.4), (-0.1, 0.5), (0.5, 1.1), (0, 0)])
def test_limits_without_sense_are_refused(least: float, most: float) -> None:
    with pytest.raises(ValidationError):
        presence(least, most)
