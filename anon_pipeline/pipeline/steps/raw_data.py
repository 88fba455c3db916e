"""The people of the source, typed as the spec says and stored without excluded columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from anon_pipeline.audit.people import control_people
from anon_pipeline.engine import found_types
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.engine.durations import require_stated_units
from anon_pipeline.engine.parquet_files import empty_columns, unread_tables
from anon_pipeline.engine.quoting import rows_within_fields
from anon_pipeline.engine.sources import kind_of
from anon_pipeline.engine.stored_kinds import kinds_of
from anon_pipeline.errors import number_of
from anon_pipeline.masking.step_keys import secrets_of
from anon_pipeline.pipeline.checks.possible import require_possible
from anon_pipeline.pipeline.metadata import Column, Schema
from anon_pipeline.pipeline.pages import role_of
from anon_pipeline.pipeline.step import Run, StepDef, StepResult, log
from anon_pipeline.release.promises import require_an_answer
from anon_pipeline.release.publish import CONTROL, DATA
from anon_pipeline.release.spec_folders import require_one_dataset
from anon_pipeline.spec import ImportedModel, ReleaseSpec
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
    units = require_stated_units(spec)  # after everything else that may be wrong with the source
    read, held_out, narrowed = stored.content_hash, 0, dict[str, str]()
    kinds = kinds_of(folder / DATA)
    if spec.audit.enabled and spec.audit.control == "held_out":
        everybody = stored
        stored, narrowed = _hold_out(run, folder, everybody)
        held_out = everybody.rows - stored.rows
    if not spec.masks:
        require_possible(spec, engine, folder / DATA, stored.types())
    log.info("%s: %s people, %s columns", spec.dataset, f"{stored.rows:,}", len(stored.columns))
    _warn(run, folder, units)
    facts = {**stored.to_json(), "held_out": held_out, "read": read, "kinds": kinds, "narrowed": narrowed}
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


def _warn(run: Run, folder: Path, units: dict[str, str]) -> None:
    """Tell what may be a mistake in the source: nobody looks at the table that a schedule reads."""
    spec = run.spec
    if units:
        log.warning(
            "%s: durations are released as whole numbers, which are others where a later table has another unit; so "
            "that such a table is refused, write %s",
            spec.dataset,
            ", ".join(f"columns.{name}.unit: {unit}" for name, unit in units.items()),
        )
    if empty := empty_columns(folder / DATA):
        log.warning(
            "%s: no row has a value of %s; if that is a mistake in the source, withdraw the release of this run",
            spec.dataset,
            ", ".join(empty),
        )
    if lines := _rows_within_fields(spec):
        log.warning(
            "%s: %s of %s within a quoted field, and look like rows: if a quote was never closed, as many people are "
            "missing; close it, or double it where it belongs to the text",
            spec.dataset,
            number_of(lines, "line", "lines"),
            f"{spec.source.path} {'stands' if lines == 1 else 'stand'}",
        )
    if spec.source.is_file and spec.source_path.is_dir() and (unread := unread_tables(spec.source_path)):
        log.warning(
            "%s: of the folder %s only files whose names end in .parquet are read, and not %s",
            spec.dataset,
            spec.source.path,
            ", ".join(unread[:3]) + (f" and {len(unread) - 3} more" if len(unread) > 3 else ""),
        )


def _rows_within_fields(spec: ReleaseSpec) -> int:
    """How many lines of a text file of this machine lie within a quoted field and look like rows."""
    source, path = spec.source, spec.source_path
    is_one = source.is_file and path.is_file() and kind_of(path) == "csv"
    return rows_within_fields(source, path, source.path) if is_one else 0


STEP = StepDef("raw_data", (), frozenset({"duckdb", "parquet"}), store_source, makes_people=True, reads_source=True)


def _hold_out(run: Run, folder: Path, read: SourceFacts) -> tuple[SourceFacts, dict[str, str]]:
    """Keep the control people of the audit out of the release: they are moved to a separate file.

    Returns the facts about those who stay, and the columns that have another type without the others.
    """
    spec, engine, types = run.spec, run.engine, read.types()
    batches = engine.batches(folder / DATA, spec, types, ())
    hashes = np.concatenate([np.repeat(batch.hash, batch.people) for batch in batches])
    drawn, people = np.unique(hashes[control_people(hashes, spec, run.key)], return_counts=True)
    chosen = dict(zip(drawn.tolist(), people.tolist(), strict=True))
    everybody = folder / "everybody.parquet"
    (folder / DATA).rename(everybody)
    engine.hold_out(everybody, spec, chosen, folder / DATA, folder / CONTROL)
    everybody.unlink()
    narrowed = found_types.narrow(folder / DATA, found_types.typed_by_values(spec, read), folder / CONTROL)
    stored = engine.describe(folder / DATA, spec, types).typed_by_values(read.by_values)
    return replace(stored, table=read.table, left_out=read.left_out), narrowed
