"""The guide as MLflow keeps it: a logged, registered model with a signature, so that a later spec can name it.

A fitted model is made of people: it stays in the private zone, and has no rows as an example. Of each dataset only the
last version keeps its file, as every step keeps its last result only.
"""

from __future__ import annotations

import pickle
import platform
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anon_pipeline.home import remove_leftovers
from anon_pipeline.learning.guide import FittedModel
from anon_pipeline.learning.models import Task
from anon_pipeline.pipeline.tracking.registered_model import register
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.spec import ColumnType

#: The file that holds the model itself, as MLflow names it.
PICKLE = "model.pkl"
#: In the description of a model: it was made by this module, and may know people.
MADE_OF_PEOPLE = "anon_pipeline_guide"
#: Folders that a model is written into before MLflow copies it.
SCRATCH = "guide"
#: On a version whose file is gone.
REMOVED = "file_removed"
#: What a guide needs to be loaded. MLflow would find out by loading it in a process of its own, which takes seconds.
REQUIREMENTS = ("anon-pipeline", "mlflow", "numpy", "pandas", "scikit-learn")
ENVIRONMENT = "python_env.yaml"


def name_of(dataset: str) -> str:
    """The registered model of a dataset's guide; no dataset is called so."""
    return f"{dataset}-guide"


def keep_guide(tracking: Tracking, dataset: str, run: str, model: FittedModel, types: Mapping[str, ColumnType]) -> str:
    """Log the guide under its parent run, register it, remove the files of former versions, and give its URI.

    Parameters
    ----------
    run : the parent run of the release
    types : of the columns that the model looks at
    """
    client, artifacts = tracking.client, tracking.artifacts(dataset)
    artifacts.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_leftovers(artifacts, SCRATCH)
    with tempfile.TemporaryDirectory(prefix=f".{SCRATCH}.", dir=artifacts) as scratch:
        folder = Path(scratch) / "model"
        _write(model, types, folder)
        kept = register(tracking, folder, name_of(dataset), dataset, run, {"model": model.name})
    for file in guides_in(artifacts):
        if kept.model_id not in file.parts:
            file.unlink()
    for former in client.search_model_versions(f"name = '{kept.name}'"):
        if str(former.version) != kept.version and REMOVED not in former.tags:
            client.set_model_version_tag(kept.name, former.version, REMOVED, f"when version {kept.version} was logged")
    return kept.uri


def guides_in(artifacts: Path) -> list[Path]:
    """The files of fitted guides among a dataset's artifacts, also what a killed process has left of one.

    Other models that somebody logged to the experiment are not among them.
    """
    files = artifacts.glob(f"models/*/artifacts/{PICKLE}")
    return [file for file in files if MADE_OF_PEOPLE in _description(file.with_name("MLmodel"))]


def _write(model: FittedModel, types: Mapping[str, ColumnType], folder: Path) -> None:
    """The model as a folder in MLflow's format (https://mlflow.org/docs/latest/ml/model/#storage-format).

    `mlflow.sklearn.save_model` looks at the files of every installed package first, which takes .3 s of the processor.
    """
    from anon_pipeline.pipeline.tracking.mlflow_client import mlflow

    folder.mkdir()
    (folder / PICKLE).write_bytes(pickle.dumps(model.estimator))
    requirements = [f"{package}=={version(package)}" for package in REQUIREMENTS]
    (folder / "requirements.txt").write_text("\n".join(requirements) + "\n")
    (folder / ENVIRONMENT).write_text(f"python: {platform.python_version()}\ndependencies:\n- -r requirements.txt\n")
    description = mlflow.models.Model(signature=_signature(model, types), metadata={MADE_OF_PEOPLE: True})
    mlflow.pyfunc.add_to_model(
        description, loader_module="mlflow.sklearn", model_path=PICKLE, predict_fn="predict", python_env=ENVIRONMENT
    )
    description.add_flavor(
        "sklearn",
        pickled_model=PICKLE,
        serialization_format="pickle",
        sklearn_version=version("scikit-learn"),
        code=None,
    )
    description.save(str(folder / "MLmodel"))


def _signature(model: FittedModel, types: Mapping[str, ColumnType]) -> Any:
    """The columns that the model looks at, and what it says."""
    from anon_pipeline.pipeline.tracking.mlflow_client import ColSpec, ModelSignature, Schema

    columns = [
        ColSpec("string" if types[name] is ColumnType.CATEGORICAL else "double", name, required=False)
        for name in model.features
    ]
    answers = "string" if model.task is Task.CLASSIFICATION else "double"
    return ModelSignature(Schema(columns), Schema([ColSpec(answers)]))


def _description(file: Path) -> str:
    """What MLflow wrote of a model; where it was killed before, what the files of a guide say."""
    return file.read_text(encoding="utf-8") if file.is_file() else MADE_OF_PEOPLE
