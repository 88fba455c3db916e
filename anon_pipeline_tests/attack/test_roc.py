"""Known answers of the figures that membership attacks are judged by."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anon_pipeline.arrays import FloatArray
from anon_pipeline.attack import roc
from anon_pipeline.attack.rates import clopper_pearson
from anon_pipeline.errors import InputError


def scores(*values: float) -> FloatArray:
    return np.array(values, dtype=np.float64)


def test_the_share_found_is_counted_above_the_allowed_non_members() -> None:
    non_members = np.arange(200.0)  # 2 of 200 may be called members: the threshold is the third largest, 197
    point = roc.operating_point(scores(197, 197.5, 198, 300), non_members, 0.01)
    assert point is not None
    assert point.allowed == 2
    assert point.true_positive_rate == clopper_pearson(3, 4)
    assert point.false_positive_rate_high == clopper_pearson(2, 200).high


def test_ties_are_never_broken_in_the_attackers_favour() -> None:
    non_members = np.concatenate([np.zeros(190), np.ones(10)])  # 10 tie where 2 are allowed
    point = roc.operating_point(np.ones(50), non_members, 0.01)
    assert point is not None
    assert point.true_positive_rate.rate == 0
    above = roc.operating_point(np.full(50, 1.5), non_members, 0.01)
    assert above is not None
    assert above.true_positive_rate.rate == 1


def test_infinite_scores_are_scores() -> None:
    point = roc.operating_point(scores(math.inf, 0), np.append(np.full(99, -math.inf), 1), 0.01)
    assert point is not None
    assert point.true_positive_rate.rate == 1  # one false accusation is allowed, and the threshold is the next score


@pytest.mark.parametrize(
    ("non_members", "rate", "judged"), [(999, 0.001, False), (1000, 0.001, True), (99, 0.01, False), (100, 0.01, True)]
)
def test_a_rate_below_one_person_is_not_judged(non_members: int, rate: float, judged: bool) -> None:
    point = roc.operating_point(np.ones(10), np.zeros(non_members), rate)
    assert (point is not None) == judged
    if point is not None:
        assert point.allowed == 1


def test_epsilon_is_the_logarithm_of_the_two_limits() -> None:
    delta = 0.01
    least, most = clopper_pearson(90, 100, 0.95).low, clopper_pearson(1, 100, 0.95).high
    assert roc.epsilon_lower_bound(90, 100, 1, 100, delta=delta, judged=1) == pytest.approx(
        math.log((least - delta) / most)
    )


def test_epsilon_shares_its_confidence_among_the_points_judged() -> None:
    one, two = (roc.epsilon_lower_bound(90, 100, 1, 100, judged=judged) for judged in (1, 2))
    assert one is not None and two is not None
    least, most = clopper_pearson(90, 100, 0.975).low, clopper_pearson(1, 100, 0.975).high
    assert two == pytest.approx(math.log((least - roc.DELTA) / most))
    assert two < one


def test_no_epsilon_where_nothing_is_witnessed() -> None:
    assert roc.epsilon_lower_bound(1, 100, 1, 100) is None
    assert roc.epsilon_lower_bound(0, 100, 1, 100) is None
    assert roc.epsilon_lower_bound(90, 100, 1, 100, delta=0.9) is None


def test_epsilon_counts_the_allowed_people_even_where_ties_leave_fewer() -> None:
    # The threshold may tie with many: then fewer non-members are above it, but which it is was chosen for `allowed`.
    non_members = np.concatenate([np.zeros(500), np.ones(500)])
    point = roc.operating_point(np.full(1000, 2.0), non_members, 0.01)
    assert point is not None and point.epsilon is not None
    assert point.epsilon == roc.epsilon_lower_bound(1000, 1000, 10, 1000)


def test_auc_counts_ties_half() -> None:
    assert roc.auc(scores(1, 2, 2), scores(0, 2)).value == pytest.approx((1 + 0 + 1 + 0.5 + 1 + 0.5) / 6)
    assert roc.auc(np.ones(10), np.ones(7)) == roc.Auc(0.5, 0.5, 0.5)


def test_auc_has_delongs_interval() -> None:
    members, non_members = scores(0.9, 0.8, 0.4, 0.7), scores(0.1, 0.5, 0.6)
    # By hand: the four members are above 3, 3, 1, 3 of the 3 others; these have 4, 3, 3 of the 4 members above.
    above, below = np.array([1, 1, 1 / 3, 1]), np.array([1, 3 / 4, 3 / 4])
    error = math.sqrt(above.var(ddof=1) / 4 + below.var(ddof=1) / 3)
    found = roc.auc(members, non_members)
    assert found.value == pytest.approx(10 / 12)
    assert found.low == pytest.approx(10 / 12 - 1.96 * error, abs=1e-4)
    assert found.high == 1


def test_a_perfect_auc_is_not_certain() -> None:
    found = roc.auc(np.ones(20), np.zeros(10))
    assert (found.value, found.high) == (1, 1)
    assert found.low == clopper_pearson(10, 10).low < 1
    assert roc.auc(np.zeros(20), np.ones(10)).high == clopper_pearson(0, 10).high


def test_auc_intervals_hold_their_promise() -> None:
    random = np.random.default_rng(1)
    truth = 0.5 * (1 + math.erf(0.5))  # two normal distributions a standard deviation apart: Phi(1 / sqrt(2))
    held = 0
    for _ in range(400):
        found = roc.auc(random.normal(1, 1, 80), random.normal(0, 1, 120))
        held += found.low <= truth <= found.high
    assert 0.91 <= held / 400 <= 0.985


def test_a_difference_of_paired_aucs_is_narrower_than_either() -> None:
    random = np.random.default_rng(2)
    members, non_members = random.normal(1, 1, 200), random.normal(0, 1, 200)
    worse = (members + random.normal(0, 0.3, 200), non_members + random.normal(0, 0.3, 200))
    change, low, high = roc.auc_difference((members, non_members), worse)
    single = roc.auc(members, non_members)
    assert change == pytest.approx(single.value - roc.auc(*worse).value)
    assert high - low < 0.7 * (single.high - single.low)
    assert roc.auc_difference(worse, worse) == (0, 0, 0)


def test_differences_hold_their_promise() -> None:
    random = np.random.default_rng(3)
    held = 0
    for _ in range(300):
        common = random.normal(0, 1, 100), random.normal(0, 1, 100)
        first, second = (tuple(one + random.normal(0, 1, 100) for one in common) for _ in range(2))
        _, low, high = roc.auc_difference(first, second)  # type: ignore[arg-type]
        held += low <= 0 <= high
    assert 0.91 <= held / 300 <= 0.99


@pytest.mark.parametrize(("members", "others"), [(4, 3), (3, 4)])
def test_scores_of_other_people_are_not_compared(members: int, others: int) -> None:
    with pytest.raises(InputError, match="same people"):
        roc.auc_difference((np.ones(3), np.ones(3)), (np.ones(members), np.ones(others)))
    assert roc.auc_difference(*[(np.ones(members), np.ones(others))] * 2)[0] == 0


@pytest.mark.parametrize(("members", "others"), [(0, 3), (3, 0)])
def test_no_auc_without_both_members_and_others(members: int, others: int) -> None:
    with pytest.raises(InputError, match="members and non-members"):
        roc.auc(np.ones(members), np.ones(others))


@pytest.mark.parametrize(
    ("values", "member", "message"),
    [
        ([1.0, 2.0], [True, True], "members and non-members"),
        ([1.0, 2.0], [False, False], "members and non-members"),
        ([1.0, math.nan], [True, False], "not numbers"),
        ([1.0], [True, False], "one score for each"),
    ],
)
def test_scores_that_cannot_be_judged(values: list[float], member: list[bool], message: str) -> None:
    with pytest.raises(InputError, match=message):
        roc.check_scores(np.array(values), np.array(member))


@pytest.mark.long
def test_scores_that_know_nothing_witness_nothing() -> None:
    random = np.random.default_rng(4)
    clean = witnessed = 0
    for _ in range(300):
        members, non_members = random.normal(size=1000), random.normal(size=1000)
        found = roc.auc(members, non_members)
        clean += found.low <= 0.5 <= found.high
        points = [roc.operating_point(members, non_members, rate) for rate in roc.JUDGED_AT]
        witnessed += roc.best_epsilon(points) is not None
    assert clean >= 0.92 * 300
    assert witnessed <= 0.03 * 300


def test_of_no_members_nothing_is_found_and_of_a_single_one_all_or_nothing() -> None:
    non_members = np.arange(100.0)
    assert roc.operating_point(scores(), non_members, 0.01) is None
    for score, found in ((99.0, 1), (98.0, 0)):  # one may be accused falsely, and the threshold is the next score
        point = roc.operating_point(scores(score), non_members, 0.01)
        assert point is not None and point.true_positive_rate == clopper_pearson(found, 1)


def test_a_bound_of_zero_is_no_bound() -> None:
    least, most = clopper_pearson(60, 100, 0.95).low, clopper_pearson(30, 100, 0.95).high
    delta = least - most
    assert least - delta == most
    assert roc.epsilon_lower_bound(60, 100, 30, 100, delta=delta, judged=1) is None


def test_the_largest_epsilon_is_the_best() -> None:
    few, many = (roc.operating_point(np.full(m, 2.0), np.zeros(1000), 0.01) for m in (100, 1000))
    none = roc.operating_point(np.zeros(100), np.zeros(1000), 0.01)
    assert few is not None and many is not None and none is not None and none.epsilon is None
    assert few.epsilon is not None and many.epsilon is not None and few.epsilon < many.epsilon
    assert roc.best_epsilon([few, None, many, none]) == roc.best_epsilon([many, few]) == many.epsilon
    assert roc.best_epsilon([None, none]) is None


def test_a_single_person_on_one_side_has_no_spread() -> None:
    found = roc.auc(scores(1), scores(0, 2))
    assert (found.value, found.low, found.high) == (0.5, 0, 1)
    many = roc.auc(scores(50), np.arange(100.0))
    error = math.sqrt(((np.arange(100) < 50) + 0.5 * (np.arange(100) == 50)).var(ddof=1) / 100)
    assert (many.value, many.low) == (0.505, pytest.approx(0.505 - roc.Z * error))
    pair = roc.auc(scores(50, 40), np.arange(100.0))
    of_others = (np.arange(100) < 50) / 2 + (np.arange(100) < 40) / 2
    of_others[[40, 50]] += 0.25
    error = math.sqrt(0.1**2 / 2 / 2 + of_others.var(ddof=1) / 100)
    assert (pair.value, pair.high) == (0.455, pytest.approx(0.455 + roc.Z * error))


def test_scores_in_a_table_cannot_be_judged() -> None:
    with pytest.raises(InputError, match="one score for each"):
        roc.check_scores(np.zeros((2, 2)), np.array([[True, False], [False, True]]))
    inside, outside = roc.check_scores(scores(3, 1, 2), np.array([True, False, True]))
    assert (inside.tolist(), outside.tolist()) == ([3, 2], [1])
