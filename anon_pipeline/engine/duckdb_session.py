"""One connection to DuckDB, in the terms that queries are written in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from anon_pipeline.engine.paths import PLAIN, exactly
from anon_pipeline.engine.sql import literal
from anon_pipeline.errors import InputError
from anon_pipeline.tables import Domain

BATCH_ROWS = 250_000


class DuckDBSession:
    """See `anon_pipeline.engine.session.Session`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, files: ExitStack) -> None:
        self.connection = connection
        self._files = files  # what is open for as long as the session lasts

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()

    def arrow(self, query: str) -> pa.Table:
        return self.connection.sql(query).to_arrow_table()

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        yield from self.connection.sql(query).to_arrow_reader(BATCH_ROWS)

    def schema(self, query: str) -> pa.Schema:
        return self.connection.sql(f"SELECT * FROM ({query}) AS nothing LIMIT 0").to_arrow_table().schema

    def storage(self, relation: str) -> dict[str, str]:
        return {row[0]: row[1] for row in self.rows(f"DESCRIBE SELECT * FROM {relation}")}

    def register(self, name: str, table: pa.Table) -> None:
        self.connection.register(name, table)

    def keep(self, name: str, query: str) -> None:
        self.connection.execute(f"CREATE TEMP TABLE {name} AS {query}")

    def parquet(self, table: Path) -> str:
        try:
            (place,) = self._files.enter_context(exactly(table))
        except OSError as error:
            raise InputError(f"{table.name}: cannot be read ({error.strerror})") from None
        return f"read_parquet({place}, {PLAIN})"

    def write(self, query: str, destination: Path) -> None:
        self.connection.execute(f"COPY ({query}) TO {literal(str(destination))} (FORMAT parquet, COMPRESSION snappy)")

    def parsed(self, text: str, target: str) -> str:
        return f"TRY_CAST({text} AS {target})"

    def is_nan(self, number: str) -> str:
        """Not by `isnan`: DuckDB 2.0 answers that from the bounds of a Parquet file's numbers, which NaN is not in."""
        return f"(NOT isfinite({number}) AND NOT isinf({number}))"

    def hashed(self, columns: Sequence[str]) -> str:
        return f"hash({', '.join(columns)})"

    def coded_text(self, position: int, domain: Domain, value: str) -> tuple[str, str]:
        """By the ENUM that holds the domain's texts in their order: no join, and the fastest way there is."""
        if not len(domain.values):
            return "0", ""
        self.register("known", pa.table({"value": pa.array(domain.values.tolist(), pa.string())}))
        self.connection.execute(f"CREATE TEMP TYPE code{position} AS ENUM (SELECT value FROM known)")
        self.connection.unregister("known")
        return f"coalesce(CAST(enum_code(CAST({value} AS code{position})) AS BIGINT) + 1, 0)", ""
