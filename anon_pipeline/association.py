"""How strongly two columns are associated: correlations, correlation ratios and Cramer's V over weighted rows.

For two numbers (dates count as numbers), the measure is Pearson's correlation r, from -1 to 1. For a number and a
category it is the correlation ratio, for two categories Cramer's V. Both go from 0 (no association) to 1 (one
determines the other). Both are corrected for the association that chance alone gives with few people and many values:

* Kelley, An Unbiased Correlation Ratio Measure, PNAS 21 (1935): epsilon squared; its root is used;
* Bergsma, A Bias-Correction for Cramer's V and Tschuprow's T, J. of the Korean Statistical Society 42 (2013).

An attacker may know everything but the value of one person. So of columns that others must not learn no person may
weigh much: numbers are replaced by their ranks (r is then Spearman's), and rare categories are put together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import FloatArray, IntArray

#: A category counts by itself if this share of the people has it, where no person may weigh much.
LEAST = 0.05
#: The code of categories that are put together; no other code is negative.
POOL = -(10**9)


@dataclass(frozen=True, eq=False)
class Variable:
    """One column over some rows, each of which represents several people.

    Attributes
    ----------
    values : numbers, NaN where unknown, or codes of categories, shape (n,)
    ordered : whether they are numbers
    """

    values: FloatArray | IntArray
    ordered: bool

    def of(self, rows: IntArray) -> Variable:
        """The same column over other rows, given by the positions of their values in this one."""
        return Variable(self.values[rows], self.ordered)

    def ranked(self, people: IntArray) -> Variable:
        """Numbers by their ranks among the people; equal numbers have the same one."""
        _, place = np.unique(self.values, return_inverse=True)
        counts = np.bincount(place, weights=people)
        return Variable((np.cumsum(counts) - counts / 2)[place], True)

    def apart(self, people: IntArray) -> int:
        """How many of the people have another value than the most common one."""
        _, place = np.unique(self.values, return_inverse=True)
        counts = np.bincount(place, weights=people)
        return int(counts.sum() - counts.max(initial=0))

    def pooled(self, rare: IntArray) -> Variable:
        """Codes with a single one in place of those that are rare."""
        return Variable(np.where(np.isin(self.values, rare), POOL, self.values), False)

    def rare(self, people: IntArray) -> IntArray:
        """The codes that `LEAST` of the people do not have, and then the next rarest, until they have together.

        The most common one is never among them: that a few have another than nearly all have is no constant.
        """
        codes, place = np.unique(self.values.astype(np.int64), return_inverse=True)
        if not len(codes):
            return codes
        counts = np.bincount(place, weights=people)
        order = np.argsort(counts, kind="stable")
        least = LEAST * counts.sum()
        if counts[order[0]] >= least:
            return codes[:0]
        enough = int(np.searchsorted(np.cumsum(counts[order]), least)) + 1
        rare: IntArray = codes[order[:-1][: max(enough, int((counts < least).sum()))]]
        return rare


#: Two columns over the same rows, and the people of each row.
Rows = tuple[Variable, Variable, IntArray]


def association(left: Variable, right: Variable, people: IntArray) -> float | None:
    """The measure for the types of the two; `people` per row, shape (n,). Rows with an unknown number do not count."""
    left, right, people = _of_known(left, right, people)
    if not len(people):
        return None
    if left.ordered and right.ordered:
        return _correlation(left.values.astype(np.float64), right.values.astype(np.float64), people)
    if left.ordered or right.ordered:
        number, category = (left, right) if left.ordered else (right, left)
        return _correlation_ratio(number.values.astype(np.float64), category.values.astype(np.int64), people)
    return _cramers_v(left.values.astype(np.int64), right.values.astype(np.int64), people)


def _of_known(left: Variable, right: Variable, people: IntArray) -> Rows:
    """The rows in which no number is unknown."""
    known = np.ones(len(people), dtype=bool)
    for variable in (left, right):
        if variable.ordered:
            known &= ~np.isnan(variable.values)
    rows = np.flatnonzero(known)
    return left.of(rows), right.of(rows), people[rows]


@dataclass(frozen=True)
class Robust:
    """An association in which no person weighs much.

    Attributes
    ----------
    value : the measure; None for a column that is constant
    people : of whom all numbers are known
    apart : of these, how many have another value than the most common one of the first column, and of the second; the
        fewer they are, the more does each of them weigh
    """

    value: float | None
    people: int
    apart: tuple[int, int]


def robust_association(rows: Rows) -> Robust:
    """The measure of ranks, and with the rare categories of each column as one."""
    left, right, people = _of_known(*rows)
    left, right = (
        column.ranked(people) if column.ordered else column.pooled(column.rare(people)) for column in (left, right)
    )
    apart = left.apart(people), right.apart(people)
    return Robust(association(left, right, people), int(people.sum()), apart)


def _correlation(x: FloatArray, y: FloatArray, people: IntArray) -> float | None:
    x, y = x - np.average(x, weights=people), y - np.average(y, weights=people)
    spread = float((people * x**2).sum()) * float((people * y**2).sum())
    return float((people * x * y).sum()) / spread**0.5 if spread > 0 else None


def _correlation_ratio(number: FloatArray, category: IntArray, people: IntArray) -> float | None:
    centred = number - np.average(number, weights=people)
    total = float((people * centred**2).sum())
    _, group = np.unique(category, return_inverse=True)
    members = np.bincount(group, weights=people)
    n, groups = float(people.sum()), len(members)
    if total <= 0 or groups < 2 or n <= groups:
        return None
    between = float((np.bincount(group, weights=people * centred) ** 2 / members).sum())
    return float(max(0.0, 1 - (1 - between / total) * (n - 1) / (n - groups)) ** 0.5)


def _cramers_v(first: IntArray, second: IntArray, people: IntArray) -> float | None:
    rows, row = np.unique(first, return_inverse=True)
    columns, column = np.unique(second, return_inverse=True)
    n = float(people.sum())
    if n <= 1:
        return None
    r, c = len(rows), len(columns)
    pairs, pair = np.unique(row * c + column, return_inverse=True)
    both = np.bincount(pair, weights=people)
    expected = np.bincount(row, weights=people)[pairs // c] * np.bincount(column, weights=people)[pairs % c]
    phi2 = float((both**2 / expected).sum()) - 1
    phi2 = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
    most = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    # Nothing is left to be divided by where a single value, or each person's own, settles the table.
    return min(1.0, (phi2 / most) ** 0.5) if most > 0 else None
