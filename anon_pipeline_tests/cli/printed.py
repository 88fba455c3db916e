"""What a command prints, as lines without frames and padding. Holds no test."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

#: Returns the lines that were printed on stdout since the last call.
Printed = Callable[[], list[str]]


def lines_of(text: str) -> list[str]:
    """The lines of a text: cells are parted by two blanks, and lines of nothing but a frame are left out."""
    lines = (re.sub(r"\s*[│┃]\s*|\s{2,}", "  ", line).strip() for line in text.splitlines())
    return [line for line in lines if line.strip("─━┏┓┡┩┳╇┴└┘┌┐┬├┤┼╭╮╰╯ ")]


def printed_by(capsys: pytest.CaptureFixture[str]) -> Printed:
    return lambda: lines_of(capsys.readouterr().out)
