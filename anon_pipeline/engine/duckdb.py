"""The default engine: DuckDB, out of core, on Parquet files in the private zone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa

from anon_pipeline.engine import sources
from anon_pipeline.engine.base import ColumnSurvey
from anon_pipeline.engine.relational import Session, SqlEngine
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.typed import OpenSource
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import Domain

BATCH_ROWS = 250_000

#: Shapes of values that name a person directly.
PATTERNS = {
    "e-mail address": r"[^@\s]+@[^@\s]+\.[^@\s]+",
    "phone number": r"\+?[0-9][0-9 ()/-]{7,18}[0-9]",
    "IBAN": r"[A-Z]{2}[0-9]{2}[A-Z0-9 ]{11,32}",
    "UUID": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
}


class DuckDBSession:
    """See `anon_pipeline.engine.relational.Session`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

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
        return f"read_parquet({literal(str(table))})"

    def write(self, query: str, destination: Path) -> None:
        self.connection.execute(f"COPY ({query}) TO {literal(str(destination))} (FORMAT parquet, COMPRESSION snappy)")

    def parsed(self, text: str, target: str) -> str:
        return f"TRY_CAST({text} AS {target})"

    def coded_text(self, position: int, domain: Domain, value: str) -> tuple[str, str]:
        """By the ENUM that holds the domain's texts in their order: no join, and the fastest way there is."""
        if not len(domain.values):
            return "0", ""
        self.register("known", pa.table({"value": pa.array(domain.values.tolist(), pa.string())}))
        self.connection.execute(f"CREATE TYPE code{position} AS ENUM (SELECT value FROM known)")
        self.connection.unregister("known")
        return f"coalesce(CAST(enum_code(CAST({value} AS code{position})) AS BIGINT) + 1, 0)", ""


class DuckDBEngine(SqlEngine):
    """See `anon_pipeline.engine.base.Engine` for what each method promises.

    Parameters
    ----------
    spill : folder for what does not fit into memory; in the private zone, since it holds people
    memory_limit : for example "4GB"; DuckDB's own default (80 % of the machine) where absent
    threads : all cores where absent
    """

    name = "duckdb"

    def __init__(self, spill: Path, memory_limit: str | None = None, threads: int | None = None) -> None:
        self._scratch, self._memory_limit, self._threads = spill, memory_limit, threads

    @contextmanager
    def _session(self) -> Iterator[DuckDBSession]:
        """A fresh in-memory database; DuckDB's own messages, which may quote a row, never leave it."""
        connection = duckdb.connect()
        try:
            for setting in (
                "autoinstall_known_extensions=false",  # nothing is fetched
                "autoload_known_extensions=false",
                "enable_progress_bar=false",
                "preserve_insertion_order=false",  # no result depends on the order of rows, and memory does
                "TimeZone='UTC'",
                f"temp_directory={literal(str(self._scratch))}",
                *([f"memory_limit={literal(self._memory_limit)}"] if self._memory_limit else []),
                *([f"threads={self._threads}"] if self._threads else []),
            ):
                connection.execute(f"SET {setting}")
            yield DuckDBSession(connection)
        except duckdb.OutOfMemoryException:
            raise InputError(
                "DuckDB ran out of memory; raise the memory limit or free disk space to spill to"
            ) from None
        except duckdb.IOException as error:
            raise InputError(f"a file could not be read or written: {sources.harmless(error)}") from None
        except duckdb.Error as error:
            raise InputError(f"the table could not be processed: {sources.harmless(error)}") from None
        finally:
            connection.close()

    def _opened(self, session: Session, spec: ReleaseSpec, scratch: Path) -> AbstractContextManager[OpenSource]:
        return sources.opened(cast(DuckDBSession, session).connection, spec, scratch)

    # ------------------------------------------------------------------ tables of others

    def import_table(self, path: Path, scratch: Path, measured: Sequence[str] = ()) -> Path:
        with self._session() as session:
            return sources.import_table(session.connection, session, path, scratch, measured)

    def survey(self, table: Path) -> list[ColumnSurvey]:
        with self._session() as session:
            relation = session.parquet(table)
            surveyed = []
            for name, storage in session.storage(relation).items():
                value = quoted(name)
                number = "TRY_CAST(value::VARCHAR AS DOUBLE)"
                rows, known, distinct, numbers, codes, dates, alone = _one(
                    session,
                    f"SELECT (SELECT count(*) FROM {relation}), coalesce(sum(people), 0)::BIGINT, count(*), "
                    f"coalesce(sum(people) FILTER (WHERE {number} IS NOT NULL), 0)::BIGINT, "
                    f"coalesce(sum(people) FILTER (WHERE regexp_matches(trim(value::VARCHAR), '^[+-]?0[0-9]')), 0)"
                    f"::BIGINT, coalesce(sum(people) FILTER (WHERE TRY_CAST(value::VARCHAR AS TIMESTAMP) IS NOT NULL)"
                    f", 0)::BIGINT, count(*) FILTER (WHERE people = 1) FROM "
                    f"(SELECT {value} AS value, count(*) AS people FROM {relation} WHERE {value} IS NOT NULL "
                    "GROUP BY 1)",
                )
                patterns = {}
                for pattern, regex in PATTERNS.items():
                    fits = f"regexp_full_match({value}::VARCHAR, {literal(regex)})"
                    patterns[pattern] = int(_one(session, f"SELECT count(*) FROM {relation} WHERE {fits}")[0])
                surveyed.append(
                    ColumnSurvey(name, storage, rows, known, distinct, numbers, codes, dates, alone, patterns)
                )
            return surveyed

    def determined(self, table: Path, columns: Sequence[str]) -> list[tuple[str, str]]:
        with self._session() as session:
            relation = session.parquet(table)
            pairs = [(one, other) for one in columns for other in columns if one != other]
            found = []
            for one, other in pairs:
                several = _one(
                    session,
                    f"SELECT count(*) FROM (SELECT {quoted(one)} FROM {relation} GROUP BY {quoted(one)} "
                    f"HAVING count(DISTINCT {quoted(other)}::VARCHAR) > 1)",
                )[0]
                if several == 0:
                    found.append((one, other))
            return found


def _one(session: Session, query: str) -> tuple[Any, ...]:
    return session.rows(query)[0]
