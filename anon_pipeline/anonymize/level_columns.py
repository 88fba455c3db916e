"""Columns for the levels of hierarchies, so that the tree and its refinement keep people of one group together.

To the criterion two categories are alike or not. So of a hundred postal codes those of one region are no nearer to each
other than to those of another region, and a class of ten people whose codes all differ is shown as "*". Here every
level of a hierarchy becomes a category of its own, beside or in place of the column: people of one region then have
something in common, and the tree can split by regions. Only levels on which people mostly share their group with k
people take part, since no class can show a finer one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.arrays import IntArray
from anon_pipeline.tables import Cells, Domain


@dataclass(frozen=True, eq=False)
class LevelColumns:
    """Cells whose hierarchical categories have a column for each level that takes part.

    Attributes
    ----------
    cells : the cells, in their order
    columns : for each of its columns the column that it is made from, and the node of each code, shape (m + 1,); None
        for a column as it is
    """

    cells: Cells
    columns: tuple[tuple[int, IntArray | None], ...]

    @classmethod
    def of(cls, cells: Cells, k: int) -> LevelColumns:
        """The columns of cells, of which each class will have k people."""
        columns: list[tuple[int, IntArray | None]] = []
        domains: list[Domain] = []
        for place, domain in enumerate(cells.domains):
            for node in _levels(domain, k):
                columns.append((place, node))
                domains.append(domain if node is None else _domain_of(domain, node))
        if all(node is None for _, node in columns):
            return cls(cells, tuple(columns))
        codes = [
            cells.codes[:, place] if node is None else node[cells.codes[:, place]].astype(np.int32)
            for place, node in columns
        ]
        return cls(replace(cells, domains=tuple(domains), codes=np.stack(codes, axis=1)), tuple(columns))

    def axes(self, axes: tuple[SplitFeature, ...]) -> tuple[SplitFeature, ...]:
        """The axes of these columns as axes of those that they are made from."""
        return tuple(
            replace(axis, column=place, rank=axis.rank if node is None else axis.rank[node])
            for axis in axes
            for place, node in [self.columns[axis.column]]
        )


def _levels(domain: Domain, k: int) -> list[IntArray | None]:
    """The node of each code on every level that takes part, 0 for missing; None for the values themselves."""
    if domain.ordered or domain.levels is not None or domain.nodes is None or domain.nodes.strict:
        return [None]
    nodes = [np.r_[0, level + 1] for level in domain.nodes.node.T]
    groups: list[IntArray | None] = [None, *(node for node in nodes if len(np.unique(node[1:])) > 1)]
    taking_part = [node for node in groups if _usual_size(domain, node) >= k]
    return taking_part or groups[-1:]


def _usual_size(domain: Domain, node: IntArray | None) -> int:
    """With how many people at least half of the people share their group."""
    people = domain.counts if node is None else np.bincount(node, weights=domain.counts).astype(np.int64)
    order = np.argsort(-people, kind="stable")
    reached = np.cumsum(people[order])
    return int(people[order][np.searchsorted(reached, reached[-1] / 2)])


def _domain_of(domain: Domain, node: IntArray) -> Domain:
    """The nodes of a level as categories without a hierarchy."""
    counts = np.bincount(node, weights=domain.counts).astype(np.int64)
    return replace(domain, values=np.array([str(n) for n in range(len(counts) - 1)]), counts=counts, nodes=None)
