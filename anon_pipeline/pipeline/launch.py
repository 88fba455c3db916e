"""One run of a dataset's job in this process, recorded where the UI shows it, and its outcome."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg

from anon_pipeline.destinations.delivery import require_ready
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import NOT_OPENED, Home, fault_of_records, out_of_space
from anon_pipeline.pipeline import refusals
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.quick_records import quick_records
from anon_pipeline.pipeline.run_tags import DATASET_TAG
from anon_pipeline.pipeline.runtime import EXIT_CODE, INTERNAL, NOT_DELIVERED, REFUSED, Runtime
from anon_pipeline.pipeline.step import DESTINATIONS, RELEASE, log
from anon_pipeline.pipeline.stores import LOST, server_is_lost
from anon_pipeline.pipeline.wrapping import NAME
from anon_pipeline.release import ledger, unfinished
from anon_pipeline.release.publication import MANIFEST
from anon_pipeline.spec import ReleaseSpec

STARTED_BY, COMMAND_LINE = "anon_pipeline/started_by", "command line"

#: Dagster's tag for the code location of a run; without it, the job's page in the UI does not list the run.
JOB_PAGE = {".dagster/repository": "__repository__@anon_pipeline.definitions"}


#: What is told of a run that could not write its records any more.
DISK_FULL = "the disk is full; free or allow disk space"

#: The asset of a job that publishes.
PUBLISHES = {"release": RELEASE, "statistics": "dp_statistics"}


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    exit_code : 0 released, 2 bad spec or data, 3 refused by a check, 4 released but not at every destination,
        or something else after the release failed, 1 an error of our own
    run_id : id of the Dagster run
    failures : one sentence per failed check or step
    reports : the pages in the private zone that say what to change, if it was refused
    """

    exit_code: int
    run_id: str
    failures: list[str] = field(default_factory=list)
    new: bool = False
    folder: Path | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    reports: list[Path] = field(default_factory=list)

    @property
    def released(self) -> bool:
        """Whether the release was published, whether or not it is at every destination."""
        return self.exit_code in (0, NOT_DELIVERED)

    def to_json(self) -> dict[str, Any]:
        return {
            "released": self.released,
            "exit_code": self.exit_code,
            "run_id": self.run_id,
            "failures": self.failures,
            "reports": [str(report) for report in self.reports],
            "new": self.new,
            "folder": None if self.folder is None else str(self.folder),
            "manifest": self.manifest or None,
        }


def launch(spec: ReleaseSpec, home: Home, runtime: Runtime, what: str = "release") -> Outcome:
    """Run the job of a dataset, its `release` or its `statistics`, after any other run of the same dataset has ended.

    Raises
    ------
    InputError
        If Dagster's records are in a database that is damaged, does not answer or went away, or if a check before any
        work finds that a destination cannot be used, or that the key of a signed ledger is none.
    """
    if what == "release":
        require_ready(spec.publish, spec.folder)
        if ledger.lacks_its_key(home):  # no error: a release that stands already needs no line
            log.warning("%s: the ledger is signed, and its key is not here: nothing new can be published", spec.dataset)
    with home.lock(f"run-{spec.dataset}"):
        before, of_killed = _newest(home, spec), unfinished.coming_line(home)
        try:
            outcome = _launched(spec, home, runtime, what)
        except Exception as error:
            # Without a new release the caller tells what went wrong; else its words say that nothing is published.
            if (published := _published_since(home, spec, before, of_killed)) is None:
                raise
            reason = DISK_FULL if out_of_space(error) else str(error) if isinstance(error, InputError) else None
            return _published_all_the_same(published, home, Outcome(INTERNAL, "", [reason or type(error).__name__]))
        published = _published_since(home, spec, before, of_killed)
    if outcome.released or outcome.exit_code == REFUSED or published is None:
        return outcome
    return _published_all_the_same(published, home, outcome)


def _newest(home: Home, spec: ReleaseSpec) -> ledger.Entry | None:
    """The line of the ledger that made a release the current one, as far as it can be read."""
    try:
        return ledger.current(home, spec.dataset)
    except InputError:
        return None


def _published_since(
    home: Home, spec: ReleaseSpec, before: ledger.Entry | None, of_killed: tuple[str, str] | None
) -> ledger.Entry | None:
    """The release that is new since.

    One that is current again, since the last one was withdrawn meanwhile, is none. Nor is that of a killed run, whose
    line this run has entered (`of_killed`).
    """
    newest = _newest(home, spec)
    if newest is None or (before is not None and newest.sequence <= before.sequence):
        return None
    return None if (newest.action, newest.manifest) == of_killed else newest


def _published_all_the_same(published: ledger.Entry, home: Home, failed: Outcome) -> Outcome:
    """The outcome of a run that failed after it had published: its release stands, whatever its records say."""
    folder = home.releases / published.dataset / published.version
    sentence = f"what follows the release failed ({'; '.join(failed.failures)}); run the dataset again to complete it"
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return Outcome(NOT_DELIVERED, failed.run_id, [sentence], True, folder, manifest)


def _launched(spec: ReleaseSpec, home: Home, runtime: Runtime, what: str) -> Outcome:
    job = build_definitions([spec], runtime).resolve_job_def(f"{spec.dataset}_{what}")
    tags = {DATASET_TAG: spec.dataset, STARTED_BY: COMMAND_LINE}
    with (
        _unavailable_if_lost(spec),
        quick_records(home.private),
        open_instance(home) as instance,
    ):
        _close_abandoned(instance, tags)
        result = job.execute_in_process(
            # Dagster's own events are in the UI; the terminal shows the log lines of the steps only.
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            instance=instance,
            raise_on_error=False,
            tags={**tags, **JOB_PAGE},
        )
        log.info("%s: Dagster run %s", spec.dataset, result.run_id)
        if result.success:
            return _released(result, PUBLISHES[what])
        failed = _failed(result)
        if _failed_steps(result) == {f"{spec.dataset}__{DESTINATIONS}"}:  # the release is published all the same
            return replace(_released(result, PUBLISHES[what]), exit_code=NOT_DELIVERED, failures=failed.failures)
        return replace(failed, reports=refusals.reports_of(home, spec.dataset, result.run_id))


@contextmanager
def _unavailable_if_lost(spec: ReleaseSpec) -> Iterator[None]:
    """Explain, in a sentence, that Dagster cannot write its records (any more); the run then ends at once."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if server_is_lost(error):
            raise Unavailable(f"{spec.dataset}: {LOST}") from None
        if (fault := fault_of_records(error)) is not None:
            raise (Unavailable if fault == NOT_OPENED else InputError)(f"{spec.dataset}: {fault}") from None
        raise


def _close_abandoned(instance: dg.DagsterInstance, tags: dict[str, str]) -> None:
    """End the runs of killed commands: if left as started, they would block every run that the UI queues."""
    alive = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
    for run in instance.get_runs(dg.RunsFilter(tags=tags, statuses=alive)):
        instance.report_run_failed(run, "The command that ran it was killed.")


def _released(result: dg.ExecuteInProcessResult, asset: str) -> Outcome:
    event = next(
        event
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None and event.asset_key.path[-1] == asset
    )
    metadata = event.materialization.metadata
    folder = Path(str(metadata["folder"].value))
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return Outcome(0, result.run_id, [], metadata["state"].value == "published", folder, manifest)


def _failed_steps(result: dg.ExecuteInProcessResult) -> set[str]:
    return {str(event.step_key) for event in result.all_events if event.is_step_failure}


def _failed(result: dg.ExecuteInProcessResult) -> Outcome:
    refused = [
        f"{evaluation.metadata[NAME].value}: {evaluation.description}"
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed
    ]
    if refused:
        return Outcome(REFUSED, result.run_id, refused)
    failures, codes = [], []
    for event in result.all_events:
        if not event.is_step_failure:
            continue
        declared = event.step_failure_data.user_failure_data
        if declared is None:
            error = event.step_failure_data.error
            if error and error.cls_name in ("KeyboardInterrupt", "DagsterExecutionInterruptedError"):
                raise KeyboardInterrupt
            failures.append(f"{event.step_key}: {error.cls_name if error else 'unknown error'}")
            codes.append(INTERNAL)
        else:
            failures.append(str(declared.description))
            codes.append(int(declared.metadata[EXIT_CODE].value))  # type: ignore[arg-type]
    return Outcome(min(codes, default=INTERNAL), result.run_id, failures or ["the run ended without a word"])
