"""The streams of a command: what it does counts, whether or not somebody can read its output."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


class _Patient(io.FileIO):
    """A stream that drops output from the first failure on, so that no work is reported as failed because of it."""

    failure: OSError | None = None

    def write(self, data: object, /) -> int:
        if self.failure is None:
            try:
                return super().write(data)  # type: ignore[arg-type]
            except BlockingIOError:
                raise
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes  # type: ignore[arg-type]


#: The stream of each name, and the one that it stands for, whose file stays open as long as that lives.
_streams: dict[str, tuple[_Patient, TextIO]] = {}


def open_closed() -> None:
    """Let output lead nowhere where whoever starts the command has closed a stream, as some service managers do.

    Otherwise the next file that is opened would get the number of the stream, and what is written to that.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def be_patient() -> None:
    """Let the command finish and keep its exit code where a stream cannot take its output.

    The disk is full, the reader has closed it, or its encoding has no such letter.
    """
    for name in ("stdout", "stderr"):
        given = getattr(sys, name)
        raw = _Patient(given.fileno(), "w", closefd=False)
        _streams[name] = raw, given
        # Paths need not be UTF-8 and are given back as they are; other encodings lack letters of names and tables.
        unwritable = "surrogateescape" if codecs.lookup(given.encoding).name == "utf-8" else "backslashreplace"
        lines = name == "stderr" or raw.isatty()
        text = io.TextIOWrapper(io.BufferedWriter(raw), given.encoding, unwritable, line_buffering=lines)
        setattr(sys, name, text)


@contextmanager
def printed_aside() -> Iterator[None]:
    """Let what models and libraries print go to stderr: stdout, with the one object of --json, is the command's own."""
    with redirect_stdout(sys.stderr):
        yield


def lost_output() -> str | None:
    """A sentence if output on stdout was lost; empty if its reader closed it, as `head` does; None if all was written.

    It flushes both streams.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    failure = _streams["stdout"][0].failure
    if failure is None:
        return None
    if failure.errno == errno.EPIPE:
        return ""
    return f"standard output cannot be written ({failure.strerror}); what the command did stands all the same"
