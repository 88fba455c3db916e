"""From a pandas frame to codes and cells, for use without an engine; by position, never by index label."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Cells, Domain, fixed_point


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
        For something that is not a frame, duplicate column names, infinity, or a column of numbers and texts.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputError("the table must be a pandas DataFrame")
    twice = sorted({str(name) for name in frame.columns[frame.columns.duplicated()]})
    if twice:
        raise InputError(f"the columns {', '.join(twice)} stand twice; rename or drop one of each")
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_float_dtype(column.dtype) and np.isinf(column.to_numpy(float, na_value=np.nan)).any():
            raise InputError(f"the column {name} holds infinity; replace it by a number or a missing value")
        if column.dtype == object:
            kinds = {type(value) for value in column[column.notna().to_numpy()]}
            if len(kinds) > 1:
                names = ", ".join(sorted(kind.__name__ for kind in kinds))
                raise InputError(f"the column {name} mixes types ({names}); convert it to one type first")


def ordered_values(column: pd.Series) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_]]:
    """Numbers or dates as int64 or float64 (dates: microseconds since 1970), and where they are missing."""
    missing = column.isna().to_numpy(bool)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        naive = column.dt.tz_convert("UTC").dt.tz_localize(None) if column.dt.tz is not None else column
        return naive.to_numpy("datetime64[us]").astype(np.int64), missing
    if pd.api.types.is_integer_dtype(column.dtype):
        return column.to_numpy(np.int64, na_value=0), missing
    return column.to_numpy(np.float64, na_value=np.nan) + 0.0, missing  # + 0.0 makes one zero of -0.0 and 0.0


def learn_domain(name: str, column: pd.Series) -> tuple[Domain, npt.NDArray[np.int32]]:
    """The domain of a column and the code of each of its rows, shape (n,)."""
    kind = column_type(column)
    if kind is ColumnType.CATEGORICAL:
        missing = column.isna().to_numpy(bool)
        raw = column.astype(object).to_numpy()[~missing].astype(str)
    else:
        raw, missing = ordered_values(column)
        raw = raw[~missing]
    values, position = np.unique(raw, return_inverse=True)
    codes = np.zeros(len(column), dtype=np.int32)
    codes[~missing] = position + 1
    counts = np.bincount(codes, minlength=len(values) + 1).astype(np.int64)
    if kind is ColumnType.CATEGORICAL:
        values = values.astype(object)
    return Domain(name, kind, values, counts, str(column.dtype)), codes


def apply_domain(domain: Domain, column: pd.Series) -> npt.NDArray[np.int32]:
    """Codes of rows that may hold values the domain does not know, shape (n,).

    A number between two known ones takes the code of the nearer (the lower one on a tie), as a threshold halfway
    between them would decide. An unknown category, and a missing value where the domain knows none, takes the code
    of the column's most common value.
    """
    most_common = int(np.argmax(domain.counts[1:])) + 1 if len(domain) > 1 else 0
    if domain.ordered:
        raw, missing = ordered_values(column)
        known = domain.values.astype(np.float64)
        halfway = known[:-1] / 2 + known[1:] / 2
        codes = np.searchsorted(halfway, np.where(missing, 0, raw).astype(np.float64), side="left") + 1
        codes = np.minimum(codes, len(domain.values))
    else:
        missing = column.isna().to_numpy(bool)
        text = np.where(missing, "", column.astype(object).to_numpy()).astype(str)
        known = domain.values.astype(str)
        codes = np.minimum(np.searchsorted(known, text), max(len(known) - 1, 0))
        codes = np.where(known[codes] == text, codes + 1, most_common) if len(known) else np.zeros(len(text))
    codes = np.where(missing, 0 if domain.counts[0] else most_common, codes)
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
    distinct, cell = np.unique(codes, axis=0, return_inverse=True)
    cell = cell.ravel()
    summed = np.zeros((len(distinct), guidance.shape[1]), dtype=np.int64)
    np.add.at(summed, cell, fixed_point(guidance))
    return Cells(domains, distinct, np.bincount(cell).astype(np.int64), summed), cell
