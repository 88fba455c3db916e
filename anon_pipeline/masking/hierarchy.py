"""The row technique that shows a value's group in a hierarchy of categories."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from anon_pipeline.engine.sql import literal
from anon_pipeline.errors import InputError
from anon_pipeline.masking.base import CATEGORICAL
from anon_pipeline.masking.expressions import text, written
from anon_pipeline.masking.masks import TextTechnique
from anon_pipeline.spec import ColumnType

#: More values than this are looked up in a joined table instead of a CASE expression.
LONGEST_CASE = 64


class Hierarchy(TextTechnique):
    """Categories become the group that they belong to: Ulm -> Baden-Württemberg.

    L. Sweeney: Achieving k-anonymity privacy protection using generalization and suppression, IJUFKS 10(5), 2002. The
    groups stand in the spec, or in a CSV file as ARX and sdcMicro use: a value, then its groups, each coarser than the
    one before; `level` 1 is the first of them. A value that no group names is shown as `others`, never as itself.
    """

    technique: Literal["hierarchy"] = "hierarchy"
    groups: dict[str, tuple[str | int | float | bool, ...]] | None = Field(
        default=None, min_length=1, description="the values of each group"
    )
    file: str | None = Field(default=None, min_length=1, description="a CSV file, relative to the spec")
    level: int = Field(default=1, ge=1, le=100, description="which column of the file")
    delimiter: str = Field(default=";", min_length=1, max_length=1, description="what stands between its columns")
    others: str = Field(default="*", description="what is shown for values that no group names")

    meaning: ClassVar[str] = "shows the group that a category belongs to"
    use_when: ClassVar[str] = "categories have natural groups: towns in states, occupations in classes"
    accepts: ClassVar = CATEGORICAL

    @model_validator(mode="after")
    def _names_groups_once(self) -> Hierarchy:
        if (self.groups is None) == (self.file is None):
            raise ValueError("groups: give either groups or the file that they stand in")
        values = [_written(value) for members in (self.groups or {}).values() for value in members]
        if len(set(values)) < len(values):
            raise ValueError("groups: a value stands in two groups; name each once")
        return self

    @property
    def list_file(self) -> str | None:
        return self.file

    def resolved(self, folder: Path) -> Self:
        if self.file is None:
            return self
        path = folder / self.file
        groups: dict[str, list[str]] = {}
        seen: dict[str, str] = {}
        try:
            with path.open(encoding="utf-8-sig", newline="") as lines:
                for number, line in enumerate(csv.reader(lines, delimiter=self.delimiter), start=1):
                    if not line:
                        continue
                    if len(line) <= self.level:
                        raise InputError(f"{path}: line {number} has no level {self.level}; write value and groups")
                    value, group = line[0], line[self.level]
                    if seen.setdefault(value, group) != group:
                        raise InputError(
                            f"{path}: line {number} puts a value into a second group; name each value once"
                        )
                    groups.setdefault(group, []).append(value)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        except (UnicodeDecodeError, csv.Error):
            raise InputError(f"{path}: is no CSV file in UTF-8") from None
        if not groups:
            raise InputError(f"{path}: is empty; write a value and its groups on each line")
        members = {group: tuple(dict.fromkeys(values)) for group, values in groups.items()}
        return self.model_copy(update={"groups": members, "file": None})

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        value = text(value, storage)
        if self.groups is None:
            raise ValueError("the file of a hierarchy must be read first, by resolved()")
        if sum(map(len, self.groups.values())) > LONGEST_CASE:
            rows = ", ".join(
                f"({literal(written(member, storage))}, {literal(group)})"
                for group, ones in self.groups.items()
                for member in ones
            )
            lookup = f"SELECT max(of_group.name) FROM (VALUES {rows}) AS of_group(member, name)"
            lookup = f"coalesce(({lookup} WHERE of_group.member = {value}), {literal(self.others)})"
            return f"CASE WHEN {value} IS NOT NULL THEN {lookup} END"
        cases = " ".join(
            f"WHEN {value} IN ({', '.join(literal(written(member, storage)) for member in ones)}) THEN {literal(group)}"
            for group, ones in self.groups.items()
            if ones
        )
        return f"CASE {cases} WHEN {value} IS NOT NULL THEN {literal(self.others)} END"


def _written(value: str | int | float | bool) -> str:
    """A value of a spec as the text into which SQL converts it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
