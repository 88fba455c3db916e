"""delta-disclosure privacy against hand counts and loops."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.privacy.delta_disclosure import DeltaDisclosure
from anon_pipeline_tests.privacy import reference
from anon_pipeline_tests.privacy.tables import COLUMN, Rows, classes_of, merged, tables

deltas = st.sampled_from([0.1, 0.5, 0.6931471805599453, 1, 2, 5])


@pytest.mark.long
@given(tables(), deltas, st.booleans())
def test_agrees_with_the_loop(rows: Rows, delta: float, observed: bool) -> None:
    model = DeltaDisclosure(column=COLUMN, delta=delta, kind="observed" if observed else "strict")
    values = [reference.delta(rows, row, observed=observed) for row in rows]
    assert model.values(classes_of(rows)).tolist() == pytest.approx(values, abs=1e-12)
    clear = [j for j, value in enumerate(values) if abs(value - delta) > 1e-12]
    assert [model.holds(classes_of(rows)).tolist()[j] for j in clear] == [values[j] < delta for j in clear]


def test_an_absent_value_fails_at_every_delta_unless_only_observed_ones_count() -> None:
    classes = classes_of([[2, 0], [2, 4]])
    assert DeltaDisclosure(column=COLUMN, delta=1e6).values(classes).tolist() == [
        math.inf,
        pytest.approx(math.log(1.5)),
    ]
    assert DeltaDisclosure(column=COLUMN, delta=1e6).holds(classes).tolist() == [False, True]
    assert DeltaDisclosure(column=COLUMN, delta=1e6, kind="observed").holds(classes).tolist() == [True, True]


def test_a_scarce_value_discloses_as_a_frequent_one_does() -> None:
    # q = .1 against p = .4, |ln 1/4| = 1.39, is more than q = .9 against .6: without the absolute value it is lost.
    classes = classes_of([[1, 9], [7, 3]])
    assert DeltaDisclosure(column=COLUMN, delta=1).values(classes)[0] == pytest.approx(math.log(4))


@pytest.mark.parametrize(
    ("ratio", "delta", "holds"),
    [(2, 0.6931471805599453, False), (2, 0.6931471805599454, True), (3, 1.0986122886681098, True)],
)
def test_near_the_limit_more_digits_decide(ratio: int, delta: float, holds: bool) -> None:
    # ln 2 = .69314718055994530941... is above its own shortest decimal, ln 3 = 1.09861228866810969... below.
    over = [[1 if s == j else 0 for s in range(ratio)] for j in range(ratio)]
    observed = DeltaDisclosure(column=COLUMN, delta=delta, kind="observed")
    assert observed.holds(classes_of(over)).tolist() == [holds] * ratio


@pytest.mark.parametrize(("delta", "holds"), [(0.6931471805599453, False), (0.6931471805599454, True)])
def test_near_the_limit_a_scarce_value_counts_as_a_frequent_one_does(delta: float, holds: bool) -> None:
    # Shares of 1/4 and 3/4 against 1/2: ln(1/2) decides, not ln(3/2).
    model = DeltaDisclosure(column=COLUMN, delta=delta)
    assert model.holds(classes_of([[1, 3], [3, 1]])).tolist() == [holds] * 2


def test_a_share_that_differs_by_one_person_in_ten_million_is_told_in_all_its_digits() -> None:
    n = 10_000_000
    values = DeltaDisclosure(column=COLUMN, delta=1.0).values(classes_of([[n, n + 1], [n, n]]))
    ratio = Fraction(n * (4 * n + 1), (2 * n + 1) * 2 * n) - 1, Fraction(n * (4 * n + 1), 4 * n * n) - 1
    assert values == pytest.approx([abs(float(one - one**2 / 2)) for one in ratio], rel=1e-14, abs=0)


def test_the_observed_kind_is_not_monotone_and_says_so() -> None:
    # The counterexample of the docstring, in a table with half of each value.
    classes = classes_of([[0, 8], [1, 1], [9, 1]])
    observed = DeltaDisclosure(column=COLUMN, delta=0.7, kind="observed")
    assert observed.holds(classes).tolist()[:2] == [True, True]
    assert not observed.holds(merged(classes, 0, 1))[0]
    assert observed.monotone is False
    assert DeltaDisclosure(column=COLUMN, delta=0.7).monotone is True


def test_no_delta_is_impossible() -> None:
    for kind in ("strict", "observed"):
        model = DeltaDisclosure.model_validate({"column": COLUMN, "delta": 1e-300, "kind": kind})
        assert model.impossible(classes_of([[3, 0], [0, 1]])) is None
