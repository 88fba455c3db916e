"""What Dagster and the ledger know of a dataset: what its runs came to, which of them still live, what is current."""

from __future__ import annotations

import time
from datetime import datetime

import dagster as dg
from filelock import Timeout

from anon_pipeline.destinations.record import FAILED, PUTTING
from anon_pipeline.destinations.record import read as copies_of
from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation.anew import anew_job
from anon_pipeline.pipeline.automation.endings import KILLED, failures_of
from anon_pipeline.pipeline.automation.next_run import RETRY_AFTER, Ending, Known, PastRun
from anon_pipeline.pipeline.run_tags import CONTENT_TAG, DATASET_TAG, POLICY_TAG, UNKNOWN, VERSION_TAG
from anon_pipeline.release import ledger

_STATUS = dg.DagsterRunStatus
#: Of a run that waits for its turn: nothing of it is at work yet.
QUEUED = (_STATUS.QUEUED, _STATUS.MANAGED)
#: How long a run of each status may say nothing, in seconds, while no step of the dataset is at work.
LONGEST_SILENCE = {_STATUS.STARTED: 120, _STATUS.CANCELING: 120, _STATUS.STARTING: 300, _STATUS.NOT_STARTED: 300}
#: What a failure of each kind makes of its run; of several, the first of these counts.
FOLLOWS = {"refused": Ending.REFUSED, "unusable": Ending.UNUSABLE, "died": Ending.DIED}
#: Runs of one content that are looked at: more than may die one after the other.
ENOUGH = 4 * len(RETRY_AFTER)


def known(instance: dg.DagsterInstance, home: Home, dataset: str, content: str, policy: str) -> Known:
    """What is known of a content under a policy.

    Parameters
    ----------
    content, policy : keyed hashes, as the runs say them in their tags
    """
    filters = dg.RunsFilter(
        tags={DATASET_TAG: dataset, CONTENT_TAG: content, POLICY_TAG: policy},
        statuses=[_STATUS.SUCCESS, _STATUS.FAILURE, _STATUS.CANCELED],
    )
    alive = under_way(instance, home, dataset)
    past = instance.get_run_records(filters, limit=ENOUGH)
    current = ledger.current(home, dataset)
    copies = [] if current is None else copies_of(home, dataset, current.version)
    return Known(
        under_way=alive[0].run_id if alive else None,
        runs=[_past(instance, ended) for ended in past if _counts(ended.dagster_run)],
        current=None if current is None else current.version,
        since=0.0 if current is None else datetime.fromisoformat(current.time).timestamp(),
        withdrawn=frozenset(
            entry.version for entry in ledger.read(home) if entry.action == ledger.WITHDRAW and entry.dataset == dataset
        ),
        undelivered=any(copy.state in (FAILED, PUTTING) for copy in copies),
    )


def under_way(instance: dg.DagsterInstance, home: Home, dataset: str) -> list[dg.DagsterRun]:
    """The runs of a dataset's release that are queued or running; those that have died are ended first.

    A process that is killed together with the server that watches it leaves its run as started, and with it the queue
    of its dataset closed.
    """
    filters = dg.RunsFilter(tags={DATASET_TAG: dataset}, statuses=[*QUEUED, *LONGEST_SILENCE])
    alive = []
    for record in instance.get_run_records(filters):
        if _has_died(instance, home, dataset, record):
            instance.report_run_failed(record.dagster_run, "Its process has ended without a word.")
        elif record.dagster_run.job_name in (release_job(dataset), anew_job(dataset)):
            alive.append(record.dagster_run)
    return alive


def newest(instance: dg.DagsterInstance, dataset: str) -> str:
    """The run of a dataset that was created last, of whatever content."""
    return next((run.run_id for run in instance.get_runs(dg.RunsFilter(tags={DATASET_TAG: dataset}), limit=1)), "none")


def release_job(dataset: str) -> str:
    """The name of the job that makes and publishes a dataset's release."""
    return f"{dataset}_release"


def _has_died(instance: dg.DagsterInstance, home: Home, dataset: str, record: dg.RunRecord) -> bool:
    """Whether a run has said nothing for long, while nobody holds the locks that a step or a command holds."""
    run = record.dagster_run
    if run.status not in LONGEST_SILENCE:
        return False
    last = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
    heard = last[0].event_log_entry.timestamp if last else record.create_timestamp.timestamp()
    if time.time() - heard < LONGEST_SILENCE[run.status]:
        return False
    try:
        with home.lock(f"run-{dataset}", timeout=0), home.lock(f"dataset-{dataset}", timeout=0):
            return True
    except Timeout:
        return False


def _counts(run: dg.DagsterRun) -> bool:
    """Whether a run was to make a release, or made one: of single steps that were made by hand nothing follows.

    Where the command that the job `anew` starts came to a run, that run tells.
    """
    if run.job_name == anew_job(run.tags[DATASET_TAG]):
        return run.status is not _STATUS.SUCCESS
    return run.job_name == release_job(run.tags[DATASET_TAG]) or run.tags.get(VERSION_TAG, UNKNOWN) != UNKNOWN


def _past(instance: dg.DagsterInstance, record: dg.RunRecord) -> PastRun:
    run = record.dagster_run
    version = run.tags.get(VERSION_TAG, UNKNOWN)
    ended = record.end_time or record.update_timestamp.timestamp()
    if version == UNKNOWN:
        ending, why = _unreleased(instance, run)
        return PastRun(run.run_id, ending, ended, None, why)
    failed = run.status is _STATUS.FAILURE
    reasons = [failure.sentence for failure in failures_of(instance, run.run_id)] if failed else []
    return PastRun(run.run_id, Ending.RELEASED, ended, version, next(iter(reasons), KILLED) if failed else "", failed)


def _unreleased(instance: dg.DagsterInstance, run: dg.DagsterRun) -> tuple[Ending, str]:
    """What a run without a release came to, from its events; their sentences hold nothing of a person."""
    if run.status is _STATUS.CANCELED:
        return Ending.STOPPED, "it was stopped"
    if run.status is _STATUS.SUCCESS:
        return Ending.DIED, "it ended without a release"
    failures = failures_of(instance, run.run_id)
    for kind, ending in FOLLOWS.items():
        for failure in failures:
            if failure.kind == kind:
                return ending, failure.sentence
    return Ending.DIED, KILLED
