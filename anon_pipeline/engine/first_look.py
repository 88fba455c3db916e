"""What can be told of a source before any work starts: whether it is there, its columns, and how many rows it has.

A small file is looked at as a whole. Of a larger one only its head or its footers are read, and of a server, a store of
objects or a table with former states nothing: what cannot be told cheaply is told by the run itself.
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
#: What is read as a whole where it is small; files of other programs need libraries that take longer to import.
READ = {"csv", "parquet", "folder", "json", "arrow", "duckdb", "sqlite"}


@dataclass(frozen=True)
class CountedValues:
    """How often each value of a column occurs, in their natural order; missing stands first, as None."""

    values: tuple[object, ...]
    people: tuple[int, ...]
    ordered: bool


@dataclass(frozen=True)
class FirstLook:
    """What is known of a source by now.

    Attributes
    ----------
    rows : people, or None where to count them is not cheap; rows that `source.where` leaves out may be among them
    size : bytes of its files; None of what is no file
    whole : whether every row was looked at
    values : counts of those columns that were asked for, where every row was looked at
    """

    rows: int | None = None
    size: int | None = None
    whole: bool = False
    values: Mapping[str, CountedValues] = field(default_factory=dict)


def first_look(spec: ReleaseSpec, counted: Sequence[str] = (), however_large: bool = False) -> FirstLook:
    """Look at the source of a spec.

    Parameters
    ----------
    counted : columns whose values are counted, where every row is looked at
    however_large : whether every row of a file is looked at, whatever it costs

    Raises
    ------
    InputError
        For all that reading the source would refuse, as far as it can be seen by now.
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
    except duckdb.Error:  # what it means is for the run to say
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
    return FirstLook(int(rows), size, True, values)


def _rows_by_head(spec: ReleaseSpec, kind: str) -> int | None:
    """Hold the columns against the spec, and say how many rows there are where the file knows."""
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
    # How values are written would be looked up in the rows.
    plain = plain.model_copy(update={"where": None, "decimal": None, "thousands": None})
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
