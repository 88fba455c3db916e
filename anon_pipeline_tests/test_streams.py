"""The streams of a command: stdout has what the command says, whatever models and libraries print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anon_pipeline import cli
from anon_pipeline.pipeline import launch, processes
from anon_pipeline_tests.people import write_spec


def test_what_a_model_prints_is_not_beside_the_one_object_on_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printing(*_: object) -> launch.Outcome:
        print("loss 0.5")  # as a model with verbose=1 does
        return launch.Outcome(2, "run", ["nothing was made"])

    (tmp_path / "people.csv").write_text("age,ill\n1,yes\n2,no\n3,no\n")
    write_spec(
        tmp_path, {"age": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}}, "people.csv", target="ill"
    )
    monkeypatch.setenv("ANON_PIPELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(processes, "warm", lambda *_: None)
    monkeypatch.setattr(launch, "launch", printing)
    ended = CliRunner().invoke(cli.app, ["run", str(tmp_path), "--json"])
    assert json.loads(ended.stdout)["failures"] == ["nothing was made"]
    assert "loss 0.5" in ended.stderr
