"""What the classes show of each column, counted: how many ranges or sets of values, and how wide a typical one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anon_pipeline.anonymize.recode import MICROSECONDS, SUPPRESSED, WITHHELD, CategorySummary, OrderedSummary, Summary
from anon_pipeline.arrays import IntArray
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain


def column_statistics(
    summaries: Sequence[Summary], sizes: IntArray, units: Mapping[str, str | None]
) -> dict[str, dict[str, Any]]:
    """For each quasi-identifier plain figures, for the manifest.

    Parameters
    ----------
    summaries : what the J classes show
    sizes : people per class, shape (J,)
    units : what a column's numbers count ("years"), where somebody said so; dates are counted in days

    Returns
    -------
    All of it can be counted again in the published table of classes. By column: `groups`, the different ranges or sets
    of values; `width` of the one that the middle person is in (None where an end of it is open; for categories their
    number, a missing value counting as one, and those that are not told as one); `unit` of that width (numbers and
    dates only); `exact`, the share of people whose group is a single value; `withheld`, the share of people of whom no
    value is told.
    """
    statistics = {}
    for summary in summaries:
        name = summary.domain.name
        if isinstance(summary, OrderedSummary):
            unit = "days" if summary.domain.type is ColumnType.DATE else units.get(name)
            statistics[name] = {**_ordered(summary, sizes), "unit": unit}
        else:
            statistics[name] = _categories(summary, sizes)
    return statistics


def _ordered(summary: OrderedSummary, sizes: IntArray) -> dict[str, Any]:
    known = summary.known > 1  # of fewer no range is told
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
    width = np.array([len(names) for names in sets], dtype=np.int64)
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
    """The width that half of the people do not exceed: the lower median over people; None of nobody, or if endless."""
    if not people.sum():
        return None
    order = np.argsort(width, kind="stable")
    reached = np.cumsum(people[order])
    middle = float(width[order][np.searchsorted(reached, (reached[-1] + 1) // 2)])
    return middle if np.isfinite(middle) else None


def _share(some: IntArray, everybody: IntArray) -> float:
    return float(some.sum() / everybody.sum()) if everybody.sum() else 0.0
