"""Singling out: conditions, built from the release alone, that exactly one person of the original table meets.

After A. Cohen and K. Nissim (Towards formalizing the GDPR's notion of singling out, PNAS 117, 2020). A condition that a
person meets with probability w singles out someone among n people by luck with probability n w (1 - w)^(n - 1), which
is at most about 37 %. So success counts only beyond that luck, which is measured on control people.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.attack.rates import Finding, Known, Rate, Rates, clopper_pearson, finding, known, measured, quantiles
from anon_pipeline.attack.released import combined
from anon_pipeline.attack.targets import Attacked, People

#: Most conditions of each kind that are tried.
CONDITIONS = 400

#: Numbers of control people who meet a condition are counted separately up to this number.
MOST_MET = 6

#: The size of the grid of expected numbers of people who meet a condition, of which the luck is a mixture.
GRID = 80


@dataclass(frozen=True, eq=False)
class Condition:
    """A conjunction: for each column the codes that meet it, as a mask over the column's codes.

    `columns` counts quasi-identifiers first, then the kept columns.
    """

    columns: tuple[int, ...]
    masks: tuple[npt.NDArray[np.bool_], ...]

    def weight(self, shares: list[FloatArray]) -> float:
        """The probability that a person meets it, if the columns were independent."""
        return math.prod(
            float(shares[column][mask].sum()) for column, mask in zip(self.columns, self.masks, strict=True)
        )


def singling_out(attacked: Attacked) -> list[Finding]:
    """A finding for conditions on a single column, and a finding for conjunctions of a group's box and kept values."""
    names = [domain.name for domain in (*attacked.release.domains, *attacked.kept)]
    singles = univariate(attacked)
    of_column = Counter(names[condition.columns[0]] for condition in singles)
    return [
        _finding(attacked, "singling out, one column", singles, of_column),
        _finding(attacked, "singling out, all columns", multivariate(attacked), alone_by_column(attacked)),
    ]


def alone_by_column(attacked: Attacked) -> dict[str, float]:
    """The share of records that a kept column isolates, among those that are alone with their group and kept values.

    By the name of the column: the column with the largest share should be made coarser.
    """

    def alone(*columns: IntArray) -> npt.NDArray[np.bool_]:
        key, _ = combined([attacked.release.group, *columns])
        return np.asarray(np.bincount(key)[key] == 1)

    by_all = alone(*attacked.kept_codes.T)
    return {
        domain.name: int((alone(codes) & by_all).sum()) / max(int(by_all.sum()), 1)
        for domain, codes in zip(attacked.kept, attacked.kept_codes.T, strict=True)
    }


def univariate(attacked: Attacked) -> list[Condition]:
    """Conditions on a single column: a value that stands once in the release, or lies beyond all others."""
    release = attacked.release
    conditions = []
    for column, boxes in enumerate(release.boxes):
        points = boxes.points()
        if points is not None:
            conditions += _on_column(
                column, points[release.box[release.group, column]], len(boxes.domain), boxes.domain.ordered
            )
    for place, domain in enumerate(attacked.kept):
        column = len(release.boxes) + place
        conditions += _on_column(column, attacked.kept_codes[:, place], len(domain), domain.ordered)
    generator = np.random.default_rng([attacked.seed, 5])
    chosen = np.sort(generator.permutation(len(conditions))[:CONDITIONS])
    return [conditions[place] for place in chosen]


def _on_column(column: int, codes: IntArray, number: int, ordered: bool) -> list[Condition]:
    count = np.bincount(codes[codes >= 0], minlength=number)
    masks = [np.arange(number) == code for code in np.flatnonzero(count[1:] == 1) + 1]
    present = np.flatnonzero(count[1:]) + 1
    if ordered and len(present):
        masks += [np.arange(number) >= present[-1]] if count[present[-1]] == 1 else []
        masks += [(np.arange(number) <= present[0]) & (np.arange(number) > 0)] if count[present[0]] == 1 else []
    return [Condition((column,), (mask,)) for mask in masks]


def multivariate(attacked: Attacked) -> list[Condition]:
    """Conditions from records that are alone with their group and kept values: that box and those values."""
    release = attacked.release
    key, first = combined([release.group, *attacked.kept_codes.T])
    alone = first[np.bincount(key) == 1]
    generator = np.random.default_rng([attacked.seed, 6])
    chosen = alone[np.sort(generator.permutation(len(alone))[:CONDITIONS])]
    quasi = len(release.boxes)
    fits = [
        boxes.fits(np.arange(len(boxes.domain)))[:, release.box[release.group[chosen], column]] if len(chosen) else None
        for column, boxes in enumerate(release.boxes)
    ]
    conditions = []
    for place, row in enumerate(chosen):
        of_kept = [
            np.arange(len(domain)) == code for domain, code in zip(attacked.kept, attacked.kept_codes[row], strict=True)
        ]
        masks = (*of_kept, *(mask[:, place] for mask in fits if mask is not None))
        columns = (*range(quasi, quasi + len(of_kept)), *range(quasi))
        conditions.append(Condition(columns, masks))
    return conditions


def matches(conditions: list[Condition], people: People) -> IntArray:
    """How many people meet each condition, shape (len(conditions),)."""
    codes = [*np.asfortranarray(people.codes).T, *np.asfortranarray(people.kept).T]
    people_matched = []
    for condition in conditions:
        among = np.flatnonzero(condition.masks[0][codes[condition.columns[0]]])
        for column, mask in zip(condition.columns[1:], condition.masks[1:], strict=True):
            among = among[mask[codes[column][among]]]
        people_matched.append(len(among))
    return np.array(people_matched, dtype=np.int64)


def by_luck(counts: IntArray, control: int, people: int) -> Rate:
    """How often such conditions single out one of `people` by luck, estimated from fewer control people.

    `counts` is how many control people meet each condition. If a person meets a condition with probability w, the
    number of control people who meet it is Poisson distributed with mean w * control, and the condition singles out one
    of `people` with probability w * people * exp(-w * people). How w varies among conditions is unknown. The interval
    spans all distributions of w that fit the shares of conditions that none, one, two, ... control people meet, within
    the sampling errors of these shares; its ends are solved as linear programs. The estimate takes w to be gamma
    distributed, with the mean and variance that fit.
    """
    if not len(counts):
        return known(0.0)
    scale, bins = control / people, MOST_MET + 2
    met = np.bincount(np.minimum(counts, bins - 1), minlength=bins)
    # Means among all people, from far below one to more than any condition of the last bin could have.
    means = np.r_[0.0, 1.0, np.geomspace(1e-3, max(50.0, 4 * bins / scale), GRID)]  # 1 is luckiest
    likely = stats.poisson.pmf(np.arange(bins - 1)[:, None], means * scale)
    likely = np.vstack([likely, 1 - likely.sum(axis=0)])
    shares = [clopper_pearson(int(count), len(counts), 1 - 0.05 / bins) for count in met]
    limits = np.r_[[share.high for share in shares], [-share.low for share in shares]]
    one_person = means * np.exp(-means)
    ends = []
    for sign in (1, -1):
        solved = optimize.linprog(
            sign * one_person, np.vstack([likely, -likely]), limits, np.ones((1, len(means))), [1.0], method="highs"
        )
        # Counts that no mixture of Poisson distributions explains leave everything possible.
        ends.append(float(sign * solved.fun) if solved.success else (0.0 if sign == 1 else math.exp(-1)))
    low, high = max(round(ends[0], 9), 0.0), min(round(ends[1], 9), 1.0)
    rate = min(max(_gamma_estimate(counts[counts <= MOST_MET], len(counts), scale), low), high)
    return Rate(rate * len(counts), len(counts), rate, low, high)


def _gamma_estimate(people_matched: IntArray, conditions: int, scale: float) -> float:
    """P(exactly one person) where w is gamma distributed; conditions that too many people meet count as 0."""
    if not people_matched.any():
        return 0.0
    mean, excess = (
        float(people_matched.mean()) / scale,
        (float(people_matched.var()) - float(people_matched.mean())) / scale**2,
    )
    if excess <= 0:
        single = mean * math.exp(-mean)
    else:
        shape = mean**2 / excess
        single = mean * math.exp(-(shape + 1) * math.log1p(mean / shape))
    return single * len(people_matched) / conditions


def _finding(attacked: Attacked, name: str, conditions: list[Condition], by_column: Mapping[str, float]) -> Finding:
    """`by_column` has the number of conditions, or the share of records, that each column makes possible."""
    members, control = attacked.members, attacked.control
    people_matched = matches(conditions, members)
    shares = [domain.shares for domain in (*attacked.release.domains, *attacked.kept)]
    weights = np.array([condition.weight(shares) for condition in conditions])
    blind = len(members) * weights * (1 - weights) ** (len(members) - 1)
    of_control = None
    if control is not None:
        if len(control) >= len(members):
            of_control = measured(matches(conditions, control.first(len(members))) == 1)
        else:
            of_control = by_luck(matches(conditions, control), len(control), len(members))
    knowledge = attacked.knowledge
    return finding(
        name,
        "singling_out",
        Known((*knowledge.quasi_identifiers, *(domain.name for domain in attacked.kept))),
        "states a condition that exactly one person of the original meets",
        Rates(
            measured(people_matched == 1),
            of_control,
            known(float(blind.mean()) if len(blind) else 0.0, len(blind)),
            others="as many people not in it",
        ),
        {
            "conditions": len(conditions),
            "people_meeting_one": quantiles(people_matched),
            "nobody_meets": int((people_matched == 0).sum()),
            "by_column": dict(by_column),
        },
    )
