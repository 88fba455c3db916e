"""Reads a source with DuckDB: detects the kind of file, and opens it as a relation."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa

from anon_pipeline.engine.databases import store_duckdb, store_sqlite
from anon_pipeline.engine.lake_tables import store_table
from anon_pipeline.engine.object_stores import fetched
from anon_pipeline.engine.parquet_files import check_names, parquet_relation, renamed
from anon_pipeline.engine.paths import PLAIN, exactly
from anon_pipeline.engine.plain_tables import (
    ARROW_FILES,
    ARROW_HEAD,
    JSON_FILES,
    moments_in_utc,
    store_arrow,
    store_json,
    texts_of_json,
    texts_of_mixed,
)
from anon_pipeline.engine.quoting import require_closed_fields
from anon_pipeline.engine.records import with_fields
from anon_pipeline.engine.servers import SERVERS, store_server
from anon_pipeline.engine.sql import quoted
from anon_pipeline.engine.stated import as_stated
from anon_pipeline.engine.survey_files import is_survey_file, store_survey_file
from anon_pipeline.engine.text_encoding import encoding_of
from anon_pipeline.engine.text_files import DOUBLED, delimiter_of_header, text_relation
from anon_pipeline.engine.typed import OpenSource
from anon_pipeline.engine.unpacked import is_text, is_workbook
from anon_pipeline.errors import InputError, OfSource, Unavailable
from anon_pipeline.spec import Column, ColumnType, ReleaseSpec, Source
from anon_pipeline.spec.release import RESERVED
from anon_pipeline.spec.source import path_parts

PARQUET_FILES = (".parquet", ".pq")
#: Keys of a source on the lines of a text file, and those on its letters, which a workbook does not have either.
OF_LINES, OF_LETTERS = ("skip", "header", "names"), ("delimiter", "encoding")
#: Keys of a source on the files of a folder.
OF_FOLDERS = ("union_by_name", "partitions")
DATABASES = ("duckdb", "sqlite", *SERVERS)
#: Kinds of files that do not say whether a column is of whole numbers; texts do not either, and are seen as such.
STATE_NO_TYPES = ("json", "survey")


def require_there(spec: ReleaseSpec) -> None:
    """
    Raises
    ------
    InputError
        Where the file or folder of a source is not there.
    """
    if not spec.source_path.exists():
        raise InputError(f"source.path: {spec.source.path}: there is no such file or folder beside the spec")


@contextmanager
def opened(
    connection: duckdb.DuckDBPyConnection, spec: ReleaseSpec, scratch: Path, by_itself: bool = False
) -> Iterator[OpenSource]:
    """Open the source of a spec.

    Parameters
    ----------
    scratch : a private folder for a table that must be converted first
    by_itself : whether each value is read by itself. Otherwise a column has the type that all its values allow, where
        the file states none, so that a single row may change how all others are read
    """
    require_there(spec)
    # All columns are needed where a condition may use any of them, a path may lead into one that is left out, or the
    # names in the file are others.
    all_read = spec.source.where is not None or spec.source.rename or spec.source.paths
    unread = frozenset() if all_read else frozenset(spec.columns) - frozenset(spec.stored)
    with opened_at(connection, spec.source, spec.source_path, scratch, spec.columns, unread, by_itself) as source:
        yield source


@contextmanager
def opened_at(  # noqa: PLR0913 (a source as its spec has it, or without one)
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    path: Path,
    scratch: Path,
    columns: Mapping[str, Column] = MappingProxyType({}),
    unread: frozenset[str] = frozenset(),
    by_itself: bool = False,
) -> Iterator[OpenSource]:
    """Open a source that lies at `path`, for which there may be no spec yet; `columns` say how values are written.

    For a server or a table with states, `path` is the folder to which its place is relative; for objects in a store it
    is not used. Of objects and of tables with states, the `unread` columns are not read; of others all are.
    """
    if source.is_file or source.database is not None or source.table_format is not None:
        with (
            _unchanged(source, path),
            _opened_here(connection, source, path, scratch, columns, unread, by_itself) as opened_source,
        ):
            yield opened_source
        return
    with (
        fetched(source.path, scratch, unread) as here,
        _opened_here(connection, source, here, scratch, columns, frozenset(), by_itself) as opened_source,
    ):
        yield opened_source


@contextmanager
def _unchanged(source: Source, path: Path) -> Iterator[None]:
    """Check that nobody writes to the source's files during the block, since a source is read more than once.

    A database ensures this itself.

    Raises
    ------
    Unavailable
        Where a file was changed, removed or added meanwhile.
    """
    if not source.is_file or _is_database(path):
        yield
        return
    before = _stamps(path)
    try:
        yield
    except InputError:
        if _stamps(path) == before:
            raise
    if _stamps(path) != before:
        raise Unavailable(f"{source.path}: was changed while it was read; run again")


def _is_database(path: Path) -> bool:
    try:
        return path.is_file() and kind_of(path) in DATABASES
    except (InputError, OSError):  # the reader will say why it cannot be read
        return False


def _stamps(path: Path) -> list[tuple[str, int, int, int]]:
    """Name, size, time of the last change and inode of each existing file."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stamps = []
    for file in files:
        with suppress(FileNotFoundError):
            stat = file.stat()
            stamps.append((file.name, stat.st_size, stat.st_mtime_ns, stat.st_ino))
    return stamps


@contextmanager
def _opened_here(  # noqa: PLR0913 (see opened_at)
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    path: Path,
    scratch: Path,
    columns: Mapping[str, Column],
    unread: frozenset[str],
    by_itself: bool,
) -> Iterator[OpenSource]:
    label = source.path
    try:
        kind = source.database or source.table_format or ("folder" if path.is_dir() else kind_of(path))
        if source.query is not None and kind not in DATABASES:
            raise InputError("source.query: only a database takes a query; remove it")
        if source.sheet is not None and not is_workbook(path):
            raise OfSource("sheet", "only a workbook of Excel or LibreOffice has sheets; remove it")
        _refuse_stray_keys(source, path, kind)
        if source.table_format is not None:
            with _table_relation(connection, source, path, scratch, unread) as (rows, table):
                rows = with_fields(connection, rows, source, label)
                yield OpenSource(as_stated(connection, rows, source, columns, by_itself), label, table=table)
            return
        with _relation(connection, kind, source, path, scratch, Asked(columns, by_itself)) as (rows, files):
            plain = with_fields(connection, rows, source, label)
            if kind == "json" and by_itself:
                plain = texts_of_json(connection, plain, source.decimal)
            elif kind == "json":
                plain = texts_of_mixed(connection, plain, columns, source.decimal)
                plain = moments_in_utc(connection, plain, columns)
            plain = as_stated(connection, plain, source, columns, by_itself)
            by_values = kind in STATE_NO_TYPES
            checked = columns if by_itself and kind == "csv" else None
            check = partial(_check_quotes, source, path, label, checked)
            yield OpenSource(plain, label, files if plain == rows else (), None, by_values, check)
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, pa.ArrowException, sqlite3.Error, UnicodeDecodeError) as error:
        raise unreadable(label, error) from None
    except PermissionError:
        raise InputError(f"{label}: cannot be read: permission denied") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise InputError(f"{label}: cannot be read: it is not packed as its name says") from None


def _refuse_stray_keys(source: Source, path: Path, kind: str) -> None:
    """Refuse keys that would be ignored: whoever states them expects other columns or other people than are read.

    Raises
    ------
    OfSource
        Naming the first such key.
    """
    if source.is_file and kind != "folder":  # what lies at an address is a file or a folder, whatever its name says
        for key in OF_FOLDERS:
            if is_said(source, key):
                raise OfSource(key, f"is said of folders of Parquet files, and {source.path} is none; leave it out")
    if kind == "csv" and not is_workbook(path):
        return
    keys, has = (OF_LETTERS, "a workbook") if kind == "csv" else ((*OF_LINES, *OF_LETTERS), "such a table")
    for key in keys:
        if is_said(source, key):
            raise OfSource(key, f"is said of text files, and {has} has none; remove it")


def is_said(source: Source, key: str) -> bool:
    """Whether a source states a key of text files, and not what it means where it is absent."""
    value = getattr(source, key)
    return value.lower() not in ("utf-8", "utf8") if key == "encoding" else bool(value != _default(key))


def _default(key: str) -> object:
    return Source.model_fields[key].default


def as_that_kind(source: Source, path: Path) -> Source:
    """A source that says of another table what it says of its own, without what is said of other kinds of it only.

    For the same people in another file, or other people beside them; `path` is as in `opened_at`.
    """
    try:
        if source.is_file:
            is_one, of_letters = path.is_file() and kind_of(path) == "csv", not is_workbook(path)
        else:
            name = Path(source.path)
            is_one = source.location is not None and source.table_format is None and is_text(name)
            of_letters = not is_workbook(name)
    except (InputError, OSError):  # the reader will say why it cannot be read
        return source
    stray = () if is_one and of_letters else OF_LETTERS if is_one else (*OF_LINES, *OF_LETTERS)
    if source.is_file and not path.is_dir():
        stray = (*stray, *OF_FOLDERS)
    return source.model_copy(update={key: _default(key) for key in stray})


@dataclass(frozen=True)
class Asked:
    """The columns of a spec, and whether each value is read by itself, whatever stands in other rows."""

    columns: Mapping[str, Column]
    by_itself: bool

    @property
    def alone(self) -> Mapping[str, Column] | None:
        """The columns, where each value is read by itself."""
        return self.columns if self.by_itself else None


@contextmanager
def _relation(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    source: Source,
    path: Path,
    scratch: Path,
    asked: Asked,
) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """The rows of a source as they are in it, and the Parquet files that are read for them, if it has such files."""
    label, alone = source.path, asked.alone
    if kind == "csv":
        if alone is not None:
            source = _delimited(source, path, label, alone)
        escape = None if alone is None else DOUBLED
        with text_relation(connection, source, path, label, scratch, escape=escape) as rows:
            yield rows, ()
    elif kind in ("parquet", "folder"):
        with parquet_relation(connection, source, path, label) as relation:
            yield relation
    else:
        stored = scratch / f"{kind}.parquet"
        stored.unlink(missing_ok=True)  # a killed process may have left it
        try:
            check, selected = partial(check_names, label, rename=source.rename), "*"
            if kind == "duckdb":
                store_duckdb(connection, path, source.query, stored, check, label)
            elif kind == "sqlite":
                store_sqlite(path, source.query, stored, check, label, by_itself=alone is not None)
            elif kind in SERVERS:
                store_server(source, path, stored, check)
            elif kind == "json":
                store_json(connection, path, stored, None if alone is None else _names_in_file(source, alone))
            elif kind == "arrow":
                store_arrow(path, stored)
            else:
                types = _types_in_file(source, asked.columns)
                selected = store_survey_file(path, stored, label, types, asked.by_itself)
            with exactly(stored) as (place,):
                rows = f"(SELECT {selected} FROM read_parquet({place}, {PLAIN}))"
                yield renamed(connection, rows, (stored,), source, label)
        finally:
            stored.unlink(missing_ok=True)


def _delimited(source: Source, path: Path, label: str, columns: Mapping[str, Column]) -> Source:
    """A source of text with its delimiter: the stated one, or that of the header."""
    if source.delimiter is not None or is_workbook(path):
        return source
    delimiter = delimiter_of_header(source, path, label, _names_in_file(source, columns))
    return source.model_copy(update={"delimiter": delimiter})


def _check_quotes(source: Source, path: Path, label: str, columns: Mapping[str, Column] | None) -> None:
    """Check the quotes of a text file of which each value is read by itself; `columns` is None for any other source."""
    if columns is not None:
        require_closed_fields(_delimited(source, path, label, columns), path, label)


def _names_in_file(source: Source, columns: Mapping[str, Column]) -> list[str]:
    """The names that a file must have for the columns of a spec: those before renaming, and of records for paths."""
    before = {new: old for old, new in source.rename.items()}
    names = [before.get(name, name) for name in columns if name not in source.paths]
    return list(dict.fromkeys([*names, *source.rename, *(path_parts(path)[0] for path in source.paths.values())]))


def _types_in_file(source: Source, columns: Mapping[str, Column]) -> dict[str, ColumnType]:
    """The types that a spec states, by the names that the columns have in a file."""
    before = {new: old for old, new in source.rename.items()}
    return {before.get(name, name): column.type for name, column in columns.items() if column.type is not None}


@contextmanager
def _table_relation(
    connection: duckdb.DuckDBPyConnection, source: Source, folder: Path, scratch: Path, unread: frozenset[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a table that keeps its former states, and the state that was read."""
    stored = scratch / "table.parquet"
    try:
        table = store_table(source, folder, stored, partial(check_names, source.path, rename=source.rename), unread)
        with exactly(stored) as (place,):
            yield renamed(connection, f"read_parquet({place}, {PLAIN})", (stored,), source, source.path)[0], table
    finally:
        stored.unlink(missing_ok=True)


def kind_of(path: Path) -> str:
    """The kind of a file, by its first bytes or else by the end of its name; a sheet counts as a text."""
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"SQLite format 3"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    if head.startswith(b"PAR1") or path.name.lower().endswith(PARQUET_FILES):
        return "parquet"
    if is_text(path):
        return "csv"
    if head.startswith(ARROW_HEAD) or path.name.lower().endswith(ARROW_FILES):
        return "arrow"
    if path.name.lower().endswith(JSON_FILES):
        return "json"
    if is_survey_file(path):
        return "survey"
    raise InputError(
        f"source.path: {path.name}: is no table that can be read; CSV (packed, too), Excel, LibreOffice, Parquet, "
        "Arrow, JSON, DuckDB, SQLite, SPSS, Stata and SAS files are known by the end of their names"
    )


def empty_rows(connection: duckdb.DuckDBPyConnection, source: Source, path: Path, scratch: Path) -> int:
    """How many rows of a text file are entirely empty; 0 for any other source."""
    if path.is_dir() or kind_of(path) != "csv":
        return 0
    with text_relation(connection, source, path, source.path, scratch, whole=True) as rows:
        names = [row[0] for row in connection.execute(f"DESCRIBE FROM {rows}").fetchall()]
        empty = " AND ".join(f"{quoted(name)} IS NULL" for name in names)
        ((counted,),) = connection.execute(f"SELECT count(*) FROM {rows} WHERE {empty}").fetchall()
    return int(counted)


def may_pass(error: BaseException) -> bool:
    """Whether a library failed for want of disk, or since another program holds a database, and not by the table."""
    return any(sign in str(error) for sign in ("No space left", "Could not set lock", "database is locked"))


def unreadable(label: str, error: BaseException) -> InputError:
    """The error to raise where a library cannot read a table, without what the library quotes of it."""
    told = harmless(error)
    what = f"{label}: cannot be read: {told}"
    if "encoding" in told:
        return OfSource("encoding", what)
    return Unavailable(what) if may_pass(error) else InputError(what)


def harmless(error: BaseException) -> str:
    """The part of a library's message that is safe to repeat: its kind and the line number, never the quoted row."""
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line:
        if "nicode" in text or "utf-8" in text:
            return f"line {line[1]} is not in the encoding asked for; state the file's"
        return f"line {line[1]} does not have the shape of the header; check delimiter and quotes"
    for sign, sentence in (
        ("sniffing", "its lines do not have the shape of the header; check delimiter and quotes"),
        ("invalid state", "a line far down ends otherwise than the first (CR LF, or LF alone), or has a stray quote"),
        ("No space left", "the disk is full"),
        ("File too large", "the file would be larger than allowed"),
        ("Permission denied", "permission denied"),
        ("lock", "another program holds the database open for writing"),
        ("Parquet", "it is no intact Parquet file"),
        ("Could not convert", "a value cannot be converted as asked; TRY_CAST makes it missing instead"),
        ("operations are disabled", "the query, or a view that it names, reads files; it may read the database alone"),
        ("not support the encoding", "the encoding is none of utf-8, utf-16 and latin-1; convert the file"),
        ("nicode", "its text is not in the stated encoding"),
        ("does not exist", "the query names a table or column that does not exist"),
        ("no such", "the query names a table or column that does not exist"),
        ("yntax", "the query has a syntax error"),
    ):
        if sign in text:
            return sentence
    return f"the library reported {type(error).__name__}"


def refuse_reserved(label: str, names: Sequence[str]) -> None:
    """
    Raises
    ------
    InputError
        Naming a column that has the name of one of our own.
    """
    if reserved := [name for name in names if RESERVED.fullmatch(name)]:
        raise InputError(f"{label}: has the column {reserved[0]}, a name that is used for counting; rename it")


def with_found_encoding(path: Path, written: Source | None) -> Source:
    """How a text file of any origin is written, with the encoding that its bytes show where none is stated."""
    source = written or Source(path=path.name)
    if "encoding" in source.model_fields_set or is_workbook(path):
        return source
    return source.model_copy(update={"encoding": encoding_of(path)[0]})
