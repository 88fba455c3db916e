"""What every server of a database gives for a query: rows in Arrow batches, or a reason why there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

#: How long a query waits for a table that somebody else has locked, in seconds.
LOCK_SECONDS = 60
#: Said where a server does not answer, whatever the reason: its own message may quote the address.
UNREACHED = "the server cannot be reached, or does not take this user; check source.connection"
#: Said where a server ends the rows before the last one, and has no code for the reason.
BROKEN = "the query fails on a row, or would write, or the server has ended the connection"


@dataclass(frozen=True)
class Rows:
    """The rows of a query, of which only a batch is held at a time."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def read(self) -> list[dict[str, object]]:
        """All of the rows, for answers that are short."""
        return list(pa.Table.from_batches(self.batches, self.schema).to_pylist())


class ServerFailure(Exception):
    """No rows, and why: a sentence that repeats nothing of the server's message.

    Attributes
    ----------
    lasting : whether the same question fails again for as long as nobody changes it
    """

    def __init__(self, sentence: str, lasting: bool) -> None:
        super().__init__(sentence)
        self.lasting = lasting


@dataclass(frozen=True)
class Question:
    """What a server is asked.

    Attributes
    ----------
    address : with its secrets
    query : one SELECT that was looked through
    missing : texts that stand for "not known"
    """

    address: str
    query: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Server:
    """How a kind of server is asked.

    Attributes
    ----------
    label, extra, driver : what it is called, the extra of this package that it needs, and the package that reads it
    dialect : of its SQL, as sqlglot calls it
    rows : the rows of a query in a transaction that cannot write, with columns of plain values
    answer : the same with whatever values, for a question of a few rows
    levels : per column of an enumerated type its values in their order
    """

    label: str
    extra: str
    driver: str
    dialect: str
    rows: Callable[[Question], AbstractContextManager[Rows]]
    answer: Callable[[Question], AbstractContextManager[Rows]]
    levels: Callable[[Question], dict[str, tuple[str, ...]]]


def not_plain(column: str, kind: object) -> ServerFailure:
    """For a column of lists, documents, bytes and the like."""
    return ServerFailure(
        f"columns.{column}: holds values of the type {kind}, which is no plain value; cast it or leave it out in "
        "source.query",
        lasting=True,
    )
