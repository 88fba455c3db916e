"""The columns of a table from any tool: their roles, which of them hold numbers or dates, and which can be read."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from anon_pipeline.attack import generalized_values
from anon_pipeline.errors import InputError, known_names
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role

#: The columns of lists and records that were left out of a table, among its `attrs`.
OF_LISTS = "of lists"

_CODE = re.compile(r"[+-]?(?:0[0-9]|[0-9]{19})")  # digits that are no number: a leading zero, or too many
DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?")


@dataclass(frozen=True)
class Roles:
    """The roles of a table's columns; `declared` types are believed, all others are read from the original.

    `spec`, where there is one, says how the files of people are written, as it does of its source.
    """

    quasi_identifiers: Sequence[str]
    sensitive: Sequence[str] = ()
    missing: Sequence[str] = ()
    declared: Mapping[str, ColumnType] = field(default_factory=dict)
    may_lack: bool = False  # whether the table may lack some of these columns: a tool has left them out
    spec: ReleaseSpec | None = None

    @property
    def named(self) -> list[str]:
        """The columns that have a role."""
        return [*self.quasi_identifiers, *self.sensitive]

    @classmethod
    def of(cls, spec: ReleaseSpec) -> Roles:
        """The roles of a spec; the people of a file have no column that a masking step makes."""
        return cls(
            [name for name in spec.quasi_identifiers if not spec.columns[name].made],
            [name for name in spec.with_role(Role.SENSITIVE) if not spec.columns[name].made],
            spec.source.missing,
            {name: column.type for name, column in spec.columns.items() if column.type is not None},
            may_lack=True,
            spec=spec,
        )


def columns_of(
    roles: Roles, table: Path, released: pd.DataFrame, tables: Mapping[Path | None, pd.DataFrame | None]
) -> tuple[tuple[list[str], list[str], list[str]], list[str]]:
    """The quasi-identifiers, sensitive and other columns that all tables have, and notes on the other columns."""
    raw = {path: frame for path, frame in tables.items() if path is not None and frame is not None}
    named = roles.named
    if twice := {name for name in named if named.count(name) > 1}:
        raise InputError(f"{', '.join(sorted(twice))}: is named twice; a column has one role")
    for path, frame in raw.items():
        if absent := [name for name in named if name not in frame]:
            raise InputError(f"{path.name} has no column {', '.join(absent)}; {known_names(frame, named)}")
    left_out = [name for name in named if name not in released]
    if left_out and (not roles.may_lack or not set(roles.quasi_identifiers) & set(released.columns)):
        raise InputError(f"{table.name} has no column {', '.join(left_out)}; {known_names(released, named)}")
    notes = []
    if of_lists := released.attrs.get(OF_LISTS):
        notes.append(f"Holding lists or records, so not attacked, whatever they tell: {', '.join(of_lists)}.")
    if left_out:
        notes.append(f"Not in the table, so neither known nor inferred by it: {', '.join(left_out)}.")
    more = [str(name) for name in released if name not in named]
    shared = [name for name in more if all(name in frame for frame in raw.values())]
    if alone := [name for name in more if name not in shared]:
        notes.append(f"Not in every table of people, so not attacked: {', '.join(alone)}.")
    kept = [name for name in shared if _is_kept(released[name], next(iter(raw.values()))[name])]
    if altered := [name for name in shared if name not in kept]:
        notes.append(
            f"Altered by the tool, and named neither as a quasi-identifier nor as sensitive, so not attacked: "
            f"{', '.join(altered)}."
        )
    published = [[name for name in listed if name in released] for listed in (roles.quasi_identifiers, roles.sensitive)]
    return (published[0], published[1], kept), notes


def written_otherwise(
    released: pd.DataFrame,
    people: pd.DataFrame,
    names: Sequence[str],
    ordered: Sequence[str],
    classes: pd.DataFrame | None = None,
) -> list[str]:
    """The columns of which no text that the table or its classes show can be read as values of people."""
    unlike = []
    for name in names:
        column = _values_of_classes(classes, name, name in ordered)
        cells = set(generalized_values.texts(released[name] if column is None else column))
        cells -= {None, generalized_values.ANYTHING}
        if name in ordered:
            understood = column is not None or any(generalized_values.read_interval(cell) is not None for cell in cells)
        else:
            values = frozenset(generalized_values.texts(people[name])) - {None}
            anything = frozenset([generalized_values.ANYTHING])
            understood = any(generalized_values.read_set(cell, values) != anything for cell in cells)
        if cells and not understood:
            unlike.append(name)
    return unlike


def _values_of_classes(classes: pd.DataFrame | None, name: str, ordered: bool) -> pd.Series | None:
    """What the table of classes says of a column that holds numbers or dates, or else texts; None if it does not."""
    column = f"{name}_{'low' if ordered else 'values'}"
    if classes is None or column not in classes:
        return None
    return classes[column] if ordered else classes[column].explode()


def _is_kept(published: pd.Series, raw: pd.Series) -> bool:
    """Whether a column without a named role holds people's own values, and not values changed by a tool."""
    read = generalized_values.numbers if is_ordered(raw, None) else generalized_values.texts
    published_values, raw_values = pd.Series(read(published)), pd.Series(read(raw))
    present = published.notna().to_numpy()
    return bool((published_values.isin(raw_values) & published_values.notna())[present].all())


def is_ordered(column: pd.Series, declared: ColumnType | None) -> bool:
    """Whether a column holds numbers or dates, as declared, as stored, or as all its texts read."""
    if declared is not None:
        return declared is not ColumnType.CATEGORICAL
    dtype = column.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return False
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype):
        return True
    values = column.dropna().unique()
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):  # objects: dates and decimals are ordered, mixtures, booleans, bytes and times are not
        return not texts and not any(isinstance(value, bool | bytes | datetime.time) for value in values)
    if not texts:
        return False
    return all(map(DATE.fullmatch, texts)) or all(_is_number(text) for text in texts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not _CODE.match(text.strip())
