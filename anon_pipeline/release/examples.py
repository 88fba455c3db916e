"""A few classes of a release as its reader sees them, for the report: whole classes, counted in the published table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.engine.base import ClassCounts

#: So many classes are shown, and of each sensitive column so many values of a class, the most frequent first.
CLASSES, VALUES = 3, 3


def examples_of(counted: ClassCounts) -> list[dict[str, Any]]:
    """The first classes in the order of what they show, which has nothing to do with the source's.

    Parameters
    ----------
    counted : the classes of the table that is published

    Returns
    -------
    Of each class `people`, the `recoded` value by quasi-identifier, and under `kept` by sensitive column its most
    frequent values with their numbers of people and how many `others` there are.
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
    """Numbers and dates by size, all else as text; what is missing comes last either way."""
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column
    return column.astype(object).map(lambda value: value if pd.isna(value) else str(value))


def _values(of_class: pd.DataFrame) -> dict[str, Any]:
    counts = [(_text(value), int(count)) for value, count in zip(of_class["value"], of_class["count"], strict=True)]
    counts.sort(key=lambda pair: (-pair[1], pair[0] or ""))
    return {"values": [list(pair) for pair in counts[:VALUES]], "others": len(counts[VALUES:])}


def _text(value: Any) -> str | None:
    """A cell as one writes it; None where it is missing."""
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
