"""Junction trees of graphical models: distributions over a few columns each, connected in a tree.

A clique is a set of columns, ascending; a table of a clique has one axis per column. D. Koller and N. Friedman,
Probabilistic Graphical Models, MIT Press 2009, chapters 9 and 10.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Clique = tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each but the first shares its `separators` with an earlier one, its parent.

    The cliques that contain a column are a connected part of the tree (the running intersection property).
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]  # -1 for the first
    separators: tuple[Clique, ...]

    @classmethod
    def over(cls, sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> JunctionTree:
        """A tree in which some clique contains each of the sets, and some clique contains each column.

        Columns are eliminated in the order of least fill; of equal ones, the one with the smaller clique comes first.
        """
        neighbours: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
        for together in sets:
            for left, right in itertools.permutations(together, 2):
                neighbours[left].add(right)
        found: list[Clique] = []
        left_over = set(neighbours)
        while left_over:
            column = min(left_over, key=lambda candidate: (*_cost(candidate, neighbours, sizes), candidate))
            clique = {column, *neighbours[column]}
            for left, right in itertools.permutations(neighbours[column], 2):
                neighbours[left].add(right)
            for other in neighbours.pop(column):
                neighbours[other].discard(column)
            left_over.discard(column)
            if not any(clique <= set(former) for former in found):
                found.append(tuple(sorted(clique)))
        return cls._of_cliques(tuple(sizes), found)

    @classmethod
    def _of_cliques(cls, sizes: tuple[int, ...], cliques: list[Clique]) -> JunctionTree:
        """The spanning tree of largest separators."""
        order, parents = [0], [-1]
        separators: list[Clique] = [()]
        pending = set(range(1, len(cliques)))
        while pending:
            parent, new = max(
                ((old, new) for old in range(len(order)) for new in sorted(pending)),
                key=lambda pair: len(set(cliques[order[pair[0]]]) & set(cliques[pair[1]])),
            )
            pending.discard(new)
            shared = set(cliques[order[parent]]) & set(cliques[new])
            order.append(new)
            parents.append(parent)
            separators.append(tuple(sorted(shared)))
        return cls(sizes, tuple(cliques[number] for number in order), tuple(parents), tuple(separators))

    @property
    def cells(self) -> int:
        """The total number of entries of the tables of all cliques."""
        return sum(self.size(clique) for clique in self.cliques)

    def size(self, columns: Sequence[int]) -> int:
        return math.prod(self.sizes[column] for column in columns)

    def shape(self, columns: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in columns)

    def home(self, columns: Sequence[int]) -> int:
        """The position of the smallest clique that contains all of these columns; -1 where none does."""
        inside = [number for number, clique in enumerate(self.cliques) if set(columns) <= set(clique)]
        return min(inside, key=lambda number: self.size(self.cliques[number]), default=-1)

    def marginals(self, potentials: Sequence[FloatArray]) -> list[FloatArray]:
        """The distribution of each clique, if the joint one is proportional to exp of the sum of all potentials.

        Messages are passed over the tree twice, as logarithms; the result sums to 1 in every clique.
        """
        beliefs = [potential.copy() for potential in potentials]
        messages: list[FloatArray] = [np.zeros(())] * len(beliefs)
        for number in range(len(beliefs) - 1, 0, -1):
            parent, shared = self.parents[number], self.separators[number]
            messages[number] = _log_sum(beliefs[number], self.cliques[number], shared)
            beliefs[parent] += spread(messages[number], shared, self.cliques[parent])
        for number in range(1, len(beliefs)):
            parent, shared = self.parents[number], self.separators[number]
            down = _log_sum(beliefs[parent], self.cliques[parent], shared) - messages[number]
            beliefs[number] += spread(down, shared, self.cliques[number])
        found = []
        for belief in beliefs:
            table = np.exp(belief - belief.max())
            found.append(table / table.sum())
        return found

    def marginal(self, tables: Sequence[FloatArray], columns: Clique) -> FloatArray:
        """The distribution of any columns, computed from those of the cliques, an axis per column."""
        within = self.home(columns)
        if within >= 0:
            return summed(tables[within], self.cliques[within], columns)
        kept = self._spanning(set(columns))
        messages_to: dict[int, list[tuple[FloatArray, Clique]]] = {number: [] for number in kept}
        root = min(kept)
        for number in sorted(kept, reverse=True):
            table, axes = tables[number], self.cliques[number]
            shared = self.separators[number] if number != root else ()
            if number != root:
                whole = np.broadcast_to(spread(summed(table, axes, shared), shared, axes), table.shape)
                # Shares, each at most 1: the inverse of a sum that is nearly 0 would be infinite.
                table = np.divide(table, whole, out=np.zeros_like(table), where=whole > 0)
            for message, over in messages_to[number]:
                union = tuple(sorted({*axes, *over}))
                table = spread(table, axes, union) * spread(message, over, union)
                axes = union
            wanted = tuple(axis for axis in axes if axis in columns or axis in shared)
            table = summed(table, axes, wanted)
            if number == root:
                return summed(table, wanted, columns)
            messages_to[self.parents[number]].append((table, wanted))
        raise AssertionError("a tree has a root")

    def _spanning(self, columns: set[int]) -> set[int]:
        """The cliques of the smallest connected part of the tree that contains all of these columns."""
        kept = set(range(len(self.cliques)))
        while True:
            parents = {self.parents[number] for number in kept}
            for number in sorted(kept, reverse=True):
                children = [clique for clique in kept if self.parents[clique] == number]
                rest = kept - {number}
                held = set().union(*(self.cliques[clique] for clique in rest)) if rest else set()
                is_end = not children or (number not in parents) or (number == min(kept) and len(children) == 1)
                if rest and is_end and columns & set(self.cliques[number]) <= held:
                    kept = rest
                    break
            else:
                return kept


def _cost(column: int, neighbours: Mapping[int, set[int]], sizes: Sequence[int]) -> tuple[int, int]:
    around = neighbours[column]
    fill = sum(right not in neighbours[left] for left, right in itertools.combinations(around, 2))
    return fill, math.prod(sizes[member] for member in (column, *around))


def spread(table: FloatArray, axes: Clique, over: Clique) -> FloatArray:
    """A view of a table over `axes` that broadcasts to a table over the columns `over`."""
    lengths = dict(zip(axes, table.shape, strict=True))
    return table.reshape([lengths.get(column, 1) for column in over])


def summed(table: FloatArray, axes: Clique, kept: Sequence[int]) -> FloatArray:
    """A table summed over the columns that are not kept; its axes stay in ascending order."""
    summed_out = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    result: FloatArray = table.sum(axis=summed_out)
    return result


def _log_sum(table: FloatArray, axes: Clique, kept: Clique) -> FloatArray:
    summed_out = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    top = table.max(axis=summed_out, keepdims=True)
    result: FloatArray = np.log(np.exp(table - top).sum(axis=summed_out)) + top.reshape(
        [table.shape[place] for place, axis in enumerate(axes) if axis in kept]
    )
    return result
