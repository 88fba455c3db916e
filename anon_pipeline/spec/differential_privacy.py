"""Differential privacy in a spec: the protected unit, the budget, and the public domains of columns.

A person who knows the domains without the data writes them, since a range, bins or values that are taken from the data
reveal the people with extreme values. Nothing here reads data.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from anon_pipeline.spec.parts import Strict

#: The ending of the name of published statistics, after the name of their dataset.
STATISTICS = "_statistics"
#: The most steps of a range times rows of a person, so that sums over all people on Earth stay below 2^63.
MOST_STEPS = 2**30
#: A range of more steps than this is counted in at most this many intervals where a synthetic table is made.
MOST_INTERVALS = 32
Why = Annotated[str, Field(min_length=1, max_length=500)]
Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]


class PersonUnit(Strict):
    """Every person is protected with all their rows, of which only a limited number is counted.

    A person counts in at most `groups` groups of a question, and in each with at most `rows` rows.
    """

    person: str = Field(min_length=1)  # the column of the role identifier
    groups: int = Field(ge=1, le=1000)
    rows: int = Field(ge=1, le=1000)


class PublicSize(Strict):
    """A number of rows that is public, and the reason why it is."""

    public: int = Field(ge=1, le=10**12)
    why: Why


class BudgetOfSubject(Strict):
    """The budget of the people of a subject, for all datasets and files about them together.

    Either `epsilon` with `delta`, or `rho`, which `delta` converts to an epsilon. `thresholds` is the part of delta for
    groups that are not listed in the spec; without it there are no such groups.
    """

    subject: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    epsilon: float | None = Field(default=None, gt=0, le=100)
    rho: float | None = Field(default=None, ge=1e-6, le=100)
    delta: float = Field(ge=1e-15, le=1e-3)
    thresholds: float = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _states_one_budget(self) -> BudgetOfSubject:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("states epsilon or rho; write one of them, for example epsilon: 1")
        if self.thresholds >= self.delta:
            raise ValueError(f"thresholds: is a part of delta, and smaller than {self.delta:g}")
        return self


class PublicDomain(Strict):
    """The public domain of a column: its range with a step, the edges of its bins, its values, or nothing.

    - `range: [low, high], step: 1`: numbers, which are clipped to the range and rounded to the step;
    - `bins: [0, 20, 40]`: numbers in intervals from edge to edge, the last edge belonging to the last interval;
      numbers beyond the edges count in the first and the last interval;
    - `values: [f, m]`: texts; any other text counts as missing;
    - `unknown: true`: texts that are not listed, by which a question may group if a threshold allows it.
    """

    range: tuple[Number, Number] | None = None
    step: float | None = Field(default=None, gt=0, le=1e15, allow_inf_nan=False)
    bins: tuple[Number, ...] | None = Field(default=None, min_length=2, max_length=10_001)
    values: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=100_000)
    unknown: Literal[True] | None = None
    why: Why  # how this is known without the data

    @field_validator("values", mode="before")
    @classmethod
    def _read_values(cls, value: object) -> object:
        """Convert values to texts, also those that YAML reads as numbers, dates or truth values."""
        if not isinstance(value, list | tuple):
            return value
        plain = [text_of(item) if isinstance(item, int | float | date) else item for item in value]
        if len({str(text) for text in plain}) < len(plain):
            raise ValueError("a value stands twice; name each once")
        return plain

    @model_validator(mode="after")
    def _is_one_kind(self) -> PublicDomain:
        stated = [name for name in ("range", "bins", "values", "unknown") if getattr(self, name) is not None]
        if len(stated) != 1:
            raise ValueError("states one of range (with step), bins, values and unknown: true")
        if (self.step is None) != (self.range is None):
            raise ValueError("range and step go together, for example {range: [17, 90], step: 1}")
        if self.bins is not None and any(low >= high for low, high in zip(self.bins, self.bins[1:], strict=False)):
            raise ValueError("bins: each edge is larger than the one before")
        if self.range is not None and self.step is not None:
            low, high = self.range
            if low >= high:
                raise ValueError("range: the first number is smaller than the second")
            steps = (exactly(high) - exactly(low)) / exactly(self.step)
            if steps % 1:
                raise ValueError("step: does not divide the range; choose ends that lie whole steps apart")
            if steps >= MOST_STEPS:
                raise ValueError(f"step: is too small for this range; {MOST_STEPS:,} steps are the most")
        return self

    @property
    def numeric(self) -> bool:
        return self.range is not None or self.bins is not None

    @property
    def size(self) -> int:
        """The number of values or bins without the missing one; 0 for unknown values."""
        if self.range is not None and self.step is not None:
            return int((exactly(self.range[1]) - exactly(self.range[0])) / exactly(self.step)) + 1
        return len(self.bins) - 1 if self.bins is not None else len(self.values or ())

    @property
    def places_of_interval(self) -> int:
        """How many neighbouring places of a range a synthetic table counts together; 1 for other domains."""
        wide = self.range is not None and self.size > MOST_INTERVALS
        return -(-self.size // MOST_INTERVALS) if wide else 1

    def number_at(self, place: int) -> float:
        """The number at a place of a range's grid."""
        low, _ = self.range or (0.0, 0.0)
        return float(exactly(low) + place * exactly(self.step or 1.0))


def text_of(value: float | date) -> str:
    """A number, a date or a truth value as the text that the engine makes of it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def exactly(number: float) -> Decimal:
    """The decimal number as a person wrote it: .1 is exactly a tenth."""
    return Decimal(repr(number))


def in_full(number: float) -> str:
    """A number of a spec with all its digits and no exponent."""
    return f"{exactly(number).normalize():f}"


class DifferentialPrivacy(Strict):
    """The section `differential_privacy` of a spec."""

    unit: Literal["row"] | PersonUnit
    size: Literal["noisy"] | PublicSize = "noisy"
    budget: BudgetOfSubject
    domains: dict[str, PublicDomain] = Field(min_length=1)
    queries: str | None = Field(default=None, min_length=1)  # a file of questions, relative to the spec
    schedule: str | None = None  # when they are asked again, as cron, in UTC

    @model_validator(mode="after")
    def _schedules_something(self) -> DifferentialPrivacy:
        if self.schedule is not None and self.queries is None:
            raise ValueError("schedule: asks the questions of a file; name it under queries")
        return self

    @model_validator(mode="after")
    def _adds_up(self) -> DifferentialPrivacy:
        for name, domain in self.domains.items():
            if domain.range is not None and domain.size * self.most_rows > MOST_STEPS:
                raise ValueError(f"domains.{name}.step: is too small for so many rows of a person")
        return self

    @property
    def person(self) -> str | None:
        """The column that identifies people, if the unit is a person."""
        return self.unit.person if isinstance(self.unit, PersonUnit) else None

    @property
    def most_groups(self) -> int:
        """The most groups of one question in which a protected unit counts."""
        return self.unit.groups if isinstance(self.unit, PersonUnit) else 1

    @property
    def most_rows(self) -> int:
        """The most rows of one group with which a protected unit counts."""
        return self.unit.rows if isinstance(self.unit, PersonUnit) else 1

    @property
    def conversion_delta(self) -> float:
        """The part of delta that converts rho to an epsilon; the thresholds use the rest."""
        return float(exactly(self.budget.delta) - exactly(self.budget.thresholds))
