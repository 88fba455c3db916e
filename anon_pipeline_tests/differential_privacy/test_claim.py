"""A tester of the claim itself: on neighbouring tables no event may be more likely than epsilon and delta allow.

It is worth something only as far as it sees mistakes, so each mistake that is easily made is planted and must be seen.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from anon_pipeline.differential_privacy import accounting, mechanisms
from anon_pipeline_tests.differential_privacy.tables import PERSON, counting, plan_of, spec_of
from anon_pipeline_tests.differential_privacy.test_intervals import frame_of

NANO = 500_000_000
FALSE_ALARM = 1e-6
DRAWS = 20_000
Draw = Callable[[], np.ndarray]


def breaks_the_claim(one: np.ndarray, other: np.ndarray, epsilon: float, delta: float) -> bool:
    """Whether P(one in S) > e^epsilon P(other in S) + delta is certain for some S of a few that are fixed beforehand.

    S are half-lines; their ends are taken from the first half of the draws and judged on the second.
    """
    looked, ends = len(one) // 2, []
    for quantile in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98):
        ends.append(float(np.quantile(np.concatenate((one[:looked], other[:looked])), quantile)))
    error = FALSE_ALARM / (8 * len(ends))
    for first, second in ((one[looked:], other[looked:]), (other[looked:], one[looked:])):
        for end in ends:
            for chosen in (np.less_equal, np.greater_equal):
                inside, against = int(chosen(first, end).sum()), int(chosen(second, end).sum())
                low = stats.beta.ppf(error, inside, len(first) - inside + 1) if inside else 0.0
                high = stats.beta.ppf(1 - error, against + 1, len(second) - against) if against < len(second) else 1.0
                if low > np.exp(epsilon) * high + delta:
                    return True
    return False


def gaussian(count: int, rows: int = 1, nano: int = NANO) -> np.ndarray:
    return mechanisms.gaussian_counts(np.full(DRAWS, count), rows * rows, nano)


CLAIMED = accounting.epsilon_of(NANO, 1e-2), 1e-2


@pytest.mark.long
def test_a_count_keeps_its_claim() -> None:
    assert not breaks_the_claim(gaussian(10), gaussian(11), *CLAIMED)


@pytest.mark.long
def test_half_the_scale_is_seen() -> None:
    assert breaks_the_claim(gaussian(10, nano=4 * NANO), gaussian(11, nano=4 * NANO), *CLAIMED)


@pytest.mark.long
def test_a_missing_bound_is_seen() -> None:
    """A person with three rows, counted as if everybody had one."""
    assert breaks_the_claim(gaussian(10), gaussian(13), *CLAIMED)
    assert not breaks_the_claim(gaussian(10, rows=3), gaussian(13, rows=3), *CLAIMED)


def test_a_seed_is_seen() -> None:
    """Noise that can be drawn again is no noise: the same question on two tables differs by exactly one."""

    def seeded(count: int) -> np.ndarray:
        return np.array([count + round(np.random.default_rng(7).normal(0, 2)) for _ in range(2_000)])

    assert breaks_the_claim(seeded(10), seeded(11), *CLAIMED)


def test_a_question_is_never_drawn_twice_alike() -> None:
    vectors = {tuple(mechanisms.gaussian_counts(np.zeros(40, dtype=np.int64), 1, 10_000)) for _ in range(20)}
    assert len(vectors) == 20


def chosen(scores: list[int], sensitivity: int, draws: int = 3_000) -> np.ndarray:
    return np.array([mechanisms.noisy_max(scores, sensitivity, NANO) for _ in range(draws)])


#: The exponential mechanism of rho is of bounded range sqrt(8 rho), which is also its pure epsilon.
PURE = float(np.sqrt(8 * NANO / accounting.NANO)), 0.0


@pytest.mark.long
def test_a_choice_keeps_its_claim() -> None:
    assert not breaks_the_claim(chosen([49, 51], 2), chosen([51, 49], 2), *PURE)


def test_rounded_scores_are_seen() -> None:
    """Rounding to hundreds makes of a move by 2 one by 100; so scores are whole and stay as they are."""

    def rounded(scores: list[int]) -> list[int]:
        return [round(score / 100) * 100 for score in scores]

    assert breaks_the_claim(chosen(rounded([49, 51]), 2, 400), chosen(rounded([51, 49]), 2, 400), *PURE)


@pytest.mark.long
@pytest.mark.parametrize("name", ["count", "sum_weight"])
def test_a_whole_question_keeps_its_claim_for_a_person(name: str) -> None:
    """From the table to the drawn number, with the person who moves it most there or gone."""
    spec = spec_of(PERSON)
    people = frame_of(1, 30, seed=4)
    heavy = people.iloc[:9].assign(patient="heavy", weight="9", age="9")
    with counting(spec) as count:
        plan = plan_of(spec, "SELECT COUNT(*), SUM(weight) FROM people", nano_rho=2 * NANO)
        with_person, without = count(plan, pd.concat([people, heavy])), count(plan, people)
    one = plan.measurements[0 if name == "count" else 1]
    drawn = [
        mechanisms.gaussian_counts(exact.numbers(one, [()]) * DRAWS, plan.squared_sensitivity(one), plan.share)
        for exact in (with_person, without)
    ]
    assert not breaks_the_claim(*drawn, *CLAIMED)
    halved = [
        mechanisms.gaussian_counts(exact.numbers(one, [()]) * DRAWS, plan.squared_sensitivity(one), 4 * plan.share)
        for exact in (with_person, without)
    ]
    assert breaks_the_claim(*halved, *CLAIMED)  # the person does move the number by about its bound
