"""Retention: what is older than the spec allows leaves the private zone, and nothing else does."""

import importlib
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from filelock import FileLock, Timeout
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from anon_pipeline import home as home_module
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import Home, scratch
from anon_pipeline.learning.guide import FittedModel
from anon_pipeline.learning.models import Task
from anon_pipeline.pipeline.automation import retention
from anon_pipeline.pipeline.automation.jobs import build_retention
from anon_pipeline.pipeline.automation.retention import DAY, expire
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.tracking import logged_guide
from anon_pipeline.pipeline.tracking.logged_guide import keep_guide
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.release import known_classes, ledger
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Place, command, forked, policy
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.release.test_ledger import publish

SPEC = ReleaseSpec.model_validate(policy() | {"retention": {"private_days": 30}})
NOW = 1_800_000_000.0  # seconds since 1970
PEOPLE = "people.parquet"


def store(home: Home, name: str, days: float, dataset: str = "people") -> Path:
    """A stored result that was made so many days ago."""
    spec = SPEC.model_copy(update={"dataset": dataset})
    with Stages(home, spec).store(name, {}, {}) as folder:
        (folder / PEOPLE).write_text("Zebulon")
    return aged(home.private / dataset / name, days)


def aged(path: Path, days: float) -> Path:
    for one in [*path.rglob("*"), path]:
        os.utime(one, (NOW - days * DAY,) * 2)
    return path


def test_what_is_older_goes_and_what_is_not_stays(home: Home) -> None:
    old, young = store(home, "raw_data", 31), store(home, "utility", 29)
    others = store(home, "raw_data", 400, "others")
    publish(home, "people", "aaaa")
    kept = home.private_folder("people", "memberships")  # judges the next release by former ones
    (kept / "aaaa.parquet").write_text("keyed hashes")
    aged(kept, 400)

    assert expire(home, SPEC, NOW) == retention.Expired(["raw_data"], 0, 0)

    assert not old.exists()
    assert [path.exists() for path in (young, others, kept / "aaaa.parquet")] == [True] * 3
    assert ledger.verify(home) == []
    with pytest.raises(InputError, match="raw_data: has not been made yet; materialize people/raw_data again"):
        Stages(home, SPEC).load("raw_data")
    assert Stages(home, SPEC).load("utility").facts == {}
    assert expire(home, SPEC, NOW) == retention.Expired()


def test_what_a_clock_ahead_has_dated_goes_after_the_period_too(home: Home) -> None:
    ahead = store(home, "raw_data", -4_000)
    story = home.private_folder("errors") / "some.txt"
    story.write_text("Zebulon")
    aged(story, -4_000)
    assert expire(home, SPEC, NOW) == retention.Expired()
    assert expire(home, SPEC, NOW + 29 * DAY) == retention.Expired()
    assert expire(home, SPEC, NOW + 31 * DAY) == retention.Expired(["raw_data"], 1)
    assert not ahead.exists()


def test_what_a_killed_step_has_half_written_goes_too(home: Home) -> None:
    half = home.private_folder("people", "raw_data", ".writing")
    (half / PEOPLE).write_text("Zebu")
    aged(half.parent, 31)
    assert expire(home, SPEC, NOW).stages == ["raw_data"]
    assert not half.exists()


def _killed_before_it_is_current(home: Home) -> None:
    rename = os.replace

    def replace(source: str, final: Path) -> None:
        if Path(final).name == "current":
            os.kill(os.getpid(), signal.SIGKILL)
        rename(source, final)

    home_module.os.replace = replace  # type: ignore[assignment]
    store(home, "raw_data", 31)


def test_a_first_result_that_was_killed_before_it_was_the_current_one_goes_too(home: Home) -> None:
    """It had the people of the source, and stayed for good."""
    killed = multiprocessing.get_context("fork").Process(target=_killed_before_it_is_current, args=(home,))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    (people,) = home.private.rglob(PEOPLE)
    aged(home.private / "people", 31)
    assert expire(home, SPEC, NOW).stages == ["raw_data"]
    assert not people.exists()


def _killed_while_a_guide_is_kept(home: Home, moment: str) -> None:
    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def cut_off(description: object, path: str) -> None:
        Path(path).touch()
        die()

    if moment == "before its description":
        logged_guide._signature = die  # type: ignore[assignment]
    elif moment == "within its description":
        importlib.import_module("mlflow.models").Model.save = cut_off
    else:
        logged_guide.register = die  # type: ignore[assignment]
    guide = FittedModel("tree", Task.REGRESSION, ("age",), None, DecisionTreeRegressor())
    keep_guide(Tracking(home), "people", "run", guide, {"age": ColumnType.NUMERIC})


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before its description", "within its description", "before it is registered"])
def test_a_guide_that_a_killed_process_was_keeping_goes_too(home: Home, moment: str) -> None:
    """It was fitted to people, and stayed for good where the dataset was not run again."""
    killed = forked(_killed_while_a_guide_is_kept, home, moment)
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    (guide,) = home.private.rglob("model.pkl")
    aged(home.private / "mlflow", 31)
    expire(home, SPEC, NOW)
    assert not guide.exists()


def _killed_with_people_in_a_scratch_folder(home: Home, name: str) -> None:
    with scratch(home.private_folder(name)) as folder:
        (folder / PEOPLE).write_text("Zebulon")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("name", ["scratch", "mask"])
def test_a_table_that_a_killed_command_was_working_on_goes_too(home: Home, name: str) -> None:
    """It stayed until the same command was run again, if ever; that of a command at work stays."""
    killed = multiprocessing.get_context("fork").Process(
        target=_killed_with_people_in_a_scratch_folder, args=(home, name)
    )
    killed.start()
    killed.join()
    (left,) = home.private.rglob(PEOPLE)
    with scratch() as elsewhere:
        beside = home.private_folder(name) / elsewhere.name
        beside.mkdir()
        lock = FileLock(beside.with_suffix(".lock"))
        with lock:
            expire(home, SPEC, NOW)
        assert (left.exists(), beside.exists()) == (False, True)


def test_the_source_that_a_killed_sweep_has_read_goes_too(home: Home) -> None:
    left = home.private_folder("people", "sweep", ".tmp4711") / PEOPLE
    left.write_text("Zebulon")
    with ThreadPoolExecutor(1) as other, home.lock("sweep-people"):  # at work
        other.submit(expire, home, SPEC, NOW).result()
        assert left.exists()
    expire(home, SPEC, NOW)
    assert not left.exists()


def test_stories_of_errors_and_spilled_files_go_too(home: Home) -> None:
    for folder in ("errors", "spill"):
        for name, days in (("old", 31), ("young", 1)):
            (home.private_folder(folder) / name).write_text("Zebulon")
            aged(home.private / folder / name, days)
    home.private_folder("spill", "old_folder", "deep").joinpath("part").write_text("Zebulon")
    aged(home.private / "spill" / "old_folder", 31)
    assert expire(home, SPEC, NOW) == retention.Expired([], stories=1, spilled=2)
    assert [path.name for folder in ("errors", "spill") for path in (home.private / folder).iterdir()] == ["young"] * 2


def test_reports_of_refusals_go_too_and_those_of_others_stay(home: Home) -> None:
    for dataset in ("people", "others"):
        page = home.private_folder("refusals", dataset) / "run-release.html"
        page.write_text("refused")
        aged(page, 31)
    assert expire(home, SPEC, NOW) == retention.Expired([], refusals=1)
    assert [page.parent.name for page in home.private.glob("refusals/*/*")] == ["others"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=times(25))
@given(ages=st.lists(st.integers(0, 60), max_size=4), period=st.integers(1, 60))
def test_exactly_what_is_older_goes(home: Home, ages: list[int], period: int) -> None:
    shutil.rmtree(home.private / "people", ignore_errors=True)
    for number, days in enumerate(ages):
        store(home, f"stage{number}", days)
    spec = SPEC.model_copy(update={"retention": SPEC.retention.model_copy(update={"private_days": period})})  # type: ignore[union-attr]
    assert expire(home, spec, NOW).stages == [f"stage{number}" for number, days in enumerate(ages) if days > period]


def test_a_removal_that_was_killed_is_completed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then no step loads what is left."""
    place = store(home, "raw_data", 31)
    remove = shutil.rmtree

    def killed(path: Path, **_: object) -> None:
        (path / PEOPLE).unlink()
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(retention.shutil, "rmtree", killed)
        with pytest.raises(SystemExit):
            expire(home, SPEC, NOW)
    with pytest.raises(InputError, match="materialize people/raw_data again"):
        Stages(home, SPEC).load("raw_data")
    assert retention.shutil.rmtree is remove
    assert expire(home, SPEC, NOW).stages == ["raw_data"]
    assert not place.exists()


def test_what_somebody_else_removes_meanwhile_keeps_nothing_else(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another retention of the same home, or a person: half of a result stayed, and all results after it."""
    stored = [store(home, name, 31) for name in ("raw_data", "utility")]
    spilled = home.private_folder("spill", "killed")
    for name in "ab":
        (spilled / name).write_text("Zebulon")
    aged(spilled, 31)
    guide = home.private_folder("mlflow", "artifacts", "people", "models", "m-1", "artifacts") / logged_guide.PICKLE
    guide.write_bytes(b"a tree")
    aged(guide, 31)
    unlink, taken = os.unlink, set[Path]()

    def too_late(path: Path | str, *, dir_fd: int | None = None) -> None:
        folder = Path(path).parent if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").resolve()
        unlink(path, dir_fd=dir_fd)
        if folder not in taken:
            taken.add(folder)
            raise FileNotFoundError(2, "No such file or directory", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", too_late)
        assert expire(home, SPEC, NOW) == retention.Expired(["raw_data", "utility"], spilled=1)
    assert {spilled, guide.parent} < taken
    assert not any(path.exists() for path in (*stored, spilled, guide))


def test_a_folder_that_goes_while_it_is_looked_at_is_nothing_to_be_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(home, "raw_data", 31)
    going = home.private_folder("errors", "going")
    (going / "some.txt").write_text("Zebulon")
    aged(going, 31)
    walk = os.walk

    def gone(path: Path) -> object:
        found = [*walk(path)]
        if path == going:
            shutil.rmtree(going, ignore_errors=True)
        return found

    monkeypatch.setattr(os, "walk", gone)
    assert expire(home, SPEC, NOW) == retention.Expired(["raw_data"])
    assert not going.exists()


def test_what_cannot_be_removed_is_told_and_keeps_nothing_else(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that lets nobody remove a file, such as one with snapshots or a mount in the private zone."""
    kept, gone = store(home, "raw_data", 31), store(home, "utility", 31)
    story = home.private_folder("errors") / "some.txt"
    story.write_text("Zebulon")
    aged(story, 31)
    unlink = os.unlink

    def refused(path: Path | str, *, dir_fd: int | None = None) -> None:
        folder = Path(path).parent if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").resolve()
        if folder.parent == kept:
            raise PermissionError(1, "Operation not permitted", str(path))
        unlink(path, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refused)
        with pytest.raises(Unavailable) as told:
            expire(home, SPEC, NOW)
    assert str(told.value) == (
        f"cannot be removed: {kept} (Operation not permitted); all else that is old enough is removed; make these "
        "writable, and do this again"
    )
    assert [path.exists() for path in (kept, gone, story)] == [True, False, False]
    assert expire(home, SPEC, NOW) == retention.Expired(["raw_data"])


@pytest.mark.parametrize("denied", ["people/raw_data", "spill"])
def test_a_folder_that_cannot_be_looked_at_is_told_and_keeps_nothing_else(
    home: Home, monkeypatch: pytest.MonkeyPatch, denied: str
) -> None:
    """As a folder of the home that root has made."""
    store(home, "raw_data", 31)
    gone, folder = store(home, "utility", 31), home.private_folder(*denied.split("/"))
    look = Path.iterdir

    def refused(path: Path) -> Iterator[Path]:
        if path == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return iter(look(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", refused)
        with pytest.raises(Unavailable, match=rf"cannot be removed: {folder} \(Permission denied\); all else"):
            expire(home, SPEC, NOW)
    assert not gone.exists()


@pytest.mark.parametrize("old", ["current", ".writing"])
def test_a_stage_of_which_one_mark_is_new_stays(home: Home, old: str) -> None:
    """A step that writes again where a result is old, or was killed at it long ago, and one that stands since."""
    place = store(home, "raw_data", 29)
    (place / ".writing").write_text("")
    for name in ("current", ".writing"):
        aged(place / name, 31 if name == old else 29)
    assert expire(home, SPEC, NOW).stages == []
    assert (place / "current").exists()


@pytest.mark.parametrize("name", ["run-people", "dataset-people"])
def test_nothing_goes_from_under_a_run_or_a_step(home: Home, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store(home, "raw_data", 31)
    held: list[bool] = []

    def removed(place: Path) -> None:
        with pytest.raises(Timeout), home.lock(name, timeout=0):
            pass
        held.append(True)

    monkeypatch.setattr(retention, "remove_stage", removed)
    assert expire(home, SPEC, NOW).stages == ["raw_data"]
    assert held == [True]


def test_a_spec_without_a_period_is_told(home: Home) -> None:
    silent = ReleaseSpec.model_validate(policy())
    with pytest.raises(InputError, match=r"people: its spec states no period; add retention: \{private_days: 30\}"):
        expire(home, silent)
    assert build_retention(silent) is None


def test_the_period_does_not_change_the_release() -> None:
    assert SPEC.policy_hash == ReleaseSpec.model_validate(policy()).policy_hash


@pytest.mark.long
def test_dagsters_schedule_enforces_it(home: Home) -> None:
    """A real instance: the schedule runs by itself, its tick asks for the job, and the job removes."""
    store(home, "utility", (NOW - time.time()) / DAY)  # now
    old = store(home, "raw_data", (NOW - time.time()) / DAY + 31)
    definitions = build_definitions([SPEC], Runtime(home=str(home.root)))
    schedule = definitions.resolve_schedule_def("people_retention_schedule")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    with open_instance(home) as instance:
        at = datetime(2027, 1, 1, 1, 17, tzinfo=UTC)
        tick = schedule.evaluate_tick(dg.build_schedule_context(instance, scheduled_execution_time=at))
        (request,) = tick.run_requests or []
        job = definitions.resolve_job_def(schedule.job_name)
        result = job.execute_in_process(instance=instance, tags=dict(request.tags))
        assert result.success
        (run,) = instance.get_runs(dg.RunsFilter(job_name="people_retention"))
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert run.tags["anon_pipeline/dataset"] == "people"
    assert not old.exists()
    assert (home.private / "people" / "utility" / "current").exists()


def test_who_was_in_which_class_goes_too(tmp_path: Path) -> None:
    """A hash of quasi-identifiers confirms a guess at them; without it, other releases are refused, not passed."""
    home = Home(tmp_path / "home").prepare()
    for version, days in (("old", 31), ("new", 1)):
        (tmp_path / version).write_bytes(b"hashes")
        known_classes.keep(home, SPEC.dataset, version, tmp_path / version)
        os.utime(known_classes.kept(home, SPEC.dataset, version), (NOW - days * DAY,) * 2)
    assert expire(home, SPEC, NOW) == retention.Expired(known_classes=1)
    assert not known_classes.kept(home, SPEC.dataset, "old").exists()
    assert known_classes.kept(home, SPEC.dataset, "new").exists()


def test_the_command(published: Place) -> None:
    file = published.dataset / "release.yaml"
    refused = command("releases", "expire", published.dataset, home=published.home.root)
    assert refused.exit_code == 2
    assert "its spec states no period" in refused.sentence
    file.write_text(file.read_text() + "retention: {private_days: 7}\n")
    for place in (published.home.private / "people").iterdir():
        for one in [*place.rglob("*"), place]:
            os.utime(one, (time.time() - 8 * DAY,) * 2)
    ended = command("releases", "expire", published.dataset, home=published.home.root)
    assert ended.exit_code == 0, ended.said
    assert "raw_data" in ended.stdout
    assert [one for one in (published.home.private / "people").rglob("*") if one.suffix == ".parquet"] == []
    assert ledger.verify(published.home) == []
