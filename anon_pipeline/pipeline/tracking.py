"""MLflow: one parent run per release, one child run per step, aggregates only, every run brought to an end."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anon_pipeline.home import Home
from anon_pipeline.pipeline.technical_names import technical

DATASET, DAGSTER_RUN, STEP, PARENT = "dataset", "dagster_run_id", "step", "mlflow.parentRunId"


class Tracking:
    """The MLflow store of a home: SQLite and an artifact folder in the private zone."""

    def __init__(self, home: Home) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        self._folder = home.private_folder("mlflow")
        self._home = home

    @property
    def uri(self) -> str:
        return f"sqlite:///{self._folder / 'mlflow.db'}"

    def _client(self) -> Any:
        from mlflow import MlflowClient

        for noisy in ("alembic", "mlflow.store.db.utils"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        with self._home.lock("mlflow"):  # two processes must not create the schema at once
            client = MlflowClient(tracking_uri=self.uri)
            client.search_experiments(max_results=1)
        return client

    @contextmanager
    def step(self, dataset: str, dagster_run: str, step: str) -> Iterator[dict[str, Any]]:
        """A child run around a step; what the block puts into the yielded mapping is logged.

        Numbers become metrics, everything else tags; a name that MLflow does not take stands as it is in the tag
        `<its technical name>.name`. The parent is running while a step is, and ended between steps,
        so that a run left RUNNING belongs to a killed process; the next step of the dataset marks it KILLED.
        """
        client = self._client()
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
            for said, value in metrics.items():
                name = technical(said)
                if name != said:
                    client.set_tag(child, f"{name}.name", said)
                if isinstance(value, bool | int | float):
                    client.log_metric(child, name, float(value))
                    client.log_metric(parent, name, float(value))
                elif value is not None and name != "mlflow_run":
                    client.set_tag(child, name, str(value))
                    client.set_tag(parent, name, str(value))
            if "version" in metrics:  # known only at the end, and wanted on every step that led to it
                for run in client.search_runs([experiment], f"tags.{DAGSTER_RUN} = '{dagster_run}'"):
                    client.set_tag(run.info.run_id, "version", metrics["version"])
            client.set_terminated(child, status=status)
            client.set_terminated(parent, status=status)

    def _experiment(self, client: Any, dataset: str) -> str:
        found = client.get_experiment_by_name(dataset)
        if found is not None:
            return str(found.experiment_id)
        return str(client.create_experiment(dataset, artifact_location=(self._folder / "artifacts").as_uri()))

    def _parent(self, client: Any, experiment: str, dataset: str, dagster_run: str) -> str:
        found = client.search_runs([experiment], f"tags.{DAGSTER_RUN} = '{dagster_run}' AND tags.{STEP} = 'release'")
        for run in found:
            if PARENT not in run.data.tags:
                return str(run.info.run_id)
        tags = {DATASET: dataset, DAGSTER_RUN: dagster_run, STEP: "release"}
        return str(client.create_run(experiment, run_name=f"{dataset} release", tags=tags).info.run_id)

    def _close_abandoned(self, client: Any, experiment: str, dagster_run: str) -> None:
        for run in client.search_runs([experiment], "attributes.status = 'RUNNING'"):
            if run.data.tags.get(DAGSTER_RUN) != dagster_run:
                client.set_terminated(run.info.run_id, status="KILLED")

    def load_model(self, uri: str) -> Any:
        """A scikit-learn model logged in this store; `spec.LoggedModel` says which URIs name one."""
        import mlflow

        mlflow.set_tracking_uri(self.uri)
        mlflow.set_registry_uri(self.uri)  # else the environment may name another one
        return mlflow.sklearn.load_model(uri)
