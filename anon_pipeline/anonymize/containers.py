"""Tables of other makers (polars, Arrow), by way of narwhals: to pandas and back, with the types that they had."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn import get_config

from anon_pipeline.anonymize.frames import with_columns
from anon_pipeline.errors import InputError

#: What a transformer gives: the kind of table that it was given, or the one that `set_output` names.
Container = Literal["default", "pandas", "polars"]

#: pandas' own integers have no missing value; these have.
NULLABLE = {
    f"{sign}int{bits}": dtype()
    for sign, bits, dtype in (
        *(("", bits, dtype) for bits, dtype in ((8, pd.Int8Dtype), (16, pd.Int16Dtype), (32, pd.Int32Dtype))),
        *(("u", bits, dtype) for bits, dtype in ((8, pd.UInt8Dtype), (16, pd.UInt16Dtype), (32, pd.UInt32Dtype))),
        ("", 64, pd.Int64Dtype),
        ("u", 64, pd.UInt64Dtype),
    )
}


def to_pandas(table: Any) -> Any:
    """A table of polars or Arrow as a pandas frame; everything else as it is, for others to refuse.

    Whole numbers stay whole where some are missing, and dates become moments at midnight.

    Raises
    ------
    InputError
        For decimal numbers that no type of Arrow holds.
    """
    if isinstance(table, pd.DataFrame):
        return _with_plain(table)
    arrow = _arrow(table)
    if arrow is None:
        return table
    columns = [_to_series(column) for column in arrow.columns]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
    frame.columns = pd.Index(arrow.column_names)
    return frame


def given_back(recoded: pd.DataFrame, like: Any, output: Container) -> Any:
    """The recoded table as the kind that `output` says; by default the kind of `like`, the input.

    A column has the type that it has in `like`, where that type can hold the recoded values.
    """
    if output == "pandas" or (output == "default" and isinstance(like, pd.DataFrame)):
        return _with_types_of(recoded, like) if isinstance(like, pd.DataFrame) else recoded
    import narwhals as nw
    import pyarrow as pa

    given = None if isinstance(like, pd.DataFrame) else _arrow(like)
    types = {} if given is None else {name: given.schema.field(name).type for name in given.column_names}
    table = pa.table({str(name): _to_array(recoded[name], types.get(str(name))) for name in recoded.columns})
    wanted: Any = "polars" if output == "polars" else nw.from_native(like).implementation
    return nw.from_arrow(table, backend=wanted).to_native()


def output_of(transformer: object) -> Container:
    """What `set_output` of a transformer, or scikit-learn's configuration, asks for."""
    stated = getattr(transformer, "_sklearn_output_config", {})  # where scikit-learn's set_output keeps it
    asked: Container = stated.get("transform", get_config()["transform_output"])
    return asked


def _with_plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with dates as moments at midnight, decimal numbers as floats and Arrow's dictionaries as categories.

    So pandas reads days and decimal numbers from Parquet: as Python's objects, or in Arrow's types where it is asked.
    """
    types = {name: _of_objects(frame[name]) for name in frame.columns}
    plain = {name: _to_series(_in_arrow(frame[name], kind)) for name, kind in types.items() if kind is not None}
    if not plain:
        return frame  # assigning nothing would copy it
    return with_columns(frame, {name: column.array for name, column in plain.items()})


def _with_types_of(recoded: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """The frame with the dates, decimal numbers and dictionaries that `like` has, where these can hold its values."""
    restored = {}
    for name in recoded.columns:
        kind = _of_objects(like.get(name))
        values = None if kind is None else _to_array(recoded[name], kind)
        if values is not None and values.type == kind:
            as_objects = like[name].dtype == object
            restored[name] = _objects(values) if as_objects else pd.arrays.ArrowExtensionArray(values)
    return with_columns(recoded, restored) if restored else recoded


def _objects(values: Any) -> npt.NDArray[np.object_]:
    filled = np.empty(len(values), dtype=object)
    filled[:] = values.to_pylist()
    return filled


def _of_objects(column: Any) -> Any:
    """The type that Arrow has for a column of dates, decimal numbers or categories of its own; None for all others.

    A frame gives more than one column where names stand twice; these are left for others to refuse.
    """
    import pyarrow as pa

    if not isinstance(column, pd.Series):
        return None
    if isinstance(column.dtype, pd.ArrowDtype):
        kind = column.dtype.pyarrow_dtype
        known = pa.types.is_date(kind) or pa.types.is_decimal(kind) or pa.types.is_dictionary(kind)
        return kind if known else None
    if column.dtype != object:
        return None
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred == "date":
        return pa.date32()
    return pa.decimal128(38, _in_arrow(column, None).type.scale) if inferred == "decimal" else None


def _in_arrow(column: pd.Series, kind: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(column, kind, from_pandas=True)
    except (pa.ArrowInvalid, TypeError):  # TypeError: Decimal("Infinity")
        raise InputError(
            f"the column {column.name} holds infinity or numbers of more than 38 digits; replace them, or make the "
            "column a text"
        ) from None


def _arrow(table: Any) -> Any:
    """The table as one of Arrow; None where it is no table that is in memory."""
    import narwhals as nw
    import pyarrow as pa

    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    try:
        return frame.to_arrow()
    except pa.ArrowInvalid:  # whole numbers of 128 bits, which polars has
        types = ", ".join(f"{name} ({kind})" for name, kind in frame.schema.items())
        raise InputError(
            f"a column has a type that Arrow does not know: {types}; cast it, such as to Int64 or to a text"
        ) from None


def _to_series(column: Any) -> pd.Series:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if pa.types.is_integer(kind) and column.null_count:
        whole: pd.Series = column.to_pandas(types_mapper=lambda type_: NULLABLE[str(type_)])
        return whole
    values: pd.Series = column.to_pandas(date_as_object=False)
    return values


def _to_array(column: pd.Series, type_: Any) -> Any:
    """The values as an array of Arrow, of this type where it can hold them."""
    import pyarrow as pa

    values = pa.array(column, from_pandas=True)
    try:
        typed = values if type_ is None else values.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return values
    return values if pa.types.is_decimal(typed.type) and not _alike(typed, values) else typed


def _alike(decimals: Any, floats: Any) -> bool:
    """Whether decimal numbers are what the floats were, and not rounded; Arrow casts them but nearly exactly."""
    typed, given = (values.cast("float64").to_numpy(zero_copy_only=False) for values in (decimals, floats))
    return np.allclose(typed, given, rtol=1e-12, atol=0, equal_nan=True)
