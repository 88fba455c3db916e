"""The anonymizer tree: it is fitted on cells, and gives the leaf of each person.

It is the tree of Goldsteen et al., "Anonymizing Machine Learning Models" (arXiv 2007.13086), fitted on cells instead of
rows, with the quasi-identifiers' own spread as further outputs beside the guidance.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_pipeline.anonymize.axes import Orders, SplitFeature, feature_matrix, split_features
from anon_pipeline.anonymize.counts import Counter, Table
from anon_pipeline.anonymize.criterion import Criterion
from anon_pipeline.arrays import CACHED, FloatArray, IntArray
from anon_pipeline.tables import Cells

#: scikit-learn fits the whole tree of a table with at most `BLOCK` cells, or with at most `WHOLE` outputs of all cells
#: together. In a larger table it fits the subtree of each group of at most `BLOCK` cells.
BLOCK = 4_000
WHOLE = 200_000

#: In a table of more than `EXACT_LIMIT` cells, a group of more than `SAMPLE` cells is split by the counts of a sample
#: of so many of them.
EXACT_LIMIT = 400_000
SAMPLE = 50_000


@dataclass(frozen=True, eq=False)
class SplitTree:
    """A fitted tree as plain arrays, one entry per node, so that it can be stored and applied without scikit-learn.

    Attributes
    ----------
    features : the split axes
    feature : axis of each inner node, -1 for a leaf
    threshold : a rank goes left if it is at most this
    left, right : child nodes, -1 for a leaf
    leaf : number of the leaf, 0 ... L - 1, -1 for an inner node
    """

    features: tuple[SplitFeature, ...]
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    leaf: IntArray

    @property
    def leaves(self) -> int:
        """Number of leaves, L."""
        return int(self.leaf.max()) + 1

    def apply(self, codes: npt.NDArray[np.int32]) -> IntArray:
        """The leaf of each tuple of codes, shape (n, p) to (n,)."""
        children = np.stack([self.right, self.left], axis=1).astype(np.int32).ravel()
        node = np.empty(len(codes), dtype=np.int64)
        for start in range(0, len(codes), CACHED):  # in parts that stay in the processor's cache
            node[start : start + CACHED] = self._walk(codes[start : start + CACHED], children)
        return self.leaf[node]

    def _walk(self, codes: npt.NDArray[np.int32], children: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The node where each tuple of codes ends; `children` holds the right and the left child of each node."""
        ranks = feature_matrix(self.features, codes).ravel()
        ended = np.zeros(len(codes), dtype=np.int32)
        row = np.arange(len(codes))
        node = np.zeros(len(codes), dtype=np.int32)
        while len(row):
            axis = self.feature[node]
            inner = axis >= 0
            if not inner.all():
                ended[row[~inner]] = node[~inner]
                row, node, axis = row[inner], node[inner], axis[inner]
            goes_left = ranks[row * len(self.features) + axis] <= self.threshold[node]
            node = children[2 * node + goes_left]
        return ended


def fit_tree(cells: Cells, k: int, spread: float, orders: Orders, seed: int, weighed: bool = False) -> SplitTree:
    """The tree that `fit_leaves` fits."""
    return fit_leaves(cells, k, spread, orders, seed, weighed)[0]


def fit_leaves(
    cells: Cells, k: int, spread: float, orders: Orders, seed: int, weighed: bool = False
) -> tuple[SplitTree, IntArray]:
    """A tree on cells of which every leaf holds at least k people, and the leaf of each; `weighed` as in `Criterion`.

    The weight of a cell is its number of people. With a smallest leaf weight of (k - 1e-6) / N the partition is the one
    that `min_samples_leaf=k` gives on the N rows. In a large table groups of more than `BLOCK` cells are split by
    counts, and the remaining blocks by scikit-learn. The splits are the same, except where two are equally good or
    where a column has so many values that counts only use bins of them (`BINS`). Where a hierarchy is strict, counts
    split every group, since scikit-learn would split any group along any axis.
    """
    features = split_features(cells, orders)
    outputs = Criterion(cells, spread, seed, at_once=False, weighed=weighed)
    if outputs.width == 0 or len(cells.counts) == 1 or cells.n < 2 * k:
        return _assembled(features, [_leaf()]), np.zeros(len(cells.counts), dtype=np.int64)
    if any(axis.within is not None for axis in features):
        fitted = _assembled(features, [_grow(features, cells, outputs, k, block=0)[0]])
        return fitted, fitted.apply(cells.codes)
    if len(cells.counts) <= BLOCK or len(cells.counts) * outputs.width <= WHOLE:
        nodes, leaf = _fit(features, outputs, slice(None), k, seed)
        return _assembled(features, [nodes]), leaf
    top, blocks = _grow(features, cells, outputs, k, BLOCK)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # scikit-learn lets go of the interpreter while it splits
        below = list(pool.map(lambda block: _fit(features, outputs, block, k, seed), blocks))
    leaf, leaves = np.empty(len(cells.counts), dtype=np.int64), 0
    for block, (_, of_block) in zip(blocks, below, strict=True):
        leaf[block] = leaves + of_block
        leaves += int(of_block.max()) + 1
    return _assembled(features, [top, *(nodes for nodes, _ in below)]), leaf


#: feature, threshold, left and right of each node, -1 for the feature of a leaf
_Nodes = tuple[IntArray, FloatArray, IntArray, IntArray]


def _leaf() -> _Nodes:
    nothing = np.array([-1])
    return nothing, np.zeros(1), nothing, nothing


def _grow(
    features: tuple[SplitFeature, ...], cells: Cells, outputs: Criterion, k: int, block: int
) -> tuple[_Nodes, list[IntArray]]:
    """The top of the tree, split by counts, and the cells of each of its leaves, from left to right.

    A leaf is a group of at most `block` cells, or one that no split improves.
    """
    counter = Counter(features, cells, outputs)
    limit = len(cells.counts) if len(cells.counts) <= EXACT_LIMIT else SAMPLE
    order = hash_of_codes(cells.codes)

    def counted(group: IntArray) -> Table:
        """The table of a group, or of a sample of a very large one: k people of the sample are k of the group."""
        if len(group) <= limit:
            return counter.count(group)
        return counter.count(group[order[group] <= np.uint64(2**64 // len(group) * limit)])

    feature: list[int] = []
    threshold: list[float] = []
    children: list[list[int]] = []
    blocks: list[IntArray] = []
    everyone = np.arange(len(cells.counts))
    todo: list[tuple[IntArray, Table | None, int, int]] = [(everyone, counted(everyone), 0, 0)]
    while todo:
        group, table, parent, side = todo.pop()
        node = len(feature)
        if node:
            children[parent][side] = node
        split = None if table is None else counter.best_split(table, k)
        feature.append(-1 if split is None else split[0])
        threshold.append(0.0 if split is None else split[1])
        children.append([-1, -1])
        if table is None or split is None:
            blocks.append(group)
            continue
        axis = features[split[0]]
        goes_left = axis.rank.take(cells.codes.ravel().take(group * len(cells.domains) + axis.column)) <= split[1]
        halves = [group[goes_left], group[~goes_left]]
        tables: list[Table | None] = [None, None]
        small, large = (0, 1) if len(halves[0]) <= len(halves[1]) else (1, 0)
        if len(group) > limit:
            tables = [counted(half) if len(half) > block else None for half in halves]
        elif len(halves[large]) > block:  # only the smaller half is counted, the other is what it leaves
            of_small = counter.count(halves[small])
            tables[large] = table.without(of_small)
            tables[small] = of_small if len(halves[small]) > block else None
        todo += [(halves[position], tables[position], node, position) for position in (1, 0)]  # the left one is next
    left, right = np.array(children).T
    return (np.array(feature), np.array(threshold), left, right), blocks


def _fit(
    features: tuple[SplitFeature, ...], outputs: Criterion, part: slice | IntArray, k: int, seed: int
) -> tuple[_Nodes, IntArray]:
    """A tree of scikit-learn's on some cells, whose leaves hold at least k of their people, and the leaf of each.

    Leaves are counted from 0 in the order of their nodes, which is from left to right.
    """
    from sklearn.tree import DecisionTreeRegressor

    outputs = outputs.of_cells(part)  # so that each array is read once
    counts, people = outputs.cells.counts, outputs.cells.n
    if people < 2 * k or len(counts) == 1:
        return _leaf(), np.zeros(len(counts), dtype=np.int64)
    numbers = outputs.of(constant=False)
    model = DecisionTreeRegressor(
        min_weight_fraction_leaf=min((k - 1e-6) / people, 0.5), random_state=seed, criterion="squared_error"
    )
    ranks = feature_matrix(features, outputs.cells.codes)
    model.fit(ranks, numbers, sample_weight=counts.astype(float), check_input=False)  # a third of a small block
    fitted = model.tree_
    is_leaf = fitted.children_left == -1
    nodes = (
        np.where(is_leaf, -1, fitted.feature).astype(np.int64),
        fitted.threshold.astype(np.float64),
        fitted.children_left.astype(np.int64),
        fitted.children_right.astype(np.int64),
    )
    return nodes, (np.cumsum(is_leaf) - 1)[fitted.apply(ranks)]


def _assembled(features: tuple[SplitFeature, ...], parts: list[_Nodes]) -> SplitTree:
    """One tree made of a top and, if there are any, the trees that replace its leaves, in their order.

    Leaves are numbered from left to right, so that their numbers do not depend on how the tree was put together.
    """
    top = tuple(array.copy() for array in parts[0])
    ends = np.flatnonzero(parts[0][0] == -1)
    grown, nodes, leaves = [top], len(top[0]), []
    for leaf, block in zip(ends, parts[1:], strict=len(parts) > 1):
        # The root of the block takes the place of the leaf, and its other nodes follow all that is there already.
        moved = np.r_[leaf, nodes + np.arange(len(block[0]) - 1)]
        children = [np.where(block[0] >= 0, moved[side], -1) for side in block[2:]]
        for array, of_block in zip(top, (block[0], block[1], *children), strict=True):
            array[leaf] = of_block[0]
        grown.append((block[0][1:], block[1][1:], children[0][1:], children[1][1:]))
        nodes += len(block[0]) - 1
        leaves.append(moved[block[0] == -1])
    feature, threshold, left, right = (np.concatenate([part[position] for part in grown]) for position in range(4))
    leaf_number = np.full(len(feature), -1)
    in_order = np.concatenate(leaves) if leaves else ends
    leaf_number[in_order] = np.arange(len(in_order))
    return SplitTree(features, feature, threshold, left, right, leaf_number)


def hash_of_codes(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.uint64]:
    """A number per cell that looks random and is the same wherever the cell occurs."""
    mixed = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed
