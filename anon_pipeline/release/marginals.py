"""The distribution of each single quasi-identifier in the release: the number of people with each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anon_pipeline.anonymize.recode import WITHHELD, CategorySummary, OrderedSummary, Summary
from anon_pipeline.anonymize.recoding_statistics import OF_REPRESENTATIVES
from anon_pipeline.anonymize.value_groups import group_values
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.tables import Domain

#: The group of people for whom the release shows no value.
NOT_NAMED = "not told"
#: The group of people whose class shows a range or a set, and no single value that stands for it.
NO_SINGLE_VALUE = "no single value"


def marginals(
    summaries: Sequence[Summary],
    sizes: IntArray,
    smallest: int,
    hidden: Mapping[str, BoolArray] = OF_REPRESENTATIVES,
) -> dict[str, dict[str, Any]]:
    """People by groups of recoded values, for the manifest.

    Groups and counts follow from the released values alone, so they reveal nothing else about the source.

    Parameters
    ----------
    summaries : the recoded values of the J classes
    sizes : people per class, shape (J,)
    smallest : the fewest people in a group; rarer values are combined
    hidden : of a table that shows ranges and sets: by column the classes that show none (`recode.hidden_values`)

    Returns
    -------
    By column `groups`, the names, and `after`, the people in each. The last groups may be the people whose class shows
    a range or a set alone, and those for whom no value is shown: as many as `column_statistics` counts as `withheld`.
    """
    return {
        summary.domain.name: _marginal(summary, sizes, smallest, hidden.get(summary.domain.name))
        for summary in summaries
    }


def _marginal(summary: Summary, sizes: IntArray, smallest: int, hidden: BoolArray | None) -> dict[str, Any]:
    withheld = summary.representative == WITHHELD if isinstance(summary, CategorySummary) else summary.withheld
    hidden = withheld if hidden is None else hidden
    is_told = ~withheld & ~hidden
    released, code = _released(summary, np.flatnonzero(is_told), sizes)
    groups = group_values(released, smallest)
    labels, after = [*groups.labels], np.zeros(len(groups.labels), dtype=np.int64)
    if labels:
        np.add.at(after, groups.of_code[code], sizes[is_told])
    ranges_only = int(sizes[withheld & ~hidden].sum())
    untold = int(sizes.sum()) - int(after.sum()) - ranges_only  # with values that are too few for a group
    others = {NO_SINGLE_VALUE: ranges_only, NOT_NAMED: untold}
    return {
        "groups": [*labels, *(label for label, people in others.items() if people)],
        "after": [*after.tolist(), *(people for people in others.values() if people)],
    }


def _released(summary: Summary, is_told: IntArray, sizes: IntArray) -> tuple[Domain, IntArray]:
    """The recoded values of some classes, as a column with their people, and the code of each of these classes."""
    domain = summary.domain
    if isinstance(summary, OrderedSummary):
        values, place = np.unique(summary.representative[is_told], return_inverse=True)
        code = place.astype(np.int64) + 1
        domain = replace(domain, values=values, lows=None, highs=None, levels=None, nodes=None)
    else:
        code = summary.representative[is_told]
    counts = np.bincount(code, weights=sizes[is_told], minlength=len(domain)).astype(np.int64)
    return replace(domain, counts=counts), code
