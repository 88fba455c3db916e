"""A table of a MariaDB server is the same people as the Parquet file of it; nothing is written, no secret stays."""

from __future__ import annotations

import datetime
import gc
import socket
import struct
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anon_pipeline.engine import mysql, server_rows
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.server_queries import one_select
from anon_pipeline.engine.server_rows import Question, ServerFailure
from anon_pipeline.engine.servers import changes_of_server, levels_of_server
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset
from anon_pipeline.spec import ReleaseSpec, Source
from anon_pipeline_tests.mariadb import ADDRESS_PASSWORD, PASSWORD, Server, certificate, running_server
from anon_pipeline_tests.people import write_spec

#: A value of a person that nothing may repeat.
SECRET = "Ottilie"
VARIABLE = "CLINIC_DSN"
COLUMNS = {
    "age": "quasi_identifier",
    "town": "quasi_identifier",
    "born": {"role": "quasi_identifier", "type": "date"},
    "pay": "quasi_identifier",
    "health": {"role": "quasi_identifier", "type": "categorical"},
    "person": "identifier",
    "ill": "sensitive",
}
SCRIPT = (
    "USE clinic",
    "CREATE TABLE people (age tinyint unsigned, town varchar(20) CHARACTER SET latin2, born date, pay decimal(12, 2), "
    "health enum('bad', 'fair', 'good'), person char(40), ill boolean)",
    "INSERT INTO people SELECT 20 + seq % 50, ELT(1 + seq % 4, 'Köln', 'Łódź, PL', 'Ottilie', NULL), "
    "DATE '1960-01-01' + INTERVAL seq * 7 DAY, 1000 + seq / 8, ELT(1 + seq % 3, 'good', 'bad', 'fair'), md5(seq), "
    "seq % 5 = 0 FROM seq_1_to_200",
    "CREATE TABLE odd (age int, b bit(8), clock time, several set('x', 'y'), papers json, bytes varbinary(4), "
    "picture blob, place geometry, flag boolean, broken date, ill text)",
    "SET sql_mode = ''",
    "INSERT INTO odd VALUES (1, 5, '10:00', 'x', '{}', 'a', 'b', POINT(1, 1), 7, '0000-00-00', 'Ottilie'), "
    "(2, 5, '10:00', 'x', '{}', 'a', 'b', POINT(1, 1), 1, '2024-02-01', 'no')",
    "CREATE TABLE exact (big bigint unsigned, code int(5) zerofill, cents decimal(12, 2), most decimal(40, 3), "
    "small float, wide double, day date, local_time datetime(3), moment timestamp(6) NULL, made year, one bit(1), "
    "padded char(5), lower_case varchar(5) COLLATE utf8mb4_general_ci, digit decimal(1, 0), tenths decimal(3, 1), "
    "longest decimal(38, 0) unsigned)",
    "SET time_zone = '+02:00'",
    "INSERT INTO exact VALUES (18446744073709551615, 42, -1234567890.12, 1234567890123456789012345678901234567.123, "
    "0.1234567, 0.1e0 + 0.2e0, '2024-02-29', '2024-01-02 10:00:00.123', '2024-01-02 10:00:00.123456', 2024, b'1', "
    "'ab', 'Ab', -7, -12.5, 12345678901234567890123456789012345678), "
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'aB', NULL, NULL, NULL)",
    "GRANT SELECT ON clinic.people TO reader@localhost",
    "GRANT SELECT ON clinic.odd TO reader@localhost",
    "GRANT SELECT ON clinic.exact TO reader@localhost",
    "CREATE TABLE hidden (age int)",
    "CREATE TABLE written (age int)",
    "CREATE FUNCTION wipe() RETURNS int MODIFIES SQL DATA BEGIN DELETE FROM written; RETURN 1; END",
    "INSERT INTO written VALUES (1)",
    "CREATE VIEW trap AS SELECT wipe() AS age",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        running.execute(*SCRIPT)
        yield running


@pytest.fixture
def asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv(VARIABLE, server.address())
    return server


def source_of(**said: Any) -> Source:
    return Source.model_validate({"database": "mysql", "connection": {"env": VARIABLE}, **said})


def spec_of(folder: Path, columns: dict[str, Any] = COLUMNS, **source: Any) -> ReleaseSpec:
    said = {"database": "mysql", "connection": {"env": VARIABLE}, **source}
    write_spec(folder, columns, "people.parquet", target="ill")
    content = yaml.safe_load((folder / "release.yaml").read_text())
    (folder / "release.yaml").write_text(yaml.safe_dump({**content, "source": said}))
    return ReleaseSpec.load(folder)


def refused(engine: DuckDBEngine, spec: ReleaseSpec) -> str:
    with pytest.raises(InputError) as error:
        engine.store_source(spec, spec.folder / "stored.parquet")
    message = str(error.value)
    shown = "".join(traceback.format_exception(error.value))
    assert [part for part in (PASSWORD, ADDRESS_PASSWORD, SECRET) if part in shown] == []
    assert "\n" not in message
    assert not (spec.folder / "stored.parquet").exists()
    return message


@pytest.mark.long
def test_a_table_is_the_same_people_as_the_parquet_file_of_it(
    asked: Server, engine: DuckDBEngine, tmp_path: Path
) -> None:
    facts = engine.store_source(spec_of(tmp_path, table="people"), tmp_path / "stored.parquet")
    stored = pq.read_table(tmp_path / "stored.parquet")
    assert facts.rows == 200
    assert set(stored["town"].to_pylist()) == {"Köln", "Łódź, PL", SECRET, None}, "whatever letters the table has"
    pq.write_table(stored.drop_columns(["#people"]), tmp_path / "people.parquet")
    of_file = write_spec(tmp_path, COLUMNS, "people.parquet", target="ill")
    assert engine.store_source(of_file, tmp_path / "again.parquet").content_hash == facts.content_hash
    for query in (
        "SELECT * FROM clinic.people;",
        "WITH one AS (SELECT * FROM people) SELECT * FROM one ORDER BY age",
        "SELECT * FROM people -- of all wards",
    ):
        spec = spec_of(tmp_path, query=query)
        assert engine.store_source(spec, tmp_path / "again.parquet").content_hash == facts.content_hash


@pytest.mark.long
def test_values_are_those_of_the_server(asked: Server, tmp_path: Path) -> None:
    with mysql.rows_of_mysql(Question(asked.address(), "SELECT * FROM exact")) as rows:
        kinds = dict(zip(rows.schema.names, rows.schema.types, strict=True))
        first, second = rows.read()
    assert kinds["big"] == pa.uint64() and first["big"] == 2**64 - 1
    assert first["code"] == "00042", "a number that is shown with its zeros is a code"
    assert kinds["cents"] == pa.decimal128(12, 2) and str(first["cents"]) == "-1234567890.12"
    assert first["most"] == "1234567890123456789012345678901234567.123", "more digits than a decimal of Parquet"
    exact = {"digit": pa.decimal128(1, 0), "tenths": pa.decimal128(3, 1), "longest": pa.decimal128(38, 0)}
    assert {name: kinds[name] for name in exact} == exact
    assert [str(first[name]) for name in exact] == ["-7", "-12.5", "12345678901234567890123456789012345678"]
    assert first["small"] == struct.unpack("f", struct.pack("f", 0.1234567))[0], "not the six digits that are shown"
    assert first["wide"] == 0.1 + 0.2
    assert first["day"] == datetime.date(2024, 2, 29)
    assert str(first["local_time"]) == "2024-01-02 10:00:00.123000"
    assert str(first["moment"]) == "2024-01-02 08:00:00.123456+00:00"
    assert (first["made"], first["one"], first["padded"]) == (2024, True, "ab")
    assert (first["lower_case"], second["lower_case"]) == ("Ab", "aB"), "two values, whatever the collation"
    assert {value for name, value in second.items() if name != "lower_case"} == {None}


@pytest.mark.long
def test_enumerated_types_have_levels_and_init_proposes_a_spec(
    asked: Server, engine: DuckDBEngine, tmp_path: Path
) -> None:
    assert levels_of_server(source_of(query="SELECT health AS h, age FROM people"), tmp_path) == {
        "h": ("bad", "fair", "good")
    }
    made = start_dataset(
        engine, DatasetRequest("people", tmp_path, source=source_of(table="people")), tmp_path / "data"
    )
    text = made.file.read_text(encoding="utf-8")
    assert SECRET not in text and PASSWORD not in text
    proposed = yaml.safe_load(text)
    assert proposed["source"] == {"database": "mysql", "connection": {"env": VARIABLE}, "table": "people"}
    assert proposed["columns"]["health"]["levels"] == ["bad", "fair", "good"]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"table": "nobody"}, "the user may not read what is asked for, or it does not exist"),
        ({"table": "hidden"}, "the user may not read what is asked for"),
        ({"table": "a.b.c.d"}, "source.table: names a table"),
        ({"query": "SELECT nobody FROM people"}, "names a column that does not exist"),
        ({"query": "SELECT age, age AS AGE FROM people"}, "stand twice"),
        ({"query": "SELECT EXP(age * 1000) AS age FROM people"}, "the query fails on a value"),
        ({"query": "DELETE FROM people"}, "source.query: is not one SELECT"),
        ({"query": "SELECT b FROM odd"}, "columns.b: holds values of the type bit"),
        ({"query": "SELECT clock FROM odd"}, "columns.clock: holds values of the type time"),
        ({"query": "SELECT several FROM odd"}, "columns.several: holds values of the type set"),
        ({"query": "SELECT papers FROM odd"}, "columns.papers: holds values of the type json"),
        ({"query": "SELECT bytes FROM odd"}, "columns.bytes: holds values of the type binary"),
        ({"query": "SELECT picture FROM odd"}, "columns.picture: holds values of the type binary"),
        ({"query": "SELECT place FROM odd"}, "columns.place: holds values of the type geometry"),
        ({"query": "SELECT flag FROM odd"}, "columns.flag: is declared as BOOLEAN"),
        ({"query": "SELECT broken FROM odd"}, "columns.broken: holds dates of the month or day 00"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(
    asked: Server, engine: DuckDBEngine, tmp_path: Path, said: dict[str, str], sentence: str
) -> None:
    assert sentence in refused(engine, spec_of(tmp_path, **said))


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT 1 AS age INTO OUTFILE '/tmp/x'", "is not one SELECT"),
        ("SELECT 1 AS age /*! INTO OUTFILE '/tmp/x' */", "has a comment in /* */"),
        ("SELECT 1 AS age /*M! INTO OUTFILE '/tmp/x' */", "has a comment in /* */"),
        ("SELECT LOAD_FILE('/etc/passwd') AS age", "calls LOAD_FILE"),
        ("SELECT SLEEP(5) AS age", "calls SLEEP"),
        ("SELECT age INTO @x FROM people", "would write"),
        ("SELECT @x := age FROM people", "would write"),
        ("SELECT age FROM people LOCK IN SHARE MODE", "would write or lock"),
        ("SELECT 1; DROP TABLE people", "is not one SELECT"),
        ("CALL anything()", "is not one SELECT"),
    ],
)
def test_a_query_does_no_more_than_read(query: str, sentence: str) -> None:
    with pytest.raises(InputError, match=r"source\.query") as error:
        one_select("source.query", query, "mysql")
    assert sentence in str(error.value)


def test_a_date_of_zeros_is_missing_where_the_spec_says_so(asked: Server, tmp_path: Path) -> None:
    question = Question(asked.address(), "SELECT broken FROM odd ORDER BY age", ("0000-00-00",))
    with mysql.rows_of_mysql(question) as rows:
        assert [row["broken"] for row in rows.read()] == [None, datetime.date(2024, 2, 1)]


@pytest.mark.parametrize(
    "address",
    [
        lambda server: server.address(password="falsch-4711"),
        lambda server: server.address(database="nobody"),
        lambda server: server.address() + "x",
        lambda server: server.address() + "&ssl_mode=REQUIRED",  # which this server cannot
        lambda server: server.address() + "&ssl_mode=4711",
        lambda server: server.address() + "&ssl_ca=/nowhere/4711",
        lambda server: server.address() + "&geheim4711=1",
        lambda server: "postgresql://reader:geheim4711@localhost/x",
        lambda server: "mysql://reader:geheim/4711@x:y/z",
        lambda server: "geheim4711",
    ],
)
def test_a_server_that_does_not_answer_is_told_without_its_address(
    server: Server, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: Any
) -> None:
    monkeypatch.setenv(VARIABLE, address(server))
    message = refused(engine, spec_of(tmp_path, table="people"))
    assert "4711" not in message
    assert "server" in message or "the user may not read" in message or "source.connection" in message


@pytest.mark.parametrize("mode", ["", "?ssl_mode=DISABLED"])
@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
def test_whoever_answers_in_the_place_of_the_server_gets_no_password(mode: str, plugin: str) -> None:
    """A server chooses how a user logs in, and may ask for the password as it is."""
    heard: list[bytes] = []

    def pretend(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            greeting = (
                b"\x0a8.0.0\0" + struct.pack("<I", 1) + b"12345678\0" + struct.pack("<HBHH", 0xF7FF, 45, 2, 0xC1FF)
            )
            greeting += b"\x15" + b"\0" * 10 + b"123456789012\0" + b"mysql_native_password\0"
            greeting = greeting.replace(struct.pack("<H", 0xF7FF), struct.pack("<H", 0xF7FF & ~2048))  # no TLS
            connection.sendall(struct.pack("<I", len(greeting))[:3] + b"\0" + greeting)
            heard.append(connection.recv(4096))
            switch = b"\xfe" + plugin.encode() + b"\0" + (b"\2Password: " if plugin == "dialog" else b"")
            connection.sendall(struct.pack("<I", len(switch))[:3] + b"\2" + switch)
            heard.append(connection.recv(4096))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=pretend, args=(listening,))
        thread.start()
        address = f"mysql://reader:{ADDRESS_PASSWORD}@127.0.0.1:{listening.getsockname()[1]}/clinic{mode}"
        with pytest.raises(ServerFailure), mysql.rows_of_mysql(Question(address, "SELECT 1")):
            pass
        thread.join()
    assert b"reader" in heard[0], "it was taken for a server"
    assert PASSWORD.encode() not in b"".join(heard)


@pytest.mark.long
def test_tls_is_as_the_address_says(server: Server, tmp_path: Path) -> None:
    own, other = certificate(tmp_path / "own"), certificate(tmp_path / "other")
    query = "SELECT variable_value AS cipher FROM information_schema.session_status WHERE variable_name = 'SSL_CIPHER'"

    def cipher(options: str) -> Any:
        with mysql.answer_of_mysql(Question(server.address() + options, query)) as rows:
            return rows.read()[0]["cipher"]

    assert cipher("") == ""
    server.stop()
    try:
        server.start(own)
        assert cipher(""), "encrypted where the server can"
        assert cipher("&ssl_mode=DISABLED") == ""
        assert cipher("&ssl_mode=REQUIRED")
        for mode in ("VERIFY_CA", "VERIFY_IDENTITY"):
            assert cipher(f"&ssl_mode={mode}&ssl_ca={own / 'certificate.pem'}")
            with pytest.raises(ServerFailure, match="cannot be reached"):
                cipher(f"&ssl_mode={mode}&ssl_ca={other / 'certificate.pem'}")
        with pytest.raises(ServerFailure, match="cannot be reached"):
            cipher(f"&ssl_ca={other / 'certificate.pem'}")
    finally:
        server.stop()
        server.start()


def test_a_query_cannot_write_even_where_its_user_might(
    server: Server, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view hides what it does from whoever reads the query; the transaction does not let it."""
    monkeypatch.setenv(VARIABLE, server.address("owner"))
    assert "would write" in refused(engine, spec_of(tmp_path, table="trap"))
    with mysql.answer_of_mysql(Question(server.address("owner"), "SELECT count(*) AS n FROM written")) as rows:
        assert rows.read() == [{"n": "1"}]


@pytest.mark.long
def test_a_question_tells_the_sensor_of_a_change(asked: Server, tmp_path: Path) -> None:
    source = source_of(table="people", changed="SELECT max(born), count(*) FROM people")
    before = changes_of_server(source, tmp_path)
    assert before == changes_of_server(source, tmp_path)
    asked.execute("INSERT INTO clinic.people (age) VALUES (99)")
    try:
        assert before != changes_of_server(source, tmp_path)
    finally:
        asked.execute("DELETE FROM clinic.people WHERE age = 99")
    assert changes_of_server(source_of(table="people"), tmp_path) is None


def test_rows_stay_on_the_server_and_are_of_one_moment(asked: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "BATCH_ROWS", 50)
    with mysql.rows_of_mysql(Question(asked.address(), "SELECT * FROM people")) as rows:
        read = next(rows.batches).num_rows
        assert read == 50
        asked.execute("INSERT INTO clinic.people (age) VALUES (99)")
        asked.execute("DELETE FROM clinic.people WHERE age = 99")
        assert read + sum(batch.num_rows for batch in rows.batches) == 200


@pytest.mark.long
def test_a_locked_table_is_not_waited_for_for_ever(
    asked: Server, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql, "LOCK_SECONDS", 1)
    connection = asked.connect()
    try:
        connection.cursor().execute("LOCK TABLES clinic.people WRITE")
        assert "somebody else has locked the table" in refused(engine, spec_of(tmp_path, table="people"))
    finally:
        connection.close()
    assert server_rows.LOCK_SECONDS > 1


@pytest.mark.long
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_rows_that_nobody_wants_any_more_are_not_waited_for(asked: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "BATCH_ROWS", 10)
    before = asked.rows_sent()
    wide = "SELECT a.age, REPEAT('x', 1000) AS wide FROM people AS a JOIN people AS b"  # 40,000 rows
    with mysql.rows_of_mysql(Question(asked.address(), wide)) as rows:
        next(rows.batches)
    del rows
    gc.collect()
    assert asked.rows_sent() - before < 20_000


def read_until(question: Question, end: Callable[[], None]) -> None:
    """Read rows, let something end that, and try to go on."""
    with mysql.rows_of_mysql(question) as rows:
        next(rows.batches)
        end()
        for _ in rows.batches:
            pass


@pytest.mark.long
def test_a_connection_that_breaks_in_mid_read_is_told_and_the_next_run_heals(
    asked: Server, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed by its number, and with the server."""
    spec = spec_of(tmp_path, table="people")
    question = Question(
        asked.address(), "SELECT a.*, REPEAT('x', 10000) AS wide FROM people AS a JOIN people AS b USING (age)"
    )
    monkeypatch.setattr(mysql, "BATCH_ROWS", 10)
    for end in (lambda: asked.execute(*asked.kill_readers()), asked.stop):
        with pytest.raises(ServerFailure, match="the server has ended") as error:
            read_until(question, end)
        assert not error.value.lasting
    with pytest.raises(Unavailable, match="cannot be reached"):
        engine.store_source(spec, tmp_path / "stored.parquet")
    asked.start()
    assert engine.store_source(spec, tmp_path / "stored.parquet").rows == 200


def test_what_an_address_does_not_say_is_as_the_server_has_it() -> None:
    named = {"host": "db.clinic", "port": 3306, "user": "me", "password": "a/b", "database": "clinic"}
    found = mysql.settings_of("mysql://me:a%2Fb@db.clinic/clinic")
    assert {name: found[name] for name in named} == named and found["unix_socket"] is None
    assert mysql.settings_of("mysql://me@db.clinic:3307/clinic")["port"] == 3307
    assert mysql.settings_of("mysql://me@db.clinic:3307/clinic")["password"] == ""


@pytest.mark.parametrize("options", ["?ssl_mode=", "?ssl_mode=MAYBE", "?colour=red", "?ssl_mode"])
def test_what_an_address_asks_for_is_not_passed_over(options: str) -> None:
    with pytest.raises(ServerFailure, match=r"source.connection"):
        mysql.settings_of(f"mysql://me:secret@localhost/clinic{options}")
