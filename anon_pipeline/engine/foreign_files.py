"""Any table of another tool as a Parquet file, for reading it as an outsider would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.measured_columns import with_measured
from anon_pipeline.engine.parquet_files import check_names
from anon_pipeline.engine.paths import PLAIN, exactly
from anon_pipeline.engine.sources import (
    OF_LETTERS,
    is_said,
    kind_of,
    refuse_reserved,
    unreadable,
    with_found_encoding,
)
from anon_pipeline.engine.sql import literal
from anon_pipeline.engine.survey_files import is_survey_file, store_survey_file
from anon_pipeline.engine.text_files import text_relation
from anon_pipeline.engine.typed import Reader
from anon_pipeline.engine.unpacked import is_workbook
from anon_pipeline.errors import InputError, OfSource
from anon_pipeline.spec import Column, Source


def refuse_unused(written: Source | None, paths: Sequence[Path]) -> None:
    """Refuse what is said of text files or workbooks where no file is one, and which would be ignored.

    Raises
    ------
    OfSource
        Naming the key.
    """
    for key in (key for key in OF_LETTERS if written is not None and is_said(written, key)):
        if not any(_may_be_text(path) for path in paths):
            none = f"{paths[0].name} is none" if len(paths) == 1 else "none of these files is one"
            raise OfSource(key, f"is said of text files, and {none}; leave it out")
    if written is not None and written.sheet is not None and not any(is_workbook(path) for path in paths):
        raise OfSource("sheet", "only a workbook of Excel or LibreOffice has sheets; leave it out")


def _may_be_text(path: Path) -> bool:
    """Whether a file is a text and no workbook, or cannot be read, of which its reader will say why."""
    with suppress(InputError, OSError):
        return not path.is_file() or (kind_of(path) == "csv" and not is_workbook(path))
    return True


def import_table(
    connection: duckdb.DuckDBPyConnection,
    reader: Reader,
    path: Path,
    scratch: Path,
    measured: Mapping[str, Column] = MappingProxyType({}),
    written: Source | None = None,
) -> Path:
    """Any CSV, workbook, Parquet, SPSS, Stata or SAS table as a Parquet file, for reading it as an outsider would.

    The fields of a CSV stay texts: "1" and "1.0" are two values for a reader of the file. Only the `measured` columns
    become numbers or dates, if all their fields are, since the order of their values matters. They and `written` say
    how the spec has these values written.

    Raises
    ------
    InputError
        For a file that is no such table, or has a column with a name that is used for counting; for what is said of
        text files where it is none.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    refuse_unused(written, [path])
    try:
        if path.is_file() and kind_of(path) == "parquet":
            _check_foreign_names(path.name, pq.read_schema(path).names)
            return path
        destination = scratch / "imported.parquet"
        if path.is_file() and is_survey_file(path):
            return _imported_survey_file(connection, path, destination)
        if (path / "data.parquet").is_file():
            raise InputError(f"{path}: is a folder; name the table in it, {path / 'data.parquet'}")
        if not path.is_file() or kind_of(path) != "csv":
            raise InputError(
                f"{path}: is no CSV or Parquet file, workbook, or file of SPSS, Stata or SAS; convert it to one of them"
            )
        stated = with_found_encoding(path, written)
        with text_relation(connection, stated, path, path.name, scratch, whole=True) as rows:
            names = [row[0] for row in connection.execute(f"DESCRIBE FROM {rows}").fetchall()]
            _check_foreign_names(path.name, names)
            people = with_measured(connection, reader, rows, stated, measured)
            connection.execute(f"COPY (FROM {people}) TO {literal(str(destination))} (FORMAT parquet)")
        return destination
    except (duckdb.Error, pa.ArrowException, UnicodeDecodeError) as error:
        raise unreadable(path.name, error) from None
    except PermissionError:
        raise InputError(f"{path.name}: cannot be read: permission denied") from None


def _imported_survey_file(connection: duckdb.DuckDBPyConnection, path: Path, destination: Path) -> Path:
    """The rows of a file of SPSS, Stata or SAS, as `releases export` writes them, in the types that the file states."""
    stored = destination.with_name("survey.parquet")
    try:
        selected = store_survey_file(path, stored, path.name)
        _check_foreign_names(path.name, pq.read_schema(stored).names)
        with exactly(stored) as (place,):
            rows = f"SELECT {selected} FROM read_parquet({place}, {PLAIN})"
            connection.execute(f"COPY ({rows}) TO {literal(str(destination))} (FORMAT parquet)")
        return destination
    finally:
        stored.unlink(missing_ok=True)


def _check_foreign_names(label: str, names: Sequence[str]) -> None:
    """Refuse names that stand twice, and those of our own columns: by `#people` a row would count as many people.

    Raises
    ------
    InputError
        Naming the column.
    """
    check_names(label, names)
    refuse_reserved(label, names)
