"""The people after masking, column by column, as the steps of the spec say."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.pipeline.checks.possible import require_possible
from anon_pipeline.pipeline.masking import lineage, mask_stored, repeating_tokens, table_of_reports
from anon_pipeline.pipeline.metadata import Lineage, Markdown, picture
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, StepDef, StepResult, log
from anon_pipeline.plain_json import finite
from anon_pipeline.release.publish import DATA
from anon_pipeline.report.masking_map import caption, map_chart


def mask_people(run: Run, folder: Path, raw_data: Stage) -> StepResult:
    """Write the masked people into `data.parquet`."""
    spec, engine = run.spec, run.engine
    source = SourceFacts.from_json(raw_data.facts)
    masked = mask_stored(run, source, raw_data.folder / DATA, folder / DATA)
    plan, reports = masked.plan, masked.reports
    stored = masked.stored.typed_by_values(source.by_values)
    if not spec.aggregates:
        require_possible(spec, engine, folder / DATA, stored.types())
        if names := repeating_tokens(spec, stored):
            log.warning(
                "%s: tokens of %s stand in several rows each; where a token is a person's, k rows are fewer than k "
                "people, and readers see which: keep one row a person, or leave the column out",
                spec.dataset,
                ", ".join(names),
            )
    return StepResult(
        {
            **stored.to_json(),
            "held_out": raw_data.facts["held_out"],
            "source_rows": raw_data.facts["rows"],
            "narrowed": masked.narrowed,
            "masking": [finite(dataclasses.asdict(report)) for report in reports],
        },
        stored.rows,
        {
            "lineage": Lineage("raw_data", lineage(spec, plan)),
            "steps": Markdown(table_of_reports(reports)),
            **{
                f"map_of_{'_'.join(drawn_map['columns'])}": picture(caption(drawn_map), map_chart(drawn_map))
                for drawn_map in masked.maps
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
