"""Output that cannot be written is lost without the work, and it is said that it was."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from anon_pipeline import cli
from anon_pipeline.cli import streams

#: The streams of a command, opened on a file, a pipe or a device: stdout, then stderr.
Opened = Callable[[object, str], None]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Opened]:
    """A function that lets stdout lead to a file or a file descriptor in an encoding, and stderr to the file `err`."""
    given: list[io.TextIOWrapper] = []

    def let(to: object, encoding: str = "utf-8") -> None:
        for place in (to, tmp_path / "err"):
            given.append(open(place, "w", encoding=encoding))  # type: ignore[call-overload] # noqa: SIM115
        monkeypatch.setattr(sys, "stdout", given[0])
        monkeypatch.setattr(sys, "stderr", given[1])
        streams.be_patient()

    monkeypatch.setattr(streams, "_streams", {})
    yield let
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    for stream in given:
        stream.close()


def test_all_that_was_written_is_there(opened: Opened, tmp_path: Path) -> None:
    opened(tmp_path / "out", "utf-8")
    print("kept", "ö", "\udcff")  # a path need not be UTF-8
    assert streams.lost_output() is None
    assert (tmp_path / "out").read_bytes() == b"kept \xc3\xb6 \xff\n"


def test_letters_that_an_encoding_lacks_are_written_as_their_numbers(opened: Opened, tmp_path: Path) -> None:
    opened(tmp_path / "out", "ascii")
    print("Łódź")
    assert streams.lost_output() is None
    assert (tmp_path / "out").read_bytes() == rb"\u0141\xf3d\u017a" + b"\n"


def test_errors_are_written_line_by_line_and_output_in_a_file_at_the_end(opened: Opened, tmp_path: Path) -> None:
    opened(tmp_path / "out", "utf-8")
    print("here")
    print("there", file=sys.stderr)
    assert (tmp_path / "out").read_bytes() == b""
    assert (tmp_path / "err").read_bytes() == b"there\n"
    assert streams.lost_output() is None
    assert (tmp_path / "out").read_bytes() == b"here\n"


def test_output_of_a_terminal_is_written_line_by_line(opened: Opened) -> None:
    reader, writer = os.openpty()
    try:
        opened(writer, "utf-8")
        print("here")
        assert os.read(reader, 10) == b"here\r\n"
    finally:
        os.close(reader)


def test_a_full_disk_loses_output_and_no_work(opened: Opened, capfd: pytest.CaptureFixture[str]) -> None:
    opened("/dev/full", "utf-8")
    for _ in range(3):
        print("lost")
        sys.stdout.flush()  # it fails once; from then on all is dropped
    assert streams.lost_output() == (
        f"standard output cannot be written ({os.strerror(errno.ENOSPC)}); what the command did stands all the same"
    )


def test_a_reader_who_has_seen_enough_is_told_nothing(opened: Opened) -> None:
    reader, writer = os.pipe()
    opened(writer, "utf-8")
    os.close(reader)
    print("lost")
    assert streams.lost_output() == ""


def test_a_stream_that_is_busy_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        stream = streams._Patient(writer, "w", closefd=False)
        while stream.write(b"x" * 65_536):
            pass  # until the pipe is full: then nothing is written, and nothing is wrong
        assert stream.failure is None
    finally:
        os.close(reader)
        os.close(writer)


def test_a_closed_stream_leads_nowhere_and_an_open_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = sys.stderr
    monkeypatch.setattr(sys, "stdout", None)
    streams.open_closed()
    print("nobody reads this")
    assert (sys.stdout.name, sys.stderr) == (os.devnull, stderr)
    sys.stdout.close()


@pytest.mark.parametrize(("code", "expected"), [(None, 0), (3, 3), ("a text", 0)])
def test_the_console_script_leaves_with_the_exit_code_of_its_command(
    monkeypatch: pytest.MonkeyPatch, code: object, expected: int
) -> None:
    left: list[tuple[object, ...]] = []

    def command() -> None:
        raise SystemExit(code)

    for name in ("keep_imports", "be_patient"):
        monkeypatch.setattr(cli, name, lambda: None)
    monkeypatch.setattr(cli, "command", command)
    monkeypatch.setattr(cli.atexit, "register", lambda *call: left.append(call))
    with pytest.raises(SystemExit):
        cli.main()
    assert left == [(cli._leave, expected)]


@pytest.mark.parametrize(
    ("lost", "code", "expected"),
    [
        (None, 0, 0),
        (None, 3, 3),
        (f"standard output {'is gone ' * 20}!", 0, cli.LOST_WORDS),
        (f"standard output {'is gone ' * 20}!", 3, 3),
        ("", 0, cli.LOST_WORDS),
    ],
)
def test_the_exit_code_says_that_output_was_lost(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lost: str | None,
    code: int,
    expected: int,
) -> None:
    ended: list[int] = []
    called: list[str] = []
    monkeypatch.setattr(cli, "lost_output", lambda: lost)
    monkeypatch.setattr(cli.atexit, "_run_exitfuncs", lambda: called.append("at the end"))
    monkeypatch.setattr(cli.os, "_exit", ended.append)
    cli._leave(code)
    assert (ended, called) == ([expected], ["at the end"])
    assert capsys.readouterr().err == (f"anon-pipeline: {lost}\n" if lost else "")
