"""The report: one page about one release, for the people responsible for it. Made from the manifest only.

The other modules of this package put the parts into words; this one combines them, and `report.html` arranges them on
the page. Parts that the manifest does not have are left out, and a missing number reads "not measured".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from anon_pipeline.report import attack_pictures, charts, likeness_chart, masking_map, synthetic_report
from anon_pipeline.report import attacks as audit_report
from anon_pipeline.report import changes as changes_report
from anon_pipeline.report import columns as column_report
from anon_pipeline.report import examples as examples_report
from anon_pipeline.report import groups as group_report
from anon_pipeline.report import likeness as likeness_report
from anon_pipeline.report import masking as masking_report
from anon_pipeline.report import origin as origin_report
from anon_pipeline.report import risk as risk_report
from anon_pipeline.report import sequential as across_report
from anon_pipeline.report import utility as utility_report
from anon_pipeline.report import verdict as verdict_report
from anon_pipeline.report.attacks import AuditWords
from anon_pipeline.report.changes import Changes
from anon_pipeline.report.charts import count, in_steps, lost
from anon_pipeline.report.columns import ColumnSummary
from anon_pipeline.report.examples import Examples
from anon_pipeline.report.masking import MaskingWords
from anon_pipeline.report.risk import Risk, Sensitive
from anon_pipeline.report.templates import template
from anon_pipeline.report.utility import Group, Score
from anon_pipeline.report.verdict import Check, Figure, Promise
from anon_pipeline.report.wording import blurred, in_order, part, plain_name, times, words


@dataclass(frozen=True)
class Pictures:
    """The charts of a page; None if there is nothing to draw."""

    sizes: Markup | None
    before_after: Markup | None
    losses: Markup | None
    reliability: Markup | None
    associations: Markup | None
    marginals: list[Markup]
    homogeneity: Markup | None
    attacks: dict[str, Markup]  # by the titles of their groups
    maps: list[tuple[str, Markup]]  # caption and picture


@dataclass(frozen=True)
class Page:
    """The content of the report, as text; `report.html` and `markdown` put it in order."""

    dataset: str
    description: str
    version: str
    created: str
    verdict: str
    released: bool
    withdrawn: str  # when and why; empty if it is not withdrawn
    lead: str
    stated: list[tuple[str, str]]
    broken: list[str]
    figures: list[Figure]
    promises: list[Promise]
    cautions: list[str]
    across: list[str]
    risks: list[Risk]
    utility_intro: str
    scores: list[Score]
    models: list[tuple[str, Score]]
    groups: list[Group]
    group_sentences: list[str]
    calibration: list[str]
    associations: list[str]
    loss_mean: str
    columns: list[ColumnSummary]
    quasi_identifiers: list[str]
    examples: Examples | None
    kept: list[str]  # unchanged columns
    kept_masked: list[str]  # masked columns, each with its techniques
    sizes: dict[str, str]
    sensitive: Sensitive | None
    attacks: AuditWords | None
    masking: MaskingWords | None
    checks: list[Check]
    commands: list[tuple[str, str]]
    citation: str
    hashes: list[tuple[str, str]]
    provenance: list[tuple[str, str]]
    packages: list[tuple[str, str]]
    lineage: list[tuple[str, str]]
    previous: str
    changes: Changes | None
    of_groups: bool = False  # a table of groups, not of people
    blurred: str = "rounded"  # what was done to figures of the source
    coarsened: str = ""  # what "before" is counted in, if columns were coarsened before people were counted

    @property
    def lost_note(self) -> str:
        """Why a column can have lost a little whose classes have a single value each; empty where nothing is told."""
        if not self.loss_mean:
            return ""
        return f"What is lost is counted in the source, so it is {self.blurred}; the rest is counted in the release."


def render(content: Mapping[str, Any], withdrawn: str = "") -> str:
    """The page of a release as HTML without external files.

    Parameters
    ----------
    content : the manifest, as assembled by `publish`
    withdrawn : the sentence that says since when it should no longer be used, and why
    """
    if synthetic_report.is_synthetic(content):
        return synthetic_report.render(content, withdrawn)
    return template("release_report.html").render(page=describe(content, withdrawn), pictures=draw(content))


def describe(content: Mapping[str, Any], withdrawn: str = "") -> Page:
    """The manifest in words. The verdict fails closed: any demand that does not hold or was not counted breaks it."""
    spec, measured = part(content, "spec"), part(content, "measured")
    columns = part(spec, "columns")
    quasi = [name for name, column in columns.items() if part(column).get("role") == "quasi_identifier"]
    everybody = part(content, "source").get("rows")
    attacks = _attacks(content)
    across = across_report.promise(content)
    of_groups = bool(part(content, "groups"))
    promised = group_report.promises if of_groups else verdict_report.promises
    promises, checks = promised(content), verdict_report.checks(content)
    promises += [across] if across is not None and promises else []
    broken = verdict_report.broken(promises, checks) + (attacks.broken if attacks is not None else [])
    metrics = part(content, "utility", "metrics")
    loss, sizes, risk = part(measured, "information_loss"), part(measured, "class_sizes"), _risk(content)
    created, day = times(content.get("created"))
    packages = part(content, "software", "packages")
    page = Page(
        dataset=words(content.get("dataset")),
        description=words(content.get("description")),
        version=words(content.get("version")),
        created=created,
        verdict="Not fit for release" if broken else "Withdrawn" if withdrawn else "Released",
        released=not broken and not withdrawn,
        withdrawn=withdrawn,
        lead=verdict_report.lead(content, quasi, "table" if broken else "release"),
        stated=origin_report.stated(content),
        broken=broken,
        figures=verdict_report.figures(content),
        promises=promises,
        cautions=verdict_report.cautions(content),
        across=across_report.sentences(content),
        risks=risk_report.risks(part(risk, "before"), part(risk, "after")),
        utility_intro=_utility_intro(content) if metrics else "",
        scores=utility_report.scores(metrics),
        models=utility_report.models(part(content, "utility")),
        groups=utility_report.groups(part(content, "utility")),
        group_sentences=utility_report.group_sentences(part(content, "utility")),
        calibration=utility_report.calibration(part(content, "utility")),
        associations=likeness_report.sentences(measured),
        loss_mean=lost(loss["mean"], loss.get("step")) + in_steps(loss.get("step"))
        if loss.get("mean") is not None
        else "",
        columns=column_report.column_summaries(content),
        quasi_identifiers=quasi,
        examples=examples_report.in_words(content),
        kept=column_report.as_in_the_source(content, "sensitive", "insensitive"),
        kept_masked=column_report.as_masked(content, "sensitive", "insensitive"),
        sizes={name: count(sizes.get(name)) for name in ("classes", "smallest", "median", "mean", "largest") if sizes},
        sensitive=risk_report.sensitive(part(measured, "sensitive"), spec),
        attacks=attacks,
        masking=masking_report.in_words(content.get("masking"), everybody, verdict_report.some_left_out(content)),
        checks=checks,
        commands=origin_report.commands(spec, quasi),
        citation=origin_report.citation(content, day),
        hashes=origin_report.hashes(content),
        provenance=origin_report.provenance(content),
        packages=[(name, words(version)) for name, version in sorted(packages.items())],
        lineage=[(name, ", ".join(of)) for name, of in part(content, "lineage").items() if list(of) != [name]],
        previous=words(content.get("previous")),
        changes=changes_report.in_words(content),
        blurred=blurred(measured),
        coarsened=risk_report.COARSENED if content.get("coarsened") else "",
    )
    return replace(page, **group_report.changes(content)) if of_groups else page


def draw(content: Mapping[str, Any]) -> Pictures:
    """The charts of the same manifest."""
    spec, measured = part(content, "spec"), part(content, "measured")
    sizes = part(measured, "class_sizes").get("groups")
    records = risk_report.records(_risk(content))
    sizes = sizes if not records else None  # otherwise the same people would be drawn twice
    loss = part(measured, "information_loss")
    losses = in_order(part(loss, "columns"), part(spec, "columns"))
    sensitive = risk_report.sensitive(part(measured, "sensitive"), spec)
    calibration, associations = part(content, "utility", "calibration"), part(measured, "associations")
    return Pictures(
        sizes=_picture(charts.class_size_chart(sizes)) if sizes else None,
        before_after=_picture(
            charts.before_after_chart(
                [label for label, _, _ in records],
                [before for _, before, _ in records],
                [after for _, _, after in records],
                "People by the size of their class, before and after",
            )
        )
        if records
        else None,
        losses=_picture(charts.share_chart(losses, "Share of each column's information that is lost", loss.get("step")))
        if losses
        else None,
        reliability=_picture(likeness_chart.reliability_chart(calibration)) if "before" in calibration else None,
        associations=_picture(likeness_chart.association_chart(associations)) if associations else None,
        marginals=[
            _picture(likeness_chart.marginal_chart(name, marginals))
            for name, marginals in part(measured, "marginals").items()
        ],
        homogeneity=_picture(
            charts.share_chart(sensitive.shares, "People whose class has one single value of the column")
        )
        if sensitive is not None
        else None,
        attacks={
            title: _picture(picture) for title, picture in attack_pictures.pictures(part(content, "audit")).items()
        },
        maps=[
            (masking_map.caption(chart), _picture(masking_map.map_chart(chart)))
            for chart in content.get("maps") or []
            if chart.get("before") or chart.get("after")
        ],
    )


def _attacks(content: Mapping[str, Any]) -> AuditWords | None:
    return audit_report.in_words(
        part(content, "audit"), part(content, "spec", "audit"), part(content, "source").get("rows")
    )


def _utility_intro(content: Mapping[str, Any]) -> str:
    spec = part(content, "spec")
    missing = plain_name(words(spec.get("target"))) if spec.get("missing_target") == "release" else None
    return utility_report.intro(part(content, "utility"), bool(content.get("masking")), missing)


def _risk(content: Mapping[str, Any]) -> Mapping[str, Any]:
    return part(content, "measured", "risk") or part(content, "risk")


def _picture(chart: str) -> Markup:
    return Markup(charts.inline(chart))  # noqa: S704 (charts escape their input)
