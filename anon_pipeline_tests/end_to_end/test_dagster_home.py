"""Dagster's part of a home: closed to others whoever makes it, and no killed run counts as running for ever."""

import os
import stat
from pathlib import Path

import dagster as dg
import pytest

from anon_pipeline.home import VARIABLE
from anon_pipeline.pipeline.automation.jobs import DATASET_TAG
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.launch import COMMAND_LINE, STARTED_BY
from anon_pipeline_tests.end_to_end.harness import Place, brief_policy, write_dataset


def test_a_private_zone_that_dagster_made_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dagster dev` as the first command ever creates var/private/dagster before it loads us, readable by all."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "var"))
    (tmp_path / "var" / "private" / "dagster").mkdir(parents=True)
    (tmp_path / "var" / "private").chmod(0o755)
    mask = os.umask(0o022)
    try:
        build_definitions(data=tmp_path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "var" / "private").stat().st_mode) == 0o700


def test_a_run_whose_process_was_killed_does_not_count_as_running_for_ever(published: Place) -> None:
    """It would hold up the queue of its dataset, and with it every scheduled release."""
    write_dataset(published.dataset, spec=brief_policy())
    tags = {DATASET_TAG: "people", STARTED_BY: COMMAND_LINE}
    killed = dg.DagsterRun("people_release", status=dg.DagsterRunStatus.STARTED, tags=tags)
    with open_instance(published.home) as instance:
        instance.run_storage.add_run(killed)
        assert published.run().exit_code == 0
        ended = instance.get_run_by_id(killed.run_id)
        assert ended is not None
        assert ended.status is dg.DagsterRunStatus.FAILURE
