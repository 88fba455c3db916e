"""Reading a source with DuckDB: what kind of file it is, what its columns are, and how each becomes typed."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Column, ColumnType, ReleaseSpec, Role

WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
FLOATING = {"FLOAT", "DOUBLE", "UBIGINT", "HUGEINT", "UHUGEINT"}
MOMENTS = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}
#: A number beyond this is no measurement of a person, and would overflow on the way.
LARGEST = "1e18"

PLAIN = {"VARCHAR", "BOOLEAN", "UUID", "TIME", *WHOLE, *FLOATING, *MOMENTS}

TEXT_FILES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.zst", ".tsv.zst")
#: What DuckDB must not guess of a CSV: it would skip lines, and with them people, until the rest looks regular.
EVERY_LINE = "all_varchar=true, skip=0, comment='', quote='\"', strict_mode=true"

PARQUET_FILES = (".parquet", ".pq")


@dataclass(frozen=True)
class OpenSource:
    """A source as DuckDB sees it: a relation to select from, and the file to name in a sentence."""

    relation: str
    label: str


@dataclass(frozen=True)
class TypedColumn:
    """How one column of the source becomes a column of the stored table."""

    name: str
    type: ColumnType
    expression: str


def is_whole(storage: str) -> bool:
    return storage in WHOLE


def is_ordered(storage: str) -> bool:
    """Whether values of this storage type are numbers or dates."""
    return storage in {*WHOLE, *FLOATING, *MOMENTS} or storage.startswith("DECIMAL")


@contextmanager
def opened(connection: duckdb.DuckDBPyConnection, spec: ReleaseSpec, scratch: Path) -> Iterator[OpenSource]:
    """Open the source of a spec; `scratch` is a private folder for a table that must be converted first."""
    path = spec.source_path
    label = spec.source.path
    if not path.exists():
        raise InputError(f"source.path: {label}: there is no such file or folder beside the spec")
    try:
        kind = "folder" if path.is_dir() else _kind_of_file(path)
        if kind != "sqlite" and kind != "duckdb" and spec.source.query is not None:
            raise InputError("source.query: only a DuckDB or SQLite database takes a query; remove it")
        if kind in ("sqlite", "duckdb") and spec.source.query is None:
            raise InputError(f"source.query: {label} is a database; say which rows with a query")
        if kind == "duckdb":
            connection.execute(f"ATTACH {literal(str(path))} AS source_database (READ_ONLY)")
            connection.execute("USE source_database")
            query = str(spec.source.query).strip().rstrip(";")
            _check_names(label, [row[0] for row in connection.execute(f"DESCRIBE ({query}\n)").fetchall()])
            yield OpenSource(f"({query}\n)", label)
        elif kind == "sqlite":
            converted = scratch / "sqlite.parquet"
            try:
                _convert_sqlite(path, str(spec.source.query), converted, label)
                yield OpenSource(f"read_parquet({literal(str(converted))})", label)
            finally:
                converted.unlink(missing_ok=True)
        elif kind == "csv":
            options = _csv_options(spec)
            head = connection.execute(
                f"FROM read_csv({literal(str(path))}, header=false, {options}) LIMIT 1"
            ).fetchall()
            if not head:
                raise InputError(f"{label}: is empty; it has not even a header line")
            _check_names(label, [str(name) for name in head[0] if name is not None])
            yield OpenSource(f"read_csv({literal(str(path))}, header=true, {options})", label)
        else:
            files = sorted(path.rglob("*.parquet")) if kind == "folder" else [path]
            if not files:
                raise InputError(f"{label}: the folder holds no .parquet file")
            _check_names(label, pq.read_schema(files[0]).names)
            listed = ", ".join(literal(str(file)) for file in files)
            yield OpenSource(f"read_parquet([{listed}], union_by_name=true)", label)
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


def _csv_options(spec: ReleaseSpec) -> str:
    options = [EVERY_LINE, f"encoding={literal(spec.source.encoding)}"]
    if spec.source.delimiter is not None:
        options.append(f"delim={literal(spec.source.delimiter)}")
    return ", ".join(options)


def _check_names(label: str, names: list[str]) -> None:
    plain = [name.casefold() for name in names]
    twice = sorted({name for name in names if plain.count(name.casefold()) > 1})
    if twice:
        raise InputError(
            f"{label}: the columns {', '.join(twice)} stand twice (capitals do not tell columns apart); "
            "rename or drop one of each"
        )


def _convert_sqlite(path: Path, query: str, destination: Path, label: str) -> None:
    """SQLite types values, not columns: everything becomes text first, and is then typed like a CSV."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        cursor = database.execute(query)
        names = [column[0] for column in cursor.description or []]
        _check_names(label, names)
        schema = pa.schema([(name, pa.string()) for name in names])
        with pq.ParquetWriter(destination, schema) as writer:
            while rows := cursor.fetchmany(50_000):
                columns = [[_text(value) for value in column] for column in zip(*rows, strict=True)]
                writer.write_table(pa.table([pa.array(column, pa.string()) for column in columns], schema=schema))


def _text(value: Any) -> str | None:
    return (
        None if value is None or isinstance(value, bytes) else repr(value) if isinstance(value, float) else str(value)
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
        ("not support the encoding", "source.encoding is none of utf-8, utf-16 and latin-1; convert the file"),
        ("nicode", "its text is not in the stated encoding"),
        ("does not exist", "the query names a table or column that does not exist"),
        ("no such", "the query names a table or column that does not exist"),
        ("yntax", "the query has a syntax error"),
    ):
        if sign in text:
            return sentence
    return f"the library reported {type(error).__name__}"


# ---------------------------------------------------------------------- types


def typed_columns(connection: duckdb.DuckDBPyConnection, source: OpenSource, spec: ReleaseSpec) -> list[TypedColumn]:
    """How each column that is not excluded is stored.

    Raises
    ------
    InputError
        For a column without a role, one the source lacks, text among numbers, infinity, an empty table, fewer than k
        rows, or a target with a single value.
    """
    storage = {row[0]: row[1] for row in connection.execute(f"DESCRIBE FROM {source.relation}").fetchall()}
    unnamed = [name for name in storage if name not in spec.columns]
    if len(unnamed) == len(storage):  # then these are no names, but perhaps the first person's values
        raise InputError(
            f"columns: {source.label} has none of the spec's columns; its first line must name them, "
            "and every line have as many fields"
        )
    if unnamed:
        raise InputError(
            f"columns: {source.label} has columns without a role: {', '.join(unnamed)}; "
            "give each a role (exclude leaves it out)"
        )
    absent = [name for name in spec.columns if name not in storage]
    if absent:
        raise InputError(f"columns: {source.label} has no column {', '.join(absent)}; correct the name or remove it")
    typed = []
    for name, column in spec.columns.items():
        if column.role is Role.EXCLUDE:
            continue
        if storage[name] not in PLAIN and not storage[name].startswith(("DECIMAL", "ENUM")):
            raise InputError(f"columns.{name}: holds {storage[name].split('(')[0]} values; flatten or exclude it")
        typed.append(_typed(connection, source, name, storage[name], column, spec.source.missing))
    _check_people(connection, source, spec, typed)
    return typed


def typed_quasi_identifiers(
    connection: duckdb.DuckDBPyConnection, source: OpenSource, spec: ReleaseSpec, types: Mapping[str, ColumnType]
) -> list[TypedColumn]:
    """The quasi-identifiers of another table of people, such as a population, typed as those of the source are.

    Raises
    ------
    InputError
        For a column that the table lacks or that holds values of another type.
    """
    storage = {row[0]: row[1] for row in connection.execute(f"DESCRIBE FROM {source.relation}").fetchall()}
    absent = [name for name in spec.quasi_identifiers if name not in storage]
    if absent:
        raise InputError(f"{source.label}: has no column {', '.join(absent)}; a population has all quasi-identifiers")
    typed = []
    for name in spec.quasi_identifiers:
        column = spec.columns[name].model_copy(update={"type": types[name]})
        typed.append(_typed(connection, source, name, storage[name], column, spec.source.missing))
    return typed


def _typed(
    connection: duckdb.DuckDBPyConnection,
    source: OpenSource,
    name: str,
    storage: str,
    column: Column,
    missing: tuple[str, ...],
) -> TypedColumn:
    value = quoted(name)
    is_text = storage == "VARCHAR" or storage.startswith("ENUM")
    if is_text:
        markers = ", ".join(literal(marker) for marker in ("", *missing))
        value = f"CASE WHEN {value}::VARCHAR NOT IN ({markers}) THEN {value}::VARCHAR END"
    kind = column.type
    if kind is None:
        kind = _detected(connection, source, value) if is_text else natural_type(storage)
    if kind is ColumnType.CATEGORICAL:
        return TypedColumn(name, kind, value)
    if kind is ColumnType.DATE:
        if not is_text and storage not in MOMENTS:
            raise InputError(f"columns.{name}.type: is date, but the source holds {storage}; change the type")
        if is_text:
            value = _parsed(connection, source, name, value, "TIMESTAMP", "dates")
        endless = _count(connection, f"SELECT count(*) FROM {source.relation} WHERE NOT isfinite(({value})::TIMESTAMP)")
        if endless:
            raise InputError(f"columns.{name}: {endless} dates are infinite; replace them by dates or missing values")
        days = _count(connection, f"SELECT count(*) FROM {source.relation} WHERE {value} <> ({value})::DATE")
        return TypedColumn(name, kind, f"({value})::DATE" if not days else f"({value})::TIMESTAMP")
    if storage == "BOOLEAN" or storage in MOMENTS or storage in ("UUID", "TIME"):
        raise InputError(f"columns.{name}.type: is numeric, but the source holds {storage} values; change the type")
    if is_text:
        whole = f"regexp_full_match(trim({value}), '[+-]?[0-9]{{1,18}}')"
        if _count(connection, f"SELECT count(*) FROM {source.relation} WHERE NOT {whole}"):
            value = _parsed(connection, source, name, value, "DOUBLE", "numbers")
            storage = "DOUBLE"
        else:
            value, storage = f"({value})::BIGINT", "BIGINT"
    number = f"({value})::DOUBLE"
    large = f"abs({number}) > {LARGEST}" if column.role is Role.QUASI_IDENTIFIER else f"isinf({number})"
    beyond = _count(connection, f"SELECT count(*) FROM {source.relation} WHERE NOT isnan({number}) AND {large}")
    if beyond:
        raise InputError(
            f"columns.{name}: {beyond} values are infinite or beyond {LARGEST}; replace them by numbers or missing "
            "values, or declare the column categorical"
        )
    if storage in ("FLOAT", "DOUBLE"):
        # NaN is a missing value, and there is one zero.
        value = f"CASE WHEN NOT isnan(({value})::DOUBLE) THEN ({value})::DOUBLE + 0.0 END"
        value = f"({value})::FLOAT" if storage == "FLOAT" else value
    return TypedColumn(name, kind, value)


def natural_type(storage: str) -> ColumnType:
    """How values of a storage type compare where the spec does not say."""
    if storage in MOMENTS:
        return ColumnType.DATE
    return ColumnType.NUMERIC if is_ordered(storage) else ColumnType.CATEGORICAL


def _detected(connection: duckdb.DuckDBPyConnection, source: OpenSource, value: str) -> ColumnType:
    """Text that is all numbers is numeric, unless a leading zero or the sheer length shows that it is a code."""
    code = f"(TRY_CAST({value} AS DOUBLE) IS NULL OR regexp_matches(trim({value}), '^[+-]?(0[0-9]|[0-9]{{19}})'))"
    query = f"SELECT count(*) FILTER (WHERE {value} IS NOT NULL AND {code}), count({value}) FROM {source.relation}"
    codes, known = connection.execute(query).fetchall()[0]
    return ColumnType.NUMERIC if known and not codes else ColumnType.CATEGORICAL


def _parsed(
    connection: duckdb.DuckDBPyConnection, source: OpenSource, name: str, value: str, target: str, plural: str
) -> str:
    bad = _count(
        connection,
        f"SELECT count(*) FROM {source.relation} WHERE {value} IS NOT NULL AND TRY_CAST({value} AS {target}) IS NULL",
    )
    if bad:
        raise InputError(
            f"columns.{name}: {bad} values are no {plural}; declare the column categorical, list its missing markers "
            "under source.missing, or correct them"
        )
    return f"TRY_CAST({value} AS {target})"


def _check_people(
    connection: duckdb.DuckDBPyConnection, source: OpenSource, spec: ReleaseSpec, typed: list[TypedColumn]
) -> None:
    target = next(one for one in typed if one.name == spec.target)
    rows, known, distinct = connection.execute(
        f"SELECT count(*), count(value), count(DISTINCT value) FROM "
        f"(SELECT {target.expression} AS value FROM {source.relation})"
    ).fetchall()[0]
    if rows == 0:
        raise InputError(f"{source.label}: the table is empty")
    if rows < spec.k:
        raise InputError(f"{source.label}: the table has {rows} rows, fewer than k = {spec.k}")
    if known < rows:
        raise InputError(
            f"target: {spec.target} is missing in {rows - known} rows; remove those rows or choose another target"
        )
    if distinct < 2:
        raise InputError(f"target: {spec.target} has one value only, so there is nothing to learn; choose another")
    if target.type is ColumnType.CATEGORICAL and distinct > max(100, rows // 10):
        raise InputError(
            f"target: {spec.target} has {distinct} different texts in {rows} rows; declare it numeric or choose another"
        )


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    return int(connection.execute(query).fetchall()[0][0])


def import_table(
    connection: duckdb.DuckDBPyConnection, path: Path, scratch: Path, measured: Sequence[str] = ()
) -> Path:
    """Any CSV or Parquet table as a Parquet file, for reading it as an outsider would.

    The fields of a CSV stay the texts that they are: "1" and "1.0" are two values to whoever sees the file. Only the
    `measured` columns become numbers where all their fields are, since their order matters then.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    try:
        if path.is_file() and _kind_of_file(path) == "parquet":
            _check_names(path.name, pq.read_schema(path).names)
            return path
        if not path.is_file() or _kind_of_file(path) != "csv":
            raise InputError(f"{path}: is no CSV or Parquet file")
        head = connection.execute(f"FROM read_csv({literal(str(path))}, header=false, {EVERY_LINE}) LIMIT 1").fetchall()
        if not head:
            raise InputError(f"{path}: is empty; it has not even a header line")
        _check_names(path.name, [str(name) for name in head[0] if name is not None])
        source = OpenSource(f"read_csv({literal(str(path))}, header=true, {EVERY_LINE})", path.name)
        columns = [row[0] for row in connection.execute(f"DESCRIBE FROM {source.relation}").fetchall()]
        select = []
        for name in columns:
            number = name in measured and _detected(connection, source, quoted(name)) is ColumnType.NUMERIC
            select.append(f"{quoted(name)}::DOUBLE AS {quoted(name)}" if number else quoted(name))
        destination = scratch / "imported.parquet"
        connection.execute(
            f"COPY (SELECT {', '.join(select)} FROM {source.relation}) TO {literal(str(destination))} (FORMAT parquet)"
        )
        return destination
    except (duckdb.Error, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: cannot be read: {harmless(error)}") from None
    except PermissionError:
        raise InputError(f"{path.name}: cannot be read: permission denied") from None
