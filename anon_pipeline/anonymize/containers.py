"""Tables of other makers (polars, Arrow), by way of narwhals: to pandas and back, with the types that they had."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn import get_config

from anon_pipeline.anonymize.frames import with_columns

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
    """
    if isinstance(table, pd.DataFrame):
        return _with_moments(table)
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
        return _with_dates(recoded, like) if isinstance(like, pd.DataFrame) else recoded
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


def _with_moments(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with Python's dates, as pandas reads a column of days from Parquet, as moments at midnight."""
    dates = [name for name in frame.columns if _of_dates(frame[name])]
    if not dates:
        return frame  # assigning nothing would copy it
    return with_columns(frame, {name: _none_for_missing(frame[name]).astype("datetime64[us]") for name in dates})


def _with_dates(recoded: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """The frame with Python's dates where `like` has them."""
    moments = {name: recoded[name] for name in recoded.columns if _of_dates(like.get(name))}
    if not moments:
        return recoded
    return with_columns(recoded, {name: _none_for_missing(column.dt.date) for name, column in moments.items()})


def _none_for_missing(column: pd.Series) -> npt.NDArray[np.object_]:
    return np.array([None if gone else value for value, gone in zip(column, column.isna(), strict=True)], dtype=object)


def _of_dates(column: Any) -> bool:
    """Whether it is a column of Python's dates; a frame gives more than one column where names stand twice."""
    known = isinstance(column, pd.Series) and column.dtype == object
    return known and pd.api.types.infer_dtype(column, skipna=True) == "date"


def _arrow(table: Any) -> Any:
    """The table as one of Arrow; None where it is no table that is in memory."""
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True, pass_through=True)
    return frame.to_arrow() if isinstance(frame, nw.DataFrame) else None


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
        return values if type_ is None else values.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return values
