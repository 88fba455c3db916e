"""The settings of a privacy-utility trade-off: the parameters that are varied, and their values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from anon_pipeline.errors import InputError
from anon_pipeline.spec.parts import Strict
from anon_pipeline.spec.sentences import sentences
from anon_pipeline.spec.written import PlainLoader

#: The path of k in a spec.
K_PATH = "privacy.k_anonymity.k"

#: The paths that a trade-off may vary: the parameters of the grouping. All else, such as the model, is done once.
SWEPT = re.compile(r"privacy\.[^.]+\..+|suppression\.limit|guide\.(spread|orders)|columns\..+\.grid")


class TradeOff(Strict):
    """The settings of a privacy-utility trade-off: every combination of these values, instead of those in the spec."""

    k: tuple[int, ...] = ()
    set_: dict[str, tuple[Any, ...]] = Field(default={}, alias="set")  # by path, as ReleaseSpec.replaced takes it

    @model_validator(mode="after")
    def _varies_something(self) -> TradeOff:
        if not self.k and not self.set_:
            raise ValueError("names nothing to vary; for example {k: [5, 10, 25]}")
        for path, values in self.set_.items():
            if not SWEPT.fullmatch(path):
                raise ValueError(
                    f"{path}: is no path that a trade-off can vary, since the model is trained and people are counted "
                    "once for all settings; those are privacy.<model>.<parameter>, suppression.limit, guide.spread, "
                    "guide.orders and columns.<name>.grid"
                )
            if not values:
                raise ValueError(f"{path}: has no values to vary over")
            if any(map(_holds_keys, values)):
                raise ValueError(f"{path}: has a group of keys as a value; vary each key by a path of its own")
        if self.k and K_PATH in self.set_:
            raise ValueError(f"{K_PATH}: is varied twice; k is the same")
        return self

    @classmethod
    def parse(cls, k: str | None, assignments: Sequence[str]) -> TradeOff:
        """The settings from typed texts: "2,5,10" and "privacy.t_closeness.t=0.2,0.4", with values in YAML.

        Raises
        ------
        InputError
            For a text of another form, or a path that a trade-off cannot vary.
        """
        varied: dict[str, list[Any]] = {}
        for assignment in assignments:
            path, equals, values = assignment.partition("=")
            if not equals or not path.strip():
                raise InputError(f"--set {assignment}: write a path, =, and values, as privacy.t_closeness.t=0.2,0.4")
            if path.strip() in varied:
                raise InputError(f"--set {path.strip()}: stands twice; name all its values once")
            varied[path.strip()] = _values(f"--set {assignment}", values)
        content = {"set": varied} if k is None else {"k": _whole_numbers(k), "set": varied}
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise InputError("; ".join(sentences(error))) from None

    def settings(self) -> list[dict[str, Any]]:
        """The combinations, each a value by path, the last path varying fastest."""
        varied = {**({K_PATH: self.k} if self.k else {}), **self.set_}
        distinct = [dict.fromkeys(map(_hashable, values)) for values in varied.values()]
        return [dict(zip(varied, values, strict=True)) for values in itertools.product(*distinct)]


def _values(given: str, text: str) -> list[Any]:
    """The values of a text such as "0.2,0.4"."""
    try:
        values = yaml.load(f"[{text}]", Loader=PlainLoader)  # noqa: S506 (a SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not values:
        raise InputError(f"{given}: has no values that can be read; write them with commas, as 0.2,0.4")
    return values


def _whole_numbers(text: str) -> list[int]:
    """The values of k of a text such as "2,5,10"."""
    values = _values(f"--k {text}", text)
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"--k {text}: {value} is no whole number; write whole numbers with commas, as 2,5,10")
    return values


def _holds_keys(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list | tuple) and any(map(_holds_keys, value)))


def _hashable(value: Any) -> Any:
    """A hashable form of a value, so that equal ones can be found; lists become tuples."""
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value
