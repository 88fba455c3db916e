"""What is asked of a stored or written table in SQL: its columns, its equivalence classes and groups, its hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.engine import typed
from anon_pipeline.engine.base import ClassCounts
from anon_pipeline.engine.content import ContentHash
from anon_pipeline.engine.counting import CountingEngine
from anon_pipeline.engine.expressions import CLASS, PEOPLE, people_counted
from anon_pipeline.engine.groups import GroupColumns, counted_groups, side_by_side, written_groups
from anon_pipeline.engine.session import Session
from anon_pipeline.engine.sql import quoted
from anon_pipeline.engine.stored_rows import is_as_stored, stored_rows
from anon_pipeline.spec import ColumnType


class StoredTables(CountingEngine):
    """The methods of `anon_pipeline.engine.base.Engine` that need nothing but a Parquet file.

    The file holds everybody, or has the column `#people` with the number of people of each row.
    """

    def columns(self, table: Path) -> dict[str, str]:
        with self._session() as session:
            return {name: kind for name, kind in session.storage(session.parquet(table)).items() if name != PEOPLE}

    def rows(self, table: Path) -> int:
        with self._session() as session:
            return int(session.rows(f"SELECT count(*) FROM {session.parquet(table)}")[0][0])

    def _people(self, table: Path) -> int:
        with self._session() as session:
            relation = session.parquet(table)
            return int(session.rows(f"SELECT {people_counted(session.storage(relation))} FROM {relation}")[0][0] or 0)

    def values(self, table: Path, column: str) -> Iterator[pa.Array]:
        with self._session() as session:
            for rows in session.stream(f"SELECT {quoted(column)} FROM {session.parquet(table)}"):
                yield rows.column(0)

    def classes(self, table: Path, quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> ClassCounts:
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            people = f"CAST({people_counted(storage)} AS BIGINT) AS {quoted(PEOPLE)}"
            listed = ", ".join(quoted(name) for name in dict.fromkeys([*quasi_identifiers, *sensitive]))
            # Everything else is counted from the few different rows.
            grouped = f"SELECT {listed}, {people} FROM {relation} GROUP BY {listed}" if listed else None
            session.keep("alike", grouped or f"SELECT {people} FROM {relation}")
            together = f"CAST(sum({quoted(PEOPLE)}) AS BIGINT) AS {quoted(PEOPLE)}"
            names = ", ".join(quoted(name) for name in quasi_identifiers)
            if quasi_identifiers:
                counted = session.arrow(f"SELECT {names}, {together} FROM alike GROUP BY {names} ORDER BY {names}")
            else:  # without quasi-identifiers everybody is in a single class
                counted = session.arrow(f"SELECT {together} FROM alike")
            session.register("classes", counted.append_column(CLASS, pa.array(np.arange(len(counted)))))
            same = [f"classes.{quoted(name)} IS NOT DISTINCT FROM alike.{quoted(name)}" for name in quasi_identifiers]
            histograms = {
                name: self._histogram(
                    session,
                    f"SELECT classes.{quoted(CLASS)} AS class, alike.{quoted(name)} AS value, "
                    f"CAST(sum(alike.{quoted(PEOPLE)}) AS BIGINT) AS count FROM alike "
                    f"JOIN classes ON {' AND '.join(same) or 'TRUE'} "
                    f"GROUP BY classes.{quoted(CLASS)}, alike.{quoted(name)}",
                )
                for name in sensitive
            }
        frame = _with_fine_times(counted).to_pandas()
        return ClassCounts(
            classes=frame[list(quasi_identifiers)],
            sizes=frame[PEOPLE].to_numpy(np.int64),
            sensitive=histograms,
            ordered=frozenset(name for name in sensitive if typed.is_ordered(storage[name])),
        )

    def _histogram(self, session: Session, query: str) -> pd.DataFrame:
        ordered = f"SELECT class, value, count FROM ({query}) AS counted ORDER BY value NULLS FIRST, class"
        histogram: pd.DataFrame = _with_fine_times(session.arrow(ordered)).to_pandas()
        return histogram

    def groups(self, table: Path, recoded: GroupColumns, people: Path | None = None) -> pd.DataFrame:
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            numbers = {
                name: session.parsed(quoted(name), "DOUBLE")
                if storage[name] == "VARCHAR"
                else f"CAST({quoted(name)} AS DOUBLE)"
                for name in (recoded.people, *recoded.means)
            }
            queries = [written_groups(recoded, relation, numbers)]
            if people is not None:
                source = session.parquet(people)
                each = quoted(PEOPLE) if PEOPLE in session.storage(source) else "1"
                queries.append(counted_groups(recoded, source, each))
            found: pd.DataFrame = session.arrow(side_by_side(recoded, queries)).to_pandas()
            return found

    def foreign_values(self, released: Path, stored: Path, columns: Sequence[str]) -> dict[str, int]:
        foreign = {}
        with self._session() as session:
            table, source = session.parquet(released), session.parquet(stored)
            people = people_counted(session.storage(table))
            for name in columns:
                column = quoted(name)
                recoded = (
                    f"SELECT {column} AS value, {people} AS people FROM {table} "
                    f"WHERE {column} IS NOT NULL AND CAST({column} AS VARCHAR) <> '*' GROUP BY 1"
                )
                known = f"SELECT DISTINCT {column} AS value FROM {source}"
                query = (
                    f"SELECT coalesce(sum(shown.people), 0) FROM ({recoded}) AS shown "
                    f"LEFT JOIN ({known}) AS known ON shown.value = known.value WHERE known.value IS NULL"
                )
                foreign[name] = int(session.rows(query)[0][0])
        return foreign

    def out_of_bounds(self, table: Path, bounds: dict[str, list[Any]]) -> dict[str, int]:
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            people = people_counted(storage)
            outside = []
            for name, (low, high) in bounds.items():
                kind = ColumnType.DATE if storage[name] in typed.MOMENTS else ColumnType.NUMERIC
                value = typed.coded(name, kind, storage[name])
                outside.append(f"{people} FILTER (WHERE {value} NOT BETWEEN {low} AND {high})")
            if not outside:
                return {}
            counts = session.rows(f"SELECT {', '.join(outside)} FROM {relation}")[0]
            return {name: int(count or 0) for name, count in zip(bounds, counts, strict=True)}

    def content_hash(self, table: Path) -> tuple[int, str]:
        with self._session() as session:
            return self._hash(session, table)

    def _hash(self, session: Session, table: Path) -> tuple[int, str]:
        """Number of rows, and a hash of the typed rows in any order; equal rows are counted together first."""
        relation = session.parquet(table)
        storage = session.storage(relation)
        names = sorted(name for name in storage if name != PEOPLE)
        listed = ", ".join(quoted(name) for name in names)
        if PEOPLE in storage:
            query = f"SELECT {listed}, {quoted(PEOPLE)} FROM {relation}"
        else:
            query = f"SELECT {listed}, CAST(count(*) AS BIGINT) AS {quoted(PEOPLE)} FROM {relation} GROUP BY {listed}"
        schema = session.schema(query)
        content = ContentHash()
        from_file = PEOPLE in storage and is_as_stored(table, schema)
        for _ in content.passing(stored_rows(table) if from_file else session.stream(query), PEOPLE):
            pass  # only the hash is wanted
        return content.of(schema, PEOPLE)


def _with_fine_times(table: pa.Table) -> pa.Table:
    """The table with times of day that have nanoseconds as texts, since Python has none of such."""
    for place, field in enumerate(table.schema):
        if field.type == pa.time64("ns"):
            table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    return table
