"""The rows of a table or a query of a database server as Parquet: one snapshot, read in batches, nothing written.

Messages of a server or of a driver are never repeated, since they may quote a row or the connection.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from anon_pipeline.engine import mysql, postgresql, sql_server
from anon_pipeline.engine.server_queries import address_of, one_select, query_of
from anon_pipeline.engine.server_rows import Question, Server, ServerFailure
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Source

#: The servers by the value of `source.database`.
SERVERS = {"postgresql": postgresql.SERVER, "mysql": mysql.SERVER, "sqlserver": sql_server.SERVER}


def store_server(source: Source, folder: Path, destination: Path, check_names: Callable[[list[str]], None]) -> None:
    """Write the rows of a table or a query as a new Parquet file.

    Parameters
    ----------
    folder : the folder of the spec, to which the path of a file with the connection is relative

    Raises
    ------
    InputError
        Where the server cannot be reached or refuses, and for a column whose values are not plain.
    """
    server = _installed(source)
    question = _question(source, folder, query_of(source, server.dialect))
    with _failures_as_input_errors(source), server.rows(question) as rows:
        check_names(rows.schema.names)
        with pq.ParquetWriter(destination, rows.schema) as writer:
            for batch in rows.batches:
                writer.write_batch(batch)


def levels_of_server(source: Source, folder: Path) -> dict[str, tuple[str, ...]]:
    """The values of every column of an enumerated type, in the order of the type.

    Raises
    ------
    InputError
        Where the server cannot be reached or refuses.
    """
    server = _installed(source)
    question = _question(source, folder, query_of(source, server.dialect))
    with _failures_as_input_errors(source):
        return server.levels(question)


def changes_of_server(source: Source, folder: Path) -> str | None:
    """The current answer to `source.changed`, as text; None where the spec has no such query."""
    if source.changed is None:
        return None
    server = _installed(source)
    question = _question(source, folder, one_select("source.changed", source.changed, server.dialect))
    with _failures_as_input_errors(source), server.answer(question) as rows:
        return str(rows.read())


def _question(source: Source, folder: Path, query: str) -> Question:
    return Question(address_of(source.connection, folder), query, source.missing)


def _installed(source: Source) -> Server:
    """The functions that query the server; its driver must be installed."""
    server = SERVERS[str(source.database)]
    if importlib.util.find_spec(server.driver) is None or importlib.util.find_spec("sqlglot") is None:
        raise InputError(
            f"source.database: is {server.label} database; install `anon-pipeline[{server.extra}]` to read it"
        )
    return server


@contextmanager
def _failures_as_input_errors(source: Source) -> Iterator[None]:
    """Turn a failure of the server into bad input that names the source, or into `Unavailable` if it may pass."""
    try:
        yield
    except ServerFailure as failure:
        kind = InputError if failure.lasting else Unavailable
        raise kind(f"{source.path}: {failure}" if failure.column is None else str(failure)) from None
