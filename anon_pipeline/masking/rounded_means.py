"""How exactly a group's mean is shown: so that its digits do not tell how many of the group have a value.

The mean of eleven whole numbers is a multiple of 1/11, that of twelve one of 1/12. Whoever knows that a group counts
twelve people sees from enough digits whether one of them has no value. So a mean is shown in steps: whatever the
number of values, from half of the group to all of it, some sum of values gives the mean that is shown.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from anon_pipeline.arrays import FloatArray, IntArray

#: Decimal places behind the first digit of the median that are looked at; finer values are shown in such units, too.
MOST_PLACES = 6
#: Beyond this power of ten, and below its reciprocal, doubles cannot count units; such values are shown as they are.
FARTHEST = 290
#: A unit is found by its factors among these, and by what all its multiples share.
PRIMES = tuple(number for number in range(2, 100) if all(number % divisor for divisor in range(2, number)))


def unit_of(values: FloatArray) -> Fraction:
    """The largest unit of which at least two thirds of the values other than 0 are whole multiples.

    Of finer values, such as thirds, it is the unit of the seventh digit of their median: any unit that is at least as
    coarse as theirs hides as much, and the digits of a mean reach far beyond the sixth decimal place. It is 0 if no
    value differs from 0.

    A unit of most values and not of all, since the few that were written more exactly would otherwise undo the steps
    of all groups: incomes are mostly told in hundreds, and now and then to the cent. Half would be too few: of any
    whole numbers about half are even.

    Parameters
    ----------
    values : shape (n,); missing values are NaN
    """
    sizes, counts = np.unique(np.abs(values[np.isfinite(values) & (values != 0)]), return_counts=True)
    if not len(sizes):
        return Fraction(0)
    needed = counts.sum() * 2 / 3
    first = _first_digit(float(sizes[np.searchsorted(np.cumsum(counts), counts.sum() / 2)]))
    if abs(first) > FARTHEST:
        return Fraction(0)
    # Half of the values are smaller than ten times the first digit's unit, so in coarser units too few are whole.
    for places in range(max(0, -first - 1), max(MOST_PLACES, MOST_PLACES - first) + 1):
        scaled = sizes * 10.0**places
        whole = np.rint(scaled)
        is_whole = (np.abs(scaled - whole) <= 4 * np.spacing(scaled)) & (whole >= 1) & (whole < 2.0**53)
        if counts[is_whole].sum() >= needed:
            return Fraction(_common_factor(whole[is_whole].astype(np.int64), counts[is_whole], needed), 10**places)
    return Fraction(10) ** (first - MOST_PLACES)


def _first_digit(number: float) -> int:
    """The power of ten of a number's first digit: 2 of 117, -3 of 0.0045."""
    return int(f"{number:e}".partition("e")[2])


def _common_factor(numbers: IntArray, counts: IntArray, needed: float) -> int:
    """The largest product found that divides the numbers of at least so many people; numbers are 1 or more."""
    factor = int(np.gcd.reduce(numbers))
    for prime in PRIMES:
        while counts[numbers % (factor * prime) == 0].sum() >= needed:
            factor *= prime
    return factor


def parts_of_unit(counts: IntArray) -> IntArray:
    """Into how many parts a unit is divided for groups of so many people: 1, 2 or 5 times a power of ten, shape (J,).

    It is at most half of the people. Of c numbers the mean lies on a grid of steps of unit / c. A shown step of
    unit / parts is no finer than these for every c from half of the people up, so each c has a mean that is shown so.
    """
    half = np.maximum(counts // 2, 1)
    power = 10 ** np.floor(np.log10(half)).astype(np.int64)
    return np.where(half >= 5 * power, 5, np.where(half >= 2 * power, 2, 1)) * power


def rounded(means: FloatArray, counts: IntArray, unit: Fraction) -> FloatArray:
    """The means in steps of a part of the unit; as they are where there is no unit. Shape (J,).

    Parameters
    ----------
    counts : people of each group, those without a value included, shape (J,)
    """
    if not unit:
        return means
    parts = parts_of_unit(counts)
    numerator, denominator = float(unit.numerator), float(unit.denominator)
    steps = np.rint(means * (parts * denominator / numerator))
    return steps * numerator / (parts * denominator)
