"""Dagster's and MLflow's records in PostgreSQL: runs side by side, a server that dies in mid-run, no password told."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from anon_pipeline.home import Home
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.steps import utility
from anon_pipeline.pipeline.stores import DAGSTER, LOST, STORES
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.release import ledger
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import Command, Place, command, people, policy, write_dataset
from anon_pipeline_tests.postgresql import PASSWORD, Server, running_server
from anon_pipeline_tests.skips import require_package

UNAUDITED = policy() | {"audit": {"enabled": False}}


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    require_package("dagster_postgres")
    with running_server() as started:
        yield started


@pytest.fixture
def empty_server(running: Server) -> Iterator[Server]:
    """With an empty database for each store."""
    yield from _with_databases(running, {store.tool.lower(): "template1" for store in STORES})


@pytest.fixture(scope="module")
def laid(running: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The databases, by store, in which both tools have laid their tables, which takes MLflow seconds."""
    laid = {store.tool.lower(): f"laid_{store.tool.lower()}" for store in STORES}
    for store in STORES:
        running.execute(f"CREATE DATABASE {store.tool.lower()} OWNER reader")
    home = Home(tmp_path_factory.mktemp("laid") / "home").prepare()
    process = harness.forked(_lay, running, home)
    harness.joined(process, str)
    assert process.exitcode == 0
    for name, copy in laid.items():
        running.execute(f"ALTER DATABASE {name} RENAME TO {copy}")
    return laid


def _lay(server: Server, home: Home) -> None:
    surroundings(server)
    with open_instance(home):
        Tracking(home).client.search_experiments(max_results=1)


@pytest.fixture
def server(running: Server, laid: dict[str, str]) -> Iterator[Server]:
    """With a database for each store, in which there are tables and no rows."""
    yield from _with_databases(running, laid)


def _with_databases(server: Server, templates: dict[str, str]) -> Iterator[Server]:
    for name, template in templates.items():
        server.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER reader")
    yield server
    for name in templates:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def surroundings(server: Server, sabotage: Callable[[Server], None] | None = None) -> None:
    """In the process of the command: the addresses of the databases, and what is done to the server.

    Dagster asks a server that has gone five times more for each event, and waits in between: here much shorter.
    """
    from dagster_postgres import utils

    utils.retry_pg_connection_fn.__defaults__ = (5, 0.005)  # tries, and seconds between them
    os.environ |= {store.variable: server.address(database=store.tool.lower()) for store in STORES}
    if sabotage is not None:
        sabotage(server)


def states(server: Server, tool: str) -> list[str]:
    """The states of all runs that a tool knows."""
    return server.ask(f"SELECT status FROM runs{' ORDER BY id' if tool == 'dagster' else ''}", tool).split()


def test_two_runs_at_once_share_the_databases_and_tell_nobody_the_password(empty_server: Server, folder: Path) -> None:
    server = empty_server
    home = Home(folder / "home")
    names = ("people", "others")
    datasets = [
        write_dataset(folder / name, people(100, seed=seed), policy(name) | {"audit": {"enabled": False}})
        for seed, name in enumerate(names)
    ]
    commands = [Command("run", dataset, home=home.root, sabotage=partial(surroundings, server)) for dataset in datasets]
    lines = {_command_lines() for _ in iter(lambda: any(one.is_running() for one in commands), False)}
    ended = [one.ended() for one in commands]
    assert [one.exit_code for one in ended] == [0, 0], [one.said for one in ended]
    assert {entry.dataset for entry in ledger.read(home)} == {"people", "others"}
    assert ledger.verify(home) == []
    assert set(states(server, "mlflow")) == {"FINISHED"}
    assert states(server, "dagster") == ["SUCCESS", "SUCCESS"]
    assert not list(home.private.glob("**/*.db")), "there are records beside those of the server"
    told = [one.said for one in ended] + [server.dump(store.tool.lower()) for store in STORES] + list(lines)
    assert not [text for text in told if PASSWORD in text]
    assert [file for file in folder.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()] == []
    without = command("run", datasets[0], home=home.root)
    assert without.exit_code == 2
    assert f"{DAGSTER.variable}: is not set" in without.sentence, "no second history is begun in a file"


def _command_lines() -> str:
    """What everybody on the machine may read of the processes."""
    time.sleep(0.1)
    return subprocess.run(["ps", "-eo", "args", "-ww"], capture_output=True, text=True, check=True).stdout


def kill_before_utility(server: Server) -> None:
    measure = utility.measure_utility

    def measured(*given: object) -> object:
        server.stop()
        return measure(*given)

    utility.measure_utility = measured


def kill_before_the_ledger_line(server: Server) -> None:
    append = ledger.append

    def appended(*given: object, **named: object) -> object:
        server.stop()
        return append(*given, **named)

    ledger.append = appended


def restart_before_utility(server: Server) -> None:
    measure = utility.measure_utility

    def measured(*given: object) -> object:
        server.stop()
        server.start()
        return measure(*given)

    utility.measure_utility = measured


@pytest.mark.parametrize(("kill", "entered"), [(kill_before_utility, 0), (kill_before_the_ledger_line, 1)])
def test_a_server_that_dies_in_mid_run_loses_nothing(
    server: Server, folder: Path, kill: Callable[[Server], None], entered: int
) -> None:
    place = Place(Home(folder / "home"), write_dataset(folder / "people", people(100), UNAUDITED))
    died = place.run("--json", sabotage=partial(surroundings, server, sabotage=kill))
    assert died.exit_code == (4 if entered else 2), died.said
    told = json.loads(died.stdout)
    assert LOST in (told["failures"][0] if entered else told["error"])
    assert told.get("released", False) is bool(entered), "what is in the ledger stands, whatever its records say"
    assert PASSWORD not in died.said
    assert len(ledger.read(place.home)) == entered, "the ledger is no matter of the server"
    assert ledger.verify(place.home) == []
    away = place.run(sabotage=partial(surroundings, server))
    assert away.exit_code == 2
    assert "cannot be reached" in away.sentence
    server.start()
    after = place.run("--json", sabotage=partial(surroundings, server))
    assert after.exit_code == 0, after.said
    assert json.loads(after.stdout)["new"] == (entered == 0)
    assert len(ledger.read(place.home)) == 1
    assert ledger.verify(place.home) == []
    assert "RUNNING" not in states(server, "mlflow")
    assert states(server, "dagster") == ["FAILURE", "SUCCESS"]
    assert [file for file in folder.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()] == []


def test_a_run_outlives_a_restart_of_the_server(server: Server, folder: Path) -> None:
    place = Place(Home(folder / "home"), write_dataset(folder / "people", people(100, seed=2), UNAUDITED))
    ended = place.run(sabotage=partial(surroundings, server, sabotage=restart_before_utility))
    assert ended.exit_code == 0, ended.said
    assert set(states(server, "mlflow")) == {"FINISHED"}
    assert states(server, "dagster") == ["SUCCESS"]
