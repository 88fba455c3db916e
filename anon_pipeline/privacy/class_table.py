"""Check that a class table belongs to the released table beside it: the same values, for equally many people.

Demands on a population are judged by the boxes of the class table. Anybody may have written or changed that file, so it
is believed only as far as it agrees with the released table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.engine.base import ClassCounts
from anon_pipeline.spec import ReleaseSpec

SIZE = "class_size"

#: Texts of ranges that look the same as shorter ones in a class table.
SAME_IN_CLASS_TABLE = {"* or missing": "missing", "* or *": "*"}


def classes_that_differ(classes: pd.DataFrame, counts: ClassCounts, spec: ReleaseSpec) -> int:
    """How many tuples stand in one of the two only, or for another number of people; 0 where they agree.

    A class whose box does not hold its representative differs too. Spans of ordered categories are not compared, since
    a class table does not have their ends.

    Parameters
    ----------
    classes : a class table as a release publishes it, or any table in its place
    counts : the classes counted in the table
    """
    everything = len(classes) + len(counts.sizes)
    sizes = pd.to_numeric(classes[SIZE], errors="coerce") if SIZE in classes else None
    if sizes is None or not ((sizes >= 1) & (sizes % 1 == 0)).fillna(False).all():
        return everything
    ranges = spec.recode.form == "range"
    here: list[list[Hashable]] = []
    there: list[list[Hashable]] = []
    outside = np.zeros(len(classes), dtype=bool)
    for name in spec.quasi_identifiers:
        if not _has_box(classes, name):
            return everything
        column = spec.columns[name]
        if ranges and column.levels is not None and f"{name}_label" not in classes:
            continue
        if ranges:
            # A class table does not show whether all members lack a value, or one of them has a value that is not
            # published.
            texts = _each(counts.classes[name], _text)
            here.append([SAME_IN_CLASS_TABLE.get(str(text), text) for text in texts])
            there.append(_each(pd.Series(_ranges(classes, name, counts.classes[name]), dtype=object), _text))
        else:
            in_class_table, in_data = _alike(classes[name], counts.classes[name])
            here.append(in_data)
            there.append(in_class_table)
            outside |= _outside(classes, name)
    expected = _people(here, counts.sizes, len(counts.sizes))
    written = _people(there, sizes.to_numpy(np.int64), len(classes))
    differ = sum(expected[values] != written[values] for values in {*expected, *written})
    return differ + int(outside.sum())


def _has_box(classes: pd.DataFrame, name: str) -> bool:
    ordered = {f"{name}_low", f"{name}_high", f"{name}_missing"} <= set(classes)
    return name in classes and (ordered or f"{name}_values" in classes)


def _people(columns: list[list[Hashable]], sizes: Iterable[int], rows: int) -> Counter[tuple[Hashable, ...]]:
    counted: Counter[tuple[Hashable, ...]] = Counter()
    for values, size in zip(zip(*columns, strict=True) if columns else [()] * rows, sizes, strict=True):
        counted[values] += int(size)
    return counted


def _alike(in_class_table: pd.Series, in_data: pd.Series) -> tuple[list[Hashable], list[Hashable]]:
    """Both columns as values that can be compared, even if one comes from a CSV or was stored as another type."""
    both = (in_class_table, in_data)
    if any(pd.api.types.is_datetime64_any_dtype(series.dtype) for series in both):
        read = _moment
    elif any(pd.api.types.is_float_dtype(series.dtype) for series in both):
        read = _float
        if in_data.dtype in (np.float32, "Float32"):  # the class table has more digits
            in_class_table = pd.to_numeric(in_class_table, errors="coerce").astype("Float32")
    elif any(pd.api.types.is_integer_dtype(series.dtype) for series in both):
        read = _number
    else:
        read = _text
    if not in_data.eq("*").fillna(False).any():  # unpublished values are missing, except in a column of texts
        in_class_table = in_class_table.mask(in_class_table.eq("*").fillna(False))
    return _each(in_class_table, read), _each(in_data, read)


def _each(column: pd.Series, read: Callable[[Any], Hashable]) -> list[Hashable]:
    return [None if _is_missing(value) else read(value) for value in column.astype(object)]


def _is_missing(value: Any) -> bool:
    return bool(pd.isna(value)) or value == ""


def _text(value: Any) -> Hashable:
    """A text; booleans as an engine writes them."""
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


def _number(value: Any) -> Hashable:
    """A whole number exactly, another number as a float, and anything else as a text, which equals no number."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return _float(value)


def _float(value: Any) -> Hashable:
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def _moment(value: Any) -> Hashable:
    try:
        moment = pd.Timestamp(value)
    except (TypeError, ValueError):
        return str(value)
    return moment.tz_convert("UTC").tz_localize(None) if moment.tzinfo is not None else moment


def _outside(classes: pd.DataFrame, name: str) -> np.ndarray:
    """Which classes have a representative outside their own box; withheld representatives do not count."""
    if f"{name}_low" in classes:
        value = classes[name]
        below, above = value < classes[f"{name}_low"], value > classes[f"{name}_high"]  # an end that is missing is open
        return np.asarray((below | above).fillna(False), dtype=bool)
    with_sets = zip(classes[name], classes[f"{name}_values"], strict=True)
    return np.array([value != "*" and value not in list(named) for value, named in with_sets], dtype=bool)


def _ranges(classes: pd.DataFrame, name: str, in_data: pd.Series) -> list[str]:
    """The range of each class of a class table, as a text of the form that the data have."""
    if f"{name}_label" in classes:
        return [str(label).replace("* or missing", "missing") for label in classes[f"{name}_label"]]
    if f"{name}_values" in classes:
        sets = [
            ["missing" if value is None else str(value) for value in values] for values in classes[f"{name}_values"]
        ]
        return [names[0] if len(names) == 1 else "{" + ", ".join(names) + "}" for names in sets]
    days = not any("T" in text for text in in_data.dropna())
    ends = zip(classes[f"{name}_low"], classes[f"{name}_high"], classes[f"{name}_missing"], strict=True)
    return [_range(_end(low, days), _end(high, days), missing) for low, high, missing in ends]


def _end(value: Any, days: bool) -> str | None:
    if _is_missing(value):
        return None
    if isinstance(value, pd.Timestamp):
        return str(value.to_datetime64().astype("datetime64[D]" if days else "datetime64[us]"))
    return str(value)


def _range(low: str | None, high: str | None, missing: Any) -> str:
    rest = "*" if pd.isna(missing) else "missing" if missing else None
    if low is None and high is None:
        return rest or "*"
    if low is None or high is None:
        text = f"≥ {low}" if high is None else f"≤ {high}"
    else:
        text = low if low == high else f"[{low}, {high}]"
    return text if rest is None else f"{text} or {rest}"
