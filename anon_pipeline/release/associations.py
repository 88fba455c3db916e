"""The strength of association of each two columns, in the source and as released, counted on all people.

An attacker may know everything but one value of one person: a sensitive one, or that of a quasi-identifier which is
withheld. So no person may weigh much; see `anon_pipeline.association`, which has the measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.recode import OrderedSummary, Summary
from anon_pipeline.arrays import IntArray
from anon_pipeline.association import Rows, Variable, robust_association
from anon_pipeline.privacy.statistics import Histogram
from anon_pipeline.tables import Cells

#: The measure by how many of the two columns are numbers.
MEASURES = ("cramers_v", "rank_correlation_ratio", "spearman")
#: Pairs of values are counted in a table of all that there could be, if these are at most so many for each row.
PAIRS_PER_ROW = 4


@dataclass(frozen=True, eq=False)
class _Column:
    """A column over some rows, of which many have the same value.

    Attributes
    ----------
    values : the different values, shape (m,)
    place : which of them each row has, shape (n,)
    """

    values: Variable
    place: IntArray

    @classmethod
    def of_values(cls, variable: Variable) -> _Column:
        """A column of which each row's value is given."""
        _, first, place = np.unique(variable.values, return_index=True, return_inverse=True)
        return cls(variable.of(first), place)

    def of(self, rows: IntArray) -> _Column:
        """The same column over other rows, given by their positions in this one."""
        return _Column(self.values, self.place[rows])


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
    `columns`, and `pairs`: for each pair the two `columns`, the `measure`, its value `before` and `after` (None if a
    column has one value only), and before the number of `people` of whom both values are known, and of those who differ
    (`Robust.apart`).
    """
    names = [summary.domain.name for summary in summaries]
    raw = [_of_cells(cells, place, summary.domain.ordered) for place, summary in enumerate(summaries)]
    released = [_of_classes(summary) for summary in summaries]
    pairs = []
    for first, second in combinations(range(len(names)), 2):
        source = _counted(raw[first], raw[second], cells.counts)
        shown = _counted(released[first], released[second], sizes)
        pairs.append(_pair(names[first], names[second], source, shown))
    for column, counted in sensitive.items():
        entries = counted.counts.tocoo()
        cell, code, people = entries.coords[0], entries.coords[1], entries.data.astype(np.int64)
        kept = np.flatnonzero(class_of_cell[cell] >= 0)
        target = _Column(_of_values(counted), code.astype(np.int64))
        for place, name in enumerate(names):
            source = _counted(raw[place].of(cell), target, people)
            shown = _counted(released[place].of(class_of_cell[cell[kept]]), target.of(kept), people[kept])
            pairs.append(_pair(name, column, source, shown))
    return {"columns": [*names, *sensitive], "pairs": pairs}


def _counted(first: _Column, second: _Column, people: IntArray) -> Rows:
    """Two columns with one row for each pair of values that some of the people have.

    The measures depend on nothing else, and a large table has a thousand times as many cells as pairs of values.
    """
    width = len(second.values.values)
    pairs = len(first.values.values) * width
    pair = first.place * width + second.place
    if pairs > PAIRS_PER_ROW * len(pair):
        different, pair = np.unique(pair, return_inverse=True)
        bearing = np.bincount(pair, weights=people)
    else:
        bearing = np.bincount(pair, weights=people)
        different = np.flatnonzero(bearing)
        bearing = bearing[different]
    return (
        first.values.of(different // max(width, 1)),
        second.values.of(different % max(width, 1)),
        bearing.astype(np.int64),
    )


def _of_cells(cells: Cells, place: int, ordered: bool) -> _Column:
    domain = cells.domains[place]
    values = np.r_[np.nan, domain.values.astype(np.float64)] if ordered else np.arange(len(domain))
    return _Column(Variable(values, ordered), cells.codes[:, place].astype(np.int64))


def _of_classes(summary: Summary) -> _Column:
    if not isinstance(summary, OrderedSummary):
        return _Column.of_values(Variable(summary.representative, False))
    shown = np.where(summary.withheld, np.nan, summary.representative.astype(np.float64))
    return _Column.of_values(Variable(shown, True))


def _of_values(counted: Histogram) -> Variable:
    """The values of a counted column, as codes."""
    if not counted.ordered:
        return Variable(np.arange(len(counted.values)), False)
    numbers = pd.to_numeric(pd.Series(counted.values, dtype=object), errors="coerce")
    if not numbers.notna().any():  # dates
        moments = np.array([None if value is pd.NaT else value for value in counted.values], dtype="datetime64[us]")
        return Variable(np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64)), True)
    return Variable(numbers.to_numpy(np.float64), True)


def _pair(name: str, other: str, source: Rows, shown: Rows) -> dict[str, Any]:
    """The association of two columns, in which no person weighs much, and how many people count and differ before.

    Rare categories are put together on either side by what is rare there. What is rare in the source does not show in
    the release, and where one person decides it, the release's figure, which has no noise, would tell.
    """
    before, after = robust_association(source), robust_association(shown)
    measure = MEASURES[source[0].ordered + source[1].ordered]
    counted = {"people": before.people, "apart": before.apart}
    return {"columns": [name, other], "measure": measure, "before": before.value, "after": after.value, **counted}
