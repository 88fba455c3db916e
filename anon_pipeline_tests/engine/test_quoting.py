"""Quotes of a text file: a file as RFC 4180 has it passes, and a quote that stands elsewhere is found."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon_pipeline.engine import quoting
from anon_pipeline.engine.quoting import StrayQuote, require_closed_fields, rows_within_fields
from anon_pipeline.spec import Source

FIELDS = st.text(alphabet='a"ä, \n\r;', max_size=6)


def is_closed(folder: Path, text: str, name: str = "people.csv", encoding: str = "utf-8", **source: Any) -> bool:
    """Whether a file of this text passes."""
    written = text.encode(encoding)
    (folder / name).write_bytes(gzip.compress(written) if name.endswith(".gz") else written)
    try:
        require_closed_fields(Source(path=name, encoding=encoding, **source), folder / name, name)
    except StrayQuote as error:
        assert not any(letter.isdigit() for letter in str(error))  # no line, which is a person
        return False
    return True


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(st.lists(FIELDS, min_size=2, max_size=3), min_size=1, max_size=5),
    quoted=st.booleans(),
    delimiter=st.sampled_from([",", ";", "\t"]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    block=st.sampled_from([1, 3, 7, 1 << 22]),
)
def test_what_a_program_writes_passes_whatever_stands_in_it(
    rows: list[list[str]],
    quoted: bool,
    delimiter: str,
    line_end: str,
    block: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quoting, "BLOCK", block)
    text = io.StringIO(newline="")
    quoting_of = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting_of).writerows(rows)
    assert is_closed(tmp_path, text.getvalue(), delimiter=delimiter)


@pytest.mark.parametrize("block", [2, 1 << 22])
@pytest.mark.parametrize("line", ['a 5",x', '"a"b,x', 'a"b"c,x', '"a" "b",x', 'x,\t"a"', '"a"";"b,x', '"Bob,x\n"a,x'])
def test_a_quote_that_neither_opens_nor_closes_a_field_is_found(
    line: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quoting, "BLOCK", block)
    whole = 'name,city\n"a, b",Cork\n{}c,"Cork ""1"""\n'
    assert is_closed(tmp_path, whole.format(""))
    assert not is_closed(tmp_path, whole.format(f"{line}\n"))
    assert not is_closed(tmp_path, f"name,city\na,b\n{line}")


def test_how_a_file_is_written_is_known(tmp_path: Path) -> None:
    stray, whole = 'name;city\na 5";Cork\n', '"name" ; "city"\n "a;b" ;"Cork"\n'
    for source in ({}, {"encoding": "utf-16"}, {"name": "people.csv.gz"}, {"encoding": "utf-8-sig"}):
        assert is_closed(tmp_path, whole, delimiter=";", **source)
        assert not is_closed(tmp_path, stray, delimiter=";", **source)
    assert is_closed(tmp_path, '\ufeff"name";"city"\n', delimiter=";")
    assert is_closed(tmp_path, 'a 5" title\nname,city\n', skip=1)
    assert is_closed(tmp_path, '"name"::"city"\n"a:b"::"c"\n', delimiter="::")
    assert not is_closed(tmp_path, '"name"::"city"\na:"b"::"c"\n', delimiter="::")
    assert is_closed(tmp_path, '"name" "city"\n"a b" c\n', delimiter=" ")


@pytest.mark.parametrize("block", [3, 1 << 22])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('a,b,c\n"Bob,1,2\nx,3,4\ny,5,6\nAl",7,8\n', 2),
        ('a;b;c\n"Bob;1;2\nx;3;4\nAl";7;8', 1),
        ('a,b,c\n"Bob\nis, say\nill",1,2\n"x ""y"" z",3,4\n', 0),
        ('a,b\n"Bob,1\nx,3\nAl",7\n', 0),
        ("a,b,c\n", 0),
        ("", 0),
    ],
)
def test_rows_that_a_quote_has_taken_into_a_field_are_counted(
    text: str, lines: int, line_end: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quoting, "BLOCK", block)
    (tmp_path / "people.csv").write_text(text, newline=line_end)
    assert rows_within_fields(Source(path="people.csv"), tmp_path / "people.csv", "people.csv") == lines
