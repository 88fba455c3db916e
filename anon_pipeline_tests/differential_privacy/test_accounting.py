"""Conversions against answers that are known, and sums that are exact."""

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.differential_privacy import accounting, mechanisms
from anon_pipeline.differential_privacy.accounting import ATTO, NANO, Cost
from anon_pipeline.errors import InputError

dp.enable_features("contrib")


@pytest.mark.parametrize(("epsilon", "rho"), [(0.5, 0.006642), (1, 0.024356), (3, 0.185069), (8, 1.052358)])
def test_rho_of_an_epsilon(epsilon: float, rho: float) -> None:
    assert accounting.nano_for(epsilon, 1e-6) / NANO == pytest.approx(rho, abs=1e-6)


def test_the_tight_conversion_and_not_the_loose_one() -> None:
    assert accounting.epsilon_of(5_000_000, 1e-6) == pytest.approx(0.429942, abs=1e-6)  # loose: .530652


def test_scales() -> None:
    assert mechanisms.gaussian_scale(4, 100_000_000) == pytest.approx(4.472136, abs=1e-6)
    assert mechanisms.gaussian_scale(1, accounting.nano_for(1, 1e-6)) == pytest.approx(4.530877, abs=1e-6)
    assert mechanisms.noisy_max_scale(1, 125_000_000) == pytest.approx(2, abs=1e-6)
    assert mechanisms.noisy_max_scale(1, 31_250_000, monotonic=True) == pytest.approx(2, abs=1e-6)


def test_opendp_converts_to_the_same_epsilon() -> None:
    for nano in (1_000_000, 24_355_970, 185_069_840, 1_052_358_004):
        space = dp.atom_domain(T="i64"), dp.absolute_distance(T="f64")
        gaussian = dp.m.make_gaussian(*space, scale=(NANO / (2 * nano)) ** 0.5)
        curve = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0)
        assert accounting.epsilon_of(nano, 1e-6) == pytest.approx(curve.epsilon(1e-6), rel=1e-9)


@pytest.mark.long
@given(st.integers(1, 10 * NANO), st.floats(1e-12, 1e-3))
def test_there_and_back_never_gives_more(nano: int, delta: float) -> None:
    epsilon = accounting.epsilon_of(nano, delta)
    back = accounting.nano_for(epsilon, delta) if epsilon > 1e-6 else nano
    assert accounting.epsilon_of(back, delta) <= epsilon
    assert abs(back - nano) <= 1 + nano // 10**8


@given(st.integers(1, 10**12), st.integers(1, 1000))
def test_shares_add_up_to_no_more_than_the_whole(nano: int, parts: int) -> None:
    assert sum(accounting.split(nano, parts)) <= nano
    total = Cost(nano)
    for share in accounting.split(nano, parts):
        total -= Cost(share)
    assert Cost(0).within(total)


@pytest.mark.parametrize("rho", [0, -1, float("nan"), float("inf"), 1e-12, 1e9])
def test_a_rho_that_is_none(rho: float) -> None:
    with pytest.raises(InputError, match="rho"):
        accounting.nano_of(rho)


@pytest.mark.parametrize(
    ("epsilon", "why"),
    [
        *((epsilon, "is no positive number") for epsilon in (0, -1, float("nan"), float("inf"))),
        (1e-9, "too small to answer"),
        (1e6, "protects nobody"),
    ],
)
def test_an_epsilon_that_is_none(epsilon: float, why: str) -> None:
    with pytest.raises(InputError, match=why):
        accounting.nano_for(epsilon, 1e-6)


def test_delta_is_rounded_down() -> None:
    assert accounting.atto_of(1e-7) == 10**11
    assert accounting.atto_of(1.5 / ATTO) == 1
