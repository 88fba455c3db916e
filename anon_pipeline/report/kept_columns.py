"""The attack that reads quasi-identifiers off kept columns, in words: how often it succeeds, by what, and remedies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anon_pipeline.attack.rates import BY_KEPT_COLUMNS, LEAK, NAMED_FROM
from anon_pipeline.report.charts import known, percent
from anon_pipeline.report.wording import listed, part, words

#: The same attack without the kept columns.
BY_CLASS = "linkage, all quasi-identifiers"
#: The most columns that are named.
NAMED = 6


def picked_by_them(audit: Mapping[str, Any]) -> float | None:
    """How often the right record is picked with kept columns, if that is clearly more than by the classes alone."""
    beside, _ = _compared(_by_name(audit))
    return beside.get("rate")


def sentences(audit: Mapping[str, Any]) -> list[str]:
    """A paragraph where kept columns tell clearly more than the classes alone; else empty."""
    findings = _by_name(audit)
    beside, alone = _compared(findings)
    if not beside:
        return []
    named = _columns(part(findings[BY_KEPT_COLUMNS], "details", "by_column"))
    what = listed(named) if named else "the kept columns"
    return [
        "Kept columns tell what the grouping hides"
        f"{f', above all {what}' if named else ''}: who knows how the columns go together picks the right record in "
        f"{percent(beside['rate'])} of the cases ({percent(beside['low'])} to {percent(beside['high'])}), in place of "
        f"{percent(alone['rate'])}. Classes are counted by the columns by which a person could be recognized, and "
        f"these are not among them. What lowers it: exclude {what}, coarser values by a masking step, or the role "
        "quasi_identifier. A larger k alone does not."
    ]


def _by_name(audit: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(finding.get("name")): finding for finding in audit.get("findings") or []}


def _compared(findings: Mapping[str, Mapping[str, Any]]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The rates with kept columns and without, both empty where the first is not clearly the larger."""
    beside, alone = (part(findings.get(name), "attack") for name in (BY_KEPT_COLUMNS, BY_CLASS))
    leaks = part(findings.get(BY_KEPT_COLUMNS)).get("verdict") == LEAK
    return (beside, alone) if leaks and known(alone.get("high")) and beside["low"] > alone["high"] else ({}, {})


def _columns(by_column: Mapping[str, Any]) -> list[str]:
    """The columns that tell most, the worst first; empty where it is not told how much each tells."""
    tells = {words(name): float(tell) for name, tell in by_column.items() if known(tell) and tell >= NAMED_FROM}
    return sorted(tells, key=lambda name: (-tells[name], name))[:NAMED]
