"""The history of a dataset in Dagster and the ledger: endings of its runs, runs that are alive, the current release."""

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
#: The statuses of a run that waits for its turn: no process works on it yet.
QUEUED = (_STATUS.QUEUED, _STATUS.MANAGED)
#: How long a run of each status may log no event, in seconds, while no step of the dataset is running.
LONGEST_SILENCE = {_STATUS.STARTED: 120, _STATUS.CANCELING: 120, _STATUS.STARTING: 300, _STATUS.NOT_STARTED: 300}
#: What the log of a run says from the moment when its last event is found to be dated later; the silence counts from
#: there, as this event is then the last one.
CLOCK_SET_BACK = "A clock was set back: this run's last event is dated later than now. Its silence counts from here."
#: The ending of a run by the kind of its failure; of several failures, the first in this order counts.
FOLLOWS = {"refused": Ending.REFUSED, "unusable": Ending.UNUSABLE, "died": Ending.DIED}
#: The most runs of one content that are read: more than may die one after the other.
ENOUGH = 4 * len(RETRY_AFTER)


def known(instance: dg.DagsterInstance, home: Home, dataset: str, content: str, policy: str) -> Known:
    """The known facts about a content under a policy.

    Parameters
    ----------
    content, policy : keyed hashes, as in the tags of runs
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
    """The queued or running runs of a dataset's release; runs that have died are marked as ended first.

    If a process is killed together with the server that monitors it, its run stays marked as started. Such a run would
    block the queue of its dataset.
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
    """The id of the run of a dataset that was created last, for any content."""
    return next((run.run_id for run in instance.get_runs(dg.RunsFilter(tags={DATASET_TAG: dataset}), limit=1)), "none")


def release_job(dataset: str) -> str:
    """The name of the job that makes and publishes a dataset's release."""
    return f"{dataset}_release"


def _has_died(instance: dg.DagsterInstance, home: Home, dataset: str, record: dg.RunRecord) -> bool:
    """Whether a run has logged nothing for long, and nobody holds the locks of its steps and its command.

    Of a run whose last event is dated after this moment nobody knows how long it has been silent. That is noted in its
    log, and the silence counts from the note.
    """
    run = record.dagster_run
    if run.status not in LONGEST_SILENCE:
        return False
    last = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
    last_event = last[0].event_log_entry.timestamp if last else record.create_timestamp.timestamp()
    silent = time.time() - last_event
    if silent < 0:  # counted from its events alone, the silence would begin when the clock has caught up with them
        instance.report_engine_event(CLOCK_SET_BACK, run)
    if silent < LONGEST_SILENCE[run.status]:
        return False
    try:
        with home.lock(f"run-{dataset}", timeout=0), home.lock(f"dataset-{dataset}", timeout=0):
            return True
    except Timeout:
        return False


def _counts(run: dg.DagsterRun) -> bool:
    """Whether a run was meant to make a release, or made one; runs of single steps by hand do not count.

    A run of the job `anew` does not count if its command recorded a run, which then counts instead.
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
    """The ending of a run without a release, from its events; their sentences hold nothing about a person."""
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
