"""A file of people beside a source, written as that is: its values as the spec reads them, without its refusals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from anon_pipeline.engine.sources import DATABASES, as_that_kind, kind_of, opened_at, with_found_encoding
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.stated import TEXTS
from anon_pipeline.engine.typed import Reader
from anon_pipeline.engine.unpacked import is_workbook
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Column, ColumnType, Source

#: Keys of a source that say where else than in a file of this machine it is.
_ELSEWHERE = ("database", "connection", "table", "delta", "version", "iceberg", "snapshot", "changed")


def import_people(
    connection: duckdb.DuckDBPyConnection,
    reader: Reader,
    path: Path,
    scratch: Path,
    source: Source,
    columns: Mapping[str, Column],
) -> Path:
    """The people of a file as a Parquet file: names, numbers and dates as the spec has them, texts otherwise.

    A value that cannot be read as the spec says stays the text that it is.

    Raises
    ------
    InputError
        For a file that is not there, or not written as the source is.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    kind = "folder" if path.is_dir() else kind_of(path)
    unsaid = [*_ELSEWHERE, *([] if kind in DATABASES else ["query"]), *([] if is_workbook(path) else ["sheet"])]
    here = source.model_copy(update={**dict.fromkeys(unsaid), "path": path.name})
    if kind == "csv":
        here = with_found_encoding(path, here)
    destination = scratch / "people.parquet"
    with opened_at(connection, as_that_kind(here, path), path, scratch, columns) as opened:
        described = connection.execute(f"DESCRIBE FROM {opened.relation}").fetchall()
        select = [_plain(reader, row[0], row[1], columns.get(row[0])) for row in described]
        people = f"SELECT {', '.join(select)} FROM {opened.relation}"
        connection.execute(f"COPY ({people}) TO {literal(str(destination))} (FORMAT parquet)")
    return destination


def _plain(reader: Reader, name: str, storage: str, column: Column | None) -> str:
    """A column of texts that the spec calls numbers or dates in the usual spelling of these; all others as they are."""
    value = quoted(name)
    if column is None or column.type in (None, ColumnType.CATEGORICAL) or not storage.startswith(TEXTS):
        return value
    if column.type is ColumnType.NUMERIC:
        plain = f"CAST({reader.parsed(value, 'DOUBLE')} AS VARCHAR)"
    else:
        plain = f"strftime({reader.parsed(value, 'TIMESTAMP')}, '%Y-%m-%d %H:%M:%S.%f')"
    return f"coalesce({plain}, {value}::VARCHAR) AS {value}"
