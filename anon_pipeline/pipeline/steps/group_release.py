"""The published release of groups instead of rows of people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from anon_pipeline.errors import Refused
from anon_pipeline.masking.aggregation import aggregate_of
from anon_pipeline.pipeline.checks import group, own, source
from anon_pipeline.pipeline.checks.answers import require_answers
from anon_pipeline.pipeline.metadata import Lineage
from anon_pipeline.pipeline.pages import groups_schema
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import RELEASE, Run, StepDef, StepResult
from anon_pipeline.pipeline.steps.release import publication
from anon_pipeline.plain_json import finite
from anon_pipeline.privacy.group_table import compare_groups, group_columns, read_groups, threshold_of, units_of
from anon_pipeline.release.facts import GroupEvidence, facts_of_groups
from anon_pipeline.release.publish import DATA, publish
from anon_pipeline.report.groups import NOTE


def release(
    run: Run,
    _folder: Path,
    raw_data: Stage,
    masked_data: Stage,
    aggregated_table: Stage,
    source_checks: Stage,
    candidate_checks: Stage,
    own_checks: Stage | None = None,
) -> StepResult:
    """Publish the table of groups, if every check has been asked of these very files and has passed."""
    spec, engine = run.spec, run.engine
    checks = [
        *require_answers(source_checks, source.checks_of(spec)),
        *require_answers(candidate_checks, group.CHECKS.checks(spec)),
        *own.require(spec, own_checks),
    ]
    groups = _groups(run, masked_data, aggregated_table)
    last_step = aggregated_table.facts["report"]
    noise = run.noise(aggregated_table.facts["version"])
    facts = facts_of_groups(
        spec, GroupEvidence(raw_data.facts, masked_data.facts, groups, last_step, checks, dict(run.ids), noise)
    )

    def still_hidden(_version: str) -> None:
        """Under the ledger's lock: another table may have been released since the checks."""
        question = group.linked_question(run, raw_data, aggregated_table)
        if question.table[group.LINKED].sum():
            raise Refused([f"{group.LINKED}: {question.demand}, but {question.remedy}"], [question.demand])

    published = publish(run.home, spec, engine, aggregated_table.folder, finite(facts), still_hidden)
    columns = engine.columns(published.folder / DATA)
    return StepResult(
        {"version": published.version},
        groups["groups"],
        {
            **publication(spec, published),
            "schema": groups_schema(columns),
            "lineage": Lineage("aggregated_table", {name: [name] for name in aggregate_of(spec).sources}),
        },
        {"version": published.version, "smallest_group": groups["smallest"], "new": published.new},
        published.version,
        published,
    )


STEP = StepDef(
    RELEASE,
    ("raw_data", "masked_data", "aggregated_table", "source_checks", "candidate_checks"),
    frozenset({"parquet", "mlflow"}),
    release,
    needs_if_made=(own.NAME,),
)


def _groups(run: Run, masked_data: Stage, aggregated_table: Stage) -> dict[str, Any]:
    """The manifest's entry on a table of groups.

    The number of groups that are left out is not published: if it equals the number of people in them, each is one
    person.
    """
    step, threshold = aggregate_of(run.spec), threshold_of(run.spec)
    table, people = aggregated_table.folder / DATA, masked_data.folder / DATA
    groups = run.engine.groups(table, group_columns(step), people)
    units = units_of(run.engine, people, table, step)
    written, beside = read_groups(groups), compare_groups(groups, step, threshold, units)
    return {
        "note": NOTE,
        "columns": list(step.columns),
        "means": list(step.means),
        "units": {name: float(unit) for name, unit in units.items()},
        "threshold": threshold,
        "dominance": step.dominance.model_dump(),
        "groups": len(written.counts),
        "people": int(written.counts.sum()),
        "people_left_out": beside.left_out_people,
        "means_hidden": beside.means_hidden,
        "smallest": int(written.counts.min()),
        "median": float(np.median(written.counts)),
        "largest": int(written.counts.max()),
    }
