"""Dagster's and MLflow's records in a run: what each access to a database would do anew is done once.

Dagster makes a SQLAlchemy engine for each of its hundreds of accesses to SQLite, and every engine compiles its
statements anew. To compare a database with its schema, both tools import all their migrations from disk; Dagster does
so for each of its databases. Together this was an eighth of a small run.

Dagster also closes its connection after each access. Whoever closes the last connection to a database with a
write-ahead log copies the log into the database, waits for the disk and deletes the log
(https://www.sqlite.org/wal.html, section 2.1). So a run keeps one connection of its own open to each database.

A small run makes some 400 transactions, and SQLite waits for the disk at the end of each. These records are of use
only once the run has ended, and what has to outlive a power failure in the meantime, such as the ledger, does not lie
in them. So the run waits once, at its end: SQLite's `synchronous=NORMAL`, with which a database stays whole.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.pool import NullPool, Pool

from anon_pipeline.home import sync

#: Modules of Dagster that make engines. A version of Dagster that has none of them only loses the time.
MAKE_ENGINES = (
    "dagster._core.storage.event_log.sqlite.sqlite_event_log",
    "dagster._core.storage.runs.sqlite.sqlite_run_storage",
    "dagster._core.storage.schedules.sqlite.sqlite_schedule_storage",
)

_from_config = ScriptDirectory.from_config
_known: dict[str | None, ScriptDirectory] = {}
_held: dict[str, sqlite3.Connection] = {}
#: Databases with connections that do not wait for the disk. MLflow keeps its own to the end of the process.
_waits_later: set[str] = set()


@contextmanager
def quick_records(folder: Path) -> Iterator[None]:
    """In the block all accesses to a SQLite database of Dagster share an engine, and migrations are read once.

    A database with a write-ahead log is copied together with its log, at the latest when the block ends. If it lies in
    the folder, transactions of the block do not wait for the disk; all of them are on it when the block ends.
    """
    modules = list(_modules())
    before = [module.create_engine for module in modules]
    for module in modules:
        module.create_engine = _engine
    ScriptDirectory.from_config = migrations  # type: ignore[method-assign, assignment]
    try:
        with _one_wait_for_the_disk(folder):
            yield
    finally:
        ScriptDirectory.from_config = _from_config  # type: ignore[method-assign]
        for module, create_engine in zip(modules, before, strict=True):
            module.create_engine = create_engine
        while _held:
            _held.popitem()[1].close()


@contextmanager
def _one_wait_for_the_disk(folder: Path) -> Iterator[None]:
    """Let SQLite wait for the disk when the block ends, and not after each transaction with a database of the folder.

    Only databases with a write-ahead log: without one a power failure could damage them.
    """
    inside = Path(os.path.realpath(folder))

    def opened(connection: object, _: object) -> None:
        if not isinstance(connection, sqlite3.Connection):
            return
        file = connection.execute("PRAGMA database_list").fetchone()[2]
        if not file or not Path(os.path.realpath(file)).is_relative_to(inside):
            return
        if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            connection.execute("PRAGMA synchronous=NORMAL")
            _waits_later.add(file)

    sql.event.listen(sql.Engine, "connect", opened)
    try:
        yield
    finally:
        sql.event.remove(sql.Engine, "connect", opened)
        for file in _waits_later:
            # Copied or not, what the log holds is part of the database; it is gone where all of it was copied.
            with suppress(FileNotFoundError):
                sync(Path(f"{file}-wal"))


def _modules() -> Iterator[Any]:
    for name in MAKE_ENGINES:
        with suppress(ImportError):
            module = import_module(name)
            if hasattr(module, "create_engine"):
                yield module


def migrations(config: Config) -> ScriptDirectory:
    """The migrations in the folder that a configuration names."""
    folder = config.get_main_option("script_location")
    if folder not in _known:
        _known[folder] = _from_config(config)
    return _known[folder]


def _engine(address: str, *, poolclass: type[Pool], connect_args: dict[str, Any] | None = None) -> sql.Engine:
    if poolclass is not NullPool:  # only this pool keeps no connection, neither open nor into another process
        return sql.create_engine(address, poolclass=poolclass, connect_args=connect_args or {})
    _hold(address)
    return _kept(address, tuple((connect_args or {}).items()))


@lru_cache(maxsize=16)
def _kept(address: str, connect_args: tuple[tuple[str, Any], ...]) -> sql.Engine:
    return sql.create_engine(address, poolclass=NullPool, connect_args=dict(connect_args))


def _hold(address: str) -> None:
    """Keep a connection open to a database; it never writes, and holds no lock.

    Dagster gives each of its databases a write-ahead log as well, but only after it has made its tables.
    """
    database = sql.make_url(address).database
    if address in _held or not database:
        return
    held = sqlite3.connect(database, timeout=0, check_same_thread=False)
    try:
        held.execute("PRAGMA journal_mode=WAL")
        held.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the log as well
    except sqlite3.OperationalError:  # locked by another process
        held.close()
    else:
        _held[address] = held
