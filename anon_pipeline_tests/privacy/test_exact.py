"""Comparisons at the limit, where floats go wrong."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.privacy.exact import as_written, compare, logarithm

counts = st.integers(0, 10**16)


@given(counts, counts, st.fractions(0, 100, max_denominator=10**9))
def test_the_sign_is_that_of_rational_arithmetic(left: int, right: int, limit: Fraction) -> None:
    expected = (left > limit * right) - (left < limit * right)
    assert compare(np.array([left]), limit, np.array([right])).tolist() == [expected]


@given(st.integers(1, 10**7), st.integers(1, 10**7), st.integers(1, 10**8), st.sampled_from([-1, 0, 1]))
def test_one_person_more_or_less_than_the_limit_is_seen(a: int, b: int, times: int, off: int) -> None:
    # a*times / b*times is exactly a/b; floats of 1e15 cannot tell a neighbour apart after a division.
    assert compare(np.array([a * times + off]), Fraction(a, b), np.array([b * times])).tolist() == [off]


def test_a_limit_is_the_decimal_in_the_spec_and_not_the_nearest_binary_fraction() -> None:
    assert as_written(0.7) == Fraction(7, 10)
    assert compare(np.array([7]), as_written(0.7), np.array([10])).tolist() == [0]
    assert as_written(1e-20) == Fraction(1, 10**20)


def test_products_beyond_64_bits_and_beyond_floats_still_compare() -> None:
    huge = np.array([10**30, 10**30 + 1], dtype=object)
    assert compare(huge, Fraction(1), np.array([10**30, 10**30], dtype=object)).tolist() == [0, 1]
    assert compare(np.array([5]), as_written(1e308), np.array([10**16])).tolist() == [-1]
    assert compare(np.array([0]), as_written(0.5), np.array([0])).tolist() == [0]


def test_a_logarithm_has_more_digits_than_a_float() -> None:
    assert math.isclose(logarithm(6, 4), math.log(1.5), rel_tol=1e-15)
    assert str(logarithm(2)).startswith("0.693147180559945309417232121458176568075500134360255254")
    assert logarithm(7, 7) == Decimal(0)
