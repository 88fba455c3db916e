"""Columns of Parquet files as Spark reads them, with the same values that DuckDB would read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.parquet_files import check_names
from anon_pipeline.engine.spark_sql import backticks
from anon_pipeline.errors import InputError

#: Spark's names of its types, DuckDB's names, and the types in Arrow.
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


@dataclass(frozen=True)
class SparkColumn:
    """A column of Parquet files.

    Attributes
    ----------
    storage : its type in DuckDB's words
    spark : the type to read it as; None where Spark has none
    conversion : an expression that converts it to the type that DuckDB would read
    """

    storage: str
    spark: str | None
    conversion: str = "{}"

    def expression(self, name: str) -> str:
        return "CAST(NULL AS STRING)" if self.spark is None else self.conversion.format(backticks(name))


WHOLE_MICROSECONDS = "timestamp_micros({} div 1000)"

#: Spark reads a UUID as its 16 bytes; this is the text that DuckDB makes of it.
UUID_OF_BYTES = "regexp_replace(lower(hex({})), '^(.{{8}})(.{{4}})(.{{4}})(.{{4}})(.{{12}})$', '$1-$2-$3-$4-$5')"


_COLUMNS = {
    pa.bool_(): SparkColumn("BOOLEAN", "boolean"),
    pa.int8(): SparkColumn("TINYINT", "tinyint"),
    pa.int16(): SparkColumn("SMALLINT", "smallint"),
    pa.int32(): SparkColumn("INTEGER", "int"),
    pa.int64(): SparkColumn("BIGINT", "bigint"),
    pa.uint8(): SparkColumn("UTINYINT", "smallint"),
    pa.uint16(): SparkColumn("USMALLINT", "int"),
    pa.uint32(): SparkColumn("UINTEGER", "bigint"),
    pa.uint64(): SparkColumn("UBIGINT", None),
    pa.float32(): SparkColumn("FLOAT", "float"),
    pa.float64(): SparkColumn("DOUBLE", "double"),
    pa.date32(): SparkColumn("DATE", "date"),
    pa.null(): SparkColumn('"NULL"', "int", "CAST(NULL AS VOID)"),
}


def type_names(spark: str) -> tuple[str, pa.DataType]:
    """DuckDB's name of a Spark type, and the type in Arrow."""
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", spark)
    if decimal:
        return spark.upper(), pa.decimal128(int(decimal[1]), int(decimal[2]))
    array = re.fullmatch(r"array<(.*)>", spark)
    if array:
        storage, inner = type_names(array[1])
        return f"{storage}[]", pa.list_(pa.field("l", inner))  # Arrow's name for an element, as DuckDB has it
    return TYPES[spark]


def _column(type_: pa.DataType, is_int96: bool) -> SparkColumn:
    if pa.types.is_dictionary(type_):
        return _column(type_.value_type, is_int96)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return SparkColumn("VARCHAR", "string")
    if pa.types.is_timestamp(type_):
        return _moment(type_, is_int96)
    if pa.types.is_decimal(type_):
        known = type_.precision <= 38
        return SparkColumn(
            f"DECIMAL({type_.precision},{type_.scale})", f"decimal({type_.precision},{type_.scale})" if known else None
        )
    if isinstance(type_, pa.BaseExtensionType):
        named = type_.extension_name.removeprefix("arrow.").upper()
        return SparkColumn("UUID", "binary", UUID_OF_BYTES) if named == "UUID" else SparkColumn(named, None)
    if pa.types.is_duration(type_):  # Parquet has no type for them, and files their whole numbers
        return _column(pa.int64(), is_int96)
    if pa.types.is_time(type_):
        return SparkColumn("TIME", None)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        inner = _column(type_.value_type, False)
        conversion = "array_repeat(CAST(NULL AS VOID), size({}))" if pa.types.is_null(type_.value_type) else "{}"
        plain = inner.conversion in ("{}", "CAST(NULL AS VOID)") and inner.spark is not None
        return SparkColumn(f"{inner.storage}[]", f"array<{inner.spark}>" if plain else None, conversion)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return SparkColumn("BLOB", None)
    return _COLUMNS.get(type_, SparkColumn(str(type_).split("<")[0].upper(), None))


def _moment(type_: pa.DataType, is_int96: bool) -> SparkColumn:
    if is_int96:  # the old way of writing them, without a word on time zones
        return SparkColumn("TIMESTAMP", "timestamp", "CAST({} AS TIMESTAMP_NTZ)")
    zoned = type_.tz is not None
    storage = "TIMESTAMP WITH TIME ZONE" if zoned else "TIMESTAMP"
    if type_.unit != "ns":
        return SparkColumn(storage, "timestamp" if zoned else "timestamp_ntz")
    return SparkColumn(
        storage, "bigint", WHOLE_MICROSECONDS if zoned else f"CAST({WHOLE_MICROSECONDS} AS TIMESTAMP_NTZ)"
    )


def columns_of(file: Path) -> dict[str, SparkColumn]:
    """The columns of a Parquet file, as Spark reads them."""
    with pq.ParquetFile(file) as opened:
        leaves = (opened.schema.column(number) for number in range(len(opened.schema)))
        int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
        return {field.name: _column(field.type, field.name in int96) for field in opened.schema_arrow}


def columns_of_all(files: Sequence[Path], label: str, kept: set[str]) -> dict[str, SparkColumn]:
    """The columns of several files, each of which may lack some. Columns that are not used are not read.

    Raises
    ------
    InputError
        For a file that Spark would leave out, or a column that it cannot read as one type.
    """
    columns: dict[str, SparkColumn] = {}
    for file in files:
        if file.name.startswith(("_", ".")) and len(files) > 1:
            raise InputError(
                f"{label}: Spark would leave out {file.name} and other files whose name starts with _ or a dot; "
                "rename them, or use --engine duckdb"
            )
        for name, column in columns_of(file).items():
            if name not in kept:
                column = SparkColumn(column.storage, None)
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
