"""A model of the target, from the noisy counts or trained on synthetic rows. It costs no budget and reads no people.

It is published in MLflow's format with the release, and logged in the home's store, so that it can be the guide of a
grouped release. There, fitting does not change it, so that its predictions are still differentially private.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anon_pipeline.differential_privacy.synthesis.made_table import make_table
from anon_pipeline.differential_privacy.synthesis.models import model_of
from anon_pipeline.differential_privacy.synthesis.stored import MEASUREMENTS
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, StepDef, StepResult
from anon_pipeline.pipeline.tracking.registered_model import keep_dp_model
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.spec import PublishedModel

ARCHIVE = "model.zip"


def train(run: Run, folder: Path, dp_measurements: Stage, synthetic_table: Stage) -> StepResult:  # noqa: ARG001
    """Make the model and keep it in MLflow's format."""
    synthetic = make_table(run.spec, (dp_measurements.folder / MEASUREMENTS).read_bytes())
    model = model_of(run.spec, synthetic)
    uri = keep_dp_model(Tracking(run.home), run.spec.dataset, model, folder / ARCHIVE)
    kind = (run.spec.model or PublishedModel()).kind
    facts: dict[str, Any] = {"kind": kind, "target": run.spec.target, "features": run.spec.features}
    return StepResult(facts | {"logged": uri}, metadata={"model": uri, "kind": kind}, metrics={"model": uri})


STEP = StepDef("dp_model", ("dp_measurements", "synthetic_table"), frozenset({"scikitlearn", "mlflow"}), train)
