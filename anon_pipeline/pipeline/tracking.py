"""MLflow: one parent run per release, one child run per step, aggregates only, every run brought to an end."""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from anon_pipeline.home import Home
from anon_pipeline.pipeline.empty_database import lay_empty_database
from anon_pipeline.pipeline.moved_artifacts import follow_moved_home
from anon_pipeline.pipeline.stores import MLFLOW
from anon_pipeline.pipeline.technical_names import technical

ADDRESS = "sqlite:///"
DATASET, DAGSTER_RUN, STEP, PARENT = "dataset", "dagster_run_id", "step", "mlflow.parentRunId"


class Tracking:
    """The MLflow store of a home: SQLite, or a database of a server, and an artifact folder in the private zone."""

    def __init__(self, home: Home) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        self._folder = home.private_folder("mlflow")
        self._home = home

    @property
    def uri(self) -> str:
        """The address of the store, with the password where it has one: tell it to MLflow and to nobody else."""
        return MLFLOW.address(self._home) or f"{ADDRESS}{self._folder / 'mlflow.db'}"

    @property
    def client(self) -> Any:
        """MLflow's own client of this store."""
        return _client(self.uri, self._home)

    @contextmanager
    def step(self, dataset: str, dagster_run: str, step: str) -> Iterator[dict[str, Any]]:
        """A child run around a step; what the block puts into the yielded mapping is logged.

        Numbers become metrics, everything else tags; a name that MLflow does not take stands as it is in the tag
        `<its technical name>.name`. The parent is running while a step is, and ended between steps,
        so that a run left RUNNING belongs to a killed process; the next step of the dataset marks it KILLED.
        """
        client = _client(self.uri, self._home)
        experiment = self._experiment(client, dataset)
        self._close_abandoned(client, experiment, dagster_run)
        parent = self._parent(client, experiment, dataset, dagster_run)
        client.update_run(parent, status="RUNNING")
        tags = {DATASET: dataset, DAGSTER_RUN: dagster_run, STEP: step, PARENT: parent}
        child = client.create_run(experiment, run_name=step, tags=tags).info.run_id
        metrics: dict[str, Any] = {"mlflow_run": parent}
        status = "FAILED"
        try:
            yield metrics
            status = "FINISHED"
        finally:
            _log(client, child, parent, metrics)
            if "version" in metrics:  # known only at the end, and wanted on every step that led to it
                for run in client.search_runs([experiment], f"tags.{DAGSTER_RUN} = '{dagster_run}'"):
                    client.set_tag(run.info.run_id, "version", metrics["version"])
            client.set_terminated(child, status=status)
            client.set_terminated(parent, status=status)

    def _experiment(self, client: Any, dataset: str) -> str:
        experiment = client.get_experiment_by_name(dataset)
        if experiment is not None:
            return str(experiment.experiment_id)
        return str(client.create_experiment(dataset, artifact_location=(self._folder / "artifacts").as_uri()))

    def _parent(self, client: Any, experiment: str, dataset: str, dagster_run: str) -> str:
        runs = client.search_runs([experiment], f"tags.{DAGSTER_RUN} = '{dagster_run}' AND tags.{STEP} = 'release'")
        for run in runs:
            if PARENT not in run.data.tags:
                return str(run.info.run_id)
        tags = {DATASET: dataset, DAGSTER_RUN: dagster_run, STEP: "release"}
        return str(client.create_run(experiment, run_name=f"{dataset} release", tags=tags).info.run_id)

    def _close_abandoned(self, client: Any, experiment: str, dagster_run: str) -> None:
        for run in client.search_runs([experiment], "attributes.status = 'RUNNING'"):
            if run.data.tags.get(DAGSTER_RUN) != dagster_run:
                client.set_terminated(run.info.run_id, status="KILLED")

    def keep_model(self, name: str, model: Any, archive: Path) -> str:
        """Log a scikit-learn model under a registered name, write it to a zip archive in MLflow's format, give its URI.

        Parameters
        ----------
        name : of the registered model
        archive : a file that does not exist yet
        """
        from anon_pipeline.pipeline.tracker import mlflow

        client = _client(self.uri, self._home)
        logging.getLogger("mlflow.sklearn").setLevel(logging.ERROR)  # that pickles run code: the report says so
        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri(self.uri)
        mlflow.set_registry_uri(self.uri)
        try:
            with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
                folder = Path(scratch) / "model"
                mlflow.sklearn.save_model(model, folder, serialization_format="cloudpickle")
                shutil.make_archive(str(archive.with_suffix("")), "zip", folder)
                run = client.create_run(self._experiment(client, name), run_name="dp_model").info.run_id
                with mlflow.start_run(run_id=run):
                    logged = mlflow.sklearn.log_model(
                        model, name="model", serialization_format="cloudpickle", registered_model_name=name
                    )
        finally:
            mlflow.set_tracking_uri(before)
        return f"models:/{name}/{logged.registered_model_version}"

    def load_model(self, uri: str) -> Any:
        """A scikit-learn model logged in this store; `spec.LoggedModel` says which URIs name one."""
        from anon_pipeline.pipeline.tracker import mlflow

        _client(self.uri, self._home)  # opens the store, so that files are looked for where the home is now
        mlflow.set_tracking_uri(self.uri)
        mlflow.set_registry_uri(self.uri)  # else the environment may name another one
        return mlflow.sklearn.load_model(uri)


@cache
def _client(uri: str, home: Home) -> Any:
    """The client of a store, made once a process: it looks at the schema, and at every migration, each time."""
    from anon_pipeline.pipeline.tracker import MlflowClient

    for noisy in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    with home.lock("mlflow"):  # two processes must not create the schema at once
        if uri.startswith(ADDRESS):
            lay_empty_database(Path(uri.removeprefix(ADDRESS)))
        else:
            MLFLOW.check_answers(uri)
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
        follow_moved_home(uri, home.private / "mlflow" / "artifacts")
    return client


def _log(client: Any, child: str, parent: str, metrics: dict[str, Any]) -> None:
    """Write what a step noted to its run and to that of the release, in one transaction each."""
    from anon_pipeline.pipeline.tracker import Metric, RunTag

    now = int(time.time() * 1000)
    numbers, tags, names = [], [], []
    for metric, value in metrics.items():
        name = technical(metric)
        if name != metric:
            names.append(RunTag(f"{name}.name", metric))
        if isinstance(value, bool | int | float):
            numbers.append(Metric(name, float(value), now, 0))
        elif value is not None and name != "mlflow_run":
            tags.append(RunTag(name, str(value)))
    client.log_batch(child, numbers, tags=[*names, *tags])
    client.log_batch(parent, numbers, tags=tags)
