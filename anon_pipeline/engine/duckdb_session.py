"""A connection to DuckDB, as the session that queries are written for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from anon_pipeline.engine import few_texts
from anon_pipeline.engine.paths import PLAIN, exactly
from anon_pipeline.engine.session import BATCH_ROWS
from anon_pipeline.engine.sql import literal
from anon_pipeline.engine.typed import OpenSource, TypedColumn
from anon_pipeline.errors import InputError
from anon_pipeline.tables import Domain


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
        """Not by `isnan`, which DuckDB 2.0 answers from the bounds of a Parquet file's numbers; NaN is not in these."""
        return f"(NOT isfinite({number}) AND NOT isinf({number}))"

    def hashed(self, columns: Sequence[str]) -> str:
        return f"hash({', '.join(columns)})"

    def numbered_texts(
        self, source: OpenSource, columns: Sequence[TypedColumn], missing: Sequence[str]
    ) -> Mapping[str, tuple[str, str]]:
        if not source.files:
            return {}
        places = self._files.enter_context(exactly(*source.files))
        return few_texts.numbered_texts(self.connection, source.relation, places, columns, missing)

    def coded_text(self, position: int, domain: Domain, value: str) -> tuple[str, str]:
        """By its place in the list of the domain's texts or, if there are many, by an ENUM with them in their order."""
        texts = domain.values.tolist()
        if not texts:
            return "0", ""
        if len(texts) <= few_texts.MOST_TEXTS:
            self.register("known", pa.table({"texts": pa.array([texts], pa.list_(pa.string()))}))
            self.connection.execute(f"SET VARIABLE known{position} = (SELECT texts FROM known)")
            place = f"CAST(list_position(getvariable('known{position}'), {value}) AS BIGINT)"
            code = f"coalesce({place}, CASE WHEN {value} IS NULL THEN 0 ELSE error('a text beyond its domain') END)"
        else:
            self.register("known", pa.table({"text": pa.array(texts, pa.string())}))
            self.connection.execute(f"CREATE TEMP TYPE code{position} AS ENUM (SELECT text FROM known)")
            code = f"coalesce(CAST(enum_code(CAST({value} AS code{position})) AS BIGINT) + 1, 0)"
        self.connection.unregister("known")
        return code, ""
