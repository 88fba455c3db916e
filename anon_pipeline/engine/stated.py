"""Applies a spec's statements on how values are written: numbers, dates, missing markers, and which rows count.

This happens before an engine types a column, so that both engines read the same fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from anon_pipeline.engine.account_negatives import EXAMPLE, with_usual_sign
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.typed import MOMENTS, is_ordered
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Column, ColumnType, Source

#: The parts that a condition may have, by DuckDB's names.
PARTS = {"COLUMN_REF", "CONSTANT", "COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN", "FUNCTION", "CAST", "TYPE"}
#: The types to which a condition may convert a value; none depends on the machine, as a time zone does.
TYPES = {"BOOLEAN", "INTEGER", "BIGINT", "DECIMAL", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP"}
#: The functions that a condition may call; they depend on the row alone.
FUNCTIONS = {"lower", "upper", "trim", "length", "abs", "round", "year", "month", "day", "substr", "substring", "left"}
FUNCTIONS |= {"right", "contains", "starts_with", "coalesce", "~~", "!~~", "~~*", "!~~*", "+", "-", "*", "/", "%", "||"}
#: Replaces a value that is not written as the spec states for numbers; it cannot be read as a number.
NO_NUMBER = "no number as stated"
#: The blanks that may stand between a number and its currency or unit.
BLANKS = " \u00a0\u202f"
TEXTS = ("VARCHAR", "ENUM")
#: Types of which one value has several texts: 2000-01-01 is 2000-01-01 00:00:00, and letters of a UUID may be capital.
WRITTEN_IN_SEVERAL_WAYS = {*MOMENTS, "TIME", "UUID"}


def as_stated(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    source: Source,
    columns: Mapping[str, Column],
    by_itself: bool = False,
) -> str:
    """The relation with numbers and dates as SQL writes them, without the rows that `source.where` leaves out.

    Parameters
    ----------
    by_itself : whether each value is read by itself, whatever stands in other rows

    Raises
    ------
    InputError
        For a condition that cannot be parsed, or that does not fit these columns; for a column of numbers with several
        of the symbols.
    """
    storage = {row[0]: row[1] for row in connection.execute(f"DESCRIBE FROM {relation}").fetchall()}
    among = {kind: _values_among(connection, source.missing, kind) for kind in set(storage.values())}
    plain = {
        name: _plain(
            connection, relation, source, name, storage[name], columns.get(name), among[storage[name]], by_itself
        )
        for name in storage
    }
    changed = {name: value for name, value in plain.items() if value != quoted(name)}
    if changed:
        replaced = ", ".join(f"{value} AS {quoted(name)}" for name, value in changed.items())
        relation = f"(SELECT * REPLACE ({replaced}) FROM {relation})"
    return relation if source.where is None else _filtered(connection, relation, source, storage, columns)


def stated_value(
    connection: duckdb.DuckDBPyConnection, relation: str, source: Source, name: str, column: Column
) -> str:
    """A column of texts with numbers and dates as SQL writes them, read together as `as_stated` reads a source.

    Raises
    ------
    InputError
        For a column of numbers with several of the symbols.
    """
    return _plain(connection, relation, source, name, "VARCHAR", column, (), by_itself=False)


def number_pattern(decimal: str, thousands: str | None, symbols: Sequence[str] = ()) -> str:
    """A regular expression for numbers written so; all digits are grouped in threes, or none are.

    A symbol may stand before a number, on either side of its sign, and after it, next to it or after a blank.
    """
    grouped = f"[0-9]{{1,3}}([{thousands}][0-9]{{3}})+|" if thousands else ""
    number = f"(({grouped}[0-9]+)([{decimal}][0-9]*)?|[{decimal}][0-9]+)([eE][+-]?[0-9]+)?"
    if not symbols:
        return f"[+-]?{number}"
    symbol = "|".join(re.escape(symbol) for symbol in _longest_first(symbols))
    return f"([+-]?(({symbol})[{BLANKS}]?)?|({symbol})[{BLANKS}]?[+-]){number}([{BLANKS}]?({symbol}))?"


def plain_number(value: str, decimal: str, thousands: str | None, symbols: Sequence[str] = ()) -> str:
    """SQL that converts a text written so to a number as SQL writes it."""
    plain = f"trim({value})"
    for left_out in [*_longest_first(symbols), *(BLANKS if symbols else ()), *([thousands] if thousands else ())]:
        plain = f"replace({plain}, {literal(left_out)}, '')"
    return plain if decimal == "." else f"replace({plain}, {literal(decimal)}, '.')"


def _longest_first(symbols: Sequence[str]) -> list[str]:
    """The symbols so that none comes after a part of itself: US$ before $."""
    return sorted(symbols, key=lambda symbol: (-len(symbol), symbol))


def _plain(  # noqa: PLR0913 (what the spec says of a column, and the rows that it may look at)
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    source: Source,
    name: str,
    storage: str,
    column: Column | None,
    missing: tuple[str, ...],
    by_itself: bool,
) -> str:
    """A column as SQL writes it; `missing` are the values of its type that stand for "not known" in every column."""
    value = quoted(name)
    is_text = storage.startswith(TEXTS)
    missing += () if column is None else column.missing
    if missing:
        same = f"{value}::VARCHAR IN ({', '.join(map(literal, missing))})"
        if not is_text and storage != "BOOLEAN":  # true is not the number 1
            same += "".join(
                f" OR TRY_CAST({value} AS DOUBLE) = TRY_CAST({literal(marker)} AS DOUBLE)" for marker in missing
            )
        if storage in WRITTEN_IN_SEVERAL_WAYS:  # as moments of midnight are, which pandas makes of all days
            same += "".join(f" OR {value} = TRY_CAST({literal(marker)} AS {storage})" for marker in missing)
        value = f"CASE WHEN ({same}) IS NOT TRUE THEN {value} END"
    if column is not None and column.format is not None and (is_text or "INT" in storage):
        formats = ", ".join(literal(date_format) for date_format in column.format)
        moment = f"try_strptime(trim({value}::VARCHAR), [{formats}])"
        return f"coalesce(strftime({moment}, '%Y-%m-%d %H:%M:%S.%f'), {value}::VARCHAR)"
    kind = None if column is None else column.type
    stated = source.decimal is not None or source.thousands is not None or source.symbols
    if not stated or not is_text or kind not in (None, ColumnType.NUMERIC):
        return value
    written = (source.decimal or ".", source.thousands, source.symbols)
    pattern = literal(number_pattern(*written))
    known = f"{value} NOT IN ({', '.join(literal(marker) for marker in ('', *source.missing))})"
    if kind is None and by_itself:
        return value
    if not by_itself and len(source.symbols) > 1 and _has_several(connection, relation, value, source.symbols):
        if kind is None:
            return value
        raise InputError(
            f"columns.{name}: holds numbers with more than one of source.symbols, which are no numbers of one kind; "
            "convert them first, or give the column the type categorical"
        )
    if kind is None:  # a column is of numbers where all its values are
        other = f"{known} AND NOT regexp_full_match(trim({value}), {pattern})"
        if connection.execute(f"SELECT 1 FROM {relation} WHERE {other} LIMIT 1").fetchone() is not None:
            return value
    number = plain_number(value, *written)
    of_accounts = f"regexp_full_match({with_usual_sign(value)}, {pattern})"
    return (
        f"CASE WHEN {known} THEN CASE WHEN regexp_full_match(trim({value}), {pattern}) THEN {number} "
        f"WHEN {of_accounts} THEN {literal(EXAMPLE)} ELSE {literal(NO_NUMBER)} END ELSE {value} END"
    )


def _values_among(connection: duckdb.DuckDBPyConnection, markers: Sequence[str], storage: str) -> tuple[str, ...]:
    """Those of some texts that may be values of a column that is none of texts, as -9 may be.

    The engine itself sees to columns of texts.
    """
    if not markers or not (is_ordered(storage) or storage == "BOOLEAN" or storage in WRITTEN_IN_SEVERAL_WAYS):
        return ()
    tried = ", ".join(f"TRY_CAST({literal(marker)} AS {storage}) IS NOT NULL" for marker in markers)
    (possible,) = connection.execute(f"SELECT {tried}").fetchall()
    return tuple(marker for marker, is_possible in zip(markers, possible, strict=True) if is_possible)


def _has_several(connection: duckdb.DuckDBPyConnection, relation: str, value: str, symbols: Sequence[str]) -> bool:
    """Whether numbers of a column carry different symbols, such as amounts in two currencies."""
    symbol = f"regexp_extract({value}, {literal('|'.join(map(re.escape, _longest_first(symbols))))})"
    found = connection.execute(f"SELECT count(DISTINCT nullif({symbol}, '')) FROM {relation}").fetchone()
    return found is not None and found[0] > 1


def _filtered(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    source: Source,
    storage: Mapping[str, str],
    columns: Mapping[str, Column],
) -> str:
    """The rows that meet the condition; it sees numbers as numbers, dates as dates, and markers and NaN as missing.

    DuckDB 2.0 answers comparisons from the bounds of a Parquet file's numbers, and NaN is not in these: in a file of
    ones and NaN all values would seem to be 1.
    """
    condition = _parsed_condition(connection, str(source.where))
    markers = ", ".join(literal(marker) for marker in ("", *source.missing))
    seen = []
    for name, kind in storage.items():
        value = quoted(name)
        if kind.startswith(TEXTS):
            value = f"CASE WHEN {value}::VARCHAR NOT IN ({markers}) THEN {value}::VARCHAR END"
            stated = columns[name].type if name in columns else None
            if stated in (ColumnType.NUMERIC, ColumnType.DATE):
                kind = "DOUBLE" if stated is ColumnType.NUMERIC else "TIMESTAMP"
                value = f"TRY_CAST({value} AS {kind})"
        if kind in ("FLOAT", "DOUBLE"):
            value = f"CASE WHEN isfinite({value}) OR isinf({value}) THEN {value} END"
        seen.append(f"{value} AS {quoted(name)}")
    # The original values are kept beside those that the condition sees, under names that no column has.
    longer = "#kept" + "_" * max(map(len, storage))
    kept = [f"{quoted(name)} AS {quoted(f'{longer}{place}')}" for place, name in enumerate(storage)]
    back = ", ".join(f"{quoted(f'{longer}{place}')} AS {quoted(name)}" for place, name in enumerate(storage))
    filtered = f"(SELECT {back} FROM (SELECT {', '.join([*seen, *kept])} FROM {relation}) WHERE {condition})"
    try:
        connection.execute(f"DESCRIBE FROM {filtered}")
    except duckdb.Error:
        raise InputError(
            "source.where: names a column that the source (or a population, from which it selects as well) has not, "
            "or compares what cannot be compared; a column without a type is a text"
        ) from None
    return filtered


def _parsed_condition(connection: duckdb.DuckDBPyConnection, condition: str) -> str:
    """The condition as DuckDB has parsed it, if it depends on columns and nothing else.

    Raises
    ------
    InputError
        For a text that is no single condition, or that depends on more than the row.
    """
    example = "write one, for example age >= 18 AND consent = 'yes'"
    ((parsed,),) = connection.execute(
        "SELECT json_serialize_sql(?::VARCHAR)", [f"SELECT 1 WHERE ({condition}\n)"]
    ).fetchall()
    tree: dict[str, Any] = json.loads(parsed)
    if tree["error"] or len(tree["statements"]) != 1:
        raise InputError(f"source.where: is no condition; {example}")
    node = tree["statements"][0]["node"]
    if node.get("type") != "SELECT_NODE" or node["modifiers"] or node["from_table"]["type"] != "EMPTY":
        raise InputError(f"source.where: is no condition; {example}")
    for part in _expressions(node["where_clause"]):
        function = str(part.get("function_name", "")).casefold()
        if part["class"] not in PARTS or (part["class"] == "FUNCTION" and function not in FUNCTIONS):
            asked = f"calls {function}" if part["class"] == "FUNCTION" else "asks for more than the columns of a row"
            raise InputError(f"source.where: {asked}, which no condition may; {example}")
        if part["class"] == "TYPE" and (part["schema"] or part["type_name"].upper() not in TYPES):
            known = ", ".join(sorted(TYPES))
            raise InputError(f"source.where: converts to {part['type_name'][:50]}; a condition may convert to {known}")
        if part["class"] == "COLUMN_REF" and len(part["column_names"]) != 1:
            raise InputError("source.where: names a column within a table; name the column alone")
    ((written,),) = connection.execute("SELECT json_deserialize_sql(?::JSON)", [json.dumps(tree)]).fetchall()
    return re.sub(r"^SELECT 1 WHERE ", "", str(written)).rstrip(";")


def _expressions(tree: Any) -> Iterator[dict[str, Any]]:
    """All parts of a parsed expression."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "class" in node:
                yield node
            pending += node.values()
        elif isinstance(node, list):
            pending += node
