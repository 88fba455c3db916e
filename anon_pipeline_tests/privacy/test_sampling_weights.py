"""The individual risk of a weighted sample: closed forms, the integral that it stands for, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from anon_pipeline.privacy.risk import marketer, prosecutor
from anon_pipeline.privacy.sampling_weights import individual_risk, weighted_risk


def one(f: int, weight: float) -> float:
    return float(individual_risk(np.array([f]), np.array([float(weight)]))[0])


@pytest.mark.parametrize("weight", [1.5, 3, 10, 100, 1e4, 1e7])
def test_of_one_two_and_three_records_it_is_the_closed_form(weight: float) -> None:
    """As sdcMicro computes them (Benedetti and Franconi 1998; its handbook, section 3.5)."""
    p = 1 / weight
    q, log = 1 - p, math.log(1 / p)
    odds = p / q
    assert one(1, weight) == pytest.approx(odds * log, rel=1e-9)
    assert one(2, 2 * weight) == pytest.approx(odds - odds**2 * log, rel=1e-6)
    if weight >= 3:  # the closed form itself cancels below
        assert one(3, 3 * weight) == pytest.approx(odds / 2 - odds**2 + odds**3 * log, rel=1e-5)


@given(st.integers(1, 400), st.floats(1.01, 1e4))
def test_it_is_the_mean_of_one_over_a_negative_binomial_population(f: int, factor: float) -> None:
    """E(1/F | f) is the integral of the moment generating function, t from 0 to infinity."""
    p = 1 / factor
    q = 1 - p  # t = -ln(1 - u), and then the power as a weight near u = 0
    expected, _ = quad(lambda v: p * v ** (f - 1) / (p + q * v), 0, 1, limit=200, points=[1 - 1 / f] if f > 1 else None)
    assert one(f, f * factor) == pytest.approx(expected, rel=1e-6)


def test_it_is_the_mean_over_simulated_populations() -> None:
    generator = np.random.default_rng(4)
    for f, factor in ((1, 5.0), (3, 20.0), (60, 8.0), (10, 1.4)):
        people = f + generator.negative_binomial(f, 1 / factor, 200_000)
        assert one(f, f * factor) == pytest.approx((1 / people).mean(), rel=0.02)


def test_a_sample_that_is_the_population_has_the_risk_of_the_prosecutor() -> None:
    sizes = np.array([1, 5, 20, 4_000_000])
    assert individual_risk(sizes, sizes.astype(float)) == pytest.approx(1 / sizes)
    found = weighted_risk(sizes, sizes.astype(float))
    assert found.max == prosecutor(sizes).max
    assert found.mean == pytest.approx(marketer(sizes))
    assert found.population == sizes.sum()


@given(st.integers(1, 10**6), st.floats(1, 1e6))
def test_it_lies_between_one_over_the_population_and_one_over_the_class(f: int, factor: float) -> None:
    """1/F is convex in F, so its mean is no less than 1 over the mean; and F is never below f."""
    risk = one(f, f * factor)
    assert 1 / (f * factor) * (1 - 1e-9) <= risk <= 1 / f * (1 + 1e-9)


def test_weights_below_the_class_are_taken_for_the_class() -> None:
    assert one(10, 3.0) == pytest.approx(0.1)


def test_records_count_and_not_classes() -> None:
    """One class of 10 records of weight 1, one of a single record of weight 1."""
    found = weighted_risk(np.array([10, 1]), np.array([10.0, 1.0]))
    assert (found.max, found.smallest_class) == (1.0, 1.0)
    assert found.mean == pytest.approx(2 / 11)


@pytest.mark.parametrize("f", [1, 39, 40, 41, 400])
def test_a_sample_of_half_the_class_belongs_to_one_of_the_ways(f: int) -> None:
    """p is exactly 1/2, where the series ends, and f lies on either side of where the quadrature begins."""
    expected, _ = quad(lambda v: v ** (f - 1) / (1 + v), 0, 1, limit=200)
    assert one(f, 2 * f) == pytest.approx(expected, rel=1e-9)


def test_a_class_stands_for_no_fewer_people_than_it_has() -> None:
    found = weighted_risk(np.array([10, 2]), np.array([3.0, 30.0]))
    assert (found.population, found.smallest_class) == (40, 10)
    assert found.max == pytest.approx(1 / 10)
    assert found.mean == pytest.approx((10 / 10 + 2 * one(2, 30.0)) / 12)
    nobody = weighted_risk(np.array([], dtype=np.int64), np.array([]))
    assert (nobody.population, nobody.smallest_class, nobody.max, nobody.mean) == (0, 0, 0, 0)
