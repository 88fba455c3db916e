"""The published release: the candidate is read again, counted once more, and entered into the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anon_pipeline.anonymize.storage import load_cells
from anon_pipeline.errors import Refused
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.pipeline.checks import candidate, own, source
from anon_pipeline.pipeline.checks.answers import require_answers
from anon_pipeline.pipeline.checks.audit import AUDIT
from anon_pipeline.pipeline.checks.audit import checks_of as bounds_of
from anon_pipeline.pipeline.linked_releases.rows import keep_classes, keeper
from anon_pipeline.pipeline.maps import released_maps
from anon_pipeline.pipeline.metadata import Lineage, MetadataItem
from anon_pipeline.pipeline.pages import class_size_metadata, release_page, released_schema, utility_metadata
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, RELEASE, Run, StepDef, StepResult, log
from anon_pipeline.plain_json import finite
from anon_pipeline.privacy.judge import classes_beside_population, statistics_of, types_of
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.release import manifest
from anon_pipeline.release.examples import examples_of
from anon_pipeline.release.facts import Evidence, facts_of_people, risk_of
from anon_pipeline.release.publication import Published
from anon_pipeline.release.publish import CLASSES, DATA, REPORT, publish
from anon_pipeline.sequential.release_history import MEMBERS, ROUTING, remember
from anon_pipeline.sequential.republication import distinct_tuples
from anon_pipeline.spec import ReleaseSpec, Role

NEW, STANDING = "published", "stands already, nothing new is published"


def release(
    run: Run,
    _folder: Path,
    raw_data: Stage,
    people: Stage,
    predictions: Stage,
    anonymizer_tree: Stage,
    anonymized_table: Stage,
    source_checks: Stage,
    candidate_checks: Stage,
    utility: Stage,
    attack_audit: Stage | None = None,
    audit_checks: Stage | None = None,
    own_checks: Stage | None = None,
) -> StepResult:
    """Publish the candidate, if every check has been asked of these very files and has passed."""
    spec, engine = run.spec, run.engine
    checks = [
        *require_answers(source_checks, source.checks_of(spec)),
        *require_answers(candidate_checks, candidate.checks_of(spec)),
        *_answers_on_attacks(spec, audit_checks),
        *own.require(spec, own_checks),
    ]
    data = anonymized_table.folder / DATA
    counted = engine.classes(data, spec.quasi_identifiers, spec.with_role(Role.SENSITIVE))
    cells = load_cells(predictions.folder)
    alike = cells if spec.across_releases is None else distinct_tuples(cells)[0]
    across = None
    if spec.across_releases is not None:
        across = sequential_publication.manifest_entry(run, people, anonymizer_tree, anonymized_table)
    evidence = Evidence(
        source=raw_data.facts,
        people=people.facts,
        candidate=anonymized_table.facts,
        utility=utility.facts,
        coarsened=predictions.facts["coarsened"],
        distinct_people=ClassStatistics(sizes=alike.counts),
        classes=statistics_of(counted, spec.answers, spec.categories),
        beside_population=classes_beside_population(
            engine, spec, types_of(spec, engine.columns(data)), anonymized_table.folder / CLASSES
        ),
        examples=examples_of(counted),
        attacks=None if attack_audit is None else json.loads((attack_audit.folder / AUDIT).read_text()),
        across_releases=across,
        maps=released_maps(spec, data),
        checks=checks,
        runs=dict(run.ids),
        noise=run.noise(anonymized_table.facts["version"]),
    )
    facts = facts_of_people(spec, evidence)
    beside = keeper(run, raw_data, anonymized_table)
    across_history = _remember(run, people, anonymizer_tree, anonymized_table)

    def keep(version: str) -> None:
        _require_counted(anonymized_table, version)
        beside(version)
        if across_history is not None:
            across_history(version)

    published = publish(run.home, spec, engine, anonymized_table.folder, finite(facts), keep)
    keep_classes(run, anonymized_table, published.version)
    return StepResult(
        {"version": published.version},
        anonymized_table.facts["released"],
        {
            **publication(spec, published),
            "schema": released_schema(spec, engine.columns(published.folder / DATA)),
            "lineage": Lineage("anonymized_table", manifest.lineage(spec)),
            **class_size_metadata(manifest.class_sizes(counted.sizes)),
            **utility_metadata(utility.facts),
        },
        {
            "version": published.version,
            "smallest_class": int(counted.sizes.min()),
            "new": published.new,
            **_figures(spec, evidence, facts),
        },
        published.version,
        published,
    )


STEP = StepDef(
    RELEASE,
    (
        "raw_data",
        PEOPLE,
        "predictions",
        "anonymizer_tree",
        "anonymized_table",
        "source_checks",
        "candidate_checks",
        "utility",
    ),
    frozenset({"parquet", "mlflow"}),
    release,
    needs_if_made=("attack_audit", "audit_checks", own.NAME),
)


def publication(spec: ReleaseSpec, published: Published) -> dict[str, MetadataItem]:
    """The metadata in Dagster for any release; also logs a message."""
    state = NEW if published.new else STANDING
    log.info("%s: release %s %s", spec.dataset, published.version, state)
    return {
        "version": published.version,
        "state": state,
        "folder": published.folder,
        "report": f"{REPORT} in that folder",
        **release_page(published.manifest),
    }


def _require_counted(candidate: Stage, version: str) -> None:
    """The file to be published has the content that was counted while it was written.

    The noise of the figures is drawn for that content. Drawn for another version, it could be taken off by comparing
    the two.
    """
    if version != candidate.facts["version"]:
        raise Refused(["the written file is not the table whose content was counted while it was written"])


def _answers_on_attacks(spec: ReleaseSpec, audit_checks: Stage | None) -> list[dict[str, Any]]:
    """The answers on the bounds of the spec; if it sets bounds and none were asked, nothing is published."""
    bounds = bounds_of(spec) if spec.audit.enabled else {}
    return [] if audit_checks is None and not bounds else require_answers(audit_checks, bounds)


def _remember(run: Run, followed: Stage, tree: Stage, candidate: Stage) -> Callable[[str], None] | None:
    """Adds the people and the tree of a release to the release history; None without sequential publication."""
    if run.spec.across_releases is None:
        return None

    def keep(version: str) -> None:
        sequential_publication.require_minimum_size(run, candidate)  # under the ledger's lock
        members, routing, made_from = candidate.folder / MEMBERS, tree.folder / ROUTING, followed.facts["made_from"]
        remember(run.home, run.spec.dataset, version, members, routing, made_from)

    return keep


def _figures(spec: ReleaseSpec, evidence: Evidence, facts: dict[str, Any]) -> dict[str, Any]:
    """The metrics of a release, so that releases can be compared in MLflow's tables."""
    figures: dict[str, Any] = {}
    if facts["across_releases"] is not None:
        across = facts["across_releases"]["measured"]
        named = {f"across_releases_{name}": across[name] for name in ("fewest", "below", "left_below")}
        figures |= {name: number for name, number in named.items() if number is not None}
    for when, classes in (("before", evidence.distinct_people), ("after", evidence.classes)):
        prosecutor = risk_of(classes, spec.sampling_fraction)["prosecutor"]
        figures[f"prosecutor_risk_max_{when}"] = prosecutor["max"]
        figures[f"prosecutor_risk_mean_{when}"] = prosecutor["mean"]
    for column, measures in facts["measured"]["sensitive"].items():
        figures[f"homogeneity_{column}"] = measures["homogeneity"]
    return figures
