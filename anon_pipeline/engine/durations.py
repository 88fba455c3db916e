"""Durations of Parquet and Arrow files: the unit that a spec states must be the one in which they are read.

A file states the unit of its durations, and the package reads their whole numbers. A `unit` of a spec is told in the
report beside these numbers; it converts nothing.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.plain_tables import arrow_schema
from anon_pipeline.engine.sources import kind_of
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec, Role

#: The units of Arrow's durations.
UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
#: The units of time that a spec may state wrongly; other words, such as those of other languages, are left alone.
OF_TIME = {*UNITS.values(), "minutes", "hours", "days", "weeks", "months", "years"}
#: How the columns of a kind of file are read.
SCHEMAS = {"parquet": pq.read_schema, "arrow": arrow_schema}


def units_of_durations(file: Path) -> dict[str, str]:
    """The unit of every column that a file states as durations, as pandas, polars and Arrow write them.

    Parquet has no type of its own for them: a query reads their whole numbers of this unit.
    """
    read = SCHEMAS.get(kind_of(file))
    columns = [] if read is None else read(file)
    return {field.name: UNITS[field.type.unit] for field in columns if pa.types.is_duration(field.type)}


def require_stated_units(spec: ReleaseSpec) -> dict[str, str]:
    """Compare the units of a spec with those of the durations in its file, or in the files of its folder.

    Returns the units of those columns of which the spec states none: nobody would see that next month's are others.

    Raises
    ------
    InputError
        Where a spec states another unit of time, or files of one folder have several, which would be mixed.
    """
    found: dict[str, tuple[str, str]] = {}
    for file in _files(spec):
        for in_file, unit in units_of_durations(file).items():
            name = spec.source.rename.get(in_file, in_file)
            column = spec.columns.get(name)
            if column is None or column.role is Role.EXCLUDE:
                continue
            stated = None if column.unit is None else column.unit.strip().lower()
            if stated in OF_TIME and stated != unit:
                raise InputError(
                    f"columns.{name}.unit: is {column.unit}, but {file.name} holds durations, of which the whole "
                    f"numbers of {unit} are read; write unit: {unit}, or store numbers of {stated}"
                )
            first, other = found.setdefault(name, (unit, file.name))
            if first != unit:
                raise InputError(
                    f"columns.{name}: holds durations in {first} in {other} and in {unit} in {file.name}, whose whole "
                    "numbers would be mixed; write all files in one unit"
                )
    return {name: unit for name, (unit, _) in found.items() if spec.columns[name].unit is None}


def _files(spec: ReleaseSpec) -> list[Path]:
    path = spec.source_path
    if not spec.source.is_file or not path.exists():
        return []
    if path.is_dir():
        return sorted(path.rglob("*.parquet"))
    return [path]
