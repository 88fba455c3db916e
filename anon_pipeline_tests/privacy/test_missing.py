"""A missing value is no diversity: a class holds whatever the missing values of its people stand for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anon_pipeline.privacy.alpha_k import AlphaKAnonymity
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.beta_likeness import BetaLikeness
from anon_pipeline.privacy.delta_disclosure import DeltaDisclosure
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.measures import describe
from anon_pipeline.privacy.risk import attribute_inference
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.t_closeness import TCloseness
from anon_pipeline_tests.privacy import reference
from anon_pipeline_tests.privacy.tables import COLUMN, Rows, classes_of, merged

ALONE: list[PrivacyModel] = [
    LDiversity(column=COLUMN, l=2),
    LDiversity(column=COLUMN, l=3),
    LDiversity(column=COLUMN, kind="entropy", l=1.7),
    LDiversity(column=COLUMN, kind="recursive", l=2, c=2.5),
    AlphaKAnonymity(column=COLUMN, alpha=0.6, k=2),
]
COMPARED: list[PrivacyModel] = [
    TCloseness(column=COLUMN, t=0.2),
    TCloseness(column=COLUMN, t=0.2, distance="ordered"),
    BetaLikeness(column=COLUMN, beta=0.7),
    BetaLikeness(column=COLUMN, beta=1.5, kind="enhanced"),
    DeltaDisclosure(column=COLUMN, delta=0.8),
]


@st.composite
def with_missing(draw: st.DrawFn) -> Rows:
    """Small classes, whose first count is of people without a value; every class has somebody with one."""
    m = draw(st.integers(2, 4))
    known = st.lists(st.integers(0, 6), min_size=m, max_size=m).filter(any)
    rows = draw(st.lists(known, min_size=2, max_size=4))
    return [[draw(st.integers(0, 4)), *row] for row in rows]


def missing_in(rows: Rows, *, answer: bool = False) -> ClassStatistics:
    classes = classes_of(rows, [None, *range(1, len(rows[0]))], ordered=True)
    histogram = classes.sensitive[COLUMN]
    object.__setattr__(histogram, "missing_is_a_value", answer)
    return classes


@pytest.mark.long
@pytest.mark.parametrize("model", ALONE, ids=str)
@given(with_missing())
def test_a_class_is_as_diverse_as_in_the_worst_way_to_fill_it_in(model: PrivacyModel, rows: Rows) -> None:
    every = [classes_of(reference.resolutions(row)) for row in rows]
    assert model.holds(missing_in(rows)).tolist() == [bool(model.holds(ways).all()) for ways in every]
    assert model.values(missing_in(rows)).tolist() == pytest.approx([model.measured(ways) for ways in every])


@pytest.mark.long
@pytest.mark.parametrize("model", COMPARED, ids=str)
@given(with_missing())
def test_a_class_is_near_the_table_with_and_without_the_missing(model: PrivacyModel, rows: Rows) -> None:
    with_them, known = missing_in(rows, answer=True), [[0, *row] for row in reference.known(rows)]
    without = classes_of(reference.known(rows), ordered=True)
    assume(any(row[0] for row in rows) and all(any(row[s] for row in known) for s in range(1, len(known[0]))))
    assert model.holds(missing_in(rows)).tolist() == (model.holds(with_them) & model.holds(without)).tolist()
    assert model.values(missing_in(rows)).tolist() == pytest.approx(
        np.maximum(model.values(with_them), model.values(without)).tolist()
    )


@pytest.mark.long
@given(with_missing())
def test_the_distances_are_those_of_the_loops(rows: Rows) -> None:
    assume(any(row[0] for row in rows))
    known = reference.known(rows)
    assume(all(any(row[s] for row in known) for s in range(len(known[0]))))
    expected = [max(reference.ordered_distance(rows, row), reference.ordered_distance(known, row[1:])) for row in rows]
    assert TCloseness(column=COLUMN, t=0.2).values(missing_in(rows)).tolist() == pytest.approx(
        list(map(float, expected))
    )
    gains = [max(reference.beta(rows, row), reference.beta(known, row[1:])) for row in rows]
    assert BetaLikeness(column=COLUMN, beta=1).values(missing_in(rows)).tolist() == pytest.approx(
        list(map(float, gains))
    )


@pytest.mark.long
@pytest.mark.parametrize("model", [*ALONE, *COMPARED], ids=str)
@given(with_missing())
def test_merging_keeps_what_holds(model: PrivacyModel, rows: Rows) -> None:
    classes = missing_in(rows)
    holds = model.holds(classes)
    if holds[0] and holds[1]:
        assert model.holds(merged(classes, 0, 1))[0]
    measured = model.values(merged(classes, 0, 1))[0]
    worst = model.values(classes)[:2].min() if model.larger_is_safer else model.values(classes)[:2].max()
    assert measured >= worst - 1e-9 if model.larger_is_safer else measured <= worst + 1e-9


def test_nine_alike_and_one_missing_are_not_diverse() -> None:
    classes = missing_in([[1, 9, 0], [0, 5, 5]])
    assert LDiversity(column=COLUMN, l=2).holds(classes).tolist() == [False, True]
    assert AlphaKAnonymity(column=COLUMN, alpha=0.9, k=2).holds(classes).tolist() == [False, True]
    found = describe(classes)[COLUMN]
    assert (found["distinct_l"], found["alpha"], found["homogeneity"]) == (1, 1, 0.5)
    assert found["entropy_l"] == 1
    assert math.isinf(found["recursive_c"])
    assert attribute_inference(classes)[COLUMN].homogeneous == 0.5
    assert attribute_inference(classes)[COLUMN].baseline == 15 / 20


@pytest.mark.parametrize(
    ("rows", "t", "beta", "delta"),
    [
        # Eight of ten have no value, against 8 of 20; those who have one are as everybody. t is (.4 + .2) / 2.
        ([[8, 1, 1], [0, 5, 5]], 0.3, 1.0, math.inf),
        # As many have none everywhere. Of those who have one two thirds bear the first value, against one half.
        ([[7, 2, 1], [7, 1, 2]], 1 / 6, 1 / 3, math.log(1.5)),
    ],
)
def test_what_is_reported_is_the_worse_of_both_readings(rows: Rows, t: float, beta: float, delta: float) -> None:
    found = describe(missing_in(rows))[COLUMN]
    assert (found["t"], found["beta"], found["delta"]) == pytest.approx((t, beta, delta))


def test_missing_is_a_value_where_the_spec_says_so() -> None:
    classes = missing_in([[1, 9, 0], [0, 5, 5]], answer=True)
    assert LDiversity(column=COLUMN, l=2).holds(classes).tolist() == [True, True]
    assert describe(classes)[COLUMN]["homogeneity"] == 0
    whole = classes.pool(classes_of([[1, 1]]).sensitive[COLUMN].counts)
    assert whole.sensitive[COLUMN].missing_is_a_value


def test_a_class_of_which_nobody_has_a_value_is_not_diverse() -> None:
    classes = missing_in([[4, 0, 0], [0, 2, 2]])
    for model in ALONE:
        assert not model.holds(classes)[0], model
    assert LDiversity(column=COLUMN, l=2, bins=(2,)).holds(classes).tolist() == [False, True]


def test_the_few_who_have_a_value_are_held_against_those_who_have_one() -> None:
    """Nine of ten have none in class and table alike, so that the class is near; whoever has one is ill."""
    rows = [[9, 1, 0], [891, 9, 90]]
    assert TCloseness(column=COLUMN, t=0.15).holds(missing_in(rows, answer=True)).tolist() == [True, True]
    assert TCloseness(column=COLUMN, t=0.15).holds(missing_in(rows)).tolist() == [False, True]
    assert TCloseness(column=COLUMN, t=0.15).values(missing_in(rows))[0] == float(1 - Fraction(10, 100))
