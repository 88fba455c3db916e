"""`prune`, `alerts`, `releases expire`, `experiments` and `checks`: what an operator is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from anon_pipeline.cli import tools, upkeep
from anon_pipeline.errors import InputError
from anon_pipeline.home import DATA_VARIABLE, Home
from anon_pipeline.pipeline.automation.operations import FILE, Keep
from anon_pipeline.pipeline.expectations import data_docs
from anon_pipeline.pipeline.quick_records import quick_records
from anon_pipeline.pipeline.web import experiments
from anon_pipeline.pipeline.web.guard import ALLOW_HOSTS
from anon_pipeline_tests.cli.commands import run, sentence
from anon_pipeline_tests.people import write_spec
from anon_pipeline_tests.pipeline.automation.test_alerts import WebServer


@pytest.fixture
def web() -> Iterator[WebServer]:
    with closing(WebServer()) as server:
        yield server


def operations(home: Home, text: str) -> None:
    file = home.root / FILE
    file.write_text(text)
    file.chmod(0o600)


def test_a_test_alert_reaches_every_target(home: Home, web: WebServer) -> None:
    assert sentence("alerts").startswith(f"{home.root / FILE}: names no target")
    hook = f"{{webhook: {{url: '{web.address}/[a]'}}}}"
    operations(home, f"alerts: [{hook}, {hook}]\n")
    ended = run("alerts")
    name = f"{web.address.removeprefix('http://')}"
    assert ended.code == 0
    assert len(ended.lines) == 2
    assert all(name.split(":")[0] in line and line.endswith(": delivered") for line in ended.lines)
    assert ended.lines[1].split(": delivered")[0] == f"{ended.lines[0].split(': delivered')[0]} (2)"
    assert [(alert["dataset"], alert["event"]) for alert in web.taken][:1] == [("test", "failed")]
    assert all("a test alert, sent by hand at" in str(alert) for alert in web.taken)
    content = run("alerts", "--json").json
    assert (content["exit_code"], set(content["outcomes"].values())) == (0, {"delivered"})


def test_a_target_that_takes_no_alert_is_told_with_2(home: Home, web: WebServer) -> None:
    web.status = 500
    operations(home, f"alerts: [{{webhook: {{url: '{web.address}/a'}}}}]\n")
    ended = run("alerts")
    assert ended.code == 2
    assert "delivered" not in ended.out
    assert run("alerts", "--json").json["exit_code"] == 2


@pytest.mark.long
def test_pruning_says_what_would_go(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    with quick_records(home.private):
        ended = run("prune", "--older-than", "30d", "--keep", "1", "--dry-run")
        assert ended.lines[0].startswith("would remove 0 runs of Dagster")
        assert run("prune", "--older-than", "30d").lines[0].startswith("removed 0 runs of Dagster")
        content = run("prune", "--older-than", "30d", "--dry-run", "--json").json
        assert (content["dry_run"], content["runs"]) == (True, 0)
    assert run("prune", "--keep", "0").code == 2
    assert "is no period" in sentence("prune", "--older-than", "soon")


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "older_than", "keep"),
    [
        ((), timedelta(days=7), 5),
        (("--keep", "2"), timedelta(days=7), 2),
        (("--older-than", "12h"), timedelta(hours=12), 5),
    ],
)
def test_options_of_pruning_go_before_the_settings_of_the_home(
    home: Home, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], older_than: timedelta, keep: int
) -> None:
    asked: list[Keep] = []

    def pruning(_: Home, policy: Keep, *__: object) -> None:
        asked.append(policy)
        raise InputError("enough")

    operations(home, "prune: {older_than: 7d, keep: 5}\n")
    monkeypatch.setattr("anon_pipeline.pipeline.automation.pruning.Pruning", pruning)
    with quick_records(home.private):
        assert sentence("prune", *options) == "enough"
    assert [(policy.older_than, policy.keep) for policy in asked] == [(older_than, keep)]


def test_specs_that_cannot_be_read_keep_no_other_from_being_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    for name in ("broken", "people"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken/release.yaml").write_text("[")
    write_spec(tmp_path / "people", {"age": "quasi_identifier", "t": "sensitive"}, "people.csv")
    assert [spec.dataset for spec in upkeep._readable_specs()] == ["people"]


def test_what_expired_is_counted(home: Home, tmp_path: Path) -> None:
    write_spec(tmp_path, {"age": "quasi_identifier", "t": "sensitive"}, "people.csv", retention={"private_days": 1})
    said = "removed no stored result; 0 stories of errors, 0 spilled files"
    assert run("releases", "expire", tmp_path).lines == [said]
    assert run("releases", "expire", tmp_path, "--json").json["stages"] == []


@pytest.mark.parametrize(("port", "accepted"), [(1, True), (65535, True), (0, False), (65536, False)])
def test_the_experiments_are_served_to_the_hosts_that_were_named(
    home: Home, monkeypatch: pytest.MonkeyPatch, port: int, accepted: bool
) -> None:
    served: list[tuple[Home, int, list[str]]] = []
    monkeypatch.setenv(ALLOW_HOSTS, "second,third")
    monkeypatch.setattr(experiments, "serve", lambda *call: served.append(call))
    ended = run("experiments", "--port", port, "--allow-host", "first")
    if not accepted:
        assert (ended.code, served) == (2, [])
        return
    assert served == [(home, port, ["first", "second", "third"])]
    assert ended.told == [f"MLflow shows what was run in {home.root} at http://127.0.0.1:{port} (Ctrl-C ends it)"]
    monkeypatch.delenv(ALLOW_HOSTS)
    run("experiments")
    assert served[-1] == (home, 5000, [""])


@pytest.mark.parametrize(
    ("options", "opens", "opened", "printed"),
    [((), True, True, False), ((), False, True, True), (("--path",), True, False, True)],
)
def test_the_pages_of_checks_are_opened_or_named(
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    opens: bool,
    opened: bool,
    printed: bool,
) -> None:
    first, asked = home.root / "index.html", []
    monkeypatch.setattr(data_docs, "build", lambda *_: first)
    monkeypatch.setattr(tools.webbrowser, "open", lambda address: asked.append(address) or opens)
    assert run("checks", *options).out == (f"{first}\n" if printed else "")
    assert asked == ([first.as_uri()] if opened else [])
