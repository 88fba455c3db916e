"""Rows of a Microsoft SQL Server, through mssql-python, which fetches them as Arrow batches.

The transaction sees a single snapshot. SQL Server has no read-only transactions. So the query is put as a subquery into
a SELECT, which allows no other statement, and the transaction is rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anon_pipeline.engine.server_rows import (
    BROKEN,
    LOCK_SECONDS,
    UNREACHED,
    Question,
    Rows,
    Server,
    ServerFailure,
    not_plain,
)
from anon_pipeline.engine.sql import literal

BATCH_ROWS = 10_000
CONNECT_SECONDS = 15
SESSION = "SET LANGUAGE us_english; SET LOCK_TIMEOUT {milliseconds}; SET TRANSACTION ISOLATION LEVEL SNAPSHOT"
#: The declared type of each column of a query (Microsoft, "sys.dm_exec_describe_first_result_set").
DESCRIBED = (
    "SELECT name, system_type_name FROM sys.dm_exec_describe_first_result_set(N{query}, NULL, 0) "
    "WHERE is_hidden = 0 ORDER BY column_ordinal"
)
NO_LIBRARIES = "mssql-python finds no libltdl or libkrb5; on Debian, `apt-get install libltdl7 libgssapi-krb5-2`"
#: Sentences for failures, by a part of the server's message, which is not repeated.
SENTENCES = {
    "snapshot isolation": "the database gives no snapshot; ALTER DATABASE ... SET ALLOW_SNAPSHOT_ISOLATION ON",
    "permission was denied": "the user may not read what is asked for; grant it SELECT on that",
    "Lock request time out": "somebody else has locked the table; run again when that is over",
    "Invalid object name": "names a table that does not exist, or that the user may not see",
    "Base table or view not found": "names a table that does not exist, or that the user may not see",
    "Invalid column name": "names a column that does not exist",
    "Column not found": "names a column that does not exist",
    "Syntax error": "is no query that the server takes",
    "Division by zero": "the query fails on a value; write it so that it cannot",
}
#: Parts of messages about failures that may pass by themselves.
PASSING = ("Lock request time out",)
#: The stored type for each declared type, without its digits.
TYPES = {
    "bit": pa.bool_(),
    "tinyint": pa.uint8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "float": pa.float64(),
    "money": pa.decimal128(19, 4),
    "smallmoney": pa.decimal128(10, 4),
    "date": pa.date32(),
    "smalldatetime": pa.timestamp("us"),
    "datetime": pa.timestamp("us"),
    "datetime2": pa.timestamp("us"),
    "datetimeoffset": pa.timestamp("us", "UTC"),
    **dict.fromkeys(("varchar", "nvarchar", "text", "ntext", "char", "nchar", "uniqueidentifier"), pa.string()),
}
DECIMAL = re.compile(r"(?:decimal|numeric)\((\d+),(\d+)\)")


@contextmanager
def _asked(question: Question, plain: bool) -> Iterator[Rows]:
    """The rows of a query, with columns of plain values or of any values."""
    import mssql_python

    failures = (mssql_python.Error, mssql_python.ConnectionStringParseError, pa.ArrowException, RuntimeError)
    query, reached = within(question.query), False
    try:
        connection = mssql_python.connect(question.address, autocommit=False, timeout=CONNECT_SECONDS)
        try:
            cursor = connection.cursor()
            reached = True
            cursor.execute(SESSION.format(milliseconds=1000 * LOCK_SECONDS))
            cursor.execute(DESCRIBED.format(query=literal(query)))
            described = [(str(name), str(kind)) for name, kind in cursor.fetchall()]
            cursor.execute(query)
            yield plain_rows(cursor, described) if plain else _as_they_are(cursor)
        finally:
            with suppress(*failures):
                connection.close()  # which rolls back
    except failures as error:
        raise failure_of(str(error), reached) from None


def within(query: str) -> str:
    """The query as a subquery, in which a second statement, even without a semicolon, is not possible."""
    return f"SELECT * FROM ({query}\n) AS asked"


def failure_of(message: str, reached: bool) -> ServerFailure:
    """The failure for a message of the server or its driver; nothing of the message is repeated.

    The message may quote the connection if the server was not `reached`, and otherwise a row.
    """
    if "Failed to load the driver" in message:
        return ServerFailure(NO_LIBRARIES, lasting=True)
    if not reached:
        return ServerFailure(UNREACHED, lasting=False)
    sign = next((sign for sign in SENTENCES if sign.casefold() in message.casefold()), None)
    if sign is None:
        return ServerFailure(BROKEN, lasting=False)
    return ServerFailure(SENTENCES[sign], lasting=sign not in PASSING)


def _as_they_are(cursor: Any) -> Rows:
    reader = cursor.arrow_reader(BATCH_ROWS)
    return Rows(reader.schema, iter(reader))


def plain_rows(cursor: Any, described: list[tuple[str, str]]) -> Rows:
    """The rows of a cursor as the types that the server declares for its columns.

    Raises
    ------
    ServerFailure
        For documents, bytes, times of the day and the like.
    """
    columns = [plain_column(name, kind) for name, kind in described]
    schema = pa.schema([(name, kind) for (name, _), (kind, _) in zip(described, columns, strict=True)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in cursor.arrow_reader(BATCH_ROWS):
            arrays = [change(column) for column, (_, change) in zip(batch.columns, columns, strict=True)]
            yield pa.record_batch(arrays, schema=schema)

    return Rows(schema, batches())


def plain_column(name: str, declared: str) -> tuple[pa.DataType, Callable[[pa.Array], pa.Array]]:
    """The type in which a column is stored, and the conversion of its values to this type.

    Raises
    ------
    ServerFailure
        For a type whose values are not plain.
    """
    decimal = DECIMAL.fullmatch(declared)
    family = declared.partition("(")[0]
    kind = pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else TYPES.get(family)
    if kind is None:
        raise not_plain(name, family)
    if family in ("char", "nchar"):  # filled up with blanks to its length
        return kind, lambda column: pc.utf8_rtrim(column.cast(kind), " ")
    if family == "uniqueidentifier":
        return kind, lambda column: pc.utf8_lower(column.cast(kind))
    # The seventh digit of a second is left out.
    return kind, lambda column: column.cast(kind, safe=not pa.types.is_timestamp(kind))


def levels_of_sql_server(_question: Question) -> dict[str, tuple[str, ...]]:
    """None: SQL Server has no enumerated types."""
    return {}


SERVER = Server(
    "a SQL Server",
    extra="sqlserver",
    driver="mssql_python",
    dialect="tsql",
    rows=partial(_asked, plain=True),
    answer=partial(_asked, plain=False),
    levels=levels_of_sql_server,
)
