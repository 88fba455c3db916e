"""SQL fragments: quoting names and texts, and one unambiguous text per row."""

from __future__ import annotations

from collections.abc import Sequence


def quoted(name: str) -> str:
    """A column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def row_text(values: Sequence[str]) -> str:
    """An SQL expression that joins text expressions so that no two different rows give the same text."""
    parts = [f"CASE WHEN {value} IS NULL THEN '-' ELSE length({value}) || ':' || {value} END" for value in values]
    return "concat(" + ", ".join(parts or ["''"]) + ")"
