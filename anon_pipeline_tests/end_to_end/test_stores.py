"""Dagster's and MLflow's records in PostgreSQL: runs side by side, a server that dies in mid-run, no password told."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from anon_pipeline.home import Home
from anon_pipeline.pipeline.steps import utility
from anon_pipeline.pipeline.stores import DAGSTER, LOST, STORES
from anon_pipeline.release import ledger
from anon_pipeline_tests import fixed_keys
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import (
    Command,
    Ended,
    Place,
    brief_policy,
    command,
    people,
    policy,
    write_dataset,
)
from anon_pipeline_tests.postgresql import PASSWORD, Server, running_server
from anon_pipeline_tests.skips import require_package

UNAUDITED = policy() | {"audit": {"enabled": False}}
#: The tools, as their databases are called here.
TOOLS = [store.tool.lower() for store in STORES]
#: How the first runs ended that Dagster knows in every test.
FIRST = ["SUCCESS", "SUCCESS"]


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    require_package("dagster_postgres")
    with running_server() as started:
        yield started


@dataclass(frozen=True)
class AtOnce:
    """Two first runs side by side, which had to lay the tables of both tools; and what the server knew of them."""

    home: Home
    datasets: list[Path]
    ended: list[Ended]
    lines: set[str]
    states: dict[str, list[str]]
    dumps: list[str]


@pytest.fixture(scope="module")
def at_once(running: Server) -> Iterator[AtOnce]:
    """Their databases are then those that every other test begins with: to lay the tables takes MLflow seconds."""
    home = Home((folder := harness.scratch()) / "home")
    datasets = [
        write_dataset(folder / name, people(100, seed=seed), brief_policy(name))
        for seed, name in enumerate(("firsts", "others"))
    ]
    for name in TOOLS:
        running.execute(f"CREATE DATABASE {name} OWNER reader")
    with fixed_keys.shared("at once"):
        commands = [Command("run", one, home=home.root, sabotage=partial(surroundings, running)) for one in datasets]
    lines = set()
    while any(one.is_running() for one in commands):
        time.sleep(0.1)
        lines.add(harness.command_lines())
    ended = [one.ended() for one in commands]
    known = {name: states(running, name) for name in TOOLS}
    yield AtOnce(home, datasets, ended, lines, known, [running.dump(name) for name in TOOLS])
    shutil.rmtree(folder)


@pytest.fixture
def server(running: Server, at_once: AtOnce) -> Iterator[Server]:
    """With a database for each store, in which there are the first runs alone."""
    for name in TOOLS:
        running.execute(f"ALTER DATABASE {name} RENAME TO former_{name}")
        running.execute(f"CREATE DATABASE {name} TEMPLATE former_{name} OWNER reader")
    running.execute("CHECKPOINT")  # else a server that dies may count a copied sequence anew
    yield running
    for name in TOOLS:
        running.execute(f"DROP DATABASE {name} WITH (FORCE)")
        running.execute(f"ALTER DATABASE former_{name} RENAME TO {name}")


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


def test_two_runs_at_once_share_the_databases_and_tell_nobody_the_password(at_once: AtOnce) -> None:
    home, ended = at_once.home, at_once.ended
    assert [one.exit_code for one in ended] == [0, 0], [one.said for one in ended]
    assert {entry.dataset for entry in ledger.read(home)} == {"firsts", "others"}
    assert ledger.verify(home) == []
    assert set(at_once.states["mlflow"]) == {"FINISHED"}
    assert at_once.states["dagster"] == FIRST
    assert not list(home.private.glob("**/*.db")), "there are records beside those of the server"
    told = [one.said for one in ended] + at_once.dumps + list(at_once.lines)
    assert not [text for text in told if PASSWORD in text]
    left = [file for file in home.root.parent.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
    assert left == []
    without = command("run", at_once.datasets[0], home=home.root)
    assert without.exit_code == 2
    assert f"{DAGSTER.variable}: is not set" in without.sentence, "no second history is begun in a file"


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


@pytest.mark.parametrize(
    ("kill", "entered", "meanwhile"),
    [(kill_before_utility, 0, restart_before_utility), (kill_before_the_ledger_line, 1, None)],
)
def test_a_server_that_dies_in_mid_run_loses_nothing(
    server: Server,
    folder: Path,
    kill: Callable[[Server], None],
    entered: int,
    meanwhile: Callable[[Server], None] | None,
) -> None:
    """And the next run outlives a restart of the server."""
    spec = brief_policy() if entered else UNAUDITED  # which has a utility to measure
    place = Place(Home(folder / "home"), write_dataset(folder / "people", people(100), spec))
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
    unfinished = states(server, "mlflow").count("RUNNING")
    after = place.run("--json", sabotage=partial(surroundings, server, sabotage=meanwhile))
    assert after.exit_code == 0, after.said
    assert json.loads(after.stdout)["new"] == (entered == 0)
    assert len(ledger.read(place.home)) == 1
    assert ledger.verify(place.home) == []
    ends = Counter(states(server, "mlflow"))
    assert set(ends) == {"FINISHED", "KILLED"} and ends["KILLED"] == unfinished > 0
    assert states(server, "dagster") == [*FIRST, "FAILURE", "SUCCESS"]
    assert [file for file in folder.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()] == []
