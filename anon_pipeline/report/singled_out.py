"""The results of singling-out attacks, beside the promise that nobody is unique: columns, certainty and remedies.

The promise counts the columns by which others may know a person. The attack adds the columns that are kept. So both can
be true at once, and they are shown together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anon_pipeline.attack.rates import LEAK
from anon_pipeline.report.charts import count, known, percent
from anon_pipeline.report.columns import RELEASED
from anon_pipeline.report.wording import listed, part, words

ONE_COLUMN, ALL_COLUMNS = "singling out, one column", "singling out, all columns"
#: The most columns that are named.
NAMED = 3


def sentences(content: Mapping[str, Any]) -> list[str]:
    """A paragraph about both kinds of conditions, the one tried more often first; empty if neither leaks."""
    findings = {str(finding.get("name")): finding for finding in part(content, "audit").get("findings") or []}
    both = [findings[name] for name in (ONE_COLUMN, ALL_COLUMNS) if name in findings]
    if not any(finding.get("verdict") == LEAK for finding in both):
        return []
    tried = sorted((finding for finding in both if _trials(finding)), key=_trials, reverse=True)
    about = "about " if part(content, "audit").get("control_kind") == "held_out" else ""  # then it is told in steps
    return [
        " ".join([*_beside_the_promise(content), *(_in_words(finding, about) for finding in tried), _remedy(tried)])
    ]


def _trials(finding: Mapping[str, Any]) -> int:
    return int(part(finding, "attack").get("trials") or 0)


def _beside_the_promise(content: Mapping[str, Any]) -> list[str]:
    if part(content, "measured", "risk", "after").get("unique_records") != 0:
        return []
    roles = [part(column).get("role") for column in part(content, "spec", "columns").values()]
    quasi, kept = roles.count("quasi_identifier"), sum(role in RELEASED[1:] for role in roles)
    return [
        f"Nobody is alone by the {count(quasi)} columns that others may know. Together with the {count(kept)} that are "
        "kept, somebody can be."
    ]


def _in_words(finding: Mapping[str, Any], about: str) -> str:
    """ "By one value of visits, 14 of 14 conditions tried were met by exactly one person (100 %, ...)." """
    attack, leak = part(finding, "attack"), part(finding, "leak")
    named = _columns(finding)
    if finding.get("name") == ONE_COLUMN:
        by = f"By one value of {listed(named)}" if named else "By one value of one column"
    else:
        by = f"By a class and kept values{f', above all of {listed(named)}' if named else ''}"
    text = (
        f"{by}, {about}{count(round(attack.get('successes') or 0))} of {count(attack.get('trials'))} conditions tried "
        f"were met by exactly one person ({percent(attack.get('rate'))}, 95\u00a0% interval {_interval(attack)})"
    )
    if known(leak.get("leak")):
        text += f"; being in the release adds {percent(leak['leak'])} ({_interval(leak)})"
    return f"{text}."


def _columns(finding: Mapping[str, Any]) -> list[str]:
    """The columns that single out most, the worst first; empty if an older release did not store them."""
    by_column = {words(name): number for name, number in part(finding, "details", "by_column").items()}
    worst = sorted((name for name, number in by_column.items() if number), key=lambda name: (-by_column[name], name))
    return worst[:NAMED]


def _remedy(findings: list[Mapping[str, Any]]) -> str:
    named = list(dict.fromkeys(name for finding in findings for name in _columns(finding)))
    what = listed(named) if named else "the kept columns"
    return (
        f"What lowers it: coarser values of {what} by a masking step, the role quasi_identifier, which groups by them, "
        "or exclude. A larger k alone does not."
    )


def _interval(estimate: Mapping[str, Any]) -> str:
    return " to ".join([percent(estimate.get("low")).removesuffix("\u00a0%"), percent(estimate.get("high"))])
