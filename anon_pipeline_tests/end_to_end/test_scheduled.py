"""A schedule over five nights, one of them refused and two of them killed, and people who leave in between."""

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from anon_pipeline.home import VARIABLE, Home
from anon_pipeline.release import ledger, signing
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end import harness, sabotage
from anon_pipeline_tests.end_to_end.harness import Place, people, policy, release_folders, write_dataset
from anon_pipeline_tests.end_to_end.test_kill import dagster_states, whole
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

NIGHTS = range(1, 6)
REFUSED = 2
KILLS: dict[int, Callable[[], None]] = {
    3: sabotage.while_utility_is_measured,
    4: sabotage.between_the_rename_and_the_ledger,
}
K = 10
LEAVES = "Zebulon Quackenbush"  # with the last night


def nightly_policy() -> dict[str, Any]:
    spec = policy() | {"schedule": "0 3 * * *", "audit": {"enabled": False}}
    spec["columns"] = {"name": {"role": "identifier"}, **spec["columns"]}
    return spec


def table(night: int) -> pd.DataFrame:
    """Other people every night but one, who is there until the last; once the same name stands twice."""
    frame = people(100, seed=night)
    frame.insert(0, "name", [f"person {night} {number}" for number in range(len(frame))])
    if night < NIGHTS[-1]:
        frame.loc[5, "name"] = LEAVES
    if night == REFUSED:
        frame.loc[1, "name"] = frame.loc[0, "name"]
    return frame


def _nights(home: Path, dataset: Path, nights: list[int], key: str, streams: Path) -> None:
    """A daemon's process: at every tick the schedule is asked, and the run that it wants is run."""
    os.setsid()
    for number in (1, 2):
        os.dup2(os.open(streams, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.environ |= {VARIABLE: str(home), signing.KEY_VARIABLE: key}
    from anon_pipeline.pipeline.build import build_definitions
    from anon_pipeline.pipeline.instance import open_instance
    from anon_pipeline.pipeline.runtime import Runtime

    place = Home(home).prepare()
    for night in nights:
        write_dataset(dataset, table(night), nightly_policy())
        definitions = build_definitions([ReleaseSpec.load(dataset)], Runtime(home=str(home)))
        schedule = definitions.resolve_schedule_def("people_schedule")
        with open_instance(place) as instance:
            at = datetime(2026, 1, night, 3, tzinfo=UTC)
            resources = {"runtime": Runtime(home=str(home))}
            tick = schedule.evaluate_tick(dg.build_schedule_context(instance, at, resources=resources))
            (request,) = tick.run_requests or []
            if night in KILLS:
                KILLS[night]()
            definitions.resolve_job_def(schedule.job_name).execute_in_process(
                instance=instance, raise_on_error=False, tags=dict(request.tags)
            )


@pytest.fixture
def nightly(fresh: Place, monkeypatch: pytest.MonkeyPatch) -> tuple[Place, Path]:
    """A home after five nights, and the public key of its ledger."""
    folder = fresh.home.root.parent
    key = signing.make_key(folder / "key.pem")
    (folder / "public.pem").write_text(signing.public_pem(key))
    batches: list[list[int]] = [[]]
    for night in NIGHTS:
        batches[-1].append(night)
        if night in KILLS:
            batches.append([])
    for nights in batches:
        daemon = harness.forked(
            _nights, fresh.home.root, fresh.dataset, nights, (folder / "key.pem").read_text(), folder / "said"
        )
        harness.joined(daemon, (folder / "said").read_text)
        expected = -signal.SIGKILL if nights[-1] in KILLS else 0
        assert daemon.exitcode == expected, (folder / "said").read_text()
    return fresh, folder / "public.pem"


def test_five_nights_leave_an_intact_ledger_of_verifiable_releases(nightly: tuple[Place, Path]) -> None:
    place, public_key = nightly
    home = place.home
    assert ledger.verify(home, signing.read_public_key(public_key)) == []

    entries = ledger.read(home)
    # The refused night and the one killed at work left nothing; the one killed after its folder was there was entered.
    assert len(entries) == len(NIGHTS) - 2
    folders = {path.name for path in release_folders(home, "people")}
    assert folders == {entry.version for entry in entries}
    refused = table(REFUSED)["visits"].value_counts().to_dict()
    former = None
    for entry in entries:
        folder = home.releases / "people" / entry.version
        assert whole(folder)
        told = json.loads((folder / "manifest.json").read_text())
        assert told["previous"] == former
        former = entry.version
        released = pd.read_parquet(folder / "data.parquet")
        assert "name" not in released
        assert released.groupby(["age", "city", "sex"], dropna=False).size().min() >= K
        assert released["visits"].value_counts().to_dict() != refused
    states = dagster_states(home)
    succeeded = len(NIGHTS) - 3 + 1  # the last is the run that made the template
    assert (states.count("SUCCESS"), states.count("FAILURE")) == (succeeded, 1)
    assert list(home.releases.rglob(".*")) == []
    assert naming_who_left(home) == []


def naming_who_left(home: Home) -> list[Path]:
    """The files of the private zone that hold the identifier of the person who left; tables are decoded."""
    return [
        file
        for file in home.private.rglob("*")
        if file.is_file()
        and LEAVES
        in (
            pd.read_parquet(file).astype(str).to_csv()
            if file.suffix == ".parquet"
            else file.read_bytes().decode("latin-1")
        )
    ]


def test_nothing_private_names_a_person_who_left(fresh: Place) -> None:
    """The right to erasure: after a run without a person, no private file of any kind holds their identifier.

    Here attacks leave theirs, too; what Dagster and MLflow keep is looked at after the nights above.
    """
    audited = nightly_policy() | {"audit": {"people": 200, "shadows": 4, "targets": 100}}
    write_dataset(fresh.dataset, table(1), audited)
    released_in_steps(fresh)
    assert naming_who_left(fresh.home)
    write_dataset(fresh.dataset, table(NIGHTS[-1]), audited)
    released_in_steps(fresh)
    assert naming_who_left(fresh.home) == []
