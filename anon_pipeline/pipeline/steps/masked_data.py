"""The people after masking, column by column, as the steps of the spec say."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.errors import InputError
from anon_pipeline.masking.memory import require_memory, usable_memory
from anon_pipeline.pipeline.checks.possible import require_possible
from anon_pipeline.pipeline.masking import kept_columns, lineage, mask, planned, table_of_reports
from anon_pipeline.pipeline.metadata import Lineage, Markdown, picture
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, StepDef, StepResult
from anon_pipeline.plain_json import finite
from anon_pipeline.release.publish import DATA
from anon_pipeline.report.masking_map import caption, map_chart


def mask_people(run: Run, folder: Path, raw_data: Stage) -> StepResult:
    """Write the masked people into `data.parquet`."""
    spec, engine = run.spec, run.engine
    source = SourceFacts.from_json(raw_data.facts)
    plan, secrets = planned(spec, source.types())
    plan = plan.of_people
    if not plan.is_row_wise:
        require_memory(source.rows, len(source.columns), usable_memory(run.memory_limit))
    reports, maps = mask(run, plan, secrets, source, raw_data.folder / DATA, folder / DATA)
    after = {name: kind for name, kind in plan.types_after.items() if name in kept_columns(spec, plan)}
    stored = engine.describe(folder / DATA, spec, after)
    if stored.rows < spec.k:
        raise InputError(f"steps: {stored.rows} people are left, fewer than k = {spec.k}")
    if not spec.aggregates:
        require_possible(spec, engine, folder / DATA, stored.types())
    return StepResult(
        {
            **stored.to_json(),
            "held_out": raw_data.facts["held_out"],
            "source_rows": raw_data.facts["rows"],
            "masking": [finite(dataclasses.asdict(report)) for report in reports],
        },
        stored.rows,
        {
            "lineage": Lineage("raw_data", lineage(spec, plan)),
            "steps": Markdown(table_of_reports(reports)),
            **{
                f"map_of_{'_'.join(drawn_map['columns'])}": picture(caption(drawn_map), map_chart(drawn_map))
                for drawn_map in maps
            },
        },
        {
            f"masked_{report.place}_{column}_changed".replace(".", "_"): cost.changed
            for report in reports
            for column, cost in report.costs.items()
        },
        stored.content_hash,
    )


STEP = StepDef("masked_data", ("raw_data",), frozenset({"duckdb", "parquet"}), mask_people, makes_people=True)
