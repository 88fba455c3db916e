"""Columns with few different texts in a Parquet file, counted by the texts' numbers (DuckDB).

Such a file holds each text once, and for each row the number of its text. DuckDB computes a function of such a column
only once for each text, and it groups by small numbers in half the time that it takes for texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.typed import TypedColumn

#: Fewest rows of a source for which the preparing queries cost less than they save.
FROM_ROWS = 500_000
#: Most texts of a column: they are compared one after another until the right one is found.
MOST_TEXTS = 256


def numbered_texts(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    files: Sequence[str],
    columns: Sequence[TypedColumn],
    missing: Sequence[str],
) -> dict[str, tuple[str, str]]:
    """For each column the number of its text, missing where the text is missing, and the text of a number, in SQL.

    Parameters
    ----------
    files : the files that the relation reads, as SQL literals
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
        # Texts are put into variables of this connection, so that no person's text is part of a query.
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
    """The columns for which all parts of all files have dictionaries of texts; none where the files are small."""
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
