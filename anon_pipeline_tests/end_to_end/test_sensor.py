"""The sensor over a real instance and real runs, which are killed, refused, starved of disk and asked for again."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from anon_pipeline.home import VARIABLE
from anon_pipeline.pipeline.automation import anew
from anon_pipeline.release import ledger
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end import harness, sabotage
from anon_pipeline_tests.end_to_end.harness import Place, brief_policy, people, policy, write_dataset

FEW = 100


def brief(threshold: int = 10) -> dict[str, Any]:
    """A policy under which a run is short; a name that stands twice is refused by a check."""
    return named(brief_policy(threshold=threshold))


def named(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec of people who have a name besides."""
    return spec | {"columns": {"name": {"role": "identifier"}, **spec["columns"]}}


def table(seed: int, twice: bool = False) -> Any:
    frame = people(FEW, seed=seed)
    frame.insert(0, "name", [f"person {number}" for number in range(FEW)])
    if twice:
        frame.loc[1, "name"] = frame.loc[0, "name"]
    return frame


def _tick(
    place: Place,
    loaded: ReleaseSpec,
    ruin: Callable[[], None] | None,
    largest_file: int | None,
    patient: bool,
    said: Path,
    told: Path,
) -> None:
    """A daemon's process: the sensor is asked, and the run that it wants is run."""
    os.setsid()
    for number in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.environ[VARIABLE] = str(place.home.root)
    from anon_pipeline.pipeline.automation import next_run, past_runs
    from anon_pipeline.pipeline.build import build_definitions
    from anon_pipeline.pipeline.instance import open_instance
    from anon_pipeline.pipeline.runtime import Runtime

    if not patient:  # as if hours had gone by since the last tick
        next_run.RETRY_AFTER = (0,) * len(next_run.RETRY_AFTER)
        past_runs.LONGEST_SILENCE = dict.fromkeys(past_runs.LONGEST_SILENCE, 0)
    runtime = Runtime(home=str(place.home.root))
    repository = build_definitions([loaded], runtime).get_repository_def()
    with open_instance(place.home.prepare()) as instance:
        context = dg.build_sensor_context(instance, resources={"runtime": runtime})
        tick = repository.get_sensor_def("people_source_sensor").evaluate_tick(context)
        told.write_text(str(tick.skip_message or ""))
        for request in tick.run_requests or []:
            if ruin is not None:
                ruin()
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
            repository.get_job(request.job_name).execute_in_process(
                instance=instance, raise_on_error=False, tags=dict(request.tags), run_config=request.run_config
            )


class Sensor:
    """The sensor of a place, and what came of its ticks."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def tick(
        self,
        ruin: Callable[[], None] | None = None,
        largest_file: int | None = None,
        patient: bool = True,
        loaded: ReleaseSpec | None = None,
        meanwhile: Callable[[Callable[[], bool]], None] = lambda _: None,
    ) -> str:
        """Why nothing was done; empty where a run was started, "killed" where that did not end.

        `loaded` is the spec that the code location knows; the one of the folder where absent. What happens `meanwhile`
        is done here, and may ask whether the process still runs.
        """
        folder = self.place.home.root.parent
        said, told = folder / "said", folder / "told"
        told.unlink(missing_ok=True)
        process = harness.forked(_tick, self.place, loaded or self.place.spec, ruin, largest_file, patient, said, told)
        meanwhile(process.is_alive)
        harness.joined(process, said.read_text)
        if process.exitcode == -signal.SIGKILL:
            return "killed"
        assert process.exitcode == 0, said.read_text()
        return told.read_text()

    def lines(self) -> list[tuple[str, str]]:
        """What the ledger says."""
        return [(entry.action, entry.version) for entry in ledger.read(self.place.home)]

    def current(self) -> str | None:
        return ledger.last_version(self.place.home, "people")


@pytest.fixture
def sensor(fresh: Place) -> Sensor:
    write_dataset(fresh.dataset, table(1), brief())
    return Sensor(fresh)


@pytest.fixture(scope="module")
def first_released(template: Place) -> Iterator[Place]:
    """A place whose sensor has had its first run; copy it before you change it."""
    place = template.copy(folder := harness.scratch()).without_releases()
    write_dataset(place.dataset, table(1), brief())
    assert Sensor(place).tick() == ""
    yield place
    shutil.rmtree(folder)


@pytest.fixture
def released(first_released: Place, folder: Path) -> Sensor:
    """A sensor that has had its first run, at a place of its own."""
    return Sensor(first_released.copy(folder))


def test_what_dies_is_released_after_all_and_what_is_refused_never(sensor: Sensor) -> None:
    place = sensor.place
    # Killed in mid-run: the run stays "started" until it has been silent for long; then it is made again.
    assert sensor.tick(sabotage.while_the_checks_answer) == "killed"
    assert "is queued or under way" in sensor.tick()
    assert sensor.tick(sabotage.the_disk_is_full_at_the_release, patient=False) == ""
    assert sensor.lines() == []
    waiting = sensor.tick()
    assert "release: the disk is full" in waiting and "tried again in" in waiting
    assert "(attempt 3)" in waiting
    assert sensor.tick(patient=False) == ""
    ((_, first),) = sensor.lines()
    assert f"released: {first}" in sensor.tick(patient=False)

    # Refused: once, and never again, however often the sensor looks.
    write_dataset(place.dataset, table(2, twice=True), brief())
    assert sensor.tick() == ""
    for _ in range(2):
        assert "refused in run" in sensor.tick(patient=False)
    # Unusable: the same.
    write_dataset(place.dataset, table(2).drop(columns="visits"), brief())
    assert sensor.tick() == ""
    assert "cannot be used" in sensor.tick(patient=False)
    assert sensor.current() == first
    assert ledger.verify(place.home) == []


def test_a_source_or_a_policy_that_goes_back_is_current_again(released: Sensor) -> None:
    place, stricter = released.place, brief(threshold=20)
    first = released.current()
    write_dataset(place.dataset, table(1), stricter)  # the policy alone
    assert released.tick() == ""
    second = released.current()
    assert second != first
    write_dataset(place.dataset, table(1), brief())
    assert released.tick() == ""
    assert released.current() == first
    assert [action for action, _ in released.lines()] == ["publish", "publish", "current"]
    assert "the current release" in released.tick()
    assert (place.home.releases / "people" / "current").resolve().name == first


def test_a_release_whose_run_was_killed_before_it_could_say_so_is_not_published_twice(sensor: Sensor) -> None:
    assert sensor.tick(sabotage.between_the_rename_and_the_ledger) == "killed"
    assert sensor.tick(patient=False) == ""
    assert [action for action, _ in sensor.lines()] == ["publish"]
    assert "the current release" in sensor.tick()
    assert ledger.verify(sensor.place.home) == []


def test_a_withdrawn_release_is_left_alone(released: Sensor) -> None:
    home = released.place.home.root
    ended = harness.command("releases", "withdraw", released.current(), "--why", "a mistake", home=home)
    assert ended.exit_code == 0, ended.said
    assert "was withdrawn" in released.tick(patient=False)


def test_what_was_released_on_the_command_line_is_not_made_again(published: Place) -> None:
    assert "the current release" in Sensor(published).tick()


def test_a_source_that_is_replaced_while_it_is_read_is_read_again(sensor: Sensor) -> None:
    """What the run has read is nobody's content, so the one that lies there now is not taken for released."""
    assert sensor.tick(_replaced_while_read) == ""
    assert sensor.tick() == ""
    assert "the current release" in sensor.tick()


def _replaced_while_read() -> None:
    from anon_pipeline.engine.duckdb import DuckDBEngine

    store = DuckDBEngine.store_source

    def store_source(self: Any, spec: ReleaseSpec, *arguments: Any) -> Any:
        facts = store(self, spec, *arguments)
        table(3).to_csv(spec.source_path, index=False)
        return facts

    DuckDBEngine.store_source = store_source  # type: ignore[method-assign]


class Handed:
    """The command that a run of the sensor starts, handed on to a fork, for which nothing is imported anew.

    In its place stands a shell, which tells what was asked for in which home, and ends as the fork ended.
    """

    def __init__(self, folder: Path) -> None:
        self.asked, self.ended, self.printed = folder / "asked", folder / "ended", folder / "printed"
        os.mkfifo(self.ended)

    def __call__(self) -> None:
        """In the process of the run."""
        telling = f'printf "%s\\n" "${VARIABLE}" "$0" "$@" > {self.asked}.part; mv {self.asked}.part {self.asked}'
        ending = f"read code < {self.ended}; cat {self.printed}; exit $code"
        anew.COMMAND = ["sh", "-c", f"{telling}; {ending}", anew.COMMAND[-1]]

    def run(self, is_awaited: Callable[[], bool]) -> None:
        while not self.asked.exists():
            assert is_awaited(), "nothing was started"
            time.sleep(0.05)
        home, *words = self.asked.read_text().splitlines()
        ended = harness.command(*words, home=Path(home))
        self.printed.write_text(ended.stdout)
        self.ended.write_text(f"{ended.exit_code}\n")


def test_a_demand_more_is_released_though_the_code_location_does_not_know_it(sensor: Sensor, folder: Path) -> None:
    place, changed, handed = sensor.place, named(policy() | {"audit": {"enabled": False}}), Handed(folder)
    write_dataset(place.dataset, table(1), changed)
    loaded = place.spec
    changed["privacy"]["l_diversity"] = {"column": "ill", "l": 2}
    write_dataset(place.dataset, table(1), changed)
    assert sensor.tick(handed, loaded=loaded, meanwhile=handed.run) == ""
    assert [action for action, _ in sensor.lines()] == ["publish"]
    checks = json.loads((place.release / "manifest.json").read_text())["checks"]
    assert "l_diversity_ill" in {check["name"] for check in checks}
    assert "the current release" in sensor.tick(loaded=loaded)


def test_the_command_that_a_run_starts_is_the_one_that_is_installed(tmp_path: Path) -> None:
    started = [*anew.COMMAND, tmp_path / "nowhere", "--json"]
    ended = subprocess.run(started, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    assert ended.returncode == 2
    assert "nowhere" in json.loads(ended.stdout)["error"]
