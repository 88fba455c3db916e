"""Whether the quotes of a text file are written so that no row decides where the fields of other rows end (RFC 4180).

A quote opens a field or closes it, or stands doubled in a quoted field. Readers also take quotes within a field that
does not begin with one. Beside such a field, `5"`, an opening quote in a row above takes everything up to that quote
into one field, and everybody in between with it, without an error.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.engine.unpacked import is_workbook, unpacked
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Source

Letters = npt.NDArray[np.uint8]

#: What is said of a file, without a line: lines are people.
STRAY_QUOTE = (
    "has a quote within a field that does not begin with one, so that one row could decide where the fields of others "
    "end; write the file again with such fields in quotes, and their own quotes doubled"
)
QUOTE, BLANK, LINE_END = ord('"'), ord(" "), ord("\n")
#: The fewest delimiters of a row by which lines within a field are taken for rows.
FEWEST = 2
#: Characters that are read at a time.
BLOCK = 1 << 22


class StrayQuote(InputError):
    """A quote within a field that does not begin with one."""


def require_closed_fields(source: Source, path: Path, label: str) -> None:
    """Check that every quote of a text file opens a field, closes it, or is doubled within it.

    Parameters
    ----------
    source : how the file is written; its delimiter is stated or was found

    Raises
    ------
    StrayQuote
        Naming no line.
    """
    if is_workbook(path):
        return  # its cells are written as a text by ourselves
    delimiter, inside = (source.delimiter or ",").encode(), False
    for text in _whole_lines(source, path, label):
        stray, inside = _stray(text, delimiter, inside)
        if stray:
            raise StrayQuote(f"{label}: {STRAY_QUOTE}")


def rows_within_fields(source: Source, path: Path, label: str) -> int:
    """How many whole lines of a text file lie within a quoted field, and have as many delimiters as its first line.

    If a quote was never closed, these are rows of people that are read as one field. None are looked for where lines
    have fewer than two delimiters, as other lines of texts have, too.
    """
    found, inside, expected, delimiter = 0, False, 0, (source.delimiter or "").encode()
    for text in _whole_lines(source, path, label):
        letters = np.frombuffer(text, dtype=np.uint8)
        ends = np.flatnonzero(letters == LINE_END) + 1
        if not expected:
            header = text[: ends[0]]
            delimiter = delimiter or max((b",", b";", b"\t", b"|"), key=header.count)
            expected = header.count(delimiter)
            if len(delimiter) > 1 or expected < FEWEST:
                return 0
        lines = np.insert(ends, 0, 0)
        opened = np.searchsorted(np.flatnonzero(letters == QUOTE), lines)
        delimiters = np.diff(np.searchsorted(np.flatnonzero(letters == delimiter[0]), lines))
        within = ((opened[:-1] + inside) % 2 == 1) & (np.diff(opened) == 0)
        found += int((within & (delimiters == expected)).sum())
        inside = inside != bool(opened[-1] % 2)
    return found


def _whole_lines(source: Source, path: Path, label: str) -> Iterator[bytes]:
    """The text of a file below what is skipped, in UTF-8 and with one kind of line ends, in parts that end with a line.

    Nothing of a workbook: its cells are written as a text by ourselves.
    """
    if is_workbook(path):
        return
    with (
        unpacked(path, source.sheet, label) as read,
        io.TextIOWrapper(read, source.encoding, "replace") as text,
    ):
        for _ in range(source.skip):
            text.readline()
        rest = ""
        while block := text.read(BLOCK):
            whole, end, rest = (rest + block).rpartition("\n")
            if end:
                yield f"{whole}{end}".encode()
        if rest:
            yield f"{rest}\n".encode()


def _stray(text: bytes, delimiter: bytes, inside: bool) -> tuple[bool, bool]:
    """Whether whole lines have a stray quote, and whether a quoted field is open after them.

    Parameters
    ----------
    inside : whether a quoted field is open before them
    """
    # Two more line ends, so that each quote has neighbours; a byte order mark is no part of the first field.
    letters = np.frombuffer(b"\n" + text.removeprefix(b"\xef\xbb\xbf") + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(letters == QUOTE)
    if not len(quotes):
        return False, inside
    opens = np.arange(len(quotes)) % 2 == (1 if inside else 0)
    doubled = np.diff(quotes) == 1
    is_next, is_before = np.append(doubled, False), np.insert(doubled, 0, False)
    begins = is_before | _beside(letters, quotes, delimiter, -1)
    ends = is_next | _beside(letters, quotes, delimiter, 1)
    return not bool(np.where(opens, begins, ends).all()), inside != bool(len(quotes) % 2)


def _beside(letters: Letters, quotes: IntArray, delimiter: bytes, way: int) -> BoolArray:
    """Whether a delimiter or a line end stands before (-1) or after (1) each quote, apart from blanks, shape (n,)."""
    place = quotes + way
    found = _stands(letters, place, delimiter, way)
    while (on := ~found & (letters[place] == BLANK)).any():
        place = np.where(on, place + way, place)
        found = found | (on & _stands(letters, place, delimiter, way))
    return found


def _stands(letters: Letters, place: IntArray, delimiter: bytes, way: int) -> BoolArray:
    """Whether a delimiter or a line end stands at each place, read in this direction, shape (n,)."""
    found = np.zeros(len(place), dtype=bool)
    for text in (delimiter, bytes([LINE_END])):
        same = np.ones(len(place), dtype=bool)
        for number, letter in enumerate(text if way > 0 else text[::-1]):
            same &= letters[np.clip(place + way * number, 0, len(letters) - 1)] == letter
        found |= same
    return found
