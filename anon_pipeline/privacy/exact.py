"""Comparisons that do not depend on rounding: by floats where these are far from the limit, else by exact numbers.

A limit in a spec means the decimal number as written: 0.7 is 7/10, not the nearest binary fraction, which is smaller.
So a class of ten with seven equal values meets alpha = 0.7.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

#: int64, or Python integers in an object array where 64 bits do not hold the products.
Integers = npt.NDArray[Any]

#: Relative distance from the limit below which floats are not trusted: far above the rounding error of a few products.
ROUNDING_MARGIN = 1e-11
#: Decimal digits for logarithms of integers.
DIGITS = 60


def as_written(number: float) -> Fraction:
    """The number as its shortest decimal form, which is what a person wrote."""
    return Fraction(str(number))


def compare(left: Integers, limit: Fraction, right: Integers) -> npt.NDArray[np.int8]:
    """The sign of `left - limit * right`, exactly, for non-negative integers.

    Both sides are integers and not shares, since a share c/f has no exact float, but c and f have.
    """
    with np.errstate(over="ignore"):  # an infinite product is close to the limit below, and so decided exactly
        left_float, right_float = left.astype(float), float(limit) * right.astype(float)
    sign = np.sign(left_float - right_float).astype(np.int8)
    doubtful = np.abs(left_float - right_float) <= ROUNDING_MARGIN * np.maximum(left_float, right_float)
    if doubtful.any():
        difference = (
            left[doubtful].astype(object) * limit.denominator - right[doubtful].astype(object) * limit.numerator
        )
        sign[doubtful] = (difference > 0).astype(np.int8) - (difference < 0).astype(np.int8)
    return sign


def logarithm(numerator: int, denominator: int = 1) -> Decimal:
    """ln(numerator / denominator) to `DIGITS` digits."""
    divisor = math.gcd(numerator, denominator)
    return _logarithm(numerator // divisor, denominator // divisor)


@lru_cache(maxsize=1 << 16)  # many classes are near a limit only where they all have one and the same ratio
def _logarithm(numerator: int, denominator: int) -> Decimal:
    with localcontext(prec=DIGITS):
        return (Decimal(numerator) / Decimal(denominator)).ln()
