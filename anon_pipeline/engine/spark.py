"""The engine for tables that one machine cannot hold: Spark, on this machine or on a cluster.

Here is what differs from DuckDB and nothing else: how Spark is started or found, how its SQL is said, how its types are
called, how results come back. What is asked stands in `engine/relational.py`; results equal DuckDB's, or are refused.

Everything passes between Spark and this process as Parquet files in a private folder, which the workers of a cluster
must see under the same path. PySpark and sqlglot are imported where they are used: the package works without them.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine import sources, typed
from anon_pipeline.engine.duckdb import BATCH_ROWS, DuckDBEngine
from anon_pipeline.engine.parquet_files import check_names
from anon_pipeline.engine.relational import Session, SqlEngine
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.typed import OpenSource
from anon_pipeline.engine.writing import in_groups
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
from anon_pipeline.tables import Domain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlglot import exp

MASTER_VARIABLE = "SPARK_MASTER"
#: How long parts of Spark wait for each other on one machine, where a wait says that the machine is busy, not that the
#: network failed.
PATIENCE = "3600s"
CATEGORY = ColumnType.CATEGORICAL

INSTALL = (
    "engine: spark is not installed: it needs `pip install 'anon-pipeline[spark]'` and a Java 17 runtime, "
    "for example from `apt-get install openjdk-17-jre-headless`"
)

#: What in an error at the start of Spark says that its user can mend it. Any other is a mistake in a program.
MENDABLE = (
    "JAVA_GATEWAY_EXITED",  # another Java than Spark's, or less memory than a JVM takes
    "FileNotFoundError",  # SPARK_HOME is not where it says
    "PermissionError",
    "Py4JNetworkError",  # the JVM died
    "IllegalArgumentException",  # of Spark's settings, with the memory
    "org.apache.spark.SparkException",  # of a master's name
    "java.lang.NumberFormatException",
    "java.net.",
    "java.io.IOException",
)

#: What a query may rely on, whatever the environment has set. They hold for our own session, not for others.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, not another number
    "spark.sql.broadcastTimeout": "-1",  # however busy the machine is
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",  # else people would be lost without a word
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # Spark has no nanoseconds; see `_Column`
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",  # a missing marker may be ${x}
}

#: Tables of ours up to this size are sent to every worker instead of sorting the people for a join.
BROADCAST_BYTES = 64 * 2**20

#: How Spark calls its types, how DuckDB does, and what they are in Arrow.
TYPES: dict[str, tuple[str, pa.DataType]] = {
    "boolean": ("BOOLEAN", pa.bool_()),
    "tinyint": ("TINYINT", pa.int8()),
    "smallint": ("SMALLINT", pa.int16()),
    "int": ("INTEGER", pa.int32()),
    "bigint": ("BIGINT", pa.int64()),
    "float": ("FLOAT", pa.float32()),
    "double": ("DOUBLE", pa.float64()),
    "string": ("VARCHAR", pa.string()),
    "date": ("DATE", pa.date32()),
    "timestamp": ("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")),
    "timestamp_ntz": ("TIMESTAMP", pa.timestamp("us")),
    "void": ('"NULL"', pa.null()),
}

#: Texts that DuckDB takes for numbers; an underscore may stand between two digits, and a plus before a minus. Of long
#: ones with an underscore it makes wrong numbers (DuckDB 2.0), so those are none here.
DIGITS = r"[0-9]+(?:_[0-9]+)*"
SPACE = r"[ \t\n\x0B\f\r]*"
FINITE = rf"(?:{DIGITS}(?:\.(?:{DIGITS})?)?|\.{DIGITS})(?:[eE][+-]?{DIGITS})?"
NUMBER = rf"\A(?=[^_]*\z|[^\n]{{1,19}}\z){SPACE}\+?-?(?:{FINITE}|(?i:inf(?:inity)?)){SPACE}\z"
NO_PART_OF_IT = rf"_|\A{SPACE}\+"
NO_NUMBER = rf"\A{SPACE}\+?-?(?i:nan)(?:\(\w*\))?{SPACE}\z"
#: Texts that stand for no date at all; the year 0 stands for them, since `isfinite` takes it for none.
ENDLESS = r"\A-?infinity\z"
#: Of the texts that DuckDB takes for dates those that mean one thing only; the others are refused as no dates.
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
    folder : where tables of ours and results of any size lie while they pass from one process to the other
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._columns: dict[str, dict[str, _Column]] = {}
        self._results = 0

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._frame(query).collect()]

    def arrow(self, query: str) -> pa.Table:
        found: pa.Table = self._frame(query).toArrow()
        return found

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        """Spark writes the whole result, all cores at once, before the first batch is read: memory holds one."""
        frame = self._frame(query)
        names = frame.columns
        self._results += 1
        folder = self._folder / f"result{self._results}"
        result = frame.toDF(
            *(f"c{number}" for number in range(len(names)))
        )  # plain names, whatever those of the source
        kinds = (field.dataType.simpleString().replace("void", "string") for field in result.schema)
        result.selectExpr(
            *(f"CAST({name} AS {kind}) AS {name}" for name, kind in zip(result.columns, kinds, strict=True))
        ).write.parquet(_uri(folder))
        try:
            for part in sorted(folder.glob("*.parquet")):  # numbered in the order of the rows
                with pq.ParquetFile(part) as file:
                    for batch in file.iter_batches(BATCH_ROWS):
                        yield pa.RecordBatch.from_arrays(batch.columns, names=names)
                part.unlink()
        finally:
            shutil.rmtree(folder)

    def schema(self, query: str) -> pa.Schema:
        return pa.schema([(field.name, _type(field.dataType.simpleString())[1]) for field in self._frame(query).schema])

    def storage(self, relation: str) -> dict[str, str]:
        if relation in self._columns:
            return {name: column.storage for name, column in self._columns[relation].items()}
        schema = self._frame(f"SELECT * FROM {relation}").schema
        return {field.name: _type(field.dataType.simpleString())[0] for field in schema}

    def register(self, name: str, table: pa.Table) -> None:
        file = self._folder / f"{name}.parquet"
        pq.write_table(table, file)
        self.view(name, [file], _columns_of(file), broadcast=table.nbytes <= BROADCAST_BYTES)

    def keep(self, name: str, query: str) -> None:
        file = self._folder / f"{name}.parquet"
        self.write(query, file)
        self.view(name, [file], _columns_of(file))

    def parquet(self, table: Path) -> str:
        try:
            columns = _columns_of(table)
        except FileNotFoundError:
            raise InputError(f"{table.name}: a file could not be read or written: there is no such file") from None
        except pa.ArrowException as error:
            raise InputError(f"{table.name}: cannot be read: {sources.harmless(error)}") from None
        return self.view(f"parquet{len(self._columns)}", [table], columns)

    def view(self, name: str, files: Sequence[Path], columns: dict[str, _Column], broadcast: bool = False) -> str:
        """Make Parquet files known under a name; a column that they lack is missing there.

        Spark is told which types to read: asked to find out, it fails on a whole file for one column it does not know.
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
        reader.load([_uri(file) for file in files]).createOrReplaceTempView(f"{name}_read")
        select = ", ".join(f"{read.expression(column)} AS {_backticks(column)}" for column, read in columns.items())
        frame = self._spark.sql(f"SELECT {select} FROM {name}_read")
        (functions.broadcast(frame) if broadcast else frame).createOrReplaceTempView(name)
        self._columns[name] = columns
        return name

    def write(self, query: str, destination: Path) -> None:
        schema = self.schema(query)
        with pq.ParquetWriter(destination, schema, compression="snappy", store_schema=False) as writer:
            for rows in in_groups(self.stream(query)):
                writer.write_table(rows)

    def parsed(self, text: str, target: str) -> str:
        """By DuckDB's rules: Spark also takes "1d" for a number and "2020" for a date."""
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
    memory_limit : of the driver, which is all there is on one machine, for example "4GB"; Spark's default where absent
    threads : on one machine; all cores where absent
    """

    name = "spark"

    def __init__(self, spill: Path, memory_limit: str | None = None, threads: int | None = None) -> None:
        self._scratch, self._memory_limit, self._threads = spill, memory_limit, threads

    @contextmanager
    def _session(self) -> Iterator[SparkSqlSession]:
        """Settings and views of our own; Spark's own messages, which may quote a row, never leave it."""
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _harmless("the table could not be processed"):
            spark = _running(self._scratch, self._memory_limit, self._threads).newSession()
            for setting, value in SETTINGS.items():
                spark.conf.set(setting, value)
            folder = Path(tempfile.mkdtemp(prefix="session-", dir=self._scratch))
            try:
                yield SparkSqlSession(spark, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _opened(self, session: Session, spec: ReleaseSpec, scratch: Path) -> Iterator[OpenSource]:
        """Spark reads Parquet. Texts are first made Parquet by DuckDB, so that both engines see the same fields."""
        spark, kept = cast(SparkSqlSession, session), _kept(spec)
        converted = scratch / "source.parquet"
        label = spec.source.path
        with (
            DuckDBEngine(self._scratch, self._memory_limit, self._threads)._session() as reader,
            sources.opened(reader.connection, spec, scratch) as source,
            _harmless(f"{label}: cannot be read"),
        ):
            files = source.files or (converted,)
            try:
                if not source.files:
                    names = reader.storage(source.relation)
                    select = ", ".join(quoted(name) if name in kept else f"NULL AS {quoted(name)}" for name in names)
                    reader.write(f"SELECT {select} FROM {source.relation}", converted)
                columns = _columns_of_all(files, label, kept)
                _refuse_types_that_differ(spec, columns)
                opened = OpenSource(spark.view("source_table", files, columns), label, files)
                _refuse_values_that_differ(spark, opened, spec, columns)
                yield opened
            finally:
                converted.unlink(missing_ok=True)


# ------------------------------------------------------------------ dialect


def spark_sql(query: str) -> str:
    """A query of `engine/relational.py` as Spark reads it."""
    import sqlglot

    tree = sqlglot.parse_one(query, read="duckdb")
    for node in reversed(list(tree.walk())):  # the inner ones first
        said = _said(node)
        if said is not None:
            node.replace(said)
    return str(tree.sql(dialect="spark"))


def _said(node: exp.Expression) -> exp.Expression | None:
    """What sqlglot leaves as DuckDB says it, or says in another sense, in Spark's words."""
    from sqlglot import exp

    def spark(text: str, *values: exp.Expression) -> exp.Expression:
        said: exp.Expression = exp.maybe_parse(text, dialect="spark")
        for place, value in zip(list(said.find_all(exp.Placeholder)), values, strict=True):
            place.replace(value)
        return said

    if isinstance(node, exp.IsInf):
        return spark("(ABS(?) = CAST('Infinity' AS DOUBLE))", node.this)
    if isinstance(node, exp.UnixToTime):
        return spark("CAST(TIMESTAMP_MICROS(?) AS TIMESTAMP_NTZ)", node.this)
    if isinstance(node, exp.RegexpFullMatch):
        return exp.RegexpLike(this=node.this, expression=exp.Literal.string(rf"\A(?:{node.expression.name})\z"))
    if isinstance(node, exp.DataType) and node.is_type("timestamptz"):
        return exp.DataType.build("timestampltz")
    if isinstance(node, exp.Anonymous) and node.name.lower() == "epoch_us":
        return spark("UNIX_MICROS(CAST(? AS TIMESTAMP_LTZ))", node.expressions[0])
    if isinstance(node, exp.Anonymous) and node.name.lower() == "isfinite":
        # Spark has no endless dates; outside of these years it writes dates as nobody else reads them.
        return spark("(YEAR(?) BETWEEN 1 AND 9999)", node.expressions[0])
    return None


def _backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# ------------------------------------------------------------------ types and files


@dataclass(frozen=True)
class _Column:
    """A column of Parquet files.

    Attributes
    ----------
    storage : its type in DuckDB's words
    spark : the type to read it as; None where Spark has none
    conversion : what makes of it a value of the type that DuckDB would see
    """

    storage: str
    spark: str | None
    conversion: str = "{}"

    def expression(self, name: str) -> str:
        return "CAST(NULL AS STRING)" if self.spark is None else self.conversion.format(_backticks(name))


WHOLE_MICROSECONDS = "timestamp_micros({} div 1000)"

_COLUMNS = {
    pa.bool_(): _Column("BOOLEAN", "boolean"),
    pa.int8(): _Column("TINYINT", "tinyint"),
    pa.int16(): _Column("SMALLINT", "smallint"),
    pa.int32(): _Column("INTEGER", "int"),
    pa.int64(): _Column("BIGINT", "bigint"),
    pa.uint8(): _Column("UTINYINT", "smallint"),
    pa.uint16(): _Column("USMALLINT", "int"),
    pa.uint32(): _Column("UINTEGER", "bigint"),
    pa.uint64(): _Column("UBIGINT", None),
    pa.float32(): _Column("FLOAT", "float"),
    pa.float64(): _Column("DOUBLE", "double"),
    pa.date32(): _Column("DATE", "date"),
    pa.null(): _Column('"NULL"', "int", "CAST(NULL AS VOID)"),
}


def _type(spark: str) -> tuple[str, pa.DataType]:
    """How DuckDB calls a type of Spark, and what it is in Arrow."""
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", spark)
    if decimal:
        return spark.upper(), pa.decimal128(int(decimal[1]), int(decimal[2]))
    array = re.fullmatch(r"array<(.*)>", spark)
    if array:
        storage, inner = _type(array[1])
        return f"{storage}[]", pa.list_(pa.field("l", inner))  # Arrow's name for an element, as DuckDB has it
    return TYPES[spark]


def _column(type_: pa.DataType, is_int96: bool) -> _Column:
    if pa.types.is_dictionary(type_):
        return _column(type_.value_type, is_int96)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return _Column("VARCHAR", "string")
    if pa.types.is_timestamp(type_):
        return _moment(type_, is_int96)
    if pa.types.is_decimal(type_):
        known = type_.precision <= 38
        return _Column(
            f"DECIMAL({type_.precision},{type_.scale})", f"decimal({type_.precision},{type_.scale})" if known else None
        )
    if pa.types.is_time(type_):
        return _Column("TIME", None)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        inner = _column(type_.value_type, False)
        conversion = "array_repeat(CAST(NULL AS VOID), size({}))" if pa.types.is_null(type_.value_type) else "{}"
        plain = inner.conversion in ("{}", "CAST(NULL AS VOID)") and inner.spark is not None
        return _Column(f"{inner.storage}[]", f"array<{inner.spark}>" if plain else None, conversion)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return _Column("BLOB", None)
    return _COLUMNS.get(type_, _Column(str(type_).split("<")[0].upper(), None))


def _moment(type_: pa.DataType, is_int96: bool) -> _Column:
    if is_int96:  # the old way of writing them, without a word on time zones
        return _Column("TIMESTAMP", "timestamp", "CAST({} AS TIMESTAMP_NTZ)")
    zoned = type_.tz is not None
    storage = "TIMESTAMP WITH TIME ZONE" if zoned else "TIMESTAMP"
    if type_.unit != "ns":
        return _Column(storage, "timestamp" if zoned else "timestamp_ntz")
    return _Column(storage, "bigint", WHOLE_MICROSECONDS if zoned else f"CAST({WHOLE_MICROSECONDS} AS TIMESTAMP_NTZ)")


def _columns_of(file: Path) -> dict[str, _Column]:
    with pq.ParquetFile(file) as opened:
        leaves = (opened.schema.column(number) for number in range(len(opened.schema)))
        int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
        return {field.name: _column(field.type, field.name in int96) for field in opened.schema_arrow}


def _columns_of_all(files: Sequence[Path], label: str, kept: set[str]) -> dict[str, _Column]:
    """The columns of several files, of which each may lack some. Those that nobody will look at are not read."""
    columns: dict[str, _Column] = {}
    for file in files:
        if file.name.startswith(("_", ".")) and len(files) > 1:
            raise InputError(
                f"{label}: Spark would leave out {file.name} and other files whose name starts with _ or a dot; "
                "rename them, or use --engine duckdb"
            )
        for name, column in _columns_of(file).items():
            if name not in kept:
                column = _Column(column.storage, None)
            elif "${" in name:
                raise InputError(
                    f"columns.{name}: Spark takes ${{ in a name for a variable, and would find no value; rename it, "
                    "or use --engine duckdb"
                )
            elif columns.get(name, column) != column:
                raise InputError(
                    f"columns.{name}: is {columns[name].storage} in one file of {label} and {column.storage} in "
                    "another; write it as one type, or use --engine duckdb"
                )
            columns[name] = column
    check_names(label, list(columns))
    return columns


def _kept(spec: ReleaseSpec) -> set[str]:
    return {name for name, column in spec.columns.items() if column.role is not Role.EXCLUDE}


def _refuse_types_that_differ(spec: ReleaseSpec, columns: dict[str, _Column]) -> None:
    """Types that Spark lacks, or that it writes as other texts than DuckDB, would make another release."""
    for name, said in spec.columns.items():
        if said.role is Role.EXCLUDE or name not in columns:
            continue
        storage = columns[name].storage
        if columns[name].spark is None and (storage in typed.PLAIN or storage.startswith("DECIMAL")):
            raise InputError(
                f"columns.{name}: holds {storage} values, which Spark has not; cast or exclude it, "
                "or use --engine duckdb"
            )
        if said.type is CATEGORY and storage in ("FLOAT", "DOUBLE", "TIMESTAMP WITH TIME ZONE"):
            raise InputError(
                f"columns.{name}.type: is categorical, but the source holds {storage} values, which Spark writes as "
                "other texts; store them as text, or use --engine duckdb"
            )


def _refuse_values_that_differ(
    session: SparkSqlSession, source: OpenSource, spec: ReleaseSpec, columns: dict[str, _Column]
) -> None:
    """Moments finer than Spark's, and years whose dates it writes as other texts than DuckDB."""
    fine = {name: _Column("BIGINT", "bigint") for name in columns if WHOLE_MICROSECONDS in columns[name].conversion}
    if fine:
        session.view("nanoseconds", source.files, fine)
    for name in fine:
        _refuse_some(
            session,
            f"SELECT count(*) FROM nanoseconds WHERE {quoted(name)} % 1000 <> 0",
            f"columns.{name}: {{}} moments are finer than a microsecond, which Spark cannot hold; round them",
        )
    for name, column in columns.items():
        if column.storage in ("DATE", "TIMESTAMP") and column.spark and spec.columns[name].type is CATEGORY:
            _refuse_some(
                session,
                f"SELECT count(*) FROM {source.relation} WHERE NOT isfinite(CAST({quoted(name)} AS TIMESTAMP))",
                f"columns.{name}: {{}} dates lie outside of the years 1 to 9999; correct them, or use --engine duckdb",
            )


def _refuse_some(session: SparkSqlSession, query: str, sentence: str) -> None:
    found = session.rows(query)[0][0]
    if found:
        raise InputError(sentence.format(found))


# ------------------------------------------------------------------ Spark itself


def _running(scratch: Path, memory_limit: str | None, threads: int | None) -> SparkSession:
    """The session of this process; Spark is started where it is not running yet."""
    try:
        import sqlglot  # noqa: F401
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(INSTALL) from None
    if SparkContext._active_spark_context is None:
        _start(scratch, memory_limit, threads)
    return SparkSession.builder.getOrCreate()


def _start(scratch: Path, memory_limit: str | None, threads: int | None) -> None:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if "PYSPARK_GATEWAY_PORT" not in os.environ and not _has_java():  # spark-submit has started a JVM already
        raise InputError(INSTALL)
    _silence_python()
    launched = SparkConf(loadDefaults=False)
    if memory_limit is not None:
        launched.set("spark.driver.memory", f"{_megabytes(memory_limit)}m")
    try:
        # What the JVM says may quote a row: it speaks to nobody.
        nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        SparkContext._ensure_initialized(gateway=SparkContext._gateway or launch_gateway(launched, nowhere))
        settings = SparkConf()  # with the defaults of the environment
        settings.setMaster(os.environ.get(MASTER_VARIABLE) or settings.get("spark.master", "local[*]"))
        settings.setAppName("anon-pipeline")
        settings.set("spark.ui.showConsoleProgress", "false")
        if settings.get("spark.master").startswith("local"):
            _stay_at_home(settings, scratch, threads)
        context = SparkContext(conf=settings)
        if SparkContext._gateway.proc is not None:
            atexit.register(_stop, context)
    except Exception as error:
        if not any(sign in f"{type(error).__name__} {error}" for sign in MENDABLE):
            raise
        raise InputError(
            f"engine: spark could not be started ({type(error).__name__}); it needs a Java 17 runtime, a master that "
            "answers, and a --memory of at least 512MB"
        ) from None


def _stop(context: Any) -> None:
    """Wait until the JVM that we started has ended and removed what it spilled."""
    with suppress(Exception):
        context.stop()
        context._gateway.shutdown()
        context._gateway.proc.stdin.close()
        context._gateway.proc.wait(30)


def _stay_at_home(settings: Any, scratch: Path, threads: int | None) -> None:
    """On one machine Spark asks nothing of a network, and keeps what it spills in the private zone."""
    if settings.get("spark.master") == "local[*]" and threads is not None:
        settings.setMaster(f"local[{threads}]")
    # Partitions enough for what does not fit into memory at once; Spark's 200 cost a small table seconds.
    settings.setIfMissing("spark.sql.shuffle.partitions", str(8 * (threads or os.cpu_count() or 1)))
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.maxResultSize": "0",
        "spark.executor.heartbeatInterval": "60s",
        "spark.network.timeout": PATIENCE,
        "spark.python.authenticate.socketTimeout": PATIENCE,
        "spark.local.dir": str(scratch),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": _uri(scratch / "warehouse"),
        "spark.ui.enabled": "false",
    }.items():
        settings.set(name, value)


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) is not None


def _megabytes(limit: str) -> int:
    share = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", limit)
    if share is not None:
        return int(float(share[1]) / 100 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])(i?)B?\s*", limit, re.IGNORECASE)
    if found is None:
        raise InputError(f"memory: {limit} is no amount of memory; write it as 4GB")
    unit = (1024 if found[3] else 1000) ** ("KMGT".index(found[2].upper()) + 1)
    return max(1, int(float(found[1]) * unit / 2**20))


def _silence_python() -> None:
    """PySpark logs the errors that it raises, with what they quote."""
    for name in ("py4j", "DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _uri(path: Path) -> str:
    return f"file://{path}"  # Hadoop takes a path as it is, without %20


@contextmanager
def _harmless(sentence: str) -> Iterator[None]:
    """Spark's errors as a sentence that quotes nothing."""
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
    except ImportError:
        raise InputError(INSTALL) from None
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise InputError(_reason(error, sentence)) from None


def _reason(error: BaseException, sentence: str) -> str:
    text = str(error)
    for sign, reason in (
        ("OutOfMemory", "Spark ran out of memory; raise the memory limit"),
        ("No space left", f"{sentence}: the disk is full"),
        ("is not a Parquet file", f"{sentence}: it is no intact Parquet file"),
        ("CANNOT_READ_FILE", f"{sentence}: it is no intact Parquet file"),
        ("Py4JNetworkError", "Spark ended before its answer; it may have run out of memory"),
    ):
        if sign in f"{type(error).__name__} {text}":
            return reason
    return f"{sentence}: the library reported {type(error).__name__}"
