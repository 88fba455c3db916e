"""JSON and Arrow tables as Parquet: columns of plain values with their own types, or JSON values as texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.paths import PACKED, PLAIN, exactly, packing
from anon_pipeline.engine.sql import float_text, literal, quoted
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.spec import Column, ColumnType, Role

#: A list of objects, or one object a line.
JSON_FILES = (".json", ".jsonl", ".ndjson", *(f".{kind}{packed}" for kind in ("jsonl", "ndjson") for packed in PACKED))
#: The end of a moment with an offset from UTC.
WITH_OFFSET = r":[0-9]{2}(\.[0-9]*)?[+-][0-9]{2}(:?[0-9]{2})?\s*$"
ARROW_FILES = (".arrow", ".feather", ".ipc", ".arrows")
#: The first bytes of an Arrow file that is not a stream.
ARROW_HEAD = b"ARROW1"


def store_json(
    connection: duckdb.DuckDBPyConnection, path: Path, destination: Path, names: Sequence[str] | None = None
) -> None:
    """Write the objects of a JSON file as a new Parquet file.

    Parameters
    ----------
    names : the columns to read, each value as the JSON that stands there; an object without one has none. Where absent,
        all are read, and the type of each is decided from all objects
    """
    with exactly(path) as (place,):
        kinds = "" if names is None else ", ".join(f"{literal(name)}: 'JSON'" for name in names)
        columns = "sample_size=-1" if names is None else f"columns={{{kinds}}}"
        rows = f"read_json({place}, {packing(path)}, {columns}, {PLAIN})"
        connection.execute(f"COPY (FROM {rows}) TO {literal(str(destination))} (FORMAT parquet)")


def texts_of_json(connection: duckdb.DuckDBPyConnection, relation: str, decimal: str | None) -> str:
    """The relation with a text in place of each JSON value: whole numbers without a point, others as stated for texts.

    A value is converted without a look at any other.
    """
    return _with_texts(relation, _json_columns(connection, relation), decimal)


def texts_of_mixed(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Mapping[str, Column], decimal: str | None
) -> str:
    """The relation with texts in columns that hold texts and numbers, which mean what they would in a CSV.

    Columns that hold objects or lists stay as they are.

    Raises
    ------
    InputError
        For categories that are partly numbers: numbers alone are stored as such, so that the text of somebody who is
        in no released row would change how everybody is shown.
    """
    mixed = []
    for name in _json_columns(connection, relation):
        kind, column = f"json_type({quoted(name)})", columns.get(name)
        nested, texts, others = connection.execute(
            f"SELECT count(*) FILTER ({kind} IN ('OBJECT', 'ARRAY')), count(*) FILTER ({kind} = 'VARCHAR'), "
            f"count(*) FILTER ({kind} NOT IN ('VARCHAR', 'NULL')) FROM {relation}"
        ).fetchall()[0]
        if nested or (column is not None and column.role is Role.EXCLUDE):
            continue
        if column is not None and column.type is ColumnType.CATEGORICAL and others:
            among = f"{number_of(texts, 'text', 'texts')} among {number_of(others, 'other value', 'other values')}"
            raise InputError(f"columns.{name}: holds {among}; write all of them as texts, or exclude it")
        mixed.append(name)
    return _with_texts(relation, mixed, decimal)


def moments_in_utc(connection: duckdb.DuckDBPyConnection, relation: str, columns: Mapping[str, Column]) -> str:
    """The relation with moments in UTC where texts with an offset are dates, as DuckDB reads a column of such moments.

    Beside a single other text it reads none of them, and everybody's clock would stay as it is.
    """
    texts = [row[0] for row in connection.execute(f"DESCRIBE FROM {relation}").fetchall() if row[1] == "VARCHAR"]
    changed = []
    for name in texts:
        if (column := columns.get(name)) is not None and column.type is ColumnType.DATE:
            value = quoted(name)
            moment = f"TRY_CAST({value} AS TIMESTAMPTZ) AT TIME ZONE 'UTC'"
            changed.append(
                f"CASE WHEN regexp_matches({value}, {literal(WITH_OFFSET)}) "
                f"THEN coalesce(strftime({moment}, '%Y-%m-%d %H:%M:%S.%f'), {value}) ELSE {value} END AS {value}"
            )
    return f"(SELECT * REPLACE ({', '.join(changed)}) FROM {relation})" if changed else relation


def _json_columns(connection: duckdb.DuckDBPyConnection, relation: str) -> list[str]:
    return [row[0] for row in connection.execute(f"DESCRIBE FROM {relation}").fetchall() if row[1] == "JSON"]


def _with_texts(relation: str, names: Sequence[str], decimal: str | None) -> str:
    texts = []
    for name in names:
        value = quoted(name)
        text = f"{value} ->> '$'"
        number = float_text(f"TRY_CAST({text} AS DOUBLE)")
        if decimal not in (None, "."):
            number = f"replace({number}, '.', {literal(str(decimal))})"
        texts.append(f"CASE json_type({value}) WHEN 'DOUBLE' THEN {number} ELSE {text} END AS {quoted(name)}")
    return f"(SELECT * REPLACE ({', '.join(texts)}) FROM {relation})" if texts else relation


def store_arrow(path: Path, destination: Path) -> None:
    """Write the rows of an Arrow IPC file or stream as a new Parquet file, batch by batch."""
    with _arrow(path) as (schema, batches), pq.ParquetWriter(destination, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def arrow_schema(path: Path) -> pa.Schema:
    """The columns of an Arrow IPC file or stream; none where it cannot be read, which is told by who reads its rows."""
    try:
        with _arrow(path) as (schema, _):
            return schema
    except pa.ArrowException:
        return pa.schema([])


@contextmanager
def _arrow(path: Path) -> Iterator[tuple[pa.Schema, Iterable[pa.RecordBatch]]]:
    """The columns of an Arrow IPC file or stream, and its rows."""
    with pa.OSFile(str(path)) as file:
        is_file = file.read(len(ARROW_HEAD)) == ARROW_HEAD
        file.seek(0)
        if is_file:
            reader = pa.ipc.open_file(file)
            yield reader.schema, (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            stream = pa.ipc.open_stream(file)
            yield stream.schema, stream
