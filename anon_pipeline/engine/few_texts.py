"""Texts of which a Parquet file has few different ones, counted by their numbers (DuckDB).

Such a file holds each text once, and numbers that say who has it. DuckDB computes a function of one column once for
each of its texts there, and it groups by small numbers in half the time that texts take.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.typed import TypedColumn

#: Rows of a source below which the questions asked beforehand cost more than they save.
FROM_ROWS = 500_000
#: Texts that a column may have: each is looked at until the right one is found.
MOST_TEXTS = 256


def numbered_texts(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    files: Sequence[str],
    columns: Sequence[TypedColumn],
    missing: Sequence[str],
) -> dict[str, tuple[str, str]]:
    """By column the number of its text, missing where the text is, and the text of a number, both in SQL.

    Parameters
    ----------
    files : what the relation reads, as SQL literals
    missing : texts that stand for "not known"
    """
    once = _kept_once(connection, files)
    markers = ", ".join(literal(marker) for marker in ("", *missing))
    found = {}
    for position, column in enumerate(columns):
        if not column.is_text or column.name not in once:
            continue
        text = quoted(column.name)
        different = f"SELECT DISTINCT {text} AS text FROM {relation} LIMIT {MOST_TEXTS + 1}"
        # Variables of this connection: a text of somebody is no part of a query.
        variable = f"texts{position}"
        connection.execute(f"SET VARIABLE {variable} = (SELECT list(text) FROM ({different}))")
        if _only_value(connection, f"SELECT len(getvariable('{variable}'))") > MOST_TEXTS:
            continue
        known = f"SELECT list(text ORDER BY text) FROM (SELECT unnest(getvariable('{variable}')) AS text)"
        connection.execute(f"SET VARIABLE {variable} = ({known} WHERE text NOT IN ({markers}))")
        if _only_value(connection, f"SELECT len(getvariable('{variable}'))"):
            texts = f"getvariable('{variable}')"
            found[column.name] = (f"list_position({texts}, {text})", f"list_extract({texts}, {text})")
    return found


def _kept_once(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> set[str]:
    """The columns of whose texts all parts of all files have dictionaries; none where the files are small."""
    parts = f"FROM parquet_metadata([{', '.join(files)}])"
    if _only_value(connection, f"SELECT sum(num_values) {parts} WHERE column_id = 0") < FROM_ROWS:
        return set()
    answer = connection.execute(
        f"SELECT path_in_schema {parts} GROUP BY 1 HAVING bool_and(dictionary_page_offset IS NOT NULL)"
    )
    return {name for (name,) in answer.fetchall()}


def _only_value(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    ((value,),) = connection.execute(query).fetchall()
    return int(value or 0)
