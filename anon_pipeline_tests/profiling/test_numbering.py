"""Numbers that hardly two people share: those that were given out, and those that measure something."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from anon_pipeline.profiling.numbering import no_measure


def judged(values: npt.NDArray[np.float64] | npt.NDArray[np.int64], name: str = "v") -> str | None:
    return no_measure(name, pa.chunked_array([pa.array(values)]))


@pytest.mark.long
@pytest.mark.parametrize("rows", [300, 1_000, 20_000])
@pytest.mark.parametrize("spread", [0.7, 2, 8])
def test_numbers_drawn_by_chance_are_taken_for_given_ones(rows: int, spread: float) -> None:
    """Days, counts, amounts: evenly drawn ones, the most different that can be measured, and others."""
    for seed in range(20):
        draw = np.random.default_rng(seed)
        assert judged(draw.integers(0, int(spread * rows), rows)) is None
        assert judged(draw.lognormal(5, 1, rows).round()) is None
        assert judged(np.append(draw.integers(0, int(spread * rows), rows), 10**9)) is None, "an outlier"


@pytest.mark.long
@pytest.mark.parametrize("rows", [300, 1_000, 20_000])
def test_given_numbers_are_taken_for_measured_ones(rows: int) -> None:
    for seed in range(20):
        draw = np.random.default_rng(seed)
        people = draw.choice(2 * rows, rows, replace=False)  # of each second one
        assert "different in nearly every row" in str(judged(people))
        times = draw.choice([1, 2, 3], rows // 2)  # each has one to three rows
        assert "running number" in str(judged(np.repeat(125_000 + np.arange(rows // 2), times)))
        blocks = np.arange(rows // 2) % 40 + 1_000 * (np.arange(rows // 2) // 40)  # 1001, 1002, ... 2001, 2002, ...
        assert "running number" in str(judged(np.repeat(blocks, times)))
        far = draw.choice(10**8, rows // 2, replace=False)
        assert "occur 2 times each" in str(judged(np.repeat(far, 2)))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("account_no", "a number or a code"),
        ("persnr", "a number or a code"),
        ("product_code", "a number or a code"),
    ],
)
def test_a_name_does_not_say_that_nothing_is_measured(name: str, reason: str) -> None:
    assert reason in str(judged(np.random.default_rng(1).normal(0, 1, 400), name))


def test_fractions_and_missing_values_are_numbers_of_people() -> None:
    values = np.random.default_rng(1).normal(70, 9, 400).round(3)
    assert judged(values, "weight") is None
    assert no_measure("weight", pa.chunked_array([pa.array([*values, None, float("nan"), float("inf")])])) is None
    assert "different in nearly" in str(no_measure("v", pa.chunked_array([pa.array([*range(300), None])])))
