"""The people of the source, typed as the spec says and stored without excluded columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from anon_pipeline.audit.people import control_people
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.engine.stored_kinds import kinds_of
from anon_pipeline.masking.step_keys import secrets_of
from anon_pipeline.pipeline.checks.possible import require_possible
from anon_pipeline.pipeline.metadata import Column, Schema
from anon_pipeline.pipeline.pages import role_of
from anon_pipeline.pipeline.step import Run, StepDef, StepResult, log
from anon_pipeline.release.promises import require_an_answer
from anon_pipeline.release.publish import CONTROL, DATA
from anon_pipeline.release.spec_folders import require_one_dataset
from anon_pipeline.spec import ColumnType, ImportedModel
from anon_pipeline.spec.permission import require_code


def store_source(run: Run, folder: Path) -> StepResult:
    """Read the source into `data.parquet`, and the control people of the audit, if held out, into `control.parquet`."""
    spec, engine = run.spec, run.engine
    secrets_of(spec)  # a missing key, or code that is not allowed, is reported before anything is read
    if isinstance(spec.guide.model, ImportedModel):
        require_code("guide.model.import", spec.guide.model.import_)
    if not spec.source_path.is_relative_to(spec.folder):
        log.info("%s: the source lies outside of the spec's folder: %s", spec.dataset, spec.source_path)
    require_an_answer(run.home, spec)
    require_one_dataset(run.home, spec)
    stored = engine.store_source(spec, folder / DATA)
    read, held_out = stored.content_hash, 0
    if spec.audit.enabled and spec.audit.control == "held_out":
        everybody = stored
        stored = replace(_hold_out(run, folder, stored.types()), table=everybody.table, left_out=everybody.left_out)
        held_out = everybody.rows - stored.rows
    if not spec.masks:
        require_possible(spec, engine, folder / DATA, stored.types())
    log.info("%s: %s people, %s columns", spec.dataset, f"{stored.rows:,}", len(stored.columns))
    facts = {**stored.to_json(), "held_out": held_out, "read": read, "kinds": kinds_of(folder / DATA)}
    return StepResult(
        facts,
        stored.rows,
        {
            "schema": Schema(
                [Column(column.name, column.storage, role_of(spec, column.name)) for column in stored.columns]
            ),
            "source": spec.source.path,
            "content_hash": stored.content_hash,
        },
        {"people": stored.rows},
        stored.content_hash,
    )


STEP = StepDef("raw_data", (), frozenset({"duckdb", "parquet"}), store_source, makes_people=True, reads_source=True)


def _hold_out(run: Run, folder: Path, types: dict[str, ColumnType]) -> SourceFacts:
    """Keep the control people of the audit out of the release: they are moved to a separate file."""
    spec, engine = run.spec, run.engine
    batches = engine.batches(folder / DATA, spec, types, ())
    hashes = np.concatenate([np.repeat(batch.hash, batch.people) for batch in batches])
    chosen = np.unique(hashes[control_people(hashes, spec, run.key)])
    everybody = folder / "everybody.parquet"
    (folder / DATA).rename(everybody)
    engine.hold_out(everybody, spec, chosen, folder / DATA, folder / CONTROL)
    everybody.unlink()
    return engine.describe(folder / DATA, spec, types)
