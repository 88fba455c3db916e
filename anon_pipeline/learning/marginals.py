"""The distribution of each quasi-identifier, alone: how many people have which value, in the source and as released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anon_pipeline.anonymize.recode import WITHHELD, CategorySummary, Summary
from anon_pipeline.learning.value_groups import MISSING, group_values
from anon_pipeline.tables import IntArray

#: Of these people the release tells no value.
NOT_TOLD = "not told"


def marginals(summaries: Sequence[Summary], sizes: IntArray, smallest: int) -> dict[str, dict[str, Any]]:
    """People by groups of values, for the manifest.

    Parameters
    ----------
    summaries : what the J classes show, and with each the values of its column in the source
    sizes : people per class, shape (J,)
    smallest : people of the source in every group; rarer values are told together

    Returns
    -------
    By column `groups`, their names, and `before` and `after`, the people in each. A last group may be of the people of
    whom nothing is told. After, a group has nobody or whole classes.
    """
    return {summary.domain.name: _marginal(summary, sizes, smallest) for summary in summaries}


def _marginal(summary: Summary, sizes: IntArray, smallest: int) -> dict[str, Any]:
    groups = group_values(summary.domain, smallest)
    labels, untold = [*groups.labels], len(groups.labels)
    if isinstance(summary, CategorySummary):
        withheld = summary.representative == WITHHELD
        group = groups.of_code[summary.representative]
    else:
        withheld = summary.withheld
        # A withheld number reads as a missing one.
        untold = labels.index(MISSING) if MISSING in labels else untold
        group = np.full(len(sizes), untold) if groups.place is None else groups.place(summary.representative)
    group = np.where(withheld, untold, group)
    if (group == len(labels)).any():
        labels.append(NOT_TOLD)
    before = np.bincount(groups.of_code, weights=summary.domain.counts, minlength=len(labels))
    after = np.bincount(group, weights=sizes, minlength=len(labels))
    return {"groups": labels, "before": before.astype(int).tolist(), "after": after.astype(int).tolist()}
