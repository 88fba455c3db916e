"""Durations of Parquet files: the unit that a spec states of them must be the one in which they are read.

A file states the unit of its durations, and the package reads their whole numbers. A `unit` of a spec is told in the
report beside these numbers; it converts nothing.
"""

from __future__ import annotations

from pathlib import Path

from anon_pipeline.engine.parquet_files import UNITS, units_of_durations
from anon_pipeline.engine.sources import kind_of
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec, Role

#: The units of time that a spec may state wrongly; other words, such as those of other languages, are left alone.
OF_TIME = {*UNITS.values(), "minutes", "hours", "days", "weeks", "months", "years"}


def require_stated_units(spec: ReleaseSpec) -> None:
    """Compare the units of a spec with those of the durations in its file, or in the files of its folder.

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


def _files(spec: ReleaseSpec) -> list[Path]:
    path = spec.source_path
    if not spec.source.is_file or not path.exists():
        return []
    if path.is_dir():
        return sorted(path.rglob("*.parquet"))
    return [path] if kind_of(path) == "parquet" else []
