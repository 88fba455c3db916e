"""SQL expressions that several queries of the engine share."""

from __future__ import annotations

from collections.abc import Mapping

from anon_pipeline.engine.session import Session
from anon_pipeline.engine.sql import quoted
from anon_pipeline.tables import Domain

#: Columns of our own beside those of the source, which may have any other names.
PEOPLE, CLASS, CODED = "#people", "#class", "#coded:"


def repeated(session: Session, relation: str, people: str, name: str) -> tuple[int, int]:
    """How many rows share their value of a column with another row, and the most rows with the same value."""
    column = quoted(name)
    shared = f"SELECT {people} AS n FROM {relation} WHERE {column} IS NOT NULL GROUP BY {column} HAVING {people} > 1"
    rows, most = session.rows(f"SELECT coalesce(sum(n), 0), coalesce(max(n), 0) FROM ({shared}) AS shared")[0]
    return int(rows), int(most)


def people_counted(storage: Mapping[str, str]) -> str:
    """How people are counted in a table: rows, unless a row stands for several."""
    return f"sum({quoted(PEOPLE)})" if PEOPLE in storage else "count(*)"


def people_with(people: str, name: str) -> str:
    """The people who have a value of a column."""
    return f"{people} FILTER (WHERE {quoted(name)} IS NOT NULL)"


def key_column(part: int) -> str:
    """The name of a part of the packed key of codes."""
    return f"#key{part}"


def bin_code(domain: Domain, value: str) -> str:
    """The bin of a value by halving, so that 1,000 bins cost ten comparisons."""

    def between(first: int, last: int) -> str:
        if first == last:
            return str(first + 1)
        middle = (first + last) // 2
        left, right = between(first, middle), between(middle + 1, last)
        return f"CASE WHEN {value} <= {number_literal(domain.high[middle].item())} THEN {left} ELSE {right} END"

    return between(0, len(domain.high) - 1) if len(domain.high) else "0"


def number_literal(value: float) -> str:
    """A number as an SQL literal; without an exponent SQL would read a fraction as a decimal, which is rounded."""
    return f"{value!r}" if isinstance(value, int) or "e" in repr(value) else f"{value!r}e0"
