"""Population uniqueness against slow loops over the papers' formulas, and against published numbers on Adult."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.uniqueness import (
    SizeFrequencies,
    _crossings,
    _sum_of_inverses,
    _weighted_sum_of_inverses,
    classes_in_population,
    dankar,
    digamma_difference,
    log_gamma_difference,
    pitman,
    population_uniqueness,
    snb,
    zayatz,
)
from anon_pipeline_tests.examples import times

ADULT = Path(__file__).resolve().parents[2] / "data" / "adult" / "adult.parquet"
NINE = ["sex", "age", "race", "marital_status", "education", "native_country", "workclass", "occupation", "income"]
FIVE = ["age", "education", "marital_status", "race", "sex"]

some_sizes = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 40)), min_size=1, max_size=60)
some_fraction = st.floats(0.001, 0.999)


def frequencies(sizes: list[int]) -> SizeFrequencies:
    return SizeFrequencies.of(np.array(sizes))


def slow_zayatz(sizes: list[int], population: int) -> Fraction:
    n, classes, count = sum(sizes), len(sizes), Counter(sizes)
    chance = {
        j: Fraction(j * math.comb(population - j, n - 1), math.comb(population, n)) if j <= population else Fraction(0)
        for j in count
    }
    if not count[1]:
        return Fraction(0)
    marginal = sum(Fraction(count[j], classes) * chance[j] for j in count)
    posterior = Fraction(count[1], classes) * chance[1] / marginal
    return count[1] * Fraction(population, n) * posterior


def slow_pitman_likelihood(sizes: list[int], theta: float, alpha: float) -> float:
    """The logarithm, person by person: who founds a class, who joins one."""
    total, people = 0.0, 0
    for classes, size in enumerate(sizes):
        for joined in range(size):
            if people:
                part = joined - alpha if joined else theta + classes * alpha
                total += math.log(part) - math.log(theta + people)
            people += 1
    return total


def slow_shlosser(sizes: list[int], q: float) -> float:
    a = b = c = d = 0.0
    for f in sizes:
        a += f * q**2 * (1 - q**2) ** (f - 1)
        b += (1 - q) ** f * ((1 + q) ** f - 1)
        c += (1 - q) ** f
        d += f * q * (1 - q) ** (f - 1)
    return len(sizes) + sizes.count(1) * (a / b) * (c / d) ** 2


def slow_snb_expectation(k: float, alpha: float, beta: float, pi: float, seen: int) -> float:
    """Expected number of classes with `seen` sampled people: every class size, every way to sample it."""
    total, probability, size = 0.0, beta**alpha, 1
    while size < 20_000:
        if size >= seen:
            total += probability * math.comb(size, seen) * pi**seen * (1 - pi) ** (size - seen)
        probability *= (alpha + size - 1) / size * (1 - beta)
        size += 1
    return k * total


@pytest.fixture(scope="module")
def adult() -> pd.DataFrame:
    return pd.read_parquet(ADULT)


@pytest.fixture(scope="module")
def nine(adult: pd.DataFrame) -> IntArray:
    complete = adult[(adult.split == "train") & ~(adult == "?").any(axis=1)]
    return np.asarray(complete.groupby(NINE, sort=False).size(), dtype=np.int64)


@pytest.mark.parametrize(
    ("pi", "model", "share"), [(0.01, "pitman", 0.144608), (0.1, "pitman", 0.276850), (0.1, "zayatz", 0.320740)]
)
def test_adult_gives_the_published_shares(nine: IntArray, pi: float, model: str, share: float) -> None:
    found = population_uniqueness(nine, pi)[model].share
    assert found is not None
    assert round(found, 6) == share


def test_dankar_takes_pitman_of_adult_at_a_small_fraction_and_the_smaller_one_above(nine: IntArray) -> None:
    classes = SizeFrequencies.of(nine)
    assert (dankar(classes, 0.1).chosen, dankar(classes, 0.1).uniques) == ("pitman", pitman(classes, 0.1).uniques)
    assert (dankar(classes, 0.3).chosen, dankar(classes, 0.3).uniques) == ("snb", snb(classes, 0.3).uniques)


@pytest.mark.parametrize(
    ("pi", "expected"),
    [
        (0.05, {"zayatz": 6722, "pitman": 3474, "snb": 4519}),
        (0.3, {"zayatz": 3777, "pitman": 3806, "snb": 3585}),
    ],
)
def test_a_sample_of_adult_says_how_many_of_all_its_people_are_unique(
    adult: pd.DataFrame, pi: float, expected: dict[str, int]
) -> None:
    """The population is the train split, `?` kept as a value: 32,561 people, of whom 3,382 are unique."""
    population = adult[adult.split == "train"]
    assert (population.groupby(FIVE, sort=False).size() == 1).sum() == 3382
    # RandomState's stream is frozen, so this sample will never change.
    chosen = np.random.RandomState(3).choice(len(population), round(pi * len(population)), replace=False)
    sizes = population.iloc[chosen].groupby(FIVE, sort=False).size().to_numpy()
    found = population_uniqueness(sizes, pi)
    assert {model: round(found[model].uniques or 0) for model in expected} == expected
    assert found["dankar"].uniques == found["pitman" if pi == 0.05 else "snb"].uniques
    assert found["dankar"].uniques == pytest.approx(3382, rel=0.07)


@given(some_sizes, st.integers(0, 400))
def test_zayatz_is_bayes_rule_with_hypergeometric_chances(sizes: list[int], unsampled: int) -> None:
    n = sum(sizes)
    expected = min(slow_zayatz(sizes, n + unsampled), Fraction(sizes.count(1) + unsampled))
    found = zayatz(frequencies(sizes), n / (n + unsampled))
    assert found.uniques == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.long
@given(some_sizes)
@settings(max_examples=times(60))
def test_pitman_finds_the_highest_likelihood(sizes: list[int]) -> None:
    found = pitman(frequencies(sizes), 0.1)
    theta, alpha = found.parameters["theta"], found.parameters["alpha"]
    if len(sizes) in (1, sum(sizes)):
        assert (theta, alpha) == (0, float(len(sizes) == sum(sizes)))
        return
    highest = slow_pitman_likelihood(sizes, theta, alpha)
    # The whole region coarsely, the neighbourhood finely.
    around = [(x, a) for x in np.linspace(-6, 9, 16) for a in (0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)]
    here = math.log(theta + alpha)
    around += [(here + dx, alpha + da) for dx in (-0.02, 0, 0.02) for da in (-0.01, 0, 0.01)]
    for x, a in around:
        if 0 <= a < 1:
            assert slow_pitman_likelihood(sizes, math.exp(x) - a, a) <= highest + 1e-9 * abs(highest)
    uniques = math.gamma(theta + 1) / math.gamma(theta + alpha) * (10 * sum(sizes)) ** alpha if theta < 150 else None
    if uniques is not None:
        assert found.uniques == pytest.approx(min(uniques, sizes.count(1) + 9 * sum(sizes)), rel=1e-9)


def pitman_process(random: Random, people: int, theta: float, alpha: float) -> list[int]:
    """The class of each person."""
    seat: list[int] = []
    sizes: list[int] = []
    for i in range(people):
        joined = len(sizes)
        if random.random() * (theta + i) >= theta + len(sizes) * alpha:
            # A random earlier person's class comes up in proportion to its size; kept, to its size less alpha.
            joined = seat[random.randrange(i)]
            while random.random() * sizes[joined] >= sizes[joined] - alpha:
                joined = seat[random.randrange(i)]
        else:
            sizes.append(0)
        sizes[joined] += 1
        seat.append(joined)
    return seat


@pytest.mark.long
@pytest.mark.parametrize(("theta", "alpha"), [(50.0, 0.0), (50.0, 0.4), (300.0, 0.7), (0.5, 0.9)])
def test_pitman_recovers_the_process_that_made_the_sample(theta: float, alpha: float) -> None:
    random, pi = Random(11), 0.1
    alphas, estimated, true = [], 0.0, 0
    for _ in range(12):
        seat = pitman_process(random, 10_000, theta, alpha)
        true += (np.bincount(seat) == 1).sum()
        sample = np.bincount(random.sample(seat, round(pi * len(seat))))
        found = pitman(SizeFrequencies.of(sample[sample > 0]), pi)
        alphas.append(found.parameters["alpha"])
        estimated += found.uniques or 0
    assert np.mean(alphas) == pytest.approx(alpha, abs=0.06)
    assert estimated == pytest.approx(true, rel=0.15)


@given(some_sizes, st.floats(0.01, 0.99))
def test_classes_in_the_population_is_the_formula_of_haas_and_stokes(sizes: list[int], pi: float) -> None:
    expected = min(slow_shlosser(sizes, pi), sum(sizes) / pi) if 1 in sizes else len(sizes)
    assert classes_in_population(frequencies(sizes), pi) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
@given(some_sizes, st.floats(0.05, 0.95))
@settings(max_examples=times(40), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_snb_expects_what_the_sample_shows(sizes: list[int], pi: float) -> None:
    sizes = [*sizes, 1, 1, 1, 1, 2]
    found = snb(frequencies(sizes), pi)
    assume(found.converged)
    k, alpha, beta = (found.parameters[name] for name in ("classes", "alpha", "beta"))
    assume(beta > 1e-3)  # the sum over class sizes would be long
    assert slow_snb_expectation(k, alpha, beta, pi, 1) == pytest.approx(sizes.count(1), rel=1e-6)
    assert slow_snb_expectation(k, alpha, beta, pi, 2) == pytest.approx(sizes.count(2), rel=1e-6)
    assert found.uniques == pytest.approx(min(k * beta**alpha, sizes.count(1) + sum(sizes) * (1 / pi - 1)), rel=1e-9)


@pytest.mark.parametrize(("alpha", "beta", "pi"), [(0.5, 0.1, 0.3), (1.5, 0.3, 0.5), (0.3, 0.05, 0.2)])
def test_snb_is_right_on_a_population_of_its_own(alpha: float, beta: float, pi: float) -> None:
    random = np.random.default_rng(5)
    population = 1 + random.negative_binomial(alpha, beta, 100_000)
    sample = random.binomial(population, pi)
    found = snb(SizeFrequencies.of(sample[sample > 0]), pi)
    # K is an estimate too, and moderately biased.
    assert found.uniques == pytest.approx((population == 1).sum(), rel=0.25)


@pytest.mark.long
@given(st.permutations([1, 1, 1, 1, 2, 2, 3, 5, 8, 13, 40]), some_fraction)
def test_the_order_of_the_classes_means_nothing(sizes: list[int], pi: float) -> None:
    assert population_uniqueness(np.array(sizes), pi) == population_uniqueness(np.sort(sizes), pi)


@given(some_sizes)
def test_a_sample_of_everybody_is_exact(sizes: list[int]) -> None:
    for found in population_uniqueness(np.array(sizes), 1).values():
        assert (found.uniques, found.population, found.converged) == (sizes.count(1), sum(sizes), True)


@given(st.integers(1, 500), some_fraction)
def test_all_unique_makes_everybody_unique(n: int, pi: float) -> None:
    for found in population_uniqueness(np.ones(n, dtype=np.int64), pi).values():
        assert found.share == pytest.approx(1)


@given(st.integers(2, 10**9), some_fraction)
def test_one_class_makes_nobody_unique(n: int, pi: float) -> None:
    for found in population_uniqueness(np.array([n]), pi).values():
        assert found.uniques == 0


@pytest.mark.long
@given(some_sizes, some_fraction)
def test_no_estimate_is_more_than_can_be(sizes: list[int], pi: float) -> None:
    for found in population_uniqueness(np.array(sizes), pi).values():
        assert found.converged == (found.uniques is not None) == (found.share is not None)
        if found.uniques is not None:
            assert 0 <= found.uniques <= sizes.count(1) + found.population - sum(sizes) + 1e-9
            assert 0 <= (found.share or 0) <= 1 + 1e-12


@given(st.lists(st.integers(2, 40), min_size=1, max_size=30), st.integers(1, 30), some_fraction)
def test_more_sample_uniques_mean_more_population_uniques(larger: list[int], unique: int, pi: float) -> None:
    fewer, more = frequencies(larger + [1] * unique), frequencies(larger + [1] * (unique + 1))
    assert (zayatz(fewer, pi).share or 0) <= (zayatz(more, pi).share or 0) + 1e-12


@given(st.lists(st.integers(2, 40), min_size=1, max_size=30), some_fraction)
def test_dankar_says_nobody_where_no_one_is_unique_in_the_sample(sizes: list[int], pi: float) -> None:
    assert dankar(frequencies(sizes), pi).uniques == 0


@pytest.mark.long
@given(some_sizes, some_fraction)
def test_dankar_chooses_by_sampling_fraction(sizes: list[int], pi: float) -> None:
    by_model = population_uniqueness(np.array(sizes), pi)
    expected: float | None
    if 1 not in sizes:
        expected = 0.0
    elif pi <= 0.1:
        expected = by_model["pitman"].uniques if by_model["pitman"].converged else by_model["zayatz"].uniques
    else:
        expected = min(one.uniques for one in (by_model["zayatz"], by_model["snb"]) if one.uniques is not None)
    assert by_model["dankar"].uniques == expected


def test_snb_without_a_solution_says_so_and_dankar_does_without() -> None:
    classes = frequencies([1, 1, 3])  # no pair: alpha would be 0, and then no three
    assert (snb(classes, 0.3).converged, snb(classes, 0.3).uniques) == (False, None)
    assert dankar(classes, 0.3).chosen == "zayatz"


@pytest.mark.parametrize("model", [zayatz, pitman, snb, dankar])
def test_a_hundred_million_people_take_no_time(model: object) -> None:
    size = np.arange(1, 10_001)
    classes = SizeFrequencies(size, np.maximum(1, 2e7 / size**2.2).astype(np.int64))
    assert classes.n > 10**8
    started = time.process_time()
    found = model(classes, 0.3)  # type: ignore[operator]
    assert time.process_time() - started < 1
    assert 0.05 < found.share < 0.2


def test_the_result_is_json_and_nobody_is_no_error() -> None:
    for sizes in ([1, 1, 2, 9], []):
        found = population_uniqueness(np.array(sizes, dtype=np.int64), 0.2)
        assert json.dumps({model: asdict(one) for model, one in found.items()}, allow_nan=False)
    assert found["dankar"].uniques == found["dankar"].share == 0


@pytest.mark.parametrize("pi", [0.0, -0.1, 1.1, math.nan])
def test_a_fraction_that_is_none_is_refused(pi: float) -> None:
    with pytest.raises(ValueError, match="sampling fraction"):
        population_uniqueness(np.array([1, 2]), pi)


@pytest.mark.parametrize("sizes", [[0, 1], [1.5], [[1, 2]]])
def test_sizes_that_are_none_are_refused(sizes: list[float]) -> None:
    with pytest.raises(ValueError, match="class sizes"):
        population_uniqueness(np.array(sizes), 0.5)


@given(st.floats(1e-3, 1e4), st.integers(0, 3000))
@settings(max_examples=times(50))
def test_digamma_difference_is_a_sum_of_inverses(x: float, m: int) -> None:
    assert float(digamma_difference(x, m)) == pytest.approx(math.fsum(1 / (x + i) for i in range(m)), rel=1e-9)


@given(st.floats(1e-3, 1e4), st.integers(0, 3000))
@settings(max_examples=times(50))
def test_log_gamma_difference_is_a_sum_of_logarithms(x: float, m: int) -> None:
    expected = math.fsum(math.log(x + i) for i in range(m))
    assert float(log_gamma_difference(x + m, m)) == pytest.approx(expected, rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("step", [0.0, 1e-16, 9e-12, 2e-11, 1e-6, 0.5])
def test_sum_of_inverses_is_the_sum_on_both_sides_of_where_another_formula_begins(step: float) -> None:
    for terms in (0, 1, 2, 1000):
        expected = math.fsum(1 / (1.0 + i * step) for i in range(terms))
        # Differences of digamma of 1 / step cancel as much as step is small; to first order nothing does.
        tolerance = 1e-15 if step * terms < 1e-8 else 1e-9
        assert _sum_of_inverses(1.0, step, terms) == pytest.approx(expected, rel=tolerance)


def test_sum_of_inverses_is_corrected_in_proportion_to_its_start() -> None:
    expected = math.fsum(1 / (1000.0 + i * 5e-8) for i in range(100))
    assert _sum_of_inverses(1000.0, 5e-8, 100) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.9])
@pytest.mark.parametrize("theta", [-0.05, 0.5, 1e3, 1e9])
def test_weighted_sum_of_inverses_is_the_sum_whichever_way_it_is_computed(theta: float, alpha: float) -> None:
    for j in (2, 3, 50, 2000):
        if theta > -alpha:
            expected = math.fsum(i / (theta + i * alpha) for i in range(1, j))
            assert _weighted_sum_of_inverses(theta, alpha, j) == pytest.approx(expected, rel=1e-9)


def test_differences_keep_their_digits_at_ten_thousand_million() -> None:
    x = 1e10
    assert float(digamma_difference(x, 3)) == pytest.approx(math.fsum(1 / (x + i) for i in range(3)), rel=1e-13)
    expected = math.fsum(math.log(x - i) for i in range(1, 4))
    assert float(log_gamma_difference(x, 3)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("x", [100.0, 130.0])
@pytest.mark.parametrize("m", [1, 3, 40])
def test_the_series_is_exact_from_where_it_is_used(x: float, m: int) -> None:
    assert float(digamma_difference(x, m)) == pytest.approx(math.fsum(1 / (x + i) for i in range(m)), rel=1e-12)
    expected = math.fsum(math.log(x + i) for i in range(m))
    assert float(log_gamma_difference(x + m, m)) == pytest.approx(expected, abs=5e-13)


@pytest.mark.parametrize("j", [3, 20, 1000])
def test_the_series_in_small_steps_has_four_terms(j: int) -> None:
    """Just below where it is used: the fourth term is some 10^-13 of the sum, the one left out 10^-16."""
    theta, alpha = 1.0, 0.999e-4 / j
    expected = math.fsum(i / (theta + i * alpha) for i in range(1, j))
    assert _weighted_sum_of_inverses(theta, alpha, j) == pytest.approx(expected, rel=1e-14)


def test_a_zero_on_the_grid_and_one_between_its_points_are_found() -> None:
    found = _crossings(lambda x: x * (x - 1.25), np.array([-1.0, 0.0, 1.0, 2.0]))
    assert found == [0.0, pytest.approx(1.25, abs=1e-12)]
    assert _crossings(lambda x: x * x + 0.5, np.array([-1.0, 0.0, 1.0])) == []


def test_a_sample_of_everybody_has_all_classes_of_the_population() -> None:
    assert classes_in_population(frequencies([1, 1, 2]), 1.0) == 3
    assert classes_in_population(frequencies([2, 2, 5]), 0.1) == 3  # nobody alone, so no class was missed


def test_frequencies_count_classes_and_people() -> None:
    found = frequencies([3, 1, 3, 2, 1, 3])
    assert (found.size.tolist(), found.count.tolist()) == ([1, 2, 3], [2, 1, 3])
    assert (found.of_size(3), found.of_size(4), found.classes, found.n) == (3, 0, 6, 13)
