"""A table of groups beside the people it was made of, as a single query: a row per group, published or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anon_pipeline.engine.sql import quoted


@dataclass(frozen=True)
class GroupColumns:
    """The columns of a table of groups.

    Attributes
    ----------
    columns : the columns by which people are grouped
    people : the column of counts
    means : for each column of means, the column of the people that is averaged
    largest : how many of the largest contributions to a mean are added up
    known : the grouping columns that readers know of everybody; none where they know all of them, or none
    """

    columns: tuple[str, ...]
    people: str
    means: Mapping[str, str]
    largest: int
    known: tuple[str, ...] = ()


def written_groups(table: GroupColumns, relation: str, numbers: Mapping[str, str]) -> str:
    """The rows of a table of groups: the published figures of each, and no counted ones.

    Parameters
    ----------
    numbers : counts and means as expressions of type DOUBLE
    """
    select = [f"{quoted(name)} AS key{place}" for place, name in enumerate(table.columns)]
    select += [f"{numbers[table.people]} AS people", "CAST(1 AS BIGINT) AS times", "CAST(NULL AS BIGINT) AS counted"]
    for place, name in enumerate(table.means):
        select.append(f"{numbers[name]} AS mean{place}")
        select += [f"CAST(NULL AS DOUBLE) AS {measure}{place}" for measure in MEASURES]
    return f"SELECT {', '.join(select)} FROM {relation}"


#: Figures of a group's known values: their number, their sum, the sum of their sizes, that of the `largest` largest
#: sizes, the largest size, and the sum of the two largest.
MEASURES = ("known", "sum", "size", "largest", "first", "two")


def counted_groups(table: GroupColumns, relation: str, people: str) -> str:
    """The same columns for the people themselves: the counted figures of each group, and no published ones.

    Parameters
    ----------
    people : how many people a row of `relation` stands for, as an expression
    """
    keys = [f"key{place}" for place in range(len(table.columns))]
    select = [f"{quoted(name)} AS {key}" for key, name in zip(keys, table.columns, strict=True)]
    select.append(f"{people} AS people")
    values = [f"CAST({quoted(column)} AS DOUBLE)" for column in table.means.values()]
    for place, value in enumerate(values):
        # The number of people of the group with a larger value; a row may stand for several people.
        window = (
            f"PARTITION BY {', '.join(quoted(name) for name in table.columns)} ORDER BY abs({value}) DESC NULLS LAST"
        )
        rows = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        select += [f"{value} AS value{place}", f"sum({people}) OVER ({window} {rows}) - {people} AS larger{place}"]
    person = f"(SELECT {', '.join(select)} FROM {relation}) AS person"
    measured = [*keys, "CAST(NULL AS DOUBLE) AS people", "CAST(0 AS BIGINT) AS times"]
    measured.append("CAST(sum(people) AS BIGINT) AS counted")
    for place in range(len(values)):
        among = {
            name: f"coalesce(sum(abs(value{place}) * greatest(least(people, {number} - larger{place}), 0)), 0)"
            for name, number in (("largest", table.largest), ("first", 1), ("two", 2))
        }
        measured += [
            f"CAST(NULL AS DOUBLE) AS mean{place}",
            f"CAST(coalesce(sum(people) FILTER (WHERE value{place} IS NOT NULL), 0) AS DOUBLE) AS known{place}",
            f"coalesce(sum(value{place} * people), 0) AS sum{place}",
            f"coalesce(sum(abs(value{place}) * people), 0) AS size{place}",
            *(f"{sizes} AS {name}{place}" for name, sizes in among.items()),
        ]
    return f"SELECT {', '.join(measured)} FROM {person} GROUP BY {', '.join(keys)}"


def side_by_side(table: GroupColumns, queries: Sequence[str]) -> str:
    """Both together, a row per group, without the grouping columns; groups with missing values count too.

    Groups of the same known values have the same number `alike`.
    """
    keys = ", ".join(f"key{place}" for place in range(len(table.columns)))
    measures = [f"{measure}{place}" for place in range(len(table.means)) for measure in ("mean", *MEASURES)]
    select = [f"max({name}) AS {name}" for name in ("people", "counted", *measures)]
    together = " UNION ALL ".join(queries)
    known = ", ".join(f"key{place}" for place, name in enumerate(table.columns) if name in table.known)
    alike = f"dense_rank() OVER (ORDER BY {known})" if known else "1"
    both = f"SELECT {keys}, CAST(sum(times) AS BIGINT) AS times, {', '.join(select)} FROM ({together}) AS both_"
    shown = ", ".join(["times", "people", "counted", *measures])
    return f"SELECT CAST({alike} AS BIGINT) AS alike, {shown} FROM ({both} GROUP BY {keys}) AS groups_"
