"""Registers a model in MLflow's format as a version of a registered model, by calls that name the store and the run.

MLflow's own `log_model` takes store and run from the state of the process, and fails if calling code has a run open.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anon_pipeline.pipeline.tracking.runs import Tracking

#: Packages that loading a model of ours needs. MLflow would detect them by loading it in a new process, which takes
#: seconds.
REQUIREMENTS = ("anon-pipeline", "mlflow", "numpy", "pandas", "scikit-learn")


def requirements(*more: str) -> list[str]:
    """The packages of `REQUIREMENTS` and more, each with the version that is installed, as a pip file lists them."""
    return [f"{package}=={version(package)}" for package in (*REQUIREMENTS, *more)]


@dataclass(frozen=True)
class RegisteredModel:
    """One version of a registered model, with the id of the logged model that holds its files."""

    name: str
    version: str
    model_id: str

    @property
    def uri(self) -> str:
        """The URI by which a spec names it."""
        return f"models:/{self.name}/{self.version}"


def register(
    tracking: Tracking, folder: Path, name: str, dataset: str, run: str, parameters: dict[str, str]
) -> RegisteredModel:
    """Log the model in a folder of MLflow's format, and make it the next version of a registered model.

    Parameters
    ----------
    name : name of the registered model
    dataset : the dataset whose experiment holds the run
    run : id of the run that made the model
    parameters : the model's parameters, which MLflow shows beside it
    """
    from anon_pipeline.pipeline.tracking.mlflow_client import LoggedModelOutput, MlflowException

    client = tracking.client
    logged = client.create_logged_model(
        tracking.experiment(dataset), name="model", source_run_id=run, params=parameters
    )
    client.log_model_artifacts(logged.model_id, str(folder))
    client.finalize_logged_model(logged.model_id, "READY")
    client.log_outputs(run, [LoggedModelOutput(logged.model_id, step=0)])
    try:
        client.create_registered_model(name)
    except MlflowException:
        client.get_registered_model(name)  # it exists already
    version = client.create_model_version(name, logged.artifact_location, run_id=run, model_id=logged.model_id)
    return RegisteredModel(name, str(version.version), str(logged.model_id))


def keep_dp_model(tracking: Tracking, dataset: str, model: Any, archive: Path) -> str:
    """Write a scikit-learn model to a zip archive in MLflow's format and register it; returns its URI.

    Parameters
    ----------
    archive : a file that does not exist yet
    """
    from anon_pipeline.pipeline.tracking.mlflow_client import mlflow

    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        folder = Path(scratch) / "model"
        mlflow.sklearn.save_model(
            model,
            folder,
            serialization_format="cloudpickle",
            pip_requirements=requirements("cloudpickle"),
        )
        shutil.make_archive(str(archive.with_suffix("")), "zip", folder)
        run = tracking.client.create_run(tracking.experiment(dataset), run_name="dp_model").info.run_id
        status = "FAILED"
        try:
            registered = register(tracking, folder, dataset, dataset, run, {"model": type(model).__name__})
            status = "FINISHED"
        finally:
            tracking.client.set_terminated(run, status=status)
    return registered.uri
