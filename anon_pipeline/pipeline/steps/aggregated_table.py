"""The candidate for a release of groups: counts and means per group of people, and nobody's row."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow.parquet as pq

from anon_pipeline.engine import found_types
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.masking.aggregation import aggregate_for_readers
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.masking.memory import require_memory, usable_memory
from anon_pipeline.pipeline.metadata import Lineage
from anon_pipeline.pipeline.pages import groups_schema
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, StepDef, StepResult, log
from anon_pipeline.plain_json import finite
from anon_pipeline.release.manifest import version_of
from anon_pipeline.release.publish import DATA


def count_groups(run: Run, folder: Path, masked_data: Stage) -> StepResult:
    """Write the table of groups. No model is trained, nobody is grouped by a tree, and nothing is attacked."""
    spec, engine, step = run.spec, run.engine, aggregate_for_readers(run.spec)
    stored = SourceFacts.from_json(masked_data.facts)
    types = stored.types()
    require_memory(int(masked_data.facts["rows"]), len(types), usable_memory(run.memory_limit))
    people = engine.everybody(masked_data.folder / DATA).select(step.used)
    groups, (report,) = apply_steps(
        people, {name: types[name] for name in step.used}, {}, [step], Resources(spec.dataset, run.key)
    )
    place = f"steps.{len(spec.steps) - 1}"
    if not len(groups):
        raise InputError(
            f"{place}: every group counts fewer than {step.threshold} people or is needed to hide one that "
            "does, so nothing is left to release; group by fewer or coarser columns"
        )
    if report.facts["groups_left_out"]:
        found = [name for name in found_types.typed_by_values(spec, stored) if name in groups.column_names]
        groups = found_types.retyped(groups, found_types.narrower(found, groups.to_batches()))
    pq.write_table(groups, folder / DATA, compression="zstd")
    log.info("%s: %s", spec.dataset, number_of(len(groups), "group", "groups"))
    version = version_of(spec, {DATA: engine.content_hash(folder / DATA)[1]})
    return StepResult(
        {"report": finite(dataclasses.asdict(dataclasses.replace(report, place=place))), "version": version},
        len(groups),
        {
            "schema": groups_schema(engine.columns(folder / DATA)),
            "lineage": Lineage("masked_data", step.sources),
            **report.facts,
        },
        report.facts,
    )


STEP = StepDef("aggregated_table", ("masked_data",), frozenset({"parquet"}), count_groups)
