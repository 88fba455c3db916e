"""What differs between engines that speak SQL: how a query is run, a file is read, a text gets its code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from anon_pipeline.engine.typed import OpenSource, TypedColumn
from anon_pipeline.tables import Domain

#: How many rows a batch of a result has at most.
BATCH_ROWS = 250_000


class Session(Protocol):
    """One connection to an engine, for one of the pipeline's operations."""

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """A small result, as Python values."""

    def arrow(self, query: str) -> pa.Table:
        """A result of the size of cells or classes."""

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        """A result of any size, batch by batch."""

    def schema(self, query: str) -> pa.Schema:
        """The columns that `stream` would give."""

    def storage(self, relation: str) -> dict[str, str]:
        """The columns of a relation and their types, in DuckDB's words."""

    def register(self, name: str, table: pa.Table) -> None:
        """Make a table of our own known under a name."""

    def keep(self, name: str, query: str) -> None:
        """Make a result of any size known under a name, so that it is computed once."""

    def parquet(self, table: Path) -> str:
        """A relation that reads a Parquet file."""

    def write(self, query: str, destination: Path) -> None:
        """Write a result of any size as one Parquet file."""

    def parsed(self, text: str, target: str) -> str:
        """A text as a DOUBLE or a TIMESTAMP, missing where it is none; DuckDB's rules say what is one."""

    def is_nan(self, number: str) -> str:
        """Whether a number is none (NaN); missing where it is missing."""

    def hashed(self, columns: Sequence[str]) -> str:
        """64 bits that hang on the values of columns alone; each engine has its own."""

    def numbered_texts(
        self, source: OpenSource, columns: Sequence[TypedColumn], missing: Sequence[str]
    ) -> Mapping[str, tuple[str, str]]:
        """By column the number of its text and the text of a number, where people are faster grouped by numbers."""

    def coded_text(self, position: int, domain: Domain, value: str) -> tuple[str, str]:
        """The code of a text in its domain, 0 where it is missing, and the join that this needs."""
