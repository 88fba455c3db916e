"""The allowed values of each parameter of an estimator, and the check of all parameters before any work.

scikit-learn's own constraints (`sklearn.utils._param_validation`) are private, and have none for mappings by column,
which are half of the parameters here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from anon_pipeline.errors import InputError


class Constraint(Protocol):
    """A set of values, and its name in words."""

    def holds(self, value: Any) -> bool:
        """Whether the value may be used."""

    def __str__(self) -> str:
        """What is allowed, to follow the words "must be"."""


@dataclass(frozen=True)
class Whole:
    """A whole number of at least `least` and at most `most`; booleans are none."""

    least: int
    most: int | None = None

    def holds(self, value: Any) -> bool:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
            return False
        return self.least <= int(value) and (self.most is None or int(value) <= self.most)

    def __str__(self) -> str:
        return f"a whole number of at least {self.least}" + ("" if self.most is None else f" and at most {self.most}")


@dataclass(frozen=True)
class Number:
    """A finite number of at least `least`, or above it where that is `excluded`, and below `below`."""

    least: float = 0.0
    below: float = math.inf
    excluded: bool = False

    def holds(self, value: Any) -> bool:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not math.isfinite(value):
            return False
        number = float(value)
        return (self.least < number if self.excluded else self.least <= number) and number < self.below

    def __str__(self) -> str:
        start = f"a finite number {'above' if self.excluded else 'of at least'} {self.least:g}"
        return start if math.isinf(self.below) else f"{start} and below {self.below:g}"


@dataclass(frozen=True)
class OneOf:
    """One of some texts."""

    options: tuple[str, ...]

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.options

    def __str__(self) -> str:
        return " or ".join(self.options)


@dataclass(frozen=True)
class With:
    """An object that has what is asked of it: an instance of a class, or of a protocol that can be checked."""

    kind: type
    words: str

    def holds(self, value: Any) -> bool:
        return isinstance(value, self.kind) and not isinstance(value, type)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Several:
    """Some values that each meet a constraint; one text is no list of texts."""

    each: Constraint
    words: str
    unique: bool = False

    def holds(self, value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
            return False
        if self.unique and len(set(map(str, value))) < len(value):
            return False
        return all(self.each.holds(part) for part in value)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class ByColumn:
    """A mapping from names of columns to values that each meet a constraint."""

    each: Constraint

    def holds(self, value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(name, str) and self.each.holds(part) for name, part in value.items()
        )

    def __str__(self) -> str:
        return f"a mapping from names of columns to {self.each}"


@dataclass(frozen=True)
class Optional:
    """None, or a value that meets a constraint."""

    known: Constraint

    def holds(self, value: Any) -> bool:
        return value is None or self.known.holds(value)

    def __str__(self) -> str:
        return f"{self.known}, or None"


TEXT = With(str, "a text")


def check_parameters(parameters: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Refuse the first parameter that does not meet its constraint.

    Raises
    ------
    InputError
        Naming the parameter and what is allowed, without the value.
    """
    for name, constraint in constraints.items():
        if not constraint.holds(parameters[name]):
            raise InputError(f"{name} must be {constraint}")


def check_columns(parameter: str, named: Iterable[str], columns: Sequence[str], what: str) -> None:
    """Refuse a parameter that names columns which are not among those that it may name.

    Raises
    ------
    InputError
        Naming the parameter and these columns.
    """
    unknown = sorted(set(named) - set(columns))
    if unknown:
        raise InputError(f"{parameter} names {', '.join(unknown)}, no {what}; check the spelling")
