"""Pruning: removes ended runs from Dagster and MLflow, and results of steps that no longer exist from the private zone.

Never removed are: released files, the ledger and the release history; queued and running runs; the newest runs of each
job; the run of each current release; the last run of each schedule and sensor, and the runs that the sensor of a source
reads; the runs whose results Dagster shows as the latest; the newest versions of a registered model and those with an
alias. While a run or a step of a dataset is running, its stored results are left alone.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import dagster as dg
from dagster._core.storage.runs.schema import RunTagsTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage
from filelock import Timeout

from anon_pipeline.errors import Unavailable
from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation import alerts
from anon_pipeline.pipeline.automation.operations import Keep
from anon_pipeline.pipeline.automation.past_runs import ENOUGH
from anon_pipeline.pipeline.automation.retention import Removal, remove_older, remove_stage
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.run_tags import CONTENT_TAG, DATASET_TAG, POLICY_TAG
from anon_pipeline.pipeline.tracking.runs import DAGSTER_RUN, PARENT, Tracking
from anon_pipeline.spec import ReleaseSpec

_STATUS = dg.DagsterRunStatus
ENDED = (_STATUS.SUCCESS, _STATUS.FAILURE, _STATUS.CANCELED)
#: Tags by which schedules and sensors find their own runs: the last run of each value stays.
STARTERS = ("dagster/sensor_name", "dagster/schedule_name")
#: Runs that are read at once.
PAGE = 200


@dataclass(frozen=True)
class Pruned:
    """What was removed, or what a dry pruning would remove.

    Attributes
    ----------
    runs, tracked_runs : runs of Dagster and of MLflow
    results : stored results of steps that are in no graph any more, as dataset/step
    files : tracebacks, spilled files and records of alerts
    in_use : datasets whose stored results were left alone because a run or a step of them is running
    """

    runs: int = 0
    tracked_runs: int = 0
    results: list[str] = field(default_factory=list)
    files: int = 0
    in_use: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        removed = ", ".join(self.results) or "no stored result"
        waits = f"; left alone, since in use: {', '.join(self.in_use)}" if self.in_use else ""
        return (
            f"{self.runs:,} runs of Dagster, {self.tracked_runs:,} of MLflow, {removed}, "
            f"{self.files:,} stories of errors, spilled files and records of alerts{waits}"
        )


@dataclass(frozen=True)
class Pruning:
    """A pruning of a home.

    Attributes
    ----------
    specs : specs of the datasets whose stored results are pruned
    dry : whether to report only and remove nothing
    now : seconds since 1970
    """

    home: Home
    keep: Keep
    specs: Sequence[ReleaseSpec] = ()
    dry: bool = False
    now: float = field(default_factory=time.time)

    @property
    def before(self) -> float:
        """Runs that ended before this moment are old; seconds since 1970."""
        return self.now - self.keep.older_than.total_seconds()

    def prune(self, instance: dg.DagsterInstance) -> Pruned:
        """Remove old, unused runs, results and files; waits until another pruning has ended.

        Raises
        ------
        Unavailable
            Where something cannot be removed.
        """
        with self.home.lock("prune"):
            named = set(_runs_of_standing_releases(self.home))
            runs = self._prune_runs(instance, named)
            tracked = self._prune_tracked(instance, named)
            removal = Removal()
            results, in_use = self._prune_results(removal)
            files = self._prune_files(removal)
            removal.require_complete()
            return Pruned(runs, tracked, results, files, in_use)

    def _prune_runs(self, instance: dg.DagsterInstance, named: set[str]) -> int:
        records = list(_ended(instance))
        kept = named | _latest_of_assets(instance) | _relied_on(records, self.keep.keep)
        old = [
            record
            for record in records
            if record.dagster_run.run_id not in kept
            and (record.end_time or record.update_timestamp.timestamp()) < self.before
        ]
        if not self.dry:
            for record in old:
                delete_run(instance, record.dagster_run.run_id)
        return len(old)

    def _prune_tracked(self, instance: dg.DagsterInstance, named: set[str]) -> int:
        """Remove MLflow's runs of releases and of their steps; the newest releases of each experiment stay."""
        if not (self.home.private / "mlflow").exists():
            return 0
        client = Tracking(self.home).client
        alive = {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=list(set(_STATUS) - set(ENDED))))}
        kept = named | _runs_of_models(client, self.keep.keep)
        removed = 0
        for experiment in client.search_experiments():
            runs = list(_tracked_runs(client, experiment.experiment_id))
            families: dict[str, list[Any]] = defaultdict(list)
            for run in runs:
                families[run.data.tags.get(PARENT, run.info.run_id)].append(run)
            newest_first = sorted(families.items(), key=lambda family: -max(run.info.start_time for run in family[1]))
            for parent, family in newest_first[self.keep.keep :]:
                ids = {parent, *(run.info.run_id for run in family)}
                if ids & kept or any(self._is_tracked_in_use(run, alive) for run in family):
                    continue
                removed += len(family)
                if not self.dry:
                    for run in family:
                        _delete_tracked(client, run, self.home)
        return removed

    def _is_tracked_in_use(self, run: Any, alive: set[str]) -> bool:
        ended = run.info.end_time
        is_young = ended is None or ended / 1000 >= self.before
        return is_young or run.info.status == "RUNNING" or run.data.tags.get(DAGSTER_RUN) in alive

    def _prune_results(self, removal: Removal) -> tuple[list[str], list[str]]:
        """Remove stored results of steps that are no longer in the graph of the dataset."""
        removed, in_use = [], []
        for spec in self.specs:
            known = {part.name for part in graph_of(spec).parts}
            places = [
                place for place in sorted((self.home.private / spec.dataset).glob("*")) if place.name not in known
            ]
            try:
                with (
                    self.home.lock(f"run-{spec.dataset}", timeout=0),
                    self.home.lock(f"dataset-{spec.dataset}", timeout=0),
                ):
                    old = removal.stages(places, self.before)
                    gone = old if self.dry else removal.of(old, remove_stage)
                    removed += [f"{spec.dataset}/{place.name}" for place in gone]
            except Timeout:
                in_use.append(spec.dataset)
        return removed, in_use

    def _prune_files(self, removal: Removal) -> int:
        folders = (self.home.private / name for name in ("errors", "spill", alerts.FOLDER))
        return sum(len(remove_older(folder, self.before, None if self.dry else removal)) for folder in folders)


def _ended(instance: dg.DagsterInstance) -> Iterator[dg.RunRecord]:
    """All ended runs, newest first."""
    cursor = None
    while True:
        page = instance.get_run_records(dg.RunsFilter(statuses=list(ENDED)), limit=PAGE, cursor=cursor)
        yield from page
        if len(page) < PAGE:
            return
        cursor = page[-1].dagster_run.run_id


def _relied_on(newest_first: Iterable[dg.RunRecord], keep: int) -> set[str]:
    """The newest runs of each job, its last success, the last run of each starter, and those of the last content."""
    kept: set[str] = set()
    seen: dict[tuple[object, ...], int] = defaultdict(int)
    contents: dict[tuple[str, ...], tuple[str, ...]] = {}
    for record in newest_first:
        run = record.dagster_run
        job = (run.tags.get(DATASET_TAG, ""), run.job_name)
        marks = [("job", *job, keep)]
        marks += [("success", *job, 1)] * (run.status is _STATUS.SUCCESS)
        marks += [(tag, run.tags[tag], "", 1) for tag in STARTERS if tag in run.tags]
        content = tuple(run.tags.get(tag, "") for tag in (CONTENT_TAG, POLICY_TAG))
        if content[0] and contents.setdefault(job, content) == content:
            marks.append(("content", *job, ENOUGH))
        for *mark, most in marks:
            if seen[tuple(mark)] < int(most):
                seen[tuple(mark)] += 1
                kept.add(run.run_id)
    return kept


def _latest_of_assets(instance: dg.DagsterInstance) -> set[str]:
    """The runs that made the latest result of each asset in Dagster, from which freshness is computed."""
    entries = (record.asset_entry for record in instance.get_asset_records())
    return {entry.last_materialization_record.run_id for entry in entries if entry.last_materialization_record}


def _runs_of_standing_releases(home: Home) -> Iterator[str]:
    """The runs, of Dagster and of MLflow, that the manifests of the current releases name."""
    for manifest in home.releases.glob("*/current/manifest.json"):
        with suppress(OSError, ValueError):
            yield from map(str, json.loads(manifest.read_text(encoding="utf-8")).get("runs", {}).values())


def delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run with its events and tags.

    The file of its events is deleted, too: Dagster leaves it, and SQLite does not shrink it. The run goes last, since
    it leads to the events if the process is killed in between.
    """
    path_of = getattr(instance.event_log_storage, "path_for_shard", None)
    files = [] if path_of is None else [Path(f"{path_of(run_id)}{ending}") for ending in ("", "-wal", "-shm")]
    if not files or files[0].exists():
        instance.event_log_storage.delete_events(run_id)
    for file in files:
        file.unlink(missing_ok=True)
    storage = instance.run_storage
    storage.delete_run(run_id)
    if isinstance(storage, SqlRunStorage):
        with storage.connect() as connection:
            connection.execute(RunTagsTable.delete().where(RunTagsTable.c.run_id == run_id))


def _tracked_runs(client: Any, experiment: str) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_runs([experiment], max_results=PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _runs_of_models(client: Any, keep: int) -> set[str]:
    """The runs that logged the newest versions of each registered model, or a version with an alias."""
    kept = set()
    for model in client.search_registered_models():
        versions = sorted(
            client.search_model_versions(f"name='{model.name}'"), key=lambda version: -int(version.version)
        )
        kept |= {version.run_id for version in islice(versions, keep)}
        kept |= {version.run_id for version in versions if version.version in map(str, model.aliases.values())}
    return kept


def _delete_tracked(client: Any, run: Any, home: Home) -> None:
    """Delete a run of MLflow permanently, as `mlflow gc` does, with the folder of its artifacts.

    The folder goes first: if the process is killed in between, the next pruning still finds the run.
    """
    folder = Path(url2pathname(urlsplit(run.info.artifact_uri).path)).parent
    if folder.name == run.info.run_id and folder.is_relative_to(home.private / "mlflow"):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if folder.exists():  # also where a file in it was gone before it was its turn
                raise Unavailable(
                    f"{folder}: cannot be removed ({error.strerror}); make it writable, and prune again"
                ) from None
    client._tracking_client.store._hard_delete_run(run.info.run_id)
