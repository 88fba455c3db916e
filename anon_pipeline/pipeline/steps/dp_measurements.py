"""The noisy counts of the source: the only step of a synthetic release that reads people."""

from __future__ import annotations

from pathlib import Path

from anon_pipeline.differential_privacy.synthesis.made_table import measure_people, protection
from anon_pipeline.differential_privacy.synthesis.stored import MEASUREMENTS
from anon_pipeline.home import write_file
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, StepDef, StepResult, log


def measure(run: Run, folder: Path, raw_data: Stage) -> StepResult:  # noqa: ARG001 - the source is read from where it lies
    """Reserve the cost, count with noise, and keep what came out; what was measured before is taken again for nothing.

    No exact figure leaves this function: not the number of rows, not a hash of the source, not how long it took.
    """
    content, new = measure_people(run.engine, run.spec, run.home, run.key)
    write_file(folder / MEASUREMENTS, content)
    privacy = protection(run.spec, content)
    spent = "spent now" if new else "measured before, nothing spent"
    log.info("%s: epsilon %.4g at delta %.2g, %s", run.spec.dataset, privacy["epsilon"], privacy["delta"], spent)
    figures = {"epsilon": privacy["epsilon"], "rho": privacy["rho"], "delta": privacy["delta"]}
    return StepResult(
        {"new": new},
        metadata={**figures, "subject": privacy["subject"], "measurements": len(privacy["mechanisms"]), "spent": spent},
        metrics=figures,
    )


STEP = StepDef("dp_measurements", ("raw_data",), frozenset({"duckdb"}), measure)
