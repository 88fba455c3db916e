"""The text of a text file as a stream of bytes: plain, packed (gzip, zstd, a zip of one), or a sheet of a workbook.

A sheet is read as if it were saved as CSV, with a decimal point and with dates in ISO 8601.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import pyarrow as pa

from anon_pipeline.engine.paths import PACKED
from anon_pipeline.errors import InputError, OfSource

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

#: Workbooks of Excel and of LibreOffice, by the end of their names.
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
#: Files that the readers of `unpacked` accept, by the end of the name; for a zip, the file in it counts.
TEXTS = (".csv", ".tsv", ".txt")


@contextmanager
def unpacked(path: Path, sheet: str | None, label: str) -> Iterator[BinaryIO]:
    """The bytes of the text that a file holds.

    Parameters
    ----------
    sheet : the sheet of a workbook; its only filled sheet where absent

    Raises
    ------
    InputError
        For a zip or a workbook that does not hold one text, or that needs a password.
    """
    if is_workbook(path):
        yield io.BytesIO(_sheet_as_csv(path, sheet, label))
    elif path.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(path) as packed:
                member = _only_text(packed, label)
                if member.flag_bits & 0x1:
                    raise InputError(f"{label}: the file in it needs a password; unpack it first")
                with packed.open(member) as text:
                    yield cast(BinaryIO, text)
        except (zipfile.BadZipFile, NotImplementedError):
            raise InputError(f"{label}: cannot be read: it is no intact zip, or one of a rare kind") from None
    else:
        with pa.input_stream(str(path), compression=PACKED.get(path.suffix.lower())) as text:
            yield cast(BinaryIO, text)


def is_workbook(path: Path) -> bool:
    return path.name.lower().endswith(WORKBOOKS)


def has_sheet(path: Path, sheet: str) -> bool:
    """Whether a file is a workbook with such a sheet; not if it cannot be read, of which its reader will say why."""
    if not is_workbook(path):
        return False
    try:
        import python_calamine

        return sheet in python_calamine.CalamineWorkbook.from_path(path).sheet_names
    except (ImportError, OSError, python_calamine.CalamineError):
        return False


def is_text(path: Path) -> bool:
    """Whether a file's name is that of a text file or a workbook."""
    name = path.name.lower()
    packed = (*(f"{text}{packing}" for text in TEXTS for packing in PACKED), *TEXTS)
    return name.endswith((*packed, ".zip", *WORKBOOKS))


def _only_text(packed: zipfile.ZipFile, label: str) -> zipfile.ZipInfo:
    """The only file of a zip; folders, and the files that macOS adds, do not count."""
    members = [
        member
        for member in packed.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/") and ".DS_Store" not in member.filename
    ]
    if len(members) != 1:
        raise InputError(f"{label}: holds {len(members)} files; pack one text file, or unpack it and name the file")
    if not members[0].filename.lower().endswith(TEXTS):
        raise InputError(f"{label}: holds a file that is no .csv, .tsv or .txt; unpack it and name the file")
    return members[0]


def _sheet_as_csv(path: Path, sheet: str | None, label: str) -> bytes:
    try:
        import python_calamine
    except ImportError:
        raise InputError(f"{label}: is a workbook; install `anon-pipeline[files]` to read it") from None
    try:
        book = python_calamine.CalamineWorkbook.from_path(path)
        rows = _rows_of(book, sheet, label)
    except python_calamine.PasswordError:
        raise InputError(f"{label}: needs a password; save it without one in a place that only you can read") from None
    except python_calamine.CalamineError:
        raise InputError(f"{label}: cannot be read: it is no intact workbook") from None
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    for row in rows:
        writer.writerow([_field(value) for value in row])
    return text.getvalue().encode()


def _rows_of(book: CalamineWorkbook, sheet: str | None, label: str) -> Sequence[Sequence[object]]:
    """The rows of a sheet, all of the same width.

    Raises
    ------
    InputError
        Where there is no such sheet, or none is named and several are filled.
    """
    if sheet is not None and sheet not in book.sheet_names:
        raise OfSource("sheet", f"{label} has no sheet {sheet}; it has {', '.join(book.sheet_names)}")
    named = book.sheet_names if sheet is None else [sheet]
    filled = {name: rows for name in named if (rows := book.get_sheet_by_name(name).to_python(skip_empty_area=True))}
    if not filled:
        raise InputError(f"{label}: is empty; it has not even a header line")
    if len(filled) > 1:
        raise OfSource("sheet", f"{label} has the sheets {', '.join(filled)}; say which holds the people")
    return next(iter(filled.values()))


def _field(value: object) -> str:
    """A cell as text. Excel keeps every number as a fraction, and a day as midnight."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    return str(value)
