"""The default engine: DuckDB, out of core, on Parquet files in the private zone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.engine import sources
from anon_pipeline.engine.base import Batch, ClassCounts, ColumnFacts, ColumnSurvey, SourceFacts
from anon_pipeline.engine.packing import Packing, is_dense, radix_of
from anon_pipeline.engine.sql import literal, quoted, row_text
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
from anon_pipeline.tables import Cells, Domain, IntArray

BATCH_ROWS = 250_000

#: Columns of our own beside those of the source, which may have any name but such a one.
HASH, CLASS, SIZE = "#hash", "#class", "#size"

#: Shapes of values that name a person directly.
PATTERNS = {
    "e-mail address": r"[^@\s]+@[^@\s]+\.[^@\s]+",
    "phone number": r"\+?[0-9][0-9 ()/-]{7,18}[0-9]",
    "IBAN": r"[A-Z]{2}[0-9]{2}[A-Z0-9 ]{11,32}",
    "UUID": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
}


class DuckDBEngine:
    """See `anon_pipeline.engine.base.Engine` for what each method promises.

    Parameters
    ----------
    spill : folder for what does not fit into memory; in the private zone, since it holds people
    memory_limit : for example "4GB"; DuckDB's own default (80 % of the machine) where absent
    threads : all cores where absent
    """

    name = "duckdb"

    def __init__(self, spill: Path, memory_limit: str | None = None, threads: int | None = None) -> None:
        self._spill, self._memory_limit, self._threads = spill, memory_limit, threads

    @contextmanager
    def _connect(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A fresh in-memory database; DuckDB's own messages, which may quote a row, never leave it."""
        connection = duckdb.connect()
        try:
            for setting in (
                "autoinstall_known_extensions=false",  # nothing is fetched
                "autoload_known_extensions=false",
                "enable_progress_bar=false",
                "TimeZone='UTC'",
                f"temp_directory={literal(str(self._spill))}",
                *([f"memory_limit={literal(self._memory_limit)}"] if self._memory_limit else []),
                *([f"threads={self._threads}"] if self._threads else []),
            ):
                connection.execute(f"SET {setting}")
            yield connection
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

    # ------------------------------------------------------------------ source

    def store_source(self, spec: ReleaseSpec, destination: Path) -> SourceFacts:
        with self._connect() as connection, sources.opened(connection, spec, destination.parent) as source:
            typed = sources.typed_columns(connection, source, spec)
            select = ", ".join(f"{one.expression} AS {quoted(one.name)}" for one in typed)
            self._copy(connection, f"SELECT {select} FROM {source.relation}", destination)
        return self.describe(destination, spec, {one.name: one.type for one in typed})

    def import_table(self, path: Path, scratch: Path, measured: Sequence[str] = ()) -> Path:
        with self._connect() as connection:
            return sources.import_table(connection, path, scratch, measured)

    def describe(self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType]) -> SourceFacts:
        with self._connect() as connection:
            return self._facts(connection, spec, types, _parquet(table))

    def _facts(
        self,
        connection: duckdb.DuckDBPyConnection,
        spec: ReleaseSpec,
        types: dict[str, ColumnType],
        relation: str,
    ) -> SourceFacts:
        storage = self._storage(connection, relation)
        counts = ", ".join(f"count({quoted(name)}), count(DISTINCT {quoted(name)})" for name in types)
        row = _one(connection, f"SELECT count(*), {counts} FROM {relation}")
        rows, numbers = int(row[0]), [int(number) for number in row[1:]]
        columns = tuple(
            ColumnFacts(name, spec.columns[name].role, kind, storage[name], rows - known, distinct)
            for (name, kind), known, distinct in zip(types.items(), numbers[0::2], numbers[1::2], strict=True)
        )
        identifiers = [quoted(name) for name in spec.with_role(Role.IDENTIFIER)]
        duplicates = 0
        if identifiers:
            names = ", ".join(identifiers)
            some = " OR ".join(f"{name} IS NOT NULL" for name in identifiers)
            duplicates = int(
                _one(
                    connection,
                    f"SELECT coalesce(sum(c), 0)::BIGINT FROM (SELECT count(*) AS c FROM {relation} WHERE {some} "
                    f"GROUP BY {names} HAVING count(*) > 1)",
                )[0]
            )
        return SourceFacts(rows, self._hash(connection, relation)[1], columns, duplicates)

    def columns(self, table: Path) -> dict[str, str]:
        with self._connect() as connection:
            return self._storage(connection, _parquet(table))

    def survey(self, table: Path) -> list[ColumnSurvey]:
        with self._connect() as connection:
            relation = _parquet(table)
            surveyed = []
            for name, storage in self._storage(connection, relation).items():
                value = quoted(name)
                number = "TRY_CAST(value::VARCHAR AS DOUBLE)"
                rows, known, distinct, numbers, codes, dates, alone = _one(
                    connection,
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
                    patterns[pattern] = int(_one(connection, f"SELECT count(*) FROM {relation} WHERE {fits}")[0])
                surveyed.append(
                    ColumnSurvey(name, storage, rows, known, distinct, numbers, codes, dates, alone, patterns)
                )
            return surveyed

    def determined(self, table: Path, columns: Sequence[str]) -> list[tuple[str, str]]:
        with self._connect() as connection:
            relation = _parquet(table)
            pairs = [(one, other) for one in columns for other in columns if one != other]
            found = []
            for one, other in pairs:
                several = _one(
                    connection,
                    f"SELECT count(*) FROM (SELECT {quoted(one)} FROM {relation} GROUP BY {quoted(one)} "
                    f"HAVING count(DISTINCT {quoted(other)}::VARCHAR) > 1)",
                )[0]
                if several == 0:
                    found.append((one, other))
            return found

    # ------------------------------------------------------------------ cells

    def domains(self, table: Path, types: dict[str, ColumnType]) -> tuple[Domain, ...]:
        found = []
        with self._connect() as connection:
            relation = _parquet(table)
            storage = self._storage(connection, relation)
            for name, kind in types.items():
                value = _coded(name, kind, storage[name])
                counted = connection.sql(
                    f"SELECT value, count(*) AS people FROM (SELECT {value} AS value FROM {relation}) "
                    "GROUP BY value ORDER BY value NULLS FIRST"
                ).to_arrow_table()
                values, people = counted.column("value"), counted.column("people").to_numpy()
                missing = int(people[0]) if values.null_count else 0
                known = values.slice(1 if missing else 0).combine_chunks()
                array = (
                    np.array(known.to_pylist(), dtype=object) if kind is ColumnType.CATEGORICAL else known.to_numpy()
                )
                found.append(Domain(name, kind, array, np.r_[missing, people[1 if missing else 0 :]], storage[name]))
        return tuple(found)

    def sample(self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType], size: int) -> Batch:
        with self._connect() as connection:
            relation = _parquet(table)
            select = self._features(connection, relation, spec, types)
            # Equal hashes are equal rows, so their order does not matter.
            smallest = f"ORDER BY {quoted(HASH)} LIMIT {size}"
            rows = connection.sql(f"SELECT {select} FROM {relation} {smallest}").to_arrow_table()
        return _batch(rows, spec, types, 0)

    def batches(
        self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType], domains: tuple[Domain, ...]
    ) -> Iterator[Batch]:
        with self._connect() as connection:
            relation = _parquet(table)
            packing = Packing.plan(domains)
            keyed = self._keyed(connection, relation, packing)
            select = self._features(connection, relation, spec, types)
            keys = ", ".join(quoted(_key(part)) for part in range(len(packing.parts)))
            reader = connection.sql(f"SELECT {select}, {keys} FROM {keyed}").to_arrow_reader(BATCH_ROWS)
            for rows in reader:
                yield _batch(pa.Table.from_batches([rows]), spec, types, len(packing.parts))

    def cells(self, domains: tuple[Domain, ...], key: IntArray, counts: IntArray, guidance: IntArray) -> Cells:
        codes = Packing.plan(domains).unpack(key)
        order = np.lexsort(codes.T[::-1])
        return Cells(domains, codes[order], counts[order], guidance[order])

    def _features(
        self, connection: duckdb.DuckDBPyConnection, relation: str, spec: ReleaseSpec, types: dict[str, ColumnType]
    ) -> str:
        storage = self._storage(connection, relation)
        parts = []
        for name in [*spec.features, spec.target]:
            value = _coded(name, types[name], storage[name])
            parts.append(
                f"{value if types[name] is ColumnType.CATEGORICAL else f'({value})::DOUBLE'} AS {quoted(name)}"
            )
        text = row_text([f"{quoted(name)}::VARCHAR" for name in sorted(spec.released)])
        return ", ".join([*parts, f"(md5_number_lower({text}) >> 1)::BIGINT AS {quoted(HASH)}"])

    def _keyed(self, connection: duckdb.DuckDBPyConnection, relation: str, packing: Packing) -> str:
        """A subquery that adds the packed key of each row as #key0, #key1, ... to the relation's columns."""
        storage = self._storage(connection, relation)
        codes: list[str] = []
        joins: list[str] = []
        for position, domain in enumerate(packing.domains):
            value = _coded(domain.name, domain.type, storage[domain.name], "source")
            if not domain.ordered:
                connection.register("known", pa.table({"value": pa.array(domain.values.tolist(), pa.string())}))
                if len(domain.values):
                    connection.execute(f"CREATE TYPE code{position} AS ENUM (SELECT value FROM known)")
                    codes.append(f"coalesce(enum_code({value}::code{position})::BIGINT + 1, 0)")
                else:
                    codes.append("0::BIGINT")
                connection.unregister("known")
            elif is_dense(domain):
                codes.append(f"coalesce({value} - {int(domain.values[0]) - 1}::BIGINT, 0)")
            else:
                rows = {"value": domain.values, "code": np.arange(1, len(domain), dtype=np.int64)}
                connection.register("known", pa.table(rows))
                connection.execute(f"CREATE TEMP TABLE codes{position} AS FROM known")
                connection.unregister("known")
                joins.append(f"LEFT JOIN codes{position} ON codes{position}.value = {value}")
                codes.append(f"coalesce(codes{position}.code, 0)")
        keys = []
        for number, part in enumerate(packing.parts):
            key = "0::BIGINT"
            for position in part:
                key = f"({key}) * {radix_of(packing.domains[position])} + {codes[position]}"
            keys.append(f"{key} AS {quoted(_key(number))}")
        return f"(SELECT source.*, {', '.join(keys)} FROM {relation} AS source {' '.join(joins)})"

    # ------------------------------------------------------------------ release

    def write_release(
        self,
        table: Path,
        domains: tuple[Domain, ...],
        cells: Cells,
        class_of_cell: IntArray,
        shown: pa.Table,
        columns: Sequence[str],
        destination: Path,
    ) -> None:
        packing = Packing.plan(domains)
        kept = class_of_cell >= 0
        key = packing.pack(cells.codes[kept])
        mapping = {_key(part): key[:, part] for part in range(len(packing.parts))}
        with self._connect() as connection:
            relation = _parquet(table)
            keyed = self._keyed(connection, relation, packing)
            connection.register("class_of_cell", pa.table({**mapping, CLASS: class_of_cell[kept]}))
            connection.register("shown", shown.append_column(CLASS, pa.array(np.arange(len(shown)))))
            restored = {domain.name: _restored(connection, domain, shown) for domain in domains}
            select = ", ".join(f"{restored.get(name, f'person.{quoted(name)}')} AS {quoted(name)}" for name in columns)
            on = " AND ".join(f"person.{quoted(part)} = class_of_cell.{quoted(part)}" for part in mapping)
            self._copy(
                connection,
                f"SELECT {select} FROM {keyed} AS person JOIN class_of_cell ON {on} "
                f"JOIN shown ON shown.{quoted(CLASS)} = class_of_cell.{quoted(CLASS)} ORDER BY ALL",
                destination,
            )

    def classes(self, table: Path, quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> ClassCounts:
        if not quasi_identifiers:  # then everybody is one class
            return self._everybody(table, sensitive)
        names = ", ".join(quoted(name) for name in quasi_identifiers)
        with self._connect() as connection:
            relation = _parquet(table)
            storage = self._storage(connection, relation)
            connection.execute(
                f"CREATE TEMP TABLE classes AS SELECT row_number() OVER () - 1 AS {quoted(CLASS)}, * FROM "
                f"(SELECT {names}, count(*) AS {quoted(SIZE)} FROM {relation} GROUP BY {names})"
            )
            same = " AND ".join(
                f"classes.{quoted(name)} IS NOT DISTINCT FROM person.{quoted(name)}" for name in quasi_identifiers
            )
            histograms = {}
            for name in sensitive:
                histograms[name] = connection.execute(
                    f"SELECT class, value, count(*) AS count FROM (SELECT classes.{quoted(CLASS)} AS class, "
                    f"person.{quoted(name)} AS value FROM {relation} AS person JOIN classes ON {same}) "
                    "GROUP BY ALL ORDER BY value NULLS FIRST, class"
                ).df()
            found = connection.execute(f"SELECT * FROM classes ORDER BY {quoted(CLASS)}").df()
        return ClassCounts(
            classes=found[list(quasi_identifiers)],
            sizes=found[SIZE].to_numpy(np.int64),
            sensitive=histograms,
            ordered=frozenset(name for name in sensitive if sources.is_ordered(storage[name])),
        )

    def _everybody(self, table: Path, sensitive: Sequence[str]) -> ClassCounts:
        with self._connect() as connection:
            relation = _parquet(table)
            storage = self._storage(connection, relation)
            rows = int(_one(connection, f"SELECT count(*) FROM {relation}")[0])
            counted = {
                name: connection.execute(
                    f"SELECT 0 AS class, {quoted(name)} AS value, count(*) AS count FROM {relation} GROUP BY 2 "
                    "ORDER BY 2 NULLS FIRST"
                ).df()
                for name in sensitive
            }
        ordered = frozenset(name for name in sensitive if sources.is_ordered(storage[name]))
        return ClassCounts(pd.DataFrame(index=range(1)), np.array([rows]), counted, ordered)

    def sensitive_of_cells(
        self, table: Path, domains: tuple[Domain, ...], cells: Cells, sensitive: Sequence[str]
    ) -> ClassCounts:
        packing = Packing.plan(domains)
        key = packing.pack(cells.codes)
        mapping = {_key(part): key[:, part] for part in range(len(packing.parts))}
        with self._connect() as connection:
            relation = _parquet(table)
            storage = self._storage(connection, relation)
            keyed = self._keyed(connection, relation, packing)
            connection.register("cells", pa.table({**mapping, CLASS: np.arange(len(key))}))
            on = " AND ".join(f"person.{quoted(part)} = cells.{quoted(part)}" for part in mapping)
            counted = {
                name: connection.execute(
                    f"SELECT cells.{quoted(CLASS)} AS class, person.{quoted(name)} AS value, count(*) AS count "
                    f"FROM {keyed} AS person JOIN cells ON {on} GROUP BY 1, 2 ORDER BY 2 NULLS FIRST, 1"
                ).df()
                for name in sensitive
            }
        ordered = frozenset(name for name in sensitive if sources.is_ordered(storage[name]))
        return ClassCounts(pd.DataFrame(index=range(len(key))), cells.counts, counted, ordered)

    def census(self, spec: ReleaseSpec, types: Mapping[str, ColumnType], path: str) -> pd.DataFrame:
        source = spec.source.model_copy(update={"path": path, "query": None})
        population = spec.model_copy(update={"source": source})
        with self._connect() as connection, sources.opened(connection, population, self._spill) as opened:
            typed = sources.typed_quasi_identifiers(connection, opened, population, types)
            select = ", ".join(f"{one.expression} AS {quoted(one.name)}" for one in typed)
            relation = f"(SELECT {select} FROM {opened.relation})"
            storage = self._storage(connection, relation)
            coded = ", ".join(
                f"{quoted(one.name)}::TIMESTAMP AS {quoted(one.name)}"
                if one.type is ColumnType.DATE
                else f"{_coded(one.name, one.type, storage[one.name])} AS {quoted(one.name)}"
                for one in typed
            )
            return connection.execute(
                f'SELECT {coded}, count(*) AS "#people" FROM {relation} GROUP BY ALL ORDER BY ALL'
            ).df()

    def foreign_values(self, released: Path, stored: Path, columns: Sequence[str]) -> dict[str, int]:
        with self._connect() as connection:
            return {
                name: int(
                    _one(
                        connection,
                        f"SELECT count(*) FROM {_parquet(released)} AS r WHERE r.{quoted(name)} IS NOT NULL "
                        f"AND r.{quoted(name)}::VARCHAR <> '*' AND NOT "
                        f"EXISTS (FROM {_parquet(stored)} AS s WHERE s.{quoted(name)} = r.{quoted(name)})",
                    )[0]
                )
                for name in columns
            }

    def out_of_bounds(self, table: Path, bounds: dict[str, list[Any]]) -> dict[str, int]:
        with self._connect() as connection:
            relation = _parquet(table)
            storage = self._storage(connection, relation)
            outside = {}
            for name, (low, high) in bounds.items():
                kind = ColumnType.DATE if storage[name] in sources.MOMENTS else ColumnType.NUMERIC
                value = _coded(name, kind, storage[name])
                outside[name] = int(
                    _one(connection, f"SELECT count(*) FROM {relation} WHERE {value} NOT BETWEEN {low} AND {high}")[0]
                )
            return outside

    def content_hash(self, table: Path) -> tuple[int, str]:
        with self._connect() as connection:
            return self._hash(connection, _parquet(table))

    # ------------------------------------------------------------------ shared

    def _hash(self, connection: duckdb.DuckDBPyConnection, relation: str) -> tuple[int, str]:
        """Rows, and SHA-256 over the columns and the sum of the rows' MD5 numbers: any order gives the same."""
        storage = self._storage(connection, relation)
        names = sorted(storage)
        text = row_text([f"{quoted(name)}::VARCHAR" for name in names])
        rows, lower, upper = _one(
            connection,
            f"SELECT count(*), coalesce(sum(md5_number_lower(text)), 0), coalesce(sum(md5_number_upper(text)), 0) "
            f"FROM (SELECT {text} AS text FROM {relation})",
        )
        content = "\n".join([*(f"{name} {storage[name]}" for name in names), str(rows), str(lower), str(upper)])
        return int(rows), hashlib.sha256(content.encode()).hexdigest()

    def _storage(self, connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
        return {row[0]: row[1] for row in connection.execute(f"DESCRIBE FROM {relation}").fetchall()}

    def _copy(self, connection: duckdb.DuckDBPyConnection, query: str, destination: Path) -> None:
        connection.execute(f"COPY ({query}) TO {literal(str(destination))} (FORMAT parquet, COMPRESSION zstd)")


def _key(part: int) -> str:
    return f"#key{part}"


def _parquet(table: Path) -> str:
    return f"read_parquet({literal(str(table))})"


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    return connection.execute(query).fetchall()[0]


def _coded(name: str, kind: ColumnType, storage: str, alias: str = "") -> str:
    """The value of a column as a Domain holds it: text, whole number, float, or days or microseconds since 1970."""
    column = f"{alias}.{quoted(name)}" if alias else quoted(name)
    if kind is ColumnType.CATEGORICAL:
        return column if storage == "VARCHAR" else f"{column}::VARCHAR"
    if kind is ColumnType.DATE:
        return f"epoch_us({column}::TIMESTAMP)" if storage != "DATE" else f"({column} - DATE '1970-01-01')::BIGINT"
    return f"{column}::BIGINT" if sources.is_whole(storage) else f"{column}::DOUBLE"


def _restored(connection: duckdb.DuckDBPyConnection, domain: Domain, shown: pa.Table) -> str:
    """What a class shows, as a value of the source's own type where that holds it; the reverse of `_coded`."""
    column = f"shown.{quoted(domain.name)}"
    if domain.ordered and pa.types.is_string(shown.schema.field(domain.name).type):
        return column  # a range
    if domain.type is ColumnType.DATE:
        return f"DATE '1970-01-01' + {column}::INTEGER" if domain.storage == "DATE" else f"make_timestamp({column})"
    cast = f"TRY_CAST({column} AS {domain.storage})"
    if domain.ordered and domain.storage == "FLOAT":
        return cast
    # A rounded number may be too large for its type, or a set of categories no value of it.
    common = "DOUBLE" if domain.ordered else "VARCHAR"
    changed = f"{cast}::{common} IS DISTINCT FROM {column}::{common}"
    return column if _one(connection, f"SELECT count(*) FROM shown WHERE {changed}")[0] else cast


def _batch(rows: pa.Table, spec: ReleaseSpec, types: dict[str, ColumnType], parts: int) -> Batch:
    frame: pd.DataFrame = rows.select([*spec.features, spec.target]).to_pandas()
    for name in frame.columns:
        categorical = types[name] is ColumnType.CATEGORICAL
        frame[name] = frame[name].astype(object if categorical else float)
    key = [rows.column(_key(part)).to_numpy() for part in range(parts)]
    return Batch(
        features=frame[spec.features],
        target=frame[spec.target],
        hash=rows.column(HASH).to_numpy(),
        key=np.stack(key, axis=1) if key else np.empty((len(frame), 0), dtype=np.int64),
    )
