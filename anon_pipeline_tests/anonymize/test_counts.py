"""Splits found from counts are the splits that the cells ask for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize import classes, counts, tree
from anon_pipeline.anonymize.axes import SplitFeature, feature_matrix, split_features
from anon_pipeline.anonymize.criterion import Criterion
from anon_pipeline.anonymize.encoding import count_cells, learn_domain
from anon_pipeline.tables import Cells
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import random_frame

KINDS = {"age": "whole", "city": "text", "smoker": "boolean", "born": "date", "town": "category"}
SPREADS = st.sampled_from([0.0, 1.0])


def cells_of(seed: int, rows: int, distinct: int = 6, kinds: dict[str, str] = KINDS) -> Cells:
    generator = np.random.default_rng(seed)
    frame = random_frame(generator, rows, kinds, distinct=distinct, missing=0.05)
    learned = [learn_domain(name, frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    return count_cells(tuple(domain for domain, _ in learned), codes, generator.random((rows, 2)))[0]


def parts(cells: Cells, spread: float) -> tuple[tuple[SplitFeature, ...], Criterion, counts.Counter]:
    features, outputs = split_features(cells, "both"), Criterion(cells, spread, 0)
    return features, outputs, counts.Counter(features, cells, outputs)


def error(outputs: np.ndarray, people: np.ndarray) -> float:
    """Squared error about the mean."""
    return float((people[:, None] * (outputs - np.average(outputs, axis=0, weights=people)) ** 2).sum())


@pytest.mark.long
@settings(max_examples=times(40))
@given(st.integers(0, 10**6), st.integers(20, 120), st.integers(2, 12), SPREADS)
def test_no_split_of_the_cells_is_better(seed: int, rows: int, k: int, spread: float) -> None:
    cells = cells_of(seed, rows)
    features, criterion, counter = parts(cells, spread)
    group = np.flatnonzero(np.random.default_rng(seed).random(len(cells.counts)) < 0.8)
    outputs, people = criterion.of(group), cells.counts[group].astype(float)
    ranks = feature_matrix(features, cells.codes[group])

    def lowered(axis: int, threshold: float) -> float | None:
        """By how much a split lowers the error; None if a side has fewer than k people."""
        left = ranks[:, axis] <= threshold
        if min(people[left].sum(), people[~left].sum()) < k:
            return None
        halves = [error(outputs[side], people[side]) for side in (left, ~left)]
        return error(outputs, people) - sum(halves)

    every = [lowered(axis, rank) for axis in range(len(features)) for rank in np.unique(ranks[:, axis])]
    best = max((one for one in every if one is not None), default=0.0)
    found = counter.best_split(counter.count(group), k) if len(group) else None
    if found is None:
        assert best <= 1e-9 * max(people.sum(), 1)
    else:
        reached = lowered(*found)
        assert reached is not None and reached == pytest.approx(best, rel=1e-9)
        axis, threshold = found
        low, high = ranks[ranks[:, axis] <= threshold, axis].max(), ranks[ranks[:, axis] > threshold, axis].min()
        assert threshold == (low + high) / 2


@settings(max_examples=times(40))
@given(st.integers(0, 10**6), SPREADS)
def test_what_a_part_leaves_is_the_count_of_the_rest(seed: int, spread: float) -> None:
    cells = cells_of(seed, 80)
    _, _, counter = parts(cells, spread)
    chosen = np.random.default_rng(seed).random(len(cells.counts)) < 0.3
    everyone = counter.count(np.arange(len(chosen)))
    left = everyone.without(counter.count(np.flatnonzero(chosen)))
    rest = counter.count(np.flatnonzero(~chosen))
    assert (left.codes == rest.codes).all()
    np.testing.assert_allclose(left.sums, rest.sums, atol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_tree_by_counts_is_the_tree_of_scikit_learn(
    seed: int, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = cells_of(seed, 4_000, 8, {**KINDS, "weight": "tenths"})
    monkeypatch.setattr(tree, "WHOLE", 10**9)
    plain = tree.fit_tree(cells, 15, spread, "both", seed)
    monkeypatch.setattr(tree, "WHOLE", 0)
    monkeypatch.setattr(tree, "BLOCK", 150)
    ours = tree.fit_tree(cells, 15, spread, "both", seed)
    assert plain.leaves > 50
    assert (pd.factorize(plain.apply(cells.codes))[0] == pd.factorize(ours.apply(cells.codes))[0]).all()


def test_leaves_are_numbered_from_left_to_right_else_numbers_depend_on_the_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree, "WHOLE", 0)
    monkeypatch.setattr(tree, "BLOCK", 100)
    fitted = tree.fit_tree(cells_of(0, 2_000, 8), 15, 1.0, "both", 0)
    met, todo = [], [0]
    while todo:
        node = todo.pop()
        if fitted.feature[node] < 0:
            met.append(fitted.leaf[node])
        else:
            todo += [fitted.right[node], fitted.left[node]]
    assert met == list(range(fitted.leaves))


@pytest.mark.long
def test_many_values_are_split_at_quantiles_at_little_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(3, 4_000, 8, {**KINDS, "income": "near_unique"})
    monkeypatch.setattr(tree, "BLOCK", 100)
    monkeypatch.setattr(tree, "WHOLE", 0)
    lost = {}
    for bins in (10**6, 50):
        monkeypatch.setattr(counts, "BINS", bins)
        fitted = tree.fit_tree(cells, 15, 1.0, "both", 0)
        leaf = fitted.apply(cells.codes)
        assert classes.sizes(cells, leaf, fitted.leaves).min() >= 15
        lost[bins] = np.mean(list(classes.information_loss(cells, leaf, fitted.leaves).values()))
    assert lost[50] == pytest.approx(lost[10**6], rel=0.02)
    assert lost[50] != lost[10**6]


def test_missing_values_have_a_bin_of_their_own_else_unknown_people_are_the_poorest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counts, "BINS", 10)
    income = np.r_[np.full(100, np.nan), np.arange(100.0)]
    domain, codes = learn_domain("income", pd.Series(income))
    cells, _ = count_cells((domain,), codes[:, None], np.isnan(income).astype(float)[:, None])
    _, _, counter = parts(cells, 0.0)
    assert counter.best_split(counter.count(np.arange(101)), 5) == (0, 0.5)


def test_one_column_of_many_values_is_split_below_its_bins_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "BINS", 4)
    monkeypatch.setattr(tree, "BLOCK", 20)
    monkeypatch.setattr(tree, "WHOLE", 0)
    domain, codes = learn_domain("income", pd.Series(np.arange(400.0)))
    cells, _ = count_cells((domain,), codes[:, None], np.zeros((400, 1)))
    fitted = tree.fit_tree(cells, 10, 1.0, "both", 0)
    assert fitted.leaves > 20


@pytest.mark.long
def test_very_large_groups_are_split_by_a_sample_at_little_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(4, 6_000, 9, {**KINDS, "weight": "tenths"})
    monkeypatch.setattr(tree, "WHOLE", 0)
    monkeypatch.setattr(tree, "BLOCK", 200)
    counted: list[int] = []
    count = counts.Counter.count
    monkeypatch.setattr(counts.Counter, "count", lambda own, group: counted.append(len(group)) or count(own, group))
    lost = {}
    for limit in (10**6, 500):
        monkeypatch.setattr(tree, "EXACT_LIMIT", limit)
        monkeypatch.setattr(tree, "SAMPLE", limit)
        counted.clear()
        fitted = tree.fit_tree(cells, 15, 1.0, "both", 0)
        leaf = fitted.apply(cells.codes)
        assert classes.sizes(cells, leaf, fitted.leaves).min() >= 15
        assert (max(counted) == len(cells.counts)) == (limit == 10**6)
        lost[limit] = np.mean(list(classes.information_loss(cells, leaf, fitted.leaves).values()))
    assert 400 < max(counted) < 600
    assert lost[500] == pytest.approx(lost[10**6], rel=0.1)


def test_an_ordered_column_of_many_values_has_a_thousand_bins_of_equally_many_people() -> None:
    people = np.r_[7, np.full(9990, 3)]  # the missing values first, which have a bin of their own
    bin_of_code, last = counts._bins(people)
    assert len(last) == counts.BINS and last[0] == 0 and bin_of_code[0] == 0
    assert bin_of_code[last].tolist() == list(range(counts.BINS)) and (np.diff(bin_of_code) >= 0).all()
    assert (np.bincount(bin_of_code, weights=people)[1:] == 30).all()


@pytest.mark.parametrize(("block", "whole", "grown"), [(0, 0, False), (-1, 0, False), (0, -1, False), (-1, -1, True)])
def test_a_tree_is_grown_by_counts_from_the_first_cell_and_number_too_many(
    monkeypatch: pytest.MonkeyPatch, block: int, whole: int, grown: bool
) -> None:
    cells = cells_of(1, 300, 8)
    calls: list[int] = []
    grow = tree._grow
    monkeypatch.setattr(tree, "_grow", lambda *given, **named: calls.append(1) or grow(*given, **named))
    width = Criterion(cells, 1.0, 0, at_once=False).width
    monkeypatch.setattr(tree, "BLOCK", len(cells.counts) + block)
    monkeypatch.setattr(tree, "WHOLE", len(cells.counts) * width + whole)
    assert tree.fit_tree(cells, 15, 1.0, "both", 0).leaves > 5
    assert bool(calls) == grown


@pytest.mark.parametrize(("limit", "sampled"), [(0, False), (-1, True)])
def test_groups_are_sampled_in_a_table_of_more_cells_than_are_counted_exactly(
    monkeypatch: pytest.MonkeyPatch, limit: int, sampled: bool
) -> None:
    cells = cells_of(1, 600, 8)
    counted: list[int] = []
    count = counts.Counter.count
    monkeypatch.setattr(counts.Counter, "count", lambda own, group: counted.append(len(group)) or count(own, group))
    monkeypatch.setattr(tree, "EXACT_LIMIT", len(cells.counts) + limit)
    monkeypatch.setattr(tree, "SAMPLE", 100)
    monkeypatch.setattr(tree, "WHOLE", 0)
    monkeypatch.setattr(tree, "BLOCK", 50)
    tree.fit_tree(cells, 15, 1.0, "both", 0)
    assert (max(counted) < 200) == sampled and (counted[0] == len(cells.counts)) != sampled


@pytest.mark.parametrize(("k", "leaves"), [(20, 2), (21, 1)])
def test_a_group_of_twice_k_people_is_split_and_a_smaller_one_is_not(k: int, leaves: int) -> None:
    domain, codes = learn_domain("income", pd.Series(np.arange(40.0)))
    cells, _ = count_cells((domain,), codes[:, None], np.zeros((40, 1)))
    assert tree.fit_tree(cells, k, 1.0, "both", 0).leaves == leaves


@pytest.mark.parametrize(("bins", "binned"), [(31, False), (30, True)])
def test_only_a_column_of_more_values_than_bins_has_bins(
    monkeypatch: pytest.MonkeyPatch, bins: int, binned: bool
) -> None:
    monkeypatch.setattr(counts, "BINS", bins)
    domain, codes = learn_domain("income", pd.Series(np.arange(30.0)))
    cells, _ = count_cells((domain,), codes[:, None], np.zeros((30, 1)))
    counter = counts.Counter(split_features(cells, "both"), cells, Criterion(cells, 1.0, 0))
    assert bool(counter._last_code) == binned
