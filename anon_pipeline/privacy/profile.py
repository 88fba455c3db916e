"""What each column of an unknown table seems to be to a person, and the spec that follows: a proposal only."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from anon_pipeline.engine.base import ColumnSurvey, ForeignTables
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType, Role

#: Parts of column names that people give to what names a person.
NAMING = ("name", "email", "mail", "phone", "mobile", "ssn", "passport", "iban", "account", "address", "street", "uuid")
#: Above this share of distinct values a column is nearly unique to a person.
NEAR_UNIQUE = 0.95
#: Above this share a text tells too much to be grouped by.
MANY_TEXTS = 0.3


@dataclass(frozen=True)
class Proposal:
    """A role for one column, and why."""

    name: str
    role: Role
    type: ColumnType
    why: str
    distinct: int
    missing: int


@dataclass(frozen=True)
class Profile:
    """The proposed spec of a table.

    Attributes
    ----------
    determines : pairs (a, b): who knows a knows b
    target : the column proposed as target, the last with two to twenty values
    """

    table: Path
    rows: int
    columns: list[Proposal]
    determines: list[tuple[str, str]]
    target: str | None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "table": self.table.name}

    def to_yaml(self, folder: Path) -> str:
        """A release.yaml for `folder`; the lines marked DECIDE need a person."""
        name = "".join(letter if letter.isalnum() else "_" for letter in self.table.stem.lower()).strip("_")
        dataset = name if name[:1].isalpha() else f"data_{name}"
        path = os.path.relpath(self.table.resolve(), folder.resolve())
        lines = [
            "# Proposed by `anon-pipeline profile`; every role is a guess until a person has decided it.",
            f"dataset: {_scalar(dataset)}",
            f"source: {{path: {_scalar(path)}}}",
            f"target: {_scalar(self.target or 'DECIDE')}  # DECIDE: what will be predicted from the release?",
            "columns:",
        ]
        for one in self.columns:
            lines.append(f"  # {one.distinct:,} distinct values, {one.missing:,} missing; {one.why}")
            lines.append(f"  {_scalar(one.name)}: {{role: {one.role}, type: {one.type}}}")
        for known, told in self.determines:
            lines.append(f"# DECIDE: {_scalar(known)} determines {_scalar(told)}; do not keep one and hide the other.")
        lines += ["privacy:", "  k_anonymity: {k: 10}"]
        return "\n".join(lines) + "\n"


def profile_table(engine: ForeignTables, table: Path, scratch: Path) -> Profile:
    """Look at every column of a CSV or Parquet table.

    Raises
    ------
    InputError
        For a file that cannot be read or has no rows.
    """
    imported = engine.import_table(table, scratch)
    surveyed = engine.survey(imported)
    if not surveyed or surveyed[0].rows == 0:
        raise InputError(f"{table}: the table is empty")
    target = next((one.name for one in reversed(surveyed) if 2 <= one.distinct <= 20 and one.known == one.rows), None)
    columns = [_proposal(one, target) for one in surveyed]
    related = [one.name for one in surveyed if 2 <= one.distinct <= max(20, one.rows // 10)]
    return Profile(table, surveyed[0].rows, columns, engine.determined(imported, related), target)


def _proposal(column: ColumnSurvey, target: str | None) -> Proposal:
    kind = _type_of(column)

    def propose(role: Role, why: str) -> Proposal:
        return Proposal(column.name, role, kind, why, column.distinct, column.rows - column.known)

    if column.known == 0:
        return propose(Role.EXCLUDE, "empty")
    if column.distinct == 1:
        return propose(Role.INSENSITIVE, "the same for everyone")
    for pattern, matching in column.patterns.items():
        is_number = pattern == "phone number" and kind is not ColumnType.CATEGORICAL
        if matching > 0.5 * column.known and not is_number:
            return propose(Role.IDENTIFIER, f"looks like {'an' if pattern[0] in 'eI' else 'a'} {pattern}")
    words = column.name.lower().replace("-", "_").split("_")
    unique = column.distinct / column.known
    if unique > NEAR_UNIQUE and (words[-1] == "id" or any(part in column.name.lower() for part in NAMING)):
        return propose(Role.IDENTIFIER, "its name and its values name a person")
    if unique > NEAR_UNIQUE and kind is not ColumnType.NUMERIC:
        return propose(Role.IDENTIFIER, "nearly every row has a value of its own")
    if column.name == target:
        return propose(Role.SENSITIVE, "proposed as the target")
    if kind is ColumnType.CATEGORICAL and unique > MANY_TEXTS:
        return propose(Role.EXCLUDE, "too many different texts to group by; shorten it to a prefix, or leave it out")
    if kind is ColumnType.NUMERIC and unique > MANY_TEXTS:
        return propose(Role.EXCLUDE, "DECIDE: nearly unique to a person; kept as it is it could undo the grouping")
    return propose(Role.QUASI_IDENTIFIER, "DECIDE: could be known to others; sensitive if it must not be inferred")


def _type_of(column: ColumnSurvey) -> ColumnType:
    if column.known and column.numbers == column.known and not column.codes:
        return ColumnType.NUMERIC
    return ColumnType.DATE if column.known and column.dates == column.known else ColumnType.CATEGORICAL


def _scalar(text: str) -> str:
    """A text as YAML, quoted where it needs to be."""
    return yaml.safe_dump(text, width=10_000, allow_unicode=True).removesuffix("\n").removesuffix("\n...")
