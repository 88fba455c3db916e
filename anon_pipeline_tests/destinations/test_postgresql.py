"""A schema of a real PostgreSQL server: tables swapped in at once, for the named readers only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.destinations import delivery, record
from anon_pipeline.destinations import postgresql as module
from anon_pipeline.errors import InputError, NotDelivered, Unavailable
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release.publication import publish_folder
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination
from anon_pipeline_tests.destinations.releases import DATASET, ODD, Killed, deliver, failure, killed_at, publish, table
from anon_pipeline_tests.postgresql import PASSWORD, Server, running_server

VARIABLE = "OPEN_DATA_DSN"
SCHEMA = 'open"; DATA ö'
QUOTED = '"open""; DATA ö"'
WRITER = "geheim-0815"


def place(**stated: Any) -> Destination:
    said = {"database": "postgresql", "connection": {"env": VARIABLE}, "schema": SCHEMA, "readers": ["reader"]}
    return Destination.model_validate({**said, **stated})


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with running_server() as server:
        server.execute(
            f'CREATE ROLE writer LOGIN PASSWORD \'{WRITER}\'; CREATE ROLE curious; CREATE ROLE "x""; ö"; '
            "GRANT CREATE ON DATABASE postgres TO writer; "
            "ALTER DEFAULT PRIVILEGES FOR ROLE writer GRANT ALL ON TABLES TO curious, PUBLIC"
        )
        yield server


@pytest.fixture
def server(running: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    running.execute(f"DROP SCHEMA IF EXISTS {QUOTED} CASCADE")
    monkeypatch.setenv(VARIABLE, running.address("writer", WRITER))
    return running


def version_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The version that the reader finds, who sees all tables in one of their states; None where there are none."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(server.address("reader", PASSWORD)) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        try:
            cursor.execute(f"SELECT version FROM {QUOTED}.people_releases WHERE current")
        except dbapi.Error:
            return None
        ((version,),) = cursor.fetchall()
        cursor.execute(f"SELECT * FROM {QUOTED}.people")
        rows = cursor.fetch_arrow_table()
        cursor.execute(f"SELECT * FROM {QUOTED}.people_classes")
        assert version in str(cursor.fetchall())
    expected = table(version)
    assert rows.column_names == expected.column_names
    assert rows.to_pylist() == expected.to_pylist()
    return str(version)


@pytest.mark.long
def test_readers_find_the_tables_with_comments_and_nobody_else_does(
    home: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(home, publish(home, "v1"), place(readers=["reader", 'x"; ö']))
    assert version_read(server, monkeypatch) == "v1"
    assert delivery.verify(home) == []
    told = server.ask(
        f"SELECT obj_description('{QUOTED}.people'::regclass), col_description('{QUOTED}.people'::regclass, 2)",
        "postgres",
    )
    assert told.strip() == f"People's 'table' (release v1)|quasi-identifier: it's {ODD}"
    grants = server.ask(
        "SELECT DISTINCT grantee || ' ' || privilege_type FROM information_schema.role_table_grants "
        f"WHERE table_schema = '{SCHEMA}' AND grantee <> 'writer'",
        "postgres",
    )
    assert set(grants.splitlines()) == {"reader SELECT", 'x"; ö SELECT'}
    deliver(home, publish(home, "v2"), place(readers=["reader"]))  # who is a reader no more is let out
    assert version_read(server, monkeypatch) == "v2"
    assert (
        "x"
        not in server.ask("SELECT relacl::text FROM pg_class WHERE relname = 'people_releases'", "postgres").split("=")[
            0
        ]
    )
    assert delivery.verify(home) == []
    assert [copy.state for copy in record.read(home, DATASET, "v1")] == [record.REPLACED]
    left = "".join(file.read_text() for file in (home.private / "destinations").rglob("*.json"))
    assert WRITER not in left


class KilledCursor:
    """A cursor whose process is killed before the `moment`-th statement that follows."""

    moment = 0

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __getattr__(self, name: str) -> Any:
        if name in ("execute", "adbc_ingest"):
            if KilledCursor.moment == 0:
                raise Killed
            KilledCursor.moment -= 1
        return getattr(self._cursor, name)


def killed(home: Home, version: str, moment: int, what: str = "put") -> bool:
    """Deliver a release, or take it back, killed before a statement; whether it was."""
    genuine = getattr(module.DatabaseSchema, what)

    def acting(self: module.DatabaseSchema, release: Any) -> Any:
        begun = self._transaction

        def transaction() -> Any:
            from contextlib import contextmanager

            @contextmanager
            def counted() -> Iterator[Any]:
                with begun() as cursor:
                    yield KilledCursor(cursor)

            return counted()

        self._transaction = transaction  # type: ignore[method-assign]
        return genuine(self, release)

    KilledCursor.moment = moment
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module.DatabaseSchema, what, acting)
        try:
            deliver(home, version, place())
        except Killed:
            return True
    return False


@pytest.mark.long
def test_killed_before_any_statement_a_reader_sees_one_release_whole_and_the_next_run_heals(
    home: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(home, publish(home, "v1"), place())
    publish(home, "v2")
    moment = 0
    while killed(home, "v2", moment):
        assert version_read(server, monkeypatch) == "v1"
        moment += 1
    assert moment > 20
    assert version_read(server, monkeypatch) == "v2"

    publish(home, "v3")
    with killed_at(module, "_commit", 1), pytest.raises(Killed):  # the first looks whether it is there already
        deliver(home, "v3", place())
    assert version_read(server, monkeypatch) == "v2"
    assert len(delivery.verify(home)) == 3, delivery.verify(home)
    deliver(home, "v3", place())
    assert version_read(server, monkeypatch) == "v3"
    assert delivery.verify(home) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (f"UPDATE {QUOTED}.people SET age = 21 WHERE age = 20", "the table people holds other rows"),
        (f"DROP TABLE {QUOTED}.people_classes", "the table people_classes is gone"),
        (f"GRANT SELECT ON {QUOTED}.people TO curious", "other roles than the readers of the spec may use the tables"),
        (f"GRANT INSERT ON {QUOTED}.people TO reader", "other roles than the readers of the spec may use the tables"),
    ],
)
def test_what_differs_there_is_told(home: Home, server: Server, change: str, sentence: str) -> None:
    deliver(home, publish(home, "v1"), place())
    server.execute(change)
    assert delivery.verify(home) == [f"people/v1 at {place().label}: {sentence}"]
    delivery.deliver(home, DATASET, "v1", compare=True)
    assert delivery.verify(home) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["people", "people_classes"])
def test_a_table_that_is_gone_is_there_again_after_the_next_delivery(home: Home, server: Server, name: str) -> None:
    nobody = place(readers=[])  # with readers, it would be missed for their rights alone
    deliver(home, publish(home, "v1"), nobody)
    server.execute(f"DROP TABLE {QUOTED}.{name}")
    deliver(home, "v1", nobody)
    assert delivery.verify(home) == []


@pytest.mark.long
def test_a_withdrawn_release_is_gone_and_the_one_before_is_current_again(
    home: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), place())
    withdraw(home, "v2", "too much")
    assert len(delivery.verify(home)) == 1
    delivery.deliver(home, DATASET, "v2")
    assert version_read(server, monkeypatch) == "v1"
    assert "v2" not in server.dump("postgres")
    assert delivery.verify(home) == []
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert version_read(server, monkeypatch) is None
    assert "people" not in server.dump("postgres")


@pytest.mark.long
def test_the_servers_own_files_hold_no_manifest_of_a_withdrawn_release(home: Home, server: Server) -> None:
    """A deleted line stays in its table's file until the server cleans up, which it never does for a few lines."""
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), place())
    manifest = sha256_of(home.releases / DATASET / "v1" / "manifest.json").encode()  # stands beside the manifest
    assert files_with(server, manifest), "the test sees what is there"
    lines = f"SELECT * FROM {QUOTED}.people_releases WHERE version = 'v2'"
    before = server.ask(lines, "postgres")
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert files_with(server, manifest) == []
    assert server.ask(lines, "postgres") == before
    assert delivery.verify(home) == []


def files_with(server: Server, text: bytes) -> list[str]:
    """The files of tables that hold a text, deleted rows included."""
    server.execute("CHECKPOINT")
    files = (server.folder / "data/base").rglob("*")
    return [str(file) for file in files if file.is_file() and text in file.read_bytes()]


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_what_another_home_has_put_there_since_is_not_taken_back(home: Home, tmp_path: Path) -> None:
    """Two homes make the same version of the same table; the withdrawal of one took the tables of the other along."""
    deliver(home, publish(home, "v1"), place())
    other = Home(tmp_path / "other").prepare()
    deliver(other, publish(other, "v1", table("other")), place())
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert delivery.verify(other) == delivery.verify(home) == []
    withdraw(other, "v1", "too much")
    delivery.deliver(other, DATASET, "v1")
    assert delivery.verify(other) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "left"),
    [
        (f"ALTER TABLE {QUOTED}.people RENAME TO people_old", ["people_old"]),
        (f"ALTER TABLE {QUOTED}.people_releases RENAME TO old", ["people", "people_classes"]),
        (f"DELETE FROM {QUOTED}.people_releases", ["people", "people_classes"]),
        (f"UPDATE {QUOTED}.people_releases SET current = false", ["people", "people_classes"]),
    ],
    ids=["renamed", "releases renamed", "line deleted", "line changed"],
)
def test_a_withdrawal_is_not_done_while_a_table_of_the_release_is_there(
    home: Home, server: Server, change: str, left: list[str]
) -> None:
    """Others had renamed a table, or changed the table of releases: the withdrawal was told as done."""
    deliver(home, publish(home, "v1"), place())
    server.execute(change)
    withdraw(home, "v1", "too much")
    with pytest.raises(NotDelivered) as told:
        delivery.deliver(home, DATASET, "v1")
    assert f"it holds this release: {', '.join(f'{SCHEMA}.{name}' for name in left)}; drop it" in str(told.value)
    assert len(delivery.verify(home)) == 1
    if left == ["people_old"]:
        assert "people_classes" not in server.dump("postgres"), "what keeps its name goes all the same"
    for name in left:
        server.execute(f"DROP TABLE {QUOTED}.{name}")
    delivery.deliver(home, DATASET, "v1")
    assert delivery.verify(home) == []
    deliver(home, publish(home, "v2"), place())
    assert delivery.verify(home) == []


@pytest.mark.long
def test_a_release_whose_folder_somebody_has_removed_is_taken_back(home: Home, server: Server) -> None:
    """Its description stood in the manifest, without which the withdrawal ended before the server was asked."""
    deliver(home, publish(home, "v1"), place())
    server.execute(f"CREATE SCHEMA theirs AUTHORIZATION writer; ALTER TABLE {QUOTED}.people_classes SET SCHEMA theirs")
    shutil.rmtree(home.releases / DATASET / "v1")
    withdraw(home, "v1", "too much")
    with pytest.raises(NotDelivered, match=r"still says that it holds this release: theirs\.people_classes; drop it"):
        delivery.deliver(home, DATASET, "v1")
    server.execute("DROP SCHEMA theirs CASCADE")
    delivery.deliver(home, DATASET, "v1")
    assert delivery.verify(home) == []
    assert server.ask(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{SCHEMA}'", "postgres").strip() == "0"


@pytest.mark.long
def test_a_table_that_was_moved_before_it_was_replaced_is_told_too(home: Home, server: Server) -> None:
    server.execute("DROP SCHEMA IF EXISTS theirs CASCADE; CREATE SCHEMA theirs")
    deliver(home, publish(home, "v1"), place())
    server.execute(f"ALTER TABLE {QUOTED}.people SET SCHEMA theirs")
    deliver(home, publish(home, "v2"), place())
    withdraw(home, "v1", "too much")
    with pytest.raises(NotDelivered, match=r"it holds this release: theirs\.people; drop it"):
        delivery.deliver(home, DATASET, "v1")
    server.execute("DROP SCHEMA theirs CASCADE")
    delivery.deliver(home, DATASET, "v1")
    assert delivery.verify(home) == []


@pytest.mark.long
def test_a_release_in_two_schemas_of_a_server_is_withdrawn_from_each(home: Home, server: Server) -> None:
    """The tables of the second are none that others have moved out of the first."""
    server.execute("DROP SCHEMA IF EXISTS second CASCADE")
    publish(home, "v1")
    delivery.deliver(home, DATASET, "v1", [place(), place(schema="second")])
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert [copy.state for copy in record.read(home, DATASET, "v1")] == [record.TAKEN_BACK] * 2
    assert delivery.verify(home) == []
    assert "v1" not in server.dump("postgres")


@pytest.mark.long
def test_a_table_that_is_no_release_is_never_dropped(home: Home, server: Server) -> None:
    server.execute(
        f"CREATE SCHEMA {QUOTED} AUTHORIZATION writer; CREATE TABLE {QUOTED}.people_classes (x int); "
        f"ALTER TABLE {QUOTED}.people_classes OWNER TO writer"
    )
    publish(home, "v1")
    assert "has a people_classes that is no release of this dataset" in failure(home, "v1", place())
    assert server.ask(f"SELECT count(*) FROM {QUOTED}.people_classes", "postgres").strip() == "0"


@pytest.mark.long
def test_failures_are_told_without_a_secret(
    home: Home, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    publish(home, "v1")
    assert "no role of a name under readers" in failure(home, "v1", place(readers=["nobody at all"]))
    for address in (server.address("writer", "wrong"), server.address("writer", WRITER, "none")):
        monkeypatch.setenv(VARIABLE, address)
        told = failure(home, "v1", place())
        assert "the server cannot be reached" in told
        assert WRITER not in told and "wrong" not in told
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(InputError, match=f"publish.connection: the environment variable {VARIABLE} is not set"):
        delivery.require_ready([place()], tmp_path)


@pytest.mark.long
def test_a_view_of_a_reader_is_no_reason_for_half_a_release(
    home: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(home, publish(home, "v1"), place())
    server.execute(f"CREATE VIEW {QUOTED}.mine AS SELECT * FROM {QUOTED}.people")
    publish(home, "v2")
    assert "depends on the former tables" in failure(home, "v2", place())
    assert version_read(server, monkeypatch) == "v1"
    server.execute(f"DROP VIEW {QUOTED}.mine; CREATE VIEW {QUOTED}.mine AS SELECT * FROM {QUOTED}.people_releases")
    for version in ("v2", "v1"):
        withdraw(home, version, "too much")
        delivery.deliver(home, DATASET, version)
    assert "people_classes" not in server.dump("postgres"), "a view of the list of releases keeps none there"


@pytest.mark.long
def test_a_foreign_key_of_others_keeps_no_release_there(
    home: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No release could be withdrawn, and none put again, where a table refers to the list of releases."""
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), place())
    server.execute(f"CREATE TABLE {QUOTED}.notes (version text REFERENCES {QUOTED}.people_releases)")
    server.execute(f"INSERT INTO {QUOTED}.notes VALUES ('v1')")
    manifest = sha256_of(home.releases / DATASET / "v2" / "manifest.json").encode()
    withdraw(home, "v2", "too much")
    delivery.deliver(home, DATASET, "v2")
    assert version_read(server, monkeypatch) == "v1"
    assert files_with(server, manifest) == []
    assert delivery.verify(home) == []
    server.execute(f"DROP TABLE {QUOTED}.people")
    deliver(home, "v1", place())
    assert version_read(server, monkeypatch) == "v1"

    withdraw(home, "v1", "too much")
    with pytest.raises(NotDelivered, match="refers to the line of this release in its table of releases"):
        delivery.deliver(home, DATASET, "v1")
    assert version_read(server, monkeypatch) == "v1", "nothing is half taken back"
    server.execute(f"DELETE FROM {QUOTED}.notes")
    delivery.deliver(home, DATASET, "v1")
    dumped = server.dump("postgres")
    assert "people_classes" not in dumped and "v1" not in dumped, "an empty list of releases stays"
    assert delivery.verify(home) == []
    deliver(home, publish(home, "v3"), place())
    assert version_read(server, monkeypatch) == "v3"


@pytest.mark.long
def test_a_withdrawal_that_is_killed_before_any_statement_is_whole_or_nothing(
    home: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), place())
    withdraw(home, "v2", "too much")
    moment = 0
    while killed(home, "v2", moment, "take_back"):
        told = server.ask(f"SELECT version, current FROM {QUOTED}.people_releases ORDER BY 1", "postgres")
        assert told.split() == ["v1|t", "v2|f"], "the release before is put there first"
        moment += 1
    assert moment > 5
    assert "v2" not in server.dump("postgres")
    assert version_read(server, monkeypatch) == "v1"
    assert delivery.verify(home) == []


@pytest.mark.long
def test_a_server_that_goes_down_or_takes_no_changes_is_told_and_no_half_release_is_seen(
    home: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(home, publish(home, "v1"), place())
    publish(home, "v2")
    genuine = module.DatabaseSchema._describe

    def describe(self: module.DatabaseSchema, cursor: Any, release: Any, name: str, file: Path) -> None:
        if name.startswith("people_classes"):
            server.stop()
        genuine(self, cursor, release, name, file)

    with monkeypatch.context() as patched:
        patched.setattr(module.DatabaseSchema, "_describe", describe)
        told = failure(home, "v2", place())
    server.start()
    assert "the connection broke, or the server went down" in told
    assert version_read(server, monkeypatch) == "v1"
    server.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
    try:
        assert "the server takes no changes (a standby" in failure(home, "v2", place())
    finally:
        server.execute("SET default_transaction_read_only = off; ALTER DATABASE postgres RESET ALL")
    deliver(home, "v2", place())
    assert version_read(server, monkeypatch) == "v2"
    assert delivery.verify(home) == []


@pytest.mark.long
def test_a_name_that_would_be_cut_off_is_refused(home: Home, server: Server) -> None:
    publish(home, "v1", pa.table({"ö" * 32: [1]}))
    assert "more than 63 bytes" in failure(home, "v1", place())
    deliver(home, publish(home, "v2", pa.table({"ö" * 31 + "o": [1]})), place())
    assert delivery.verify(home) == []


def test_a_description_with_a_zero_character_is_stored_without_it(home: Home, server: Server) -> None:
    """PostgreSQL has no text with one, and would take no comment."""

    def write(folder: Path) -> dict[str, Any]:
        pq.write_table(pa.table({"age": [1, 2]}), folder / "data.parquet")
        columns = {"age": {"role": "quasi_identifier", "why": "a\0\1ge"}}
        return {"dataset": DATASET, "version": "v1", "description": "Peo\0\1ple", "spec": {"columns": columns}}

    publish_folder(home, DATASET, "v1", write)
    deliver(home, "v1", place())
    told = server.ask(
        f"SELECT obj_description('{QUOTED}.people'::regclass), col_description('{QUOTED}.people'::regclass, 1)",
        "postgres",
    )
    assert told.strip() == "Peo\1ple (release v1)|quasi-identifier: a\1ge"


@pytest.mark.parametrize(("state", "lasts"), [("22021", True), ("57P01", False), ("53100", False), (None, False)])
@pytest.mark.usefixtures("server")
def test_what_may_pass_is_told_from_what_will_not(state: str | None, lasts: bool) -> None:
    from adbc_driver_manager import Error
    from adbc_driver_manager._lib import AdbcStatusCode

    with pytest.raises(InputError) as told, module.DatabaseSchema(place())._transaction():
        raise Error("Ottilie", status_code=AdbcStatusCode.INTERNAL, sqlstate=state)
    assert isinstance(told.value, Unavailable) is not lasts
    assert "Ottilie" not in str(told.value)


@pytest.mark.long
@pytest.mark.usefixtures("server")
def test_rows_that_stop_coming_are_a_matter_of_the_server_and_a_full_disk_is_not() -> None:
    with pytest.raises(Unavailable, match="the connection broke"), module.DatabaseSchema(place())._transaction():
        raise OSError("Ottilie")
    with pytest.raises(OSError, match="no space"), module.DatabaseSchema(place())._transaction():
        raise OSError(28, "no space")
