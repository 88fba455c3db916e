"""The recoded values of classes, in the types of the source's columns."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pyarrow as pa

from anon_pipeline.engine import typed
from anon_pipeline.engine.session import Session
from anon_pipeline.engine.sql import quoted
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain


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


def value_expression(session: Session, domain: Domain, recoded: pa.Table) -> str:
    """The recoded value as a value of the source's own type, where that can hold it; the reverse of `coded`."""
    column = f"shown.{quoted(domain.name)}"
    type_ = recoded.schema.field(domain.name).type
    if domain.ordered and (pa.types.is_string(type_) or pa.types.is_decimal(type_)):
        return column  # a range, or of the source's own type already
    if domain.type is ColumnType.DATE:
        return typed.restored_moment(column, domain.storage)
    cast = f"TRY_CAST({column} AS {domain.storage})"
    if domain.ordered and domain.storage == "FLOAT":
        return cast
    # A rounded number may be too large for its type, or a set of categories no value of it.
    common = "DOUBLE" if domain.ordered else "VARCHAR"
    changed = f"CAST({cast} AS {common}) IS DISTINCT FROM CAST({column} AS {common})"
    return column if session.rows(f"SELECT count(*) FROM shown WHERE {changed}")[0][0] else cast
