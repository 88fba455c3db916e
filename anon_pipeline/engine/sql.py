"""SQL fragments: quoting names and texts."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def float_text(number: str) -> str:
    """A float as a text, a whole one without a point: a column of whole numbers with gaps is often stored as floats.

    Only numbers within 2^53 are rounded: Spark's `floor` makes a whole number, and fails for one beyond 64 bits.
    """
    is_whole = f"floor(least(greatest({number}, -{2**53}e0), {2**53}e0)) = {number}"
    return f"CASE WHEN {is_whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) ELSE CAST({number} AS VARCHAR) END"
