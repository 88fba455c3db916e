"""Statistics of the recoding of each column: the number of different ranges or sets, and the width of a typical one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from anon_pipeline.anonymize.recode import MICROSECONDS, SUPPRESSED, WITHHELD, CategorySummary, OrderedSummary, Summary
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain

#: Of a table that shows representatives: no value is told where there is none.
OF_REPRESENTATIVES: Mapping[str, BoolArray] = MappingProxyType({})


def column_statistics(
    summaries: Sequence[Summary],
    sizes: IntArray,
    units: Mapping[str, str | None],
    hidden: Mapping[str, BoolArray] = OF_REPRESENTATIVES,
) -> dict[str, dict[str, Any]]:
    """For each quasi-identifier plain figures, for the manifest.

    Parameters
    ----------
    summaries : the recoded values of the J classes
    sizes : people per class, shape (J,)
    units : the unit of a column's numbers ("years"), where the spec states one; dates are counted in days
    hidden : of a table that shows ranges and sets: by column the classes that show none (`recode.hidden_values`)

    Returns
    -------
    By column: `groups`, the number of different ranges or sets of values; `width` of the range that the middle person
    is in (None where an end is open; for categories the size of the set, where a missing value counts as one and all
    unpublished categories together count as one, and None where the set has no others); `unit` of that width (numbers
    and dates only); `exact`, the share of people whose range or set is a single value; `withheld`, the share of people
    for whom no value is published; where the column has a hierarchy `unlabelled`, the share of people for whose class
    it has no word but "*". All figures can be counted again in the published table of classes.
    """
    statistics = {}
    for summary in summaries:
        name = summary.domain.name
        if isinstance(summary, OrderedSummary):
            unit = "days" if summary.domain.type is ColumnType.DATE else units.get(name)
            statistics[name] = {**_ordered(summary, sizes), "unit": unit}
        else:
            statistics[name] = _categories(summary, sizes)
        if name in hidden:
            statistics[name]["withheld"] = _share(sizes[hidden[name]], sizes)
        if summary.labels is not None:
            unlabelled = np.array([label == SUPPRESSED for label in summary.labels.texts], dtype=bool)
            statistics[name]["unlabelled"] = _share(sizes[unlabelled], sizes)
    return statistics


def _ordered(summary: OrderedSummary, sizes: IntArray) -> dict[str, Any]:
    known = summary.known > 1  # a class with fewer values publishes no range
    low, high = (of[known].astype(np.float64) for of in (summary.low, summary.high))
    people = sizes[known]
    low, high = np.where(summary.open_low[known], -np.inf, low), np.where(summary.open_high[known], np.inf, high)
    width = (high - low) / _in_days(summary.domain)
    return {
        "groups": len(np.unique(np.column_stack([low, high]), axis=0)),
        "width": _middle(width, people),
        "exact": _share(people[width == 0], sizes),
        "withheld": _share(sizes[summary.withheld], sizes),
    }


def _categories(summary: CategorySummary, sizes: IntArray) -> dict[str, Any]:
    sets = summary.sets()
    width = np.array([np.inf if names == [SUPPRESSED] else len(names) for names in sets], dtype=np.float64)
    exact = np.array([len(names) == 1 and names[0] != SUPPRESSED for names in sets], dtype=bool)
    return {
        "groups": len(set(map(tuple, sets))),
        "width": _middle(width, sizes),
        "exact": _share(sizes[exact], sizes),
        "withheld": _share(sizes[summary.representative == WITHHELD], sizes),
    }


def _in_days(domain: Domain) -> int:
    """How many of a column's own steps are a day, where it holds moments; 1 elsewhere."""
    return MICROSECONDS[0] if domain.type is ColumnType.DATE and domain.storage != "DATE" else 1


def _middle(width: np.ndarray, people: IntArray) -> float | None:
    """The lower median of the width over people; None where there are no people, or where it is infinite."""
    if not people.sum():
        return None
    order = np.argsort(width, kind="stable")
    reached = np.cumsum(people[order])
    middle = float(width[order][np.searchsorted(reached, (reached[-1] + 1) // 2)])
    return middle if np.isfinite(middle) else None


def _share(some: IntArray, everybody: IntArray) -> float:
    return float(some.sum() / everybody.sum()) if everybody.sum() else 0.0
