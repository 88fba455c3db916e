"""The common interface of database servers: a query gives rows in Arrow batches, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

#: Seconds that a query waits for a table that somebody else has locked.
LOCK_SECONDS = 60
#: The message where a server does not answer, whatever the reason: its own message may quote the address.
UNREACHED = "the server cannot be reached, or does not take this user; check source.connection"
#: The message where a server stops before the last row, and gives no code for the reason.
BROKEN = "the query fails on a row, or would write, or the server has ended the connection"


@dataclass(frozen=True)
class Rows:
    """The rows of a query; only a batch is in memory at a time."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def read(self) -> list[dict[str, object]]:
        """All rows, for short answers."""
        return list(pa.Table.from_batches(self.batches, self.schema).to_pylist())


class ServerFailure(Exception):
    """The reason why there are no rows, in a sentence that repeats nothing of the server's message.

    Attributes
    ----------
    lasting : whether the same query will fail again unless somebody changes something
    column : the column that it is about, if it is about one; the sentence then begins with its place in the spec
    """

    def __init__(self, sentence: str, lasting: bool, column: str | None = None) -> None:
        super().__init__(sentence if column is None else f"columns.{column}: {sentence}")
        self.lasting = lasting
        self.column = column


@dataclass(frozen=True)
class Question:
    """A query to a server.

    Attributes
    ----------
    address : the server's address with its secrets
    query : a single SELECT that was checked
    missing : texts that stand for "not known"
    """

    address: str
    query: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Server:
    """A kind of server and the functions that query it.

    Attributes
    ----------
    label, extra, driver : its name, the extra of this package that it needs, and the package that reads it
    dialect : the dialect of its SQL, as sqlglot names it
    rows : the rows of a query in a transaction that cannot write, with columns of plain values
    answer : the same with values of any type, for a query with few rows
    levels : for each column of an enumerated type its values in their order
    """

    label: str
    extra: str
    driver: str
    dialect: str
    rows: Callable[[Question], AbstractContextManager[Rows]]
    answer: Callable[[Question], AbstractContextManager[Rows]]
    levels: Callable[[Question], dict[str, tuple[str, ...]]]


def not_plain(column: str, kind: object) -> ServerFailure:
    """The failure for a column of lists, documents, bytes and the like."""
    return ServerFailure(
        f"holds values of the type {kind}, which is no plain value; cast it or leave it out in source.query",
        lasting=True,
        column=column,
    )
