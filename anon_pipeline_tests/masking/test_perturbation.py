"""Noise and rank swapping against their definitions."""

from __future__ import annotations

import datetime
import math
from datetime import date
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anon_pipeline.masking.draws import Draws, content_of, identities, seen
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.masking.noise import FINEST, _root
from anon_pipeline.masking.order import canonical_order, undone
from anon_pipeline.spec import ColumnType
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.masking.tables import CATEGORICAL, DATE, KEY, NUMERIC, OTHER_KEY, masked, step

RNG = np.random.default_rng(5)


# ------------------------------------------------------------------ draws


def test_draws_have_the_distributions_they_are_named_after() -> None:
    draws = Draws(KEY, ["noise"], identities(pa.table({"v": np.arange(60_000)}), KEY, "people"))
    assert stats.kstest(draws.uniform(), "uniform").pvalue > 0.01
    assert stats.kstest(draws.normal(), "norm").pvalue > 0.01
    assert stats.kstest(draws.laplace(), "laplace").pvalue > 0.01
    below = draws.below(np.full(60_000, 6))
    assert stats.chisquare(np.bincount(below, minlength=6)).pvalue > 0.01


def test_draws_follow_from_key_dataset_step_row_and_its_number_among_equals() -> None:
    table = pa.table({"v": [1, 1, 2], "w": ["a", "a", "b"]})
    rows = identities(table, KEY, "people")
    drawn = [
        Draws(KEY, ["noise", {"deviation": 1}], rows).uniform(),
        Draws(KEY, ["noise", {"deviation": 2}], rows).uniform(),
        Draws(OTHER_KEY, ["noise", {"deviation": 1}], rows).uniform(),
        Draws(KEY, ["noise", {"deviation": 1}], identities(table, OTHER_KEY, "people")).uniform(),
        Draws(KEY, ["noise", {"deviation": 1}], identities(table, KEY, "visits")).uniform(),
        Draws(KEY, ["noise", {"deviation": 1}], rows).bound(0.5).uniform(),
        Draws(KEY, ["noise", {"deviation": 1}], rows).given(np.zeros(3)).uniform(),
        Draws(KEY, ["noise", {"deviation": 1}], rows).given(np.ones(3)).uniform(),
    ]
    assert len(np.unique(np.concatenate(drawn))) == 3 * len(drawn)
    draws = Draws(KEY, ["noise", {"deviation": 1}], rows)
    assert (draws.uniform() == drawn[0]).all() and not (draws.uniform() == drawn[0]).any()
    assert not np.isin(draws.at(np.array([0])).uniform(), np.concatenate(drawn)).any(), "every call gives new numbers"
    alike = Draws(KEY, ["donut"], rows).of(table.column("w").combine_chunks()).uniform()
    assert alike[0] == alike[1] != alike[2], "of places, not of rows"
    # The numbers themselves are part of every release.
    assert drawn[0].tolist() == [0.6960574869319008, 0.7870617933395859, 0.12802929394636997]


@settings(max_examples=times(40))
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.sampled_from("ab")), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(-3, 3), st.sampled_from("ab")), max_size=12),
    st.randoms(),
)
def test_a_row_keeps_its_draws_whoever_else_comes_and_goes(
    people: list[tuple[int, str]], others: list[tuple[int, str]], random: Random
) -> None:
    """As a multiset per content: equal rows are interchangeable. Fractions among the others change nothing either."""

    def drawn(rows: list[tuple[float, str]]) -> dict[tuple[float, str], list[float]]:
        table = pa.table({"v": pa.array([row[0] for row in rows]), "w": pa.array([row[1] for row in rows])})
        numbers = Draws(KEY, ["noise"], identities(table, KEY, "people")).uniform().tolist()
        found: dict[tuple[float, str], list[float]] = {}
        for row, number in zip(rows, numbers, strict=True):
            found.setdefault(row, []).append(number)
        return found

    alone = drawn([*people])
    crowd = [*people, *others, (0.5, "a")]
    random.shuffle(crowd)
    together = drawn([*crowd])
    assert all(set(numbers) <= set(together[row]) for row, numbers in alone.items())
    everything = [number for numbers in together.values() for number in numbers]
    assert len(set(everything)) == len(everything)


def test_rows_come_back_to_where_they_stood() -> None:
    table = pa.table({"v": RNG.integers(0, 5, 50)})
    order = canonical_order(content_of(table).T)
    assert table.take(pa.array(order)).take(pa.array(undone(order))).equals(table)
    kept = np.arange(0, 50, 2)
    back = order[kept][undone(order, kept)]
    assert back.tolist() == sorted(order[kept].tolist())
    assert (canonical_order(np.zeros((50, 2), dtype=np.uint64)) == np.arange(50)).all()


# ------------------------------------------------------------------ noise


@pytest.mark.long
def test_noise_has_the_deviation_that_is_stated() -> None:
    values = RNG.normal(100, 15, 20_000)
    for distribution, name in (("gaussian", "norm"), ("laplace", "laplace")):
        shown, (report,) = masked(values, NUMERIC, step("noise", deviation=5, distribution=distribution))
        added = np.array(shown) - values
        scale = 5 if name == "norm" else 5 / np.sqrt(2)
        assert stats.kstest(added / scale, name).pvalue > 0.01
        assert abs(np.corrcoef(added, values)[0, 1]) < 0.03
        assert "epsilon" not in report.facts and report.guarantee == "none"
    shown, (report,) = masked(values, NUMERIC, step("noise", share=0.5))
    assert report.facts["deviation"] == float(f"{values.std() / 2:.2g}"), (
        "rounded, so that one person more hardly ever changes it"
    )
    assert np.std(np.array(shown) - values) == pytest.approx(values.std() / 2, rel=0.03)


def test_laplace_noise_with_bounds_is_locally_private() -> None:
    laplace = step("noise", distribution="laplace", deviation=np.sqrt(2) * 10, bounds=[0, 20])
    shown, (report,) = masked([5.0, 1e9, None], NUMERIC, laplace)
    assert report.facts["epsilon"] == pytest.approx(2.0) and report.guarantee == "local DP"
    assert shown[1].as_py() < 1000 and shown[2].as_py() is None
    assert any("missing" in note for note in report.notes) and any("not measured" in note for note in report.notes)
    assert report.costs == {} and report.linkage is None
    apart = step("noise", distribution="laplace", deviation=np.sqrt(2) * 10, bounds=[30, 50])
    assert masked([35.0], NUMERIC, apart)[1][0].facts["epsilon"] == pytest.approx(2.0)
    _, (gaussian,) = masked([5.0], NUMERIC, step("noise", deviation=1, bounds=[0, 20]))
    assert gaussian.guarantee == "none"


def test_noise_keeps_the_type_and_stays_within_it() -> None:
    whole, _ = masked(pa.array([127, -128] * 50, pa.int8()), NUMERIC, step("noise", deviation=50))
    assert whole.type == pa.int8() and {127, -128} <= set(whole.to_pylist())
    days, _ = masked([date(2024, 1, 1)] * 1000, DATE, step("noise", deviation=10))
    assert np.std(np.array(days).astype(float)) == pytest.approx(10, rel=0.1) and days.type == pa.date32()


@pytest.mark.long
def test_proportional_noise_grows_with_the_value_and_keeps_the_sign() -> None:
    values = np.repeat([-1e6, 1.0, 1e6], 5000)
    shown = np.array(masked(values, NUMERIC, step("proportional_noise", share=0.1))[0])
    for value in (-1e6, 1.0, 1e6):
        assert np.std(shown[values == value] / value) == pytest.approx(0.1, rel=0.05)
    assert (np.sign(shown) == np.sign(values)).all()


@pytest.mark.long
def test_correlated_noise_keeps_means_and_covariance() -> None:
    covariance = np.array([[4.0, 3.0, 0.0], [3.0, 9.0, -2.0], [0.0, -2.0, 1.0]])
    values = RNG.multivariate_normal([10, -5, 0], covariance, 40_000) * [1, 1000, 0.001]
    table = pa.table({name: values[:, i] for i, name in enumerate("abc")})
    steps = [step("correlated_noise", columns=list("abc"), share=1)]
    made, (report,) = apply_steps(table, dict.fromkeys("abc", NUMERIC), {}, steps, Resources(key=KEY))
    shown = np.column_stack([made.column(name) for name in "abc"])
    before, after = np.cov(values.T), np.cov(shown.T)
    scale = np.sqrt(np.outer(np.diag(before), np.diag(before)))
    assert np.abs((after - before) / scale).max() < 0.03
    assert np.abs((shown.mean(axis=0) - values.mean(axis=0)) / values.std(axis=0)).max() < 0.02
    assert np.corrcoef(shown[:, 0], values[:, 0])[0, 1] == pytest.approx(np.sqrt(0.5), abs=0.02)
    assert report.linkage is not None and report.linkage.rate < 0.1


def test_correlated_noise_on_columns_that_follow_from_one_another() -> None:
    x = RNG.normal(size=2000)
    table = pa.table({"a": x, "b": 2 * x, "c": np.full(2000, 7.0)})
    steps = [step("correlated_noise", columns=["a", "b", "c"], share=0.5)]
    made, _ = apply_steps(table, dict.fromkeys("abc", NUMERIC), {}, steps, Resources(key=KEY))
    assert np.allclose(np.array(made.column("b")), 2 * np.array(made.column("a")), atol=1e-5)
    assert np.allclose(np.array(made.column("c")), 7)


@pytest.mark.parametrize(("deviation", "grid"), [(0.98, 0.5), (1.02, 1.0)])
def test_correlated_noise_is_shown_on_a_grid_of_a_millionth_of_its_own_deviation(deviation: float, grid: float) -> None:
    """Of a column's deviation of .98 / .6 three quarters are noise, which shrinks by 1.25: .98, on a grid of 1/2."""
    table = pa.table({"a": np.repeat([-deviation / 0.6, deviation / 0.6], 100)})
    steps = [step("correlated_noise", columns=["a"], share=0.75)]
    made, _ = apply_steps(table, {"a": NUMERIC}, {}, steps, Resources(key=KEY))
    steps_of_grid = np.array(made.column("a")) / (grid * FINEST)
    assert (steps_of_grid == np.rint(steps_of_grid)).all()
    assert (steps_of_grid % 2 == 1).any()


@pytest.mark.parametrize("n", [2, 3, 50])
def test_the_root_of_a_covariance_is_its_root(n: int) -> None:
    values = np.random.default_rng(n).normal(size=(n, 4)) * [1, 1000, 1e-6, 1]
    values[:, 3] = values[:, 0] + values[:, 1]
    root, covariance = _root(values), np.cov(values.T, bias=True)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert root.T @ root / scale == pytest.approx(covariance / scale, abs=1e-9)
    assert not _root(values[:1]).any()


def test_a_factor_of_noise_lies_between_0_and_2() -> None:
    shown = np.array(masked(np.full(3000, 1000.0), NUMERIC, step("proportional_noise", share=0.5))[0])
    assert 0 < shown.min() < 20 and 1980 < shown.max() < 2000  # at an end, a factor would be known
    assert shown.mean() == pytest.approx(1000, rel=0.03) and shown.std() == pytest.approx(500, rel=0.1)


def test_laplace_noise_whose_scale_is_that_of_the_column_promises_nothing() -> None:
    parts = {"distribution": "laplace", "bounds": [0, 20]}
    _, (report,) = masked([5.0, 9.0], NUMERIC, step("noise", share=0.5, **parts))
    assert report.guarantee == "none" and "epsilon" not in report.facts and report.costs
    assert report.parameters == {"distribution": "laplace", "share": 0.5, "bounds": [0.0, 20.0]}


# ------------------------------------------------------------------ rank swapping


@pytest.mark.parametrize("n", [2, 10, 300])
def test_a_share_of_less_than_three_ranks_swaps_within_three(n: int) -> None:
    values = RNG.permutation(n)
    shown, _ = masked(values, NUMERIC, step("rank_swap", share=0.003))
    moved = np.abs(np.array(shown) - values)
    assert moved.max() == min(n - 1, 3) and (moved > 0).sum() >= n / 2


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.99])
def test_rank_swapping_keeps_the_distribution_and_the_distance(share: float) -> None:
    values = RNG.permutation(1001)  # a value is its own rank
    shown, (report,) = masked(values, NUMERIC, step("rank_swap", share=share))
    moved = np.abs(np.array(shown) - values)
    assert sorted(shown.to_pylist()) == sorted(values.tolist())
    assert moved.max() <= max(1, share * 1001)
    assert (moved > 0).mean() > 1 - 2 / (share * 1001) - 0.01
    assert report.facts["without_partner"] == (moved == 0).sum()
    assert moved.mean() > share * 1001 / 7
    swapped = dict(zip(values.tolist(), shown.to_pylist(), strict=True))
    pairs = sum(swapped[swapped[value]] == value for value in swapped)
    assert pairs <= (0.5 if share < 0.05 else 0.05) * 1001, "who knows their own value learns nobody's"


@pytest.mark.long
def test_one_person_more_changes_what_few_others_show() -> None:
    """Where all that follow changed, each release would narrow down everybody's rank, and a mean of many find it."""
    values = RNG.permutation(1000) * 10
    shown = np.array(masked(values, NUMERIC, step("rank_swap", share=0.05))[0])
    changed = []
    for newcomer in range(25, 10_000, 400):
        more = np.array(masked(np.r_[values, newcomer], NUMERIC, step("rank_swap", share=0.05))[0])
        changed.append((more[:-1] != shown).sum())
    assert np.mean(changed) < 50 and np.median(changed) <= 3  # a stretch has at most 51 people


@pytest.mark.long
def test_the_last_digits_of_a_noisy_number_do_not_tell_the_value() -> None:
    """Of all numbers that noise can make of two values one must not be able to say which it was (Mironov)."""
    for distribution in ("gaussian", "laplace"):
        noise = step("noise", deviation=5000, distribution=distribution)
        grids = [
            np.array(masked(values, NUMERIC, noise)[0]) * 2.0**8
            for values in (np.full(5000, 0.1), RNG.normal(size=5000))
        ]
        assert all((grid == np.rint(grid)).all() for grid in grids)
    shown = np.array(masked(np.full(5000, 1 / 3), NUMERIC, step("proportional_noise", share=0.1))[0])
    assert (shown * 2.0**28 == np.rint(shown * 2.0**28)).all()


def test_noise_of_several_columns_is_drawn_anew_where_their_covariance_is_another() -> None:
    values = RNG.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 500)
    shown = []
    for table in (values, np.vstack([values, [[50.0, -50.0]]])):
        columns = pa.table({"a": table[:, 0], "b": table[:, 1]})
        steps = [step("correlated_noise", columns=["a", "b"], share=1)]
        shown.append(
            np.column_stack(
                apply_steps(columns, dict.fromkeys("ab", NUMERIC), {}, steps, Resources(key=KEY))[0].columns
            )[:500]
        )
    left = [table - values @ np.linalg.lstsq(values, table, rcond=None)[0] for table in shown]
    assert np.abs(np.corrcoef(left[0][:, 0], left[1][:, 0])[0, 1]) < 0.25


def test_noise_on_another_value_is_another_also_where_only_other_people_changed() -> None:
    """Else who is no longer coded at a limit, which is public, shows by how much they lie above it."""
    values = np.arange(1.0, 1001.0)
    steps = [step("quantile_code", top=0.05), step("noise", deviation=100)]
    first = np.array(masked(values, NUMERIC, *steps)[0])
    second = np.array(masked(np.r_[values, np.full(100, 5000.0)], NUMERIC, *steps)[0])[:1000]
    coded = slice(960, 1000)  # at 950 first, and at their own values then
    assert (np.abs(second[coded] - first[coded] - (values[coded] - 950)) > 0.01).all()
    assert (second[:950] == first[:950]).all()


# ------------------------------------------------------------------ local differential privacy


def test_nothing_is_reported_of_true_values_that_are_made_private() -> None:
    """The share of changed cells, exact, would tell one who knows all answers but one whether that one was changed."""
    pram = step("pram", retention=0.8, categories=["x", "y"])
    table = pa.table({"a": RNG.normal(size=200), "race": RNG.choice(["x", "y"], 200), "b": RNG.normal(size=200)})
    kinds = {"a": NUMERIC, "race": CATEGORICAL, "b": NUMERIC}
    steps = {
        "a": [step("round", to=1)],
        "race": [step("replace", pattern="x", by="y"), pram],
        "b": [step("round", to=1)],
    }
    _, (a, before, race, b) = apply_steps(table, kinds, steps, resources=Resources(key=KEY))
    assert race.guarantee == "local DP" and before.costs == race.costs == {} and race.linkage is None
    without = table.set_column(1, "race", pa.array(np.where(np.array(table["a"]) > 0, "x", "y")))
    _, (same, *_, other) = apply_steps(without, kinds, steps, resources=Resources(key=KEY))
    assert same.costs == a.costs, "no correlation with the true race either"
    assert set(b.costs["b"].__dict__) == set(other.costs["b"].__dict__)


def test_local_privacy_is_not_claimed_after_a_step_that_looks_at_others() -> None:
    pram = step("pram", retention=0.8, categories=["x", "y"])
    _, (_, report) = masked(["x", "y"] * 20, CATEGORICAL, step("suppress_rare", k=3), pram)
    assert report.guarantee == "none" and any("more than a person's own value" in note for note in report.notes)
    _, (_, report) = masked(["x", "y"] * 20, CATEGORICAL, step("prefix", length=1), pram)
    assert report.guarantee == "local DP"
    _, (_, report) = masked(["x", "y"] * 20, CATEGORICAL, pram, pram)
    assert report.guarantee == "local DP"


def test_the_form_of_private_numbers_does_not_tell_whether_somebody_has_a_fraction() -> None:
    """Beside whole numbers, the noisy ones of all had fractions if and only if one person had one: right for all."""
    for epsilon in (0.1, 1):
        laplace = step("noise", distribution="laplace", deviation=np.sqrt(2) * 100 / epsilon, bounds=[0, 100])
        of_whole, (report,) = masked(pa.array([37, 50] * 50), NUMERIC, laplace)
        of_one_fraction, _ = masked(pa.array([37.5, *[50.0, 37.0] * 49, 50.0]), NUMERIC, laplace)
        assert report.guarantee == "local DP" and of_whole.type == of_one_fraction.type == pa.float64()
        assert all(any(number % 1 for number in shown.to_pylist()) for shown in (of_whole, of_one_fraction))


def test_draws_depend_on_every_digit_of_whole_numbers_and_not_on_the_last_of_fractions() -> None:
    """Also where a fraction of somebody else makes floats of them."""
    whole = [20_000_000, 20_000_001, None]
    assert seen(pa.array(whole)).to_pylist() == seen(pa.array(whole, pa.float64())).to_pylist() == whole
    first, second = seen(pa.array([0.1 + 0.2, 0.3])).to_pylist()
    assert first == second and seen(pa.array([1e300, math.inf])).to_pylist() == [1e300, math.inf]


@pytest.mark.parametrize("kind", [NUMERIC, DATE])
def test_the_fraction_or_hour_of_a_stranger_draws_nobody_anew(kind: ColumnType) -> None:
    """Columns of floats in place of whole numbers, or of moments in place of days, had new numbers for everybody.

    So all had a second answer, and their epsilon doubled.
    """
    days = [date(2024, 1, 1 + i % 28) for i in range(100)]
    noon = [datetime.datetime(2024, 1, 1, 12), *(datetime.datetime(2024, 1, day.day) for day in days[1:])]
    before, after = (days, noon) if kind is DATE else ([*range(100)], [0.5, *range(1, 100)])
    name = pa.array([f"person {i}" for i in range(100)])
    shown = [
        apply_steps(
            pa.table({"name": name, "v": pa.array(column), "c": ["x", "y"] * 50}),
            {"name": CATEGORICAL, "v": kind, "c": CATEGORICAL},
            {"v": [step("noise", deviation=50)], "c": [step("randomized_response", epsilon=1, categories=["x", "y"])]},
            resources=Resources(key=KEY),
        )[0]
        for column in (before, after)
    ]
    assert shown[0]["c"][1:] == shown[1]["c"][1:]
    of_day, of_moment = (
        np.array(table["v"])[1:].astype("datetime64[us]" if kind is DATE else float) for table in shown
    )
    unit = np.timedelta64(1, "D") if kind is DATE else 1.0
    assert (np.abs(of_day - of_moment) / unit <= 0.5).all()


@pytest.mark.parametrize("share", [0, 1, 1.5, 5, -0.1, float("nan")])
def test_a_distance_that_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"share of all people and must lie above 0 and below 1: 0\.05 swaps"):
        step("rank_swap", share=share)
