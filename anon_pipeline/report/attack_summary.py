"""The attacks in one table, a line per group: how many found a leak, and the strongest with its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anon_pipeline.attack.models_audit import FITTED, RAW, RELEASE
from anon_pipeline.attack.rates import LEAK, NOTHING
from anon_pipeline.report.attack_words import GROUPS, MODELS, OUTCOMES, REPLAYED, label, strength
from anon_pipeline.report.charts import count, known, percent

NO_FIGURE = "\u2013"
MODEL_NAMES = {RAW: "trained on people", RELEASE: "trained on a release", FITTED: "the guiding model"}


@dataclass(frozen=True)
class SummaryRow:
    """A group of attacks: its question, how many found a leak, the strongest, and the leak of the strongest."""

    title: str
    question: str
    leaks: str
    strongest: str
    gives_away: str


def summary(content: Mapping[str, Any]) -> list[SummaryRow]:
    """A line per group with attacks; empty without any attack."""
    return [*_of_findings(content.get("findings") or []), *_of_replays(content), *_of_models(content)]


def _of_findings(findings: Sequence[Mapping[str, Any]]) -> list[SummaryRow]:
    rows = []
    for criterion, (title, question) in GROUPS.items():
        tried = [finding for finding in findings if finding["criterion"] == criterion]
        asked = [finding for finding in tried if finding["verdict"] != NOTHING]
        if not tried:
            continue
        if not asked:
            rows.append(SummaryRow(title, question, "not applicable", NO_FIGURE, OUTCOMES[NOTHING]))
            continue
        best = max(asked, key=strength)
        leaks = sum(finding["verdict"] == LEAK for finding in asked)
        rows.append(
            SummaryRow(title, question, f"{leaks} of {len(asked)}", label(str(best["name"])), _gives_away(best))
        )
    return rows


def _gives_away(finding: Mapping[str, Any]) -> str:
    if finding["verdict"] == LEAK and finding["leak"]:
        leak = finding["leak"]
        return f"{percent(leak['leak'])} ({percent(leak['low'])} to {percent(leak['high'])})"
    return OUTCOMES.get(finding["verdict"], str(finding["verdict"]))


def _of_replays(content: Mapping[str, Any]) -> list[SummaryRow]:
    replayed = content.get("replayed") or []
    if not replayed:
        return []
    worst = max(replayed, key=lambda column: float(column["certain"]))
    revealed = sum(column["certain"] > 0 for column in replayed)
    bound = f" (at most {percent(worst['high'])})" if known(worst.get("high")) else ""
    return [
        SummaryRow(
            *REPLAYED, f"{revealed} of {len(replayed)}", str(worst["column"]), f"{percent(worst['certain'])}{bound}"
        )
    ]


def _of_models(content: Mapping[str, Any]) -> list[SummaryRow]:
    parts = [content.get("models") or {}, content.get("guide") or {}]
    tried = [
        finding
        for attacked in parts
        for finding in attacked.get("membership") or []
        if known(finding.get("auc")) and finding.get("model") != RAW
    ]
    if not tried:
        return []
    worst = max(tried, key=lambda finding: float(finding["auc"]))
    leaks = sum(bool(finding.get("leaks")) for finding in tried)
    pairs = f"{percent(worst['auc'])} ({percent(worst.get('auc_low'))} to {percent(worst.get('auc_high'))}) of pairs"
    return [
        SummaryRow(
            *MODELS,
            f"{count(leaks)} of {count(len(tried))}",
            MODEL_NAMES.get(worst["model"], str(worst["model"])),
            f"{pairs} told apart; guessing: 50\u00a0%",
        )
    ]
