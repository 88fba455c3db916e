"""How servers' columns become plain ones, what an address asks for, and what is told of a failure, without a server."""

from __future__ import annotations

import datetime
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from anon_pipeline.engine import mysql, postgresql, sql_server
from anon_pipeline.engine.server_rows import BROKEN, LOCK_SECONDS, UNREACHED, Question, ServerFailure

# ------------------------------------------------------------------ MySQL: columns


def field(number: int, **said: Any) -> SimpleNamespace:
    """A column as PyMySQL describes it; a text of a table's column where nothing else is said."""
    plain = {"flags": 0, "length": 20, "scale": 0, "charsetnr": 33, "name": "x", "org_table": "t", "org_name": "x"}
    return SimpleNamespace(type_code=number, db=b"clinic", **{**plain, **said})


UNSIGNED, ZEROFILL, ENUM, SET = 32, 64, 256, 2048
MYSQL_KINDS: list[tuple[SimpleNamespace, pa.DataType]] = [
    (field(1), pa.int8()),
    (field(2), pa.int16()),
    (field(3), pa.int32()),
    (field(9), pa.int32()),
    (field(8), pa.int64()),
    (field(8, flags=UNSIGNED), pa.uint64()),
    (field(1, flags=UNSIGNED, length=3), pa.uint8()),
    (field(1, length=1), pa.bool_()),
    (field(1, length=1, flags=UNSIGNED), pa.uint8()),
    (field(1, length=2), pa.int8()),
    (field(2, length=1), pa.int16()),
    (field(3, flags=UNSIGNED | ZEROFILL, length=5), pa.string()),
    (field(16, length=1), pa.bool_()),
    (field(246, length=14, scale=2), pa.decimal128(12, 2)),
    (field(0, length=14, scale=2), pa.decimal128(12, 2)),
    (field(246, length=13, scale=2, flags=UNSIGNED), pa.decimal128(12, 2)),
    (field(246, length=13, scale=0), pa.decimal128(12, 0)),
    (field(246, length=5, scale=1), pa.decimal128(3, 1)),
    (field(246, length=2, scale=0), pa.decimal128(1, 0)),
    (field(246, length=39, scale=0), pa.decimal128(38, 0)),
    (field(246, length=40, scale=0), pa.string()),
    (field(246, length=1, scale=0), pa.string()),
    (field(10), pa.date32()),
    (field(14), pa.date32()),
    (field(7), pa.timestamp("us", "UTC")),
    (field(12), pa.timestamp("us")),
    (field(4), pa.float32()),
    (field(5), pa.float64()),
    (field(13), pa.int16()),
    (field(6), pa.string()),
    *((field(number), pa.string()) for number in (15, 253, 254, 249, 250, 251, 252)),
    (field(254, length=1), pa.string()),
    (field(254, flags=ENUM, charsetnr=63), pa.string()),
]


@pytest.mark.parametrize(("column", "kind"), MYSQL_KINDS)
def test_a_column_of_mysql_is_stored_as_it_is_declared(column: SimpleNamespace, kind: pa.DataType) -> None:
    found, change = mysql._plain_column(column, (), set())
    assert found == kind
    assert change([None]).type == kind


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (field(16, length=2), "bit"),
        (field(11), "time"),
        (field(242), "vector"),
        (field(245), "json"),
        (field(255), "geometry"),
        (field(99), "99"),
        (field(254, flags=SET), "set"),
        (field(253, charsetnr=63), "binary"),
        (field(252, charsetnr=63), "binary"),
        (field(252, org_name="papers"), "json"),
    ],
)
def test_a_column_of_mysql_without_plain_values_is_refused(column: SimpleNamespace, kind: str) -> None:
    with pytest.raises(ServerFailure, match=rf"^columns\.x: holds values of the type {kind}, which") as told:
        mysql._plain_column(column, (), {("t", "papers")})
    assert told.value.lasting


@pytest.mark.parametrize(
    ("column", "given", "stored"),
    [
        (field(1, length=1), ["1", None, "0"], [True, None, False]),
        (field(16, length=1), [b"\1", None, b"\0"], [True, None, False]),
        (field(8), ["-7", None], [-7, None]),
        (field(10), ["2024-02-29", None], [datetime.date(2024, 2, 29), None]),
    ],
)
def test_texts_of_mysql_become_values(column: SimpleNamespace, given: list[Any], stored: list[Any]) -> None:
    _, change = mysql._plain_column(column, (), set())
    assert change(given).to_pylist() == stored


@pytest.mark.parametrize(("column", "given"), [(field(1, length=1), ["1", "2"]), (field(8), ["a"]), (field(10), ["x"])])
def test_a_value_that_is_none_of_its_type_is_told_without_it(column: SimpleNamespace, given: list[str]) -> None:
    _, change = mysql._plain_column(column, (), set())
    with pytest.raises(ServerFailure, match=r"^columns\.x: ") as told:
        change(given)
    assert told.value.lasting


@pytest.mark.parametrize("time", ["", " 10:00:00"])
def test_a_date_without_a_day_is_missing_where_its_text_is_named(time: str) -> None:
    kind = pa.timestamp("us") if time else pa.date32()
    _, change = mysql._dates("x", kind, ("0000-00-00", "2024-00-00"))
    given = [f"{day}{time}" for day in ("2024-02-29", "0000-00-00", "2024-00-00")]
    assert change(given).is_null().to_pylist() == [False, True, True]
    assert change(given[:1]).type == kind
    with pytest.raises(ServerFailure, match=r"^columns\.x: holds dates of the month or day 00") as told:
        change([f"0000-00-00{time}", f"2024-01-00{time}"])
    assert told.value.lasting


def test_a_computed_column_comes_from_no_table() -> None:
    fields = [field(252), field(252, org_table=""), field(252), field(3, org_table="a")]
    assert mysql._origins(fields) == [("clinic", "a"), ("clinic", "t")]
    assert mysql._origins([SimpleNamespace(db=b"", org_table="t")]) == []


# ------------------------------------------------------------------ MySQL: addresses and failures

ADDRESS = "mysql://me:secret@db.clinic:3307/clinic"


@pytest.mark.parametrize(
    ("options", "certificate", "identity", "plain"),
    [
        ("", None, None, False),
        ("?ssl_mode=preferred", None, None, False),
        ("?ssl_mode=REQUIRED", ssl.CERT_NONE, False, False),
        ("?ssl_mode=VERIFY_CA", ssl.CERT_REQUIRED, False, True),
        ("?ssl_mode=VERIFY_IDENTITY", ssl.CERT_REQUIRED, True, True),
    ],
)
def test_what_is_verified_of_a_server_is_what_its_address_says(
    options: str, certificate: ssl.VerifyMode | None, identity: bool | None, plain: bool
) -> None:
    """A password goes as it is only to a server whose certificate is checked."""
    found = mysql.settings_of(ADDRESS + options)
    context = found.get("ssl")
    assert (context and context.verify_mode, context and context.check_hostname) == (certificate, identity)
    assert ("auth_plugin_map" not in found) == plain
    assert "ssl_disabled" not in found


def test_a_connection_is_in_the_clear_only_where_the_address_says_so() -> None:
    found = mysql.settings_of(f"{ADDRESS}?ssl_mode=DISABLED&unix_socket=/run/db")
    assert found["ssl_disabled"] is True
    assert "ssl" not in found
    assert found["unix_socket"] == "/run/db"
    assert set(found["auth_plugin_map"]) == {"mysql_clear_password", "dialog"}


def test_an_own_authority_is_asked_where_the_address_names_it(tmp_path: Path) -> None:
    """Every option may stand in an address at once; a file that is not there is told."""
    every = "ssl_cert=/nowhere&ssl_key=/nowhere&unix_socket=/run/db&ssl_mode=VERIFY_CA&ssl_ca="
    for options in ("ssl_ca=/nowhere", every + "/nowhere", "ssl_mode=REQUIRED&ssl_cert=/nowhere"):
        with pytest.raises(ServerFailure, match="names a file that cannot be used") as told:
            mysql.settings_of(f"{ADDRESS}?{options}")
        assert told.value.lasting


@pytest.mark.parametrize(
    "address",
    [
        "mysql://db.clinic/clinic",
        "mysql://me@db.clinic",
        "mysql://me@db.clinic/",
        "mysql://me@db.clinic/clinic#x",
        "postgresql://me@db.clinic/clinic",
        "mysql://me@db.clinic:port/clinic",
        "mysql://me@db.clinic/clinic?ssl_mode=REQUIRED&pardon=1",
    ],
)
def test_what_is_no_address_of_mysql_is_told(address: str) -> None:
    with pytest.raises(ServerFailure, match=r"^source\.connection: ") as told:
        mysql.settings_of(address)
    assert told.value.lasting
    assert mysql.settings_of("mariadb://me@/clinic")["host"] == "localhost"
    assert mysql.settings_of("mariadb://me@/clinic")["port"] == 3306


class Asked:
    """PyMySQL's part: a connection that refuses one of its statements."""

    def __init__(self, refused: str, error: Exception) -> None:
        self.statements: list[str] = []
        self.settings: dict[str, Any] = {}
        self.refused, self.error = refused, error

    def connect(self, **settings: Any) -> Asked:
        self.settings = settings
        self.execute("connect")
        return self

    def cursor(self) -> Asked:
        return self

    def execute(self, statement: str) -> None:
        self.statements.append(statement)
        if self.refused in statement:
            raise self.error

    def close(self) -> None:
        self.statements.append("close")


@pytest.mark.parametrize(
    ("refused", "arguments", "sentence", "lasting"),
    [
        ("SELECT 1", (1146, "x"), mysql.SENTENCES[1146], True),
        ("SELECT 1", (1205, "x"), mysql.SENTENCES[1205], False),
        ("SELECT 1", (4711, "x"), BROKEN, False),
        ("SELECT 1", ("text", 1146), BROKEN, False),
        ("SELECT 1", (), BROKEN, False),
        ("connect", (), UNREACHED, False),
        ("connect", (1045, "x"), mysql.SENTENCES[1045], False),
        ("connect", (1044, "x"), mysql.SENTENCES[1044], False),
        ("START", (1792, "x"), mysql.SENTENCES[1792], False),
    ],
)
def test_a_failure_of_mysql_is_told_by_its_number(
    refused: str, arguments: tuple[Any, ...], sentence: str, lasting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pymysql

    server = Asked(refused, pymysql.Error(*arguments))
    monkeypatch.setattr(pymysql, "connect", server.connect)
    with pytest.raises(ServerFailure) as told, mysql.answer_of_mysql(Question(ADDRESS, "SELECT 1")):
        pass
    assert (str(told.value), told.value.lasting) == (sentence, lasting)
    assert server.settings["local_infile"] is False, "the server could ask for a file of this machine"
    assert server.settings["charset"] == "utf8mb4"
    if refused != "connect":
        assert server.statements[-1] == "close"
        assert server.statements[0].startswith("connect")
        assert f"lock_wait_timeout = {LOCK_SECONDS}" in server.statements[1]


# ------------------------------------------------------------------ PostgreSQL


def pg_field(server: str, kind: pa.DataType, modifier: int | None = None) -> pa.Field:
    metadata = {b"POSTGRESQL:type": server.encode()}
    if modifier is not None:
        metadata[b"POSTGRESQL:typmod"] = str(modifier).encode()
    return pa.field("x", kind, metadata=metadata)


def digits(precision: int, scale: int) -> int:
    """The modifier of numeric(precision, scale), as PostgreSQL stores it."""
    return (precision << 16 | scale) + 4


@pytest.mark.parametrize(
    ("modifier", "kind"),
    [
        (None, pa.string()),
        (digits(12, 2), pa.decimal128(12, 2)),
        (digits(1, 0), pa.decimal128(1, 0)),
        (digits(38, 37), pa.decimal128(38, 37)),
        (digits(5, 5), pa.decimal128(5, 5)),
        (digits(39, 2), pa.string()),
        (digits(2, 3), pa.string()),
        (digits(10, 1000), pa.string()),
    ],
)
def test_a_numeric_column_of_postgresql_has_the_digits_that_it_declares(
    modifier: int | None, kind: pa.DataType
) -> None:
    assert postgresql._plain_column(pg_field("numeric", pa.string(), modifier))[0] == kind
    assert postgresql._decimal(pa.field("x", pa.string())) == pa.string()


@pytest.mark.parametrize(
    ("server", "kind"),
    [
        ("int4", pa.int32()),
        ("float8", pa.float64()),
        ("bool", pa.bool_()),
        ("text", pa.string()),
        ("date", pa.date32()),
        ("timestamptz", pa.timestamp("us", "UTC")),
    ],
)
def test_a_plain_column_of_postgresql_stays_as_it_is(server: str, kind: pa.DataType) -> None:
    found, change = postgresql._plain_column(pg_field(server, kind))
    column = pa.array([None], kind)
    assert found == kind
    assert change(column) is column
    trimmed = postgresql._plain_column(pg_field("bpchar", pa.string()))[1](pa.array([" a  ", None]))
    assert trimmed.to_pylist() == [" a", None]


@pytest.mark.parametrize(
    ("server", "kind"),
    [("json", pa.string()), ("money", pa.int64()), ("xml", pa.string()), ("bytea", pa.binary()),
     ("_int4", pa.list_(pa.int32())), ("interval", pa.month_day_nano_interval())],
)  # fmt: skip
def test_a_column_of_postgresql_without_plain_values_is_refused(server: str, kind: pa.DataType) -> None:
    with pytest.raises(ServerFailure, match=rf"^columns\.x: holds values of the type {server}, which"):
        postgresql._plain_column(pg_field(server, kind))


@pytest.mark.parametrize(
    ("reached", "state", "sentence"),
    [
        (False, None, UNREACHED),
        (False, "42P01", UNREACHED),
        (True, None, BROKEN),
        (True, "42P01", postgresql.SENTENCES["42P01"]),
        (True, "42601", postgresql.SENTENCES["42"]),
        (True, "55P03", postgresql.SENTENCES["55P03"]),
        (True, "XX000", "the server refuses the query (SQLSTATE XX000)"),
    ],
)
def test_a_failure_of_postgresql_is_told_by_its_code(reached: bool, state: str | None, sentence: str) -> None:
    assert postgresql._sentence(reached, state) == sentence


@pytest.mark.parametrize(
    ("at", "state", "sentence", "lasting"),
    [
        ("connect", "42P01", UNREACHED, False),
        ("SELECT 1", "42P01", postgresql.SENTENCES["42P01"], True),
        ("SELECT 1", "55P03", postgresql.SENTENCES["55P03"], False),
        ("SELECT 1", None, BROKEN, False),
    ],
)
def test_a_query_to_postgresql_that_will_fail_again_is_told_apart(
    at: str, state: str | None, sentence: str, lasting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adbc_driver_manager import AdbcStatusCode, OperationalError
    from adbc_driver_postgresql import dbapi

    class Connection:
        def __enter__(self) -> Connection:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def cursor(self, **_: object) -> Connection:
            return self

        def execute(self, statement: str) -> None:
            if statement == at:
                raise OperationalError("x", status_code=AdbcStatusCode.IO, sqlstate=state)

    def connect(_address: str) -> Connection:
        Connection().execute("connect")
        return Connection()

    monkeypatch.setattr(dbapi, "connect", connect)
    with pytest.raises(ServerFailure) as told, postgresql.SERVER.rows(Question("", "SELECT 1")):
        pass
    assert (str(told.value), told.value.lasting) == (sentence, lasting)


# ------------------------------------------------------------------ SQL Server


def test_a_sql_server_that_refuses_a_query_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    class Refused(Exception):
        pass

    def refuse(*_: object) -> None:
        raise Refused("Invalid object name 'people'")

    connection = SimpleNamespace(cursor=lambda: SimpleNamespace(execute=refuse), close=lambda: closed.append(True))
    driver = SimpleNamespace(connect=lambda *_, **__: connection, Error=Refused, ConnectionStringParseError=Refused)
    monkeypatch.setitem(sys.modules, "mssql_python", driver)
    for ask in (sql_server.SERVER.rows, sql_server.SERVER.answer):
        with pytest.raises(ServerFailure, match="names a table that does not exist") as told:
            _enter(ask, Question("Server=clinic", "SELECT 1"))
        assert told.value.lasting
    assert closed == [True, True]


def _enter(ask: Callable[[Question], Any], question: Question) -> None:
    with ask(question):
        pass
