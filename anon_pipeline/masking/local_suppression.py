"""The table technique that makes few cells missing until every combination of values is shared by k people."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from anon_pipeline.arrays import IntArray
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.masking.base import Applied, Columns, Context, Fact, Guarantee, TableTechnique
from anon_pipeline.masking.grouping import codes_of, keys_of
from anon_pipeline.spec import ColumnType

#: The number of ways to suppress is the number of subsets of the columns.
MOST_COLUMNS = 12


class LocalSuppression(TableTechnique):
    """As few cells as a greedy search finds become missing, so that every combination is shared by k people.

    After local suppression in mu-Argus and sdcMicro (A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012,
    section 3.2.5; M. Templ, A. Kowarik, B. Meindl, Journal of Statistical Software 67(4), 2015). Here a missing value
    is a value like any other, and does not stand for all values as it does there: the k holds for who counts rows.
    Ways to suppress (sets of columns) are tried from the cheapest, by the sum of the importances of their columns; a
    row takes the first by which it and others reach k. Who is left shows nothing, together with as many others as k
    needs.
    """

    technique: Literal["local_suppression"] = "local_suppression"
    k: int = Field(ge=2, le=2**31, description="how many people must share each combination")
    importance: dict[str, float] = Field(default={}, description="how much a column's cells are worth; 1 where absent")

    meaning: ClassVar[str] = "makes few cells missing until every combination is shared by k people"
    guarantee: ClassVar[Guarantee] = "k"
    use_when: ClassVar[str] = "a few rare combinations are left after generalization, and values must stay true"

    @model_validator(mode="after")
    def _weighs_its_columns(self) -> Self:
        if len(self.columns) > MOST_COLUMNS:
            raise ValueError(f"columns: are more than {MOST_COLUMNS}, too many sets of them to try; name fewer")
        unknown = set(self.importance) - set(self.columns)
        if unknown:
            raise ValueError(f"importance.{min(unknown)}: is none of the columns that are suppressed")
        if any(not 0 < weight < float("inf") for weight in self.importance.values()):
            raise ValueError("importance: must be numbers above 0; the larger, the later a column is suppressed")
        return self

    def apply(self, columns: Columns, context: Context) -> Applied:
        n = context.rows
        if n < self.k:
            raise InputError(f"{context.place}: the table has {number_of(n, 'row', 'rows')}, fewer than k = {self.k}")
        codes = np.column_stack([codes_of(columns[name])[0] for name in self.columns])
        masked = suppressed(codes, self.k, [self.importance.get(name, 1.0) for name in self.columns])
        cells = {name: int((masked[:, i] != codes[:, i]).sum()) for i, name in enumerate(self.columns)}
        changed = {
            name: pc.if_else(
                pa.array((masked[:, i] == 0) & (codes[:, i] > 0)), pa.scalar(None, columns[name].type), columns[name]
            )
            for i, name in enumerate(self.columns)
        }
        facts: dict[str, Fact] = {"cells": sum(cells.values()), "rows": int((masked != codes).any(axis=1).sum())}
        return Applied(changed, facts=facts | {f"cells.{name}": count for name, count in cells.items()})

    def columns_after(self, kinds: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        return dict(kinds)


def suppressed(codes: IntArray, k: int, importance: list[float]) -> IntArray:
    """The codes, some of them set to 0 (missing), so that k people share every row; needs n >= k. Shape (n, p)."""
    cells, cell_of, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    cell_of = cell_of.ravel()
    result = cells.copy()
    done = counts >= k
    for kept in _ways(importance):
        if done.all():
            break
        _accept(result, cells, counts, done, kept, k)
    rows = result[cell_of]
    left = ~done[cell_of]
    if left.any():
        rows[left] = 0
        _fill_up(rows, k)
    return rows


def _ways(importance: list[float]) -> list[npt.NDArray[np.bool_]]:
    """All sets of columns to keep except all and none, the cheapest suppression first, shape (p,) each."""
    ways = [np.array(kept, dtype=bool) for kept in product((True, False), repeat=len(importance))]
    ways.sort(key=lambda kept: (float(np.array(importance)[~kept].sum()), int((~kept).sum()), tuple(~kept)))
    return [kept for kept in ways if kept.any() and not kept.all()]


def _accept(
    result: IntArray,
    cells: IntArray,
    counts: IntArray,
    done: npt.NDArray[np.bool_],
    kept: npt.NDArray[np.bool_],
    k: int,
) -> None:
    """Suppress all columns but `kept` in pending cells that then reach k, together or with cells that are done."""
    pending = np.flatnonzero(~done)
    joining = np.flatnonzero(done & (result[:, ~kept] == 0).all(axis=1))
    candidates = np.concatenate([pending, joining])
    key = keys_of([np.concatenate([cells[pending, i], result[joining, i]]) for i in np.flatnonzero(kept)])
    _, group = np.unique(key, return_inverse=True)
    sizes = np.bincount(group, counts[candidates])
    reached = pending[sizes[group[: len(pending)]] >= k]
    result[np.ix_(reached, np.flatnonzero(~kept))] = 0
    done[reached] = True


def _fill_up(rows: IntArray, k: int) -> None:
    """Suppress more rows until k are wholly suppressed: first those that a group can spare above k, then a group."""
    missing = k - int((rows == 0).all(axis=1).sum())
    while missing > 0:
        _, group, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        group = group.ravel()
        nothing = (rows == 0).all(axis=1)
        counts_of = counts[group]
        spare = np.where(nothing, 0, counts_of - k)
        order = np.lexsort((np.arange(len(rows)), group))
        within = np.empty(len(rows), dtype=np.int64)
        within[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        free = np.flatnonzero(within < spare)
        if len(free):
            rows[free[:missing]] = 0
        else:
            others = np.flatnonzero(~nothing)
            rows[group == group[others[0]]] = 0
        missing = k - int((rows == 0).all(axis=1).sum())
