"""A parser of generalized values as tools write them, and of the raw values that are compared with them.

We write "[25, 37]", "{a, b}", "37 or missing" and "*"; other tools write "[20, 30[", "(20,30]", "20-30", ">=50", "50+",
"130**" or "2020-02". A text is read as the widest range that it may mean; one that cannot be read allows every value.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

#: Stands for a value that is not named.
ANYTHING = "*"

_MISSING = ("missing", "nan", "none", "null", "na", "n/a", "<na>", "nat", "?", "")
_OFFSET = r"\s?(?:Z|[+-]\d\d(?::?\d\d)?)"
_DATE = rf"\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:{_OFFSET})?)?"
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_END = rf"{_DATE}|{_NUMBER}|[-+]?(?:inf|Inf|∞)"
_BRACKETS = re.compile(rf"([\[\](])\s*({_END})?\s*[,;]\s*({_END})?\s*([\[\])])")
_DASH = re.compile(rf"({_DATE}|{_NUMBER})\s*(?:-|\u2013|\u2014|\.\.|\bto\b)\s*({_DATE}|{_NUMBER})")
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
_COMPARED = re.compile(rf"(>=|<=|≥|≤|>|<)\s*({_DATE}|{_NUMBER})")
_PLUS = re.compile(rf"({_NUMBER})\s*\+")
_PREFIX = re.compile(r"(\d+)(\*+)")
_WITH_OFFSET = re.compile(rf"(\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)({_OFFSET})")
_TIME = re.compile(r"\d\d:\d\d:\d\d\.\d+")


@dataclass(frozen=True)
class Interval:
    """Numbers from `low` to `high`, both included, and whether a missing value is possible; empty if low > high."""

    low: float
    high: float
    missing: bool = False


UNKNOWN = Interval(-math.inf, math.inf, True)
ABSENT = Interval(math.inf, -math.inf, True)


def read_interval(text: str) -> Interval | None:
    """The numbers or dates (in days since 1970) that a text allows; None where it cannot be read."""
    text = text.strip()
    if text == ANYTHING:
        return UNKNOWN
    if text.lower() in _MISSING:
        return ABSENT
    first, _, rest = text.partition(" or ")
    if rest in ("missing", ANYTHING):  # a single missing value is written "*"
        interval = read_interval(first)
        return None if interval is None else Interval(interval.low, interval.high, True)
    if (point := read_point(text)) is not None:
        return Interval(point, point)
    if text.startswith("{") and text.endswith("}"):
        return _hull([read_interval(part) for part in text[1:-1].split(",")])
    return _read_range(text)


def _hull(parts: list[Interval | None]) -> Interval | None:
    """The interval around several intervals; None where one of them cannot be read."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return Interval(
        min(part.low for part in known), max(part.high for part in known), any(part.missing for part in known)
    )


def _read_range(text: str) -> Interval | None:
    """A range in one of the ways in which tools write them: [1, 5), >= 5, 65+, 123**, 20-29."""
    if match := _BRACKETS.fullmatch(text):
        low = -math.inf if match[2] is None else _end(match[2])
        high = math.inf if match[3] is None else _end(match[3])
        if match[1] != "[":
            low = np.nextafter(low, math.inf)
        if match[4] != "]":
            high = np.nextafter(high, -math.inf)
        return Interval(float(low), float(high))
    if match := _COMPARED.fullmatch(text):
        end = _end(match[2])
        return {
            ">=": Interval(end, math.inf),
            "≥": Interval(end, math.inf),
            "<=": Interval(-math.inf, end),
            "≤": Interval(-math.inf, end),
            ">": Interval(float(np.nextafter(end, math.inf)), math.inf),
            "<": Interval(-math.inf, float(np.nextafter(end, -math.inf))),
        }[match[1]]
    if match := _PLUS.fullmatch(text):
        return Interval(_end(match[1]), math.inf)
    if match := _PREFIX.fullmatch(text):
        unit = 10.0 ** len(match[2])
        return Interval(int(match[1]) * unit, float(np.nextafter((int(match[1]) + 1) * unit, -math.inf)))
    if (match := _MONTH.fullmatch(text)) and int(match[1]) > int(match[2]):  # as a range it would hold no number
        month = np.datetime64(text, "M")
        first, beyond = _days(np.array([month, month + 1]))
        return Interval(float(first), float(np.nextafter(beyond, -math.inf)))
    if match := _DASH.fullmatch(text):
        return Interval(_end(match[1]), _end(match[2]))
    return None


def read_point(text: str) -> float | None:
    """A single number, or a date as days since 1970."""
    text = text.strip()
    if re.fullmatch(_NUMBER, text) or re.fullmatch(_DATE, text):
        return _end(text)
    return None


def _end(text: str) -> float:
    if re.fullmatch(_DATE, text):
        try:
            return float(_days(_in_utc(text))[0])
        except ValueError:
            return math.nan
    return float(_without_dust(np.array([float(text.replace("∞", "inf"))]))[0])


def _in_utc(text: str) -> npt.NDArray[Any]:
    """A date or a moment, taken in UTC where it has an offset from it, shape (1,)."""
    match = _WITH_OFFSET.fullmatch(text)
    moment: npt.NDArray[Any] = np.array([np.datetime64((match[1] if match else text).replace(" ", "T"), "us")])
    if match is None or (offset := match[2].strip()) == "Z":
        return moment
    minutes = int(offset[1:3]) * 60 + int(offset[3:].removeprefix(":") or 0)
    return moment - np.timedelta64(-minutes if offset[0] == "-" else minutes, "m")


def has_offset(column: pd.Series) -> bool:
    """Whether moments of a column have a time zone, or an offset from UTC in their texts."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return True
    if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
        return False
    return any(isinstance(value, str) and _WITH_OFFSET.search(value) for value in column.dropna().unique())


def without_offset(column: pd.Series) -> pd.Series:
    """A column with moments in texts as if they had no offset from UTC; any other column stays."""
    if isinstance(column.dtype, pd.DatetimeTZDtype) or not has_offset(column):
        return column
    return column.map(lambda value: _WITH_OFFSET.sub(r"\1", value) if isinstance(value, str) else value)


def _days(moments: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    whole = moments.astype("datetime64[us]").astype(np.int64) / 86_400_000_000
    return np.where(np.isnat(moments), np.nan, whole)


def read_set(text: str, vocabulary: Set[str]) -> frozenset[str | None]:
    """The categories that a text names, None for a missing value, and "*" for categories that it does not name.

    A text that is a category of the people is read as this category, even if it looks like a set. Any other text that
    is neither a set nor a prefix may mean any category: it is a node of an unknown hierarchy.
    """
    if text in vocabulary and text != ANYTHING:
        return frozenset([text, None]) if text == "missing" else frozenset([text])
    stripped = text.strip()
    if stripped.lower() in _MISSING:
        return frozenset([None])
    if stripped.startswith("{") and stripped.endswith("}"):
        return _members(stripped[1:-1], vocabulary)
    if match := re.fullmatch(r"([^*]+)(\*+)", stripped):
        alike = [value for value in vocabulary if value.startswith(match[1])]
        return frozenset([value for value in alike if len(value) == len(stripped)] or alike)
    return frozenset([ANYTHING])


def _members(inside: str, vocabulary: Set[str]) -> frozenset[str | None]:
    """The members of a set; parts that are a category only together, as in "{Smith, John, *}", are put together."""
    parts = inside.split(",")
    members: set[str | None] = set()
    at = 0
    while at < len(parts):
        for end in range(len(parts), at, -1):
            joined = ",".join(parts[at:end])
            spellings = [category(spelling) for spelling in (joined, joined.removeprefix(" "), joined.strip())]
            spelled = next(
                (spelling for spelling in spellings if spelling in vocabulary and spelling != ANYTHING), None
            )
            if spelled is not None:
                members |= {spelled, None} if spelled == "missing" else {spelled}
                break
        else:
            end, part = at + 1, parts[at].strip()
            members |= {ANYTHING} if part == ANYTHING else {None} if part.lower() in _MISSING else set()
        at = end
    return frozenset(members)


def numbers(column: pd.Series) -> npt.NDArray[np.float64]:
    """A column of plain values as floats, dates as days since 1970, missing or unreadable ones as NaN, shape (n,)."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        column = column.astype(dtype.categories.dtype)
        dtype = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return _days(column.to_numpy(dtype="datetime64[us]"))
    if pd.api.types.is_timedelta64_dtype(dtype):
        return np.asarray(column.dt.total_seconds() / 86_400, dtype=np.float64)
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return _without_dust(column.to_numpy(dtype=np.float64, na_value=np.nan))
    codes, values = pd.factorize(column)
    parsed = np.array([_number(value) for value in values] + [math.nan])
    written = np.array([not isinstance(value, datetime.date | str) for value in values] + [False])
    parsed[written] = _without_dust(parsed[written])
    return parsed[codes]


def _without_dust(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Fractions to 15 digits, so that 3 * 0.1 lies in a range that a tool writes as "[0.1, 0.3]"."""
    dusty = np.isfinite(values) & (values != np.rint(values))
    some = values[dusty]
    scale = 10.0 ** np.clip(14 - np.floor(np.log10(np.abs(some))), -300, 300)
    clean = values.copy()
    clean[dusty] = np.rint(some * scale) / scale
    return clean


def _number(value: Any) -> float:
    if isinstance(value, str):
        point = read_point(value)
        return math.nan if point is None else point
    if isinstance(value, datetime.date):  # a time of day is none, and is read as a text
        moment = pd.Timestamp(value)
        return float(_days(np.array([(moment if moment.tz is None else moment.tz_convert(None)).to_datetime64()]))[0])
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def distinct(column: pd.Series) -> tuple[npt.NDArray[np.intp], Any]:
    """The place of each value among the distinct ones, -1 where it is missing, and the distinct values.

    Where all are texts, pandas takes two for one that differ after a character of code 0 only; a missing value among
    them lets it compare whole texts.
    """
    if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
        place, values = pd.factorize(column)
        return place, values
    place, found = pd.factorize(np.array([*column, None], dtype=object))
    return place[:-1], found


def texts(column: pd.Series) -> npt.NDArray[np.object_]:
    """A column of categories as texts, None where missing, shape (n,); 1, 1.0 and "1" become the same text.

    True and "true" become the same text too, and so do 08:30:00 and 08:30:00.000000. So columns whose types differ
    between the source and its release can be compared.
    """
    codes, values = distinct(column)
    parsed: npt.NDArray[np.object_] = np.array([*[category(value) for value in values], None], dtype=object)
    return parsed[codes]


def category(value: Any) -> str:
    """The same spelling of a category, whichever type its table has."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value)
    if _TIME.fullmatch(text):  # a time of day: files write its seconds with no digits or with six
        return text.rstrip("0").rstrip(".")
    return text.lower() if text in ("True", "False") else text
