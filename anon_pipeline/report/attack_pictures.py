"""The charts of the results of attacks, in one chart or in one per group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anon_pipeline.attack.models_audit import FITTED, RAW, RELEASE
from anon_pipeline.attack.rates import LEAK, NOTHING, TOO_WEAK
from anon_pipeline.report.attack_chart import ChartRow, Mark, audit_chart
from anon_pipeline.report.attack_words import GROUPS, MODELS, OUTCOMES, PAIRS, label, outcome
from anon_pipeline.report.charts import known


def picture(content: Mapping[str, Any]) -> str:
    """The chart of all attacks, which is also complete outside of a page; empty if nothing was measured."""
    groups = _rows(content)
    return audit_chart(groups) if any(groups.values()) else ""


def pictures(content: Mapping[str, Any]) -> dict[str, str]:
    """One chart per group, by the title of the group in `AuditWords.groups`."""
    return {
        MODELS[0] if group == PAIRS else group: audit_chart({group: rows}, f"What attacks achieved: {group}")
        for group, rows in _rows(content).items()
        if rows
    }


def _rows(content: Mapping[str, Any]) -> dict[str, list[ChartRow]]:
    """A row of the chart per attack, by group."""
    groups: dict[str, list[ChartRow]] = {}
    for criterion, (title, _) in GROUPS.items():
        of_group = [finding for finding in content.get("findings") or [] if finding["criterion"] == criterion]
        groups[title] = [
            ChartRow(
                label=label(str(finding["name"])),
                outcome=outcome(finding),
                attack=None if finding["verdict"] == NOTHING else Mark.of(finding["attack"]),
                control=Mark.of(finding["control"]),
                baseline=Mark.of(finding["baseline"]),
            )
            for finding in of_group
        ]
    groups[PAIRS] = _rows_of_models(content)
    return groups


def _rows_of_models(content: Mapping[str, Any]) -> list[ChartRow]:
    """For each model, the membership attack that distinguishes most pairs."""
    models, guide = content.get("models") or {}, content.get("guide") or {}
    every = [*(models.get("membership") or []), *(guide.get("membership") or [])]
    rows = []
    for model, words in (
        (RAW, "trained on people"),
        (RELEASE, "trained on a release"),
        (FITTED, "the guiding model"),
    ):
        against = [finding for finding in every if finding["model"] == model and known(finding.get("auc"))]
        if against:
            worst = max(against, key=lambda finding: float(finding["auc"]))
            outcome = OUTCOMES[LEAK] if worst.get("leaks") else OUTCOMES[TOO_WEAK]
            mark = Mark(worst["auc"], worst.get("auc_low"), worst.get("auc_high"))
            rows.append(ChartRow(words, outcome, mark, None, Mark(0.5), "of the pairs"))
    return rows
