"""The source of a synthetic release: it exists and has the columns of the spec. No person is read or copied."""

from __future__ import annotations

from pathlib import Path

from anon_pipeline.differential_privacy import reading
from anon_pipeline.engine.sources import require_there
from anon_pipeline.pipeline.step import Run, StepDef, StepResult
from anon_pipeline.release.spec_folders import require_one_dataset


def look_at_header(run: Run, _folder: Path) -> StepResult:
    """Find out that the source can be opened, before anything is reserved of the budget."""
    spec = run.spec
    require_there(spec)
    require_one_dataset(run.home, spec)
    reading.check_header(run.engine, reading.readable(spec), "source.path")
    return StepResult(metadata={"source": spec.source.path, "columns": len(spec.columns)})


STEP = StepDef("raw_data", (), frozenset({"duckdb"}), look_at_header, reads_source=True)
