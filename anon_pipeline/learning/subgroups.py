"""The scores of a model within groups of people, so that good scores of a majority do not hide poor ones of others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.anonymize.encoding import learn_domain
from anon_pipeline.anonymize.value_groups import OTHERS, group_values
from anon_pipeline.arrays import IntArray
from anon_pipeline.learning.scores import Answers, Comparison, compared
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain

#: A value has a group of its own if this share of the people has it. The other values are put together, since figures
#: of a few people depend more on chance than on the release.
SMALLEST_SHARE = 0.05
#: The scale of the noise with which people are counted for that: one more or less hardly shows.
NOISE = 2.0
#: So many people more are asked for where people are counted with noise, so that too few hardly ever seem enough.
MARGIN = 20


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
    answers: tuple[Sequence[Answers], Sequence[Answers]],
    classes: npt.NDArray[np.object_] | None,
    columns: Mapping[str, tuple[ColumnType, str]],
    smallest: int,
    seed: int,
) -> tuple[Subgroup, ...]:
    """The larger groups of each column, the rare values put together; the groups of a column hold everybody.

    Which categories are a group of their own and where numbers are cut is decided with noise, and categories are in the
    order of their names: that one has more people than another, or just enough, would tell what the last person has.

    Parameters
    ----------
    tests : in each fold, the people who were asked about, raw
    answers : those about them, before and after
    classes : the target's values, sorted; None for a regression
    columns : with their type, and their type in the source, which decides the unit of a date
    smallest : fewest people of a group in each fold, on average
    seed : that of the noise
    """
    everybody = pd.concat(list(tests), ignore_index=True)
    bounds = np.cumsum([len(test) for test in tests])[:-1]
    alone = int(np.ceil(SMALLEST_SHARE * len(everybody)))
    found = []
    for column, (kind, storage) in columns.items():
        domain, codes = learn_domain(column, everybody[column])
        domain = replace(domain, type=kind, storage=storage)
        counted = domain if domain.ordered else replace(domain, counts=_with_noise(domain, seed))
        noise = partial(_drawn, seed, column, "cut")
        groups = group_values(counted, smallest * len(tests) + MARGIN, alone, noise)
        if len(groups.labels) < 2:
            continue  # everybody is in one group: that is the whole table
        group = groups.of_code[codes]
        labels = list(enumerate(groups.labels))
        for number, label in labels if domain.ordered else sorted(labels, key=_by_name):
            inside = np.split(group == number, bounds)
            scores = [
                [
                    answer.of(rows).scores(classes) if rows.any() else {}
                    for answer, rows in zip(of_models, inside, strict=True)
                ]
                for of_models in answers
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


def _with_noise(domain: Domain, seed: int) -> IntArray:
    """The people of each category with noise, and of those that nobody has none, shape (m + 1,).

    The noise follows from the name of the category, so that it is the same in all releases.
    """
    drawn = np.array([_drawn(seed, domain.name, name) for name in (None, *domain.values.tolist())])
    return np.where(domain.counts > 0, np.maximum(domain.counts + drawn, 1), 0).astype(np.int64)


def _drawn(seed: int, *names: str | None) -> int:
    """Noise that follows from what it is for."""
    named = "\0".join(map(str, names)).encode()
    of = int.from_bytes(hashlib.blake2b(named, digest_size=8, key=b"%d" % seed).digest())
    return round(np.random.default_rng(of).laplace(scale=NOISE))


def _by_name(numbered: tuple[int, str]) -> tuple[bool, str]:
    return numbered[1] == OTHERS, numbered[1]


def _summed_up(comparison: Comparison) -> Comparison:
    """The comparison without the value in each fold."""
    return Comparison(
        *(replace(estimate, per_fold=()) for estimate in (comparison.before, comparison.after, comparison.difference))
    )
