"""The people of a source as a single query: typed, and equal people counted together."""

from __future__ import annotations

from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.engine.session import Session
from anon_pipeline.engine.sql import quoted
from anon_pipeline.engine.typed import OpenSource, TypedPeople
from anon_pipeline.spec import ReleaseSpec, Role


def counted_people(session: Session, source: OpenSource, read: TypedPeople, spec: ReleaseSpec) -> str:
    """A row per distinct person with the number of people in `#people`; where there are identifiers, a row per person.

    People are grouped by the numbers of their texts where the engine has these, and get the texts afterwards.
    """
    names = [quoted(column.name) for column in read.columns]
    keys = {name: column.expression for name, column in zip(names, read.columns, strict=True)}
    values = {name: name for name in names}
    people = "CAST(1 AS BIGINT)"
    grouped = ""
    if not spec.with_role(Role.IDENTIFIER):  # else there is nothing to count together
        for column, (number, text) in session.numbered_texts(source, read.columns, spec.source.missing).items():
            keys[quoted(column)], values[quoted(column)] = number, text
        people = "CAST(count(*) AS BIGINT)"
        grouped = f"GROUP BY {', '.join(names)}"
    typed = f"SELECT {_named(keys)} FROM {read.relation}"
    counted = f"SELECT {', '.join(names)}, {people} AS {quoted(PEOPLE)} FROM ({typed}) AS person {grouped}"
    return f"SELECT {_named(values)}, {quoted(PEOPLE)} FROM ({counted}) AS counted"


def _named(expressions: dict[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())
