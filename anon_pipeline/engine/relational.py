"""The engine protocol in SQL, written once: every engine runs these queries, each in its own dialect.

What is asked of a stored table alone is in `stored_tables`.

The differences between engines are in a `Session`: how a query is run, how a file is read, how a text gets its code.
Queries are written for DuckDB, and use only expressions that sqlglot can translate to other dialects.

A stored source has a row per distinct person and a column `#people` with their number (with identifiers everybody is
distinct). All later steps run over these few rows; only reading the source and writing the release touch everybody.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine import typed
from anon_pipeline.engine.base import Batch, ClassCounts, ColumnFacts, Recoding, Repetition, SourceFacts
from anon_pipeline.engine.batches import (
    as_batch,
    digits,
    exact_frame,
    may_be_rounded,
    numbers,
    outside,
    texts,
)
from anon_pipeline.engine.binning import bins_of, domain_of
from anon_pipeline.engine.content import ContentHash
from anon_pipeline.engine.counted_people import counted_people
from anon_pipeline.engine.expressions import (
    CLASS,
    CODED,
    PEOPLE,
    bin_code,
    key_column,
    people_counted,
    people_with,
    repeated,
)
from anon_pipeline.engine.held_out import HeldOut
from anon_pipeline.engine.packing import Packing, is_dense, radix_of
from anon_pipeline.engine.restoring import in_storage, value_expressions, with_decimals
from anon_pipeline.engine.samples import sample_of
from anon_pipeline.engine.session import Session
from anon_pipeline.engine.some_people import one_in
from anon_pipeline.engine.sources import as_that_kind
from anon_pipeline.engine.sql import quoted
from anon_pipeline.engine.stored_tables import StoredTables
from anon_pipeline.engine.typed import OpenSource
from anon_pipeline.engine.writing import write_repeated
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
from anon_pipeline.tables import Cells, Domain


class SqlEngine(StoredTables):
    """See `anon_pipeline.engine.base.Engine` for what each method promises."""

    name: str

    @abstractmethod
    def _session(self) -> AbstractContextManager[Session]:
        """A new session; the engine's own messages, which may quote a row, are not passed on."""

    @abstractmethod
    def _opened(
        self, session: Session, spec: ReleaseSpec, scratch: Path, by_itself: bool = False
    ) -> AbstractContextManager[OpenSource]:
        """The source of a spec as a relation; see `sources.opened`."""

    # ------------------------------------------------------------------ source

    def store_source(self, spec: ReleaseSpec, destination: Path) -> SourceFacts:
        with self._session() as session, self._opened(session, spec, destination.parent) as source:
            read = typed.typed_people(session, source, spec)
            session.write(counted_people(session, source, read, spec), destination)
        stored = self.describe(destination, spec, {column.name: column.type for column in read.columns})
        found = [column.name for column in read.columns if column.by_values]
        return replace(stored.typed_by_values(found), table=source.table, left_out=read.left_out)

    def describe(self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType]) -> SourceFacts:
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            people = people_counted(storage)
            counts = ", ".join(
                f"{people} FILTER (WHERE {quoted(name)} IS NOT NULL), count(DISTINCT {quoted(name)})" for name in types
            )
            row = session.rows(f"SELECT {people}, {counts} FROM {relation}")[0]
            rows, numbers = int(row[0] or 0), [int(number or 0) for number in row[1:]]
            columns = tuple(
                ColumnFacts(name, spec.columns[name].role, kind, storage[name], rows - known, distinct)
                for (name, kind), known, distinct in zip(types.items(), numbers[0::2], numbers[1::2], strict=True)
            )
            identifiers = tuple(
                Repetition(name, *repeated(session, relation, people, name)) for name in spec.with_role(Role.IDENTIFIER)
            )
            return SourceFacts(rows, self._hash(session, table)[1], columns, identifiers)

    # ------------------------------------------------------------------ cells

    def domains(
        self, table: Path, types: dict[str, ColumnType], bins: Mapping[str, int] | None = None
    ) -> tuple[Domain, ...]:
        found = []
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            people = people_counted(storage)
            for name, kind in types.items():
                value = typed.coded(name, kind, storage[name])
                counted = f"SELECT {value} AS value, CAST({people} AS BIGINT) AS people FROM {relation} GROUP BY 1"
                ordered = f"SELECT value, people FROM ({counted}) AS counted ORDER BY value NULLS FIRST"
                if bins and name in bins:
                    known = int(session.rows(f"SELECT {people_with(people, name)} FROM {relation}")[0][0] or 0)
                    found.append(bins_of(name, kind, storage[name], session.stream(ordered), known, bins[name]))
                else:
                    found.append(domain_of(name, kind, storage[name], session.arrow(ordered)))
        return tuple(found)

    def count_cells(self, table: Path, domains: tuple[Domain, ...]) -> int:
        with self._session() as session:
            packing = Packing.plan(domains)
            keys = ", ".join(quoted(key_column(part)) for part in range(len(packing.parts)))
            keyed = self._keyed(session, session.parquet(table), packing)
            return int(session.rows(f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {keyed}) AS cell")[0][0])

    def sample(
        self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType], size: int, left_out: Cells | None = None
    ) -> Batch:
        domains = () if left_out is None else left_out.domains
        # Equal people must be counted together, to be drawn one by one; without identifiers, and as stored, they are.
        together = bool(spec.with_role(Role.IDENTIFIER) or spec.masks) and self._people(table) > size
        batches = self.batches(table, spec, types, domains, together=together)
        return sample_of(batches if left_out is None else outside(left_out, batches), size)

    def frame(self, table: Path, types: Mapping[str, ColumnType]) -> pd.DataFrame:
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            names = [name for name in types if name in storage]
            kinds = {name: ColumnType.CATEGORICAL if storage[name] == "VARCHAR" else types[name] for name in names}
            select = ", ".join(
                quoted(name)
                if kinds[name] is ColumnType.NUMERIC and storage[name].startswith(("BIGINT", "UBIGINT", "DECIMAL"))
                else f"{typed.coded(name, kinds[name], storage[name])} AS {quoted(name)}"
                for name in names
            )
            rows = session.arrow(f"SELECT {select} FROM {relation}")
        columns = {name: rows.column(name).combine_chunks() for name in names}
        frame: dict[str, pd.Series | npt.NDArray[Any]] = {}
        for name, column in columns.items():
            if kinds[name] is ColumnType.CATEGORICAL:
                frame[name] = texts(column)
            else:
                is_exact = kinds[name] is ColumnType.NUMERIC and may_be_rounded(column.type)
                frame[name] = digits(column) if is_exact else numbers(column)
        return pd.DataFrame(frame)

    def everybody(self, table: Path, about: int | None = None) -> pa.Table:
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            if about is None:
                people_found = session.arrow(f"SELECT * FROM {relation}")
            else:
                people_found = one_in(max(self._people(table) // about, 1), session, relation, storage)
        if PEOPLE not in storage:
            return people_found
        place = np.repeat(np.arange(len(people_found)), people_found.column(PEOPLE).to_numpy())
        return people_found.drop_columns([PEOPLE]).take(pa.array(place))

    def rewrite(
        self, table: Path, columns: Sequence[str], query: Callable[[dict[str, str], str], str], destination: Path
    ) -> None:
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            if PEOPLE not in storage:
                relation = f"(SELECT *, CAST(1 AS BIGINT) AS {quoted(PEOPLE)} FROM {relation}) AS people"
            masked = f"({query({**storage, PEOPLE: 'BIGINT'}, relation)}) AS made"
            names = ", ".join(quoted(name) for name in columns)
            # Grouping rows that are all different takes several times as long as writing them.
            rows, different = session.rows(f"SELECT count(*), approx_count_distinct(hash({names})) FROM {masked}")[0]
            together = f"SELECT {names}, CAST(sum({quoted(PEOPLE)}) AS BIGINT) AS {quoted(PEOPLE)} FROM {masked}"
            if different * 2 <= rows:
                session.write(f"{together} GROUP BY {names}", destination)
            else:
                session.write(f"SELECT {names}, {quoted(PEOPLE)} FROM {masked}", destination)

    def add_column(
        self, table: Path, of: str, name: str, new_values: Callable[[pa.Array], IntArray], destination: Path
    ) -> None:
        with self._session() as session:
            query = f"SELECT * FROM {session.parquet(table)}"
            schema = session.schema(query).append(pa.field(name, pa.int64()))
            with pq.ParquetWriter(destination, schema) as writer:
                for rows in session.stream(query):
                    column = pa.array(new_values(rows.column(of)), pa.int64())
                    writer.write_batch(pa.RecordBatch.from_arrays([*rows.columns, column], schema=schema))

    def hold_out(self, table: Path, spec: ReleaseSpec, chosen: Mapping[int, int], kept: Path, held_out: Path) -> None:
        with self._session() as session:
            query = f"SELECT * FROM {session.parquet(table)}"
            schema, taken = session.schema(query), HeldOut(chosen, spec.released)
            with pq.ParquetWriter(kept, schema) as inside, pq.ParquetWriter(held_out, schema) as outside:
                for rows in session.stream(query):
                    staying, leaving = taken.split(rows)
                    inside.write_batch(staying)
                    outside.write_batch(leaving)

    def cells(self, domains: tuple[Domain, ...], key: IntArray, counts: IntArray, guidance: IntArray) -> Cells:
        # Packed as they are, keys in ascending order are codes in ascending order.
        order = np.lexsort(key.T[::-1])
        return Cells(domains, Packing.plan(domains).unpack(key[order]), counts[order], guidance[order])

    def batches(
        self,
        table: Path,
        spec: ReleaseSpec,
        types: dict[str, ColumnType],
        domains: tuple[Domain, ...],
        hashed: bool = True,
        together: bool = False,
    ) -> Iterator[Batch]:
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            if together:
                used = {*spec.released, *spec.features, spec.target, *(domain.name for domain in domains)}
                names = ", ".join(quoted(name) for name in storage if name in used)
                people = f"CAST({people_counted(storage)} AS BIGINT) AS {quoted(PEOPLE)}"
                relation = f"(SELECT {names}, {people} FROM {relation} GROUP BY {names})"
            packing = Packing.plan(domains)
            keys = [key_column(part) for part in range(len(packing.parts))]
            select = [quoted(name) for name in spec.released]
            for name in [*spec.features, spec.target]:
                value = typed.coded(name, types[name], storage[name])
                if types[name] is not ColumnType.NUMERIC and value != quoted(name):
                    select.append(f"{value} AS {quoted(CODED + name)}")
            select += [quoted(key) for key in keys]
            select.append(quoted(PEOPLE))
            for rows in session.stream(f"SELECT {', '.join(select)} FROM {self._keyed(session, relation, packing)}"):
                yield as_batch(rows, spec, types, keys, hashed)

    def _keyed(self, session: Session, relation: str, packing: Packing) -> str:
        """A subquery that adds the packed key of each row as #key0, #key1, ... to the relation's columns."""
        storage = session.storage(relation)
        codes: list[str] = []
        joins: list[str] = []
        for position, domain in enumerate(packing.domains):
            value = typed.coded(domain.name, domain.type, storage[domain.name], "source")
            if domain.binned:
                codes.append(f"CASE WHEN {value} IS NULL THEN 0 ELSE {bin_code(domain, value)} END")
            elif not domain.ordered:
                code, join = session.coded_text(position, domain, value)
                codes.append(code)
                joins.append(join)
            elif is_dense(domain):
                codes.append(f"coalesce({value} - ({int(domain.values[0]) - 1}), 0)")
            else:
                rows = {"value": domain.values, "code": np.arange(1, len(domain), dtype=np.int64)}
                session.register(f"codes{position}", pa.table(rows))
                joins.append(f"LEFT JOIN codes{position} ON codes{position}.value = {value}")
                codes.append(f"coalesce(codes{position}.code, 0)")
        keys = []
        for number, part in enumerate(packing.parts):
            key = "CAST(0 AS BIGINT)"
            for position in part:
                key = f"({key}) * {radix_of(packing.domains[position])} + {codes[position]}"
            keys.append(f"{key} AS {quoted(key_column(number))}")
        if PEOPLE not in storage:
            keys.append(f"CAST(1 AS BIGINT) AS {quoted(PEOPLE)}")
        select = ", ".join(["source.*", *keys])
        return f"(SELECT {select} FROM {relation} AS source {' '.join(joins)}) AS person"

    # ------------------------------------------------------------------ release

    def write_release(
        self,
        table: Path,
        recoding: Recoding,
        columns: Sequence[str],
        destination: Path,
    ) -> tuple[int, str]:
        domains = in_storage(recoding.cells.domains, recoding.storage)
        grouped = [name for name in columns if name not in {domain.name for domain in domains}]
        narrowed = {name: kind for name, kind in recoding.storage.items() if name in grouped}
        with self._session() as session:
            people = self._people_with_class(session, session.parquet(table), recoding.cells, recoding.class_of_cell)
            recoded = with_decimals(recoding.recoded, domains)
            session.register("shown", recoded.append_column(CLASS, pa.array(np.arange(len(recoded)))))
            restored = value_expressions(session, domains, recoded)
            restored |= {name: f"CAST(alike.{quoted(name)} AS {kind})" for name, kind in narrowed.items()}
            groups = ", ".join([f"class_of_cell.{quoted(CLASS)}", *(f"person.{quoted(name)}" for name in grouped)])
            alike = (
                f"SELECT {groups}, CAST(sum(person.{quoted(PEOPLE)}) AS BIGINT) AS {quoted(PEOPLE)} "
                f"FROM {people} GROUP BY {groups}"
            )
            select = ", ".join(f"{restored.get(name, f'alike.{quoted(name)}')} AS {quoted(name)}" for name in columns)
            rows = (
                f"SELECT {select}, alike.{quoted(PEOPLE)} AS {quoted(PEOPLE)} FROM ({alike}) AS alike "
                f"JOIN shown ON shown.{quoted(CLASS)} = alike.{quoted(CLASS)}"
            )
            by = ", ".join(f"{quoted(name)} NULLS LAST" for name in columns)
            query = f"SELECT * FROM ({rows}) AS released ORDER BY {by}"
            schema, content = session.schema(query), ContentHash()
            write_repeated(content.passing(session.stream(query), PEOPLE), schema, PEOPLE, destination)
            return content.of(schema, PEOPLE)

    def classes_of_people(
        self, table: Path, cells: Cells, class_of_cell: IntArray, *columns: str, distinct: bool = False
    ) -> Iterator[pa.RecordBatch]:
        with self._session() as session:
            people = self._people_with_class(session, session.parquet(table), cells, class_of_cell)
            names = "".join(f"person.{quoted(name)}, " for name in columns)
            select = "SELECT DISTINCT" if distinct else "SELECT"
            yield from session.stream(f"{select} {names}class_of_cell.{quoted(CLASS)} FROM {people}")

    def _people_with_class(self, session: Session, relation: str, cells: Cells, class_of_cell: IntArray) -> str:
        """Everybody whose cell has a class, as `person`, joined with this class, as `class_of_cell`."""
        packing = Packing.plan(cells.domains)
        kept = class_of_cell >= 0
        key = packing.pack(cells.codes[kept])
        of_cell = {key_column(part): key[:, part] for part in range(len(packing.parts))}
        keyed = self._keyed(session, relation, packing)
        session.register("class_of_cell", pa.table({**of_cell, CLASS: class_of_cell[kept]}))
        same_cell = " AND ".join(f"person.{quoted(part)} = class_of_cell.{quoted(part)}" for part in of_cell)
        return f"{keyed} JOIN class_of_cell ON {same_cell}"

    def sensitive_of_cells(self, table: Path, cells: Cells, sensitive: Sequence[str]) -> ClassCounts:
        number = len(cells.counts)
        with self._session() as session:
            relation = session.parquet(table)
            storage = session.storage(relation)
            people = self._people_with_class(session, relation, cells, np.arange(number))
            counted = {
                name: self._histogram(
                    session,
                    f"SELECT class_of_cell.{quoted(CLASS)} AS class, person.{quoted(name)} AS value, "
                    f"CAST(sum(person.{quoted(PEOPLE)}) AS BIGINT) AS count "
                    f"FROM {people} GROUP BY class_of_cell.{quoted(CLASS)}, person.{quoted(name)}",
                )
                for name in sensitive
            }
        ordered = frozenset(name for name in sensitive if typed.is_ordered(storage[name]))
        return ClassCounts(pd.DataFrame(index=range(number)), cells.counts, counted, ordered)

    def population_table(self, spec: ReleaseSpec, types: Mapping[str, ColumnType], path: str) -> pd.DataFrame:
        of_source = {"query": None, "database": None, "delta": None, "iceberg": None}
        source = spec.source.model_copy(update={**of_source, "path": path})
        population = spec.model_copy(update={"source": source})
        population = population.model_copy(update={"source": as_that_kind(source, population.source_path)})
        with (
            self._folder_of_its_own() as folder,
            self._session() as session,
            self._opened(session, population, folder) as opened,
        ):
            columns = typed.typed_quasi_identifiers(session, opened, population, types)
            select = ", ".join(f"{column.expression} AS {quoted(column.name)}" for column in columns)
            relation = f"(SELECT {select} FROM {opened.relation}) AS typed"
            storage = session.storage(relation)
            coded = ", ".join(
                f"CAST({quoted(column.name)} AS TIMESTAMP) AS {quoted(column.name)}"
                if column.type is ColumnType.DATE
                else f"{typed.coded(column.name, column.type, storage[column.name])} AS {quoted(column.name)}"
                for column in columns
            )
            names = ", ".join(quoted(column.name) for column in columns)
            found = session.arrow(
                f"SELECT {names}, CAST(count(*) AS BIGINT) AS {quoted(PEOPLE)} FROM (SELECT {coded} FROM {relation}) "
                f"AS person GROUP BY {names} ORDER BY {names}"
            )
        return exact_frame(found)
