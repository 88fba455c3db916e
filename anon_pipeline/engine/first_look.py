"""Checks of a source before any work starts: whether it exists, its columns, and its number of rows.

A small file is read as a whole. Of a larger file only its head or its footers are read. Of a server, an object store or
a table with former states nothing is read: checks that are not cheap are left to the run itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from anon_pipeline.engine.databases import duckdb_head
from anon_pipeline.engine.duckdb_session import DuckDBSession
from anon_pipeline.engine.parquet_files import check_names
from anon_pipeline.engine.sources import kind_of, opened, opened_at, require_there
from anon_pipeline.engine.typed import OpenSource, check_columns, check_size, is_ordered, typed_people
from anon_pipeline.engine.unpacked import is_workbook
from anon_pipeline.home import scratch
from anon_pipeline.spec import ColumnType, ReleaseSpec

#: Bytes of a file that is read in a tenth of a second.
SMALL = 2_000_000
#: Kinds of sources that are read as a whole if small; files of other programs need libraries that take long to import.
READ = {"csv", "parquet", "folder", "json", "arrow", "duckdb", "sqlite"}


@dataclass(frozen=True)
class CountedValues:
    """How often each value of a column occurs, in their natural order; missing stands first, as None."""

    values: tuple[object, ...]
    people: tuple[int, ...]
    ordered: bool


@dataclass(frozen=True)
class FirstLook:
    """The facts about a source before a run.

    Attributes
    ----------
    rows : people, or None where counting them is not cheap; rows that `source.where` leaves out may be among them
    size : bytes of its files; None for a source that is no file
    whole : whether every row was read
    values : counts of the requested columns, if every row was read
    types : the types of the columns that a run stores, if every row was read
    """

    rows: int | None = None
    size: int | None = None
    whole: bool = False
    values: Mapping[str, CountedValues] = field(default_factory=dict)
    types: Mapping[str, ColumnType] = field(default_factory=dict)


def first_look(spec: ReleaseSpec, counted: Sequence[str] = (), however_large: bool = False) -> FirstLook:
    """Look at the source of a spec.

    Parameters
    ----------
    counted : columns whose values are counted, if every row is read
    however_large : whether every row of a file is read, even if it is large

    Raises
    ------
    InputError
        For everything that reading the source would refuse, as far as it can be found before.
    """
    require_there(spec)
    if not spec.source.is_file:
        return FirstLook()
    path = spec.source_path
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    try:
        size = sum(file.stat().st_size for file in files)
        kind = "folder" if path.is_dir() else kind_of(path)
    except OSError:
        return FirstLook()
    try:
        if however_large or (size <= SMALL and kind in READ):
            return _whole(spec, counted, size)
        rows = _rows_by_head(spec, kind)
    except duckdb.Error:  # the run will say what is wrong
        return FirstLook(size=size)
    if rows is not None:
        check_size(rows, spec.source.path, spec)
    return FirstLook(rows, size)


def _whole(spec: ReleaseSpec, counted: Sequence[str], size: int) -> FirstLook:
    with scratch() as folder, _session(folder) as session, opened(session.connection, spec, folder) as source:
        relation = source.relation
        if size <= SMALL:  # each column is asked about several times
            session.keep("people", f"FROM {relation}")
            relation = "people"
        read = typed_people(session, OpenSource(relation, source.label), spec)
        relation, typed = read.relation, {column.name: column for column in read.columns}
        ((rows,),) = session.rows(f"SELECT count(*) FROM {relation}")
        values = {}
        for name in counted:
            expression = typed[name].expression
            found = session.rows(f"SELECT {expression} AS value, count(*) FROM {relation} GROUP BY ALL")
            found.sort(key=lambda row: (row[0] is not None, row[0]))
            kind = session.storage(f"(SELECT {expression} AS value FROM {relation})")["value"]
            if typed[name].type is not ColumnType.DATE:
                written, people = zip(*found, strict=True)
                values[name] = CountedValues(written, people, is_ordered(kind))
    return FirstLook(int(rows), size, True, values, {name: column.type for name, column in typed.items()})


def _rows_by_head(spec: ReleaseSpec, kind: str) -> int | None:
    """Compare the columns with the spec, and return the number of rows if the file has it."""
    plain, path = spec.source, spec.source_path
    if kind == "duckdb":
        names, rows = duckdb_head(path, plain.query, plain.path)
        check_names(plain.path, names, plain.rename)
        renamed = [*(plain.rename.get(name, name) for name in names), *plain.paths]
        check_columns(renamed, plain.path, spec)
        return rows
    is_head_cheap = kind in ("parquet", "folder") or (
        kind == "csv" and path.suffix.lower() in ("", ".csv", ".tsv", ".txt") and not is_workbook(path)
    )
    if not is_head_cheap or (kind == "csv" and plain.encoding.lower() not in ("utf-8", "utf8")):
        return None
    # Statements on how values are written are left out, since checking them would read the rows.
    plain = plain.model_copy(update={"where": None, "decimal": None, "thousands": None, "symbols": ()})
    with (
        scratch() as folder,
        _session(folder) as session,
        opened_at(session.connection, plain, path, folder) as source,
    ):
        check_columns(session.storage(source.relation), source.label, spec)
        if kind == "csv":
            return None
        return int(session.rows(f"SELECT count(*) FROM {source.relation}")[0][0])


@contextmanager
def _session(folder: Path) -> Iterator[DuckDBSession]:
    with closing(duckdb.connect()) as connection, ExitStack() as files:
        for setting in (
            "autoinstall_known_extensions=false",
            "autoload_known_extensions=false",
            "enable_progress_bar=false",
            "TimeZone='UTC'",
        ):
            connection.execute(f"SET {setting}")
        connection.execute("SET temp_directory=?", [str(folder)])
        yield DuckDBSession(connection, files)
