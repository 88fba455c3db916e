"""The report of a refusal: the checks that do not hold, and their remedies. For the private zone; aggregates only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anon_pipeline.report import attack_summary, kept_columns, singled_out
from anon_pipeline.report import verdict as verdict_report
from anon_pipeline.report.attack_summary import SummaryRow
from anon_pipeline.report.charts import percent
from anon_pipeline.report.templates import template
from anon_pipeline.report.verdict import Check
from anon_pipeline.report.wording import part, sentence, times, value_text, words
from anon_pipeline.spec.parts import SINGLE_BOUNDS

#: Bounds on attacks that are areas under a curve instead of shares.
AREAS = ("membership_auc",)


@dataclass(frozen=True)
class Refusal:
    """A refused release.

    Attributes
    ----------
    dataset, description : those of the spec
    created : the time in ISO 8601
    where : the step or the battery of checks
    reasons : sentences of a step; empty if checks failed
    checks : answers with their remedies, as plain data
    spec : the policy, as it would be published
    standing : version of the current release; None without one
    audit : the results of attacks, if they are the reason
    """

    dataset: str
    description: str
    created: str
    where: str
    reasons: Sequence[str]
    checks: Sequence[Mapping[str, Any]]
    spec: Mapping[str, Any]
    standing: str | None
    audit: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RefusalPage:
    """The content of the page, as text."""

    dataset: str
    description: str
    version: str
    created: str
    where: str
    reasons: list[str]
    failed: list[tuple[Check, str]]  # with remedies
    others: list[Check]
    settings: list[tuple[str, str]]
    weighed: list[str]
    attacks: list[SummaryRow]
    standing: str


def describe(refusal: Refusal) -> RefusalPage:
    """The refusal in words."""
    content = {"checks": refusal.checks, "audit": refusal.audit, "spec": refusal.spec}
    remedies = {words(check.get("name")): words(check.get("remedy")) for check in refusal.checks}
    checks = verdict_report.checks(content)
    return RefusalPage(
        dataset=refusal.dataset,
        description=refusal.description,
        version="",
        created=times(refusal.created)[0],
        where=refusal.where.replace("_", " "),
        reasons=[sentence(reason) for reason in refusal.reasons],
        failed=[(check, sentence(remedies.get(check.name, ""))) for check in checks if check.holds_back],
        others=[check for check in checks if not check.holds_back],
        settings=settings(refusal.spec),
        weighed=[*kept_columns.sentences(part(content, "audit")), *singled_out.sentences(content)],
        attacks=attack_summary.summary(refusal.audit),
        standing=refusal.standing or "",
    )


def render(refusal: Refusal) -> str:
    """The page as HTML without external files."""
    return template("refusal.html").render(page=describe(refusal))


def settings(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The keys of the spec that decide whether a release is refused, with their values: (key, value)."""
    rows = []
    for demand in spec.get("privacy") or []:
        stated = {key: value for key, value in demand.items() if key != "model" and value is not None}
        rows.append(
            (f"privacy.{demand.get('model')}", ", ".join(f"{key} {value_text(value)}" for key, value in stated.items()))
        )
    if spec.get("suppression") is not None:
        rows.append(("suppression.limit", f"{percent(part(spec, 'suppression').get('limit'))} of the people"))
    audit = part(spec, "audit")
    for name in SINGLE_BOUNDS:
        if audit.get(name) is not None:
            rows.append((f"audit.{name}", value_text(audit[name]) if name in AREAS else percent(audit[name])))
    for column, limit in part(audit, "attribute_inference").items():
        rows.append((f"audit.attribute_inference.{column}", percent(limit)))
    return rows
