"""The strength of association of each two columns, in the source and as released, counted on all people.

For two numbers (dates count as numbers), the measure is Pearson's correlation r, from -1 to 1. For a number and a
category it is the correlation ratio, for two categories Cramer's V. Both go from 0 (no association) to 1 (one
determines the other). Both are corrected for the association that chance alone gives with few people and many values:

* Kelley, An Unbiased Correlation Ratio Measure, PNAS 21 (1935): epsilon squared; its root is used;
* Bergsma, A Bias-Correction for Cramer's V and Tschuprow's T, J. of the Korean Statistical Society 42 (2013).

An attacker may know everything but the sensitive value of one person. So with a sensitive column no person may weigh
much: numbers are replaced by their ranks (r is then Spearman's), and rare categories are put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.recode import OrderedSummary, Summary
from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.privacy.statistics import Histogram, histogram
from anon_pipeline.tables import Cells

#: With a sensitive column, a category counts by itself if this share of the people has it.
LEAST = 0.05
#: The code of categories that are put together; no other code is negative.
POOL = -(10**9)
#: The measures with ranks in place of numbers.
ROBUST = {"pearson": "spearman", "correlation_ratio": "rank_correlation_ratio"}


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

    def pooled(self, rare: IntArray) -> Variable:
        """Codes with a single one in place of those that are rare."""
        return Variable(np.where(np.isin(self.values, rare), POOL, self.values), False)

    def rare(self, people: IntArray) -> IntArray:
        """The codes that `LEAST` of the people do not have, and then the next rarest, until they have together."""
        codes, place = np.unique(self.values.astype(np.int64), return_inverse=True)
        counts = np.bincount(place, weights=people)
        order = np.argsort(counts, kind="stable")
        least = LEAST * counts.sum()
        if counts[order[0]] >= least:
            return codes[:0]
        enough = int(np.searchsorted(np.cumsum(counts[order]), least)) + 1
        rare: IntArray = codes[order[: max(enough, int((counts < least).sum()))]]
        return rare


#: Two columns over the same rows, and the people of each row.
Rows = tuple[Variable, Variable, IntArray]


def associations(
    cells: Cells,
    class_of_cell: IntArray,
    summaries: Sequence[Summary],
    sizes: IntArray,
    sensitive: Mapping[str, Histogram],
) -> dict[str, Any]:
    """The associations of every pair of columns of which one is a quasi-identifier.

    Parameters
    ----------
    class_of_cell : class of each cell, -1 for people who are left out, shape (C,)
    summaries, sizes : the recoded values of the J classes, and their people
    sensitive : columns that are released unchanged, counted per cell; the associations among them do not change

    Returns
    -------
    `columns`, and `pairs`: for each pair the two `columns`, the `measure`, and its value `before` and `after`; None if
    a column has one value only. With a sensitive column also the number of `people` of whom both values are known.
    """
    names = [summary.domain.name for summary in summaries]
    raw = [_of_cells(cells, place, summary.domain.ordered) for place, summary in enumerate(summaries)]
    released = [_of_classes(summary) for summary in summaries]
    pairs = []
    for first, second in combinations(range(len(names)), 2):
        before = association(raw[first], raw[second], cells.counts)
        after = association(released[first], released[second], sizes)
        pairs.append(_pair(names[first], names[second], raw[first], raw[second], before, after))
    for column, counted in sensitive.items():
        entries = counted.counts.tocoo()
        cell, code, people = entries.coords[0], entries.coords[1], entries.data.astype(np.int64)
        kept = np.flatnonzero(class_of_cell[cell] >= 0)
        target = _of_values(counted).of(code)
        for place, name in enumerate(names):
            source = raw[place].of(cell), target, people
            shown = released[place].of(class_of_cell[cell[kept]]), target.of(kept), people[kept]
            before, after, counting = _robust(source, shown)
            pair = _pair(name, column, raw[place], target, before, after)
            pairs.append(pair | {"measure": ROBUST.get(pair["measure"], pair["measure"]), "people": counting})
    return {"columns": [*names, *sensitive], "pairs": pairs}


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


def _robust(source: Rows, released: Rows) -> tuple[float | None, float | None, int]:
    """The measure before and after, in which no person weighs much, and how many people count before."""
    *columns, people = _of_known(*source)
    if not len(people):
        return None, None, 0
    pools = [None if column.ordered else column.rare(people) for column in columns]

    def measured(*rows: Any) -> float | None:
        *some, weights = _of_known(*rows)
        left, right = (
            column.ranked(weights) if pool is None else column.pooled(pool)
            for column, pool in zip(some, pools, strict=True)
        )
        return association(left, right, weights)

    return measured(*source), measured(*released), int(people.sum())


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
    joint = histogram(row, column, people, (len(rows), len(columns))).tocoo()
    expected = np.bincount(row, weights=people)[joint.coords[0]] * np.bincount(column, weights=people)[joint.coords[1]]
    phi2 = float((joint.data.astype(np.float64) ** 2 / expected).sum()) - 1
    r, c = len(rows), len(columns)
    phi2 = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
    most = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    # Nothing is left to be divided by where a single value, or each person's own, settles the table.
    return min(1.0, (phi2 / most) ** 0.5) if most > 0 else None


def _of_cells(cells: Cells, place: int, ordered: bool) -> Variable:
    codes = cells.codes[:, place].astype(np.int64)
    if not ordered:
        return Variable(codes, False)
    return Variable(np.r_[np.nan, cells.domains[place].values.astype(np.float64)][codes], True)


def _of_classes(summary: Summary) -> Variable:
    if not isinstance(summary, OrderedSummary):
        return Variable(summary.representative, False)
    return Variable(np.where(summary.withheld, np.nan, summary.representative.astype(np.float64)), True)


def _of_values(counted: Histogram) -> Variable:
    """The values of a counted column, as codes."""
    if not counted.ordered:
        return Variable(np.arange(len(counted.values)), False)
    numbers = pd.to_numeric(pd.Series(counted.values, dtype=object), errors="coerce")
    if not numbers.notna().any():  # dates
        moments = np.array([None if value is pd.NaT else value for value in counted.values], dtype="datetime64[us]")
        return Variable(np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64)), True)
    return Variable(numbers.to_numpy(np.float64), True)


def _pair(
    name: str, other_name: str, first: Variable, second: Variable, before: float | None, after: float | None
) -> dict[str, Any]:
    ordered = first.ordered + second.ordered
    measure = ("cramers_v", "correlation_ratio", "pearson")[ordered]
    return {"columns": [name, other_name], "measure": measure, "before": before, "after": after}
