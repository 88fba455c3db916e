"""The exact sums under a question, in SQL: whole numbers per group, to which no row or person adds more than stated.

At most m rows of a person count in a group. A person with more rows there adds m times the mean of their own rows. A
person who is in more groups than are counted adds to the groups that come first in a hash of person and group. Both
depend on that person's rows alone, so that one more person does not change what others add. Each engine has its own
hash, so two engines may keep different groups of a person, but equally many. People without an identifier are not
counted, since nothing could bound what they add. The sums are exact and secret; noise is added in `answering`.
"""

from __future__ import annotations

from dataclasses import dataclass

from anon_pipeline.differential_privacy import reading
from anon_pipeline.differential_privacy.statement import Among, Compare, Joined, Missing, Negated, Predicate, Statement
from anon_pipeline.engine.sql import literal
from anon_pipeline.engine.typed import Reader
from anon_pipeline.spec import DifferentialPrivacy, PersonUnit, ReleaseSpec

#: Columns of the results: groups, rows, people, and per column rows with a value and the sum of its codes.
ROWS, PEOPLE, CODE = "rows", "people", "code"


def group_name(place: int) -> str:
    return f"group{place}"


def known_name(place: int) -> str:
    return f"known{place}"


def sum_name(place: int) -> str:
    return f"sum{place}"


@dataclass(frozen=True)
class Source:
    """The inputs of a query: a reader, the relation to select from, and the policy."""

    reader: Reader
    relation: str
    spec: ReleaseSpec

    @property
    def asked(self) -> DifferentialPrivacy:
        return reading.asked_of(self.spec)


def totals(source: Source, statement: Statement, columns: list[str]) -> str:
    """The query of totals per group that has rows: rows, people, and per column known rows and the sum of codes."""
    groups = [group_name(place) for place in range(len(statement.groups))]
    values = [f"value{place}" for place in range(len(columns))]
    rows = _rows(source, statement, dict(zip(values, columns, strict=True)))
    per_column = [
        part
        for place, value in enumerate(values)
        for part in (f"count({value}) AS {known_name(place)}", f"coalesce(sum({value}), 0) AS {sum_name(place)}")
    ]
    unit = source.asked.unit
    if not isinstance(unit, PersonUnit):
        select = [*groups, f"count(*) AS {ROWS}", *(_whole(part) for part in per_column)]
        return f"SELECT {', '.join(select)} FROM ({rows}) AS person{_grouped(groups)}"
    keys = ["person", *groups]
    pairs = f"SELECT {', '.join([*keys, f'count(*) AS {ROWS}', *per_column])} FROM ({rows}) AS one{_grouped(keys)}"
    chosen = _chosen_groups(source.reader, pairs, groups, unit.groups)
    most = unit.rows
    select = [*groups, f"CAST(sum(least({ROWS}, {most})) AS BIGINT) AS {ROWS}", f"count(*) AS {PEOPLE}"]
    for place, name in enumerate(columns):
        known, summed = known_name(place), sum_name(place)
        share = f"floor(CAST({summed} AS DOUBLE) * {most} / nullif({known}, 0) + 0.5)"
        largest = most * max(0, source.asked.domains[name].size - 1)
        bounded = f"CASE WHEN {known} <= {most} THEN {summed} ELSE least(CAST({share} AS BIGINT), {largest}) END"
        select += [f"CAST(sum(least({known}, {most})) AS BIGINT) AS {known}"]
        select += [f"CAST(sum({bounded}) AS BIGINT) AS {summed}"]
    return f"SELECT {', '.join(select)} FROM ({chosen}) AS pair{_grouped(groups)}"


def histogram(source: Source, statement: Statement, column: str) -> str:
    """The query of a histogram: the rows of each group at each place on the column's grid."""
    groups = [group_name(place) for place in range(len(statement.groups))]
    rows = f"SELECT * FROM ({_rows(source, statement, {CODE: column})}) AS one WHERE {CODE} IS NOT NULL"
    keys = [*groups, CODE]
    unit = source.asked.unit
    if not isinstance(unit, PersonUnit):
        return f"SELECT {', '.join(keys)}, count(*) AS {ROWS} FROM ({rows}) AS person{_grouped(keys)}"
    keys = ["person", *keys]
    triples = f"SELECT {', '.join(keys)}, count(*) AS {ROWS} FROM ({rows}) AS one{_grouped(keys)}"
    chosen = _chosen_groups(source.reader, triples, groups, unit.groups)
    # A hash of the value chooses the rows of a person that count, so that neither small nor large values are favoured.
    order = f"{source.reader.hashed(['person', CODE])}, {CODE}"
    before = (
        f"coalesce(sum({ROWS}) OVER (PARTITION BY {', '.join(['person', *groups])} "
        f"ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)"
    )
    left = f"SELECT {', '.join([*groups, CODE])}, {ROWS}, {before} AS counted FROM ({chosen}) AS triple"
    return (
        f"SELECT {', '.join([*groups, CODE])}, "
        f"CAST(sum(least({ROWS}, {unit.rows} - counted)) AS BIGINT) AS {ROWS} "
        f"FROM ({left}) AS kept WHERE counted < {unit.rows}{_grouped([*groups, CODE])}"
    )


def _rows(source: Source, statement: Statement, values: dict[str, str]) -> str:
    """The query of the rows that a question is about: person, groups and values, as codes of their public domains."""
    asked, spec, reader = source.asked, source.spec, source.reader
    storage = reading.columns_present(reader, source.relation, spec)
    missing = spec.source.missing

    def code(name: str) -> str:
        return reading.code(reader, name, asked.domains[name], storage[name], missing)

    def number(name: str) -> str:
        """The code to be added up; a text that nobody listed has none, and counts only as known or missing."""
        return f"CASE WHEN {code(name)} IS NOT NULL THEN 0 END" if asked.domains[name].unknown else code(name)

    select = [f"{code(name)} AS {group_name(place)}" for place, name in enumerate(statement.groups)]
    select += [f"{number(name)} AS {alias}" for alias, name in values.items()]
    where = []
    if asked.person is not None:
        person = reading.identifier(asked.person, storage[asked.person], missing)
        select.append(f"{person} AS person")
        where.append(f"{person} IS NOT NULL")
    if statement.where is not None:
        where.append(_condition(statement.where, asked, reader, storage, missing))
    kept = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {', '.join(select) or '1 AS nothing'} FROM {source.relation}{kept}"


def _chosen_groups(reader: Reader, pairs: str, groups: list[str], most: int) -> str:
    """The query of each person's first `most` groups in the order of a hash; of all people where nothing is grouped."""
    if not groups:
        return pairs
    order = ", ".join([reader.hashed(["person", *groups]), *groups])
    ranked = f"SELECT *, dense_rank() OVER (PARTITION BY person ORDER BY {order}) AS place FROM ({pairs}) AS every"
    return f"SELECT * FROM ({ranked}) AS ranked WHERE place <= {most}"


def _condition(
    predicate: Predicate, asked: DifferentialPrivacy, reader: Reader, storage: dict[str, str], missing: tuple[str, ...]
) -> str:
    def condition_of(part: Predicate) -> str:
        return _condition(part, asked, reader, storage, missing)

    if isinstance(predicate, Negated):
        return f"(NOT {condition_of(predicate.of)})"
    if isinstance(predicate, Joined):
        return f"({condition_of(predicate.left)} {predicate.by} {condition_of(predicate.right)})"
    name = predicate.column
    value = reading.value(reader, name, asked.domains[name], storage[name], missing)
    if isinstance(predicate, Missing):
        return f"({value} IS NULL)"
    if isinstance(predicate, Among):
        return f"({value} IN ({', '.join(map(_constant, predicate.values))}))"
    if isinstance(predicate, Compare):
        return f"({value} {predicate.operator} {_constant(predicate.value)})"
    raise AssertionError(predicate)


def _constant(value: str | float) -> str:
    return literal(value) if isinstance(value, str) else f"CAST({value!r} AS DOUBLE)"


def _whole(part: str) -> str:
    expression, _, name = part.rpartition(" AS ")
    return f"CAST({expression} AS BIGINT) AS {name}"


def _grouped(keys: list[str]) -> str:
    return f" GROUP BY {', '.join(keys)}" if keys else ""


def columns_of(statement: Statement) -> list[str]:
    """The columns whose codes are summed, without those of quantiles."""
    kinds = ("known", "sum", "mean")
    return list(dict.fromkeys(str(statistic.column) for statistic in statement.statistics if statistic.kind in kinds))
