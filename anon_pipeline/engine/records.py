"""Records within a column (structs of Parquet, Arrow and DuckDB, objects of JSON): their fields as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Source, did_you_mean
from anon_pipeline.spec.source import path_of, path_parts


def is_record(storage: str) -> bool:
    """Whether a type, in DuckDB's words, is a record, and not a list of records."""
    return storage.startswith("STRUCT") and not storage.endswith("]")


def with_fields(connection: duckdb.DuckDBPyConnection, relation: str, source: Source, label: str) -> str:
    """The relation with the fields that `source.paths` names as further columns.

    Raises
    ------
    InputError
        For a path that leads nowhere, through a list or not to its end, and for a name that a column has already.
    """
    if not source.paths:
        return relation
    storage = {row[0]: row[1] for row in connection.execute(f"DESCRIBE FROM {relation}").fetchall()}
    taken = {name.casefold() for name in storage}
    fields = []
    for name, path in source.paths.items():
        if name.casefold() in taken:
            raise InputError(f"source.paths.{name}: {label} has a column of that name already; call this one otherwise")
        taken.add(name.casefold())
        fields.append(f"{_field(storage, name, path_parts(path), label)} AS {quoted(name)}")
    return f"(SELECT *, {', '.join(fields)} FROM {relation})"


def fields_of(column: str, storage: str) -> list[str]:
    """The paths to all plain fields of a column of records, in their order; none through a list."""
    pending: list[tuple[tuple[str, ...], Any]] = [((column,), duckdb.sqltype(storage))]
    paths = []
    while pending:
        parts, kind = pending.pop(0)
        if kind.id == "struct":
            pending[:0] = [((*parts, name), inner) for name, inner in kind.children]
        elif len(parts) > 1 and not _has_several(kind):
            paths.append(path_of(parts))
    return paths


def _field(storage: Mapping[str, str], name: str, parts: tuple[str, ...], label: str) -> str:
    """The value at the end of a path; missing where a record on the path is missing."""
    place, column = f"source.paths.{name}", parts[0]
    if column not in storage:
        raise InputError(
            f"{place}: {label} has no column {column}; {did_you_mean(column, list(storage))}correct or remove the path"
        )
    if storage[column] == "JSON":
        inner = "".join(f'."{part}"' for part in parts[1:])
        return f"json_extract({quoted(column)}, {literal('$' + inner)})"
    value, kind = quoted(column), _type(storage[column])
    for number, part in enumerate(parts[1:], start=1):
        here = path_of(parts[:number])
        if kind is None or kind.id != "struct":
            what = "a list, of which a person may have several" if _has_several(kind) else "no record"
            raise InputError(f"{place}: {here} is {what}; name a field of a record, or flatten the table first")
        fields = dict(kind.children)
        if part not in fields:
            near = did_you_mean(part, list(fields))
            raise InputError(f"{place}: {here} of {label} has no field {part}; {near}correct or remove the path")
        value, kind = f"struct_extract({value}, {literal(part)})", fields[part]
    if kind is not None and kind.id == "struct":
        raise InputError(f"{place}: ends at a record; go on to one of its fields, as in {path_of(parts)}.city")
    if _has_several(kind):
        raise InputError(f"{place}: ends at a list, of which a person may have several; flatten the table first")
    return value


def _type(storage: str) -> Any:
    """A type as an object; None for a type that has no fields."""
    return duckdb.sqltype(storage) if storage.startswith(("STRUCT", "MAP", "UNION")) or storage.endswith("]") else None


def _has_several(kind: Any) -> bool:
    """Whether a value of this type holds several values (a list), or is of one of several types (a union)."""
    return kind is not None and kind.id in ("list", "array", "map", "union")
