"""The engine for tables that one machine cannot hold: Spark, on this machine or on a cluster.

This module has only the differences from DuckDB: how Spark is started or found, its dialect of SQL, the names of its
types, and how results come back. The queries are in `engine/relational.py` and `engine/stored_tables.py`. Results
equal DuckDB's, or are refused.

Everything passes between Spark and this process as Parquet files in a private folder, which the workers of a cluster
must see under the same path. PySpark and sqlglot are imported where they are used: the package works without them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine import sources, typed
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.relational import SqlEngine
from anon_pipeline.engine.session import BATCH_ROWS, Session
from anon_pipeline.engine.spark_columns import WHOLE_MICROSECONDS, SparkColumn, columns_of, columns_of_all, type_names
from anon_pipeline.engine.spark_process import ended_by_interrupts, harmless, running_session, uri
from anon_pipeline.engine.spark_sql import backticks, spark_sql
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.typed import OpenSource, TypedColumn
from anon_pipeline.engine.writing import in_groups
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
from anon_pipeline.tables import Domain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATEGORY = ColumnType.CATEGORICAL


#: Settings on which queries rely, whatever the environment has set. They hold for our own session only.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, not another number
    "spark.sql.broadcastTimeout": "-1",  # the machine may be busy
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",  # otherwise people would be lost without a message
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # Spark has no nanoseconds; see `SparkColumn`
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",  # a missing marker may be ${x}
}

#: Types of columns that DuckDB reads: where Spark cannot, there is nothing to flatten.
ONLY_DUCKDB = {*typed.PLAIN, "HALFFLOAT"}

#: Tables of ours up to this size are sent to every worker instead of sorting the people for a join.
BROADCAST_BYTES = 64 * 2**20


#: Texts that DuckDB reads as numbers; an underscore may stand between two digits, and a plus before a minus. DuckDB 2.0
#: reads long texts with an underscore as wrong numbers, so these are no numbers here.
DIGITS = r"[0-9]+(?:_[0-9]+)*"
SPACE = r"[ \t\n\x0B\f\r]*"
FINITE = rf"(?:{DIGITS}(?:\.(?:{DIGITS})?)?|\.{DIGITS})(?:[eE][+-]?{DIGITS})?"
NUMBER = rf"\A(?=[^_]*\z|[^\n]{{1,19}}\z){SPACE}\+?-?(?:{FINITE}|(?i:inf(?:inity)?)){SPACE}\z"
NO_PART_OF_IT = rf"_|\A{SPACE}\+"
NO_NUMBER = rf"\A{SPACE}\+?-?(?i:nan)(?:\(\w*\))?{SPACE}\z"
#: Texts that stand for no date at all; the year 0 stands for them, since `isfinite` takes it for none.
ENDLESS = r"\A-?infinity\z"
#: Texts that DuckDB reads as dates and that have only one meaning; other texts are refused as dates.
CLOCK = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9](?::[0-5]?[0-9](?:\.[0-9]{1,6})?)?"
MOMENT = (
    r"\A([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})"
    rf"(?:(?: +|T)({CLOCK})(?:(?<=\.[0-9]{{6}})[0-9]+)?(?:Z|[+-][0-9]{{2}}(?::[0-9]{{2}})?)?)?\z"
)


class SparkSqlSession:
    """See `anon_pipeline.engine.relational.Session`.

    Parameters
    ----------
    spark : a session of our own, with its own settings and views
    folder : the folder for our tables and for results of any size while they pass between the processes
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._columns: dict[str, dict[str, SparkColumn]] = {}
        self._results = 0

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._frame(query).collect()]

    def arrow(self, query: str) -> pa.Table:
        table: pa.Table = self._frame(query).toArrow()
        return table

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        return self._streamed(self._frame(query))

    def _streamed(self, frame: DataFrame) -> Iterator[pa.RecordBatch]:
        """Spark writes the whole result, with all cores, before the first batch is read; memory holds one batch."""
        names = frame.columns
        self._results += 1
        folder = self._folder / f"result{self._results}"
        result = frame.toDF(
            *(f"c{number}" for number in range(len(names)))
        )  # plain names, whatever those of the source
        kinds = (field.dataType.simpleString().replace("void", "string") for field in result.schema)
        result.selectExpr(
            *(f"CAST({name} AS {kind}) AS {name}" for name, kind in zip(result.columns, kinds, strict=True))
        ).write.parquet(uri(folder))
        try:
            for part in sorted(folder.glob("*.parquet")):  # numbered in the order of the rows
                with pq.ParquetFile(part) as file:
                    for batch in file.iter_batches(BATCH_ROWS):
                        yield pa.RecordBatch.from_arrays(batch.columns, names=names)
                part.unlink()
        finally:
            shutil.rmtree(folder)

    def schema(self, query: str) -> pa.Schema:
        return _arrow_schema(self._frame(query))

    def storage(self, relation: str) -> dict[str, str]:
        if relation in self._columns:
            return {name: column.storage for name, column in self._columns[relation].items()}
        schema = self._frame(f"SELECT * FROM {relation}").schema
        return {field.name: type_names(field.dataType.simpleString())[0] for field in schema}

    def register(self, name: str, table: pa.Table) -> None:
        file = self._folder / f"{name}.parquet"
        pq.write_table(table, file)
        self.view(name, [file], columns_of(file), broadcast=table.nbytes <= BROADCAST_BYTES)

    def keep(self, name: str, query: str) -> None:
        file = self._folder / f"{name}.parquet"
        self.write(query, file)
        self.view(name, [file], columns_of(file))

    def parquet(self, table: Path) -> str:
        try:
            columns = columns_of(table)
        except FileNotFoundError:
            raise InputError(f"{table.name}: a file could not be read or written: there is no such file") from None
        except pa.ArrowException as error:
            raise InputError(f"{table.name}: cannot be read: {sources.harmless(error)}") from None
        return self.view(f"parquet{len(self._columns)}", [table], columns)

    def view(self, name: str, files: Sequence[Path], columns: dict[str, SparkColumn], broadcast: bool = False) -> str:
        """Register Parquet files under a name; the values of a column that they lack are missing.

        Spark gets the types to read: if it detected them itself, a single unknown column would make the file fail.
        """
        from pyspark.sql import functions
        from pyspark.sql.types import StructType

        kept = [column for column, read in columns.items() if read.spark is not None]
        types = StructType.fromDDL(
            ", ".join(f"c{number} {columns[column].spark}" for number, column in enumerate(kept))
        )
        schema = StructType()
        for column, type_ in zip(kept, types, strict=True):
            schema = schema.add(column, type_.dataType)
        reader = self._spark.read.format("parquet").schema(schema).option("__globPaths__", "false")
        select = [f"{read.expression(column)} AS {backticks(column)}" for column, read in columns.items()]
        frame = reader.load([uri(file) for file in files]).selectExpr(*select)
        (functions.broadcast(frame) if broadcast else frame).createOrReplaceTempView(name)
        self._columns[name] = columns
        return name

    def write(self, query: str, destination: Path) -> None:
        frame = self._frame(query)
        with pq.ParquetWriter(destination, _arrow_schema(frame), compression="snappy", store_schema=False) as writer:
            for rows in in_groups(self._streamed(frame)):
                writer.write_table(rows)

    def is_nan(self, number: str) -> str:
        return f"isnan({number})"

    def hashed(self, columns: Sequence[str]) -> str:
        return f"xxhash64({', '.join(columns)})"

    def parsed(self, text: str, target: str) -> str:
        """By DuckDB's rules; Spark would also read "1d" as a number and "2020" as a date."""
        if target == "TIMESTAMP":
            plain = f"regexp_replace({text}, {literal(MOMENT)}, '$1-$3-$4 $5')"
            return (
                f"CASE WHEN regexp_matches({text}, {literal(MOMENT)}) THEN TRY_CAST({plain} AS TIMESTAMP) "
                f"WHEN regexp_matches({text}, {literal(ENDLESS)}) THEN TIMESTAMP '0000-01-01' END"
            )
        plain = f"regexp_replace({text}, {literal(NO_PART_OF_IT)}, '')"
        return (
            f"CASE WHEN regexp_matches({text}, {literal(NUMBER)}) THEN TRY_CAST({plain} AS DOUBLE) "
            f"WHEN regexp_matches({text}, {literal(NO_NUMBER)}) THEN CAST('nan' AS DOUBLE) END"
        )

    def numbered_texts(
        self,
        source: OpenSource,  # noqa: ARG002 - Spark groups by texts
        columns: Sequence[TypedColumn],  # noqa: ARG002
        missing: Sequence[str],  # noqa: ARG002
    ) -> Mapping[str, tuple[str, str]]:
        return {}

    def coded_text(self, position: int, domain: Domain, value: str) -> tuple[str, str]:
        """By a join with a dictionary that every worker holds."""
        if not len(domain.values):
            return "0", ""
        name = f"texts{position}"
        texts = pa.array(domain.values.tolist(), pa.string())
        self.register(name, pa.table({"value": texts, "code": np.arange(1, len(domain), dtype=np.int64)}))
        return f"coalesce({name}.code, 0)", f"LEFT JOIN {name} ON {name}.value = {value}"

    def _frame(self, query: str) -> DataFrame:
        return self._spark.sql(spark_sql(query))


class SparkEngine(SqlEngine):
    """See `anon_pipeline.engine.base.Engine` for what each method promises.

    A session that is active in this process is used, as on Databricks or under spark-submit. Otherwise Spark is started
    on the master that the environment names (SPARK_MASTER, or spark.master in spark-defaults.conf), else on this
    machine.

    Parameters
    ----------
    spill : folder for what passes to and from Spark; in the private zone, since it holds people. The workers of a
        cluster must see it, and the files to read, under the same path
    memory_limit : memory of the driver, which does all work on one machine, such as "4GB"; Spark's default if absent
    threads : threads on one machine; all cores where absent
    """

    name = "spark"

    def __init__(self, spill: Path, memory_limit: str | None = None, threads: int | None = None) -> None:
        self._scratch, self._memory_limit, self._threads = spill, memory_limit, threads

    @contextmanager
    def _session(self) -> Iterator[SparkSqlSession]:
        """A session with its own settings and views; Spark's messages, which may quote a row, are not passed on."""
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with harmless("the table could not be processed"):
            spark = running_session(self._scratch, self._memory_limit, self._threads).newSession()
            for setting, value in SETTINGS.items():
                spark.conf.set(setting, value)
            folder = Path(tempfile.mkdtemp(prefix="session-", dir=self._scratch))
            try:
                with ended_by_interrupts(spark.sparkContext):
                    yield SparkSqlSession(spark, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _opened(
        self, session: Session, spec: ReleaseSpec, scratch: Path, by_itself: bool = False
    ) -> Iterator[OpenSource]:
        """Spark reads Parquet. DuckDB converts text files to Parquet first, so that both engines see equal fields."""
        spark, kept = cast(SparkSqlSession, session), _kept(spec)
        converted = scratch / "source.parquet"
        label = spec.source.path
        with (
            DuckDBEngine(self._scratch, self._memory_limit, self._threads)._session() as reader,
            sources.opened(reader.connection, spec, scratch, by_itself) as source,
            harmless(f"{label}: cannot be read"),
        ):
            files = source.files or (converted,)
            try:
                if not source.files:
                    names = reader.storage(source.relation)
                    select = ", ".join(quoted(name) if name in kept else f"NULL AS {quoted(name)}" for name in names)
                    reader.write(f"SELECT {select} FROM {source.relation}", converted)
                columns = columns_of_all(files, label, kept)
                _refuse_types_that_differ(spec, columns)
                relation = spark.view("source_table", files, columns)
                opened = OpenSource(relation, label, files, source.table, source.by_values, source.check)
                if not by_itself:  # to refuse a source for a value of one person would tell of that value
                    _refuse_values_that_differ(spark, opened, spec, columns)
                yield opened
            finally:
                converted.unlink(missing_ok=True)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    return pa.schema([(field.name, type_names(field.dataType.simpleString())[1]) for field in frame.schema])


def _kept(spec: ReleaseSpec) -> set[str]:
    return {name for name, column in spec.columns.items() if column.role is not Role.EXCLUDE}


def _refuse_types_that_differ(spec: ReleaseSpec, columns: dict[str, SparkColumn]) -> None:
    """Refuse types that Spark lacks or writes as other texts than DuckDB, since the release would be another."""
    for name, column in spec.columns.items():
        if column.role is Role.EXCLUDE or name not in columns:
            continue
        storage = columns[name].storage
        if columns[name].spark is None and (storage in ONLY_DUCKDB or storage.startswith("DECIMAL")):
            raise InputError(
                f"columns.{name}: holds {storage} values, which Spark has not; cast or exclude it, "
                "or use --engine duckdb"
            )
        if column.type is CATEGORY and storage in ("FLOAT", "DOUBLE", "TIMESTAMP WITH TIME ZONE"):
            raise InputError(
                f"columns.{name}.type: is categorical, but the source holds {storage} values, which Spark writes as "
                "other texts; store them as text, or use --engine duckdb"
            )


def _refuse_values_that_differ(
    session: SparkSqlSession, source: OpenSource, spec: ReleaseSpec, columns: dict[str, SparkColumn]
) -> None:
    """Refuse moments finer than Spark's, and years whose dates it writes as other texts than DuckDB."""
    fine = {name: SparkColumn("BIGINT", "bigint") for name in columns if WHOLE_MICROSECONDS in columns[name].conversion}
    if fine:
        session.view("nanoseconds", source.files, fine)
    for name in fine:
        _refuse_some(
            session,
            f"SELECT count(*) FROM nanoseconds WHERE {quoted(name)} % 1000 <> 0",
            name,
            "moments are finer than a microsecond, which Spark cannot hold; round them",
        )
    for name, column in columns.items():
        if column.spark and column.storage in ("DATE", "TIMESTAMP", typed.ZONED) and _is_kept_as_it_is(spec, name):
            _refuse_some(
                session,
                f"SELECT count(*) FROM {source.relation} WHERE NOT isfinite(CAST({quoted(name)} AS TIMESTAMP))",
                name,
                "dates lie outside of the years 1 to 9999; correct them, or use --engine duckdb",
            )


def _is_kept_as_it_is(spec: ReleaseSpec, name: str) -> bool:
    """Whether DuckDB takes dates of every year in this column; of those that are grouped, no engine does."""
    column = spec.columns[name]
    return column.type is CATEGORY or column.role is not Role.QUASI_IDENTIFIER


def _refuse_some(session: SparkSqlSession, query: str, name: str, fault: str) -> None:
    number = session.rows(query)[0][0]
    if number:
        raise InputError(f"columns.{name}: {number} {fault}")
