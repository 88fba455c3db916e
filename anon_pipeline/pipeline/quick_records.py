"""Dagster's and MLflow's records in a run: database engines and migrations are made once, not for each access.

Dagster makes a SQLAlchemy engine for each of its hundreds of accesses to SQLite, and every engine compiles its
statements anew. To compare a database with its schema, both tools import all their migrations from disk; Dagster does
so for each of its databases. Together this was an eighth of a small run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from typing import Any

import sqlalchemy as sql
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.pool import NullPool, Pool

#: Modules of Dagster that make engines. A version of Dagster that has none of them only loses the time.
MAKE_ENGINES = (
    "dagster._core.storage.event_log.sqlite.sqlite_event_log",
    "dagster._core.storage.runs.sqlite.sqlite_run_storage",
    "dagster._core.storage.schedules.sqlite.sqlite_schedule_storage",
)

_from_config = ScriptDirectory.from_config
_known: dict[str | None, ScriptDirectory] = {}


@contextmanager
def quick_records() -> Iterator[None]:
    """In the block all accesses to a SQLite database of Dagster share an engine, and migrations are read once."""
    modules = list(_modules())
    before = [module.create_engine for module in modules]
    for module in modules:
        module.create_engine = _engine
    ScriptDirectory.from_config = migrations  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        ScriptDirectory.from_config = _from_config  # type: ignore[method-assign]
        for module, create_engine in zip(modules, before, strict=True):
            module.create_engine = create_engine


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
    return _kept(address, tuple((connect_args or {}).items()))


@lru_cache(maxsize=16)
def _kept(address: str, connect_args: tuple[tuple[str, Any], ...]) -> sql.Engine:
    return sql.create_engine(address, poolclass=NullPool, connect_args=dict(connect_args))
