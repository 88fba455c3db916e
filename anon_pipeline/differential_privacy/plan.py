"""What a question measures, how far one person moves it, and what that costs: all that is public before any noise."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from anon_pipeline.differential_privacy import intervals, mechanisms
from anon_pipeline.differential_privacy.accounting import ATTO, NANO, Cost, split
from anon_pipeline.differential_privacy.statement import Statement, Statistic, domain_of
from anon_pipeline.errors import InputError
from anon_pipeline.spec import DifferentialPrivacy, PublicDomain, exactly

Cell = tuple[int | str | None, ...]


@dataclass(frozen=True)
class Measurement:
    """One vector of noisy numbers, a number per group.

    `centred` is the sum of places on the grid less that of its middle, which moves least with one row. A quantile is
    measured three times: its value (`end` 0), and below and above it (-1, 1) the ends of an interval.
    """

    kind: Literal["count", "known", "people", "sum", "centred", "quantile"]
    column: str | None = None
    part: int = 0
    whole: int = 1
    end: Literal[-1, 0, 1] = 0

    @property
    def measures(self) -> str:
        """In words, for answer, preview and manifest."""
        kind = {-1: "lower end of ", 0: "", 1: "upper end of "}[self.end] + self.kind
        return kind if self.column is None else f"{kind} of {self.column}"


@dataclass(frozen=True)
class Plan:
    """What a question measures, how sensitive that is, and what each measurement may cost: all of it public."""

    statement: Statement
    asked: DifferentialPrivacy
    cost: Cost
    measurements: tuple[Measurement, ...]

    @classmethod
    def of(cls, statement: Statement, asked: DifferentialPrivacy, nano_rho: int, atto_delta: int) -> Plan:
        """
        Raises
        ------
        InputError
            Where so small a share cannot be divided.
        """
        found: list[Measurement] = []
        unlisted = any(asked.domains[name].unknown for name in statement.groups)
        if unlisted:
            found.append(Measurement("count"))  # tells which groups are shown
        for statistic in statement.statistics:
            found += measured(statistic)
        plan = cls(statement, asked, Cost(nano_rho, atto_delta if unlisted else 0), tuple(dict.fromkeys(found)))
        if plan.share < plan.groups_of_unit:
            raise InputError("query: the share of the budget is too small for so many figures; spend more")
        return plan

    @property
    def share(self) -> int:
        """Billionths of rho for each measurement."""
        return split(self.cost.nano_rho, len(self.measurements))[0]

    @property
    def unlisted(self) -> bool:
        """Whether groups are shown that nobody listed."""
        return any(self.asked.domains[name].unknown for name in self.statement.groups)

    @property
    def groups_of_unit(self) -> int:
        """In how many groups of this question a protected unit counts at most."""
        if not self.statement.groups:
            return 1
        if self.unlisted:
            return self.asked.most_groups
        return min(self.asked.most_groups, math.prod(self._sizes()))

    def moves(self, measurement: Measurement) -> int:
        """How far one protected unit moves one number of a measurement at most."""
        rows = self.asked.most_rows
        if measurement.kind == "people":
            return 1
        if measurement.kind in ("count", "known"):
            return rows
        domain = domain_of(self.asked, Statistic("sum", measurement.column))
        if measurement.kind == "sum":
            _, low, step = grid(domain)
            return rows * max(abs(low), abs(low + step * (domain.size - 1)))
        if measurement.kind == "centred":
            middle = (domain.size - 1) // 2
            return rows * max(middle, domain.size - 1 - middle)
        return rows * max(measurement.part, measurement.whole - measurement.part)

    def squared_sensitivity(self, measurement: Measurement) -> int:
        """Of the vector of a measurement over all groups, in L2."""
        return max(1, self.groups_of_unit * self.moves(measurement) ** 2)

    def scale(self, measurement: Measurement) -> float:
        """Of the noise: the deviation of Gaussian noise, or the scale of the Gumbel noise that chooses a quantile."""
        if measurement.kind == "quantile":
            return mechanisms.noisy_max_scale(self.moves(measurement), self.share // self.groups_of_unit)
        return mechanisms.gaussian_scale(self.squared_sensitivity(measurement), self.share)

    def off(self, measurement: Measurement) -> int:
        """How far from a quantile an end of its interval is sought, in parts of a row, below 0 for the lower end."""
        candidates = domain_of(self.asked, Statistic("quantile", measurement.column)).size + 1
        return measurement.end * intervals.end_of_quantile(candidates, self.scale(measurement))

    @property
    def threshold(self) -> int | None:
        """Groups that nobody listed are shown from this noisy count on."""
        if not self.unlisted:
            return None
        return mechanisms.smallest_threshold(
            self.groups_of_unit, self.asked.most_rows, self.share, self.cost.atto_delta
        )

    def cells(self) -> list[Cell]:
        """All groups of public values, a missing one among them, whether anybody is in them or not."""
        domains = [self.asked.domains[name] for name in self.statement.groups]
        return list(itertools.product(*([*range(domain.size), None] for domain in domains)))

    def _sizes(self) -> list[int]:
        return [self.asked.domains[name].size + 1 for name in self.statement.groups]

    def described(self) -> list[dict[str, Any]]:
        """The mechanisms, for answer, preview and manifest."""
        return [
            {
                "measures": measurement.measures,
                "mechanism": self._mechanism(measurement),
                "scale": self.scale(measurement),
                "rho": self.share / NANO,
                **(
                    {"threshold": self.threshold, "delta": self.cost.atto_delta / ATTO}
                    if self._thresholded(measurement)
                    else {}
                ),
            }
            for measurement in self.measurements
        ]

    def _thresholded(self, measurement: Measurement) -> bool:
        return self.unlisted and measurement.kind == "count"

    def _mechanism(self, measurement: Measurement) -> str:
        if measurement.kind == "quantile":
            return "exponential mechanism (Gumbel)"
        return "discrete Gaussian with threshold" if self._thresholded(measurement) else "discrete Gaussian"


def measured(statistic: Statistic) -> list[Measurement]:
    """The measurements that a statistic is made of; a mean is two, a quantile three."""
    if statistic.kind == "mean":
        return [Measurement("centred", statistic.column), Measurement("known", statistic.column)]
    value = Measurement(statistic.kind, statistic.column, statistic.part, statistic.whole)
    return [value, replace(value, end=-1), replace(value, end=1)] if statistic.kind == "quantile" else [value]


def grid(domain: PublicDomain) -> tuple[Fraction, int, int]:
    """A unit in which the lowest number and the step of a range are whole, and these two numbers in it."""
    low, step = Fraction(exactly((domain.range or (0.0, 0.0))[0])), Fraction(exactly(domain.step or 1.0))
    unit = Fraction(math.gcd(low.numerator * step.denominator, step.numerator * low.denominator), 1)
    unit /= low.denominator * step.denominator
    return unit, int(low / unit), int(step / unit)
