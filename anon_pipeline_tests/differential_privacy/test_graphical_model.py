"""The graphical model against brute force over the whole joint table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.differential_privacy.synthesis.drawn_rows import draw_codes
from anon_pipeline.differential_privacy.synthesis.estimation import NoisyTable, fit, total_of
from anon_pipeline.differential_privacy.synthesis.junction_tree import JunctionTree, spread, summed
from anon_pipeline_tests.examples import times

SETS = st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=3), min_size=1, max_size=6)


def joint(tree: JunctionTree, potentials: list[np.ndarray]) -> np.ndarray:
    """The whole distribution, the slow way."""
    everything = tuple(range(len(tree.sizes)))
    logs = np.zeros(tree.sizes)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        logs = logs + spread(potential, clique, everything)
    table = np.exp(logs - logs.max())
    return table / table.sum()


@settings(max_examples=times(60))
@given(SETS, st.integers(0, 2**32 - 1))
def test_marginals_are_those_of_the_joint_table(sets: list[set[int]], seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = tuple(int(one) for one in random.integers(1, 4, 6))
    tree = JunctionTree.over(sizes, [tuple(sorted(one)) for one in sets])
    assert all(tree.home(tuple(one)) >= 0 for one in sets) and {c for one in tree.cliques for c in one} == set(range(6))
    potentials = [random.normal(0, 2, tree.shape(one)) for one in tree.cliques]
    whole, everything = joint(tree, potentials), tuple(range(6))
    tables = tree.marginals(potentials)
    for clique, table in zip(tree.cliques, tables, strict=True):
        assert table == pytest.approx(summed(whole, everything, clique), abs=1e-12)
    for columns in itertools.combinations(range(6), 3):
        assert tree.marginal(tables, columns) == pytest.approx(summed(whole, everything, columns), abs=1e-12)


def test_exact_counts_are_fitted_exactly_and_noisy_ones_stay_possible() -> None:
    random = np.random.default_rng(4)
    whole = random.dirichlet(np.ones(24)).reshape(4, 3, 2) * 10_000
    exact = [NoisyTable(one, summed(whole, (0, 1, 2), one), np.ones(1)) for one in ((0, 1), (1, 2))]
    exact = [NoisyTable(one.columns, one.counts, np.ones(one.counts.shape)) for one in exact]
    model = fit((4, 3, 2), exact, total_of(exact), steps=400)
    for one in exact:
        assert model.counts(one.columns) == pytest.approx(one.counts, abs=5)
    noisy = [
        NoisyTable(one.columns, one.counts + random.normal(0, 400, one.counts.shape), np.full(one.counts.shape, 4e4))
        for one in exact
    ]
    rough = fit((4, 3, 2), noisy, total_of(noisy))
    assert min(rough.counts((0, 1)).min(), rough.counts((1, 2)).min()) >= 0
    assert rough.counts((1,)) == pytest.approx(summed(rough.counts((0, 1)), (0, 1), (1,)), abs=1e-6)
    off = sum(float(((rough.counts(one.columns) - one.counts) ** 2 / one.variance).sum()) for one in noisy)
    clipped = sum(float(((np.maximum(one.counts, 0) - one.counts) ** 2 / one.variance).sum()) for one in noisy)
    assert off <= clipped + 3 * sum(one.counts.size for one in noisy), "no better table is left out by far"


@pytest.mark.parametrize(("variances", "fitted"), [((1.0, 1.0), 50), ((1.0, 3.0), 55), ((300.0, 100.0), 45)])
def test_counts_that_disagree_are_fitted_by_what_is_sure(variances: tuple[float, float], fitted: float) -> None:
    """Of two counts of one column the best fit in least squares is their mean, weighted by inverse variance."""
    first, second = (
        NoisyTable((0,), np.array(counts), np.full(2, variance))
        for counts, variance in zip(([60.0, 40.0], [40.0, 60.0]), variances, strict=True)
    )
    for measured in ([first, second], [second, first]):
        assert fit((2,), measured, 100.0).counts((0,)) == pytest.approx([fitted, 100 - fitted], abs=0.05)


def test_a_fit_goes_on_from_a_former_model() -> None:
    """Tables that the former model has are not fitted anew first; where nothing was added, the fit stays."""
    first = NoisyTable((0, 1), np.array([[30.0, 20.0], [10.0, 40.0]]), np.ones((2, 2)))
    second = NoisyTable((1, 2), np.array([[25.0, 15.0], [35.0, 25.0]]), np.ones((2, 2)))
    former = fit((2, 2, 2), [first], 100.0)
    again = fit((2, 2, 2), [first], 100.0, former)
    assert again.counts((0, 1)) == pytest.approx(first.counts, abs=1e-3)
    more = fit((2, 2, 2), [first, second], 100.0, former)
    for one in (first, second):
        assert more.counts(one.columns) == pytest.approx(one.counts, abs=0.05)


def test_chances_of_any_size_have_marginals() -> None:
    """Potentials as far apart as noise of many people makes them."""
    tree = JunctionTree.over((2, 3, 2), [(0, 1), (1, 2)])
    random = np.random.default_rng(3)
    potentials = [random.normal(0, 3, tree.shape(one)) - 2_000 * (place + 1) for place, one in enumerate(tree.cliques)]
    potentials[0][0, 0] = 4_000.0
    whole, tables = joint(tree, potentials), tree.marginals(potentials)
    for clique, found in zip(tree.cliques, tables, strict=True):
        assert found == pytest.approx(summed(whole, (0, 1, 2), clique), abs=1e-12)
    # Nobody has two of the three values of the middle column.
    assert np.count_nonzero(summed(whole, (0, 1, 2), (1,))) == 1
    assert tree.marginal(tables, (0, 2)) == pytest.approx(summed(whole, (0, 1, 2), (0, 2)), abs=1e-12)


def test_no_columns_are_joined_that_need_not_be() -> None:
    """A column between two sets of four is in no table of three: it is between one column of each."""
    tree = JunctionTree.over((3,) * 9, [(0, 1, 2, 3), (4, 5, 6, 7), (0, 8), (4, 8)])
    assert sorted(tree.cliques) == [(0, 1, 2, 3), (0, 8), (4, 5, 6, 7), (4, 8)]
    assert tree.cells == 81 + 81 + 9 + 9


def test_totals_are_weighted_by_what_is_sure() -> None:
    sure, vague = (
        NoisyTable((0,), np.array([60.0, 40.0]), np.full(2, 1.0)),
        NoisyTable((1,), np.array([900.0, 100.0]), np.full(2, 1e6)),
    )
    assert total_of([sure, vague]) == pytest.approx(100, abs=0.01)
    assert total_of([NoisyTable((0,), np.array([-5.0]), np.ones(1))]) == 1


def test_drawn_rows_are_as_expected_up_to_rounding() -> None:
    counts = np.array([[500.4, 200.6], [0.0, 299.0]])
    measured = [NoisyTable((0, 1), counts, np.ones((2, 2)))]
    model = fit((2, 2), measured, 1000.0, steps=300)
    codes = draw_codes(model, 1000, np.random.default_rng(1))
    shown = np.zeros((2, 2))
    np.add.at(shown, (codes[:, 0], codes[:, 1]), 1)
    assert np.abs(shown - model.counts((0, 1))).max() < 1.001


def test_what_is_nearly_impossible_makes_no_count_a_number_that_is_none() -> None:
    """A value of chance 1e-323, whose inverse no double holds: the shares of its rows are shares all the same."""
    tree = JunctionTree.over((2, 2, 2), [(0, 1), (1, 2)])
    tables = tree.marginals([np.array([[0.0, -743.0], [0.0, -743.0]]), np.zeros((2, 2))])
    assert 0 < min(table[table > 0].min() for table in tables) < 1e-320
    with np.errstate(all="raise", under="ignore"):
        ends = tree.marginal(tables, (0, 2))
    assert ends.sum() == pytest.approx(1)
    assert ends == pytest.approx(np.full((2, 2), 0.25))
