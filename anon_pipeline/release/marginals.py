"""The distribution of each quasi-identifier, alone, as it is released: how many people are shown with which value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anon_pipeline.anonymize.recode import WITHHELD, CategorySummary, OrderedSummary, Summary
from anon_pipeline.anonymize.value_groups import group_values
from anon_pipeline.arrays import IntArray
from anon_pipeline.tables import Domain

#: Of these people the release tells no value.
NOT_NAMED = "not told"


def marginals(summaries: Sequence[Summary], sizes: IntArray, smallest: int) -> dict[str, dict[str, Any]]:
    """People by groups of the values that classes show, for the manifest.

    Groups and counts follow from the released values alone, so nobody learns from them what else the source holds.

    Parameters
    ----------
    summaries : what the J classes show
    sizes : people per class, shape (J,)
    smallest : people in every group; rarer values are told together

    Returns
    -------
    By column `groups`, their names, and `after`, the people in each. A last group may be of the people of whom nothing
    is told.
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
    """The values that some classes show, as a column with their people, and the code of each of these classes."""
    domain = summary.domain
    if isinstance(summary, OrderedSummary):
        values, place = np.unique(summary.representative[is_told], return_inverse=True)
        code = place.astype(np.int64) + 1
        domain = replace(domain, values=values, lows=None, highs=None, levels=None, nodes=None)
    else:
        code = summary.representative[is_told]
    counts = np.bincount(code, weights=sizes[is_told], minlength=len(domain)).astype(np.int64)
    return replace(domain, counts=counts), code
