"""The distribution of each single quasi-identifier in the release: the number of people with each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anon_pipeline.anonymize.recode import WITHHELD, CategorySummary, OrderedSummary, Summary
from anon_pipeline.anonymize.value_groups import group_values
from anon_pipeline.arrays import IntArray
from anon_pipeline.tables import Domain

#: The group of people for whom the release shows no value.
NOT_NAMED = "not told"


def marginals(summaries: Sequence[Summary], sizes: IntArray, smallest: int) -> dict[str, dict[str, Any]]:
    """People by groups of recoded values, for the manifest.

    Groups and counts follow from the released values alone, so they reveal nothing else about the source.

    Parameters
    ----------
    summaries : the recoded values of the J classes
    sizes : people per class, shape (J,)
    smallest : the fewest people in a group; rarer values are combined

    Returns
    -------
    By column `groups`, the names, and `after`, the people in each. The last group may be the people for whom no value
    is shown.
    """
    return {summary.domain.name: _marginal(summary, sizes, smallest) for summary in summaries}


def _marginal(summary: Summary, sizes: IntArray, smallest: int) -> dict[str, Any]:
    withheld = summary.representative == WITHHELD if isinstance(summary, CategorySummary) else summary.withheld
    released, code = _released(summary, np.flatnonzero(~withheld), sizes)
    groups = group_values(released, smallest)
    labels, after = [*groups.labels], np.zeros(len(groups.labels), dtype=np.int64)
    if labels:
        np.add.at(after, groups.of_code[code], sizes[~withheld])
    untold = int(sizes.sum()) - int(after.sum())
    return {
        "groups": [*labels, NOT_NAMED] if untold else labels,
        "after": [*after.tolist(), untold] if untold else after.tolist(),
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
