"""The default engine: DuckDB, out of core, on Parquet files in the private zone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import duckdb

from anon_pipeline.engine import beside_source, foreign_files, sources
from anon_pipeline.engine.base import ColumnSurvey, Survey
from anon_pipeline.engine.duckdb_session import DuckDBSession
from anon_pipeline.engine.relational import SqlEngine
from anon_pipeline.engine.session import Session
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.typed import OpenSource, is_ordered
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Column, ReleaseSpec, Source

FAILED = "the table could not be processed"

#: Most rows, and most cells, of an unknown table that are read for its description.
SURVEYED_ROWS, SURVEYED_CELLS = 100_000, 5_000_000
#: Columns whose distinct values are counted exactly at the same time.
COUNTED_AT_ONCE = 20
#: Distinct values of a large table are counted exactly where the estimate says that they are no more than this, or at
#: least this share of the rows that have a value.
FEW_VALUES, MANY_VALUES = 1000, 0.2
#: Texts that people write where they know nothing.
MISSING_MARKERS = ("?", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan")
#: One of them that is also a code of two letters: Namibia's.
ALSO_A_CODE = "NA"
#: A column has codes of two letters if so many others stand in it, in such a share of its known values.
OTHER_CODES, SHARE_OF_CODES = 3, 0.9


#: What has to do with the machine and not with a spec or a table.
MAY_PASS = (duckdb.OutOfMemoryException, duckdb.IOException)


def _sentence(error: duckdb.Error) -> str:
    if isinstance(error, duckdb.OutOfMemoryException):
        return "DuckDB ran out of memory; raise the memory limit or free disk space to spill to"
    what = "a file could not be read or written" if isinstance(error, duckdb.IOException) else FAILED
    return f"{what}: {sources.harmless(error)}"


#: The database that each process has open, with its settings. A fork opens its own database and leaves its parent's
#: open: closing it would wait for threads that the fork does not have.
_OPEN: dict[int, tuple[tuple[Path, str | None, int | None], duckdb.DuckDBPyConnection]] = {}


def _database(spill: Path, memory_limit: str | None, threads: int | None) -> duckdb.DuckDBPyConnection:
    """An in-memory database for all engines with these settings: opening a database takes longer than most queries."""
    settings = (spill, memory_limit, threads)
    known = _OPEN.get(os.getpid())
    if known is not None and known[0] == settings:
        return known[1]
    database = duckdb.connect()
    for setting in (
        "autoinstall_known_extensions=false",  # nothing is fetched
        "autoload_known_extensions=false",
        "enable_external_file_cache=false",  # a file is read as it is now
        f"temp_directory={literal(str(spill))}",
        *([f"memory_limit={literal(memory_limit)}"] if memory_limit else []),
        *([f"threads={threads}"] if threads else []),
    ):
        database.execute(f"SET {setting}")
    _OPEN[os.getpid()] = settings, database
    return database


class DuckDBEngine(SqlEngine):
    """See `anon_pipeline.engine.base.Engine` for what each method promises.

    Parameters
    ----------
    spill : folder for what does not fit into memory; in the private zone, since it holds people
    memory_limit : for example "4GB"; DuckDB's own default (80 % of the machine) where absent
    threads : all cores where absent
    """

    name = "duckdb"

    def __init__(self, spill: Path, memory_limit: str | None = None, threads: int | None = None) -> None:
        self._scratch, self._memory_limit, self._threads = spill, memory_limit, threads

    @contextmanager
    def _session(self) -> Iterator[DuckDBSession]:
        """A new connection, separate from others; DuckDB's messages, which may quote a row, are not passed on."""
        try:
            database = _database(self._scratch, self._memory_limit, self._threads)
            with closing(database.cursor()) as connection, ExitStack() as files:
                for setting in (
                    "enable_progress_bar=false",
                    "preserve_insertion_order=false",  # no result depends on the order of rows, and memory does
                    "TimeZone='UTC'",
                ):
                    connection.execute(f"SET {setting}")
                yield DuckDBSession(connection, files)
        except duckdb.Error as error:
            _OPEN.pop(os.getpid(), None)  # after an error the next session starts from nothing
            kind = Unavailable if isinstance(error, MAY_PASS) else InputError
            raise kind(_sentence(error)) from None

    def _opened(
        self, session: Session, spec: ReleaseSpec, scratch: Path, by_itself: bool = False
    ) -> AbstractContextManager[OpenSource]:
        return sources.opened(cast(DuckDBSession, session).connection, spec, scratch, by_itself)

    # ------------------------------------------------------------------ tables of others

    def import_table(
        self,
        path: Path,
        scratch: Path,
        measured: Mapping[str, Column] = MappingProxyType({}),
        written: Source | None = None,
    ) -> Path:
        with self._session() as session:
            return foreign_files.import_table(session.connection, session, path, scratch, measured, written)

    def import_people(self, path: Path, scratch: Path, spec: ReleaseSpec, source: Source) -> Path:
        """A file of people beside the source of a spec, read as `source` and the spec's columns say, as Parquet."""
        with self._session() as session:
            return beside_source.import_people(session.connection, session, path, scratch, source, spec.columns)

    def survey(self, source: Source, path: Path, columns: Mapping[str, Column] = MappingProxyType({})) -> Survey:
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._session() as session:
            session.connection.execute("SET preserve_insertion_order=true")  # rows are chosen by their position
            with sources.opened_at(session.connection, source, path, self._scratch, columns) as opened:
                storage = session.storage(opened.relation)
                sources.refuse_reserved(source.path, list(storage))
                rows = _only_row(session, f"SELECT count(*) FROM {opened.relation}")[0]
                if rows == 0:
                    raise InputError(f"{source.path}: the table is empty")
                most = max(1, min(SURVEYED_ROWS, SURVEYED_CELLS // len(storage)))
                every = -(-rows // most)
                numbered = f'SELECT *, row_number() OVER () AS "#position" FROM {opened.relation}'
                session.keep(
                    "chosen",
                    f'SELECT * EXCLUDE ("#position") FROM ({numbered}) WHERE hash("#position") % {every} = 0',
                )
                texts = [name for name, kind in storage.items() if kind == "VARCHAR"]
                marked = {marker: _columns_with(session, marker, texts) for marker in MISSING_MARKERS}
                among_codes = [name for name in marked[ALSO_A_CODE] if _has_codes_of_two_letters(session, name)]
                if among_codes == marked[ALSO_A_CODE]:
                    marked[ALSO_A_CODE] = []
                missing = tuple(
                    dict.fromkeys([*source.missing, *(marker for marker, names in marked.items() if names)])
                )
                values = {name: _value(session, name, kind, missing) for name, kind in storage.items()}
                counted = _counted(session, list(values.values()), None if every == 1 else opened.relation)
            columns_found = [
                ColumnSurvey(name, storage[name], known, min(known, distinct), *_readings(session, value))
                for (name, value), known, distinct in zip(values.items(), *counted, strict=True)
            ]
            select = ", ".join(f"{value} AS {quoted(name)}" for name, value in values.items())
            sample = session.arrow(f"SELECT {select} FROM chosen")
            empty = sources.empty_rows(session.connection, source, path, self._scratch)
            doubtful = tuple(among_codes) if ALSO_A_CODE in missing else ()
            return Survey(rows, tuple(columns_found), missing, sample, empty, doubtful)


def _counted(session: Session, values: Sequence[str], whole: str | None) -> tuple[list[int], list[int]]:
    """Rows with a value and distinct values of each column: of the sample exactly, else roughly of the whole table.

    Few and many distinct values are exact there, too: the estimate takes two values for one in a hundredth of all
    columns, and of those in which nobody has another's value about one in thirty for one in which values repeat. Many
    are counted by their hashes, which need less memory than long texts.
    """
    if whole is None:
        return _numbers(session, "count({})", values, "chosen"), _exactly(session, values, "chosen")
    known = _numbers(session, "count({})", values, whole)
    distinct = _numbers(session, "approx_count_distinct({})", values, whole)
    few = [place for place, estimated in enumerate(distinct) if estimated <= FEW_VALUES]
    many = [
        place
        for place, estimated in enumerate(distinct)
        if estimated > FEW_VALUES and estimated >= MANY_VALUES * known[place]
    ]
    hashed = [f"CASE WHEN {values[place]} IS NOT NULL THEN hash({values[place]}) END" for place in many]
    exact = [*_exactly(session, [values[place] for place in few], whole), *_exactly(session, hashed, whole, at_once=1)]
    for place, counted in zip([*few, *many], exact, strict=True):
        distinct[place] = counted
    return known, distinct


def _exactly(session: Session, values: Sequence[str], table: str, at_once: int = COUNTED_AT_ONCE) -> list[int]:
    """Distinct values, some columns at a time: each count has a table of its own, and a thousand would not fit."""
    parts = (values[start : start + at_once] for start in range(0, len(values), at_once))
    return [number for part in parts for number in _numbers(session, "count(DISTINCT {})", part, table)]


def _numbers(session: Session, count: str, values: Sequence[str], table: str) -> list[int]:
    return list(_only_row(session, f"SELECT {', '.join(map(count.format, values))} FROM {table}"))


def _value(session: Session, name: str, storage: str, missing: Sequence[str]) -> str:
    """A column of an unknown table, without markers of missing values, NaN among them; what is not plain is a text."""
    column = quoted(name)
    if storage in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN NOT {session.is_nan(column)} THEN {column} END"
    if is_ordered(storage):
        return column
    markers = ", ".join(literal(marker) for marker in ("", *missing))
    return f"CASE WHEN {column}::VARCHAR NOT IN ({markers}) THEN {column}::VARCHAR END"


def _columns_with(session: Session, marker: str, texts: Sequence[str]) -> list[str]:
    """The columns of texts in which a marker stands."""
    if not texts:
        return []
    stands = ", ".join(f"coalesce(bool_or({quoted(name)} = {literal(marker)}), false)" for name in texts)
    return [
        name for name, there in zip(texts, _only_row(session, f"SELECT {stands} FROM chosen"), strict=True) if there
    ]


def _has_codes_of_two_letters(session: Session, name: str) -> bool:
    """Whether nearly all values of a column but NA are two capital letters, as those of countries are."""
    column, marks = quoted(name), ", ".join(literal(marker) for marker in ("", *MISSING_MARKERS))
    codes, distinct, known = _only_row(
        session,
        f"SELECT count(*) FILTER (WHERE is_code), count(DISTINCT value) FILTER (WHERE is_code), count(*) FROM (SELECT "
        f"{column} AS value, regexp_full_match({column}, '[A-Z]{{2}}') AS is_code FROM chosen "
        f"WHERE {column} NOT IN ({marks}))",
    )
    return bool(distinct >= OTHER_CODES and codes >= SHARE_OF_CODES * known)


def _readings(session: Session, value: str) -> tuple[int, int, int, int]:
    """How many rows of the sample have a value, and a value that reads as a number, a code, a date."""
    text = f"({value})::VARCHAR"
    present, numbers, codes, dates = _only_row(
        session,
        f"SELECT count({value}), count({session.parsed(text, 'DOUBLE')}), "
        f"count(*) FILTER (WHERE regexp_matches(trim({text}), '^[+-]?(0[0-9]|[0-9]{{19}})')), "
        f"count({session.parsed(text, 'TIMESTAMP')}) FROM chosen",
    )
    return present, numbers, codes, dates


def _only_row(session: Session, query: str) -> tuple[Any, ...]:
    return session.rows(query)[0]
