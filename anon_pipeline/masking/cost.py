"""The cost of a masking step to a column (cells, distribution, correlations), and whether people can be linked again.

Both are measured on at most `SAMPLE` rows. These are the first in canonical order, which is the order of a hash, and
so are a random sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import wasserstein_distance

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.masking.grouping import codes_of
from anon_pipeline.masking.numbers import deviation, to_floats, two_digits
from anon_pipeline.masking.texts import as_texts
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import scale_of

SAMPLE = 100_000
#: The number of people who are looked for, and of those among whom they are looked for.
LINKED, POOL = 500, 10_000
#: A column of more categories than this names people instead of classifying them; its correlations mean nothing.
MOST_CATEGORIES = 200


@dataclass(frozen=True)
class ColumnCost:
    """The cost of one step to one column.

    Attributes
    ----------
    changed : share of cells whose value changed or is missing now
    distance : the change of the distribution: for numbers and dates the earth mover's distance over the old range, for
        categories the total variation distance (missing is a category). From 0; None where numbers became texts
    measure : which of these two distances it is
    correlation : the largest change of a correlation with another column, from 0 to 2; None where there is none to
        compare. Pearson's r between numbers, Cramér's V between categories, the correlation ratio in between
    """

    changed: float
    distance: float | None
    measure: str | None
    correlation: float | None


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
    if not len(old):
        return ColumnCost(0.0, None, None, None)
    changed = float(np.mean(_differs(old, new)))
    distance, measure = _distance(old, new, kinds_before[name], kinds_after[name])
    correlation = _correlation_change(name, before, after, kinds_before, kinds_after)
    # From figures with all digits, somebody who knows all values but one could compute that one.
    distance, correlation = (None if value is None else two_digits(value) for value in (distance, correlation))
    return ColumnCost(changed, distance, measure, correlation)


def linkage(
    before: Mapping[str, pa.Array],
    after: Mapping[str, pa.Array],
    kinds: Mapping[str, ColumnType],
    columns: Sequence[str],
) -> Linkage | None:
    """How many masked rows an intruder can link who knows the originals of `columns`; None for an empty table.

    The distance is the sum over columns of |a - b| / standard deviation for numbers and of 0 or 1 for categories
    (Gower's, up to scale); a missing value has distance 1 from every other.
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
        known, masked = to_floats(old), to_floats(new)
        scale = deviation(known) or 1.0
        apart = np.abs(masked[:, None] / scale - known[None, :] / scale)
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


def _distance(old: pa.Array, new: pa.Array, before: ColumnType, after: ColumnType) -> tuple[float | None, str | None]:
    if before is not ColumnType.CATEGORICAL and after is not ColumnType.CATEGORICAL:
        first, second = (values[~np.isnan(values)] for values in (to_floats(old), to_floats(new)))
        if not len(first) or not len(second):
            return None, None
        unit = scale_of(first)
        first, second = first / unit, second / unit
        low, high = float(first.min()), float(first.max())
        scale = (high - low) or 1.0
        moved = wasserstein_distance((first - low) / scale, (second - low) / scale)
        return float(moved), "earth mover's distance / range"
    if before is ColumnType.CATEGORICAL:
        codes, categories = codes_of(pa.concat_arrays([as_texts(old), as_texts(new)]))
        size = len(categories) + 1
        first, second = (np.bincount(part, minlength=size) / len(part) for part in np.split(codes, [len(old)]))
        return float(np.abs(first - second).sum() / 2), "total variation distance"
    return None, None


def _correlation_change(
    name: str,
    before: Mapping[str, pa.Array],
    after: Mapping[str, pa.Array],
    kinds_before: Mapping[str, ColumnType],
    kinds_after: Mapping[str, ColumnType],
) -> float | None:
    changes = []
    for other in before:
        if other == name or other not in after:
            continue
        old = association(before[name], before[other], kinds_before[name], kinds_before[other])
        new = association(after[name], after[other], kinds_after[name], kinds_after[other])
        if old is not None and new is not None:
            comparable = kinds_before[name] is kinds_after[name] and kinds_before[other] is kinds_after[other]
            changes.append(abs(old - new) if comparable else abs(abs(old) - abs(new)))
    return max(changes) if changes else None


def association(left: pa.Array, right: pa.Array, left_kind: ColumnType, right_kind: ColumnType) -> float | None:
    """Pearson's r, Cramér's V or the correlation ratio, by type; 0 where one is constant, None where unsuitable."""
    if left_kind is ColumnType.CATEGORICAL and right_kind is not ColumnType.CATEGORICAL:
        return association(right, left, right_kind, left_kind)
    if left_kind is ColumnType.CATEGORICAL:
        return _cramers_v(codes_of(left)[0], codes_of(right)[0])
    values = to_floats(left)
    if right_kind is ColumnType.CATEGORICAL:
        known = ~np.isnan(values)
        return _correlation_ratio(codes_of(right)[0][known], values[known])
    others = to_floats(right)
    known = ~np.isnan(values) & ~np.isnan(others)
    first, second = values[known], others[known]
    if len(first) < 2:
        return None
    first, second = first / scale_of(first), second / scale_of(second)
    first, second = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((first**2).sum()) * np.sqrt((second**2).sum()))
    return float((first * second).sum()) / scale if scale > 0 else 0.0


def _cramers_v(first: IntArray, second: IntArray) -> float | None:
    a, b = _without_gaps(first), _without_gaps(second)
    rows, columns = int(a.max(initial=0)) + 1, int(b.max(initial=0)) + 1
    if max(rows, columns) > MOST_CATEGORIES:
        return None
    if min(rows, columns) < 2:
        return 0.0
    table = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns) / len(a)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / (min(rows, columns) - 1)))


def _correlation_ratio(codes: IntArray, values: FloatArray) -> float | None:
    if len(values) < 2:
        return None
    groups = _without_gaps(codes)
    counts = np.bincount(groups)
    if len(counts) > MOST_CATEGORIES:
        return None
    values = values / scale_of(values)
    values = values - values.mean()
    total = float((values**2).sum())
    means = np.bincount(groups, values) / counts
    return float(np.sqrt((counts * means**2).sum() / total)) if total > 0 else 0.0


def _without_gaps(codes: IntArray) -> IntArray:
    """Codes from 0 on in the same order, without those that do not occur; not sorted, since many columns need this."""
    stands = np.bincount(codes) > 0
    return (np.cumsum(stands) - 1)[codes]
