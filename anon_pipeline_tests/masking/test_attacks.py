"""Attacks on single masking steps by readers of the masked column, who know the code and its parameters."""

from __future__ import annotations

import numpy as np
import pytest

from anon_pipeline_tests.masking.tables import NUMERIC, masked, step

# ------------------------------------------------------------------ coding beyond a quantile


@pytest.mark.parametrize("end", ["top", "bottom"])
def test_a_limit_does_not_tell_who_lies_beyond_it(end: str) -> None:
    """The reader knows the masked column alone: if a limit lies between two people, one shown and one hidden, it tells
    where the hidden one is. One of 30 to 94 people earns ten times as much as others; the limit itself is far from it.
    """
    random, sign = np.random.default_rng(0), 1 if end == "top" else -1
    found = 0
    for _ in range(40):
        n = int(random.integers(30, 95))
        incomes = np.round(random.lognormal(10.5, 0.4, n))
        incomes[0] = np.round(random.uniform(3e5, 5e6))
        shown, _ = masked(sign * incomes, NUMERIC, step("quantile_code", **{end: 0.01}))
        limit, next_to_it = np.sort(sign * np.array(shown.to_pylist(), dtype=np.float64))[[-1, -2]]
        part = (n - 1) * 0.99 % 1
        guess = (limit - (1 - part) * next_to_it) / part
        found += bool(abs(guess / incomes[0] - 1) < 0.05)
    assert found <= 2


def test_a_limit_is_the_same_wherever_the_people_beyond_it_are() -> None:
    others = np.random.default_rng(1).integers(20_000, 60_000, 60).astype(float)
    shown = {
        max(masked(np.r_[others, beyond], NUMERIC, step("quantile_code", top=0.01))[0].to_pylist())
        for beyond in (7e4, 3e5, 1e9)
    }
    assert len(shown) == 1
