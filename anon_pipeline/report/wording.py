"""The wording of the manifest's names, numbers and times, and access to parts that it may lack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from anon_pipeline.report.charts import count


def part(content: Any, *path: str) -> Mapping[str, Any]:
    """A mapping inside the manifest; empty where it is absent or None."""
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content if isinstance(content, Mapping) else {}


def blurred(measured: Mapping[str, Any]) -> str:
    """What was done to figures of the source, so that a single person seldom shows in them."""
    return "given noise and rounded" if measured.get("noise") else "rounded"


def in_order(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The same mapping, in the order of the spec."""
    return {name: values[name] for name in dict.fromkeys([*names, *values]) if name in values}


def value_text(value: Any) -> str:
    """Any measured value as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, float):
        return count(value)
    if isinstance(value, int):
        return count(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def listed(parts: list[str]) -> str:
    """ "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def words(value: Any) -> str:
    """A text of the manifest; empty where it is absent."""
    return "" if value is None else str(value)


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def plain_name(name: str) -> str:
    """A name such as "k_anonymity" in plain words."""
    written = {"quasi_identifier": "quasi-identifier", "exclude": "excluded", "out_of_fold": "out-of-fold"}
    if name in written:
        return written[name]
    name = name.replace("_", " ")
    for model in (
        "k anonymity",
        "l diversity",
        "t closeness",
        "beta likeness",
        "delta disclosure",
        "delta presence",
        "k map",
    ):
        name = name.replace(model, model.replace(" ", "-"))
    return name.replace("alpha k-anonymity", "(alpha, k)-anonymity")


def times(created: Any) -> tuple[str, str]:
    """The moment and the day of a release."""
    try:
        moment = datetime.fromisoformat(str(created))
    except ValueError:
        return words(created), words(created)
    zone = " UTC" if moment.utcoffset() is not None and not moment.utcoffset() else ""
    return f"{moment:%Y-%m-%d %H:%M}{zone}", f"{moment:%Y-%m-%d}"
