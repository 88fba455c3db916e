"""The strength of association of each two columns, in the source and as released, counted on all people.

For two numbers (dates count as numbers), the measure is Pearson's correlation r, from -1 to 1. For a number and a
category it is the correlation ratio, for two categories Cramer's V. Both go from 0 (no association) to 1 (one
determines the other). Both are corrected for the association that chance alone gives with few people and many values:

* Kelley, An Unbiased Correlation Ratio Measure, PNAS 21 (1935): epsilon squared; its root is used;
* Bergsma, A Bias-Correction for Cramer's V and Tschuprow's T, J. of the Korean Statistical Society 42 (2013).
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
    a column has one value only.
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
            before = association(raw[place].of(cell), target, people)
            group = class_of_cell[cell[kept]]
            after = association(released[place].of(group), target.of(kept), people[kept])
            pairs.append(_pair(name, column, raw[place], target, before, after))
    return {"columns": [*names, *sensitive], "pairs": pairs}


def association(left: Variable, right: Variable, people: IntArray) -> float | None:
    """The measure for the types of the two; `people` per row, shape (n,). Rows with an unknown number do not count."""
    known = np.ones(len(people), dtype=bool)
    for variable in (left, right):
        if variable.ordered:
            known &= ~np.isnan(variable.values)
    if not known.any():
        return None
    left, right, people = left.of(np.flatnonzero(known)), right.of(np.flatnonzero(known)), people[known]
    if left.ordered and right.ordered:
        return _correlation(left.values.astype(np.float64), right.values.astype(np.float64), people)
    if left.ordered or right.ordered:
        number, category = (left, right) if left.ordered else (right, left)
        return _correlation_ratio(number.values.astype(np.float64), category.values.astype(np.int64), people)
    return _cramers_v(left.values.astype(np.int64), right.values.astype(np.int64), people)


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
        moments = pd.to_datetime(pd.Series(counted.values, dtype=object))
        numbers = moments.astype("int64").where(moments.notna()).astype("float64")
    return Variable(numbers.to_numpy(np.float64), True)


def _pair(
    name: str, other_name: str, first: Variable, second: Variable, before: float | None, after: float | None
) -> dict[str, Any]:
    ordered = first.ordered + second.ordered
    measure = ("cramers_v", "correlation_ratio", "pearson")[ordered]
    return {"columns": [name, other_name], "measure": measure, "before": before, "after": after}
