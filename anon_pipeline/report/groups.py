"""The parts of the report on a table of groups that differ from those on rows of people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from anon_pipeline.masking.aggregation import MEAN
from anon_pipeline.masking.rounded_means import parts_of_unit
from anon_pipeline.report import masking as masking_report
from anon_pipeline.report import origin as origin_report
from anon_pipeline.report import verdict as verdict_report
from anon_pipeline.report.charts import count, counted, known, percent
from anon_pipeline.report.columns import ColumnSummary
from anon_pipeline.report.masking import MaskingWords
from anon_pipeline.report.verdict import Figure, Promise
from anon_pipeline.report.wording import listed, part, plain_name, words

NOTE = "No rows of people are released; no model is trained, and none is attacked."
#: Parts of a run that do not exist for groups.
UNUSED = ("Target", "Guiding model")


def promises(content: Mapping[str, Any]) -> list[Promise]:
    """The promises, with the counts from the published file."""
    return [
        replace(
            promise,
            measured=promise.measured.replace("class", "group"),
            meaning="No count is of fewer people, and no mean of fewer known values." if promise.holds else "",
        )
        for promise in verdict_report.promises(content)
    ]


def changes(content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `release_report.Page` that differ."""
    return {
        "lead": _lead(content),
        "figures": _figures(content),
        "cautions": _cautions(content),
        "columns": _column_summaries(content),
        "quasi_identifiers": [],
        "kept": [],
        "kept_masked": [],
        "examples": None,
        "masking": _masking(content),
        "commands": [
            *origin_report.commands(part(content, "spec"), []),
            (
                origin_report.BY_MANIFEST,
                "Reads the counts again in the published table, by the spec in the manifest beside it.",
            ),
        ],
        "provenance": [entry for entry in origin_report.provenance(content) if entry[0] not in UNUSED],
        "of_groups": True,
    }


def _lead(content: Mapping[str, Any]) -> str:
    groups = part(content, "groups")
    averaged = f", and means of {listed(list(groups['means']))}" if groups.get("means") else ""
    by = listed([words(name) for name in groups.get("columns") or []])
    sentences = [
        f"This is a table of {counted(groups.get('groups'), 'group', 'groups')} by {by}: how many people each "
        f"counts{averaged}."
    ]
    if known(groups.get("people")):
        sentences.append(f"{counted(groups['people'], 'person is', 'people are')} counted in it.")
    if groups.get("people_left_out"):
        sentences.append(
            f"{counted(groups['people_left_out'], 'is', 'are')} in groups that are left out to protect them."
        )
    return " ".join([*sentences, NOTE])


def _figures(content: Mapping[str, Any]) -> list[Figure]:
    groups = part(content, "groups")
    figures = [Figure(count(groups.get("groups")), "groups")]
    figures.append(Figure(count(groups.get("smallest")), "people in the smallest group"))
    everybody, sampled_out = part(content, "source").get("rows"), part(content, "rows").get("sampled_out") or 0
    if known(everybody) and everybody > sampled_out and known(groups.get("people_left_out")):
        whom = "drawn people" if sampled_out else "people"
        share = percent(groups["people_left_out"] / (everybody - sampled_out))
        figures.append(Figure(share, f"of the {whom} are in no group shown"))
    if groups.get("means"):
        figures.append(Figure(count(groups.get("means_hidden")), "means that are hidden"))
    return figures


def _cautions(content: Mapping[str, Any]) -> list[str]:
    sentences = [
        "A second table about the same people with other groups, or an older one, can give away by subtraction what "
        "this one hides. This one was judged beside what the same home has released from the same source, and beside "
        "nothing else.",
        "No value is hidden for being shared: where a group is everybody of a kind, or a mean lies at the end of what "
        "is possible, it is told of every member.",
    ]
    rows = part(content, "rows")
    if "without_target" in rows:
        sentences.append(verdict_report.without_target(content))
    if rows.get("sampled_out"):
        sentences.append(
            f"{counted(rows['sampled_out'], 'person was', 'people were')} left out by sampling; the counts are of the "
            "others."
        )
    return sentences


def _column_summaries(content: Mapping[str, Any]) -> list[ColumnSummary]:
    """Every column that the spec names, in its order."""
    groups, spec = part(content, "groups"), part(content, "spec")
    masked: dict[str, list[str]] = {}
    for report in (content.get("masking") or [])[:-1]:
        for name in report.get("columns") or []:
            masked.setdefault(name, []).append(words(report.get("technique")).replace("_", " "))
    summaries = []
    for name, column in part(spec, "columns").items():
        role = words(part(column).get("role"))
        what = {"identifier": "Removed: it names a person.", "exclude": "Left out."}.get(role, "Not released.")
        if name in (groups.get("columns") or []):
            what = "People are grouped by it."
        elif name in (groups.get("means") or []):
            what = f"Shown as the mean of each group, {MEAN}{name}{_rounding(groups, name)}."
        if name in masked and what != "Left out.":
            what = f"Masked: {', '.join(masked[name])}. {what}"
        summaries.append(ColumnSummary(name, plain_name(role), what, words(part(column).get("why")), "", False))
    return summaries


def _rounding(groups: Mapping[str, Any], name: str) -> str:
    """How exactly the means of a column are shown, for groups of the size of the smallest."""
    unit, smallest = part(groups, "units").get(name), groups.get("smallest")
    if not unit or not known(smallest):
        return ""
    step = unit / int(parts_of_unit(np.array([smallest]))[0])
    return (
        f", in steps of {step:g} for the smallest groups and finer ones for larger groups, so that its digits do not "
        "tell how many people have a value"
    )


def _masking(content: Mapping[str, Any]) -> MaskingWords | None:
    masked = masking_report.in_words(content.get("masking"))
    if masked is None:
        return None
    number = len(masked.steps)
    several = (
        f"These {count(number)} steps made it of the source, in this order." if number > 1 else "One step made it."
    )
    return MaskingWords([several], [replace(step, costs=[], linked="") for step in masked.steps])
