"""The recoded values of classes, in the types of the source's columns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from anon_pipeline.engine import typed
from anon_pipeline.engine.session import Session
from anon_pipeline.engine.sql import quoted
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain


def in_storage(domains: tuple[Domain, ...], storage: Mapping[str, str]) -> tuple[Domain, ...]:
    """The columns with the types in which they are released, where these are others than those of their values."""
    return tuple(replace(domain, storage=storage.get(domain.name, domain.storage)) for domain in domains)


def with_decimals(recoded: pa.Table, domains: tuple[Domain, ...]) -> pa.Table:
    """The recoded values with decimals instead of floats, where the source has a type that holds all of them.

    This is decided here, since engines make different decimals of the same float.
    """
    for domain in domains:
        position = recoded.schema.get_field_index(domain.name)
        if (
            position < 0
            or not domain.storage.startswith("DECIMAL")
            or not pa.types.is_floating(recoded.schema.field(position).type)
        ):
            continue
        precision, scale = map(int, domain.storage.removeprefix("DECIMAL(").removesuffix(")").split(","))
        values = [None if value is None else Decimal(repr(value)) for value in recoded.column(position).to_pylist()]
        with suppress(pa.ArrowInvalid):  # a rounded number may be too large or too fine
            recoded = recoded.set_column(position, domain.name, pa.array(values, pa.decimal128(precision, scale)))
    return recoded


def value_expressions(session: Session, domains: tuple[Domain, ...], recoded: pa.Table) -> dict[str, str]:
    """For each recoded column its value as one of the source's own type, where that can hold all of them.

    The reverse of `coded`.
    """
    values: dict[str, str] = {}
    changed: dict[str, str] = {}
    for domain in domains:
        if domain.name not in recoded.column_names:
            continue
        column = f"shown.{quoted(domain.name)}"
        type_ = recoded.schema.field(domain.name).type
        if domain.ordered and (pa.types.is_string(type_) or pa.types.is_decimal(type_)):
            values[domain.name] = column  # a range, or of the source's own type already
        elif domain.type is ColumnType.DATE:
            values[domain.name] = typed.restored_moment(column, domain.storage)
        else:
            values[domain.name] = cast = f"TRY_CAST({column} AS {domain.storage})"
            if not (domain.ordered and domain.storage == "FLOAT"):
                # A rounded number may be too large for its type, or a set of categories no value of it.
                common = "DOUBLE" if domain.ordered else "VARCHAR"
                differs = f"CAST({cast} AS {common}) IS DISTINCT FROM CAST({column} AS {common})"
                changed[domain.name] = f"count(*) FILTER (WHERE {differs})"
    if changed:  # one query for all columns: for Spark each query is a job
        counts = session.rows(f"SELECT {', '.join(changed.values())} FROM shown")[0]
        values |= {name: f"shown.{quoted(name)}" for name, count in zip(changed, counts, strict=True) if count}
    return values
