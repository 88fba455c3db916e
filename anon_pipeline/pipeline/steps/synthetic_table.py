"""The synthetic table: rows drawn from the distribution that fits the noisy counts. The step reads no people."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from anon_pipeline.differential_privacy.synthesis.made_table import make_table
from anon_pipeline.differential_privacy.synthesis.stored import MEASUREMENTS
from anon_pipeline.home import write_file
from anon_pipeline.pipeline.metadata import Column, Schema
from anon_pipeline.pipeline.pages import role_of
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, StepDef, StepResult, log
from anon_pipeline.release.publish import DATA


def draw(run: Run, folder: Path, dp_measurements: Stage) -> StepResult:
    """Fit the counts, draw the rows, and hold them against the counts."""
    content = (dp_measurements.folder / MEASUREMENTS).read_bytes()
    synthetic = make_table(run.spec, content)
    pq.write_table(synthetic.table, folder / DATA, compression="zstd", row_group_size=1_000_000)
    write_file(folder / MEASUREMENTS, content)
    log.info("%s: %s synthetic rows", run.spec.dataset, f"{synthetic.table.num_rows:,}")
    columns = [Column(field.name, str(field.type), role_of(run.spec, field.name)) for field in synthetic.table.schema]
    return StepResult(
        {"rows": synthetic.table.num_rows, "quality": synthetic.quality()},
        synthetic.table.num_rows,
        {"schema": Schema(columns)},
        {"rows": synthetic.table.num_rows},
    )


STEP = StepDef("synthetic_table", ("dp_measurements",), frozenset({"parquet"}), draw)
