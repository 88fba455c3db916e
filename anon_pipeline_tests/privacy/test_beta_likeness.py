"""beta-likeness against hand counts and loops."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.privacy.beta_likeness import BetaLikeness
from anon_pipeline_tests.privacy import reference
from anon_pipeline_tests.privacy.tables import COLUMN, Rows, classes_of, tables

betas = st.sampled_from([0.1, 0.2, 0.25, 0.5, 1, 1.5, 2, 3, 100])


@given(tables(), betas)
def test_basic_agrees_with_the_loop(rows: Rows, beta: float) -> None:
    model = BetaLikeness(column=COLUMN, beta=beta)
    values = [reference.beta(rows, row) for row in rows]
    assert model.values(classes_of(rows)).tolist() == pytest.approx([float(value) for value in values], rel=1e-14)
    assert model.holds(classes_of(rows)).tolist() == [value <= Fraction(str(beta)) for value in values]


@given(tables(), betas)
def test_enhanced_agrees_with_the_loop(rows: Rows, beta: float) -> None:
    model = BetaLikeness(column=COLUMN, beta=beta, kind="enhanced")
    some = [reference.some_enhanced_beta(rows, row) for row in rows]
    gains = [reference.beta(rows, row) for row in rows]
    expected = [float(gain) if can else math.inf for gain, can in zip(gains, some, strict=True)]
    assert model.values(classes_of(rows)).tolist() == pytest.approx(expected, rel=1e-14)
    holds = [can and gain <= Fraction(str(beta)) for gain, can in zip(gains, some, strict=True)]
    assert model.holds(classes_of(rows)).tolist() == holds


def test_a_gain_of_exactly_beta_holds() -> None:
    # p = .2 in both; q = .6 in the first class: gain 2.
    classes = classes_of([[6, 4], [4, 36]])
    assert BetaLikeness(column=COLUMN, beta=2).values(classes).tolist() == [2, 0.125]
    assert BetaLikeness(column=COLUMN, beta=2).holds(classes).tolist() == [True, True]
    assert BetaLikeness(column=COLUMN, beta=1.999).holds(classes).tolist() == [False, True]


def test_enhanced_limits_what_beta_would_let_through() -> None:
    # p = .8 and q = 1: the gain of .25 is above -ln .8 = .223, so no beta holds; p = .5 and q = .75: .5 is below .693.
    homogeneous, mild = classes_of([[4, 0], [4, 2]]), classes_of([[3, 1], [1, 3]])
    enhanced = BetaLikeness(column=COLUMN, beta=9, kind="enhanced")
    assert BetaLikeness(column=COLUMN, beta=9).holds(homogeneous).all()
    assert enhanced.holds(homogeneous).tolist() == [False, True]
    assert enhanced.values(homogeneous).tolist() == [math.inf, pytest.approx(2 / 3)]  # 1/3 against 1/5
    assert enhanced.measured(homogeneous) == math.inf
    assert enhanced.values(mild).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("m", "most", "size", "some_beta"),
    [(2, 16628401, 19642003, False), (2, 393655751, 464998856, True), (3, 305686690, 436984037, False)],
)
def test_near_the_logarithm_more_digits_decide(m: int, most: int, size: int, some_beta: bool) -> None:
    # p = 1/m, and most/size come of the continued fraction of (1 + ln m) / m: the gains miss ln m by 6e-16, -2e-17 and
    # 2e-16, and floats say the wrong thing of the last two.
    rest = size - most
    row = [most, rest] if m == 2 else [most, rest // 2, rest - rest // 2]
    classes = classes_of([row[-s:] + row[:-s] for s in range(m)])
    model = BetaLikeness(column=COLUMN, beta=9, kind="enhanced")
    assert model.holds(classes).tolist() == [some_beta] * m
    assert np.isfinite(model.values(classes)).tolist() == [some_beta] * m


def test_one_value_in_the_table_is_no_gain_and_everybody_together_always_holds() -> None:
    for kind in ("basic", "enhanced"):
        model = BetaLikeness.model_validate({"column": COLUMN, "beta": 1e-9, "kind": kind})
        assert model.holds(classes_of([[3], [4]])).all()
        assert model.impossible(classes_of([[3, 0], [0, 1]])) is None
