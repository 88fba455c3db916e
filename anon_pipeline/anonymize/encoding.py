"""From a pandas frame to codes and cells, for use without an engine; by position, never by index label."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.arrays import IntArray
from anon_pipeline.distinct import factorized
from anon_pipeline.engine.packing import Packing
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram, histogram
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import FIRST_MOMENT, LAST_MOMENT, Cells, Domain, fixed_point

#: Numbers beyond this are no measurements of people, and would overflow in later steps.
LARGEST = 1e18

#: What pandas calls the content of a column that can be read: as objects, or only where the column has that type.
READABLE = {"string", "boolean", "empty"}
READABLE_AS_DTYPE = {"integer", "floating", "datetime64"}


def column_type(column: pd.Series) -> ColumnType:
    """Numbers are numeric, dates are dates, everything else (booleans too) is categorical."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return ColumnType.DATE
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        return ColumnType.NUMERIC
    return ColumnType.CATEGORICAL


def check_frame(frame: pd.DataFrame) -> None:
    """Refuse what could be misread.

    Raises
    ------
    InputError
        For something that is not a frame with named columns, duplicate names, infinity and numbers beyond `LARGEST`,
        dates outside of the years 1 to 9999, or a column that is not all numbers, all texts, all booleans or all dates.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputError("the table must be a DataFrame of pandas or polars, or a Table of Arrow")
    if not len(frame.columns) or not all(isinstance(name, str) for name in frame.columns):
        raise InputError("the table must have columns, each with a text as its name")
    twice = sorted(set(frame.columns[frame.columns.duplicated()]))
    if twice:
        raise InputError(f"the columns {', '.join(twice)} stand twice; rename or drop one of each")
    for name in frame.columns:
        column = frame[name]
        known = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
        kind = pd.api.types.infer_dtype(known, skipna=True)
        if kind.startswith("mixed"):
            raise InputError(f"the column {name} mixes types; convert it to one type first")
        readable = READABLE if column.dtype == object else READABLE | READABLE_AS_DTYPE
        if known is column and kind not in readable:
            raise InputError(f"the column {name} holds {kind} objects; make them numbers, texts or datetime64 first")
        if column_type(column) is ColumnType.NUMERIC:
            size = np.abs(column.to_numpy(float, na_value=np.nan))
            if (size > LARGEST).any():
                raise InputError(
                    f"the column {name} holds infinity or numbers beyond {LARGEST:g}; replace them by a number or a "
                    "missing value, or make the column a text"
                )
        if column_type(column) is ColumnType.DATE:
            values, missing = ordered_values(column)
            moments = values.astype(np.int64)
            if (~missing & ((moments < FIRST_MOMENT) | (moments > LAST_MOMENT))).any():
                raise InputError(
                    f"the column {name} holds dates outside of the years 1 to 9999; replace them by dates or missing "
                    "values"
                )


def ordered_values(column: pd.Series) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_]]:
    """Numbers or dates as int64 or float64 (dates: microseconds since 1970), and where they are missing."""
    missing = column.isna().to_numpy(bool)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        naive = column.dt.tz_convert("UTC").dt.tz_localize(None) if column.dt.tz is not None else column
        return naive.to_numpy("datetime64[us]").astype(np.int64), missing
    if pd.api.types.is_integer_dtype(column.dtype):
        return column.to_numpy(np.int64, na_value=0), missing
    return column.to_numpy(np.float64, na_value=np.nan) + 0.0, missing  # + 0.0 makes one zero of -0.0 and 0.0


def distinct_texts(column: pd.Series) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """The place of each row among the column's distinct values, -1 where missing, and these values as texts."""
    place, distinct = factorized(column.astype(object).to_numpy())
    return place, np.array([str(value) for value in distinct], dtype=object)


def is_boolean(column: pd.Series) -> bool:
    """Whether a column holds true and false, as objects where some are missing."""
    of_objects = column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "boolean"
    return of_objects or pd.api.types.is_bool_dtype(column.dtype)


def known_texts(column: pd.Series, known: Collection[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """As `distinct_texts`, in the spelling of `known`, the texts of the same column as an engine or a frame read it.

    An engine writes true and false without capitals. Whole numbers have decimals in a frame where some are missing, and
    so have the categories that are made of them there.
    """
    place, texts = distinct_texts(column)
    numbers = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    spelled = texts
    if is_boolean(column):
        spelled = np.array([text.lower() for text in texts], dtype=object)
    elif pd.api.types.is_float_dtype(numbers.dtype):
        spelled = np.array([text.removesuffix(".0") for text in texts], dtype=object)
    elif pd.api.types.is_integer_dtype(numbers.dtype):
        spelled = np.array([f"{text}.0" for text in texts], dtype=object)
    pairs = zip(texts, spelled, strict=True)
    return place, np.array([text if text in known or other not in known else other for text, other in pairs], object)


def learn_domain(name: str, column: pd.Series) -> tuple[Domain, npt.NDArray[np.int32]]:
    """The domain of a column and the code of each of its rows, shape (n,)."""
    kind = column_type(column)
    if kind is ColumnType.CATEGORICAL:
        place, distinct = distinct_texts(column)
        values, code = np.unique(distinct, return_inverse=True)
        codes = np.r_[0, code + 1][place + 1].astype(np.int32)
    else:
        raw, missing = ordered_values(column)
        known: npt.NDArray[Any] = raw[~missing]
        place, distinct = pd.factorize(known)  # hashing all and sorting a few is quicker than sorting all
        values, code = np.unique(distinct, return_inverse=True)
        codes = np.zeros(len(column), dtype=np.int32)
        codes[~missing] = (code + 1)[place]
    counts = np.bincount(codes, minlength=len(values) + 1).astype(np.int64)
    return Domain(name, kind, values, counts, str(column.dtype)), codes


def apply_domain(domain: Domain, column: pd.Series) -> npt.NDArray[np.int32]:
    """Codes of rows that may hold values the domain does not know, shape (n,).

    A number between two known ones takes the code of the nearer, the lower one on a tie. An unknown category, and a
    missing value where the domain knows none, takes the code of the column's most common value.

    Raises
    ------
    InputError
        For a column of another kind than the domain.
    """
    of_that_kind = column_type(column) is domain.type
    most_common = int(np.argmax(domain.counts[1:])) + 1 if len(domain) > 1 else 0
    of_missing = 0 if domain.counts[0] else most_common
    if not (of_that_kind and len(domain.values)):
        missing = column.isna().to_numpy(bool)
        if not of_that_kind and not missing.all():
            raise InputError(f"the column {domain.name} was {domain.type} when the tree was fitted, and now is not")
        codes = np.where(missing, of_missing, most_common)
    elif domain.ordered:
        raw, missing = ordered_values(column)
        if domain.storage == "DATE":  # an engine counts its days, a frame has moments
            raw = raw // 86_400_000_000
        if raw.dtype != domain.values.dtype:
            raw = raw.astype(np.float64)
        # Compared as they are before distances are taken: nothing lies halfway between two neighbouring floats.
        above = np.minimum(np.searchsorted(domain.high, np.where(missing, 0, raw)), len(domain.values) - 1)
        below = np.maximum(above - 1, 0)
        lower, upper = domain.high[below].astype(float), domain.low[above].astype(float)
        between = np.less(raw, domain.low[above])
        nearer_below = between & (raw - lower <= upper - raw)
        codes = np.where(missing, of_missing, np.where(nearer_below, below, above) + 1)
    else:
        place, distinct = known_texts(column, set(domain.values.tolist()))
        known = pd.Index(domain.values, dtype=object).get_indexer(pd.Index(distinct, dtype=object))
        codes = np.r_[of_missing, np.where(known >= 0, known + 1, most_common)][place + 1]
    return codes.astype(np.int32)


def count_cells(
    domains: tuple[Domain, ...], codes: npt.NDArray[np.int32], guidance: npt.NDArray[np.float64]
) -> tuple[Cells, npt.NDArray[np.int64]]:
    """Group rows of equal codes.

    Parameters
    ----------
    codes : shape (n, p)
    guidance : shape (n, g)

    Returns
    -------
    The cells, and the cell of each row, shape (n,).
    """
    key = Packing.plan(domains).pack(codes)  # in the order of the codes
    # One number per row is sorted faster. Equal rows come in no fixed order, which sums of integers do not need.
    order = np.argsort(key[:, 0]) if key.shape[1] == 1 else np.lexsort(key.T[::-1])
    first = np.r_[True, (key[order[1:]] != key[order[:-1]]).any(axis=1)]
    cell = np.empty(len(codes), dtype=np.int64)
    cell[order] = np.cumsum(first) - 1
    starts = np.flatnonzero(first)
    summed = np.add.reduceat(fixed_point(guidance)[order], starts, axis=0)
    counts = np.diff(np.r_[starts, len(codes)]).astype(np.int64)
    return Cells(domains, codes[order[starts]], counts, summed), cell


def _as_an_engine_counts(domain: Domain) -> list[Any]:
    """The values of a domain: dates as dates, if all of them are days, else as moments."""
    values = domain.readable(domain.values)
    if domain.type is ColumnType.DATE and (values == values.astype("datetime64[D]")).all():
        values = values.astype("datetime64[D]")
    return list(values.tolist())


def count_sensitive(
    cells: Cells, cell: IntArray, sensitive: pd.DataFrame | None, answers: Collection[str] = ()
) -> ClassStatistics:
    """The sensitive columns counted per cell; `cell` is the cell of each row, shape (n,).

    In the columns `answers` a missing value is an answer of its own.
    """
    histograms = {}
    sensitive = pd.DataFrame() if sensitive is None else sensitive
    for name in sensitive.columns:
        domain, code = learn_domain(str(name), sensitive[name])
        present = np.flatnonzero(domain.counts)
        position = np.zeros(len(domain), dtype=np.int64)
        position[present] = np.arange(len(present))
        values = [None, *_as_an_engine_counts(domain)]
        ones = np.ones(len(code), dtype=np.int64)
        histograms[str(name)] = Histogram(
            values=tuple(values[place] for place in present),
            counts=histogram(cell, position[code], ones, (len(cells.counts), len(present))),
            ordered=domain.ordered,
            missing_is_a_value=name in answers,
        )
    return ClassStatistics(sizes=cells.counts, sensitive=histograms)
