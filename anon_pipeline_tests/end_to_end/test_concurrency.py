"""Several commands at once share a home without harm."""

import json
import os
from functools import partial
from pathlib import Path

from anon_pipeline.home import Home
from anon_pipeline.release import ledger, signing
from anon_pipeline_tests.end_to_end.harness import Command, Place, brief_policy, people, policy, write_dataset
from anon_pipeline_tests.end_to_end.test_kill import mlflow_states, whole


def _with_key(file: Path) -> None:
    os.environ[signing.FILE_VARIABLE] = str(file)


def _keep_one_ledger(home: Home, datasets: list[Path]) -> None:
    """Run all at once, under one signing key, and look at what they leave."""
    key = signing.make_key(home.root.parent / "key.pem")
    sabotage = partial(_with_key, home.root.parent / "key.pem")
    commands = [Command("run", dataset, "--json", home=home.root, sabotage=sabotage) for dataset in datasets]
    ended = [one.ended() for one in commands]
    assert {one.exit_code for one in ended} == {0}, [one.said for one in ended]
    told = [json.loads(one.stdout) for one in ended]
    versions = {(one["manifest"]["dataset"], one["manifest"]["version"]) for one in told}
    assert len(versions) == len(set(datasets))
    assert sum(one["new"] for one in told) == len(versions)
    assert {(entry.dataset, entry.version) for entry in ledger.read(home)} == versions
    assert len(ledger.read(home)) == len(versions)
    assert ledger.verify(home, key.public_key()) == []
    assert all(whole(home.releases / dataset / version) for dataset, version in versions)
    assert set(mlflow_states(home)) == {"FINISHED"}


def test_two_runs_of_a_dataset_and_one_of_another_at_once_keep_one_ledger(fresh: Place) -> None:
    """In a home with databases, where all runs come to the ledger at nearly the same time."""
    write_dataset(fresh.dataset, people(100), policy() | {"audit": {"enabled": False}})
    others = write_dataset(
        fresh.dataset.with_name("others"), people(100, seed=5), policy("others") | {"audit": {"enabled": False}}
    )
    _keep_one_ledger(fresh.home, [fresh.dataset, others, fresh.dataset])


def test_two_first_runs_in_a_new_home_keep_one_ledger(folder: Path) -> None:
    """Of two datasets. The schemas of Dagster's and MLflow's databases are created once, by whoever comes first."""
    people_of = {"people": people(100), "others": people(100, seed=5)}
    datasets = [write_dataset(folder / name, frame, brief_policy(name)) for name, frame in people_of.items()]
    _keep_one_ledger(Home(folder / "home"), datasets)
