"""MLflow's runs: one parent run per release and one child run per step, with aggregates only; every run is ended."""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.stores import MLFLOW
from anon_pipeline.pipeline.technical_names import technical
from anon_pipeline.pipeline.tracking.empty_database import lay_empty_database, write_ahead
from anon_pipeline.pipeline.tracking.moved_artifacts import follow_moved_home

ADDRESS = "sqlite:///"
#: Tag of an experiment, so that MLflow shows the pages for models and not those for conversations.
KIND = {"mlflow.experimentKind": "custom_model_development"}
DATASET, DAGSTER_RUN, STEP, PARENT = "dataset", "dagster_run_id", "step", "mlflow.parentRunId"

#: The sentence about records whose schema is older or newer than that of the installed libraries.
OTHER_SCHEMA = (
    "Dagster's or MLflow's records have the schema of another version; after an upgrade run `python -m "
    "anon_pipeline.pipeline.upgrade`; after a return to a former version move private/dagster or private/mlflow away, "
    "whose records then begin anew"
)


@dataclass(frozen=True)
class Tracking:
    """The MLflow store of a home: SQLite, or a database of a server, and an artifact folder in the private zone."""

    home: Home

    def __post_init__(self) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

    @property
    def _folder(self) -> Path:
        return self.home.private_folder("mlflow")

    @property
    def uri(self) -> str:
        """The address of the store, with the password if it has one: pass it to MLflow only."""
        return MLFLOW.address(self.home) or f"{ADDRESS}{self._folder / 'mlflow.db'}"

    @property
    def client(self) -> Any:
        """MLflow's own client of this store."""
        return _client(self.uri, self.home)

    @contextmanager
    def step(
        self, dataset: str, dagster_run: str, step: str, parameters: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """A child run around a step; the items that the block puts into the yielded mapping are logged.

        Numbers become metrics, everything else tags. If MLflow does not accept a name, the tag
        `<its technical name>.name` holds the original. The parent run has the parameters, and only those figures that
        `tracked_release` logs. It is RUNNING while a step is running, and ended between steps. So a run that stays
        RUNNING belongs to a killed process, and the next run of the dataset marks it KILLED.
        """
        client = self.client
        experiment, parent = _of_release(self, client, dataset, dagster_run, tuple((parameters or {}).items()))
        client.update_run(parent, status="RUNNING")
        tags = {DATASET: dataset, DAGSTER_RUN: dagster_run, STEP: step, PARENT: parent}
        child = client.create_run(experiment, run_name=step, tags=tags).info.run_id
        metrics: dict[str, Any] = {"mlflow_run": parent}
        status = "FAILED"
        try:
            yield metrics
            status = "FINISHED"
        finally:
            _log(client, child, metrics)
            if "version" in metrics:  # known only at the end, but every step that led to it should have it
                for run in client.search_runs([experiment], f"tags.{DAGSTER_RUN} = '{dagster_run}'"):
                    client.set_tag(run.info.run_id, "version", metrics["version"])
            client.set_terminated(child, status=status)
            client.set_terminated(parent, status=status)

    def experiment(self, dataset: str) -> str:
        """The id of a dataset's experiment, which is created if it does not exist."""
        client = self.client
        experiment = client.get_experiment_by_name(dataset)
        if experiment is not None:
            return str(experiment.experiment_id)
        return str(client.create_experiment(dataset, self.artifacts(dataset).as_uri(), tags=KIND))

    def artifacts(self, dataset: str) -> Path:
        """The folder of the files that a dataset's runs log besides figures."""
        return self._folder / "artifacts" / dataset

    def load_model(self, uri: str) -> Any:
        """A scikit-learn model logged in this store; `spec.LoggedModel` says which URIs name one.

        Raises
        ------
        InputError
            If there is none, or its file has been removed.
        """
        from anon_pipeline.pipeline.tracking.mlflow_client import MlflowException, mlflow

        _client(self.uri, self.home)  # opens the store, so that paths of a moved home are corrected
        mlflow.set_tracking_uri(self.uri)
        mlflow.set_registry_uri(self.uri)  # otherwise the environment may name another one
        try:
            return mlflow.sklearn.load_model(uri)
        except (OSError, MlflowException):
            raise InputError(
                f"guide.model.mlflow: {uri} is not in the home's MLflow store, or its file was removed since, as that "
                "of a guide is when a later run logs the next version; `anon-pipeline experiments` shows what there is"
            ) from None


@lru_cache(maxsize=16)
def _of_release(
    tracking: Tracking, client: Any, dataset: str, dagster_run: str, parameters: tuple[tuple[str, str], ...]
) -> tuple[str, str]:
    """The ids of the experiment and of the parent run, cached so that the steps of a release need not search again.

    The first call also ends runs that killed processes left RUNNING.
    """
    from anon_pipeline.pipeline.tracking.mlflow_client import Param

    experiment = tracking.experiment(dataset)
    for run in client.search_runs([experiment], "attributes.status = 'RUNNING'"):
        if run.data.tags.get(DAGSTER_RUN) != dagster_run:
            client.set_terminated(run.info.run_id, status="KILLED")
    runs = client.search_runs([experiment], f"tags.{DAGSTER_RUN} = '{dagster_run}' AND tags.{STEP} = 'release'")
    for run in runs:
        if PARENT not in run.data.tags:
            return experiment, str(run.info.run_id)
    tags = {DATASET: dataset, DAGSTER_RUN: dagster_run, STEP: "release"}
    parent = str(client.create_run(experiment, run_name=f"{dataset} release", tags=tags).info.run_id)
    client.log_batch(parent, params=[Param(parameter, value) for parameter, value in parameters])
    return experiment, parent


@cache
def _client(uri: str, home: Home) -> Any:
    """The client of a store, made once per process, since making one checks the schema and all migrations."""
    from anon_pipeline.pipeline.tracking.mlflow_client import MlflowClient, MlflowException

    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # it raises, and writes the traceback too
    logging.getLogger("mlflow.sklearn").setLevel(logging.ERROR)  # it warns that pickles run code, as the docs do
    with home.lock("mlflow"):  # two processes must not create the schema at once
        if uri.startswith(ADDRESS):
            lay_empty_database(Path(uri.removeprefix(ADDRESS)))
            write_ahead(Path(uri.removeprefix(ADDRESS)))
        else:
            MLFLOW.check_answers(uri)
        try:
            client = MlflowClient(uri, uri)  # otherwise it may use the registry of another home
            client.search_experiments(max_results=1)
        except MlflowException as error:
            if "out-of-date database schema" not in str(error):
                raise
            raise InputError(f"{home.root}: {OTHER_SCHEMA}") from None
        follow_moved_home(uri, home.private / "mlflow" / "artifacts")
    return client


def _log(client: Any, child: str, metrics: dict[str, Any]) -> None:
    """Write the metrics of a step to its run, in one transaction."""
    from anon_pipeline.pipeline.tracking.mlflow_client import Metric, RunTag

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
