"""How well scores separate members from non-members: TPR at a low FPR, AUC, and an empirical lower bound of epsilon.

The attacks compute the scores; the functions here make figures of them. All figures are rank-based, so any monotone
scale of a score gives the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import FloatArray
from anon_pipeline.attack.rates import Rate, clopper_pearson
from anon_pipeline.errors import InputError

#: Two-sided 95 % quantile of the normal distribution.
Z = 1.959963984540054
#: The false positive rates at which an attack is judged; they are small, since an accusation must rarely be wrong.
JUDGED_AT = (0.01, 0.001)
#: The default delta of the (epsilon, delta) for which a lower bound is stated.
DELTA = 1e-5


@dataclass(frozen=True)
class OperatingPoint:
    """The success of an attack that is wrong about at most so many non-members.

    Attributes
    ----------
    false_positive_rate : the rate allowed among non-members
    allowed : number of non-members that may be called members, floor of rate times non-members
    true_positive_rate : share of the members found, with its 95 % Clopper-Pearson interval
    false_positive_rate_high : upper 95 % Clopper-Pearson limit of the rate at `allowed`
    epsilon : see `epsilon_lower_bound`; None where there is no positive bound
    """

    false_positive_rate: float
    allowed: int
    true_positive_rate: Rate
    false_positive_rate_high: float
    epsilon: float | None


@dataclass(frozen=True)
class Auc:
    """Probability that a random member scores above a random non-member, ties counting half; with a 95 % interval."""

    value: float
    low: float
    high: float


def operating_point(
    members: FloatArray, non_members: FloatArray, rate: float, *, delta: float = DELTA
) -> OperatingPoint | None:
    """The share of members found where at most `rate` of the non-members are called members.

    A person who scores strictly above the (allowed + 1)-th largest score of a non-member is called a member. So ties
    are never broken in the attacker's favour, and no rate between two thresholds is interpolated.

    Parameters
    ----------
    members, non_members : the scores, shapes (m,) and (n,); larger means more like a member

    Returns
    -------
    None where there are fewer than 1 / rate non-members: then none of them may be called a member, and the rate cannot
    be distinguished from a smaller one.
    """
    if len(non_members) * rate < 1 - 1e-9 or len(members) == 0:
        return None
    allowed = math.floor(len(non_members) * rate + 1e-9)
    threshold = np.sort(non_members)[len(non_members) - 1 - allowed]
    members_found = int((members > threshold).sum())
    # The threshold is an order statistic of the non-members, so the rate beyond it is distributed as
    # Beta(allowed + 1, n - allowed), or is smaller if there are ties. This limit is the exact quantile of that
    # distribution.
    most = clopper_pearson(allowed, len(non_members)).high
    epsilon = epsilon_lower_bound(members_found, len(members), allowed, len(non_members), delta=delta)
    return OperatingPoint(rate, allowed, clopper_pearson(members_found, len(members)), most, epsilon)


def epsilon_lower_bound(
    detected: int, members: int, allowed: int, non_members: int, *, delta: float = DELTA, judged: int = len(JUDGED_AT)
) -> float | None:
    """ln((TPR_low - delta) / FPR_high) where positive: an empirical lower bound of epsilon, which guarantees nothing.

    A mechanism that is (epsilon, delta)-differentially private keeps TPR <= exp(epsilon) FPR + delta for every attack
    (Kairouz, Oh, Viswanath, ICML 2015; as an audit: Jagielski, Ullman, Oprea, NeurIPS 2020). With 95 % confidence no
    smaller epsilon is possible. The two limits and the `judged` operating points, of which the best is reported, share
    the confidence (Bonferroni). The people asked about in a training are treated as independent.
    """
    confidence = 1 - 0.05 / judged
    least = clopper_pearson(detected, members, confidence).low
    most = clopper_pearson(allowed, non_members, confidence).high
    if least - delta <= most:
        return None
    return math.log((least - delta) / most)


def auc(members: FloatArray, non_members: FloatArray) -> Auc:
    """The area under the ROC curve with the interval of DeLong, DeLong and Clarke-Pearson (Biometrics 1988).

    That interval is empty where every member scores above every non-member (or below). Then an exact interval is taken:
    the attack has won all (or none) of min(m, n) disjoint, independent pairs.
    """
    of_members, of_non_members = _placements(members, non_members)
    value = float(of_members.mean())
    if value in (0.0, 1.0):
        pairs = min(len(members), len(non_members))
        exact = clopper_pearson(round(value * pairs), pairs)
        return Auc(value, exact.low, exact.high)
    half = Z * _standard_error(of_members, of_non_members)
    return Auc(value, max(value - half, 0.0), min(value + half, 1.0))


def auc_difference(
    first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray]
) -> tuple[float, float, float]:
    """AUC of the first scores less that of the second, with its 95 % interval: (difference, low, high).

    Each is (members, non_members), of the same people in the same order. So the two AUCs vary together, and their
    difference is known more exactly than each of them (DeLong et al. 1988).

    Raises
    ------
    InputError
        If the two have not scored the same number of people.
    """
    if len(first[0]) != len(second[0]) or len(first[1]) != len(second[1]):
        raise InputError("two attacks can be compared only where both have scored the same people")
    (a, b), (c, d) = _placements(*first), _placements(*second)
    value = float(a.mean() - c.mean())
    half = Z * _standard_error(a - c, b - d)
    return value, max(value - half, -1.0), min(value + half, 1.0)


def check_scores(scores: FloatArray, member: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """The scores of members and of non-members, in their order.

    Raises
    ------
    InputError
        If either group is empty, the lengths differ or a score is not a number.
    """
    if scores.ndim != 1 or scores.shape != member.shape:
        raise InputError("there must be one score for each person")
    if np.isnan(scores).any():
        raise InputError("some scores are not numbers; the model must answer every person with a number")
    if member.all() or not member.any():
        raise InputError("there must be members and non-members to tell apart")
    return scores[member], scores[~member]


def best_epsilon(points: Sequence[OperatingPoint | None]) -> float | None:
    """The largest epsilon among operating points that were judged together."""
    return max((point.epsilon for point in points if point is not None and point.epsilon is not None), default=None)


def _placements(members: FloatArray, non_members: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each member the share of non-members below, ties half; for each non-member the share of members above."""
    if len(members) == 0 or len(non_members) == 0:
        raise InputError("there must be members and non-members to tell apart")
    return _below(members, non_members), 1 - _below(non_members, members)


def _below(scores: FloatArray, others: FloatArray) -> FloatArray:
    """Share of `others` below each score, ties counting half, shape of `scores`."""
    ranked = np.sort(others)
    left, right = np.searchsorted(ranked, scores, "left"), np.searchsorted(ranked, scores, "right")
    share: FloatArray = (left + right) / (2 * len(others))
    return share


def _standard_error(of_members: FloatArray, of_non_members: FloatArray) -> float:
    """The standard error of the mean placement, where both groups are samples."""
    return math.sqrt(
        sum(float(scores.var(ddof=1)) / len(scores) for scores in (of_members, of_non_members) if len(scores) > 1)
    )
