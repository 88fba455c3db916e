"""Within a run Dagster shares engines and migrations are read once; afterwards everything is as before."""

import os
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.sql import create_engine, get_alembic_config
from mlflow.store.db.utils import _get_alembic_config
from sqlalchemy import Engine, text
from sqlalchemy import create_engine as create_engine_of_any
from sqlalchemy.pool import NullPool, StaticPool

from anon_pipeline.pipeline import quick_records


@pytest.mark.parametrize("name", quick_records.MAKE_ENGINES)
def test_the_pinned_dagster_makes_its_engines_there(name: str) -> None:
    assert callable(import_module(name).create_engine)


def test_one_engine_per_database_which_keeps_no_connection(tmp_path: Path) -> None:
    one, other = (f"sqlite:///{tmp_path / name}.db" for name in ("one", "other"))
    with quick_records.quick_records(tmp_path):
        engine = sqlite_event_log.create_engine(one, poolclass=NullPool, connect_args={"timeout": 9})
        assert sqlite_event_log.create_engine(one, poolclass=NullPool, connect_args={"timeout": 9}) is engine
        assert sqlite_event_log.create_engine(one, poolclass=NullPool, connect_args={"timeout": 8}) is not engine
        assert str(sqlite_run_storage.create_engine(other, poolclass=NullPool).url) == other
        pooled = sqlite_run_storage.create_engine(one, poolclass=StaticPool)
        assert sqlite_run_storage.create_engine(one, poolclass=StaticPool) is not pooled
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE seen (n INTEGER)"))
    (tmp_path / "one.db").unlink()  # as a home that is removed and made again
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM sqlite_master")).scalar() == 0


def test_a_closed_connection_leaves_the_log_until_the_end(tmp_path: Path) -> None:
    """Without the connection that is kept, each of Dagster's accesses would copy the log and delete it."""
    database, log = tmp_path / "one.db", tmp_path / "one.db-wal"
    with quick_records.quick_records(tmp_path):
        for _ in range(2):
            engine = sqlite_event_log.create_engine(f"sqlite:///{database}", poolclass=NullPool)
            with engine.begin() as connection:
                connection.execute(text("CREATE TABLE IF NOT EXISTS seen (n INTEGER)"))
                connection.execute(text("INSERT INTO seen VALUES (1)"))
            assert log.stat().st_size > 0
    assert not log.exists()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM seen").fetchone() == (2,)


def test_a_database_that_another_process_has_locked_is_not_waited_for(tmp_path: Path) -> None:
    database = tmp_path / "one.db"
    with closing(sqlite3.connect(database)) as other, quick_records.quick_records(tmp_path):
        other.execute("CREATE TABLE seen (n INTEGER)")
        other.execute("BEGIN EXCLUSIVE")
        engine = sqlite_event_log.create_engine(f"sqlite:///{database}", poolclass=NullPool)
        other.rollback()
        with engine.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM seen")).scalar() == 0


@pytest.fixture
def waited_for(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes of the files that are written to the disk for good, in their order."""
    files: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: files.append(os.fstat(file).st_ino))
    return files


def waits(engine: Engine) -> bool:
    """Whether a transaction waits until it is on the disk."""
    with engine.connect() as connection:
        full = 2
        return bool(connection.execute(text("PRAGMA synchronous")).scalar() == full)


def write(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS seen (n INTEGER)"))


def test_a_run_waits_for_the_disk_once_at_its_end(tmp_path: Path, waited_for: list[int]) -> None:
    """Also where another process, such as the UI, keeps the log from being copied into the database."""
    database = tmp_path / "home" / "one.db"
    database.parent.mkdir()
    with closing(sqlite3.connect(database)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        with quick_records.quick_records(database.parent):
            engine = sqlite_event_log.create_engine(f"sqlite:///{database}", poolclass=NullPool)
            assert not waits(engine)
            write(engine)
            assert waited_for == []
            other.execute("SELECT * FROM seen").fetchall()
        assert waited_for == [os.stat(f"{database}-wal").st_ino]
        assert waits(engine)


def test_mlflows_connections_are_not_forgotten(tmp_path: Path, waited_for: list[int]) -> None:
    """Its pool keeps them, so that a second run of a process opens none."""
    database = tmp_path / "one.db"
    with closing(sqlite3.connect(database)) as opened:
        opened.execute("PRAGMA journal_mode=WAL")
    engine = create_engine_of_any(f"sqlite:///{database}", poolclass=StaticPool)
    for runs in (1, 2):
        with quick_records.quick_records(tmp_path):
            assert not waits(engine)
        assert waited_for == [os.stat(f"{database}-wal").st_ino] * runs
    engine.dispose()


def test_other_databases_wait_as_ever(tmp_path: Path, waited_for: list[int]) -> None:
    """A database outside of the home, as of a model of somebody's own, and one that a power failure could damage."""
    for folder, journal in (("others", "wal"), ("home", "delete")):
        (tmp_path / folder).mkdir()
        with closing(sqlite3.connect(tmp_path / folder / "one.db")) as opened:
            opened.execute(f"PRAGMA journal_mode={journal}")
    with quick_records.quick_records(tmp_path / "home"):
        for folder in ("others", "home"):
            engine = create_engine_of_any(f"sqlite:///{tmp_path / folder / 'one.db'}", poolclass=NullPool)
            assert waits(engine)
            write(engine)
    assert waited_for == []


def test_each_tool_keeps_its_own_migrations(tmp_path: Path) -> None:
    configs = get_alembic_config(sqlite_run_storage.__file__), _get_alembic_config("")
    alone = [ScriptDirectory.from_config(config).get_heads() for config in configs]
    with quick_records.quick_records(tmp_path):
        shared = [ScriptDirectory.from_config(config) for config in configs]
        assert [ScriptDirectory.from_config(config) for config in configs] == shared
    assert [scripts.get_heads() for scripts in shared] == alone
    assert alone[0] != alone[1]


def test_afterwards_all_is_as_before(tmp_path: Path) -> None:
    with quick_records.quick_records(tmp_path):
        pass
    assert sqlite_event_log.create_engine is sqlite_run_storage.create_engine is create_engine
    config = _get_alembic_config("")
    assert ScriptDirectory.from_config(config) is not ScriptDirectory.from_config(config)
