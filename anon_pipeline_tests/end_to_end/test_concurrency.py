"""Two commands at once share a home without harm."""

import json
import os
from functools import partial
from pathlib import Path

import pytest

from anon_pipeline.home import Home
from anon_pipeline.release import ledger, signing
from anon_pipeline_tests.end_to_end.harness import Command, Place, people, policy, write_dataset
from anon_pipeline_tests.end_to_end.test_kill import mlflow_states, whole


def _with_key(file: Path) -> None:
    os.environ[signing.FILE_VARIABLE] = str(file)


@pytest.mark.parametrize("second", ["people", "others"])
def test_two_runs_at_once_keep_one_ledger(fresh: Place, second: str) -> None:
    home = fresh.home
    other = fresh.dataset
    if second != "people":
        other = write_dataset(fresh.dataset.with_name(second), people(seed=5), policy(second))
    key = signing.make_key(fresh.home.root.parent / "key.pem")
    commands = [
        Command("run", dataset, "--json", home=home.root, sabotage=partial(_with_key, home.root.parent / "key.pem"))
        for dataset in (fresh.dataset, other)
    ]
    ended = [one.ended() for one in commands]
    assert [one.exit_code for one in ended] == [0, 0], [one.said for one in ended]
    told = [json.loads(one.stdout) for one in ended]
    versions = {(one["manifest"]["dataset"], one["manifest"]["version"]) for one in told}
    assert sum(one["new"] for one in told) == len(versions)
    assert {(entry.dataset, entry.version) for entry in ledger.read(home)} == versions
    assert len(ledger.read(home)) == len(versions)
    assert ledger.verify(home, key.public_key()) == []
    assert all(whole(home.releases / dataset / version) for dataset, version in versions)
    assert set(mlflow_states(home)) == {"FINISHED"}


def test_two_first_runs_in_a_new_home(folder: Path) -> None:
    """The schemas of Dagster's and MLflow's databases are created once, by whoever comes first."""
    home = Home(folder / "home")
    datasets = [write_dataset(folder / name, spec=policy(name)) for name in ("people", "others")]
    ended = [one.ended() for one in [Command("run", dataset, home=home.root) for dataset in datasets]]
    assert [one.exit_code for one in ended] == [0, 0], [one.said for one in ended]
    assert ledger.verify(home) == []
