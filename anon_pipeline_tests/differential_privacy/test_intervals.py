"""95 % of the intervals hold the exact figure, whatever the scale, and the answer says what they do not hold."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from anon_pipeline.differential_privacy import answering, intervals, mechanisms
from anon_pipeline_tests.differential_privacy.tables import PERSON, counting, plan_of, spec_of

CELLS = 20_000


def frame_of(groups: int, rows: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    n = groups * rows
    return pd.DataFrame(
        {
            "patient": np.arange(n).astype(str),
            "age": random.integers(0, 10, n).astype(str),
            "weight": (random.integers(-2, 5, n) / 4).astype(str),
            "visits": "0",
            "city": "Cork",
            "street": "High",
        }
    )


def covered(rows: list[dict[str, dict[str, float]]], name: str, truth: float) -> float:
    return float(np.mean([row[name]["low"] <= truth <= row[name]["high"] for row in rows]))


@pytest.mark.long
def test_coverage_of_counts_and_means_and_sums() -> None:
    """Over as many draws as make the share exact to a tenth of a percent; one in a million runs may fail."""
    spec, n = spec_of("row"), 4_000
    frame = frame_of(1, n, seed=2)
    with counting(spec) as count:
        plan = plan_of(spec, "SELECT COUNT(*), AVG(age), SUM(weight) FROM people", nano_rho=1_000_000)
        exact = count(plan, frame)
    # The same numbers thousands of times, as if they were groups: drawing is what costs.
    drawn = {
        one: mechanisms.gaussian_counts(exact.numbers(one, [()]) * CELLS, plan.squared_sensitivity(one), plan.share)
        for one in plan.measurements
    }
    rows = [
        {
            item.name: answering.figure(plan, item.shows, {one: int(drawn[one][place]) for one in drawn})
            for item in plan.statement.items
            if not isinstance(item.shows, str)
        }
        for place in range(CELLS)
    ]
    ages, weights = frame["age"].astype(int), frame["weight"].astype(float)
    for name, truth in (("count", n), ("avg_age", ages.mean()), ("sum_weight", weights.sum())):
        assert 0.94 <= covered(rows, name, truth) <= 0.96, name


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.7, 1, 4.47, 20, 49, 50.4, 60.8])
def test_narrow_counts_are_covered_at_least_so_often(scale: float) -> None:
    width = intervals.half_width(scale)
    places = np.arange(-700, 701)
    weights = np.exp(-(places.astype(float) ** 2) / (2 * scale**2))
    inside = weights[np.abs(places) <= width].sum() / weights.sum()
    assert inside >= 0.95
    assert weights[np.abs(places) <= width - 1].sum() / weights.sum() < 0.95


@pytest.mark.parametrize("scales", [(0.3, 0.3), (0.5, 0.5), (1, 1), (2, 2), (3, 3), (2, 1), (5, 1), (74, 2), (50, 50)])
def test_narrow_means_are_covered_at_least_so_often(scales: tuple[float, float]) -> None:
    """Noise is whole numbers: of a mean in the middle of the grid 88 of 100 intervals held it at a deviation of 1."""
    (numerators, of_numerator), (denominators, of_denominator) = (discrete_gaussian(scale) for scale in scales)
    people = 100_000
    for mean in (0, 0.1, 0.25, 0.5, 1, 1.5):
        low, high = np.vectorize(lambda noise, mean=mean: intervals.ratio(people * mean + noise, people, scales))(
            numerators
        )
        assert 0 <= (high - low).max() < 0.01
        # With a noisy denominator, both ends lie aside by as much as the mean does, but for a millionth.
        moved = mean * denominators[:, None] / people
        holds = (low - moved <= mean + 1e-12) & (mean <= high - moved + 1e-12)
        assert (of_denominator[:, None] * of_numerator * holds).sum() >= 0.95, mean


def discrete_gaussian(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers around 0 and how likely each is, shapes (n,)."""
    places = np.arange(-math.ceil(9 * scale), math.ceil(9 * scale) + 1)
    weights = np.exp(-(places.astype(float) ** 2) / (2 * scale**2))
    return places, weights / weights.sum()


def test_a_quotient_of_almost_nothing_has_no_end() -> None:
    assert intervals.ratio(10, 1, (5, 5)) == (-math.inf, math.inf)
    assert intervals.ratio(10, -100, (5, 5)) == (-math.inf, math.inf)
    low, high = intervals.ratio(1000, 500, (5, 5))
    assert low < 2 < high


@pytest.mark.long
def test_the_rank_of_a_quantile_stays_within_its_bound() -> None:
    histogram = np.full(50, 20)
    scores = mechanisms.quantile_scores(histogram, 1, 2)
    nano = 10_000_000
    bound = intervals.rank_error(50, 2, mechanisms.noisy_max_scale(1, nano))
    chosen = [mechanisms.quantile(histogram, 1, 2, 1, nano) for _ in range(1_000)]
    outside = sum((scores.max() - scores[one]) / 2 > bound for one in chosen)
    assert stats.binomtest(outside, len(chosen), 0.05, alternative="greater").pvalue > 1e-6


@pytest.mark.long
@pytest.mark.parametrize(
    "histogram",
    [[100] * 10, [0] * 3 + [5_000] + [0] * 2 + [4_990] + [0] * 3, [0] * 9 + [3], [0] * 10, [900] + [1] * 9],
    ids=["even", "two values", "three people", "nobody", "skewed"],
)
def test_intervals_of_quantiles_hold_them(histogram: list[int]) -> None:
    """However values lie and however few there are; one in a million runs may fail."""
    spec, draws = spec_of("row"), 400
    plan = plan_of(spec, "SELECT QUANTILE_CONT(age, 0.25) FROM people", nano_rho=3_000_000)
    (statistic,) = plan.statement.statistics
    value, low, high = plan.measurements
    rows = np.array(histogram)
    below = 4 * (np.cumsum(rows) - rows) - rows.sum()
    true = np.flatnonzero((below <= 0) & (below + 4 * rows >= 0))
    outside = 0
    for _ in range(draws):
        drawn = {one: answering._quantile(plan, one, rows, plan.share) for one in (value, low, high)}
        outside += drawn[low] > true.max() or drawn[high] < true.min()
    assert stats.binomtest(outside, draws, 0.05, alternative="greater").pvalue > 1e-6
    shown = answering.figure(plan, statistic, {value: 3, low: 4, high: 2})
    assert shown == {"value": 3.0, "low": 3.0, "high": 3.0}


def test_an_interval_of_a_quantile_is_narrow_where_there_are_many() -> None:
    spec, rows = spec_of("row"), np.full(10, 2_000)
    plan = plan_of(spec, "SELECT MEDIAN(age) FROM people", nano_rho=3_000_000)
    _, low, high = plan.measurements
    ends = [answering._quantile(plan, one, rows, plan.share) for one in (low, high)]
    assert 3 <= ends[0] <= 5 and 4 <= ends[1] <= 6  # the next places are 180 scales of the noise away


def test_what_contribution_bounds_may_cost_is_said() -> None:
    spec = spec_of(PERSON)
    said = answering.about(plan_of(spec, "SELECT city, COUNT(*), AVG(age) FROM people GROUP BY city"))
    assert any("at most 3 rows in at most 2 groups" in note for note in said["notes"])
    assert any("beyond the public range" in note for note in said["notes"])
    alone = answering.about(plan_of(spec, "SELECT COUNT(DISTINCT patient) FROM people"))
    assert not any("at most 3 rows" in note for note in alone["notes"])


def test_empty_public_groups_are_shown_and_negative_counts_stay() -> None:
    spec = spec_of("row")
    with counting(spec) as count:
        plan = plan_of(spec, "SELECT city, COUNT(*) FROM people GROUP BY city", nano_rho=10_000)
        exact = count(plan, frame_of(1, 5, seed=1))
        seen = [answering.draw(plan, exact)["rows"] for _ in range(40)]
    assert all([row["city"] for row in rows] == ["Aberdeen", "Bergen", "Cork", None] for rows in seen)
    assert any(row["count"]["value"] < 0 for rows in seen for row in rows)


def test_the_interval_of_a_mean_keeps_its_width_in_a_table_of_a_billion_rows() -> None:
    """Both ends were 400: the width was a difference of numbers that are equal to sixteen digits."""
    low, high = intervals.ratio(400 * 10**9, 10**9, (500, 1))
    width = math.hypot(intervals.reach(500), 400 * intervals.reach(1)) / 10**9
    assert (high - low) / 2 == pytest.approx(width, rel=1e-3)
    assert (high + low) / 2 == pytest.approx(400)
