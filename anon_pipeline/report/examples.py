"""A few published classes as examples, in a table with one class per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anon_pipeline.report.charts import count
from anon_pipeline.report.wording import part, words

MISSING = "missing"


@dataclass(frozen=True)
class Examples:
    """The number of people in each class, and its values by column; sensitive columns have counts of values."""

    people: list[str]
    recoded: list[tuple[str, list[str]]]
    kept: list[tuple[str, list[str]]]


def in_words(content: Mapping[str, Any]) -> Examples | None:
    """The examples in the manifest; None if it has none."""
    classes = [shown_class for shown_class in content.get("examples") or [] if part(shown_class, "recoded")]
    if not classes:
        return None
    return Examples(
        [count(shown_class.get("people")) for shown_class in classes],
        [
            (name, [_text(shown_class["recoded"].get(name)) for shown_class in classes])
            for name in classes[0]["recoded"]
        ],
        [
            (name, [_counted(part(shown_class, "kept", name)) for shown_class in classes])
            for name in part(classes[0], "kept")
        ],
    )


def _counted(of_class: Mapping[str, Any]) -> str:
    """ "<=50K: 9; >50K: 1"."""
    texts = [f"{_text(value)}: {count(number)}" for value, number in of_class.get("values") or []]
    others = of_class.get("others") or 0
    return "; ".join([*texts, *([f"{count(others)} other value{'s' * (others > 1)}"] if others else [])])


def _text(value: Any) -> str:
    return MISSING if value is None else words(value)
