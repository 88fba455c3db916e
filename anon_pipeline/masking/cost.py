"""The cost of a masking step to a column (cells, distribution, correlations), and whether people can be linked again.

Both are measured on at most `SAMPLE` rows. These are the first in canonical order, which is the order of a hash, and
so are a random sample.

A cost is counted from values that are not released. An attacker may know all of them but one person's. So no person may
weigh much: with values in place of ranks, a single income of a million would decide the range and the correlations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import wasserstein_distance

from anon_pipeline.arrays import FloatArray
from anon_pipeline.association import Robust, Variable, robust_association
from anon_pipeline.masking.grouping import codes_of
from anon_pipeline.masking.numbers import to_floats
from anon_pipeline.masking.texts import as_texts
from anon_pipeline.spec import ColumnType

SAMPLE = 100_000
#: The number of people who are looked for, and of those among whom they are looked for.
LINKED, POOL = 500, 10_000


@dataclass(frozen=True)
class CorrelationChange:
    """A correlation of two columns before and after a step: Spearman's r, Cramér's V, or the correlation ratio.

    Attributes
    ----------
    other : the other column
    signed : whether both are of numbers, and can be negative
    people : of how many people both values are known, before or after, whichever are fewer
    apart, apart_after : how many of them differ in the column and in the other one, before and after (`Robust.apart`)
    """

    other: str
    before: float
    after: float
    signed: bool
    people: int
    apart: tuple[int, int]
    apart_after: tuple[int, int]


@dataclass(frozen=True)
class ColumnCost:
    """The cost of one step to one column.

    Attributes
    ----------
    changed : share of cells whose value changed or is missing now
    distance : the change of the distribution, from 0 to 1. For numbers and dates the earth mover's distance between the
        ranks that values have among the old ones, for categories the total variation distance (missing is a category).
        None where numbers became texts
    measure : which of these two distances it is
    correlations : the changes of the correlations with other columns
    people, known : how many people the first two were measured on: all of the sample, and those whose number or date
        is known
    """

    changed: float
    distance: float | None
    measure: str | None
    correlations: tuple[CorrelationChange, ...]
    people: int = 0
    known: int = 0


@dataclass(frozen=True)
class Linkage:
    """Whether masked rows can be linked to their originals.

    Attributes
    ----------
    rate : share of masked rows whose nearest original is their own; where m originals are equally near, 1/m counts
    rows : the number of masked rows that were looked for
    pool : the number of originals among which they were looked for; in a larger pool fewer are found
    """

    rate: float
    rows: int
    pool: int


def column_cost(
    name: str,
    before: Mapping[str, pa.Array],
    after: Mapping[str, pa.Array],
    kinds_before: Mapping[str, ColumnType],
    kinds_after: Mapping[str, ColumnType],
) -> ColumnCost:
    """The cost to the column `name` between two states of the same rows, in the same order."""
    old, new = before[name], after[name]
    people = len(old)
    if not people:
        return ColumnCost(0.0, None, None, ())
    changed = float(np.mean(_differs(old, new)))
    distance, measure, known = _distance(old, new, kinds_before[name], kinds_after[name])
    correlations = _correlation_changes(name, before, after, kinds_before, kinds_after)
    return ColumnCost(changed, distance, measure, correlations, people, known)


def linkage(
    before: Mapping[str, pa.Array],
    after: Mapping[str, pa.Array],
    kinds: Mapping[str, ColumnType],
    columns: Sequence[str],
) -> Linkage | None:
    """How many masked rows an intruder can link who knows the originals of `columns`; None for an empty table.

    The distance is a sum over columns (Gower's, with ranks): of the difference of two ranks for numbers, in standard
    deviations of ranks, and of 0 or 1 for categories. A missing value has distance 1 from every other.
    """
    pool = min(POOL, len(next(iter(before.values()))))
    rows = min(LINKED, pool)
    if not rows:
        return None
    total = np.zeros((rows, pool))
    for name in columns:
        old, new = before[name].slice(0, pool), after[name].slice(0, rows)
        if kinds[name] is ColumnType.CATEGORICAL:
            codes = codes_of(pa.concat_arrays([as_texts(old), as_texts(new)]))[0]
            total += codes[pool:, None] != codes[None, :pool]
            continue
        values = to_floats(old)
        known, masked = _ranks(values, values), _ranks(to_floats(new), values)
        apart = np.abs(masked[:, None] - known[None, :]) * np.sqrt(12)
        gaps = np.isnan(masked)[:, None].astype(float) + np.isnan(known)[None, :]
        total += np.where(gaps > 0, gaps == 1, apart)
    own = total[np.arange(rows), np.arange(rows)]
    nearest = total.min(axis=1)
    is_nearest = own <= nearest * (1 + 1e-12)
    equally = (total <= nearest[:, None] * (1 + 1e-12)).sum(axis=1)
    return Linkage(float((is_nearest / equally).mean()), rows, pool)


def _differs(old: pa.Array, new: pa.Array) -> npt.NDArray[np.bool_]:
    if old.type != new.type:
        old, new = as_texts(old), as_texts(new)
    same = pc.fill_null(pc.equal(old, new), False)
    both_missing = pc.and_(pc.is_null(old), pc.is_null(new))
    return ~np.asarray(pc.or_(same, both_missing))


def _distance(
    old: pa.Array, new: pa.Array, before: ColumnType, after: ColumnType
) -> tuple[float | None, str | None, int]:
    """The change of a distribution, its measure, and the number of people that it was measured on, at least."""
    if before is not ColumnType.CATEGORICAL and after is not ColumnType.CATEGORICAL:
        first, second = (values[~np.isnan(values)] for values in (to_floats(old), to_floats(new)))
        if not len(first) or not len(second):
            return None, None, 0
        moved = wasserstein_distance(_ranks(first, first), _ranks(second, first))
        return float(moved), "earth mover's distance between ranks", min(len(first), len(second))
    if before is ColumnType.CATEGORICAL:
        codes, categories = codes_of(pa.concat_arrays([as_texts(old), as_texts(new)]))
        size = len(categories) + 1
        first, second = (np.bincount(part, minlength=size) / len(part) for part in np.split(codes, [len(old)]))
        return float(np.abs(first - second).sum() / 2), "total variation distance", len(old)
    return None, None, 0


def _ranks(values: FloatArray, among: FloatArray) -> FloatArray:
    """The share of others that lie below each value, and half of those that are equal to it, shape (n,).

    It grows evenly between two neighbours among the others, and is 0 below and 1 above all of them.
    """
    known, counts = np.unique(among[~np.isnan(among)], return_counts=True)
    if not len(known):
        return values * 0.0  # nobody is known, and nobody is compared
    ranks: FloatArray = np.interp(values, known, (np.cumsum(counts) - counts / 2) / counts.sum())
    ranks[values < known[0]] = 0.0
    ranks[values > known[-1]] = 1.0
    return ranks


def _correlation_changes(
    name: str,
    before: Mapping[str, pa.Array],
    after: Mapping[str, pa.Array],
    kinds_before: Mapping[str, ColumnType],
    kinds_after: Mapping[str, ColumnType],
) -> tuple[CorrelationChange, ...]:
    """The changes with all other columns; which is told is decided with noise (`release.masking_figures`)."""
    changes = []
    for other in before:
        if other == name or other not in after:
            continue
        old = association_of(before[name], before[other], kinds_before[name], kinds_before[other])
        new = association_of(after[name], after[other], kinds_after[name], kinds_after[other])
        kinds = {kinds_before[name], kinds_before[other], kinds_after[name], kinds_after[other]}
        # Where nothing is left to be associated, as in a column that is constant now, the association is lost.
        strengths, people = (old.value or 0.0, new.value or 0.0), min(old.people, new.people)
        signed = ColumnType.CATEGORICAL not in kinds
        changes.append(CorrelationChange(other, *strengths, signed, people, old.apart, new.apart))
    return tuple(changes)


def association_of(left: pa.Array, right: pa.Array, left_kind: ColumnType, right_kind: ColumnType) -> Robust:
    """The measure for the types of two columns, in which no person weighs much.

    Ranks stand for numbers, and rare categories are one category; see `anon_pipeline.association`.
    """
    return robust_association(
        (_variable(left, left_kind), _variable(right, right_kind), np.ones(len(left), dtype=np.int64))
    )


def _variable(column: pa.Array, kind: ColumnType) -> Variable:
    if kind is ColumnType.CATEGORICAL:
        return Variable(codes_of(column)[0], False)
    return Variable(to_floats(column), True)
