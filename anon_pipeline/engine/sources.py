"""Reading a source with DuckDB: what kind of file it is, and how it becomes a relation."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.databases import store_duckdb, store_sqlite
from anon_pipeline.engine.paths import PLAIN, exactly, packing
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.typed import OpenSource, Reader, detected
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType, ReleaseSpec, Source
from anon_pipeline.spec.permission import refuse_private

TEXT_FILES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.zst", ".tsv.zst")
#: What DuckDB must not guess of a CSV: it would skip lines, and with them people, until the rest looks regular.
EVERY_LINE = f"all_varchar=true, skip=0, comment='', quote='\"', strict_mode=true, {PLAIN}"

PARQUET_FILES = (".parquet", ".pq")


@contextmanager
def opened(connection: duckdb.DuckDBPyConnection, spec: ReleaseSpec, scratch: Path) -> Iterator[OpenSource]:
    """Open the source of a spec; `scratch` is a private folder for a table that must be converted first."""
    if not spec.source_path.exists():
        raise InputError(f"source.path: {spec.source.path}: there is no such file or folder beside the spec")
    with opened_at(connection, spec.source, spec.source_path, scratch) as source:
        yield source


@contextmanager
def opened_at(connection: duckdb.DuckDBPyConnection, source: Source, path: Path, scratch: Path) -> Iterator[OpenSource]:
    """Open a source that lies at `path`, for which there may be no spec yet."""
    label = source.path
    try:
        kind = "folder" if path.is_dir() else _kind_of_file(path)
        if kind != "sqlite" and kind != "duckdb" and source.query is not None:
            raise InputError("source.query: only a DuckDB or SQLite database takes a query; remove it")
        if kind in ("sqlite", "duckdb") and source.query is None:
            raise InputError(f"source.query: {label} is a database; say which rows with a query")
        if kind in ("sqlite", "duckdb"):
            stored = scratch / f"{kind}.parquet"
            stored.unlink(missing_ok=True)  # of a killed process
            try:
                query, check = str(source.query), partial(check_names, label)
                if kind == "duckdb":
                    store_duckdb(connection, path, query, stored, check)
                else:
                    store_sqlite(path, query, stored, check)
                with exactly(stored) as (place,):
                    yield OpenSource(f"read_parquet({place}, {PLAIN})", label, (stored,))
            finally:
                stored.unlink(missing_ok=True)
        elif kind == "csv":
            with exactly(path) as (place,):
                text = f"read_csv({place}, {_csv_options(source)}, {packing(path)}"
                check_header(connection, text, label)
                yield OpenSource(f"{text}, header=true)", label)
        else:
            files = sorted(path.rglob("*.parquet")) if kind == "folder" else [path]
            if not files:
                raise InputError(f"{label}: the folder holds no .parquet file")
            for file in files:
                refuse_private(file, label)  # a link may lead there
            check_names(label, pq.read_schema(files[0]).names)
            with exactly(*files) as places:
                relation = f"read_parquet([{', '.join(places)}], union_by_name=true, {PLAIN})"
                yield OpenSource(relation, label, tuple(files))
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, pa.ArrowException, sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{label}: cannot be read: {harmless(error)}") from None
    except PermissionError:
        raise InputError(f"{label}: cannot be read: permission denied") from None


def _kind_of_file(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"SQLite format 3"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    if head.startswith(b"PAR1") or path.name.lower().endswith(PARQUET_FILES):
        return "parquet"
    if path.name.lower().endswith(TEXT_FILES):
        return "csv"
    raise InputError(f"source.path: {path.name}: is no CSV, Parquet, DuckDB or SQLite file; convert it to one of them")


def _csv_options(source: Source) -> str:
    options = [EVERY_LINE, f"encoding={literal(source.encoding)}"]
    if source.delimiter is not None:
        options.append(f"delim={literal(source.delimiter)}")
    return ", ".join(options)


def check_header(connection: duckdb.DuckDBPyConnection, text: str, label: str) -> None:
    """Refuse a CSV whose header has a name twice; DuckDB would rename one of them.

    Lines that several threads read come in any order, and the first may be anybody's, so one thread reads it. A message
    says where the names stand and not what they are: a file without a header begins with a person.
    """
    head = connection.execute(f"FROM {text}, header=false, parallel=false) LIMIT 1").fetchall()
    if not head:
        raise InputError(f"{label}: is empty; it has not even a header line")
    places: dict[str, list[str]] = {}
    for number, name in enumerate(head[0], start=1):
        if name is not None:
            places.setdefault(str(name).casefold(), []).append(str(number))
    twice = next((numbers for numbers in places.values() if len(numbers) > 1), None)
    if twice:
        raise InputError(
            f"{label}: the columns {' and '.join(twice)} of its first line have one name (capitals do not tell columns "
            "apart); rename or drop all but one, or add a header if that line is a person's"
        )


def check_names(label: str, names: list[str]) -> None:
    """Refuse a name that stands twice in a schema or a query, where no name is a person's value."""
    plain = [name.casefold() for name in names]
    twice = sorted({name for name in names if plain.count(name.casefold()) > 1})
    if twice:
        raise InputError(
            f"{label}: the columns {', '.join(twice)} stand twice (capitals do not tell columns apart); "
            "rename or drop one of each"
        )


def harmless(error: BaseException) -> str:
    """What of a library's message is safe to repeat: its kind and the line number, never the row it quotes."""
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line:
        utf = (
            "is not in the file's encoding; state it as source.encoding" if "nicode" in text or "utf-8" in text else ""
        )
        return f"line {line[1]} " + (utf or "does not have the shape of the header; check delimiter and quotes")
    for sign, sentence in (
        ("sniffing", "its lines do not have the shape of the header; check delimiter and quotes"),
        ("No space left", "the disk is full"),
        ("File too large", "the file would be larger than allowed"),
        ("Permission denied", "permission denied"),
        ("lock", "another program holds the database open for writing"),
        ("Parquet", "it is no intact Parquet file"),
        ("operations are disabled", "the query, or a view that it names, reads files; it may read the database alone"),
        ("not support the encoding", "source.encoding is none of utf-8, utf-16 and latin-1; convert the file"),
        ("nicode", "its text is not in the stated encoding"),
        ("does not exist", "the query names a table or column that does not exist"),
        ("no such", "the query names a table or column that does not exist"),
        ("yntax", "the query has a syntax error"),
    ):
        if sign in text:
            return sentence
    return f"the library reported {type(error).__name__}"


def import_table(
    connection: duckdb.DuckDBPyConnection, reader: Reader, path: Path, scratch: Path, measured: Sequence[str] = ()
) -> Path:
    """Any CSV or Parquet table as a Parquet file, for reading it as an outsider would.

    The fields of a CSV stay the texts that they are: "1" and "1.0" are two values to whoever sees the file. Only the
    `measured` columns become numbers where all their fields are, since their order matters then.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    try:
        if path.is_file() and _kind_of_file(path) == "parquet":
            check_names(path.name, pq.read_schema(path).names)
            return path
        if not path.is_file() or _kind_of_file(path) != "csv":
            raise InputError(f"{path}: is no CSV or Parquet file")
        destination = scratch / "imported.parquet"
        with exactly(path) as (place,):
            text = f"read_csv({place}, {EVERY_LINE}, {packing(path)}"
            check_header(connection, text, path.name)
            source = OpenSource(f"{text}, header=true)", path.name)
            select = []
            for name, *_ in connection.execute(f"DESCRIBE FROM {source.relation}").fetchall():
                number = name in measured and detected(reader, source, quoted(name)) is ColumnType.NUMERIC
                select.append(f"{quoted(name)}::DOUBLE AS {quoted(name)}" if number else quoted(name))
            people = f"SELECT {', '.join(select)} FROM {source.relation}"
            connection.execute(f"COPY ({people}) TO {literal(str(destination))} (FORMAT parquet)")
        return destination
    except (duckdb.Error, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: cannot be read: {harmless(error)}") from None
    except PermissionError:
        raise InputError(f"{path.name}: cannot be read: permission denied") from None
