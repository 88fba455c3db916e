"""Parquet files and folders of them as a relation: their files, their columns, and the columns' names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.paths import PLAIN, exactly
from anon_pipeline.engine.sql import quoted
from anon_pipeline.engine.text_files import NamesDifferByCapitals, distinct_names, told_apart
from anon_pipeline.errors import InputError, OfSource
from anon_pipeline.home import sha256_of
from anon_pipeline.spec import Source
from anon_pipeline.spec.locations import ICEBERG_METADATA
from anon_pipeline.spec.permission import refuse_private

#: Endings of tables that a folder of Parquet files may hold beside them, unread.
OTHER_TABLES = {".arrow", ".csv", ".dta", ".feather", ".gz", ".json", ".jsonl", ".ods", ".parq", ".pq", ".sav", ".tsv"}
OTHER_TABLES |= {".parquet", ".xls", ".xlsx", ".zip"}
#: Two files with fewer rows may be of different people, and equal by chance.
ROWS_OF_A_COPY = 10


@contextmanager
def parquet_relation(
    connection: duckdb.DuckDBPyConnection, source: Source, path: Path, label: str
) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """The rows of a Parquet file, or of all such files in a folder, and the files.

    Raises
    ------
    InputError
        For a folder without files, with one that is broken, put aside or a copy of another, or whose files differ in
        columns or types and may not, naming file and column.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{label}: the folder holds no .parquet file")
    if path.is_dir():
        refuse_table((file.relative_to(path).as_posix() for file in path.rglob("*.json")), label)
        refuse_put_aside((file.relative_to(path).as_posix() for file in files), label)
    for file in files:
        refuse_private(file, label)  # a link may lead there
    if path.is_dir():
        _refuse_broken(files, path, label)
        _refuse_copies(files, path, source.partitions, label)
    if path.is_dir() and not source.union_by_name:
        _refuse_files_that_differ(files, path, label)
    _refuse_names_that_wander(files, label)
    if source.partitions and "=" in str(path.absolute()):
        raise InputError(f"source.partitions: the path to {label} has a = itself, which would be a column; move it")
    options = "hive_partitioning=true, hive_types_autocast=false" if source.partitions else PLAIN
    with exactly(*files) as places:
        relation = f"read_parquet([{', '.join(places)}], union_by_name=true, {options})"
        yield renamed(connection, relation, () if source.partitions else tuple(files), source, label)


def ordered_categories(path: Path) -> dict[str, tuple[str, ...]]:
    """The categories of every column that a file states as ordered, lowest first, as pandas, Arrow and R write them.

    Polars states an order too, but its files hold the categories as they come.
    """
    file = pq.ParquetFile(path)
    ordered = [
        field.name
        for field in file.schema_arrow
        if pa.types.is_dictionary(field.type)
        and field.type.ordered
        and pa.types.is_string(field.type.value_type)
        and not field.metadata
    ]
    if not ordered or not file.num_row_groups:
        return {}
    rows = file.read_row_group(0, columns=ordered)
    found = {name: tuple(rows.column(name).combine_chunks().dictionary.to_pylist()) for name in ordered}
    return {name: categories for name, categories in found.items() if len(categories) > 1}


def unread_tables(folder: Path) -> list[str]:
    """The files below a folder that seem to be tables and are not read as its Parquet files, `MAY.PARQUET` as well."""
    files = (file for file in folder.rglob("*") if file.suffix.lower() in OTHER_TABLES and file.is_file())
    return sorted(file.relative_to(folder).as_posix() for file in files if file.suffix != ".parquet")


def empty_columns(path: Path) -> list[str]:
    """The columns in which no row of a file has a value, as far as its footer counts missing ones."""
    file = pq.ParquetFile(path).metadata
    filled: dict[str, bool] = {}
    for group in range(file.num_row_groups):
        for place in range(file.num_columns):
            column = file.row_group(group).column(place)
            counted = column.statistics is not None and column.statistics.has_null_count
            is_empty = counted and column.statistics.null_count == column.num_values
            filled[column.path_in_schema] = filled.get(column.path_in_schema, False) or not is_empty
    return [name for name, has_value in filled.items() if not has_value]


def refuse_table(below: Iterable[str], label: str) -> None:
    """Refuse a folder in which a table keeps its states: its Parquet files also hold people who were removed.

    Parameters
    ----------
    below : the files of the folder, relative to it

    Raises
    ------
    InputError
        If the folder holds the description of a Delta Lake or an Iceberg table.
    """
    for name in below:
        *within, file = name.split("/")
        if within[-1:] == ["_delta_log"]:
            raise InputError(f"{label}: is a Delta Lake table, whose files hold former rows, too; say source.delta")
        if within[-1:] == ["metadata"] and file.endswith(ICEBERG_METADATA):
            raise InputError(f"{label}: is an Iceberg table, whose files hold former rows, too; say source.iceberg")


def renamed(
    connection: duckdb.DuckDBPyConnection, relation: str, files: tuple[Path, ...], source: Source, label: str
) -> tuple[str, tuple[Path, ...]]:
    """The relation with the spec's names for its columns, and the files if they have the same names."""
    if not source.rename:
        for file in files[:1]:
            check_names(label, pq.read_schema(file).names)
        return relation, files
    described = [row[0] for row in connection.execute(f"DESCRIBE FROM {relation}").fetchall()]
    schemas = [pq.read_schema(file).names for file in files]
    same = bool(schemas) and all(names == schemas[0] for names in schemas)
    in_file = schemas[0] if same else described  # DuckDB renames what stands twice
    names = distinct_names(in_file, source.rename, label, "its schema")
    return f"(SELECT * FROM {relation} AS field({', '.join(map(quoted, names))}))", ()


def _refuse_names_that_wander(files: Sequence[Path], label: str) -> None:
    """Refuse columns that differ by capitals only and come in different orders, since DuckDB would mix them up.

    Raises
    ------
    InputError
        Where there are such columns, and the files do not have all of them in one order.
    """
    schemas = [pq.read_schema(file).names for file in files]
    everywhere = list(dict.fromkeys(name for names in schemas for name in names))
    if told_apart(everywhere) and any(names != schemas[0] for names in schemas):
        raise InputError(
            f"{label}: has columns that differ by capitals only, and not in the same places of all its files; write "
            "the files with one order of columns, or call these columns otherwise in them"
        )


def refuse_put_aside(below: Iterable[str], label: str) -> None:
    """Refuse files that programs have put aside, by the names that Spark, Hive and Arrow pass over: `_temporary/...`.

    They hold people of other files once more, while these are written or copied. Nobody would count them once: classes
    of k rows would be of fewer people. To pass over them without a word would lose the people of a file with such a
    name.

    Parameters
    ----------
    below : the Parquet files of a folder, relative to it

    Raises
    ------
    InputError
        Naming the first such file.
    """
    for name in below:
        if any(part.startswith((".", "_")) for part in name.split("/")):
            raise InputError(
                f"{label}: holds {name}, whose name begins with . or _ as those of files do that are half written or "
                "were put aside; remove it, or call it otherwise if its rows are further people"
            )


def _refuse_broken(files: Sequence[Path], folder: Path, label: str) -> None:
    """Name the file of a folder that cannot be read; DuckDB's message of it may hold values of people."""
    for file in files:
        name = file.relative_to(folder)
        if not file.exists():
            raise InputError(f"{label}: {name} is a link that leads nowhere; remove it")
        try:
            pq.read_schema(file)
        except pa.ArrowInvalid:
            raise InputError(
                f"{label}: cannot be read: {name} is no intact Parquet file; remove it, or write it again"
            ) from None


def _refuse_copies(files: Sequence[Path], folder: Path, partitions: bool, label: str) -> None:
    """Refuse a file with the bytes of another one, whose people would be read twice, and be counted as further ones.

    In folders that are columns (`year=2023`), equal files of two folders are of different people.
    """
    alike: dict[tuple[int, tuple[str, ...]], list[Path]] = {}
    for file in files:
        within = file.relative_to(folder).parts[:-1]
        values = tuple(part for part in within if partitions and "=" in part)
        alike.setdefault((file.stat().st_size, values), []).append(file)
    for group in alike.values():
        first: dict[str, Path] = {}
        for file in group if len(group) > 1 else ():
            if pq.read_metadata(file).num_rows < ROWS_OF_A_COPY:
                continue
            other = first.setdefault(sha256_of(file), file)
            if other is not file:
                here, there = (place.relative_to(folder).as_posix() for place in (file, other))
                raise InputError(
                    f"{label}: {here} is a copy of {there}, byte for byte, whose people would count twice; remove one "
                    "of them, or write them as one file if its rows are further people"
                )


def check_names(label: str, names: Sequence[str], rename: Mapping[str, str] = MappingProxyType({})) -> None:
    """Refuse a name that stands twice in a schema or a query, whose names are never a person's values.

    Raises
    ------
    InputError
        `NamesDifferByCapitals` where names differ by capitals only.
    """
    called = [rename.get(name, name) for name in names]
    new = told_apart(called) if len(set(names)) == len(names) else {}
    if new:
        proposed = {name: new[other] for name, other in zip(names, called, strict=True) if other in new}
        listed = ", ".join(f"{name}: {other}" for name, other in proposed.items())
        raise NamesDifferByCapitals(
            f"{label}: has columns whose names differ by capitals only, which do not tell columns apart in SQL; call "
            f"one otherwise, as in source.rename: {{{listed}}}",
            proposed,
        )
    plain = [name.casefold() for name in called]
    twice = sorted({name for name in called if plain.count(name.casefold()) > 1})
    if twice:
        raise InputError(
            f"{label}: the columns {', '.join(twice)} stand twice (capitals do not tell columns apart); "
            "call one of them otherwise (source.rename), or drop it"
        )


def _refuse_files_that_differ(files: Sequence[Path], folder: Path, label: str) -> None:
    first = {field.name: field.type for field in pq.read_schema(files[0])}
    remedy = "correct it, or say so if that is as it should be"
    for file in files[1:]:
        here, there = str(file.relative_to(folder)), str(files[0].relative_to(folder))
        schema: dict[str, pa.DataType] = {field.name: field.type for field in pq.read_schema(file)}
        for columns, others, has, lacks in ((schema, first, here, there), (first, schema, there, here)):
            for name in columns:
                if name not in others:
                    raise OfSource(
                        "union_by_name", f"{label}: {has} has the column {name}, which {lacks} has not; {remedy}"
                    )
        for name, kind in schema.items():
            type_here, type_there = _plain_type(kind), _plain_type(first[name])
            if type_here != type_there and not pa.types.is_null(type_here) and not pa.types.is_null(type_there):
                raise OfSource(
                    "union_by_name",
                    f"{label}: the column {name} is {type_here} in {here} and {type_there} in {there}; {remedy}",
                )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values; a dictionary of texts counts as texts, and large texts too."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind
