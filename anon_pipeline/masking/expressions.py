"""SQL fragments that several row techniques share: values as text or number, numbers as literals."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from anon_pipeline.engine.sql import literal
from anon_pipeline.engine.typed import is_whole

TEXT, WHOLE, FLOAT = "VARCHAR", "BIGINT", "DOUBLE"
#: The type of decimals, with their places after the point.
DECIMAL = re.compile(r"DECIMAL\([0-9]+,\s*([0-9]+)\)")


def text(value: str, storage: str) -> str:
    """The SQL expression of a value as text."""
    return value if storage == TEXT else f"CAST({value} AS VARCHAR)"


def number(value: str, storage: str) -> str:
    """The SQL expression of a number as a DOUBLE."""
    return value if storage == FLOAT else f"CAST({value} AS DOUBLE)"


def whole(value: str, storage: str) -> str:
    """The SQL expression of a whole number as a BIGINT."""
    return value if storage == WHOLE else f"CAST({value} AS BIGINT)"


def moment(value: str, storage: str) -> str:
    """The SQL expression of a date or moment as a TIMESTAMP (in UTC, the time zone of every session)."""
    return value if storage == "TIMESTAMP" else f"CAST({value} AS TIMESTAMP)"


def number_literal(stated: float) -> str:
    """A number as an SQL literal: whole numbers as they are, others as a DOUBLE and not as a decimal."""
    return str(stated) if isinstance(stated, int) else f"CAST({literal(repr(float(stated)))} AS DOUBLE)"


def date_literal(stated: date | datetime) -> str:
    """A date or moment as an SQL literal of type TIMESTAMP."""
    written = stated.isoformat(sep=" ") if isinstance(stated, datetime) else stated.isoformat()
    return f"CAST({literal(written)} AS TIMESTAMP)"


def plain(stated: float) -> str:
    """A number as people read it: no exponent, no needless zeros."""
    if isinstance(stated, int) or (float(stated).is_integer() and abs(stated) < 1e16):
        return str(int(stated))
    return f"{stated:f}".rstrip("0") if 1e-4 <= abs(stated) < 1e16 else repr(stated)


def written(stated: str | float, storage: str) -> str:
    """A value of a spec as the text into which SQL converts it in a column of this type: 1 is 1.0 among floats.

    Among decimals of two places it is 1.00.
    """
    if isinstance(stated, bool):
        return str(stated).lower()
    if not isinstance(stated, str) and math.isfinite(stated) and (places := DECIMAL.fullmatch(storage)) is not None:
        exact = Decimal(repr(stated))
        return f"{exact:.{max(int(places[1]), -int(exact.normalize().as_tuple().exponent))}f}"
    if isinstance(stated, str) or not (storage in ("FLOAT", FLOAT) or is_integral(stated, storage)):
        return str(stated)
    return str(int(stated)) if is_whole(storage) else repr(float(stated))


def decimals(stated: float) -> int:
    """The number of decimals of a number as it is written."""
    written = f"{stated:.12f}".rstrip("0")
    return len(written) - written.index(".") - 1


def is_integral(stated: float, storage: str) -> bool:
    """Whether arithmetic of a column of this type with this number gives whole numbers only."""
    return is_whole(storage) and float(stated).is_integer()
