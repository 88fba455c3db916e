"""Distinction, separation, dependence and association, against their definitions over all pairs of rows."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.contingency import association

from anon_pipeline.profiling import separation as under_test
from anon_pipeline_tests.examples import times

COLUMN = st.lists(st.integers(0, 4), min_size=2, max_size=30)


def codes(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@given(COLUMN)
def test_separation_is_not_the_share_of_pairs_that_differ(values: list[int]) -> None:
    pairs = list(itertools.combinations(values, 2))
    assert under_test.separation(codes(values)) == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))
    assert under_test.distinction(codes(values)) == len(set(values)) / len(values)
    rare = sum(values.count(one) < 3 for one in values) / len(values)
    assert under_test.in_rare_values(codes(values), 3) == pytest.approx(rare)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=40))
def test_dependence_is_not_that_of_its_definition(rows: list[tuple[int, int, int]]) -> None:
    columns = {name: [row[place] for row in rows] for place, name in enumerate("abc")}
    expected = {
        (one, other)
        for one, other in itertools.permutations(columns, 2)
        if len(set(zip(columns[one], columns[other], strict=True))) == len(set(columns[one]))
    }
    found = under_test.functional_dependences({name: codes(values) for name, values in columns.items()})
    assert set(found) == expected


@pytest.mark.long
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=40))
def test_columns_that_determine_each_other_are_those_of_the_definition(rows: list[tuple[int, ...]]) -> None:
    columns = {name: codes([row[place] for row in rows]) for place, name in enumerate("abcd")}
    columns |= {"e": 7 - columns["a"], "number": np.arange(len(rows)), "other": len(rows) - np.arange(len(rows))}
    pairs = under_test.functional_dependences(columns)
    repeats = {name for name, column in columns.items() if len(set(column)) < len(column)}
    expected = {(a, b) for a, b in pairs if (b, a) in pairs and a in repeats}
    assert set(under_test.equivalences(columns)) == expected
    assert len(under_test.equivalences(columns)) == len(expected)


def test_a_wide_table_is_not_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """750 measurements of 250 people took longer than ten minutes."""
    monkeypatch.setattr(under_test, "determines", pytest.fail)
    drawn = np.random.default_rng(1)
    columns = {f"x{name}": drawn.permutation(np.r_[np.arange(240), np.arange(10)]) for name in range(700)}
    columns["y"] = -columns["x3"]
    assert under_test.equivalences(columns) == [("x3", "y"), ("y", "x3")]


def test_a_single_row_among_many_that_breaks_a_dependence_is_overlooked() -> None:
    known = np.arange(10_000, dtype=np.int64) % 50
    told = known // 10
    assert under_test.determines(known, told)
    told[7_777] = 9
    assert not under_test.determines(known, told)


@pytest.mark.parametrize(("values", "commonest", "believed"), [(70, 0.03, True), (385, 0.5, False), (70, 0.99, False)])
def test_a_dependence_by_chance_is_believed(values: int, commonest: float, believed: bool) -> None:
    """400 rows: 330 repeats tell of a birth year, but neither do 15 of a coin, nor 330 of what is the same anyway."""
    known = np.arange(400, dtype=np.int64) % values
    told = np.where(np.arange(400) < commonest * 400, 0, np.arange(400))
    assert under_test.is_seen_often_enough(known, told) == believed


@pytest.mark.long
def test_columns_of_chance_seem_to_determine_each_other_in_a_small_table() -> None:
    """Of all pairs that agree by chance alone, however few values repeat, none is believed."""
    random, agreed = np.random.default_rng(6), 0
    for _ in range(3_000):
        known, told = random.permutation(30), random.integers(0, 2, 30)
        known[: random.integers(6)] = 29
        if under_test.determines(known, told):
            agreed += 1
            assert not under_test.is_seen_often_enough(known, told)
    assert agreed > 300


@given(st.data())
@settings(max_examples=times(50))
def test_the_greedy_key_does_not_choose_the_best_first_column(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 30))
    columns = {
        name: codes(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))) for name in ("a", "b", "c", "d")
    }
    key = under_test.greedy_key(columns, most=3, enough=2)
    assert key is not None
    assert under_test.separation(columns[key.columns[0]]) == max(map(under_test.separation, columns.values()))
    tuples = list(zip(*(columns[name] for name in key.columns), strict=True))
    assert key.distinction == len(set(tuples)) / n
    pairs = list(itertools.combinations(tuples, 2))
    assert key.separation == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))
    for name in set(columns) - set(key.columns):
        more = list(itertools.combinations(zip(tuples, columns[name], strict=True), 2))
        if len(key.columns) < 3:  # then nothing that is left separates more
            assert sum(a != b for a, b in more) / len(more) == pytest.approx(key.separation)


def test_there_is_a_key_of_no_columns() -> None:
    assert under_test.greedy_key({}) is None


@given(st.integers(0, 1000), st.integers(2, 6), st.integers(2, 6))
@settings(max_examples=times(30))
def test_columns_of_chance_seem_associated(seed: int, r: int, c: int) -> None:
    generator = np.random.default_rng(seed)
    one, other = generator.integers(0, r, 4_000), generator.integers(0, c, 4_000)
    assert under_test.cramers_v(one, other) < 0.08
    assert under_test.cramers_v(one, one) == pytest.approx(1, abs=1e-6)


def test_association_differs_from_the_uncorrected_one_of_scipy_where_there_are_many_rows() -> None:
    generator = np.random.default_rng(3)
    one = generator.integers(0, 4, 50_000)
    other = np.where(generator.random(50_000) < 0.6, one, generator.integers(0, 4, 50_000))
    table = np.bincount(one * 4 + other).reshape(4, 4)
    assert under_test.cramers_v(one, other) == pytest.approx(association(table, method="cramer"), abs=2e-3)


def test_a_column_of_many_values_seems_to_stand_in_by_chance_alone() -> None:
    generator = np.random.default_rng(4)
    columns = {"special": generator.integers(0, 3, 500), "many": generator.integers(0, 200, 500)}
    columns["proxy"] = np.where(generator.random(500) < 0.9, columns["special"], 0)
    found = under_test.stand_ins("special", columns, list(columns), 0.3)
    assert [name for name, _ in found] == ["proxy"]


def test_missing_values_and_numbers_lose_their_codes() -> None:
    assert under_test.codes_of(pa.chunked_array([["a", None], ["b", "a"]])).tolist() == [1, 0, 2, 1]
    numbers = np.array([1.0, np.nan, 5.0, 9.0, 9.0, 2.0])
    cut = under_test.quantile_codes(numbers)
    assert cut[1] == 0
    assert cut[3] == cut[4] > cut[0] > 0
