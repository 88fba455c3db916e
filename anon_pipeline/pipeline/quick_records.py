"""The records of Dagster and MLflow without what a run would make anew again and again: engines and migrations.

Dagster makes an engine of SQLAlchemy for each of its hundreds of accesses to SQLite, and each compiles its statements
for itself; and to compare a database with its schema, both tools import all migrations from disk, which Dagster does
with four databases. Both were an eighth of a small run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import sqlalchemy as sql
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy.pool import NullPool, Pool

_from_config = ScriptDirectory.from_config
_known: dict[str | None, ScriptDirectory] = {}


@contextmanager
def quick_records() -> Iterator[None]:
    """In the block, all accesses to a SQLite database of Dagster's share an engine, and migrations are read once."""
    engines: list[Any] = [sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage]
    before = [module.create_engine for module in engines]
    for module in engines:
        module.create_engine = _engine
    ScriptDirectory.from_config = migrations  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        ScriptDirectory.from_config = _from_config  # type: ignore[method-assign]
        for module, create_engine in zip(engines, before, strict=True):
            module.create_engine = create_engine


def migrations(config: Config) -> ScriptDirectory:
    """The migrations in the folder that a configuration names."""
    folder = config.get_main_option("script_location")
    if folder not in _known:
        _known[folder] = _from_config(config)
    return _known[folder]


def _engine(address: str, *, poolclass: type[Pool], connect_args: dict[str, Any] | None = None) -> sql.Engine:
    if poolclass is not NullPool:  # which keeps no connection, neither open nor into another process
        return sql.create_engine(address, poolclass=poolclass, connect_args=connect_args or {})
    return _kept(address, tuple((connect_args or {}).items()))


@lru_cache(maxsize=16)
def _kept(address: str, connect_args: tuple[tuple[str, Any], ...]) -> sql.Engine:
    return sql.create_engine(address, poolclass=NullPool, connect_args=dict(connect_args))
