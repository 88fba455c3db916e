"""SQL fragments that several row techniques share: values as text or number, numbers as literals."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from anon_pipeline.engine.sql import literal
from anon_pipeline.engine.typed import is_whole

TEXT, WHOLE, FLOAT, SINGLE = "VARCHAR", "BIGINT", "DOUBLE", "FLOAT"
#: The type of decimals, with their places after the point.
DECIMAL = re.compile(r"DECIMAL\([0-9]+,\s*([0-9]+)\)")
#: Decimals up to which numbers of a spec are computed with as whole numbers.
MOST_PLACES = 12
#: A number as programs write it: no sign but a minus, no needless zeros before it.
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,37})(?:\.[0-9]{1,37})?")


def text(value: str, storage: str) -> str:
    """The SQL expression of a value as text."""
    return value if storage == TEXT else f"CAST({value} AS VARCHAR)"


def code(value: str, storage: str) -> str:
    """The SQL expression of a category as text, as readers of a file see its code: 1 where 1.0 is stored.

    SPSS and Stata store codes as floats, and so do tables in which some are missing. `as_texts` writes them so, too.
    """
    if storage not in (SINGLE, FLOAT):
        return text(value, storage)
    exact = f"abs({value}) <= {2**53} AND {value} = floor({value})"
    return f"CASE WHEN {exact} THEN CAST(CAST({value} AS BIGINT) AS VARCHAR) ELSE {text(value, storage)} END"


def number(value: str, storage: str) -> str:
    """The SQL expression of a number as a DOUBLE.

    A single-precision 37.2 is 37.2 by its text, which is what limits and listed values are compared with: by its bits
    it would be 37.20000076293945.
    """
    if storage == SINGLE:
        value = f"CAST({value} AS VARCHAR)"
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
    return f"{Decimal(repr(stated)):f}" if 1e-4 <= abs(stated) < 1e16 else repr(stated)


def written(stated: str | float, storage: str) -> str:
    """A value of a spec as the text into which SQL converts it in a column of this type: 1 is 1.0 among floats.

    Among decimals of two places it is 1.00. A text that is written as a number is one, too: lists of codes are often
    files, and of these every line is a text.
    """
    if isinstance(stated, bool):
        return str(stated).lower()
    if (places := DECIMAL.fullmatch(storage)) is not None and _is_number(stated):
        exact = Decimal(stated if isinstance(stated, str) else repr(stated))
        return f"{exact:.{max(int(places[1]), -int(exact.normalize().as_tuple().exponent))}f}"
    if isinstance(stated, str) and _is_number(stated) and (is_whole(storage) or storage in (SINGLE, FLOAT)):
        stated = float(stated) if "." in stated else int(stated)
    if isinstance(stated, str) or not (storage in (SINGLE, FLOAT) or is_integral(stated, storage)):
        return str(stated)
    return str(int(stated)) if is_whole(storage) else repr(float(stated))


def _is_number(stated: str | float) -> bool:
    return NUMBER.fullmatch(stated) is not None if isinstance(stated, str) else math.isfinite(stated)


def decimals(stated: float) -> int:
    """The number of decimals of a number as it is written."""
    written = f"{stated:.12f}".rstrip("0")
    return len(written) - written.index(".") - 1


def as_parts(*stated: float) -> tuple[int, tuple[int, ...]] | None:
    """A power of ten, and numbers times it as whole numbers; None where this takes many digits.

    A quotient of whole numbers is the float nearest to a decimal, which multiples of floats are not: 3 * .4 is above
    1.2.
    """
    exact = [Decimal(repr(number)).normalize() for number in stated]
    places = max(0, *(-int(number.as_tuple().exponent) for number in exact))
    whole = tuple(int(number.scaleb(places)) for number in exact)
    return (10**places, whole) if places <= MOST_PLACES and max(map(abs, whole)) < 2**53 else None


def is_integral(stated: float, storage: str) -> bool:
    """Whether arithmetic of a column of this type with this number gives whole numbers only."""
    return is_whole(storage) and float(stated).is_integer()
