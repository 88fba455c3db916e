"""Plans of questions: measurements, their sensitivity and their cost, all public before any noise is drawn."""

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

    `centred` is the sum of the places on the grid, each less the middle of the grid: one row moves this sum least.
    A quantile is measured three times: its value (`end` 0), and the ends of its interval below and above it (-1, 1).
    """

    kind: Literal["count", "known", "people", "sum", "centred", "quantile"]
    column: str | None = None
    part: int = 0
    whole: int = 1
    end: Literal[-1, 0, 1] = 0

    @property
    def measures(self) -> str:
        """The measurement in words, for answer, preview and manifest."""
        kind = {-1: "lower end of ", 0: "", 1: "upper end of "}[self.end] + self.kind
        return kind if self.column is None else f"{kind} of {self.column}"


@dataclass(frozen=True)
class Plan:
    """The measurements of a question, their sensitivity, and the cost that each may have: all of it public."""

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
            Where the share is too small to be divided.
        """
        found: list[Measurement] = []
        unlisted = any(asked.domains[name].unknown for name in statement.groups)
        if unlisted:
            found.append(Measurement("count"))  # decides which groups are shown
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
        """Whether the answer has groups that nobody listed beforehand."""
        return any(self.asked.domains[name].unknown for name in self.statement.groups)

    @property
    def groups_of_unit(self) -> int:
        """The largest number of groups of this question in which a protected unit counts."""
        if not self.statement.groups:
            return 1
        if self.unlisted:
            return self.asked.most_groups
        return min(self.asked.most_groups, math.prod(self._sizes()))

    def moves(self, measurement: Measurement) -> int:
        """The largest change of one number of a measurement by one protected unit."""
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
        """The squared L2 sensitivity of the vector of a measurement over all groups."""
        return max(1, self.groups_of_unit * self.moves(measurement) ** 2)

    def scale(self, measurement: Measurement) -> float:
        """The standard deviation of the Gaussian noise, or the scale of the Gumbel noise that chooses a quantile."""
        if measurement.kind == "quantile":
            return mechanisms.noisy_max_scale(self.moves(measurement), self.share // self.groups_of_unit)
        return mechanisms.gaussian_scale(self.squared_sensitivity(measurement), self.share)

    def off(self, measurement: Measurement) -> int:
        """The distance from a quantile to where an end of its interval is sought, in parts of a row; negative below."""
        candidates = domain_of(self.asked, Statistic("quantile", measurement.column)).size + 1
        return measurement.end * intervals.end_of_quantile(candidates, self.scale(measurement))

    @property
    def threshold(self) -> int | None:
        """The noisy count from which on groups that nobody listed are shown; None where all groups were listed."""
        if not self.unlisted:
            return None
        return mechanisms.smallest_threshold(
            self.groups_of_unit, self.asked.most_rows, self.share, self.cost.atto_delta
        )

    def cells(self) -> list[Cell]:
        """All groups of public values, including the missing value, whether anybody is in them or not."""
        domains = [self.asked.domains[name] for name in self.statement.groups]
        return list(itertools.product(*([*range(domain.size), None] for domain in domains)))

    def _sizes(self) -> list[int]:
        return [self.asked.domains[name].size + 1 for name in self.statement.groups]

    def described(self) -> list[dict[str, Any]]:
        """The mechanisms as plain data, for answer, preview and manifest."""
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
    """The measurements that a statistic is computed from; a mean needs two, a quantile three."""
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
