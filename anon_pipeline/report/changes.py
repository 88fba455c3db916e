"""The changes since the former release in words: those that readers ask for first, and all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anon_pipeline.report.charts import percent
from anon_pipeline.report.utility import METRICS
from anon_pipeline.report.wording import plain_name, value_text, words

#: Figures whose changes come first; in other parts (demands, columns, policy) every change comes first.
FIRST = {
    "people": ("released", "without_target", "sampled_out", "suppressed", "waiting"),
    "classes": ("classes", "smallest"),
    "groups": ("groups", "smallest"),
    "information lost": ("in the mean",),
    "utility": ("roc_auc after", "accuracy after", "r2 after"),
    "software": ("anon_pipeline",),
}
ABSENT = "\u2013"


@dataclass(frozen=True)
class ChangeWords:
    """One change: its subject, the value before and the value now."""

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Changes:
    """The former release and the changes since: those that come first, and the rest."""

    previous: str
    first: list[ChangeWords]
    rest: list[ChangeWords]


def in_words(content: Mapping[str, Any]) -> Changes | None:
    """The changes of a release; None for a first release, and for an older one that did not store them."""
    listed = content.get("changes")
    if not content.get("previous") or listed is None:
        return None
    first: list[ChangeWords] = []
    rest: list[ChangeWords] = []
    for change in listed:
        listed_first = FIRST.get(words(change.get("part")))
        (first if listed_first is None or change.get("what") in listed_first else rest).append(_words(change))
    return Changes(words(content.get("previous")), first, rest)


def _words(change: Mapping[str, Any]) -> ChangeWords:
    of, what = words(change.get("part")), words(change.get("what"))
    is_share = of == "information lost" or (of == "utility" and _form(what) == "share")
    name = what if of == "demands" else f"{of}, {plain_name(what)}"
    return ChangeWords(
        name[:1].upper() + name[1:], *(_value(change.get(when), is_share) for when in ("before", "after"))
    )


def _form(what: str) -> str:
    return METRICS.get(what.rpartition(" ")[0], ("", "", "plain"))[2]


def _value(value: Any, is_share: bool) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "; ".join(value) or ABSENT
    return percent(value) if is_share else value_text(value)
