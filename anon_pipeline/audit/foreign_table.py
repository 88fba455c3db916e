"""The attack on a table from any tool, on people in it and people who are not: the work of `anon-pipeline attack`.

Files are read into the tables that `anon_pipeline.attack` needs, and columns get their roles, from a spec or by name.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.attack import generalized_values
from anon_pipeline.attack.rates import Finding
from anon_pipeline.attack.table_audit import Knowledge, audit_table
from anon_pipeline.attack.targets import Tables
from anon_pipeline.audit.durations import in_unit, units_of
from anon_pipeline.audit.numbered_rows import numbering, of_single_rows, with_larger_leaks
from anon_pipeline.audit.same_values import frame_of, with_all_digits, with_same_values
from anon_pipeline.audit.shared_people import SharedPeople
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.foreign_files import refuse_unused
from anon_pipeline.engine.sources import as_that_kind
from anon_pipeline.engine.unpacked import has_sheet
from anon_pipeline.errors import InputError, OfSource, known_names, number_of
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role, Source

#: The note that ends every result; all people are attacked where they are few, so no draw blurs what is counted.
FOR_WHOM = (
    "These figures are exact: who knows the table and all people but one can learn from them what is hidden of the "
    "last. They are for whoever may see the original."
)

#: The columns of lists and records that were left out of a table, among its `attrs`.
OF_LISTS = "of lists"

_CODE = re.compile(r"[+-]?(?:0[0-9]|[0-9]{19})")  # digits that are no number: a leading zero, or too many
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?")
_YEAR = re.compile(r"[1-9]\d{3}")


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


@dataclass(frozen=True)
class AttackedTable:
    """The result of attacking a table.

    Attributes
    ----------
    knowledge : the columns and their roles in the attacks
    rows, people, control : rows of the table, of the original, and of the control people
    findings : one per attack
    notes : what a reader should know about the tables
    """

    table: str
    knowledge: Knowledge
    rows: int
    people: int
    control: int
    findings: list[Finding]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Plain data, all of it aggregates."""
        return {
            "table": self.table,
            "rows": self.rows,
            "people": self.people,
            "control": self.control,
            "columns": {name: list(getattr(self.knowledge, name)) for name in self.knowledge.__dataclass_fields__},
            "findings": [finding.to_json() for finding in self.findings],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Files:
    """The files of the tables, CSV or Parquet.

    Attributes
    ----------
    table : the table that is attacked
    original : the raw people who are in it, one row each
    control : raw people like them who are not in it
    written : how the text files among them are written, and the sheet of the workbooks that have one of this name;
        detected where absent
    """

    table: Path
    original: Path
    control: Path | None = None
    written: Source | None = None


def attack_table(
    files: Files,
    roles: Roles,
    scratch: Path,
    targets: int = 2_000,
    seed: int = 0,
) -> AttackedTable:
    """Attack a CSV or Parquet table of which only the people in it are known.

    Parameters
    ----------
    scratch : an empty folder for converted files
    targets : most people of either kind who are attacked

    Raises
    ------
    InputError
        For a file that cannot be read or has no rows, or a column that is not there.
    """
    table, control = files.table, files.control
    _refuse_unused(files)
    released = _read(table, scratch / "table", files.written, roles.named)
    people = _people(files.original, scratch / "original", files.written, roles)
    units = units_of(files.original, roles.spec)
    released, people = in_unit(released, {}, units), in_unit(people, units, units)
    others = None
    if control is not None:
        others = _people(control, scratch / "control", files.written, roles)
        others = in_unit(others, units_of(control, roles.spec), units)
    class_table = table.parent / "classes.parquet"
    classes = _read(class_table, scratch / "classes") if class_table.is_file() else None
    (released, people, others), classes, exact = _alike((released, people, others), classes, roles)
    released = _with_spans_of_years(released, people, roles.quasi_identifiers)
    columns, notes = _columns(roles, table, released, {files.original: people, control: others})
    quasi_identifiers, sensitive, kept = columns
    named = [*quasi_identifiers, *sensitive, *kept]
    knowledge = Knowledge(
        quasi_identifiers,
        sensitive,
        kept,
        [name for name in named if name not in exact and _is_ordered(people[name], roles.declared.get(name))],
    )
    if unlike := _written_otherwise(released, people, columns[0] + columns[1], knowledge.numeric, classes):
        notes.append(
            f"Nothing that the table shows of {', '.join(unlike)} is a value of people or names some of them: words of "
            "a hierarchy, or numbers or dates written otherwise than in the original. What is not understood tells an "
            "attacker nothing, so a real one may do better."
        )
    if others is None:
        notes.append(
            "There are no people to compare with (--control), so what the table gives away cannot be told from what "
            "is true of people in general."
        )
    if others is not None and control is not None:
        known = _without_columns(knowledge, numbering((released, people), kept))
        notes += _shared_people(control.name, (released, people, others), known)
    if own := of_single_rows((released, people), kept):
        notes.append(
            f"{', '.join(own)}: every row of the table and of the original has a value of its own, or a place in an "
            "index of pandas, perhaps given anew. Every attack is made with it and without it, and the larger leak is "
            "told."
        )
    if len(released) != len(people):
        notes.append(_of_other_length(len(released), len(people), others is not None))
    notes.append(FOR_WHOM)
    attacked = Tables(released[named], people[named], None if others is None else others[named], None, classes)
    findings = audit_table(attacked, knowledge, targets=targets, seed=seed)
    if own:
        without = audit_table(attacked, _without_columns(knowledge, own), targets=targets, seed=seed)
        findings = with_larger_leaks(findings, without)
    return AttackedTable(
        table.name, knowledge, len(released), len(people), 0 if others is None else len(others), findings, notes
    )


def _alike(
    given: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None], classes: pd.DataFrame | None, roles: Roles
) -> tuple[tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None], pd.DataFrame | None, list[str]]:
    """The tables with the same values in the same types, and the columns of numbers that are texts of all digits."""
    tables = {
        key: table for key, table in zip(("released", "people", "others"), given, strict=True) if table is not None
    }
    tables, classes = with_same_values(tables, classes)
    in_ranges = [] if classes is None else [name for name in tables["people"] if f"{name}_low" in classes]
    ordered = [
        name
        for name, column in tables["people"].items()
        if name not in in_ranges and _is_ordered(column, roles.declared.get(str(name)))
    ]
    tables, exact = with_all_digits(tables, [str(name) for name in ordered])
    return (tables["released"], tables["people"], tables.get("others")), classes, exact


def _without_columns(knowledge: Knowledge, names: Sequence[str]) -> Knowledge:
    return replace(knowledge, other=[name for name in knowledge.other if name not in names])


def _refuse_unused(files: Files) -> None:
    """Refuse what is said of text files or workbooks, and of none of these.

    Raises
    ------
    OfSource
        Naming the key.
    """
    paths = [path for path in (files.table, files.original, files.control) if path is not None]
    refuse_unused(files.written, paths)
    sheet = None if files.written is None else files.written.sheet
    if sheet is not None and not any(has_sheet(path, sheet) for path in paths):
        raise OfSource("sheet", f"none of these files has a sheet {sheet}; name one that holds people, or leave it out")


def _shared_people(
    control: str, tables: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame], knowledge: Knowledge
) -> list[str]:
    """A note where control people seem to be in the table, whether or not they are in the original.

    Raises
    ------
    InputError
        If most of them are.
    """
    released, people, others = tables
    kept, named = list(knowledge.kept), [*knowledge.quasi_identifiers, *knowledge.kept]
    counted = [SharedPeople.of(people[named], others[named], knowledge.numeric)]
    if kept and (in_table := SharedPeople.by_kept(released[kept], people[kept], others[kept], knowledge.numeric)):
        counted.append(in_table)
    for shared in counted:
        shared.require_others(control)
    return [shared.note for shared in counted if shared.note is not None][:1]


def _of_other_length(rows: int, people: int, is_compared: bool) -> str:
    """That the table has more or fewer rows than the original has people, and what that does to the figures."""
    lengths = f"The table has {number_of(rows, 'row', 'rows')}, the original {people:,}"
    if rows < people:
        return f"{lengths}: whoever is not in the table lowers what is measured."
    hidden = "; if control people are among them, they hide leaks" if is_compared else ""
    return f"{lengths}: nobody is attacked who is in the table alone{hidden}."


def _read(path: Path, scratch: Path, written: Source | None = None, named: Sequence[str] | None = None) -> pd.DataFrame:
    """A CSV or Parquet file in pandas; the fields of a CSV stay texts, and empty ones are missing.

    Parameters
    ----------
    named : the columns that are asked for; any other of lists or records is left out, and named in `attrs`. Where
        absent, all are kept
    """
    scratch.mkdir()
    here = None if written is None else as_that_kind(written, path)  # the other files may be texts, and this one none
    if here is not None and here.sheet is not None and not has_sheet(path, here.sheet):
        here = here.model_copy(update={"sheet": None})
    return _plain_table(path, DuckDBEngine(scratch).import_table(path, scratch, written=here), named)


def _plain_table(path: Path, parquet: Path, named: Sequence[str] | None) -> pd.DataFrame:
    """The table of a file that was converted to Parquet, in pandas."""
    try:
        content = pq.read_table(parquet)
    except (OSError, pa.ArrowException):
        raise InputError(f"{path.name}: cannot be read") from None
    if not content.num_rows:
        raise InputError(f"{path.name}: has no rows")
    listed = [column.name for column in content.schema if pa.types.is_nested(column.type)]
    if named is None or not listed:
        return frame_of(content)
    if asked_for := [name for name in listed if name in named]:
        raise InputError(f"{path.name}: {', '.join(asked_for)} holds lists or records; attacks need plain values")
    table = frame_of(content.drop_columns(listed))
    table.attrs[OF_LISTS] = listed
    return table


def _people(path: Path, scratch: Path, written: Source | None, roles: Roles) -> pd.DataFrame:
    """The people of a file, read as the spec says of its source; of a file that is written otherwise, as it is.

    Raises
    ------
    InputError
        Where values cannot be read as the numbers or dates that the spec says they are: nobody could be recognised by
        them, and no leak would show.
    """
    scratch.mkdir()
    if roles.spec is not None:
        with suppress(InputError):
            people = _without(_as_its_source(path, scratch / "as_stated", written, roles.spec), roles.missing)
            if {*roles.quasi_identifiers, *roles.sensitive} <= set(people) and not _unread(people, roles):
                return people
    people = _without(_read(path, scratch / "as_it_is", written, roles.named), roles.missing)
    if unread := _unread(people, roles):
        raise InputError(
            f"{path.name}: values of {', '.join(f'{name} ({number:,})' for name, number in unread.items())} cannot be "
            "read as the numbers or dates that the spec says they are; write the file as the source of the spec is "
            "written, or as Parquet"
        )
    return people


def _as_its_source(path: Path, scratch: Path, written: Source | None, spec: ReleaseSpec) -> pd.DataFrame:
    scratch.mkdir()
    said = {} if written is None else {key: getattr(written, key) for key in written.model_fields_set - {"path"}}
    if "sheet" in said and not has_sheet(path, said["sheet"]):
        del said["sheet"]
    source = spec.source.model_copy(update=said)
    named = [*spec.quasi_identifiers, *spec.with_role(Role.SENSITIVE)]
    return _plain_table(path, DuckDBEngine(scratch).import_people(path, scratch, spec, source), named)


def _unread(people: pd.DataFrame, roles: Roles) -> dict[str, int]:
    """How many values of a column cannot be read as the numbers or dates that it is declared to hold."""
    unread: dict[str, int] = {}
    for name in (*roles.quasi_identifiers, *roles.sensitive):
        if name in people and roles.declared.get(name) in (ColumnType.NUMERIC, ColumnType.DATE):
            lost = np.isnan(generalized_values.numbers(people[name])) & people[name].notna().to_numpy()
            unread |= {name: int(lost.sum())} if lost.any() else {}
    return unread


def _with_spans_of_years(released: pd.DataFrame, people: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The table with years as spans of days where people have dates; 2024 would else be read as a number of days."""
    spans: dict[str, pd.Series] = {}
    for name in names:
        if name in released and name in people and _holds_dates(people[name]):
            years = generalized_values.texts(released[name])
            if all(year is None or _YEAR.fullmatch(year) for year in years):
                spans[name] = pd.Series(
                    [None if year is None else f"[{year}-01-01, {year}-12-31T23:59:59.999999]" for year in years],
                    index=released.index,
                    dtype=object,
                )
    return released.assign(**spans)


def _holds_dates(column: pd.Series) -> bool:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    values = column.dropna().unique()
    return bool(len(values)) and all(
        bool(_DATE.fullmatch(value)) if isinstance(value, str) else isinstance(value, datetime.date) for value in values
    )


def _without(people: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """People without the texts that stand for "not known"."""
    return people.mask(people.isin(list(missing))) if missing else people


def _columns(
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


def _written_otherwise(
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
    read = generalized_values.numbers if _is_ordered(raw, None) else generalized_values.texts
    published_values, raw_values = pd.Series(read(published)), pd.Series(read(raw))
    present = published.notna().to_numpy()
    return bool((published_values.isin(raw_values) & published_values.notna())[present].all())


def _is_ordered(column: pd.Series, declared: ColumnType | None) -> bool:
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
    return all(map(_DATE.fullmatch, texts)) or all(_is_number(text) for text in texts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not _CODE.match(text.strip())
