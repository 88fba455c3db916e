"""Values that files store in different types, as the same values in all tables of an attack.

A CSV has 0.1 where a column of 32 bits has the number nearest to it, and floats lose the last digits of long numbers.
Who is not found in a table for such a reason would look safe.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anon_pipeline.arrays import LARGEST_EXACT
from anon_pipeline.attack.generalized_values import has_offset, numbers, texts, without_offset
from anon_pipeline.audit.foreign_columns import DATE

#: From which share of its values on a table shows numbers as people have them, and not other ones.
MOSTLY = 0.5

_YEAR = re.compile(r"[1-9]\d{3}")
_DECIMAL = re.compile(r"\d*\.\d+(?:[eE][-+]?\d+)?")
_LONG = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}


def frame_of(content: pa.Table) -> pd.DataFrame:
    """A table in pandas, with all columns of its file, also those that pandas had as an index, and all digits."""
    frame: pd.DataFrame = content.to_pandas(ignore_metadata=True)
    for field in content.schema:
        column = content.column(field.name)
        if field.type in _LONG and 0 < column.null_count < len(column):
            ends = pc.min_max(column).as_py()
            if max(abs(ends["min"]), abs(ends["max"])) > LARGEST_EXACT:
                frame[field.name] = column.to_pandas(types_mapper=_LONG.get)
    return frame


def with_same_values(
    tables: dict[str, pd.DataFrame], classes: pd.DataFrame | None
) -> tuple[dict[str, pd.DataFrame], pd.DataFrame | None]:
    """The tables with short floats and moments as the narrowest of them can hold them.

    Parameters
    ----------
    tables : the table under `released`, the people in it under `people`, and, where there are, others under `others`
    classes : our own table of classes, where there is one
    """
    changed: dict[str, dict[str, pd.Series]] = {key: {} for key in tables}
    of_classes: dict[str, pd.Series] = {}
    for name in map(str, tables["people"]):
        columns = {key: table[name] for key, table in tables.items() if name in table}
        if "released" not in columns:
            continue
        if (width := _width(columns)) is not None:
            for key, column in columns.items():
                changed[key][name] = _short(column, width)
            for told in (name, f"{name}_low", f"{name}_high"):
                if classes is not None and told in classes:
                    of_classes[told] = _short(classes[told], width)
        elif has_offset(columns["people"]) and not has_offset(columns["released"]):
            for key in columns.keys() - {"released"}:
                changed[key][name] = without_offset(columns[key])
    tables = {key: table.assign(**changed[key]) for key, table in tables.items()}
    return tables, None if classes is None else classes.assign(**of_classes)


def _width(columns: dict[str, pd.Series]) -> type[np.floating[Any]] | None:
    """The type of the shortest floats that the table or the people in it have, or else other people."""
    of_table = {columns[key].dtype for key in ("released", "people")}
    for dtypes in (of_table, {column.dtype for column in columns.values()}):
        for width in (np.float16, np.float32):
            if np.dtype(width) in dtypes:
                return width
    return None


def _short(column: pd.Series, width: type[np.floating[Any]]) -> pd.Series:
    """The shortest decimals of the short floats next to a column's numbers, also to those within its texts."""
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        values = column.dropna().unique()
        if any(isinstance(value, str) for value in values):
            written = {
                value: _DECIMAL.sub(lambda match: str(width(float(match[0]))), value)
                if isinstance(value, str)
                else value
                for value in values
            }
            return column.map(written)
    wide = numbers(column)
    with np.errstate(over="ignore"):
        short = wide.astype(width)
    decimals = short.astype(str).astype(np.float64)
    return pd.Series(np.where(np.isinf(decimals), wide, decimals), index=column.index)


def with_all_digits(
    tables: dict[str, pd.DataFrame], ordered: Collection[str]
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The tables with numbers as texts of all digits where floats would take different ones of people for one.

    Such numbers number people or things, so that which one it is matters, and not its size. Where the table shows
    something else, such as ranges, the columns stay numbers.

    Parameters
    ----------
    tables : as for `with_same_values`
    ordered : the columns that hold numbers

    Returns
    -------
    The tables, and the columns that are texts now
    """
    exact = [
        str(name)
        for name in tables["people"]
        if name in ordered and name in tables["released"] and _loses_digits(tables["people"][name])
    ]
    exact = [name for name in exact if _shows(tables["released"][name], tables["people"][name])]
    for name in exact:
        tables = {
            key: table.assign(**{name: _in_digits(table[name])}) if name in table else table
            for key, table in tables.items()
        }
    return tables, exact


def places(tables: Mapping[str, pd.DataFrame], names: Collection[str]) -> dict[str, dict[str, pd.Series]]:
    """By table, the places of numbers in their order, of columns in which floats take different ones for one.

    Of kept numbers the attacks of an audit need no more than which are equal and in which order they are.

    Parameters
    ----------
    tables : numbers with all their digits
    names : the columns that are looked at; a table may lack some, or have texts in them
    """
    found: dict[str, dict[str, pd.Series]] = {key: {} for key in tables}
    for name in names:
        columns = {key: table[name] for key, table in tables.items() if name in table}
        columns = {
            key: _in_digits(column) for key, column in columns.items() if pd.api.types.is_numeric_dtype(column.dtype)
        }
        values = pd.concat(list(columns.values())).dropna().unique()
        if len(np.unique(numbers(pd.Series(values.astype(np.float64))))) == len(values):
            continue
        place = {value: float(number) for number, value in enumerate(sorted(values, key=Decimal), 1)}
        for key, column in columns.items():
            found[key][name] = column.map(place).astype(np.float64)
    return found


def _loses_digits(column: pd.Series) -> bool:
    """Whether floats would take different numbers of a column for one."""
    if pd.api.types.is_integer_dtype(column.dtype):
        if not column.notna().any() or max(abs(int(column.min())), abs(int(column.max()))) <= LARGEST_EXACT:
            return False
    elif not (column.dtype == object or isinstance(column.dtype, pd.StringDtype)):
        return False
    values = pd.Series(column.dropna().unique())
    if values.dtype == object and all(len(str(value)) <= 15 for value in values):
        return False
    digits = _in_digits(values)
    return len(set(digits)) > len(np.unique(numbers(values)))


def _shows(released: pd.Series, people: pd.Series) -> bool:
    shown, own = set(_in_digits(released).dropna()), set(_in_digits(people).dropna())
    return bool(shown) and len(shown & own) >= MOSTLY * len(shown)


def _in_digits(column: pd.Series) -> pd.Series:
    """Numbers as texts of all their digits, the same however they are stored; other texts stay."""
    values = column.dropna().unique()
    return column.astype(object).map({value: _digits(value) for value in values}).astype(object)


def _digits(value: Any) -> str:
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return str(value)
    if not number.is_finite():
        return str(value)
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def with_spans_of_years(released: pd.DataFrame, people: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The table with years as spans of days where people have dates; 2024 would else be read as a number of days."""
    spans: dict[str, pd.Series] = {}
    for name in names:
        if name in released and name in people and _holds_dates(people[name]):
            years = texts(released[name])
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
        bool(DATE.fullmatch(value)) if isinstance(value, str) else isinstance(value, datetime.date) for value in values
    )
