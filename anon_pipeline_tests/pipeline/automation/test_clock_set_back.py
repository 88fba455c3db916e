"""A run that died under a clock that was ahead does not block its dataset until the clock has caught up.

The accident: a machine boots with a clock a year ahead, its sensor starts a run, the clock is corrected, and the
machine loses its power. The run stays marked as started, and its last event is dated next year. The sensor waited for
it at every look, with "is queued or under way".
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.events.log import EventLogEntry
from dagster._core.test_utils import create_run_for_test

from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation import past_runs
from anon_pipeline.pipeline.automation.past_runs import CLOCK_SET_BACK, LONGEST_SILENCE, release_job, under_way
from anon_pipeline.pipeline.run_tags import DATASET_TAG

YEAR = 365 * 86_400
STARTED = dg.DagsterRunStatus.STARTED


def started_run(instance: dg.DagsterInstance, ahead: float) -> dg.DagsterRun:
    """A run that is marked as started, and whose last event was logged under a clock that was ahead."""
    run = create_run_for_test(instance, job_name=release_job("people"), status=STARTED, tags={DATASET_TAG: "people"})
    event = EventLogEntry(None, logging.INFO, "reads 400 people", run.run_id, time.time() + ahead)
    instance.store_event(event)
    return run


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    moment = time.time() + seconds
    monkeypatch.setattr(past_runs, "time", SimpleNamespace(time=lambda: moment))


def test_its_silence_counts_from_the_first_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        run, home = started_run(instance, YEAR), Home(tmp_path)
        assert [each.run_id for each in under_way(instance, home, "people")] == [run.run_id]
        later(monkeypatch, LONGEST_SILENCE[STARTED] - 30)
        assert under_way(instance, home, "people")  # not yet: it may be between two steps
        later(monkeypatch, LONGEST_SILENCE[STARTED] + 30)
        assert under_way(instance, home, "people") == []
        ended = instance.get_run_by_id(run.run_id)
        assert ended is not None
        assert ended.status is dg.DagsterRunStatus.FAILURE
        notes = [each for each in instance.all_logs(run.run_id) if CLOCK_SET_BACK in (each.message or "")]
        assert len(notes) == 1


def test_a_run_that_is_at_work_is_never_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        started_run(instance, YEAR)
        home = Home(tmp_path)
        assert under_way(instance, home, "people")
        later(monkeypatch, 2 * LONGEST_SILENCE[STARTED])
        with home.lock("dataset-people"):
            assert under_way(instance, home, "people")


def test_a_run_whose_events_are_dated_before_now_gets_no_note(tmp_path: Path) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        run = started_run(instance, -5)
        assert under_way(instance, Home(tmp_path), "people")
        assert not [each for each in instance.all_logs(run.run_id) if CLOCK_SET_BACK in (each.message or "")]
