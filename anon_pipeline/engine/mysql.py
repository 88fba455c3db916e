"""Rows of a MySQL or MariaDB server, through PyMySQL, which leaves them on the server until they are read.

They arrive as texts, which Arrow converts to the types that the server declares. The transaction is read-only, and sees
a single snapshot.
"""

from __future__ import annotations

import re
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

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

BATCH_ROWS = 10_000
#: Texts end where the parser of a query expects it, moments are in UTC, and no wait for a lock is endless.
SESSION = (
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES', time_zone = '+00:00', lock_wait_timeout = {seconds}",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
#: A server does not say whether something exists that a user may not read.
NOT_GRANTED = "the user may not read what is asked for, or it does not exist; grant SELECT on it"
#: Sentences for failures, by the server's error number.
SENTENCES = {
    1044: NOT_GRANTED,
    1045: "the server does not take this user or password",
    1049: "the server has no such database",
    1054: "names a column that does not exist",
    1060: "two columns of the query have one name and stand twice; give one of them another with AS",
    1064: "is no query that the server takes",
    1142: NOT_GRANTED,
    1143: NOT_GRANTED,
    1146: "names a table that does not exist",
    1205: "somebody else has locked the table; run again when that is over",
    1317: "the server has ended the query",
    1356: "names a view that the server cannot run",
    1370: NOT_GRANTED,
    1412: "the table was changed while it was read; run again",
    1690: "the query fails on a value; write it so that it cannot",
    1698: "the server does not take this user or password",
    1792: "would write; only what reads is run",
}
#: Error numbers that are due to the query and will come again; all others may pass.
LASTING = (1044, 1054, 1060, 1064, 1142, 1143, 1146, 1356, 1370, 1690, 1792)
# Numbers of types and bits of flags (MySQL, "Column Definition Protocol"); an unknown type is no plain value.
INTEGERS = {1: 8, 2: 16, 3: 32, 9: 32, 8: 64}
DECIMALS, DATES, MOMENTS, TEXTS = (0, 246), (10, 14), (7, 12), (15, 253, 254)
LONG_TEXTS = (249, 250, 251, 252)
FLOAT, DOUBLE, NOTHING, TIMESTAMP, YEAR, BIT = 4, 5, 6, 7, 13, 16
NAMES = {11: "time", BIT: "bit", 242: "vector", 245: "json", 255: "geometry"}
UNSIGNED, ZEROFILL, ENUM, SET = 32, 64, 256, 2048
BINARY = 63  # the character set of bytes
VALID_JSON = r"json_valid\(`((?:[^`]|``)*)`\)"
NO_DATE = r"^\d{4}-(00|\d{2}-00)"
#: Modes of encryption of the connection, as MySQL's own client names them.
TLS = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
OPTIONS = {"unix_socket", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key"}
#: Ways to log in that send the password itself.
PLAIN_LOGINS = ("mysql_clear_password", "dialog")


class _Unwilling:
    """Replaces a way to log in that would send the password to any server that answers."""

    def __init__(self, connection: object) -> None:
        pass

    def authenticate(self, _packet: object) -> bytes:
        raise ServerFailure(
            "the server asks for the password as it is, which it gets with ssl_mode=VERIFY_IDENTITY only", lasting=True
        )


def settings_of(address: str) -> dict[str, Any]:
    """PyMySQL's settings for an address such as mysql://USER:PASSWORD@HOST:3306/DATABASE?ssl_mode=REQUIRED.

    Raises
    ------
    ServerFailure
        Without any part of the address.
    """
    form = "mysql://USER:PASSWORD@HOST:PORT/DATABASE, with special characters as %40"
    try:
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        port, database = parts.port, unquote(parts.path.removeprefix("/"))
    except ValueError:
        raise ServerFailure(f"source.connection: is no address; write {form}", lasting=True) from None
    if parts.scheme not in ("mysql", "mariadb") or not parts.username or not database or parts.fragment:
        raise ServerFailure(f"source.connection: is no address; write {form}", lasting=True)
    mode = options.get("ssl_mode", "VERIFY_CA" if "ssl_ca" in options else "PREFERRED").upper()
    if not set(options) <= OPTIONS or mode not in TLS:
        raise ServerFailure(
            f"source.connection: has an unknown option; known are {', '.join(sorted(OPTIONS))} (one of "
            f"{', '.join(TLS)})",
            lasting=True,
        )
    secret: dict[str, Any] = {"ssl_disabled": True} if mode == "DISABLED" else {}
    if mode in TLS[2:]:
        secret = {"ssl": _tls(mode, options)}
    if mode not in TLS[3:]:
        secret["auth_plugin_map"] = dict.fromkeys(PLAIN_LOGINS, _Unwilling)
    return {
        "host": parts.hostname or "localhost",
        "port": port or 3306,
        "user": unquote(parts.username),
        "password": unquote(parts.password or ""),
        "database": database,
        "unix_socket": options.get("unix_socket"),
        **secret,
    }


def _tls(mode: str, options: dict[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca"))
        context.check_hostname = mode == "VERIFY_IDENTITY"
        context.verify_mode = ssl.CERT_NONE if mode == "REQUIRED" else ssl.CERT_REQUIRED
        if "ssl_cert" in options:
            context.load_cert_chain(options["ssl_cert"], options.get("ssl_key"))
    except OSError:
        raise ServerFailure(
            "source.connection: ssl_ca, ssl_cert or ssl_key names a file that cannot be used", lasting=True
        ) from None
    return context


@contextmanager
def _session(address: str) -> Iterator[Any]:
    """A connection in a transaction that cannot write."""
    import pymysql
    from pymysql.converters import encoders  # and no decoders: every value stays the text that it comes as

    settings, reached = settings_of(address), False
    try:
        connection = pymysql.connect(**settings, charset="utf8mb4", conv=encoders, local_infile=False)
        try:
            for statement in SESSION:
                _ask(connection, statement.format(seconds=LOCK_SECONDS))
            reached = True
            yield connection
        finally:
            with suppress(pymysql.Error):
                connection.close()
    except (pymysql.Error, UnicodeError, struct.error, IndexError, EOFError) as error:
        code: Any = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else None
        sentence = SENTENCES.get(code, BROKEN if reached else UNREACHED)
        raise ServerFailure(sentence, lasting=reached and code in LASTING) from None


def _ask(connection: Any, query: str) -> Any:
    """A cursor with all rows of a short answer."""
    cursor = connection.cursor()
    cursor.execute(query)
    return cursor


@contextmanager
def _unread(connection: Any, query: str) -> Iterator[Any]:
    """A cursor whose rows stay on the server until they are fetched; the last query of a connection."""
    from pymysql.cursors import SSCursor

    cursor = connection.cursor(SSCursor)
    cursor.execute(query)
    try:
        yield cursor
    finally:  # otherwise it would ask for the remaining rows on a connection that has ended
        cursor._result.unbuffered_active = False


@contextmanager
def rows_of_mysql(question: Question) -> Iterator[Rows]:
    """The rows of a query with columns of plain values."""
    with _session(question.address) as connection:
        fields = _fields(connection, question.query)
        documents = _documents(connection, fields)
        columns = [_plain_column(field, question.missing, documents) for field in fields]
        schema = pa.schema([(field.name, kind) for field, (kind, _) in zip(fields, columns, strict=True)])
        selected = f"SELECT {', '.join(map(_selected, fields))} FROM ({question.query}\n) AS asked"

        def batches(cursor: Any) -> Iterator[pa.RecordBatch]:
            while rows := cursor.fetchmany(BATCH_ROWS):
                arrays = [
                    change(list(values)) for values, (_, change) in zip(zip(*rows, strict=True), columns, strict=True)
                ]
                yield pa.record_batch(arrays, schema=schema)

        with _unread(connection, selected) as cursor:
            yield Rows(schema, batches(cursor))


@contextmanager
def answer_of_mysql(question: Question) -> Iterator[Rows]:
    """The rows of a query as texts."""
    with _session(question.address) as connection:
        cursor = _ask(connection, question.query)
        names = [column[0] for column in cursor.description]
        answer = [dict(zip(names, map(str, row), strict=True)) for row in cursor.fetchall()]
        table = pa.Table.from_pylist(answer, pa.schema([(name, pa.string()) for name in names]))
        yield Rows(table.schema, iter(table.to_batches()))


def levels_of_mysql(question: Question) -> dict[str, tuple[str, ...]]:
    """The values of every column of the type ENUM, in the order of the type."""
    with _session(question.address) as connection:
        enumerated = [field for field in _fields(connection, question.query) if field.flags & ENUM]
        declared: dict[tuple[str, str], str] = {}
        for schema, table in _origins(enumerated):
            columns = _ask(connection, f"SHOW COLUMNS FROM {_name(schema)}.{_name(table)}").fetchall()
            declared |= {(table, column[0]): column[1] for column in columns}
    return {
        field.name: tuple(value.replace("''", "'") for value in re.findall(r"'((?:[^']|'')*)'", kind))
        for field in enumerated
        if (kind := declared.get((field.org_table, field.org_name))) is not None
    }


def _fields(connection: Any, query: str) -> list[Any]:
    """The columns of a query as the server describes them."""
    # For a subquery MariaDB does not say from which tables its columns come, and it accepts no WITH in parentheses.
    none = f"SELECT * FROM ({query}\n) AS asked LIMIT 0" if query[:4].upper() == "WITH" else f"({query}\n) LIMIT 0"
    return list(_ask(connection, none)._result.fields)


def _origins(fields: list[Any]) -> list[tuple[str, str]]:
    """The tables that columns come from: schema and name."""
    return sorted({(field.db.decode(), field.org_table) for field in fields if field.org_table and field.db})


def _documents(connection: Any, fields: list[Any]) -> set[tuple[str, str]]:
    """Table and name of MariaDB's JSON columns, which it declares as texts with a condition."""
    found: set[tuple[str, str]] = set()
    for schema, table in _origins([field for field in fields if field.type_code in LONG_TEXTS]):
        definition = _ask(connection, f"SHOW CREATE TABLE {_name(schema)}.{_name(table)}").fetchone()
        found |= {(table, name.replace("``", "`")) for name in re.findall(VALID_JSON, definition[1])}
    return found


def _name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _selected(field: Any) -> str:
    """A column by its name; a FLOAT as the stored number, and not rounded to the six digits that are displayed."""
    name = _name(field.name)
    return f"{name} + 0e0" if field.type_code == FLOAT else name


def _plain_column(
    field: Any, missing: tuple[str, ...], documents: set[tuple[str, str]]
) -> tuple[pa.DataType, Callable[[list[Any]], pa.Array]]:
    """The type in which a column is stored, and the conversion of its texts to this type.

    Raises
    ------
    ServerFailure
        For documents, bytes, sets and the like.
    """
    number, flags = field.type_code, field.flags
    if number in INTEGERS:
        if flags & ZEROFILL:  # a number with leading zeros is a code
            return pa.string(), _texts
        if number == 1 and field.length == 1 and not flags & UNSIGNED:  # what BOOLEAN stands for
            return pa.bool_(), lambda values: _bools(field.name, values, {"0": False, "1": True})
        width = f"{'u' if flags & UNSIGNED else ''}int{INTEGERS[number]}"
        return _cast(field.name, pa.type_for_alias(width))
    if number == BIT and field.length == 1:
        return pa.bool_(), lambda values: _bools(field.name, values, {b"\0": False, b"\1": True})
    if number in DECIMALS:
        digits = field.length - (not flags & UNSIGNED) - (field.scale > 0)
        return _cast(field.name, pa.decimal128(digits, field.scale) if 0 < digits <= 38 else pa.string())
    if number in DATES:
        return _dates(field.name, pa.date32(), missing)
    if number in MOMENTS:
        return _dates(field.name, pa.timestamp("us", "UTC" if number == TIMESTAMP else None), missing)
    simple = {FLOAT: pa.float32(), DOUBLE: pa.float64(), YEAR: pa.int16(), NOTHING: pa.string()}
    if number in simple:
        return _cast(field.name, simple[number])
    if number in (*TEXTS, *LONG_TEXTS) and not flags & SET and (field.org_table, field.org_name) not in documents:
        if field.charsetnr != BINARY or flags & ENUM:
            return pa.string(), _texts
        raise not_plain(field.name, "binary")
    raise not_plain(field.name, "set" if flags & SET else NAMES.get(number, "json" if number in LONG_TEXTS else number))


def _texts(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.string())


def _bools(column: str, values: list[Any], known: dict[Any, bool]) -> pa.Array:
    if not known.keys() | {None} >= set(values):
        raise ServerFailure(
            "is declared as BOOLEAN, which is TINYINT(1), and holds other numbers than 0 and 1; "
            f"write CAST({column} AS SIGNED) in source.query",
            lasting=True,
            column=column,
        )
    return pa.array([None if value is None else known[value] for value in values], pa.bool_())


def _cast(column: str, kind: pa.DataType) -> tuple[pa.DataType, Callable[[list[Any]], pa.Array]]:
    """Texts as numbers, dates or moments."""

    def change(values: list[Any]) -> pa.Array:
        try:
            return _texts(values).cast(kind)
        except (pa.ArrowInvalid, TypeError):  # their messages quote the value
            raise ServerFailure("holds a value that is none of its type", lasting=True, column=column) from None

    return kind, change


def _dates(
    column: str, kind: pa.DataType, missing: tuple[str, ...]
) -> tuple[pa.DataType, Callable[[list[Any]], pa.Array]]:
    """Dates; one whose month or day is 00 is missing if `missing` names it, and is refused otherwise."""
    within = pa.timestamp("us") if pa.types.is_timestamp(kind) else kind
    _, cast = _cast(column, within)

    def change(values: list[Any]) -> pa.Array:
        texts = _texts(values)
        none = pc.match_substring_regex(texts, NO_DATE)
        if pc.any(none).as_py():
            known = pc.is_in(pc.utf8_slice_codeunits(texts, 0, 10), pa.array(missing, pa.string()))
            if pc.any(pc.and_(none, pc.invert(known))).as_py():
                raise ServerFailure(
                    "holds dates of the month or day 00; where 0000-00-00 means not known, name it in source.missing, "
                    "and write others as NULL in source.query",
                    lasting=True,
                    column=column,
                )
            values = pc.if_else(none, None, texts).to_pylist()
        return cast(values).cast(kind)

    return kind, change


SERVER = Server(
    "a MySQL or MariaDB",
    extra="mysql",
    driver="pymysql",
    dialect="mysql",
    rows=rows_of_mysql,
    answer=answer_of_mysql,
    levels=levels_of_mysql,
)
