"""The rows of a table or a query of a PostgreSQL server as Parquet: one snapshot, read in batches, nothing written.

The server is asked through ADBC, which copies rows as Arrow batches. The transaction is read only, and at one snapshot.
Nothing of a message of the server or of the driver is repeated: it may quote a row, or the connection.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_pipeline.engine.sql import quoted
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Source
from anon_pipeline.spec.source import Connection

#: How much of the rows the driver holds at a time.
BATCH_BYTES = 16 << 20
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
#: Types of the server that become something else than their text or number, and lose by it.
NOT_PLAIN = {"money", "json", "jsonb", "xml"}
#: What went wrong, by the beginning of the server's code for it (PostgreSQL documentation, Appendix A).
SENTENCES = {
    "28": "the server does not take this user or password",
    "3D": "the server has no such database",
    "42501": "the user may not read what is asked for; grant it SELECT on that",
    "42P01": "names a table that does not exist",
    "42703": "names a column that does not exist",
    "42": "is no query that the server takes",
    "22": "the query fails on a value; write it so that it cannot",
    "25006": "would write; only what reads is run",
    "53": "the server has too little memory, disk or connections left",
    "57": "the server has ended the query",
}
#: Classes of SQLSTATE that say nothing of the query: no connection, a conflict, no resources, an operator, a system.
PASSING = ("08", "40", "53", "57", "58")
NO_EXTRA = "is a PostgreSQL database; install `anon-pipeline[postgresql]` to read it"


def store_postgresql(source: Source, folder: Path, destination: Path, check_names: Callable[[list[str]], None]) -> None:
    """Write the rows of a table or a query as a new Parquet file.

    Parameters
    ----------
    folder : of the spec, which a file with the connection is named relative to

    Raises
    ------
    InputError
        Where the server cannot be reached or refuses, and for a column whose values are not plain.
    """
    with _asked(source, folder, _query(source)) as reader:
        check_names(reader.schema.names)
        columns = [_plain_column(field) for field in reader.schema]
        schema = pa.schema([(field.name, kind) for field, (kind, _) in zip(reader.schema, columns, strict=True)])
        with pq.ParquetWriter(destination, schema) as writer:
            for batch in reader:
                arrays = [change(column) for column, (_, change) in zip(batch.columns, columns, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=schema))


def levels_of_postgresql(source: Source, folder: Path) -> dict[str, tuple[str, ...]]:
    """The values of every column of an enumerated type, in the order of the type.

    Raises
    ------
    InputError
        Where the server cannot be reached or refuses.
    """
    with _asked(source, folder, f"SELECT * FROM ({_query(source)}) AS asked LIMIT 0") as reader:
        types = {field.name: _server_type(field) for field in reader.schema}
    listed = (
        "SELECT typname::text, enumlabel::text FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid "
        "ORDER BY typname, enumsortorder"
    )
    labels: dict[str, list[str]] = {}
    with _asked(source, folder, listed) as reader:
        for row in reader.read_all().to_pylist():
            labels.setdefault(row["typname"], []).append(row["enumlabel"])
    return {name: tuple(labels[kind]) for name, kind in types.items() if kind in labels}


def changes_of_postgresql(source: Source, folder: Path) -> str | None:
    """What `source.changed` gives now, as text; None where the spec has no such question."""
    if source.changed is None:
        return None
    with _asked(source, folder, _one_select("source.changed", source.changed)) as reader:
        return str(reader.read_all().to_pylist())


def _query(source: Source) -> str:
    if source.query is not None:
        return _one_select("source.query", source.query)
    *within, table = str(source.table).split(".")
    return f"SELECT * FROM {'.'.join(map(quoted, (*within, table)))}"


def _one_select(place: str, query: str) -> str:
    """The query, where it is one SELECT that calls functions of standard SQL only.

    A query may come from somebody else. What else a server can do for it (read its files, open connections) is done by
    functions of its own; who needs one makes a view that calls it.
    """
    try:
        import sqlglot
        from sqlglot import exp
    except ImportError:
        raise InputError(f"source.database: {NO_EXTRA}") from None
    how = "write one SELECT from tables and views of the database"
    try:
        statements = sqlglot.parse(query, dialect="postgres")
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise InputError(f"{place}: is not one SELECT; {how}") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise InputError(f"{place}: is not one SELECT; {how}")
    if statements[0].find(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into, exp.Lock, exp.Command):
        raise InputError(f"{place}: would write or lock; {how}")
    for called in statements[0].find_all(exp.Anonymous):
        raise InputError(
            f"{place}: calls {called.name}, which is no function of standard SQL; make a view that calls it"
        )
    return query.strip().rstrip(";")


def address_of(place: Connection | None, folder: Path, field: str = "source.connection") -> str:
    """The address of a server with its secrets.

    Parameters
    ----------
    folder : of the spec, which a file is named relative to
    field : of the spec, for messages

    Raises
    ------
    InputError
        Where it is not there, or others may read it.
    """
    if place is None:
        raise InputError(f"{field}: is missing; say {{env: NAME}} or {{file: path}}")
    if place.env is not None:
        if not os.environ.get(place.env):
            raise Unavailable(f"{field}: the environment variable {place.env} is not set")
        return os.environ[place.env]
    path = folder / str(place.file)
    try:
        with path.open(encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise InputError(f"{field}: {place.file} can be read by others; run `chmod 600` on it")
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        raise Unavailable(f"{field}: {place.file} cannot be read") from None


@contextmanager
def _asked(source: Source, folder: Path, query: str) -> Iterator[pa.RecordBatchReader]:
    """The rows of a query, in a transaction of its own that cannot write."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import StatementOptions, dbapi
    except ImportError:
        raise InputError(f"source.database: {NO_EXTRA}") from None
    address = address_of(source.connection, folder)
    options = {StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)}
    reached = False
    try:
        with dbapi.connect(address) as connection, connection.cursor(adbc_stmt_kwargs=options) as cursor:
            reached = True
            cursor.execute(SNAPSHOT)
            cursor.execute(query)
            yield cursor.fetch_record_batch()
    except (Error, pa.ArrowException) as error:
        state = getattr(error, "sqlstate", None)
        lasting = reached and state is not None and not state.startswith(PASSING)
        kind = InputError if lasting else Unavailable
        raise kind(f"{source.path}: {_sentence(reached, state)}") from None
    except OSError as error:  # of the stream of rows; an error of a file has a number
        if error.errno is not None:
            raise
        raise Unavailable(f"{source.path}: {_sentence(reached, None)}") from None


def _sentence(reached: bool, state: str | None) -> str:
    """A sentence for a code of the server; while rows are copied there is none."""
    if not reached:
        return "the server cannot be reached, or does not take this user; check source.connection"
    if state is None:
        return "the query fails on a row, or would write, or the server has ended the connection"
    known = [text for code, text in SENTENCES.items() if state.startswith(code)]
    return known[0] if known else f"the server refuses the query (SQLSTATE {state})"


def _server_type(field: pa.Field) -> str:
    """What the server calls the type of a column."""
    return ((field.metadata or {}).get(b"POSTGRESQL:type") or b"").decode()


def _plain_column(field: pa.Field) -> tuple[pa.DataType, Callable[[pa.Array], pa.Array]]:
    """The type that a column is stored as, and how its values become such.

    Raises
    ------
    InputError
        For lists, documents, bytes and the like.
    """
    kind, server = field.type, _server_type(field)
    if server == "numeric":
        to = _decimal(field)
        return to, lambda column: column.storage.cast(to)
    if isinstance(kind, pa.UuidType):
        return pa.string(), lambda column: pa.array(
            [None if value is None else str(value) for value in column.to_pylist()]
        )
    if server == "bpchar":  # filled up with blanks to its length
        return pa.string(), lambda column: pc.utf8_rtrim(column, " ")
    types = pa.types
    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_date, types.is_timestamp)
    if server in NOT_PLAIN or not any(check(kind) for check in plain):
        raise InputError(
            f"columns.{field.name}: holds values of the type {server or kind}, which is no plain value; cast it or "
            "leave it out in source.query"
        )
    return kind, lambda column: column


def _decimal(field: pa.Field) -> pa.DataType:
    """The decimal type of a numeric column, where it declares its digits; else text, which is then typed."""
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod") or -1)
    if modifier < 4:
        return pa.string()
    digits, fraction = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    return pa.decimal128(digits, fraction) if digits <= 38 and fraction <= digits else pa.string()
