"""The parts that several commands share: options, progress and JSON."""

from __future__ import annotations

import json
import logging
from importlib import metadata
from typing import Any

import pytest
from typer.testing import CliRunner

from anon_pipeline.cli.app import (
    _amount_of_memory,
    _known_engine,
    app,
    err,
    names_in,
    print_json,
    show_progress,
    source_of,
)
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Source


@pytest.mark.parametrize("arguments", [["--version"], ["--version", "run"]])
def test_the_version_is_printed_and_nothing_is_done(arguments: list[str]) -> None:
    ended = CliRunner().invoke(app, arguments)
    assert (ended.exit_code, ended.stdout) == (0, f"anon-pipeline {metadata.version('anon-pipeline')}\n")


@pytest.mark.parametrize("arguments", [[], ["releases"], ["budget"]])
def test_without_a_command_its_help_is_shown(arguments: list[str]) -> None:
    assert "Usage" in CliRunner().invoke(app, arguments).output


def test_shells_can_complete_commands() -> None:
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize(
    ("delimiter", "accepted"), [("", False), (";", True), (",;.|", True), ("12345", False), (None, True)]
)
def test_a_delimiter_has_one_to_four_letters(delimiter: str | None, accepted: bool) -> None:
    stated: dict[str, Any] = {"path": "people.csv", "delimiter": delimiter, "encoding": None}
    if accepted:
        expected = Source(path="people.csv") if delimiter is None else Source(path="people.csv", delimiter=delimiter)
        assert source_of(stated) == expected
        return
    with pytest.raises(InputError, match="--delimiter: is one to four letters"):
        source_of(stated)


def test_what_a_source_cannot_have_is_told() -> None:
    with pytest.raises(InputError, match="source: names: goes with header: 0"):
        source_of({"path": "people.csv", "header": 0})


@pytest.mark.parametrize(("name", "known"), [("duckdb", True), ("spark", True), ("dask", False), ("", False)])
def test_an_engine_is_known_or_not(name: str, known: bool) -> None:
    if known:
        assert _known_engine(name) == name
        return
    with pytest.raises(InputError, match="is not available; use duckdb or spark"):
        _known_engine(name)


def test_an_amount_of_memory_is_looked_at_before_any_work() -> None:
    assert _amount_of_memory(None) is None
    assert _amount_of_memory("4GB") == "4GB"
    with pytest.raises(InputError):
        _amount_of_memory("much")


def test_progress_goes_to_stderr_without_obeying_names(capsys: pytest.CaptureFixture[str]) -> None:
    show_progress()
    log = logging.getLogger("anon_pipeline")
    show_progress()  # the same line is not written twice
    log.debug("unimportant")
    log.info("[bold]people: step 1")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("[bold]people: step 1") == 1
    assert "unimportant" not in told.err
    assert "INFO" not in told.err
    assert "test_app.py" not in told.err
    assert not log.propagate


def test_errors_are_on_stderr_and_json_has_no_number_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    err.print("told")
    print_json({"risk": float("nan"), "loss": float("inf"), "k": 3})
    told = capsys.readouterr()
    assert json.loads(told.out) == {"risk": None, "loss": None, "k": 3}
    assert told.err == "told\n"


@pytest.mark.parametrize(
    ("text", "names"), [(None, []), ("", []), (" , ", []), ("a", ["a"]), (" a ,b, c d,", ["a", "b", "c d"])]
)
def test_names_are_parted_by_commas(text: str | None, names: list[str]) -> None:
    assert names_in(text) == names
