"""The table of a release as a file of another kind: CSV, a workbook, or a file of Stata or SPSS.

The rows are those of `data.parquet`, in the same order, and nothing is added to them.
"""

from __future__ import annotations

import errno
import io
import math
import os
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unicodedata import normalize

import duckdb
import pandas as pd
import pyarrow as pa

from anon_pipeline.arrays import LARGEST_EXACT
from anon_pipeline.destinations.rows import rows_of
from anon_pipeline.engine.sql import literal
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, written_file
from anon_pipeline.release import ledger
from anon_pipeline.release.publish import DATA

#: Writes rows to a file that is there, and gives their number.
Writer = Callable[[pa.RecordBatchReader, Path], int]
#: A workbook's limits (Microsoft, "Excel specifications and limits"): rows with the header, and letters of a text.
WORKBOOK_ROWS, WORKBOOK_LETTERS = 1_048_576, 32_767
#: The longest name of a variable: letters in Stata, and bytes in SPSS.
LONGEST_NAME, MOST_BYTES = 32, 64
DIGITS = "0123456789_"
#: Words that are no name of a variable in Stata, or in SPSS.
RESERVED = re.compile(
    r"byte|int|long|float|double|strl|str[0-9]+|if|in|using|with|all|and|by|eq|ge|gt|le|lt|ne|not|or|to", re.IGNORECASE
)
#: How DuckDB quotes an error of the system.
OF_SYSTEM = re.compile(r'"errno":"([0-9]+)"')
#: How pyreadstat tells some of its writes that failed, and what is said of all: it does not know why.
NOT_WRITTEN, MAY_BE_FULL = "Unable to write data", "the disk may be full"
#: The last bytes of a whole file of Stata; one of SPSS ends with its last row.
LAST_OF_STATA = b"</stata_dta>"
#: The first version of Stata whose files have names and texts in Unicode; every edition since reads them.
STATA = 14


def export_table(home: Home, version: str, file: Path, dataset: str | None = None) -> int:
    """Write the table of a release to a file, of the kind that its name ends in, and return the number of rows.

    Parameters
    ----------
    dataset : needed where several datasets have a release of this version

    Raises
    ------
    InputError
        If there is no such release, it was withdrawn, it has no table, or the file cannot hold or take it.
    Refused
        If the release was altered after its publication.
    """
    writer = WRITERS.get(file.suffix.lower())
    if writer is None:
        raise InputError(f"{file.name}: a release is exported to a file that ends in {', '.join(WRITERS)}")
    entry = ledger.published(home, version, dataset)
    if ledger.withdrawal(home, *entry.release) is not None:
        raise InputError(f"{entry.dataset}/{entry.version}: was withdrawn; there is no table of it any more")
    if problems := ledger.verify_release(home, entry):
        raise Refused([f"{entry.dataset}/{entry.version}: {problem}; nothing is exported" for problem in problems])
    table = home.releases / entry.dataset / entry.version / DATA
    if not table.exists():
        raise InputError(f"{entry.dataset}/{entry.version}: has no table of people; its answers are in its manifest")
    try:
        with written_file(file.absolute(), public=True) as temporary:
            return writer(rows_of(table), temporary)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
    except duckdb.Error as error:
        quoted = OF_SYSTEM.search(str(error))
        reason = os.strerror(int(quoted[1])) if quoted else f"the library reported {type(error).__name__}"
        raise InputError(f"{file}: cannot be written ({reason})") from None


def _write_text(delimiter: str) -> Writer:
    """The writer of a text file in UTF-8 with this between fields; a missing value is an empty field."""

    def write(rows: pa.RecordBatchReader, file: Path) -> int:
        with duckdb.connect() as connection:
            connection.register("released", rows)
            options = f"FORMAT csv, HEADER true, DELIMITER {literal(delimiter)}"
            written = connection.execute(f"COPY (FROM released) TO {literal(str(file))} ({options})").fetchone()
        return 0 if written is None else int(written[0])

    return write


def _write_workbook(rows: pa.RecordBatchReader, file: Path) -> int:
    """A workbook with one sheet. A text stays a text, even if it looks like a formula."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.utils.exceptions import IllegalCharacterError
    except ImportError:
        raise InputError("a workbook: install `anon-pipeline[files]` to write it") from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet("released")

    def cell(value: Any) -> Any:
        held = _in_workbook(value)
        if not isinstance(held, str):
            return held
        written = WriteOnlyCell(sheet, held)
        written.data_type = "s"
        return written

    count = 0
    try:
        sheet.append([cell(name) for name in rows.schema.names])
        for batch in rows:
            count += batch.num_rows
            if count >= WORKBOOK_ROWS:
                raise InputError(f"a workbook has at most {WORKBOOK_ROWS:,} rows; write a .csv")
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                sheet.append([cell(value) for value in row])
    except IllegalCharacterError:
        raise InputError("a workbook cannot hold a character of this table; write a .csv") from None
    finally:
        sheet.close()
    whole = io.BytesIO()  # a file that cannot be written would be closed later on, with a traceback
    book.save(whole)
    file.write_bytes(whole.getbuffer())
    return count


def _in_workbook(value: Any) -> Any:
    """A value as a workbook holds it: numbers without losing digits, days since 1900; everything else as a text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, Decimal | int):
        return value if _as_float(value) == value else str(value)
    if isinstance(value, datetime | date):
        return value if value.year >= 1900 and getattr(value, "tzinfo", None) is None else value.isoformat()
    if isinstance(value, str) and len(value) > WORKBOOK_LETTERS:
        raise InputError(f"a workbook's texts have at most {WORKBOOK_LETTERS:,} letters; write a .csv")
    return value


def _write_survey_file(kind: str) -> Writer:
    """The writer of a file of Stata or SPSS; a variable's label holds the column's name, which may not be allowed."""

    def write(rows: pa.RecordBatchReader, file: Path) -> int:
        try:
            import pyreadstat
        except ImportError:
            raise InputError("a file of Stata or SPSS: install `anon-pipeline[files]` to write it") from None
        table = rows.read_all()
        if any(_loses_digits(column) for column in table.columns):
            raise InputError(f"a .{kind} file cannot hold all digits of a number of this table; write a .csv")
        texts = [column.unique().drop_null().to_pylist() for column in table.columns if _has_texts(column)]
        if any("\0" in text for values in texts for text in values):  # ends a text, so that two may become one
            raise InputError(f"a .{kind} file cannot hold a character of this table; write a .csv")
        if kind == "sav" and any(len({text.rstrip(" ") for text in values}) < len(values) for values in texts):
            raise InputError("a .sav file does not tell texts apart by blanks at their end; write a .csv")
        frame = pd.DataFrame({name: _for_survey(table.column(name)) for name in table.column_names})
        frame.columns = pd.Index(_variables(table.column_names))
        writer: Callable[..., None] = getattr(pyreadstat, f"write_{kind}")
        version = {"version": STATA} if kind == "dta" else {}
        try:
            writer(frame, str(file), column_labels=[name[:80] for name in table.column_names], **version)
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OverflowError, ValueError) as error:
            if NOT_WRITTEN in str(error):
                raise OSError(errno.EIO, MAY_BE_FULL) from None
            raise InputError(f"a .{kind} file cannot hold a value of this table; write a .csv") from None
        _require_whole(kind, file, int(table.num_rows))
        return int(table.num_rows)

    return write


def _require_whole(kind: str, file: Path, rows: int) -> None:
    """Require a file of Stata or SPSS to be whole: the library does not tell that a write failed.

    Raises
    ------
    OSError
        Where it is not.
    """
    import pyreadstat

    with file.open("rb") as written:
        written.seek(max(file.stat().st_size - len(LAST_OF_STATA), 0))
        is_whole = kind != "dta" or written.read() == LAST_OF_STATA
    try:
        read = getattr(pyreadstat, f"read_{kind}")
        names = read(str(file), metadataonly=True)[1].column_names
        is_whole = is_whole and len(read(str(file), usecols=names[:1])[0]) == rows
    except pyreadstat.ReadstatError:
        is_whole = False
    if not is_whole:
        raise OSError(errno.EIO, MAY_BE_FULL)


def _as_float(number: Decimal | int) -> Decimal | None:
    """The number that is read where a whole number or a decimal is held as a float; None where one loses digits.

    Workbooks, Stata and SPSS have floats for all numbers. One is written with the fewest digits that are its own: that
    of 12.35 is read as 12.35, although it is not that.
    """
    return Decimal(repr(float(number))) if -LARGEST_EXACT < number < LARGEST_EXACT else None


def _loses_digits(column: pa.ChunkedArray) -> bool:
    """Whether a float cannot hold a number of a column of whole numbers or decimals."""
    if not (pa.types.is_integer(column.type) or pa.types.is_decimal(column.type)):
        return False
    return any(_as_float(number) != number for number in column.unique().drop_null().to_pylist())


def _has_texts(column: pa.ChunkedArray) -> bool:
    """Whether a column has texts."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _for_survey(column: pa.ChunkedArray) -> Any:
    """A column as pyreadstat takes it: floats with NaN, days and moments, or texts."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).to_pandas()
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_pandas()
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us")).to_pandas(timestamp_as_object=True)
    return column.to_pandas()


def _variables(names: Iterable[str]) -> list[str]:
    """Names for Stata and SPSS, all different even without capitals: a letter, then letters, digits and `_`."""
    taken: set[str] = set()
    variables = []
    for name in names:
        plain = "".join(sign if sign.isalpha() or sign in DIGITS else "_" for sign in normalize("NFC", name))
        is_free = plain[:1].isalpha() and not RESERVED.fullmatch(plain)
        plain = plain if is_free else f"v{plain}"
        number, variable = 2, _cut(plain, "")
        while variable.casefold() in taken:
            variable, number = _cut(plain, f"_{number}"), number + 1
        taken.add(variable.casefold())
        variables.append(variable)
    return variables


def _cut(name: str, ending: str) -> str:
    """A name with an ending, as long as Stata and SPSS allow."""
    name = name[: LONGEST_NAME - len(ending)]
    while len((name + ending).encode()) > MOST_BYTES:
        name = name[:-1]
    return name + ending


#: The writer for each ending of a file's name.
WRITERS: dict[str, Writer] = {
    ".csv": _write_text(","),
    ".tsv": _write_text("\t"),
    ".xlsx": _write_workbook,
    ".dta": _write_survey_file("dta"),
    ".sav": _write_survey_file("sav"),
}
