"""What classes show, in the type of the column of a frame that it replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.encoding import is_boolean, known_texts
from anon_pipeline.anonymize.recode import SUPPRESSED, CategorySummary, Summary
from anon_pipeline.arrays import IntArray


def in_type_of(column: pd.Series, summary: Summary, group: IntArray) -> Any:
    """What the class of each row shows, in the column's own type where that type can hold it."""
    if isinstance(summary, CategorySummary):
        return _restored_category(column, summary, group)
    values, withheld = summary.representative[group], summary.withheld[group]
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        moments: Any = pd.Series(np.where(withheld, np.datetime64("NaT"), values.astype("datetime64[us]")))
        if getattr(column.dtype, "tz", None) is not None:
            moments = moments.dt.tz_localize("UTC")
        return moments.astype(column.dtype).array
    if not isinstance(column.dtype, np.dtype):
        nullable = pd.Series(values.tolist()).astype("Float64" if values.dtype.kind == "f" else "Int64")
        return _typed(nullable.mask(withheld), column.dtype)
    if withheld.any():
        return np.where(withheld, np.nan, values.astype(float))
    fits = column.dtype.kind == "f" or np.array_equal(values.astype(column.dtype), values)
    return values.astype(column.dtype) if fits else values


def _restored_category(column: pd.Series, summary: CategorySummary, group: IntArray) -> Any:
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "string":
        texts = np.array([None, *summary.domain.values, SUPPRESSED], dtype=object)  # code -1 is the last
        return texts[summary.representative][group]
    known: Any = [True, False] if pd.api.types.is_bool_dtype(column.dtype) else pd.unique(column.dropna())
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = column.cat.categories
    _, spelled = known_texts(pd.Series(known), set(summary.domain.values.tolist()))
    originals: dict[str, Any] = dict(zip(spelled, known, strict=True))
    if is_boolean(column):  # an engine, whose tree may have been loaded, writes them without capitals
        originals |= {"true": True, "false": False}
    text = all(isinstance(value, str) for value in originals.values())
    names = [None, *(originals.get(v, v) for v in summary.domain.values), SUPPRESSED if text else None]
    values = pd.Series(names, dtype=object).to_numpy()[summary.representative[group]]
    if isinstance(column.dtype, pd.CategoricalDtype):
        # A file keeps all categories of a column, so those that no class shows would tell who else is in the table.
        by_classes = {names[code] for code in np.unique(summary.representative).tolist()} - {None}
        listed = [value for value in known if value in by_classes]
        unknown = sorted(by_classes - set(listed), key=names.index)
        return pd.Categorical(values, [*listed, *unknown], ordered=column.cat.ordered and not unknown)
    return values if column.dtype == object else _typed(pd.Series(values, dtype=object), column.dtype)


def _typed(values: pd.Series, dtype: Any) -> Any:
    """The values in a type, or as they are where it cannot hold them."""
    try:
        typed = values.astype("boolean" if pd.api.types.is_bool_dtype(dtype) and values.isna().any() else dtype)
    except (TypeError, ValueError):
        return values.array
    return typed.array
