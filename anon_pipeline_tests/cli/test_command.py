"""How a command ends: a sentence and an exit code for what a user can mend, and nobody's row for everything else."""

from __future__ import annotations

import errno
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from anon_pipeline import cli
from anon_pipeline.errors import InputError, NotDelivered, Refused
from anon_pipeline.home import DAMAGED, NO_MEMORY, NOT_OPENED, Home


@pytest.fixture(autouse=True)
def _signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command handles signals in its own way; here the tests go on after it."""
    monkeypatch.delenv(cli.DEBUG_VARIABLE, raising=False)
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


def ended(monkeypatch: pytest.MonkeyPatch, outcome: BaseException | int | None, *arguments: str) -> object:
    """The exit code of a command that ends like this."""

    def app(**_: Any) -> int | None:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(sys, "argv", ["anon-pipeline", "run", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.command()
    return end.value.code


def caused_by(cause: BaseException) -> Exception:
    error = RuntimeError("a row: Ottilie")
    error.__cause__ = cause
    return error


def damaged() -> sqlite3.DatabaseError:
    try:
        with sqlite3.connect(":memory:") as database:
            database.deserialize(b"nothing that SQLite knows" * 100)
            database.execute("SELECT * FROM sqlite_master")
    except sqlite3.DatabaseError as error:
        return error
    raise AssertionError("it was read")


def not_opened() -> sqlite3.Error:
    """What SQLite says where the journal of a database cannot be made, as on a disk that is full."""
    try:
        sqlite3.connect("/dev/null/runs.db")
    except sqlite3.Error as error:
        return error
    raise AssertionError("it was opened")


@pytest.mark.parametrize(
    ("outcome", "code", "sentence"),
    [
        (InputError("[age]: no such column"), 2, "[age]: no such column"),
        (NotDelivered("stands, but not there"), 4, "stands, but not there"),
        (Refused(["k is 3", "l is 1"]), 3, "refused: k is 3; l is 1"),
        (typer.Abort(), 130, "stopped"),
        (KeyboardInterrupt(), 130, "stopped"),
        (130, 130, "stopped"),
        (caused_by(KeyboardInterrupt()), 130, "stopped"),
        (caused_by(OSError(errno.ENOSPC, "no space")), 2, "HOME: the disk is full; free or allow disk space"),
        (caused_by(MemoryError()), 2, NO_MEMORY),
        (caused_by(damaged()), 2, f"HOME: {DAMAGED}"),
        (caused_by(not_opened()), 2, f"HOME: {NOT_OPENED}"),
        (PermissionError(errno.EACCES, "denied", "/etc/x"), 2, "/etc/x: cannot be read or written (denied)"),
        (OSError(errno.EROFS, "is read-only"), 2, "the system refuses what the command needs: is read-only"),
    ],
)
def test_what_can_be_mended_is_a_sentence(
    home: Home,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    outcome: BaseException | int,
    code: int,
    sentence: str,
) -> None:
    sentence = sentence.replace("HOME", str(home.root))
    assert ended(monkeypatch, outcome) == code
    assert capsys.readouterr() == ("", f"anon-pipeline: {sentence}\n")
    assert ended(monkeypatch, outcome, "--json") == code
    told = capsys.readouterr()
    assert json.loads(told.out) == {"error": sentence, "exit_code": code}
    assert told.err == f"anon-pipeline: {sentence}\n"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a row: Ottilie"),
        caused_by(ValueError("Ottilie")),
        ConnectionRefusedError(errno.ECONNREFUSED, "Ottilie refuses", "Ottilie"),
        OSError("Ottilie"),
        UnicodeEncodeError("ascii", "Ottilie ö", 8, 9, "Ottilie"),
    ],
)
def test_an_error_of_our_own_tells_nothing_of_anybody_unless_it_was_asked_for(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    assert ended(monkeypatch, error) == 1
    told = "".join(capsys.readouterr())
    assert told.startswith(f"anon-pipeline: internal error ({type(error).__name__}); ANON_PIPELINE_DEBUG=1 shows")
    assert "Ottilie" not in told
    monkeypatch.setenv(cli.DEBUG_VARIABLE, "1")
    with pytest.raises(type(error), match="Ottilie"):
        ended(monkeypatch, error)


@pytest.mark.parametrize(("outcome", "code"), [(None, 0), (0, 0), (3, 3)])
def test_a_command_that_ends_by_itself_has_its_exit_code_and_says_nothing_more(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, outcome: int | None, code: int
) -> None:
    assert ended(monkeypatch, outcome, "--json") == code
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("arguments", [["run", "--nothing", "--json"], ["--json", "--nothing"]])
def test_a_wrong_option_is_shown_as_such_and_is_an_object_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["anon-pipeline", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.command()
    assert end.value.code == 2
    told = capsys.readouterr()
    assert json.loads(told.out)["exit_code"] == 2
    assert "No such option" in json.loads(told.out)["error"]
    assert "No such option" in told.err
    assert "Usage" in told.err


@pytest.mark.parametrize(
    ("letter", "encoding", "in_a_path"),
    [
        (0xDC80, "utf-8", True),
        (0xDCFF, "utf-8", True),
        (0xDC7F, "utf-8", False),
        (0xDD00, "utf-8", False),
        (0xF6, "utf-8", False),
        (0xF6, "ascii", True),
    ],
)
def test_letters_of_a_path_are_told_from_those_of_people(
    home: Home,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    letter: int,
    encoding: str,
    in_a_path: bool,
) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: encoding)
    error = UnicodeEncodeError("utf-8", f"/a/{chr(letter)}", 3, 4, "surrogates not allowed")
    assert ended(monkeypatch, error) == (2 if in_a_path else 1)
    assert ("a path has letters that are no UTF-8" in capsys.readouterr().err) is in_a_path


@pytest.mark.parametrize(
    ("name", "owned", "exists", "of_another"),
    [
        ("private/raw", False, True, True),
        ("private/raw", True, True, False),
        ("private/raw", False, False, False),
        ("releases/x", False, True, False),
    ],
)
def test_whose_home_it_is_is_said_where_it_belongs_to_somebody_else(
    home: Home,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    owned: bool,
    exists: bool,
    of_another: bool,
) -> None:
    file = home.root / name
    if not exists:
        for folder in sorted(home.private.rglob("*"), reverse=True):
            folder.rmdir() if folder.is_dir() else folder.unlink()
        home.private.rmdir()
    if not owned:
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert ended(monkeypatch, PermissionError(errno.EACCES, "denied", str(file))) == 2
    told = capsys.readouterr().err
    expected = home.of_another_user if of_another else f"{file}: cannot be read or written (denied)"
    assert told == f"anon-pipeline: {expected}\n"


@pytest.mark.parametrize("ignored", [True, False])
def test_sigterm_ends_a_command_as_ctrl_c_does_even_in_the_background(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ignored: bool
) -> None:
    """A script's shell lets what it starts in the background ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)

    def app(**_: Any) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as end:
        cli.command()
    assert end.value.code == 130
    assert capsys.readouterr().err == "anon-pipeline: stopped\n"
    # All is being ended already.
    assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_a_handler_of_ctrl_c_that_is_there_already_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster and MLflow end their own work at Ctrl-C, before the command does."""
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))

    def app(**_: Any) -> int:
        signal.raise_signal(signal.SIGTERM)
        return 0

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as end:
        cli.command()
    assert (end.value.code, heard) == (0, [signal.SIGINT])


def test_a_user_without_a_home_gets_that_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def homeless() -> Path:
        raise RuntimeError("could not determine home directory")

    monkeypatch.setenv("HOME", str(tmp_path))
    assert ended(monkeypatch, 0) == 0
    assert os.environ["HOME"] == str(tmp_path)
    monkeypatch.setattr(Path, "home", homeless)
    assert ended(monkeypatch, 0) == 0
    assert os.environ["HOME"] == "/"
