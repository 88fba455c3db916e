"""The sensor starts a run once per content of the source."""

import json
import os
import shutil
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest

from anon_pipeline.pipeline.automation import build_job, build_schedule, build_sensor
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset


class Watch:
    """A sensor and its cursor, as the daemon keeps it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cursor = folder, None
        self.instance = dg.DagsterInstance.ephemeral()

    def tick(self) -> dg.RunRequest | dg.SkipReason:
        spec = ReleaseSpec.load(self.folder)
        definitions = build_definitions([spec])
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, repository_def=definitions.get_repository_def()
        )
        told = build_sensor(spec, build_job(spec))(context)
        self.cursor = context.cursor
        return told


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(write_dataset(tmp_path / "people"))


def touched(file: Path) -> None:
    seen = file.stat().st_mtime_ns
    os.utime(file, ns=(seen + 10**9, seen + 10**9))


def test_each_content_is_asked_for_once(watch: Watch) -> None:
    source = watch.folder / "people.csv"
    first = watch.tick()
    assert isinstance(first, dg.RunRequest)

    assert isinstance(watch.tick(), dg.SkipReason)
    touched(source)
    again = watch.tick()
    assert isinstance(again, dg.SkipReason)
    assert "its content is the same" in str(again.skip_message)

    people(seed=2).to_csv(source, index=False)
    second = watch.tick()
    assert isinstance(second, dg.RunRequest)
    assert second.run_key != first.run_key
    assert isinstance(watch.tick(), dg.SkipReason)

    people().to_csv(source, index=False)
    back = watch.tick()  # Dagster itself launches no second run for the same key
    assert isinstance(back, dg.RunRequest)
    assert back.run_key == first.run_key


def test_content_that_changes_within_the_clocks_tick_and_keeps_its_size_is_still_seen_next_time(watch: Watch) -> None:
    source = watch.folder / "people.csv"
    first = watch.tick()
    source.write_bytes(source.read_bytes().replace(b"Cork", b"Kork"))
    touched(source)
    second = watch.tick()
    assert isinstance(first, dg.RunRequest)
    assert isinstance(second, dg.RunRequest)
    assert second.run_key != first.run_key


def test_an_absent_source_is_waited_for(watch: Watch) -> None:
    source = watch.folder / "people.csv"
    source.rename(source.with_suffix(".later"))
    assert "is not there" in str(watch.tick().skip_message)
    source.with_suffix(".later").rename(source)
    assert isinstance(watch.tick(), dg.RunRequest)


def test_the_same_content_under_another_policy_is_another_run(watch: Watch) -> None:
    first = watch.tick()
    write_dataset(watch.folder, spec=policy() | {"privacy": {"k_anonymity": {"k": 20}}})
    second = Watch(watch.folder).tick()
    assert isinstance(first, dg.RunRequest)
    assert isinstance(second, dg.RunRequest)
    assert first.run_key != second.run_key


def test_a_folder_of_files(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "people", spec=policy() | {"source": {"path": "parts"}})
    (folder / "parts").mkdir()
    watch = Watch(folder)
    people().to_parquet(folder / "parts" / "a.parquet")
    first = watch.tick()
    people(seed=2).to_parquet(folder / "parts" / "b.parquet")
    second = watch.tick()
    assert isinstance(first, dg.RunRequest)
    assert isinstance(second, dg.RunRequest)
    assert first.run_key != second.run_key
    shutil.move(folder / "parts" / "b.parquet", folder / "parts" / "c.parquet")
    assert isinstance(watch.tick(), dg.SkipReason)


def test_the_cursor_holds_no_value_of_a_person(watch: Watch) -> None:
    watch.tick()
    assert set(json.loads(str(watch.cursor))) >= {"stamp", "content"}
    assert "Aberdeen" not in str(watch.cursor)


def test_the_schedule_is_that_of_the_spec() -> None:
    silent = ReleaseSpec.model_validate(policy())
    assert build_schedule(silent, build_job(silent)) is None
    nightly = ReleaseSpec.model_validate(policy() | {"schedule": "0 3 * * *"})
    schedule = build_schedule(nightly, build_job(nightly))
    assert schedule is not None
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 3 * * *", "UTC")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING


def test_the_run_key_is_made_of_hashes(watch: Watch) -> None:
    told = watch.tick()
    assert isinstance(told, dg.RunRequest)
    assert all(part.isalnum() for part in str(told.run_key).split("-"))
    assert len(pd.read_csv(watch.folder / "people.csv")) == 400
