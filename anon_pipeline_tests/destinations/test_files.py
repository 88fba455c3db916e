"""A release as a CSV, a workbook or a file of Stata or SPSS holds the rows of the release, and nothing else."""

from __future__ import annotations

import csv
import datetime
import gc
import os
import resource
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.destinations import files
from anon_pipeline.destinations.files import WRITERS, export_table
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.release.publication import publish_folder
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline_tests.destinations.releases import DATASET, ODD, publish, table

ENDINGS = [*WRITERS]
#: Texts of which a program could make something else.
TEXTS = [None, "=1+1", "+1", "-1", "@x", "a,b", 'a"b', "a\nb", "007", " ", "1e5", "TRUE", "Łódź 東京", "a\tb"]


def exported(home: Home, folder: Path, ending: str, rows: pa.Table | None = None) -> Path:
    """The file of a release of these rows."""
    file = folder / f"people{ending}"
    if rows is None:
        rows = table("aaaaaaaaaaaa")
        if ending == ".dta":  # Stata knows no infinity
            rows = rows.set_column(4, "score", pa.array([0.1, None] * 3))
    assert export_table(home, publish(home, "aaaaaaaaaaaa", rows), file) == rows.num_rows
    return file


def rows_of(file: Path) -> list[list[Any]]:
    """What another program reads, the header first."""
    if file.suffix == ".xlsx":
        return [list(row) for row in openpyxl.load_workbook(file).active.iter_rows(values_only=True)]
    if file.suffix in (".csv", ".tsv"):
        with file.open(newline="", encoding="utf-8") as text:
            return list(csv.reader(text, delimiter="\t" if file.suffix == ".tsv" else ","))
    frame, described = getattr(pyreadstat, f"read_{file.suffix[1:]}")(str(file))
    return [list(described.column_names), *frame.astype(object).where(frame.notna(), None).to_numpy().tolist()]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_kind_of_file_holds_the_rows_of_the_release(home: Home, tmp_path: Path, ending: str) -> None:
    header, *rows = rows_of(exported(home, tmp_path, ending))
    assert len(rows) == 6
    day, moment = datetime.date(1900, 2, 28), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)
    if ending in (".csv", ".tsv"):
        assert header == table("").column_names
        assert rows[0] == ["20", "aaaaaaaaaaaa ö", "1900-02-28", "2024-02-29 01:02:03.000004", "0.1", "yes", "true"]
        assert rows[1] == ["", "", "1900-02-28", "2024-02-29 01:02:03.000004", "inf", "no", ""]
    elif ending == ".xlsx":
        assert header == table("").column_names
        assert rows[0][:2] == [20, "aaaaaaaaaaaa ö"]
        assert [rows[0][2].date(), rows[0][4:]] == [day, [0.1, "yes", True]]
        assert abs(rows[0][3] - moment) < datetime.timedelta(milliseconds=1)
        assert rows[1][:2] == [None, None]
        assert rows[1][4] == "inf"  # a number that Excel has not, and for which it calls the file damaged
    else:
        assert header == ["age", "wo_hn_ort__DROP_TABLE_x___", "born", "seen", "score", "ill", "v__"]
        assert rows[0][:2] == [20, "aaaaaaaaaaaa ö"]
        assert rows[0][2] == day
        assert abs(rows[0][3] - moment) < datetime.timedelta(seconds=1)
        assert rows[0][4:] == [0.1, "yes", 1.0]
        assert rows[1][0] is None


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_a_variable_that_may_not_bear_its_columns_name_has_it_as_its_label(
    home: Home, tmp_path: Path, ending: str
) -> None:
    names = ["age", "Age", "1st", "a b", "a_b", "é", "x" * 40, "x" * 40 + "y", "_", "z" * 81]
    file = exported(home, tmp_path, ending, pa.table({name: [1, 2] for name in names}))
    _, described = getattr(pyreadstat, f"read_{ending[1:]}")(str(file))
    assert described.column_labels == [name[:80] for name in names]
    assert len({name.casefold() for name in described.column_names}) == len(names)
    assert max(map(len, described.column_names)) <= 32


@pytest.mark.parametrize("ending", [".dta", ".sav"])
@pytest.mark.parametrize(
    ("name", "variable"),
    [
        *((kept, kept) for kept in ("Größe", "année", "Рост", "身長", "x1_", "longer", "string", "str")),
        *((word, f"v{word}") for word in ("long", "IN", "with", "by", "ALL", "str7", "2nd", "_all")),
        ("Gewicht kg", "Gewicht_kg"),
        ("a\u0301rea", "área"),
        ("m²", "m_"),
        ("身" * 40, "身" * 21),
        ("ü" * 40, "ü" * 32),
    ],
)
def test_a_name_that_stata_and_spss_allow_is_changed(
    home: Home, tmp_path: Path, ending: str, name: str, variable: str
) -> None:
    """A column called `long` could not be exported at all: Stata has a type of that name."""
    file = exported(home, tmp_path, ending, pa.table({name: [1, 2], name.upper() + "!": ["a", "b"]}))
    frame, described = getattr(pyreadstat, f"read_{ending[1:]}")(str(file))
    assert described.column_names[0] == variable
    assert frame[variable].tolist() == [1, 2]
    assert max(len(name.encode()) for name in described.column_names) <= 64


def test_every_edition_of_stata_since_14_reads_the_file(home: Home, tmp_path: Path) -> None:
    """Release 119 is for more variables than editions other than MP can have."""
    assert b"<release>118</release>" in exported(home, tmp_path, ".dta").read_bytes()[:100]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".xlsx"])
def test_a_text_stays_the_text_that_it_is(home: Home, tmp_path: Path, ending: str) -> None:
    """A text that begins with = was a formula in the workbook, which Excel would compute."""
    file = exported(home, tmp_path, ending, pa.table({"=x": TEXTS}))
    header, *rows = rows_of(file)
    assert header == ["=x"]
    missing = None if ending == ".xlsx" else ""
    assert [row[0] if row else missing for row in rows] == [missing if one is None else one for one in TEXTS]
    if ending == ".xlsx":
        cells = openpyxl.load_workbook(file).active["A"]
        assert {cell.data_type for cell in [*cells[:1], *cells[2:]]} == {"s"}


@pytest.mark.long
@given(
    st.lists(
        st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1)),
        min_size=1,
    )
)
def test_a_csv_is_read_as_it_was_released(tmp_path_factory: pytest.TempPathFactory, texts: list[str | None]) -> None:
    file = tmp_path_factory.mktemp("csv") / "people.csv"
    rows = pa.table({"x": pa.array(texts, pa.string()), "n": range(len(texts))})
    assert WRITERS[".csv"](pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()), file) == len(texts)
    read = pd.read_csv(file, dtype=str, keep_default_na=False, na_values=[""])
    assert read["x"].astype(object).where(read["x"].notna(), None).tolist() == texts


def test_numbers_and_days_that_a_workbook_cannot_hold_are_texts(home: Home, tmp_path: Path) -> None:
    days = [datetime.date(1899, 12, 31), datetime.date(1900, 1, 1)]
    file = exported(home, tmp_path, ".xlsx", pa.table({"n": [2**53 + 1, 2**53 - 1], "day": days}))
    _, first, second = rows_of(file)
    assert first == [str(2**53 + 1), "1899-12-31"]
    assert [second[0], second[1].date()] == [2**53 - 1, days[1]]


def test_decimals_of_a_workbook_are_numbers_where_it_can_hold_their_digits(home: Home, tmp_path: Path) -> None:
    """12.35 was a text, since no float is exactly that, and 12.5 beside it a number: a sum left out the texts."""
    digits = ["12.3500000", "12.5000000", "-0.1000000", "0.0000000", "12345678901.1234567"]
    file = exported(home, tmp_path, ".xlsx", pa.table({"n": [Decimal(one) for one in digits]}))
    _, *rows = rows_of(file)
    assert [row[0] for row in rows] == [12.35, 12.5, -0.1, 0, digits[-1]]


@pytest.mark.parametrize(
    ("value", "sentence"), [("a\x01", "cannot hold a character"), ("a" * 32_768, "at most 32,767 letters")]
)
def test_a_text_that_a_workbook_cannot_hold_is_told_and_not_quoted(
    home: Home, tmp_path: Path, value: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as told:
        exported(home, tmp_path, ".xlsx", pa.table({"x": [value]}))
    assert value[:2] not in str(told.value)
    assert [one.name for one in tmp_path.iterdir()] == ["home"]


def test_a_number_that_stata_cannot_hold_is_told(home: Home, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a \.dta file cannot hold a value of this table"):
        exported(home, tmp_path, ".dta", pa.table({"x": [float("inf")]}))
    assert [one.name for one in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("ending", [".dta", ".sav"])
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([2**53], "cannot hold all digits"),
        ([1, 2**53], "cannot hold all digits"),
        ([-(2**60), None], "cannot hold all digits"),
        ([Decimal(2**53)], "cannot hold all digits"),
        ([Decimal("12345678901.1234567")], "cannot hold all digits"),
        ([Decimal("12.35"), Decimal("-0.10")], None),
        ([2**53 - 1], None),
        ([datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], None),
        ([datetime.datetime(1000, 1, 1), datetime.datetime(9999, 12, 31)], None),
    ],
)
def test_statistics_programs_get_numbers_and_days_whole_or_not_at_all(
    home: Home, tmp_path: Path, ending: str, values: list[Any], sentence: str | None
) -> None:
    """Whole numbers beyond 2 ** 53 lost digits without a word."""
    if sentence is not None:
        with pytest.raises(InputError, match=sentence):
            exported(home, tmp_path, ending, pa.table({"x": values}))
        return
    _, *rows = rows_of(exported(home, tmp_path, ending, pa.table({"x": values})))
    assert [row[0] for row in rows] == [float(one) if isinstance(one, Decimal) else one for one in values]


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_a_single_column_that_would_lose_digits_is_enough(home: Home, tmp_path: Path, ending: str) -> None:
    with pytest.raises(InputError, match="cannot hold all digits"):
        exported(home, tmp_path, ending, pa.table({"age": [20, 50], "account": [2**53 + 1, 7]}))


@pytest.mark.parametrize(
    ("ending", "texts", "sentence"),
    [
        (".dta", ["yes", "yes\0", None], "a .dta file cannot hold a character of this table"),
        (".sav", ["a\0b", "c"], "a .sav file cannot hold a character of this table"),
        (".sav", ["m", "m "], "a .sav file does not tell texts apart by blanks at their end"),
        (".sav", ["m ", "f", None], None),
        (".dta", ["m", "m "], None),
    ],
)
def test_categories_are_not_made_one(
    home: Home, tmp_path: Path, ending: str, texts: list[str | None], sentence: str | None
) -> None:
    """`yes` and `yes` with the character of code 0 after it, as padded exports have, came out as one category."""
    rows = pa.table({"x": texts})
    if sentence is None:
        assert len({text for (text,) in rows_of(exported(home, tmp_path, ending, rows))[1:]}) == len(texts)
        return
    with pytest.raises(InputError, match=rf"^{sentence}; write a \.csv$"):
        exported(home, tmp_path, ending, rows)


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_names_that_are_alike_are_numbered(home: Home, tmp_path: Path, ending: str) -> None:
    file = exported(home, tmp_path, ending, pa.table({name: [1] for name in ("age", "Age", "AGE", "a b", "a_b")}))
    assert rows_of(file)[0] == ["age", "Age_2", "AGE_3", "a_b", "a_b_2"]


def test_a_text_as_long_as_a_workbook_allows_is_written(home: Home, tmp_path: Path) -> None:
    text = "a" * files.WORKBOOK_LETTERS
    assert rows_of(exported(home, tmp_path, ".xlsx", pa.table({"x": [text]}))) == [["x"], [text]]


def test_more_rows_than_a_workbook_has_are_told(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WORKBOOK_ROWS", 6)  # one of them the header
    with pytest.raises(InputError, match=r"at most 6 rows; write a \.csv"):
        exported(home, tmp_path, ".xlsx")
    monkeypatch.setattr(files, "WORKBOOK_ROWS", 7)
    exported(home, tmp_path, ".xlsx")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_appears_whole_for_everybody_or_not_at_all(
    home: Home, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = exported(home, tmp_path, ending)
    assert file.stat().st_mode & 0o777 == 0o644
    before = file.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="cannot be written"):
        export_table(home, "aaaaaaaaaaaa", file)
    assert file.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["home", file.name]


def test_an_altered_or_withdrawn_release_is_not_exported(home: Home, tmp_path: Path) -> None:
    first, second = publish(home, "aaaaaaaaaaaa"), publish(home, "bbbbbbbbbbbb")
    data = home.releases / DATASET / first / "data.parquet"
    data.write_bytes(data.read_bytes() + b"\0")
    with pytest.raises(Refused, match="nothing is exported"):
        export_table(home, first, tmp_path / "people.csv")
    withdraw(home, second, "a mistake")
    with pytest.raises(InputError, match="was withdrawn"):
        export_table(home, second, tmp_path / "people.csv")
    assert not (tmp_path / "people.csv").exists()


def test_statistics_have_no_table(home: Home, tmp_path: Path) -> None:
    def write(folder: Path) -> dict[str, Any]:
        (folder / "report.html").write_text("<p>answers</p>")
        return {"dataset": DATASET, "version": "dddddddddddd", "description": ""}

    publish_folder(home, DATASET, "dddddddddddd", write)
    with pytest.raises(InputError, match="has no table of people"):
        export_table(home, "dddddddddddd", tmp_path / "people.csv")


@pytest.mark.parametrize(
    ("version", "name", "sentence"),
    [
        ("aaaaaaaaaaaa", "people.xls", "ends in .csv, .tsv, .xlsx, .dta, .sav"),
        ("aaaaaaaaaaaa", "people", "ends in .csv"),
        ("aaaaaaaaaaaa", "absent/people.csv", "cannot be written"),
        ("cccccccccccc", "people.csv", "cccccccccccc"),
    ],
)
def test_what_cannot_be_exported_is_told(home: Home, tmp_path: Path, version: str, name: str, sentence: str) -> None:
    publish(home, "aaaaaaaaaaaa")
    with pytest.raises(InputError, match=sentence):
        export_table(home, version, tmp_path / name)


def test_the_odd_name_is_one_that_needs_care() -> None:
    assert ODD in table("").column_names


@pytest.mark.parametrize("room", [0, 4096])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_does_not_fit_is_told_and_not_left(
    home: Home, tmp_path: Path, ending: str, room: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of Stata and SPSS it said that all rows are written; the others ended with an internal error, or a traceback."""
    publish(home, "aaaaaaaaaaaa", pa.table({"age": range(2000), "ill": ["yes", "no"] * 1000}))
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))
    try:
        with pytest.raises(InputError) as told:
            export_table(home, "aaaaaaaaaaaa", tmp_path / f"people{ending}")
        gc.collect()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    told_by = "the disk may be full" if ending in (".dta", ".sav") else "File too large"
    assert str(told.value) == f"{tmp_path / f'people{ending}'}: cannot be written ({told_by})"
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("ending", "lost"), [(".dta", 1), (".dta", 4000), (".sav", 8), (".sav", 4000)])
def test_a_file_that_has_lost_its_end_is_not_whole(home: Home, tmp_path: Path, ending: str, lost: int) -> None:
    """As a disk that becomes full leaves it, of which the library says nothing."""
    file = exported(home, tmp_path, ending, pa.table({"age": range(2000), "ill": ["yes", "no"] * 1000}))
    files._require_whole(ending[1:], file, 2000)
    os.truncate(file, file.stat().st_size - lost)
    with pytest.raises(OSError, match="the disk may be full"):
        files._require_whole(ending[1:], file, 2000)
