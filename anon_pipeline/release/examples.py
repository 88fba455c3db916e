"""Examples for the report: a few whole classes of a release, counted in the published table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.engine.base import ClassCounts

#: The number of shown classes, and of a class's most frequent values per sensitive column.
CLASSES, VALUES = 3, 3


def examples_of(counted: ClassCounts) -> list[dict[str, Any]]:
    """The first classes in the order of their recoded values, which does not depend on the order of the source.

    Parameters
    ----------
    counted : the classes of the published table

    Returns
    -------
    For each class `people`, the `recoded` value by quasi-identifier, and under `kept`, by sensitive column, the most
    frequent values with their numbers of people and the number of `others`.
    """
    recoded = counted.classes.reset_index(drop=True)
    keys = pd.DataFrame({place: _sorted_by(recoded[name]) for place, name in enumerate(recoded.columns)})
    first = keys.sort_values(list(keys.columns), kind="stable").index[:CLASSES]
    return [
        {
            "people": int(counted.sizes[place]),
            "recoded": {name: _text(recoded.at[place, name]) for name in recoded.columns},
            "kept": {column: _values(frame[frame["class"] == place]) for column, frame in counted.sensitive.items()},
        }
        for place in first
    ]


def _sorted_by(column: pd.Series) -> pd.Series:
    """The column sorted: numbers and dates by size, all other values as text, and missing values last."""
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column
    return column.astype(object).map(lambda value: value if pd.isna(value) else str(value))


def _values(of_class: pd.DataFrame) -> dict[str, Any]:
    counts = [(_text(value), int(count)) for value, count in zip(of_class["value"], of_class["count"], strict=True)]
    counts.sort(key=lambda pair: (-pair[1], pair[0] or ""))
    return {"values": [list(pair) for pair in counts[:VALUES]], "others": len(counts[VALUES:])}


def _text(value: Any) -> str | None:
    """A value of the table as text; None if it is missing."""
    if pd.isna(value):
        return None
    if isinstance(value, datetime):
        return (
            value.date().isoformat()
            if value == value.replace(hour=0, minute=0, second=0, microsecond=0)
            else str(value)
        )
    if isinstance(value, float | np.floating):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return str(value)
