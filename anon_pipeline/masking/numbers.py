"""Conversion of columns of numbers and dates to floats and back."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anon_pipeline.arrays import FloatArray
from anon_pipeline.tables import scale_of

MICROSECONDS_PER_DAY = 86_400_000_000


def to_floats(array: pa.Array) -> FloatArray:
    """Numbers as they are, dates and moments as days since 1970 (to the microsecond); NaN where missing. Shape (n,)."""
    type_ = array.type
    if pa.types.is_timestamp(type_):
        moments = array.cast(pa.timestamp("us", type_.tz), safe=False).cast(pa.int64())
        return _floats(moments) / MICROSECONDS_PER_DAY
    if pa.types.is_date(type_):
        return _floats(array.cast(pa.date32()).cast(pa.int32()))
    return _floats(array)


def from_floats(values: FloatArray, type_: pa.DataType) -> pa.Array:
    """The reverse of `to_floats`: integers are rounded, and values beyond a type's range become its nearest end.

    Negative zero becomes zero, and NaN a missing value.
    """
    missing = np.isnan(values)
    known = np.where(missing, 0.0, values) + 0.0
    if pa.types.is_timestamp(type_):
        whole = _clipped(np.rint(known * MICROSECONDS_PER_DAY), pa.int64())
        return pa.array(whole, mask=missing).cast(pa.timestamp("us", type_.tz)).cast(type_, safe=False)
    if pa.types.is_date(type_):
        days = pa.array(_clipped(np.rint(known), pa.int32()), mask=missing)
        return days.cast(pa.date32()).cast(type_)
    if pa.types.is_integer(type_):
        return pa.array(_clipped(np.rint(known), type_), mask=missing, type=type_)
    if pa.types.is_decimal(type_):
        return _decimals(known, missing, type_)
    end = float(np.finfo(type_.to_pandas_dtype()).max)
    return pa.array(np.clip(known, -end, end), mask=missing).cast(type_, safe=False)


def with_fractions(type_: pa.DataType) -> pa.DataType:
    """The type of a column of numbers that may have fractions, whatever numbers people have.

    A column is of whole numbers where everybody has one: a single fraction would change what is shown of all others.
    """
    return pa.float64() if pa.types.is_integer(type_) else type_


def deviation(values: FloatArray) -> float:
    """The standard deviation of the known values, 0 where there are none; it does not overflow for large floats."""
    known = values[~np.isnan(values)]
    scale = scale_of(known)
    return float((known / scale).std()) * scale if len(known) else 0.0


def two_digits(value: float) -> float:
    """A figure of the whole table, rounded to two significant digits, which one person more or less rarely changes."""
    return float(f"{value:.2g}")


def _floats(array: pa.Array) -> FloatArray:
    floats = array.cast(pa.float64(), safe=False)
    return np.array(pc.fill_null(floats, np.nan), dtype=np.float64)  # a copy that may be changed


def _clipped(whole: FloatArray, type_: pa.DataType) -> np.ndarray[tuple[int], np.dtype[np.integer]]:
    """Whole floats as integers of a type; float64 cannot hold the ends of the 64-bit types, hence the comparison."""
    native = np.dtype(type_.to_pandas_dtype())
    ends = np.iinfo(native)
    low, high = whole <= float(ends.min), whole >= float(ends.max)
    result = np.where(low | high, 0.0, whole).astype(native)
    result[low], result[high] = ends.min, ends.max
    return result


def _decimals(known: FloatArray, missing: np.ndarray[tuple[int], np.dtype[np.bool_]], type_: pa.DataType) -> pa.Array:
    end = (10**type_.precision - 1) / 10**type_.scale * (1 - 2.0**-50)  # below the end also after rounding
    exact = [
        None if is_missing else Decimal(f"{value:.{max(type_.scale, 0)}f}")
        for value, is_missing in zip(np.clip(known, -end, end).tolist(), missing.tolist(), strict=True)
    ]
    return pa.array(exact, type=type_)
