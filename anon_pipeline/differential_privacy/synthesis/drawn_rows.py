"""Rows drawn from a model: first codes, by randomized rounding, then the public values of these codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.differential_privacy.synthesis.coded_table import Axis
from anon_pipeline.differential_privacy.synthesis.estimation import Model
from anon_pipeline.differential_privacy.synthesis.junction_tree import FloatArray
from anon_pipeline.differential_privacy.synthesis.measuring import Measurements, column_counts


def draw_codes(model: Model, rows: int, random: np.random.Generator) -> IntArray:
    """Draw rows of a model as codes, shape (rows, d).

    Columns are drawn clique by clique. Among the rows that agree in the columns drawn before, the count of each
    combination of a clique differs from its expected count by less than one.
    """
    tree = model.tree
    drawn = np.zeros((rows, len(tree.sizes)), dtype=np.int64)
    for table, clique, shared in zip(model.tables, tree.cliques, tree.separators, strict=True):
        new = tuple(column for column in clique if column not in shared)
        axes = [clique.index(column) for column in (*shared, *new)]
        chances = table.transpose(axes).reshape(tree.size(shared), tree.size(new))
        given = np.zeros(rows, dtype=np.int64)
        if shared:
            given = np.ravel_multi_index(tuple(drawn[:, column] for column in shared), tree.shape(shared))
        codes = np.unravel_index(_spread_over(given, chances, random), tree.shape(new))
        for column, values in zip(new, codes, strict=True):
            drawn[:, column] = values
    return drawn


def _spread_over(given: IntArray, chances: FloatArray, random: np.random.Generator) -> IntArray:
    """An outcome for each row, drawn with the probabilities of its group by systematic sampling; shape (n,)."""
    if not len(given):
        return given
    order = np.argsort(given, kind="stable")
    groups, starts = np.unique(given[order], return_index=True)
    found = np.zeros(len(given), dtype=np.int64)
    for group, start, end in zip(groups, starts, [*starts[1:], len(order)], strict=True):
        rows = order[start:end]
        weights = chances[group]
        if weights.sum() <= 0:
            weights = np.ones_like(weights)
        places = (np.arange(len(rows)) + random.random()) / len(rows)
        outcomes = np.searchsorted(np.cumsum(weights) / weights.sum(), places, side="right")
        outcomes = np.minimum(outcomes, np.flatnonzero(weights > 0).max())
        random.shuffle(outcomes)
        found[rows] = outcomes
    return found


def with_all_values(codes: IntArray, measurements: Measurements, random: np.random.Generator) -> IntArray:
    """Codes of single values in place of codes that several values share, drawn by the values' noisy counts.

    A missing value that is too rare to have a code of its own is never drawn.
    """
    result = codes.copy()
    for column, mapping in enumerate(measurements.codes):
        noisy = np.maximum(
            column_counts([table for table in measurements.first if column in table.columns], column)[0], 0
        )
        missing = len(mapping) - 1
        for shared in range(int(mapping.max()) + 1):
            values = np.flatnonzero(mapping == shared)
            rows = np.flatnonzero(codes[:, column] == shared)
            open_to = (values != missing) | (len(values) == 1)
            weights = np.where(open_to, noisy[values], 0.0)
            weights = weights if weights.sum() > 0 else open_to.astype(np.float64)
            result[rows, column] = values[_spread_over(np.zeros(len(rows), dtype=np.int64), weights[None, :], random)]
    return result


def as_table(codes: IntArray, axes: Sequence[Axis], random: np.random.Generator) -> pa.Table:
    """The public values of codes: texts, or numbers drawn uniformly from their interval; rows sorted."""
    columns = {axis.name: _values(codes[:, place], axis, random) for place, axis in enumerate(axes)}
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _values(codes: IntArray, axis: Axis, random: np.random.Generator) -> pa.Array:
    domain, missing = axis.domain, codes == axis.intervals
    known = np.where(missing, 0, codes)
    if domain.values is not None:
        return pa.array(domain.values, pa.string()).take(pa.array(known, mask=missing))
    if domain.bins is not None:
        edges = np.array(domain.bins)
        low, high = edges[known], edges[known + 1]
        if np.all(edges == np.floor(edges)):
            high = high + (known == len(edges) - 2)  # the last edge belongs to the last interval
            return pa.array(random.integers(low.astype(np.int64), high.astype(np.int64)), mask=missing)
        return pa.array(low + random.random(len(low)) * (high - low), mask=missing)
    first = known * axis.width
    places = random.integers(first, np.minimum(first + axis.width, domain.size))
    grid = np.array([domain.number_at(place) for place in range(domain.size)])
    numbers = grid[places]
    whole = np.all(grid == np.floor(grid))
    return pa.array(numbers.astype(np.int64) if whole else numbers, mask=missing)
