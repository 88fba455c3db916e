"""The distribution that fits noisy counts best: no count is below zero, and all counts agree with one table.

R. McKenna, D. Sheldon and G. Miklau, Graphical-model based estimation and inference for differential privacy, ICML
2019: of all distributions over the columns with the least squared error, the one of largest entropy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anon_pipeline.differential_privacy.synthesis.junction_tree import (
    Clique,
    FloatArray,
    JunctionTree,
    spread,
    summed,
)

#: Passes of proportional fitting before the descent, and its smallest count, in standard deviations of the noise.
SWEEPS, FLOOR = 3, 0.1


@dataclass(frozen=True)
class NoisyTable:
    """Noisy counts of a set of columns, and the variance of the noise of each count, an axis per column."""

    columns: Clique
    counts: FloatArray
    variance: FloatArray


@dataclass(frozen=True)
class Model:
    """A joint distribution of all columns: a table of probabilities per clique of a junction tree.

    Attributes
    ----------
    total : the number of people it describes
    potentials : the log-potentials that the tables were computed from; a later fit can start from them
    """

    tree: JunctionTree
    tables: list[FloatArray]
    potentials: list[FloatArray]
    total: float

    def counts(self, columns: Clique) -> FloatArray:
        """The expected counts of any set of columns."""
        return self.tree.marginal(self.tables, columns) * self.total


def total_of(measured: Sequence[NoisyTable]) -> float:
    """The number of people: the mean of the sums of all tables, weighted by inverse variance; at least 1."""
    weights = np.array([1 / table.variance.sum() for table in measured])
    sums = np.array([table.counts.sum() for table in measured])
    return max(1.0, float(weights @ sums / weights.sum()))


def fit(
    sizes: Sequence[int], measured: Sequence[NoisyTable], total: float, former: Model | None = None, steps: int = 200
) -> Model:
    """The model of largest entropy among those that fit the measured tables best, by mirror descent.

    Parameters
    ----------
    sizes : the number of values of each column
    former : a model of fewer tables, to start from
    steps : steps of the descent; each lowers the squared error, in units of each table's noise
    """
    tree = JunctionTree.over(sizes, [table.columns for table in measured])
    homes = [tree.home(table.columns) for table in measured]
    least = min(float(table.variance.min()) for table in measured)
    weights = [least / table.variance for table in measured]
    wanted = [table.counts / total for table in measured]
    potentials = _start(tree, former)
    for _ in range(SWEEPS if former is None else 1):
        for table, home, goal in zip(measured, homes, wanted, strict=True):
            if former is not None and former.tree.home(table.columns) >= 0:
                continue
            axes = tree.cliques[home]
            estimated = summed(tree.marginals(potentials)[home], axes, table.columns)
            floor = FLOOR * np.sqrt(table.variance) / total
            potentials[home] += spread(
                np.log(np.maximum(goal, floor) / np.maximum(estimated, 1e-300)), table.columns, axes
            )
    tables = tree.marginals(potentials)

    def loss_of(tables: list[FloatArray]) -> tuple[float, list[FloatArray]]:
        loss, slopes = 0.0, [np.zeros(tree.shape(clique)) for clique in tree.cliques]
        for table, home, weight, goal in zip(measured, homes, weights, wanted, strict=True):
            axes = tree.cliques[home]
            off = summed(tables[home], axes, table.columns) - goal
            loss += float((weight * off**2).sum()) / 2
            slopes[home] += spread(weight * off, table.columns, axes)
        return loss, slopes

    loss, slopes = loss_of(tables)
    rate = 1.0
    for _ in range(steps):
        rate *= 2
        for _ in range(40):
            tried = [potential - rate * slope for potential, slope in zip(potentials, slopes, strict=True)]
            moved = tree.marginals(tried)
            new_loss, new_slopes = loss_of(moved)
            gain = sum(
                float((slope * (old - new)).sum()) for slope, old, new in zip(slopes, tables, moved, strict=True)
            )
            if loss - new_loss >= 0.5 * gain:
                break
            rate /= 2
        potentials, tables, slopes = tried, moved, new_slopes
        done = loss - new_loss <= 1e-7 * loss
        loss = new_loss
        if done:
            break
    return Model(tree, tables, potentials, total)


def _start(tree: JunctionTree, former: Model | None) -> list[FloatArray]:
    """Potentials to start from: those of the former model, added to cliques that contain its cliques, else zeros."""
    potentials = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    if former is not None:
        for clique, potential in zip(former.tree.cliques, former.potentials, strict=True):
            home = tree.home(clique)
            if home >= 0:
                potentials[home] += spread(potential, clique, tree.cliques[home])
    return potentials
