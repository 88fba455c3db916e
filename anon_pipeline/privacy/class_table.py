"""Whether a class table is that of the table beside it: the same shown values, for as many people.

Demands on a population are judged by the boxes of the class table. It is a file like any other, and whoever wrote it
may have written what they liked, so it is believed only as far as the table bears it out.
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

#: Texts of ranges that a class table cannot tell from shorter ones.
UNTOLD = {"* or missing": "missing", "* or *": "*"}


def classes_that_differ(classes: pd.DataFrame, counts: ClassCounts, spec: ReleaseSpec) -> int:
    """How many shown tuples stand in one of the two only, or for another number of people; 0 where they agree.

    A class whose box does not hold what it shows differs too. Spans of ordered categories, of which a class table does
    not tell the ends, are left out of the comparison.

    Parameters
    ----------
    classes : a class table as a release publishes it, or what somebody put in its place
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
            # A class table does not tell whether nobody has a value beside those who have none, or somebody whose
            # value is not told.
            texts = _each(counts.classes[name], _text)
            here.append([UNTOLD.get(str(text), text) for text in texts])
            there.append(_each(pd.Series(_ranges(classes, name, counts.classes[name]), dtype=object), _text))
        else:
            shown, told = _alike(classes[name], counts.classes[name])
            here.append(told)
            there.append(shown)
            outside |= _outside(classes, name)
    expected = _people(here, counts.sizes, len(counts.sizes))
    written = _people(there, sizes.to_numpy(np.int64), len(classes))
    differ = sum(expected[shown] != written[shown] for shown in {*expected, *written})
    return differ + int(outside.sum())


def _has_box(classes: pd.DataFrame, name: str) -> bool:
    ordered = {f"{name}_low", f"{name}_high", f"{name}_missing"} <= set(classes)
    return name in classes and (ordered or f"{name}_values" in classes)


def _people(columns: list[list[Hashable]], sizes: Iterable[int], rows: int) -> Counter[tuple[Hashable, ...]]:
    counted: Counter[tuple[Hashable, ...]] = Counter()
    for shown, size in zip(zip(*columns, strict=True) if columns else [()] * rows, sizes, strict=True):
        counted[shown] += int(size)
    return counted


def _alike(shown: pd.Series, told: pd.Series) -> tuple[list[Hashable], list[Hashable]]:
    """Both columns as values that can be compared, though one stands in a CSV, or was stored as another type."""
    both = (shown, told)
    if any(pd.api.types.is_datetime64_any_dtype(series.dtype) for series in both):
        read = _moment
    elif any(pd.api.types.is_float_dtype(series.dtype) for series in both):
        read = _float
        if told.dtype in (np.float32, "Float32"):  # the class table has more digits
            shown = pd.to_numeric(shown, errors="coerce").astype("Float32")
    elif any(pd.api.types.is_integer_dtype(series.dtype) for series in both):
        read = _number
    else:
        read = _text
    if not told.eq("*").fillna(False).any():  # what is not told is missing, but in a column of texts
        shown = shown.mask(shown.eq("*").fillna(False))
    return _each(shown, read), _each(told, read)


def _each(column: pd.Series, read: Callable[[Any], Hashable]) -> list[Hashable]:
    return [None if _is_missing(value) else read(value) for value in column.astype(object)]


def _is_missing(value: Any) -> bool:
    return bool(pd.isna(value)) or value == ""


def _text(value: Any) -> Hashable:
    """A text; booleans as an engine writes them."""
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


def _number(value: Any) -> Hashable:
    """A whole number exactly, where it is one; what is no number stays what it is, and so equals none."""
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
    """Which classes show a value that their own box does not hold; what is withheld lies nowhere."""
    if f"{name}_low" in classes:
        shown = classes[name]
        below, above = shown < classes[f"{name}_low"], shown > classes[f"{name}_high"]  # an end that is missing is open
        return np.asarray((below | above).fillna(False), dtype=bool)
    shown_and_told = zip(classes[name], classes[f"{name}_values"], strict=True)
    return np.array([value != "*" and value not in list(told) for value, told in shown_and_told], dtype=bool)


def _ranges(classes: pd.DataFrame, name: str, told: pd.Series) -> list[str]:
    """The text that each class of a class table stands for where ranges are shown."""
    if f"{name}_label" in classes:
        return [str(label).replace("* or missing", "missing") for label in classes[f"{name}_label"]]
    if f"{name}_values" in classes:
        sets = [
            ["missing" if value is None else str(value) for value in values] for values in classes[f"{name}_values"]
        ]
        return [names[0] if len(names) == 1 else "{" + ", ".join(names) + "}" for names in sets]
    days = not any("T" in text for text in told.dropna())
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
