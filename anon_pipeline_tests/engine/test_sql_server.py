"""What can be known of a SQL Server without one: what it is asked, how types are stored, what is told of a failure."""

from __future__ import annotations

import datetime
import importlib.util
import socket
import sys
import traceback
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from anon_pipeline.engine import sql_server
from anon_pipeline.engine.server_queries import one_select, query_of
from anon_pipeline.engine.server_rows import LOCK_SECONDS, Question, ServerFailure
from anon_pipeline.engine.servers import changes_of_server, store_server
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Source
from anon_pipeline_tests.skips import require_package

VARIABLE, PASSWORD = "CLINIC_DSN", "geheim-4711"


def source_of(**said: Any) -> Source:
    return Source.model_validate({"database": "sqlserver", "connection": {"env": VARIABLE}, **said})


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT 1 AS age DELETE FROM people SELECT 2 AS age", "is not one SELECT"),
        ("SELECT 1 AS age) AS x DELETE FROM people SELECT * FROM (SELECT 1 AS age", "is not one SELECT"),
        ("SELECT 1; EXEC xp_cmdshell 'x'", "is not one SELECT"),
        ("EXEC xp_cmdshell 'x'", "is not one SELECT"),
        ("SELECT * INTO copy FROM people", "would write"),
        ("SELECT NEXT VALUE FOR numbers AS age", "would write"),
        ("SELECT * FROM people WITH (TABLOCKX)", "would write or lock"),
        ("SELECT * FROM OPENQUERY(other, 'SELECT 1')", "calls OPENQUERY"),
        ("SELECT * FROM OPENROWSET(BULK 'x', SINGLE_CLOB) AS a", "is not one SELECT"),
        ("SELECT * FROM other.clinic.dbo.people", "another server"),
        ("WITH a AS (SELECT 1 AS age) SELECT * FROM a", "make a view"),
        ("SELECT age FROM people ORDER BY age", "make a view"),
    ],
)
def test_a_query_does_no_more_than_read(query: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        one_select("source.query", query, "tsql")
    assert sentence in str(error.value)


def test_what_needs_no_semicolon_stands_within_another_select() -> None:
    """`DELETE` after `SELECT 1` is a statement to the server, and a name to the parser."""
    query = one_select("source.query", "SELECT 1 DELETE FROM people", "tsql")
    assert sql_server.within(query) == "SELECT * FROM (SELECT 1 DELETE FROM people\n) AS asked", "no SQL to the server"


def test_a_transaction_waits_for_no_lock_for_ever_and_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's part is played by one that writes down what it is asked, since no server can run here."""
    asked: list[Any] = []

    class Cursor:
        def execute(self, statement: str) -> None:
            asked.append(statement)

        def fetchall(self) -> list[tuple[str, str]]:
            return [("age", "int")]

        def arrow_reader(self, _rows: int) -> pa.RecordBatchReader:
            return pa.table({"age": [30, 40]}).to_reader()

    class Connection:
        cursor = Cursor

        def close(self) -> None:
            asked.append("close")

    def connect(address: str, **said: Any) -> Connection:
        asked.append((address, said))
        return Connection()

    errors = {"Error": KeyError, "ConnectionStringParseError": LookupError}
    driver = SimpleNamespace(connect=connect, **errors)
    monkeypatch.setitem(sys.modules, "mssql_python", driver)
    with sql_server.SERVER.rows(Question("Server=clinic", "SELECT age FROM people")) as rows:
        assert rows.read() == [{"age": 30}, {"age": 40}]
    assert asked[0] == ("Server=clinic", {"autocommit": False, "timeout": sql_server.CONNECT_SECONDS})
    assert f"SET LOCK_TIMEOUT {LOCK_SECONDS}000;" in asked[1] and asked[1].endswith("ISOLATION LEVEL SNAPSHOT")
    assert asked[3:] == ["SELECT * FROM (SELECT age FROM people\n) AS asked", "close"]


@pytest.mark.parametrize("absent", [sql_server.SERVER.driver, "sqlglot"])
def test_what_is_not_installed_is_told_with_what_to_install(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else installed(name))
    with pytest.raises(InputError, match=r"install `anon-pipeline\[sqlserver\]` to read it"):
        changes_of_server(source_of(table="people", changed="SELECT 1 AS x"), Path())


def test_names_are_quoted() -> None:
    assert query_of(source_of(table="clinic.peo]ple"), "tsql") == "SELECT * FROM [clinic].[peo]]ple]"


@pytest.mark.parametrize(
    ("declared", "given", "stored"),
    [
        ("int", pa.array([1, None], pa.int32()), [1, None]),
        ("tinyint", pa.array([255], pa.uint8()), [255]),
        ("bit", pa.array([True], pa.bool_()), [True]),
        ("decimal(12,2)", pa.array([Decimal("1.50")], pa.decimal128(12, 2)), [Decimal("1.50")]),
        ("money", pa.array([Decimal("1.5000")], pa.decimal128(19, 4)), [Decimal("1.5000")]),
        ("real", pa.array([0.25], pa.float32()), [0.25]),
        ("char(5)", pa.array(["ab   "]), ["ab"]),
        ("nvarchar(max)", pa.array(["Łódź  "]), ["Łódź  "]),
        (
            "uniqueidentifier",
            pa.array(["6F9619FF-8B86-D011-B42D-00C04FC964FF"]),
            ["6f9619ff-8b86-d011-b42d-00c04fc964ff"],
        ),
        ("date", pa.array([datetime.date(2024, 2, 29)]), [datetime.date(2024, 2, 29)]),
        ("datetime2(7)", pa.array([1_700_000_000_123_456_700], pa.timestamp("ns")), [1_700_000_000_123_456]),
        ("datetimeoffset(7)", pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC")), [1_700_000_000_123_456]),
    ],
)
def test_values_are_stored_as_they_are_declared(declared: str, given: pa.Array, stored: list[Any]) -> None:
    kind, change = sql_server.plain_column("x", declared)
    changed = change(given)
    assert changed.type == kind
    assert (changed.cast(pa.int64()) if pa.types.is_timestamp(kind) else changed).to_pylist() == stored


@pytest.mark.parametrize(
    "declared", ["xml", "json", "time(7)", "varbinary(max)", "image", "geography", "hierarchyid", "sql_variant",
                 "timestamp", "vector(3)", "clinic.made_up"]
)  # fmt: skip
def test_what_is_no_plain_value_is_refused(declared: str) -> None:
    with pytest.raises(ServerFailure, match=r"columns\.papers: holds values of the type .*which is no plain value"):
        sql_server.plain_column("papers", declared)


@pytest.mark.parametrize(
    ("message", "reached", "sentence", "lasting"),
    [
        (f"Login failed for user 'reader' with {PASSWORD}", False, "cannot be reached", False),
        (
            f"Syntax error or access violation; The SELECT permission was denied on {PASSWORD}",
            True,
            "may not read",
            True,
        ),
        ("Connection operation failed; Failed to load the driver.", False, "libltdl7", True),
        (f"Lock request time out period exceeded {PASSWORD}", True, "has locked the table", False),
        (f"Base table or view not found; Invalid object name '{PASSWORD}'", True, "does not exist", True),
        (f"Snapshot isolation transaction failed in '{PASSWORD}'", True, "ALLOW_SNAPSHOT_ISOLATION", True),
        (f"Communication link failure {PASSWORD}", True, "ended the connection", False),
    ],
)
def test_a_message_of_the_server_is_not_repeated(message: str, reached: bool, sentence: str, lasting: bool) -> None:
    failure = sql_server.failure_of(message, reached)
    assert sentence in str(failure) and PASSWORD not in str(failure)
    assert failure.lasting == lasting


@pytest.mark.parametrize(
    "address",
    [
        "Server=127.0.0.1,{port};Database=x;UID=reader;PWD=" + PASSWORD + ";ConnectRetryCount=0",
        "nothing " + PASSWORD,  # whose own message quotes it
        "Server=x;" + PASSWORD + "=1",
    ],
)
def test_a_server_that_does_not_answer_is_told_without_its_address(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_package("mssql_python")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv(VARIABLE, address.format(port=port))
    monkeypatch.setattr(sql_server, "CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match=f"sqlserver:{VARIABLE}: (the server cannot be reached|.*libltdl7)") as error:
        store_server(source_of(table="people"), tmp_path, tmp_path / "stored.parquet", lambda names: None)
    assert PASSWORD not in "".join(traceback.format_exception(error.value))
    assert not (tmp_path / "stored.parquet").exists()


def test_levels_are_those_of_no_type() -> None:
    assert sql_server.levels_of_sql_server(Question("", "SELECT 1")) == {}
