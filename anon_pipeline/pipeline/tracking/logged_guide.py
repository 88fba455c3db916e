"""The guide in MLflow: a logged, registered model with a signature, so that a later spec can name it.

A fitted model may reveal people, so it stays in the private zone and has no rows as an example. Only the last version
of each dataset's guide keeps its file, just as every step keeps only its last result.
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
from anon_pipeline.pipeline.tracking.registered_model import register, requirements
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.spec import ColumnType

#: The file that holds the model itself, as MLflow names it.
PICKLE = "model.pkl"
#: Mark in the description of a model: it was made by this module, and may reveal people.
MADE_OF_PEOPLE = "anon_pipeline_guide"
#: The folder into which a model is written before MLflow copies it.
SCRATCH = "guide"
#: Tag of a version whose file was removed.
REMOVED = "file_removed"
ENVIRONMENT = "python_env.yaml"


def name_of(dataset: str) -> str:
    """The name of the registered model of a dataset's guide, which is not a possible name of a dataset."""
    return f"{dataset}-guide"


def keep_guide(tracking: Tracking, dataset: str, run: str, model: FittedModel, types: Mapping[str, ColumnType]) -> str:
    """Log the guide under its parent run, register it and remove the files of former versions; returns its URI.

    Parameters
    ----------
    run : the parent run of the release
    types : types of the model's input columns
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
            file.unlink(missing_ok=True)
    for former in client.search_model_versions(f"name = '{kept.name}'"):
        if str(former.version) != kept.version and REMOVED not in former.tags:
            client.set_model_version_tag(kept.name, former.version, REMOVED, f"when version {kept.version} was logged")
    return kept.uri


def guides_in(artifacts: Path) -> list[Path]:
    """The folders of fitted guides among a dataset's artifacts, also those that a killed process left incomplete.

    Other models that somebody logged to the experiment are not included.
    """
    files = [*artifacts.glob(f"models/*/artifacts/{PICKLE}"), *artifacts.glob(f".{SCRATCH}.*/model/{PICKLE}")]
    return [file for file in files if MADE_OF_PEOPLE in _description(file.with_name("MLmodel"))]


def _write(model: FittedModel, types: Mapping[str, ColumnType], folder: Path) -> None:
    """Write the model as a folder in MLflow's format (https://mlflow.org/docs/latest/ml/model/#storage-format).

    `mlflow.sklearn.save_model` first reads files of every installed package, which takes 0.3 s of processor time.
    """
    from anon_pipeline.pipeline.tracking.mlflow_client import mlflow

    folder.mkdir()
    (folder / PICKLE).write_bytes(pickle.dumps(model.estimator))
    (folder / "requirements.txt").write_text("\n".join(requirements()) + "\n")
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
    """The signature: the model's input columns and its output."""
    from anon_pipeline.pipeline.tracking.mlflow_client import ColSpec, ModelSignature, Schema

    columns = [
        ColSpec("string" if types[name] is ColumnType.CATEGORICAL else "double", name, required=False)
        for name in model.features
    ]
    answers = "string" if model.task is Task.CLASSIFICATION else "double"
    return ModelSignature(Schema(columns), Schema([ColSpec(answers)]))


def _description(file: Path) -> str:
    """MLflow's description of a model; if it was killed before writing that, the description for a guide's files."""
    return (file.read_text(encoding="utf-8") if file.is_file() else "") or MADE_OF_PEOPLE
