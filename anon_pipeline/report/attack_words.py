"""The words for attacks that the pictures and the text of a report share: groups, names, outcomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from anon_pipeline.attack.rates import LEAK, NO_CONTROL, NO_LEAK, NOTHING, TOO_WEAK
from anon_pipeline.report.charts import NOT_MEASURED, known, percent

#: The heading of each criterion, and the question that its attacks answer.
GROUPS = {
    "linkability": ("Linked", "Is the record of a known person found?"),
    "singling_out": ("Singled out", "Can a condition be stated that exactly one person of the original meets?"),
    "inference": ("Inferred", "Is something learned of a person, whichever record is theirs?"),
    "membership": ("Recognised as member", "Is it found out who is in the release at all?"),
}


MODELS = ("Models", "Does a model give away who it was trained on, or what is true of them?")


REPLAYED = ("Grouped again", "Does the grouping itself tell who made it so, to somebody who runs it again?")


PAIRS = "Models: pairs of a member and another told apart"


#: The outcome of an attack by its verdict, if there is no leak to state.
OUTCOMES = {
    LEAK: "leak",
    NO_LEAK: "no leak found",
    TOO_WEAK: "too weak to tell",
    NO_CONTROL: "no control group",
    NOTHING: "nothing to attack",
}


#: The same in a tally: for one attack, for several.
TALLIED = {
    LEAK: ("found a leak", "found a leak"),
    NO_LEAK: ("found none", "found none"),
    TOO_WEAK: ("was too weak to tell", "were too weak to tell"),
    NO_CONTROL: ("had no control group", "had no control group"),
    NOTHING: ("had nothing to attack", "had nothing to attack"),
}


#: The label of an attack below the heading of its group.
LABELS = (
    (r"linkage, (\S+) quasi-identifiers", "by {0} columns"),
    (r"linkage, (\S+) quasi-identifiers, (\d+)% wrong", "by {0} columns, {1}\u00a0% wrong"),
    (r"linkage, all quasi-identifiers, kept columns", "by all columns and kept ones"),
    (r"intersection with earlier releases", "with earlier releases"),
    (r"intersection with earlier releases, people who fit them", "people who fit earlier releases"),
    (r"singling out, (.+)", "by {0}"),
    (r"inference: (.+)", "{0}, from its class"),
    (r"inference across groups: (.+)", "{0}, by a model"),
    (r"skewness: (.+)", "{0}, a rare value"),
    (r"similarity: (.+)", "{0}, a narrow range"),
    (r"minimality: (.+)", "{0}, by a class's shape"),
    (r"membership in a register", "from a register"),
)


LETTERS = 32  # longest label that fits on a phone with the outcome beside it


def label(name: str) -> str:
    """The label of an attack below the heading of its group; if it is too long, the column's name is shortened."""
    for pattern, words in LABELS:
        if match := re.fullmatch(pattern, name):
            parts = match.groups()
            room = LETTERS - len(words.format(*[""] * len(parts)))
            return words.format(*(part if len(part) <= room else f"{part[: room - 1]}\u2026" for part in parts))
    return name


def bound_value(name: str, value: Any) -> str:
    """The measured value for the bound of this name, as a share, or as the area under a curve."""
    if not known(value):
        return NOT_MEASURED
    return f"{value:.3f}" if "auc" in name else percent(value)


def strength(finding: Mapping[str, Any]) -> tuple[bool, float, float]:
    """The sort key of attacks: whether they have a clear result, then the leak's lower end, then success."""
    leak = finding["leak"]
    return (
        finding["verdict"] in (LEAK, NO_LEAK, NO_CONTROL),
        float(leak["low"]) if leak and finding["verdict"] == LEAK else -1.0,
        float(finding["attack"]["rate"]),
    )


def outcome(finding: Mapping[str, Any]) -> str:
    if finding["verdict"] == LEAK and finding["leak"]:
        return f"gives away {percent(finding['leak']['leak'])}"
    return OUTCOMES.get(finding["verdict"], str(finding["verdict"]))
