"""The noise has the stated distribution, and costs no more than its share.

A test of noise fails once in a million runs where the noise is right; at the usual 5 % it would fail every day.
"""

import math

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anon_pipeline.differential_privacy import accounting, mechanisms
from anon_pipeline.differential_privacy.accounting import NANO
from anon_pipeline_tests.examples import times

dp.enable_features("contrib")

FALSE_ALARM = 1e-6


def gaussian_weights(scale: float, places: np.ndarray) -> np.ndarray:
    weights = np.exp(-(places.astype(float) ** 2) / (2 * scale**2))
    return weights / weights.sum()


def fits(drawn: np.ndarray, scale: float) -> float:
    """p-value of a chi-square test of drawn whole numbers against the discrete Gaussian, tails joined."""
    reach = math.ceil(3.5 * scale)
    places = np.arange(-12 * reach, 12 * reach + 1)
    weights = gaussian_weights(scale, places)
    inner = np.abs(places) <= reach
    expected = np.concatenate(([weights[places < -reach].sum()], weights[inner], [weights[places > reach].sum()]))
    held = np.clip(drawn, -reach - 1, reach + 1) + reach + 1
    return float(stats.chisquare(np.bincount(held, minlength=2 * reach + 3), expected * len(drawn)).pvalue)


@pytest.fixture(scope="module")
def draws() -> tuple[np.ndarray, float]:
    """So many that the test of fit misses a scale three percent off less than once in 10^20 runs."""
    nano = 30_000_000
    drawn = np.concatenate([mechanisms.gaussian_counts(np.zeros(50_000, dtype=np.int64), 1, nano) for _ in range(4)])
    return drawn, mechanisms.gaussian_scale(1, nano)


@pytest.mark.long
def test_draws_fit_the_discrete_gaussian(draws: tuple[np.ndarray, float]) -> None:
    drawn, scale = draws
    assert fits(drawn, scale) > FALSE_ALARM


@pytest.mark.long
def test_the_test_of_fit_sees_a_scale_that_is_three_percent_off(draws: tuple[np.ndarray, float]) -> None:
    drawn, scale = draws
    assert fits(drawn, scale * 1.03) < FALSE_ALARM


@pytest.mark.long
def test_draws_are_independent_of_each_other(draws: tuple[np.ndarray, float]) -> None:
    drawn, scale = draws
    products = drawn[:-1] * drawn[1:]
    assert abs(products.mean()) < 5 * scale**2 / math.sqrt(len(products))


@pytest.mark.long
def test_the_discrete_laplace_of_the_library() -> None:
    """P(0) at scale 1 is .46212: the library that draws is the one that is meant."""
    laplace = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=1.0)
    zeros = sum(value == 0 for value in laplace([0] * 100_000))
    assert stats.binomtest(zeros, 100_000, 0.46212).pvalue > FALSE_ALARM


def test_known_answers_of_thresholds() -> None:
    def laplace(scale: float, threshold: int) -> tuple[float, float]:
        space = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
        made = dp.m.make_laplace_threshold(
            space, dp.l01inf_distance(dp.absolute_distance(T="i64")), scale=scale, threshold=threshold
        )
        return made.map((1, 1, 1))

    assert laplace(2.0, 40) == pytest.approx((0.5, 1.28298e-9), rel=1e-5)
    for epsilon, delta, threshold in ((1, 1e-6, 14), (1, 1e-5, 12), (0.5, 1e-6, 27)):
        assert laplace(1 / epsilon, threshold - 1)[1] > delta >= laplace(1 / epsilon, threshold)[1]


def test_a_threshold_is_the_smallest_that_keeps_its_delta() -> None:
    """The tail of the discrete Gaussian beyond it is at most delta, and one lower it is more."""
    nano, atto = 50_000_000, 10**11
    scale = mechanisms.gaussian_scale(1, nano)
    places = np.arange(-400, 401)
    weights = gaussian_weights(scale, places)
    threshold = mechanisms.smallest_threshold(1, 1, nano, atto)
    tail = [float(weights[places + 1 >= least].sum()) for least in (threshold, threshold - 1)]
    assert tail[0] <= 1e-7 < tail[1]


@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (4, 1), (1, 5), (3, 4)])
def test_groups_are_counted_with_the_noise_of_what_a_person_moves(groups: int, rows: int) -> None:
    """The share is enough for it, whatever a person may have, and is used as far as it goes."""
    counts = dict.fromkeys(range(2_000), 10_000)
    noisy = mechanisms.noisy_groups(counts, groups, rows, 50_000_000, 10**11)
    assert noisy.keys() == counts.keys()
    deviation = float(np.std([noisy[group] - 10_000 for group in counts]))
    assert deviation == pytest.approx(math.sqrt(groups * rows**2 / (2 * 0.05)), rel=0.1)


@pytest.mark.long
def test_a_group_of_one_person_is_hardly_ever_shown() -> None:
    """At a delta that can be measured: 2,000 groups of one person, 200 runs."""
    shown = sum(
        len(mechanisms.noisy_groups(dict.fromkeys(range(2_000), 1), 1, 1, 50_000_000, 10**15)) for _ in range(20)
    )
    assert stats.binomtest(shown, 40_000, 1e-3, alternative="greater").pvalue > FALSE_ALARM
    assert shown > 0  # the threshold is no higher than it must be


@pytest.mark.long
def test_the_noisy_maximum_has_the_odds_of_the_exponential_mechanism() -> None:
    nano = 500_000_000
    scale = mechanisms.noisy_max_scale(1, nano)
    scores = np.array([0, 1, 2, 3])
    odds = np.exp(scores / scale)
    drawn = np.bincount([mechanisms.noisy_max(scores, 1, nano) for _ in range(5_000)], minlength=4)
    assert stats.chisquare(drawn, odds / odds.sum() * drawn.sum()).pvalue > FALSE_ALARM


@pytest.mark.long
@settings(max_examples=times(300))
@given(st.integers(1, 10**12), st.integers(1, 100 * NANO))
def test_no_mechanism_costs_more_than_its_share(squared: int, nano: int) -> None:
    """The assertion inside is asked at sensitivities and shares of all sizes."""
    if mechanisms.math.sqrt(squared * NANO / (2 * nano)) < mechanisms.LARGEST_SCALE:
        mechanisms.gaussian_counts([0], squared, nano)
    mechanisms.noisy_max([1, 2], squared % 1000 + 1, nano)


def test_more_than_the_share_is_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "gaussian_scale", lambda squared, nano: 1.0)
    with pytest.raises(AssertionError, match="more than its share"):
        mechanisms.gaussian_counts([0], 4, 1_000_000)
    with pytest.raises(AssertionError, match="more than its share"):
        mechanisms.noisy_groups({1: 100}, 2, 2, 1_000_000, 10**14)
    monkeypatch.setattr(mechanisms, "noisy_max_scale", lambda sensitivity, nano, monotonic=False: 0.5)
    with pytest.raises(AssertionError, match="more than its share"):
        mechanisms.noisy_max([1, 2], 1, 1_000_000)


def test_large_counts_do_not_wrap() -> None:
    (noisy,) = mechanisms.gaussian_counts([3_000_000_000], 1, NANO)
    assert abs(noisy - 3_000_000_000) < 1000


@pytest.mark.parametrize("values", [[1.0], [2**61], ["1"]])
def test_floats_and_numbers_too_large_are_refused(values: list[object]) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        mechanisms.gaussian_counts(np.array(values), 1, NANO)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.integers(1, 9), st.integers(-500, 500))
def test_scores_of_quantiles_move_no_further_than_stated(histogram: list[int], part: int, off: int) -> None:
    """And they stay whole numbers: rounding afterwards would double how far they move."""

    def scores(rows: list[int]) -> np.ndarray:
        of_value = mechanisms.quantile_scores(rows, part, 10)
        return np.concatenate((of_value, mechanisms.quantile_end_scores(rows, part, 10, off)))

    before = scores(histogram)
    assert before[len(histogram) :].max() == 0, "some end fits, however few there are"
    assert before[: len(histogram)].max() == 0, "so does some value"
    for place in range(len(histogram)):
        more = [*histogram]
        more[place] += 1
        assert np.abs(scores(more) - before).max() <= max(part, 10 - part)


def test_the_median_is_found_where_there_are_many() -> None:
    histogram = np.full(101, 1000)
    assert abs(mechanisms.quantile(histogram, 1, 2, 1, NANO) - 50) <= 1
    assert abs(mechanisms.quantile(histogram, 1, 4, 1, NANO) - 25) <= 1


@pytest.mark.parametrize(
    ("histogram", "part", "whole", "found"),
    [
        ([55, 0, 0, 0, 45], 1, 2, [0]),  # most have 0; by rows below and above, 1 to 3 seemed nearer
        ([45, 0, 0, 0, 55], 1, 2, [4]),
        ([10, 42, 2, 46], 1, 2, [1]),
        ([50, 0, 0, 50], 1, 2, [0, 1, 2, 3]),  # all of them are medians
        ([70, 0, 10, 20], 3, 4, [2]),
        ([0, 0, 0], 1, 2, [0, 1, 2]),
    ],
)
def test_the_best_score_is_that_of_the_quantile(histogram: list[int], part: int, whole: int, found: list[int]) -> None:
    scores = mechanisms.quantile_scores(histogram, part, whole)
    assert np.flatnonzero(scores == 0).tolist() == found and scores.max() == 0


def test_scores_are_rows_from_the_quantile() -> None:
    """Which is what a preview states: within so many rows of the quantile."""
    assert mechanisms.quantile_scores([55, 0, 5, 40], 1, 2).tolist() == [0, -10, -10, -20]


def test_a_share_too_small_for_its_bounds_is_refused_in_a_sentence() -> None:
    with pytest.raises(accounting.InputError, match="too small"):
        mechanisms.gaussian_counts([1], 2**120, 1)
