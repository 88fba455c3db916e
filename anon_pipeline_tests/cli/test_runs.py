"""`run`, `sweep` and `ui`: how an outcome is told, and what is handed on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from anon_pipeline.cli import runs as commands
from anon_pipeline.errors import InputError
from anon_pipeline.home import DATA_VARIABLE, VARIABLE, Home
from anon_pipeline.pipeline import launch, processes
from anon_pipeline.pipeline.instance import dagster_home
from anon_pipeline.pipeline.web.guard import ALLOW_HOSTS
from anon_pipeline.spec import permission
from anon_pipeline_tests.cli.commands import Ended, run, sentence, written
from anon_pipeline_tests.differential_privacy import synthetic_people
from anon_pipeline_tests.people import write_spec
from anon_pipeline_tests.report.pages import manifest_content

COLUMNS = {"age": {"role": "quasi_identifier", "type": "numeric"}, "t": "sensitive"}
ROWS = [f"{20 + number % 30},{('no', 'yes')[number % 3 > 0]}" for number in range(60)]


@pytest.fixture
def spec(tmp_path: Path, home: Home) -> Path:
    """The spec of 60 people."""
    written(tmp_path / "people.csv", ["age,t", *ROWS])
    write_spec(tmp_path, COLUMNS, "people.csv", k=3)
    return tmp_path / "release.yaml"


def launched(spec: Path, monkeypatch: pytest.MonkeyPatch, outcome: launch.Outcome, *options: str) -> Ended:
    """How `run` ends where the pipeline ends like this."""

    def launching(_: Any, home: Home, runtime: Any) -> launch.Outcome:
        print("loss 0.5")
        assert (runtime.engine_name, runtime.threads, runtime.memory_limit) == ("duckdb", 2, "1GB")
        assert runtime.home == str(home.root)
        return outcome

    monkeypatch.setattr(processes, "warm", lambda number: None)
    monkeypatch.setattr(launch, "launch", launching)
    return run("run", spec, "--threads", "2", "--memory", "1GB", *options)


@pytest.mark.long
@pytest.mark.parametrize(("new", "state"), [(True, "released"), (False, "stands already; nothing new was published")])
def test_a_release_is_told(spec: Path, monkeypatch: pytest.MonkeyPatch, new: bool, state: str) -> None:
    outcome = launch.Outcome(0, "a-run", [], new, Path("/releases/[people]"), manifest_content())
    ended = launched(spec, monkeypatch, outcome)
    assert (ended.code, ended.lines[1], ended.lines[-1]) == (0, f"state  {state}", "folder  /releases/[people]")
    assert ended.told == ["loss 0.5"]
    ended = launched(spec, monkeypatch, outcome, "--json")
    assert (ended.code, ended.json["new"], ended.json["released"]) == (0, new, True)


def test_a_release_that_is_not_everywhere_is_told_as_such(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = launch.Outcome(4, "a-run", ["[there] lacks it"], True, None, manifest_content())
    ended = launched(spec, monkeypatch, outcome)
    assert (ended.code, ended.lines[1], ended.told[1:]) == (
        4,
        "state  released",
        ["Released, but: [there] lacks it"],
    )


@pytest.mark.parametrize(("code", "what"), [(3, "Refused"), (2, "Not released"), (1, "Not released")])
def test_what_is_not_released_is_told_with_its_reasons(
    spec: Path, monkeypatch: pytest.MonkeyPatch, code: int, what: str
) -> None:
    first = f"[k] is 3 {'in many classes ' * 20}."
    outcome = launch.Outcome(code, "a-run", [first, "l is 1"], reports=[Path(f"/private/{'[refusal]' * 20}.html")])
    ended = launched(spec, monkeypatch, outcome)
    assert (ended.code, ended.out) == (code, "")
    assert ended.told[1:] == [f"{what}: {first}", f"{what}: l is 1", f"What to change: {outcome.reports[0]}"]


@pytest.mark.long
def test_what_cannot_start_is_told_as_a_run_would_tell_it(spec: Path, home: Home) -> None:
    written(spec.parent / "people.csv", ["age,t", "20,no"])
    ended = run("run", spec)
    assert (ended.code, ended.out) == (2, "")
    assert [line.partition(": ")[0] for line in ended.told] == ["Not released"]
    content = run("run", spec, "--json")
    assert content.code == 2
    assert content.json == {
        "released": False,
        "exit_code": 2,
        "run_id": None,
        "failures": [ended.told[0].removeprefix("Not released: ")],
    }


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("allowed", [True, False])
def test_code_of_a_spec_is_allowed_by_its_option_only(
    spec: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool, command: str
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(permission, "allow_code", lambda: calls.append("allowed"))
    run(command, spec.parent / "absent", *(["--allow-code"] if allowed else []))
    assert calls == (["allowed"] if allowed else [])


@pytest.mark.parametrize("option", [("--threads", "0"), ("--threads", "1025"), ("--memory", "much")])
def test_a_run_with_options_that_mean_nothing_does_not_start(spec: Path, option: tuple[str, str]) -> None:
    ended = run("run", spec, "--dry-run", *option)
    assert ended.code == 2 or isinstance(ended.error, InputError)
    assert run("run", spec, "--dry-run", "--threads", "1024", "--memory", "1GB").code == 0


@pytest.mark.long
def test_a_dry_run_says_whether_it_would_run(spec: Path, home: Home) -> None:
    ended = run("run", spec, "--dry-run")
    assert (ended.code, ended.lines[0]) == (0, "people: a run could start")
    content = run("run", spec, "--dry-run", "--json").json
    assert (content["dry_run"], content["people"]) == (True, 60)
    assert not any(home.releases.iterdir())


@pytest.mark.parametrize("options", [(), ("--k", "5,10")])
def test_a_sweep_groups_nobody_of_a_synthetic_release(tmp_path: Path, options: tuple[str, ...]) -> None:
    """It asked to take out a section that the spec had not."""
    spec = tmp_path / "release.yaml"
    spec.write_text(yaml.safe_dump(synthetic_people.content()))
    said = "sweep: prices groupings of people, and a synthetic release makes none"
    assert sentence("sweep", spec, *options) == said


def test_a_sweep_needs_something_to_vary(spec: Path) -> None:
    assert sentence("sweep", spec).startswith("say what to vary with --k or --set, for example --k 2,5,10")
    assert "no_such" in sentence("sweep", spec, "--set", "privacy.no_such=2")


@pytest.mark.parametrize(("options", "measured"), [((), True), (("--utility",), True), (("--no-utility",), False)])
def test_a_sweep_measures_accuracy_unless_it_need_not(
    spec: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], measured: bool
) -> None:
    asked: list[bool] = []

    def measuring(_: Any, __: Any, utility: bool) -> None:
        asked.append(utility)
        raise InputError("enough")

    monkeypatch.setattr("anon_pipeline.pipeline.tradeoff.measure_source", measuring)
    assert sentence("sweep", spec, "--k", "3", *options) == "enough"
    assert asked == [measured]


@pytest.mark.long
def test_a_sweep_measures_each_setting_and_releases_nothing(spec: Path, home: Home) -> None:
    content = run("sweep", spec, "--k", "3,20", "--no-utility", "--json").json
    folder = home.root / "frontier/people"
    assert (content["dataset"], content["folder"], len(content["prices"])) == ("people", str(folder), 2)
    assert sorted(file.name for file in folder.iterdir()) == ["frontier.csv", "frontier.md", "frontier.svg"]
    out = spec.parent / "[out]"
    ended = run("sweep", spec, "--set", "privacy.k_anonymity.k=3", "--no-utility", "--out", out)
    assert " ".join(ended.lines[:2]) == "people: the privacy-utility trade-off"
    assert f"written: {out / 'frontier.csv'}" in ended.lines[-1]
    assert not any(home.releases.iterdir())


@pytest.mark.parametrize(("port", "accepted"), [(1, True), (65535, True), (0, False), (65536, False)])
def test_the_ui_is_opened_with_the_home_and_the_hosts_that_were_named(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int, accepted: bool
) -> None:
    started: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(DATA_VARIABLE, "datasets")
    monkeypatch.setenv(ALLOW_HOSTS, "third")
    monkeypatch.setattr(commands.os, "execve", lambda *call: started.append(call))
    ended = run("ui", "--port", port, "--allow-host", "first", "--allow-host", "second:1")
    if not accepted:
        assert (ended.code, started) == (2, [])
        return
    ((program, arguments, environment),) = started
    assert program == arguments[0] == sys.executable
    assert arguments[arguments.index("-p") + 1] == str(port)
    assert arguments[arguments.index("-d") + 1] == str(tmp_path)
    assert environment["DAGSTER_HOME"] == os.getcwd() == str(dagster_home(home))
    assert environment[VARIABLE] == str(home.root)
    assert environment[DATA_VARIABLE] == str(tmp_path / "datasets")
    assert environment[ALLOW_HOSTS] == "first,second:1,third"
    assert environment["PATH"] == os.environ["PATH"]
    run("ui")
    assert started[-1][1][started[-1][1].index("-p") + 1] == "3000"
