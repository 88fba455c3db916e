"""Partners for classes that are expected to fail a demand by themselves, chosen by the guidance.

If all members of a class have low incomes, people near the class mostly have low incomes too, and a union with them
fails as the class did. The guidance, which is out of fold, says how many of each value to expect in a class without
looking at the members' own values. A class that is expected to fail is paired with a class with which it is expected to
hold, or comes nearest to that, and which is otherwise as near as possible. So unions follow from the quasi-identifiers
and the guidance, and reveal nothing about a member's own value.

The expected share of each value in a class is a straight line in the class's mean guidance. It is fitted to the whole
table and rounded. Where the guidance is a probability of the values, the lines are these probabilities; where the
guidance is about something else, they are nearly constant. If two members exchange their values, a line moves by little
compared with the rounding step. Where it moves across the edge of a step, the ladder could be another; the audit then
counts it as another (`moved_by`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from anon_pipeline.anonymize.neighbours import nearest
from anon_pipeline.arrays import BoolArray, FloatArray, IntArray
from anon_pipeline.privacy.statistics import ClassStatistics, Holds
from anon_pipeline.tables import Cells

#: In a table of fewer people a single person has too much influence on the lines. For columns of more values nothing is
#: expected. In a table of more cells pairing by nearness alone is faster.
PEOPLE, VALUES, CELLS = 500, 20, 100_000
#: The step to which the lines are rounded is at least 1 / `FINEST`, and at least so many people of the table.
FINEST, PEOPLE_A_STEP = 64, 64
#: If fewer members than this are expected to have a value, none is.
FEW = 2.0
#: Guidance is added up in multiples of this, so that sums do not depend on the order of addition.
UNIT = 2.0**-20
#: How many near classes are looked at, and how many of them a class may be paired with.
NEAR, KEPT = 8, 3


@dataclass(frozen=True, eq=False)
class Mixing:
    """The sensitive values that the guidance lets expect among the people of a table.

    Attributes
    ----------
    guidance : summed standardized guidance per cell, of total variance 1, shape (C, g)
    outputs : how many of the criterion's outputs, the first ones, are the guidance's own
    lines : per sensitive column the share of each value where the guidance is as in the whole table, and by how much it
        rises per unit of each output, shape (1 + g, m); rounded to multiples of `step`
    slopes : by how much the shares rise, not rounded, shape (g, m)
    leverage : by how much a person of each cell moves the slopes of the value that they have, shape (C, g)
    """

    guidance: FloatArray
    outputs: int
    step: float
    lines: dict[str, FloatArray]
    slopes: dict[str, FloatArray]
    leverage: FloatArray

    @classmethod
    def of(cls, cells: Cells, people: ClassStatistics) -> Mixing | None:
        """Fit the lines; None where there are too few people or too many values, or all have the same guidance."""
        columns = people.sensitive
        if cells.n < PEOPLE or len(cells.counts) > CELLS or not columns:
            return None
        if any(len(column.values) > VALUES for column in columns.values()):
            return None
        mean, share = cells.mean_guidance(), cells.counts / cells.n
        mean = mean - np.einsum("c,cg->g", share, mean)
        variance = float(np.einsum("c,cg->", share, mean**2))
        if variance < 1e-12:
            return None
        mean = mean / np.sqrt(variance)
        moments = np.einsum("c,cg,ch->gh", share, mean, mean) + 1e-9 * np.eye(mean.shape[1])
        leverage: FloatArray = np.linalg.solve(moments, mean.T).T / cells.n
        slopes = {name: np.asarray((column.counts.T @ leverage).T) for name, column in columns.items()}
        step = 1 / min(FINEST, 2 ** int(np.log2(cells.n / PEOPLE_A_STEP)))
        lines = {
            name: _rounded(np.vstack([column.total / column.total.sum(), slopes[name]]), step)
            for name, column in columns.items()
        }
        guidance = np.rint(mean * cells.counts[:, None] / UNIT) * UNIT
        return cls(guidance, mean.shape[1], step, lines, slopes, leverage)

    def moved_by(self, column: str, first: tuple[int, int], second: tuple[int, int]) -> bool:
        """Whether a line is rounded differently after two people, each a cell and a value, exchange their values."""
        (cell, value), (there, other) = first, second
        change = self.leverage[there] - self.leverage[cell]
        slopes = self.slopes[column].copy()
        slopes[:, value] += change
        slopes[:, other] -= change
        return not np.array_equal(_rounded(slopes, self.step), self.lines[column][1:])

    def partners(
        self, counted: ClassStatistics, mean: FloatArray, guidance: FloatArray, holds: Holds
    ) -> tuple[IntArray, FloatArray]:
        """Pairs of classes, shape (p, 2), and what each pair costs.

        Parameters
        ----------
        counted : the classes; only their sizes are used, and the distribution of values in the whole table
        mean : the criterion of each class, shape (J, o)
        guidance : the summed guidance of each class, shape (J, g)
        """
        weight = counted.sizes.astype(float)
        alike = mean.copy()
        alike[:, : self.outputs] = 0  # distances of the quasi-identifiers alone
        fails = ~self.holds(counted, weight, guidance, holds)
        width = min(NEAR, len(weight) - 1)
        pairs = nearest(mean, weight, np.arange(len(weight)), width)[0]
        if fails.any():
            pairs = np.concatenate([pairs, nearest(alike, weight, np.flatnonzero(fails), width)[0]])
        pairs = np.unique(np.sort(pairs, axis=1), axis=0)
        left, right = pairs.T
        together, apart = weight[left] + weight[right], alike[left] - alike[right]
        cost = np.einsum("po,po->p", apart, apart) * (weight[left] * weight[right] / together)
        still = ~self.holds(counted, together, guidance[left] + guidance[right], holds)
        alone = np.where(fails, _strayed(guidance, weight), 0.0)
        cost += np.where(still, _strayed(guidance[left] + guidance[right], together), 0.0) - alone[left] - alone[right]
        kept = _cheapest(left, right, cost)
        return pairs[kept], cost[kept]

    def holds(self, like: ClassStatistics, sizes: FloatArray, guidance: FloatArray, holds: Holds) -> BoolArray:
        """Which classes of these sizes and summed guidance are expected to hold, shapes (u,), (u, g) and (u,)."""
        known = np.hstack([np.ones((len(sizes), 1)), guidance / sizes[:, None]])
        columns = {}
        for name, lines in self.lines.items():
            shares = np.clip(known @ lines, 0, 1)
            people = sizes[:, None] * shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9)
            counts = sparse.csr_array(np.where(people < FEW, 0, np.rint(people)).astype(np.int64))
            columns[name] = replace(like.sensitive[name], counts=counts, table=like.sensitive[name].total)
        return holds(ClassStatistics(sizes.astype(np.int64), columns))


def _rounded(shares: FloatArray, step: float) -> FloatArray:
    rounded: FloatArray = np.round(shares / step) * step
    return rounded


def _strayed(guidance: FloatArray, weight: FloatArray) -> FloatArray:
    """Squared distance of each class's mean guidance from the whole table's, times its people, shape (u,)."""
    distance: FloatArray = np.einsum("ug,ug->u", guidance, guidance) / weight
    return distance


def _cheapest(left: IntArray, right: IntArray, cost: FloatArray) -> IntArray:
    """The pairs that are among the `KEPT` cheapest of one of their two classes, ascending."""
    pair = np.tile(np.arange(len(cost)), 2)
    own = np.r_[left, right]
    order = np.lexsort((pair, cost[pair], own))
    own = own[order]
    rank = np.arange(len(own)) - np.searchsorted(own, own)
    kept: IntArray = np.unique(pair[order[rank < KEPT]])
    return kept
