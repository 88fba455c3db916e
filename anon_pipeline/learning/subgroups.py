"""The scores of a model within groups of people, so that good scores of a majority do not hide poor ones of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.anonymize.encoding import learn_domain
from anon_pipeline.anonymize.value_groups import group_values
from anon_pipeline.learning.scores import Answers, Comparison, compared
from anon_pipeline.spec import ColumnType

#: A value has a group of its own if this share of the people has it. The other values are put together, since figures
#: of a few people depend more on chance than on the release.
SMALLEST_SHARE = 0.05


@dataclass(frozen=True)
class Subgroup:
    """The scores of the people with a certain value, or range of values, of a column.

    Attributes
    ----------
    column, value
        "sex", "Female".
    people
        Number of people.
    metrics
        Scores before and after; not fold by fold, since each would be of a few people.
    """

    column: str
    value: str
    people: int
    metrics: dict[str, Comparison]


def subgroups(
    tests: Sequence[pd.DataFrame],
    before: Sequence[Answers],
    after: Sequence[Answers],
    classes: npt.NDArray[np.object_] | None,
    columns: Mapping[str, tuple[ColumnType, str]],
    smallest: int = 1,
) -> tuple[Subgroup, ...]:
    """The larger groups of each column, the rare values put together; the groups of a column hold everybody.

    Parameters
    ----------
    tests : in each fold, the people who were asked about, raw
    before, after : the answers about them
    classes : the target's values, sorted; None for a regression
    columns : with their type, and their type in the source, which decides the unit of a date
    smallest : fewest people of a group in each fold, on average
    """
    everybody = pd.concat(list(tests), ignore_index=True)
    bounds = np.cumsum([len(test) for test in tests])[:-1]
    alone = int(np.ceil(SMALLEST_SHARE * len(everybody)))
    found = []
    for column, (kind, storage) in columns.items():
        domain, codes = learn_domain(column, everybody[column])
        groups = group_values(replace(domain, type=kind, storage=storage), smallest * len(tests), alone)
        if len(groups.labels) < 2:
            continue  # everybody is in one group: that is the whole table
        group = groups.of_code[codes]
        for number, label in enumerate(groups.labels):
            inside = np.split(group == number, bounds)
            scores = [
                [
                    answer.of(rows).scores(classes) if rows.any() else {}
                    for answer, rows in zip(answers, inside, strict=True)
                ]
                for answers in (before, after)
            ]
            names = [name for fold in scores[0] for name in fold]
            metrics = {
                name: _summed_up(
                    compared([fold.get(name) for fold in scores[0]], [fold.get(name) for fold in scores[1]], name)
                )
                for name in dict.fromkeys(names)
            }
            found.append(Subgroup(column, label, int((group == number).sum()), metrics))
    return tuple(found)


def _summed_up(comparison: Comparison) -> Comparison:
    """The comparison without the value in each fold."""
    return Comparison(
        *(replace(estimate, per_fold=()) for estimate in (comparison.before, comparison.after, comparison.difference))
    )
