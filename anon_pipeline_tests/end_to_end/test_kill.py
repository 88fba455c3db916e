"""SIGKILL at each stage of a run: no half release, an intact ledger, and a next run that succeeds and cleans up."""

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from anon_pipeline.home import VARIABLE, Home, sha256_of
from anon_pipeline.release import ledger
from anon_pipeline_tests.end_to_end import sabotage
from anon_pipeline_tests.end_to_end.harness import (
    Place,
    forked,
    joined,
    people,
    policy,
    release_folders,
    write_dataset,
)
from anon_pipeline_tests.pipeline.in_steps import released_in_steps


def whole(folder: Path) -> bool:
    """Whether a release folder holds exactly the files of its manifest."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    assert {one.name for one in folder.iterdir()} == {"manifest.json", *files}
    return all(sha256_of(folder / name) == facts["sha256"] for name, facts in files.items())


def states(database: Path) -> list[str]:
    """The states of all runs that MLflow or Dagster knows."""
    with closing(sqlite3.connect(database)) as connection:
        return [row[0] for row in connection.execute("SELECT status FROM runs")]


def mlflow_states(home: Home) -> list[str]:
    return states(home.private / "mlflow" / "mlflow.db")


def dagster_states(home: Home) -> list[str]:
    return states(home.private / "dagster" / "history" / "runs.db")


#: The kills of whole commands: one in the middle of a step, and one in the step that publishes. What Dagster and MLflow
#: know of a run hangs on these alone, so the others die as they make their steps without the two.
RECORDED = {sabotage.while_utility_is_measured, sabotage.between_the_rename_and_the_ledger}


def _released_in_steps(place: Place, kill: Callable[[], None], said: Path) -> None:
    os.setsid()
    for number in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.environ[VARIABLE] = str(place.home.root)
    kill()
    released_in_steps(place)


def killed(place: Place, kill: Callable[[], None]) -> None:
    """A process that publishes is killed at a point."""
    if kill in RECORDED:
        ended = place.run(sabotage=kill)
        exit_code, said = ended.exit_code, ended.said
        assert mlflow_states(place.home).count("RUNNING") == 2, kill.__name__  # the step and its parent
    else:
        file = place.home.root.parent / "said"
        process = forked(_released_in_steps, place, kill, file)
        joined(process, file.read_text)
        exit_code, said = process.exitcode, file.read_text()
    assert exit_code == -signal.SIGKILL, f"{kill.__name__}: {said}"


def test_killed_runs_leave_no_half_release_and_the_next_ones_go_on(published: Place) -> None:
    """Each run goes on where the one before was killed, and is killed a step later; nothing ever kills the last.

    The source changes before the last, and what the killed ones left is entered into the ledger all the same.
    """
    home, first = published.home, published.release.name
    unaudited = policy() | {"audit": {"enabled": False}}  # no run is killed while it attacks
    write_dataset(published.dataset, people(100, seed=2), unaudited)  # so that there is something new to publish

    for kill, folders in sabotage.KILLS.items():
        killed(published, kill)

        moment = kill.__name__
        visible = release_folders(home, "people")
        assert len(visible) == 1 + folders, moment
        assert all(whole(one) for one in visible), moment
        assert [entry.version for entry in ledger.read(home)] == [first], moment
        found = ledger.verify(home)
        assert len([problem for problem in found if not problem.rpartition("/")[2].startswith(".")]) == folders, moment
        assert all("the ledger does not know it" in problem for problem in found)  # temporary names too, until later

    (left,) = {folder.name for folder in release_folders(home, "people")} - {first}
    write_dataset(published.dataset, people(100, seed=3), unaudited)
    after = published.run("--json")

    assert after.exit_code == 0, after.said
    version = json.loads(after.stdout)["manifest"]["version"]
    assert len({first, left, version}) == 3
    assert [entry.version for entry in ledger.read(home)] == [first, left, version]
    assert ledger.verify(home) == []
    leftovers = [file for file in home.root.rglob("*") if file.name.startswith(".")]
    assert leftovers == []
    assert "RUNNING" not in mlflow_states(home)
    assert mlflow_states(home).count("KILLED") == 2 * len(RECORDED)
    assert sorted(dagster_states(home)) == ["FAILURE"] * len(RECORDED) + ["SUCCESS", "SUCCESS"]
