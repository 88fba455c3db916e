"""Pruning: what ended long ago goes from Dagster, MLflow and the private zone; what is used or relied upon stays."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from filelock import Timeout
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from anon_pipeline.errors import Unavailable
from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation import pruning
from anon_pipeline.pipeline.automation.operations import Keep
from anon_pipeline.pipeline.automation.pruning import ENDED, Pruned, Pruning, _relied_on
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.tracking.registered_model import keep_dp_model
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.release import ledger
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Place, command, policy
from anon_pipeline_tests.examples import times

SPEC = ReleaseSpec.model_validate(policy())
DAY = 86_400
STATUS = dg.DagsterRunStatus


def later(home: Home, days: float, keep: int = 1, dry: bool = False) -> Pruning:
    """A pruning in so many days."""
    return Pruning(home, Keep(older_than=timedelta(days=30), keep=keep), [SPEC], dry, time.time() + days * DAY)


def ended(
    instance: dg.DagsterInstance, status: STATUS = STATUS.SUCCESS, job: str = "people_release", **tags: str
) -> str:
    """A run that has ended just now, with events of its own."""
    tags = {"anon_pipeline/dataset": "people", **{f"anon_pipeline/{name}": value for name, value in tags.items()}}
    run = dg.DagsterRun(job, tags=tags)
    instance.run_storage.add_run(run)
    instance.report_engine_event("at work", run)
    if status is STATUS.SUCCESS:
        instance.report_dagster_event(
            dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, job, message="done"), run.run_id
        )
    elif status is STATUS.FAILURE:
        instance.report_run_failed(run)
    return run.run_id


def ids(instance: dg.DagsterInstance) -> set[str]:
    return {run.run_id for run in instance.get_runs()}


def files(home: Home, run: str) -> list[Path]:
    return list((home.private / "dagster" / "history" / "runs").glob(f"{run}*"))


@pytest.mark.long
def test_what_ended_long_ago_goes_with_its_file_and_the_newest_stay(home: Home) -> None:
    with open_instance(home) as instance:
        old = [ended(instance) for _ in range(3)]
        others = ended(instance, job="people_retention")
        assert later(home, 29).prune(instance).runs == 0
        assert later(home, 31, dry=True).prune(instance).runs == 2
        assert ids(instance) == {*old, others}
        assert files(home, old[0])
        assert later(home, 31).prune(instance).runs == 2
        assert ids(instance) == {old[-1], others}
        assert [bool(files(home, run)) for run in old] == [False, False, True]
        with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
            left = {row[0] for row in connection.exec_driver_sql("SELECT DISTINCT run_id FROM run_tags")}
        assert left == {old[-1], others}
        assert later(home, 31).prune(instance) == Pruned()


@pytest.mark.long
@pytest.mark.parametrize("status", [STATUS.NOT_STARTED, STATUS.STARTED, STATUS.STARTING, STATUS.CANCELING])
def test_a_run_that_waits_or_works_stays_however_old(home: Home, status: STATUS) -> None:
    with open_instance(home) as instance:
        at_work = dg.DagsterRun("people_release", status=status, tags={"anon_pipeline/dataset": "people"})
        instance.run_storage.add_run(at_work)
        newer = [ended(instance) for _ in range(2)]
        assert later(home, 1000).prune(instance).runs == 1
        assert ids(instance) == {at_work.run_id, newer[-1]}


@pytest.mark.long
def test_what_is_relied_upon_stays(home: Home) -> None:
    """The last success under failures, the latest materialization, the last run of a sensor, the standing release."""
    with open_instance(home) as instance:
        gone = ended(instance)
        success = ended(instance)
        made = dg.DagsterRun("__ASSET_JOB")
        instance.run_storage.add_run(made)
        instance.report_runless_asset_event(dg.AssetMaterialization(["people", "other"]))

        @dg.asset(key_prefix="people")
        def release() -> None: ...

        materialized = dg.materialize([release], instance=instance).run_id
        sensed = dg.DagsterRun("people_release", tags={"dagster/sensor_name": "people_source_sensor"})
        instance.run_storage.add_run(sensed)
        instance.report_run_failed(sensed)
        named = ended(instance, STATUS.FAILURE)
        manifest = home.releases / "people" / "current" / "manifest.json"
        manifest.parent.mkdir(parents=True)
        manifest.write_text(json.dumps({"runs": {"dagster": named, "mlflow": "0"}}))
        failed = [ended(instance, STATUS.FAILURE) for _ in range(3)]
        later(home, 31).prune(instance)
        assert ids(instance) == {success, made.run_id, materialized, sensed.run_id, named, failed[-1]}
        assert gone not in ids(instance)
        assert instance.get_latest_materialization_event(dg.AssetKey(["people", "release"])) is not None


@pytest.mark.long
def test_the_runs_of_the_last_content_stay_as_far_as_the_sensor_looks(home: Home) -> None:
    """Else it would forget that a content died five times, or was refused, and try again."""
    with open_instance(home) as instance:
        former = [ended(instance, STATUS.FAILURE, content="a", policy="p") for _ in range(3)]
        content = [ended(instance, STATUS.FAILURE, content="b", policy="p") for _ in range(18)]
        later(home, 31).prune(instance)
        assert ids(instance) == set(content[-16:])
        assert not ids(instance) & set(former)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=times(50))
@given(
    statuses=st.lists(st.sampled_from(ENDED), max_size=12),
    keep=st.integers(1, 5),
    jobs=st.lists(st.integers(0, 2), max_size=12),
)
def test_of_each_job_the_newest_stay_and_the_last_success(statuses: list[STATUS], keep: int, jobs: list[int]) -> None:
    class Record:
        def __init__(self, status: STATUS, job: int) -> None:
            self.dagster_run = dg.DagsterRun(f"job{job}", status=status)

    records = [Record(status, job) for status, job in zip(statuses, jobs, strict=False)]
    kept = _relied_on(records, keep)  # type: ignore[arg-type]
    for job in range(3):
        runs = [record.dagster_run for record in records if record.dagster_run.job_name == f"job{job}"]
        wins = [run.run_id for run in runs if run.status is STATUS.SUCCESS][:1]
        assert {run.run_id for run in runs} & kept == {run.run_id for run in runs[:keep]} | set(wins)


@pytest.mark.long
def test_mlflows_runs_go_with_those_of_their_steps_and_registered_models_stay(home: Home) -> None:
    tracking = Tracking(home)
    for number in range(3):
        for step in ("raw_data", "release"):
            with tracking.step("people", f"run-{number}", step) as metrics:
                metrics["people"] = number
    model = DecisionTreeClassifier().fit([[0], [1]], [0, 1])
    uris = [keep_dp_model(tracking, "guides", model, home.private / f"model{number}.zip") for number in range(2)]
    client = tracking.client

    def runs(experiment: str) -> list[str]:
        found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
        return sorted(run.data.tags.get("dagster_run_id", "none") for run in found)

    with open_instance(home) as instance:
        at_work = dg.DagsterRun("people_release", run_id="run-1", status=STATUS.STARTED)
        instance.run_storage.add_run(at_work)
        assert later(home, 29).prune(instance).tracked_runs == 0
        assert later(home, 31, dry=True).prune(instance).tracked_runs == 3 + 1
        assert later(home, 31).prune(instance).tracked_runs == 3 + 1  # run-0, and the first model's
    assert runs("people") == ["run-1"] * 3 + ["run-2"] * 3
    assert runs("guides") == ["none"]
    assert [list(tracking.load_model(uri).predict([[0], [1]])) for uri in uris] == [[0, 1]] * 2


@pytest.mark.long
def test_events_of_a_run_whose_deletion_was_killed_do_not_stay(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run went first, and nothing led to the file of its events any more."""
    with open_instance(home) as instance:
        old, _ = ended(instance), ended(instance)
        genuine = instance.run_storage.delete_run

        def killed(run_id: str) -> None:
            genuine(run_id)
            raise SystemExit

        assert any(b"at work" in file.read_bytes() for file in files(home, old))
        with monkeypatch.context() as patched:
            patched.setattr(instance.run_storage, "delete_run", killed)
            with pytest.raises(SystemExit):
                later(home, 31).prune(instance)
        assert old not in ids(instance)
        assert not any(b"at work" in file.read_bytes() for file in files(home, old))


@pytest.mark.long
@pytest.mark.parametrize(
    "accident", [SystemExit, PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file")]
)
def test_files_of_a_tracked_run_that_a_pruning_did_not_come_to_go_with_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch, accident: type[BaseException] | OSError
) -> None:
    """The run went first, and nothing led to its files any more; what could not be removed was counted as removed."""
    tracking = Tracking(home)
    for number in range(2):
        with tracking.step("people", f"run-{number}", "release") as metrics:
            metrics["people"] = number
    client = tracking.client
    found = client.search_runs([client.get_experiment_by_name("people").experiment_id])
    for run in found:
        client.log_text(run.info.run_id, "Zebulon", "page.html")
    assert len(list((home.private / "mlflow").rglob("page.html"))) == len(found) == 4

    def refuse(*_: object, **__: object) -> None:
        raise accident

    with open_instance(home) as instance:
        with monkeypatch.context() as patched:
            patched.setattr(pruning.shutil, "rmtree", refuse)
            with pytest.raises((SystemExit, Unavailable)):
                later(home, 31).prune(instance)
        assert later(home, 31).prune(instance).tracked_runs == 2
    assert len(list((home.private / "mlflow").rglob("page.html"))) == 2


@pytest.mark.long
def test_results_that_no_step_makes_any_more_go(home: Home) -> None:
    for name in ("raw_data", "masked_data"):  # the spec does not mask any more
        with Stages(home, SPEC).store(name, {}, {}) as folder:
            (folder / "people.parquet").write_text("Zebulon")
    history = home.private_folder("people", "memberships")
    (history / "aaaa.parquet").write_text("keyed hashes")
    for folder in ("errors", "spill", "alerts"):
        (home.private_folder(folder) / "old").write_text("Zebulon")
    with open_instance(home) as instance:
        assert later(home, 29).prune(instance) == Pruned()
        with home.lock("dataset-people"):
            assert later(home, 31, dry=True).prune(instance) == Pruned(files=3, in_use=["people"])
        assert later(home, 31).prune(instance) == Pruned(results=["people/masked_data"], files=3)
    assert not (home.private / "people" / "masked_data").exists()
    assert (home.private / "people" / "raw_data" / "current").exists()
    assert (history / "aaaa.parquet").exists()
    with pytest.raises(Timeout), home.lock("prune"), home.lock("prune", timeout=0):
        pass


def test_the_command_leaves_releases_and_runs_go_on(published: Place) -> None:
    before, root = published.releases(), published.home.root
    with open_instance(published.home) as instance:
        for _ in range(2):  # after that of the release
            ended(instance)
    for wrong in (("--older-than", "soon"), ("--keep", "0")):
        assert command("prune", *wrong, home=root).exit_code == 2
    dry = json.loads(command("prune", "--older-than", "0d", "--keep", "1", "--dry-run", "--json", home=root).stdout)
    assert dry["dry_run"] is True
    done = json.loads(command("prune", "--older-than", "0d", "--keep", "1", "--json", home=root).stdout)
    assert {**done, "dry_run": True} == dry
    assert done["runs"] == 1  # the run of the standing release stays beside the newest
    assert published.releases() == before
    assert ledger.verify(published.home) == []
    again = published.run()
    assert again.exit_code == 0, again.said
    nowhere = command("prune", home=root / "nowhere")
    assert (nowhere.exit_code, (root / "nowhere").exists()) == (2, False)
    assert os.path.isdir(root)
