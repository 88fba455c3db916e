"""What the sensor and the schedules ask for, as far as that needs no run; runs are in end_to_end/test_sensor.py."""

import json
import os
import shutil
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from anon_pipeline.pipeline.automation import anew
from anon_pipeline.pipeline.automation.jobs import build_job, build_schedule
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.run_tags import CONTENT_TAG, DATASET_TAG, POLICY_TAG, VERSION_TAG
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset
from anon_pipeline_tests.end_to_end.sabotage import SECRET_IN_ERROR

SUCCESS, FAILURE, CANCELED = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED


class Watch:
    """The sensor and the schedule of a dataset, with the cursor and the runs that the daemon keeps for them."""

    def __init__(self, folder: Path, home: Path, instance: dg.DagsterInstance | None = None) -> None:
        self.folder, self.cursor = folder, None
        self.instance = instance or dg.DagsterInstance.ephemeral()
        self.spec = ReleaseSpec.load(folder)
        self.runtime = Runtime(home=str(home))
        self.repository = build_definitions([self.spec], self.runtime).get_repository_def()

    def tick(self) -> dg.RunRequest | str:
        """The run that the sensor asks for, or why it asks for none."""
        sensor = self.repository.get_sensor_def(f"{self.spec.dataset}_source_sensor")
        context = dg.build_sensor_context(self.instance, self.cursor, resources={"runtime": self.runtime})
        evaluated = sensor.evaluate_tick(context)
        self.cursor = evaluated.cursor
        return evaluated.run_requests[0] if evaluated.run_requests else str(evaluated.skip_message)

    def due(self) -> dg.RunRequest | str:
        """The same of the schedule."""
        schedule = self.repository.get_schedule_def(f"{self.spec.dataset}_schedule")
        context = dg.build_schedule_context(self.instance, resources={"runtime": self.runtime})
        evaluated = schedule.evaluate_tick(context)
        return evaluated.run_requests[0] if evaluated.run_requests else str(evaluated.skip_message)

    def asked(self) -> dg.RunRequest:
        request = self.tick()
        assert isinstance(request, dg.RunRequest), request
        return request

    def add(
        self,
        status: dg.DagsterRunStatus,
        request: dg.RunRequest | None = None,
        job: str = "people_release",
        **tags: str,
    ) -> dg.DagsterRun:
        """A run of the dataset's job, or another one, which the request asked for."""
        told = {DATASET_TAG: self.spec.dataset, **({} if request is None else request.tags), **tags}
        place = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("a location"), "__repository__")
        run = dg.DagsterRun(job, status=status, tags=told, remote_job_origin=RemoteJobOrigin(place, job))
        self.instance.run_storage.add_run(run)
        return run


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(write_dataset(tmp_path / "people"), tmp_path / "home")


def touched(file: Path) -> None:
    seen = file.stat().st_mtime_ns
    os.utime(file, ns=(seen + 10**9, seen + 10**9))


@pytest.mark.long
def test_a_content_is_asked_for_until_it_is_there(watch: Watch) -> None:
    """A tick of which nothing has come, for whatever reason, is made good by the next one."""
    source = watch.folder / "people.csv"
    first = watch.asked()
    assert watch.asked() == first
    touched(source)
    assert watch.asked() == first
    people(seed=2).to_csv(source, index=False)
    second = watch.asked()
    assert second.tags[CONTENT_TAG] != first.tags[CONTENT_TAG]
    people().to_csv(source, index=False)
    assert watch.asked() == first


def test_content_that_changes_within_the_clocks_tick_and_keeps_its_size_is_still_seen_next_time(watch: Watch) -> None:
    source = watch.folder / "people.csv"
    first = watch.asked()
    source.write_bytes(source.read_bytes().replace(b"Cork", b"Kork"))
    touched(source)
    assert watch.asked().tags[CONTENT_TAG] != first.tags[CONTENT_TAG]


@pytest.mark.long
def test_ticks_coalesce_while_a_run_of_the_dataset_is_queued_or_under_way(watch: Watch) -> None:
    for status in (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTED):
        run = watch.add(status)
        assert f"run {run.run_id[:8]} is queued or under way" in str(watch.tick())
        watch.instance.delete_run(run.run_id)
    watch.asked()


@pytest.mark.long
def test_a_schedule_puts_no_second_run_into_the_queue(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "people", spec=policy() | {"schedule": "0 3 * * *"})
    (tmp_path / "dagster").mkdir()
    watch = Watch(folder, tmp_path / "home", dg.DagsterInstance.local_temp(str(tmp_path / "dagster")))
    assert isinstance(watch.due(), dg.RunRequest)
    watch.add(dg.DagsterRunStatus.STARTED)  # the source may have changed since it was read
    assert isinstance(watch.due(), dg.RunRequest)
    watch.add(dg.DagsterRunStatus.QUEUED)
    assert "is queued, and will read" in str(watch.due())


def test_what_a_person_stopped_is_left_alone_and_what_died_is_not(watch: Watch) -> None:
    request = watch.asked()
    watch.add(FAILURE, request)
    assert "its process was killed; tried again in" in str(watch.tick())
    watch.add(CANCELED, request)
    assert "was stopped by a person" in str(watch.tick())


def test_steps_that_were_made_by_hand_are_no_deaths(watch: Watch) -> None:
    request = watch.asked()
    for status in (FAILURE, CANCELED, SUCCESS):
        watch.add(status, request, "__ASSET_JOB")
    assert watch.asked().tags == request.tags


def test_a_run_that_says_it_succeeded_and_has_no_release_is_not_believed(watch: Watch) -> None:
    watch.add(SUCCESS, watch.asked())
    assert "it ended without a release" in str(watch.tick())


def test_a_release_that_is_not_current_is_asked_for_again_under_another_key(watch: Watch) -> None:
    """Dagster launches no second run for a key that it knows."""
    request = watch.asked()
    watch.add(SUCCESS, request, **{VERSION_TAG: "0123456789ab"})  # no ledger knows it
    again = watch.asked()
    assert again.tags == request.tags
    assert again.run_key != request.run_key


def test_a_run_that_read_another_content_counts_for_that(watch: Watch) -> None:
    """Asked for one content, a run found the next one, which was refused; then the source goes back."""
    request = watch.asked()
    watch.add(FAILURE, request, **{CONTENT_TAG: "another"})
    again = watch.asked()
    assert again.tags == request.tags
    assert again.run_key != request.run_key


def test_an_absent_source_is_waited_for(watch: Watch) -> None:
    source = watch.folder / "people.csv"
    source.rename(source.with_suffix(".later"))
    assert "is not there" in str(watch.tick())
    source.with_suffix(".later").rename(source)
    watch.asked()


@pytest.mark.long
def test_a_policy_that_changes_is_seen_without_reloading_the_code_location(watch: Watch) -> None:
    first = watch.asked()
    write_dataset(watch.folder, spec=policy() | {"privacy": {"k_anonymity": {"k": 20}}})
    second = watch.asked()
    assert second.tags[POLICY_TAG] != first.tags[POLICY_TAG]
    assert second.run_key != first.run_key
    demands = {"k_anonymity": {"k": 20}, "l_diversity": {"column": "ill", "l": 2}}
    write_dataset(watch.folder, spec=policy() | {"privacy": demands})
    assert first.job_name == second.job_name == "people_release"
    third = watch.asked()
    assert third.job_name == "people_release_anew"
    assert third.tags[POLICY_TAG] not in (first.tags[POLICY_TAG], second.tags[POLICY_TAG])
    at_work = watch.add(dg.DagsterRunStatus.QUEUED, third, job="people_release_anew")
    assert "is queued or under way" in str(watch.tick())
    watch.instance.delete_run(at_work.run_id)
    (watch.folder / "release.yaml").write_text("dataset: [")
    assert "is not valid YAML" in str(watch.tick())


def test_a_folder_of_files(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "people", spec=policy() | {"source": {"path": "parts"}})
    (folder / "parts").mkdir()
    watch = Watch(folder, tmp_path / "home")
    people().to_parquet(folder / "parts" / "a.parquet")
    first = watch.asked()
    people(seed=2).to_parquet(folder / "parts" / "b.parquet")
    second = watch.asked()
    assert first.tags != second.tags
    shutil.move(folder / "parts" / "b.parquet", folder / "parts" / "c.parquet")
    assert watch.asked().tags == second.tags


def test_what_a_database_has_not_yet_moved_into_its_file_is_content(watch: Watch) -> None:
    first = watch.asked()
    (watch.folder / "people.csv-wal").write_bytes(b"rows that were added")
    assert watch.asked().tags != first.tags


@pytest.mark.long
def test_nothing_that_the_daemon_keeps_tells_whether_a_guess_at_the_source_is_right(
    watch: Watch, tmp_path: Path
) -> None:
    """Who may open the UI and guesses the file makes another home, and compares what its sensor says."""
    guess = Watch(watch.folder, tmp_path / "of the guesser")
    real, guessed = watch.asked(), guess.asked()
    assert all(real.tags[tag] != guessed.tags[tag] for tag in (CONTENT_TAG, POLICY_TAG))
    assert real.run_key != guessed.run_key
    ours, theirs = json.loads(str(watch.cursor)), json.loads(str(guess.cursor))
    assert all(ours[name] != theirs[name] for name in ours)
    assert "Aberdeen" not in str(watch.cursor)


def test_what_a_library_says_of_a_row_stays_in_the_private_zone(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a tick shows the traceback of a sensor that raises, to everybody who opens the UI."""

    def broken(*_: object) -> None:
        raise RuntimeError(SECRET_IN_ERROR)

    monkeypatch.setattr("anon_pipeline.pipeline.automation.sensor.content_of", broken)
    told = str(watch.tick())
    assert "internal error (RuntimeError); its story is in private/errors/people-sensor.txt" in told
    assert SECRET_IN_ERROR not in told
    story = Path(watch.runtime.home) / "private" / "errors" / "people-sensor.txt"
    assert SECRET_IN_ERROR in story.read_text()
    assert story.stat().st_mode & 0o077 == 0


def test_the_schedule_is_that_of_the_spec() -> None:
    silent = ReleaseSpec.model_validate(policy())
    assert build_schedule(silent, build_job(silent)) is None
    nightly = ReleaseSpec.model_validate(policy() | {"schedule": "0 3 * * *"})
    schedule = build_schedule(nightly, build_job(nightly))
    assert schedule is not None
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 3 * * *", "UTC")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("import os; os.kill(os.getpid(), 9)", "again in"),
        ('print(\'{"error": "no such key"}\'); exit(2)', "no such key"),
    ],
)
def test_a_command_that_comes_to_no_run_counts_for_one(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    demands = {"k_anonymity": {"k": 20}, "l_diversity": {"column": "ill", "l": 2}}
    write_dataset(watch.folder, spec=policy() | {"privacy": demands})
    request = watch.asked()
    monkeypatch.setattr(anew, "COMMAND", [sys.executable, "-c", command])
    job = watch.repository.get_job(request.job_name)
    assert not job.execute_in_process(instance=watch.instance, tags=request.tags, raise_on_error=False).success
    assert why in str(watch.tick())
