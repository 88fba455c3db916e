"""What a command prints, as lines without frames and padding. Holds no test."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

#: Returns the lines that were printed on stdout since the last call.
Printed = Callable[[], list[str]]


def lines_of(text: str) -> list[str]:
    """The lines of a text: cells are parted by two blanks; frames and empty lines are left out, but no empty row."""
    rows = [line for line in text.splitlines() if line.strip("─━┏┓┡┩┳╇┴└┘┌┐┬├┤┼╭╮╰╯ ")]
    return [re.sub(r"\s*[│┃]\s*|\s{2,}", "  ", line).strip() for line in rows]


def printed_by(capsys: pytest.CaptureFixture[str]) -> Printed:
    return lambda: lines_of(capsys.readouterr().out)
