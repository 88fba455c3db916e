"""The sensitive columns of a text file from anywhere: as numbers or dates where all their fields are.

A run reads its source as the spec says (`anon_pipeline.engine.stated`). The file that is judged may be written as that
source is, or as SQL writes values, as `releases export` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import duckdb

from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.stated import stated_value
from anon_pipeline.engine.typed import OpenSource, Reader, detected
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Column, ColumnType, Source

#: The keys of a source that say how single values are written.
OF_VALUES = ("missing", "decimal", "thousands", "symbols")
#: No decimal of an engine has more digits.
MOST_DIGITS = 38


def with_values_of(written: Source, source: Source) -> Source:
    """How a text file is written, with numbers and texts for "not known" as the source of a spec has them."""
    return written.model_copy(update={key: getattr(source, key) for key in OF_VALUES})


def with_measured(
    connection: duckdb.DuckDBPyConnection, reader: Reader, rows: str, written: Source, measured: Mapping[str, Column]
) -> str:
    """The rows of a text file, with columns as numbers or dates if all their fields are; other fields stay texts.

    Parameters
    ----------
    written : how the spec says that numbers, and texts for "not known", are written in its source
    measured : the columns whose values have an order, as the spec has them; names that the file lacks are ignored
    """
    names = [row[0] for row in connection.execute(f"DESCRIBE FROM {rows}").fetchall() if row[0] in measured]
    markers = {name: (*written.missing, *measured[name].missing) for name in names}
    rows = _replaced(rows, {name: _known(quoted(name), markers[name]) for name in names if markers[name]})
    opened = OpenSource(rows, written.path)
    return _replaced(
        rows, {name: _as_measured(connection, reader, opened, name, measured[name], written) for name in names}
    )


def _replaced(rows: str, values: Mapping[str, str]) -> str:
    if not values:
        return rows
    return (
        f"(SELECT * REPLACE ({', '.join(f'{value} AS {quoted(name)}' for name, value in values.items())}) FROM {rows})"
    )


def _known(value: str, markers: tuple[str, ...]) -> str:
    return f"CASE WHEN {value} NOT IN ({', '.join(map(literal, markers))}) THEN {value} END"


def _as_measured(
    connection: duckdb.DuckDBPyConnection,
    reader: Reader,
    opened: OpenSource,
    name: str,
    column: Column,
    written: Source,
) -> str:
    """A column as numbers or dates where all its fields are: as SQL writes them, or as the spec says.

    Where both fit, dates are those of SQL, and numbers those of the spec: 1.200 beside 900 is more than that where the
    point divides thousands, and SQL leaves out the zeros of a fraction.
    """
    texts = [quoted(name)]
    with suppress(InputError):  # numbers with several symbols are none
        texts.append(stated_value(connection, opened.relation, written, name, column))
    kinds = [ColumnType.NUMERIC, ColumnType.DATE]
    if column.type is ColumnType.DATE:
        kinds.reverse()  # 31121999 may be a day
    for kind in kinds:
        for text in reversed(texts) if kind is ColumnType.NUMERIC else texts:
            if (value := _read(reader, opened, text, kind, column.type)) is not None:
                return value
    return quoted(name)


def _read(reader: Reader, opened: OpenSource, text: str, kind: ColumnType, stated: ColumnType | None) -> str | None:
    """The numbers or dates that all fields of a column are; None where some are not, or there are none."""
    value = reader.parsed(f"({text})", "DOUBLE" if kind is ColumnType.NUMERIC else "TIMESTAMP")
    other = f"{value} IS NULL"
    if kind is ColumnType.DATE:
        other += f" OR NOT regexp_matches({text}, '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')"
    elif stated is not ColumnType.NUMERIC and detected(reader, opened, text) is not ColumnType.NUMERIC:
        return None  # 00123 is a code
    known = f"({text}) IS NOT NULL"
    counts = f"SELECT count(*) FILTER (WHERE {known} AND ({other})), count({text}) FROM {opened.relation}"
    others, fields = reader.rows(counts)[0]
    if others or not fields:
        return None
    return _exact(reader, opened, text, value) if kind is ColumnType.NUMERIC else value


def _exact(reader: Reader, opened: OpenSource, text: str, value: str) -> str:
    """Numbers as floats, or as decimals where floats take several that differ for one.

    Such a column would seem to have fewer values than it has, so that its diversity was denied.
    """
    digits = f"coalesce(max(length(regexp_extract({text}, '[.]([0-9]*)', 1))), 0)"
    after_point = int(reader.rows(f"SELECT {digits} FROM {opened.relation}")[0][0])
    if after_point >= MOST_DIGITS:
        return value
    exact = f"TRY_CAST(({text}) AS DECIMAL({MOST_DIGITS}, {after_point}))"
    counts = f"count(DISTINCT {value}), count(DISTINCT {exact}), count({value}), count({exact})"
    floats, decimals, known, read = reader.rows(f"SELECT {counts} FROM {opened.relation}")[0]
    return exact if floats < decimals and known == read else value
