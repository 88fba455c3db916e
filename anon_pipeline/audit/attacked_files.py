"""The files of an attack, read into tables: people as the spec says of its source, all else as it is written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.attack import generalized_values
from anon_pipeline.audit.foreign_columns import OF_LISTS, Roles
from anon_pipeline.audit.same_values import frame_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.foreign_files import refuse_unused
from anon_pipeline.engine.sources import as_that_kind
from anon_pipeline.engine.unpacked import has_sheet
from anon_pipeline.errors import InputError, OfSource
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role, Source


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


def refuse_unused_keys(files: Files) -> None:
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


def read_table(
    path: Path, scratch: Path, written: Source | None = None, named: Sequence[str] | None = None
) -> pd.DataFrame:
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


def people_of(path: Path, scratch: Path, written: Source | None, roles: Roles) -> pd.DataFrame:
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
    people = _without(read_table(path, scratch / "as_it_is", written, roles.named), roles.missing)
    if unread := _unread(people, roles):
        raise InputError(
            f"{path.name}: values of {', '.join(f'{name} ({number:,})' for name, number in unread.items())} cannot be "
            "read as the numbers or dates that the spec says they are; write the file as the source of the spec is "
            "written, or as Parquet"
        )
    return people


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


def _without(people: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """People without the texts that stand for "not known"."""
    return people.mask(people.isin(list(missing))) if missing else people
