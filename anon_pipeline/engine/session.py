"""The differences between SQL engines: how a query is run, a file is read, and a text gets its code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from anon_pipeline.engine.typed import OpenSource, Reader, TypedColumn
from anon_pipeline.tables import Domain

#: Most rows of a batch of a result.
BATCH_ROWS = 250_000


class Session(Reader, Protocol):
    """One connection to an engine, for one of the pipeline's operations."""

    def arrow(self, query: str) -> pa.Table:
        """A result of the size of cells or classes."""

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        """A result of any size, batch by batch."""

    def schema(self, query: str) -> pa.Schema:
        """The columns that `stream` would give."""

    def register(self, name: str, table: pa.Table) -> None:
        """Register a table of our own under a name."""

    def keep(self, name: str, query: str) -> None:
        """Register a result of any size under a name, so that it is computed once."""

    def parquet(self, table: Path) -> str:
        """A relation that reads a Parquet file."""

    def write(self, query: str, destination: Path) -> None:
        """Write a result of any size as one Parquet file."""

    def numbered_texts(
        self, source: OpenSource, columns: Sequence[TypedColumn], missing: Sequence[str]
    ) -> Mapping[str, tuple[str, str]]:
        """For each column the number of its text and the text of a number, if grouping by numbers is faster."""

    def coded_text(self, position: int, domain: Domain, value: str) -> tuple[str, str]:
        """The code of a text in its domain, 0 where it is missing, and the join that the expression needs."""
