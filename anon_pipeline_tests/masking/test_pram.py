"""PRAM against its definition, and the categories that it draws from."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.masking import pram
from anon_pipeline.masking.pram import Pram, epsilon_of, invariant_of
from anon_pipeline_tests.masking.tables import CATEGORICAL, masked, step


def test_an_invariant_matrix_keeps_the_marginals_exactly() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(2, 8))
        matrix = rng.dirichlet(np.ones(m), m)
        frequencies = rng.dirichlet(np.ones(m))
        frequencies[0] = 0 if seed % 4 == 0 else frequencies[0]
        frequencies /= frequencies.sum()
        invariant = invariant_of(matrix, frequencies)
        assert np.abs(frequencies @ invariant - frequencies).max() < 1e-12
        assert np.abs(invariant.sum(axis=1) - 1).max() < 1e-12 and (invariant >= 0).all()


@pytest.mark.long
def test_pram_follows_its_matrix_and_keeps_marginals_in_expectation() -> None:
    values = np.random.default_rng(5).choice(["a", "b", "c"], 60_000, p=[0.7, 0.2, 0.1])
    matrix = {"a": {"a": 0.5, "b": 0.5}, "b": {"b": 0.9, "c": 0.1}, "c": {"c": 1}}
    shown = np.array(masked(values, CATEGORICAL, step("pram", matrix=matrix))[0])
    for true, row in matrix.items():
        share = {one: float((shown[values == true] == one).mean()) for one in "abc"}
        assert share == pytest.approx({one: row.get(one, 0) for one in "abc"}, abs=0.015)
    kept = np.array(masked(values, CATEGORICAL, step("pram", matrix=matrix, invariant=True))[0])
    for one in "abc":
        assert (kept == one).mean() == pytest.approx((values == one).mean(), abs=0.01)
    assert (kept != values).mean() > 0.2


def test_pram_reports_the_epsilon_of_its_matrix() -> None:
    values = ["a", "b", "c", None] * 10
    _, (report,) = masked(values, CATEGORICAL, step("pram", retention=0.6, categories=["a", "b", "c"]))
    assert report.facts["epsilon"] == pytest.approx(np.log(0.6 / 0.2)) and report.guarantee == "local DP"
    assert any("missing" in note for note in report.notes) and not any("itself" in note for note in report.notes)
    assert epsilon_of(np.array([[0.5, 0.5], [0.1, 0.9]])) == pytest.approx(np.log(5))
    assert epsilon_of(np.eye(2)) == np.inf and epsilon_of(np.ones((1, 1))) == 0
    assert epsilon_of(np.array([[1.0, 0.0], [1.0, 0.0]])) == 0
    with np.errstate(divide="raise"):
        assert epsilon_of(np.array([[0.5, 0.5], [0.0, 1.0]])) == np.inf, "one category that gives itself away is enough"
    _, (report,) = masked(["a", "b"], CATEGORICAL, step("pram", retention=0.8, categories=["a", "b"]))
    assert report.facts["epsilon"] == pytest.approx(np.log(4)) and report.facts["least_retention"] == 0.8
    uneven = {"a": {"a": 0.5, "b": 0.5}, "b": {"a": 0.25, "b": 0.75}}
    assert masked(["a"], CATEGORICAL, step("pram", matrix=uneven))[1][0].facts["least_retention"] == 0.5
    for lonely in (["a"], [None]):
        shown, (report,) = masked(pa.array(lonely, pa.string()), CATEGORICAL, step("pram", retention=0.8))
        assert shown.to_pylist() == lonely and report.facts["least_retention"] == 1
    _, (report,) = masked(["a", "b"], CATEGORICAL, step("pram", matrix={"a": {"a": 1}, "b": {"b": 1}}))
    assert "epsilon" not in report.facts and report.guarantee == "none"
    assert any("infinite" in note for note in report.notes)
    own = {"retention": 0.6, "categories": ["a", "b"], "invariant": True}
    for parameters in ({"retention": 0.6}, own):  # a matrix made from everybody's values promises nobody anything
        _, (report,) = masked(["a", "b"], CATEGORICAL, step("pram", **parameters))
        assert any("itself" in note for note in report.notes)
        assert "epsilon" not in report.facts and report.guarantee == "none"


def test_pram_keeps_the_type_of_codes() -> None:
    shown, _ = masked(pa.array([1, 2, 3] * 20), CATEGORICAL, step("pram", retention=0.5))
    assert shown.type == pa.int64() and set(shown.to_pylist()) == {1, 2, 3}


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({}, "give either the probability"),
        ({"retention": 0.5, "matrix": {"a": {"a": 1}}}, "give either"),
        ({"matrix": {"a": {"b": 1}}}, "matrix.a: names a category that has no row"),
        ({"matrix": {"a": {"a": 0.9}}}, "matrix.a: must be probabilities whose sum is 1"),
        ({"matrix": {"a": {"a": 1.5, "b": -0.5}, "b": {"b": 1}}}, "matrix.a: must be prob"),
        ({"matrix": {"a": {"a": 1}}, "categories": ["a", "b"]}, "the matrix names them already"),
        ({"retention": 0.5, "categories": ["a", "a"]}, "one stands twice"),
    ],
)
def test_a_matrix_that_is_none_is_refused(parameters: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace(".", r"\.")):
        Pram.model_validate(parameters)


def test_categories_that_are_not_stated_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="1 categories that are not stated") as refused:
        masked(["a", "b", "secret"], CATEGORICAL, step("pram", retention=0.5, categories=["a", "b"]))
    assert "secret" not in str(refused.value)
    with pytest.raises(InputError, match="2001 categories, more than 2000"):
        masked([str(i) for i in range(2001)], CATEGORICAL, step("pram", retention=0.5))
    monkeypatch.setattr(pram, "MOST_CATEGORIES", 3)
    assert masked(["a", "b", "c"], CATEGORICAL, step("pram", retention=0.5))[1][0].facts["categories"] == 3


@pytest.mark.parametrize(
    ("column", "categories"),
    [
        (pa.array([0, 1, 2] * 20), ["0", "1", "2", "none"]),
        (pa.array([True, None, False] * 20), ["true", "false", "unknown"]),
        (pa.array([datetime.time(1, 2), datetime.time(3, 4)] * 30), None),
    ],
)
def test_categories_that_the_column_cannot_hold_become_texts(column: pa.Array, categories: list[str] | None) -> None:
    """Whether they do follows from the categories, and not from what was drawn."""
    for retention in (0.3, 0.999):
        released, _ = masked(column, CATEGORICAL, step("pram", retention=retention, categories=categories))
        assert released.type == pa.string()
        assert released.null_count == column.null_count
    numbers, _ = masked(pa.array([0, 1, 2] * 20), CATEGORICAL, step("pram", retention=0.5, categories=["0", "1", "2"]))
    assert pa.types.is_integer(numbers.type)


@pytest.mark.parametrize(
    ("column", "categories"),
    [
        (pa.array([True, None, False] * 20), [True, False]),
        (pa.array([1, 2, 1] * 20), [1, 2]),
        (pa.array([1.0, 2.5] * 30), [1, 2.5]),
    ],
)
def test_categories_that_yaml_reads_as_truth_values_or_numbers_are_those_of_the_column(
    column: pa.Array, categories: list[bool | float]
) -> None:
    """They had to be written as texts, and "True" is none of a column's."""
    row = {category: dict.fromkeys(categories, 0.5) for category in categories}
    for parameters in ({"retention": 0.5, "categories": categories}, {"matrix": row}):
        released, _ = masked(column, CATEGORICAL, step("pram", **parameters))
        assert released.type == column.type
        assert set(released.to_pylist()) == set(column.to_pylist())
    _, (report,) = masked(
        column, CATEGORICAL, step("unary_encoding", epsilon=1, categories=categories, missing=categories[0])
    )
    assert report.facts["categories"] == 2
