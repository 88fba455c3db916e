"""Rows of a PostgreSQL server, through ADBC, which copies them as Arrow batches.

The transaction is read-only, and sees a single snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

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

#: Bytes of rows that the driver holds at a time.
BATCH_BYTES = 16 << 20
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
#: Types of the server whose values the driver would change.
NOT_PLAIN = {"money", "json", "jsonb", "xml"}
#: Sentences for failures, by the beginning of the server's error code (PostgreSQL documentation, Appendix A).
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
    "55P03": "somebody else has locked the table; run again when that is over",
    "57": "the server has ended the query",
}
#: Classes of SQLSTATE that are not due to the query: connection, conflict, resources, lock, operator intervention and
#: system error.
PASSING = ("08", "40", "53", "55", "57", "58")


def levels_of_postgresql(question: Question) -> dict[str, tuple[str, ...]]:
    """The values of every column of an enumerated type, in the order of the type."""
    with _asked(Question(question.address, f"SELECT * FROM ({question.query}\n) AS asked LIMIT 0")) as rows:
        types = {field.name: _server_type(field) for field in rows.schema}
    listed = (
        "SELECT typname::text, enumlabel::text FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid "
        "ORDER BY typname, enumsortorder"
    )
    labels: dict[str, list[str]] = {}
    with _asked(Question(question.address, listed)) as rows:
        for row in rows.read():
            labels.setdefault(str(row["typname"]), []).append(str(row["enumlabel"]))
    return {name: tuple(labels[kind]) for name, kind in types.items() if kind in labels}


@contextmanager
def _asked(question: Question, become: Callable[[pa.RecordBatchReader], Rows] | None = None) -> Iterator[Rows]:
    """The rows of a query as ADBC gives them, or converted by `become`, in a read-only transaction of its own."""
    from adbc_driver_manager import Error
    from adbc_driver_postgresql import StatementOptions, dbapi

    options = {StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)}
    reached = False
    try:
        with dbapi.connect(question.address) as connection, connection.cursor(adbc_stmt_kwargs=options) as cursor:
            reached = True
            cursor.execute(SNAPSHOT)
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            cursor.execute(question.query)
            reader = cursor.fetch_record_batch()
            yield become(reader) if become is not None else Rows(reader.schema, iter(reader))
    except (Error, pa.ArrowException) as error:
        state = getattr(error, "sqlstate", None)
        lasting = reached and state is not None and not state.startswith(PASSING)
        raise ServerFailure(_sentence(reached, state), lasting) from None
    except OSError as error:  # of the stream of rows; an error of a file has a number
        if error.errno is not None:
            raise
        raise ServerFailure(_sentence(reached, None), lasting=False) from None


def _plain(reader: pa.RecordBatchReader) -> Rows:
    columns = [_plain_column(field) for field in reader.schema]
    schema = pa.schema([(field.name, kind) for field, (kind, _) in zip(reader.schema, columns, strict=True)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            arrays = [change(column) for column, (_, change) in zip(batch.columns, columns, strict=True)]
            yield pa.record_batch(arrays, schema=schema)

    return Rows(schema, batches())


def _sentence(reached: bool, state: str | None) -> str:
    """A sentence for an error code of the server; while rows are copied there is no code."""
    if not reached:
        return UNREACHED
    if state is None:
        return BROKEN
    known = [text for code, text in SENTENCES.items() if state.startswith(code)]
    return known[0] if known else f"the server refuses the query (SQLSTATE {state})"


def _server_type(field: pa.Field) -> str:
    """The server's name for the type of a column."""
    return ((field.metadata or {}).get(b"POSTGRESQL:type") or b"").decode()


def _plain_column(field: pa.Field) -> tuple[pa.DataType, Callable[[pa.Array], pa.Array]]:
    """The type in which a column is stored, and the conversion of its values to this type.

    Raises
    ------
    ServerFailure
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
        raise not_plain(field.name, server or kind)
    return kind, lambda column: column


def _decimal(field: pa.Field) -> pa.DataType:
    """The decimal type of a numeric column that declares its digits; otherwise text, which gets a type later."""
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod") or -1)
    if modifier < 4:
        return pa.string()
    digits, fraction = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    return pa.decimal128(digits, fraction) if digits <= 38 and fraction <= digits else pa.string()


SERVER = Server(
    "a PostgreSQL",
    extra="postgresql",
    driver="adbc_driver_postgresql",
    dialect="postgres",
    rows=partial(_asked, become=_plain),
    answer=_asked,
    levels=levels_of_postgresql,
)
