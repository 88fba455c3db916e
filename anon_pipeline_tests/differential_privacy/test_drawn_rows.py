"""Public values in place of codes: within their interval, on the grid, missing where the code says so."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anon_pipeline.differential_privacy.synthesis.coded_table import Axis
from anon_pipeline.differential_privacy.synthesis.drawn_rows import as_table, with_all_values
from anon_pipeline.differential_privacy.synthesis.estimation import NoisyTable
from anon_pipeline.differential_privacy.synthesis.measuring import Measurements
from anon_pipeline.differential_privacy.synthesis.models import _codes
from anon_pipeline.spec import PublicDomain

ROWS = 4_000


def drawn(domain: dict[str, Any]) -> tuple[Axis, list[pa.ChunkedArray]]:
    """The values of each code alone, of `ROWS` rows."""
    axis = Axis.of("x", PublicDomain.model_validate({**domain, "why": "a test"}))
    random = np.random.default_rng(1)
    return axis, [as_table(np.full((ROWS, 1), code), [axis], random).column("x") for code in range(axis.size)]


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        ({"values": ["a", "b"]}, [{"a"}, {"b"}]),
        ({"bins": [0, 1, 3, 9]}, [{0}, {1, 2}, {3, 4, 5, 6, 7, 8, 9}]),  # the last edge belongs to the last interval
        ({"range": [-1, 0], "step": 0.5}, [{-1.0}, {-0.5}, {0.0}]),
        ({"range": [1, 3], "step": 1}, [{1}, {2}, {3}]),
    ],
    ids=["values", "bins", "quarters", "range"],
)
def test_each_value_of_a_code_is_drawn_and_no_other(domain: dict[str, Any], values: list[set[Any]]) -> None:
    axis, found = drawn(domain)
    assert [set(column.to_pylist()) for column in found] == [*values, {None}]
    assert axis.intervals == len(values)
    whole = all(isinstance(value, int) for some in values for value in some)
    assert pa.types.is_integer(found[0].type) == whole


def test_numbers_of_bins_with_fractions_fill_their_interval() -> None:
    _, found = drawn({"bins": [0.5, 2.5, 10]})
    for column, (low, high) in zip(found, ((0.5, 2.5), (2.5, 10)), strict=False):
        numbers = np.array(column.to_pylist())
        assert low <= numbers.min() < low + 0.02 * (high - low) and high - 0.02 * (high - low) < numbers.max() < high
        assert numbers.mean() == pytest.approx((low + high) / 2, rel=0.05)
    assert found[-1].null_count == ROWS


@pytest.mark.parametrize(
    "domain",
    [{"range": [0, 999], "step": 1}, {"range": [-3, 400], "step": 0.5}, {"range": [0, 9], "step": 3}],
    ids=["wide", "halves", "coarse"],
)
def test_a_model_reads_each_number_of_a_range_in_the_interval_that_it_was_drawn_from(domain: dict[str, Any]) -> None:
    axis, found = drawn(domain)
    codes = _codes(axis)
    for code, column in enumerate(found):
        assert set(codes.of(column.to_pandas())) == {code}


def test_a_model_reads_bins_and_values() -> None:
    for domain in ({"bins": [0.5, 2.5, 10]}, {"values": ["a", "b", "c"]}):
        axis, found = drawn(domain)
        assert [set(_codes(axis).of(column.to_pandas())) for column in found] == [{code} for code in range(axis.size)]
    beyond = pd.Series([-9.0, 0.5, 2.5, 10.0, 99.0])
    assert _codes(drawn({"bins": [0.5, 2.5, 10]})[0]).of(beyond).tolist() == [0, 0, 1, 1, 1]


def test_a_long_range_is_drawn_from_intervals_of_several_places() -> None:
    axis, found = drawn({"range": [0, 999], "step": 1})
    assert axis.width > 1
    for code, column in enumerate(found[:-1]):
        expected = range(code * axis.width, min((code + 1) * axis.width, 1_000))
        assert set(column.to_pylist()) == set(expected)


@pytest.mark.parametrize("rare", [[-2.0, 3.0, 1.0], [-2.0, 0.0, 1.0], [-2.0, -1.0, -3.0]])
def test_a_missing_value_too_rare_for_a_code_is_never_drawn(rare: list[float]) -> None:
    """Also where the noise left no count above 0 to the values that share its code."""
    counts = np.array([500.0, *rare])
    shared = np.array([0, 1, 1, 1])
    first = NoisyTable((0,), counts, np.ones(4))
    found = with_all_values(
        np.ones((ROWS, 1), dtype=np.int64), Measurements((first,), (shared,), (), ()), np.random.default_rng(1)
    )
    assert set(found[:, 0].tolist()) <= {1, 2}
