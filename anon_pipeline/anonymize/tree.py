"""The anonymizer tree: which people are put together, and how a person finds the leaf.

The tree of Goldsteen et al., "Anonymizing Machine Learning Models" (arXiv 2007.13086), fitted on cells instead of
rows, with the quasi-identifiers' own spread as further outputs beside the guidance.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from anon_pipeline.anonymize.counts import BINS, Counter, Table
from anon_pipeline.anonymize.relevance import Relevance
from anon_pipeline.tables import GUIDANCE_UNIT, Cells, Domain, IntArray, Nodes

FloatArray = npt.NDArray[np.float64]
#: What categories are ordered by: guidance; frequency too; and every output of the guidance by itself too.
Orders = Literal["guidance", "both", "each"]

#: Above this many numbers in the criterion's one-hot block it is replaced by `PROJECTIONS` random projections.
ONE_HOT_LIMIT = 40_000_000
PROJECTIONS = 24

#: Where columns are weighed: the part of their weight that goes by what they tell, and the weight of the guidance.
TILT, GUIDED = 0.16, 0.06

#: Where outputs are only made for a part of the cells at a time, they stay one-hot while as many numbers as this hold
#: the people by code of any column and by category.
PAIRS_LIMIT = 1_000_000

#: A table of at most this many cells, or outputs of all cells, is left to scikit-learn; in a larger one each group of
#: at most this many cells is.
BLOCK = 4_000
WHOLE = 200_000

#: In a table of more than `EXACT_LIMIT` cells, a group of more than `SAMPLE` is split by the counts of so many of them.
EXACT_LIMIT = 400_000
SAMPLE = 50_000

#: Tuples that walk down the tree together.
CACHED = 2**15


@dataclass(frozen=True, eq=False)
class SplitFeature:
    """One axis the tree may split: a column's codes, put into some order.

    Attributes
    ----------
    column : position of the quasi-identifier
    rank : place of each code in this order, int32 of shape (m + 1,); codes that are never parted have one rank
    within : the node of each code, where a group of people may be split along this axis only if one node holds all of
        it (a strict hierarchy), shape (m + 1,)
    """

    column: int
    rank: npt.NDArray[np.int32]
    within: IntArray | None = None

    def splits(self, codes: IntArray) -> bool:
        """Whether a group in which these codes occur may be split along this axis."""
        return self.within is None or not len(codes) or bool((self.within[codes] == self.within[codes[0]]).all())


@dataclass(frozen=True, eq=False)
class SplitTree:
    """A fitted tree as plain arrays, one entry per node, so that it can be stored and applied without scikit-learn.

    Attributes
    ----------
    features : the split axes
    feature : axis of each inner node, -1 for a leaf
    threshold : a rank at most this goes left
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
        found = np.empty(len(codes), dtype=np.int64)
        for start in range(0, len(codes), CACHED):  # in parts that stay in the processor's cache
            found[start : start + CACHED] = self._walk(codes[start : start + CACHED], children)
        return self.leaf[found]

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


def feature_matrix(features: tuple[SplitFeature, ...], codes: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """Ranks of each tuple along each axis, shape (n, F); float32 because that is what scikit-learn's trees compare."""
    matrix = np.empty((len(codes), len(features)), dtype=np.float32)
    for position, axis in enumerate(features):
        matrix[:, position] = axis.rank[codes[:, axis.column]]
    return matrix


def split_features(cells: Cells, orders: Orders) -> tuple[SplitFeature, ...]:
    """The axes: ordered columns by value (missing below all), categories by mean guidance, and by frequency.

    Ordering categories by the mean of one output makes the best binary split of the categories a threshold
    (W. D. Fisher 1958; Breiman et al. 1984, section 4.2.2). For several outputs the order is taken along the first
    principal component of the categories' mean guidance and, where `orders` is "each", by every output too, so that
    each of several targets has an order of its own. Ties go by value. Categories with levels have the axis of
    these levels alone, and a column with a strict hierarchy the axes of `_strict_axes`.
    """
    features: list[SplitFeature] = []
    for column, domain in enumerate(cells.domains):
        if domain.nodes is not None and domain.nodes.strict:
            features += _strict_axes(cells, column, domain.nodes, orders)
            continue
        if domain.levels is not None:
            features.append(SplitFeature(column, np.r_[0, domain.levels + 1].astype(np.int32)))
            continue
        if domain.ordered:
            features.append(SplitFeature(column, np.arange(len(domain), dtype=np.int32)))
            continue
        code = cells.codes[:, column]
        people = np.bincount(code, weights=cells.counts, minlength=len(domain)).astype(np.float64)
        features += [SplitFeature(column, _ranked(score)) for score in _scores(cells, code, people, orders)]
    return tuple(features)


def _scores(cells: Cells, code: npt.NDArray[np.integer[Any]], people: FloatArray, orders: Orders) -> list[FloatArray]:
    """What categories, or nodes of them, are ordered by, each of shape (m + 1,); `code` is the one of each cell."""
    scores = [_guidance_score(cells.guidance, code, people)]
    if orders == "each" and cells.guidance.shape[1] > 1:
        scores += [_guidance_score(output[:, None], code, people) for output in cells.guidance.T]
    return scores if orders == "guidance" else [*scores, people]


def _strict_axes(cells: Cells, column: int, nodes: Nodes, orders: Orders) -> Iterator[SplitFeature]:
    """For each level of a hierarchy an axis along which groups within one node of the next level are split.

    Each part of such a group then has every node of the level as a whole or not at all. Nodes that lie directly below
    one node stand beside each other: numbers and dates by their smallest value, categories by mean guidance, and by
    frequency, and as `_scores` says. Missing values are a node of their own on every level but the last.
    """
    domain = cells.domains[column]
    code = cells.codes[:, column]
    # The node of each code by level, from the value itself up; 0 is the one of missing values.
    levels = [np.arange(len(domain)), *np.r_[np.zeros((1, nodes.height), np.int64), nodes.node + 1].T]
    by_level = []
    for node in levels[:-1]:
        people = np.bincount(node[code], weights=cells.counts, minlength=int(node.max()) + 1).astype(np.float64)
        if domain.ordered:
            smallest = np.full(len(people), len(domain), dtype=np.float64)
            np.minimum.at(smallest, node, np.arange(len(domain), dtype=np.float64))
            by_level.append([smallest])
        else:
            by_level.append(_scores(cells, node[code], people, orders))
    for scores in zip(*by_level, strict=True):
        keys = [key for node, score in zip(levels, scores, strict=False) for key in (node, score[node])]
        order = np.lexsort(keys)  # by the highest level first, so that a node's values stand beside each other
        for level, node in enumerate(levels[:-1]):
            above = levels[level + 1] if level + 1 < nodes.height else None
            if level and above is not None and len(np.unique(above)) == len(np.unique(node)):
                continue  # each node is all that there is in the next
            rank = np.empty(len(domain), dtype=np.int32)
            rank[order] = np.cumsum(np.r_[False, np.diff(node[order]) != 0])
            yield SplitFeature(column, rank, above)


def _guidance_score(guidance: IntArray, code: npt.NDArray[np.integer[Any]], people: FloatArray) -> FloatArray:
    """Mean guidance of each category along its first principal component, shape (m + 1,)."""
    width = guidance.shape[1]
    # Integer sums in float64: exact below 2^53, deterministic beyond, since cells come in one order.
    summed = np.stack(
        [np.bincount(code, weights=guidance[:, g].astype(float), minlength=len(people)) for g in range(width)], 1
    )
    mean = summed / np.maximum(people, 1)[:, None]
    if width == 1:
        return mean[:, 0]
    centred = (mean - np.average(mean, axis=0, weights=people)) * np.sqrt(people)[:, None]
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    direction = components[0] * np.sign(components[0][np.argmax(np.abs(components[0]))])
    # Rounded, so that two categories of equal guidance tie on every machine and the value decides.
    score: FloatArray = np.round(mean @ direction / (np.abs(mean).max() or 1.0), 9)
    return score


def _ranked(score: FloatArray) -> npt.NDArray[np.int32]:
    rank = np.empty(len(score), dtype=np.int32)
    rank[np.argsort(score, kind="stable")] = np.arange(len(score), dtype=np.int32)
    return rank


class Criterion:
    """The outputs whose squared error the tree reduces, computed for any part of the cells.

    The guidance, of total variance 1 (unscaled where `spread` is 0, so that one-hot labels keep exact sums and squared
    error is the Gini impurity), then sqrt(spread) times each quasi-identifier, each of total variance 1: a number as
    its z-score (with an indicator where it can be missing), a category as its one-hot vector, or, where that would be
    large, all categories together as `PROJECTIONS` random projections. `at_once` says whether the outputs of all cells
    will be asked for together.

    With `weighed`, the columns weigh more the more they tell of the guidance, what each tells is an output too, and
    the guidance, of which these say much already, has the weight `GUIDED`.
    """

    def __init__(self, cells: Cells, spread: float, seed: int, at_once: bool = True, weighed: bool = False) -> None:
        self._cells = cells
        self._centre = np.zeros(cells.guidance.shape[1])
        self._scale = 1.0
        self._ordered: list[tuple[int, FloatArray]] = []
        #: Column, the codes that occur, and scale of each category; and of those that are shown one-hot.
        self.categories: list[tuple[int, npt.NDArray[np.intp], float]] = []
        self.one_hot: list[tuple[int, npt.NDArray[np.intp], float]] = []
        self._projected: list[tuple[int, FloatArray]] = []
        if spread == 0:
            return
        weight = cells.counts / cells.n
        guidance = cells.mean_guidance()
        self._centre = np.einsum("c,co->o", weight, guidance)
        self._scale = _per_deviation(np.einsum("c,co->", weight, (guidance - self._centre) ** 2))
        uniform, relevance = spread, Relevance.of(cells) if weighed else None
        for column, domain in enumerate(cells.domains):
            if relevance is not None:
                spread = uniform * (1 + TILT * (len(cells.domains) * float(relevance.shares[column]) - 1))
                effect = np.sqrt(uniform) * self._scale * relevance.effects[column]
                self._ordered.append((column, effect))
            share: FloatArray = np.bincount(cells.codes[:, column], weights=weight, minlength=len(domain)).astype(float)
            if domain.positions is not None:
                self._ordered.append((column, np.sqrt(spread) * _ordered_outputs(domain, share)))
            elif (gini := 1.0 - float((share * share).sum())) > 1e-12:
                self.categories.append((column, np.flatnonzero(share), float(np.sqrt(spread / gini))))
        if relevance is not None:
            self._scale *= np.sqrt(GUIDED)
        width = sum(len(present) for _, present, _ in self.categories)
        pairs = width * sum(min(len(domain), BINS) if domain.ordered else len(domain) for domain in cells.domains)
        if width * len(cells.counts) <= ONE_HOT_LIMIT or (pairs <= PAIRS_LIMIT and not at_once):
            self.one_hot = self.categories
        else:
            generator = np.random.default_rng(seed)
            for column, _, scale in self.categories:
                signs = generator.choice((-1.0, 1.0), size=(len(cells.domains[column]), PROJECTIONS))
                self._projected.append((column, signs * scale / np.sqrt(PROJECTIONS)))

    def scores(self, part: slice | IntArray = slice(None)) -> FloatArray:
        """Guidance and ordered columns of some cells, shape (c, o'')."""
        codes, counts = self._cells.codes[part], self._cells.counts[part]
        guidance = self._cells.guidance[part] * GUIDANCE_UNIT / counts[:, None]
        return np.hstack([(guidance - self._centre) * self._scale, *(one[codes[:, at]] for at, one in self._ordered)])

    def told_by(self, column: int) -> Iterator[tuple[int, FloatArray]]:
        """The positions in `scores` that a column alone decides, and what each of its codes has there, (m + 1,)."""
        position = len(self._centre)
        for at, outputs in self._ordered:
            for output in outputs.T:
                if at == column:
                    yield position, output
                position += 1

    def numeric(self, part: slice | IntArray = slice(None)) -> FloatArray:
        """The outputs of some cells that are not one-hot, shape (c, o')."""
        codes = self._cells.codes[part]
        blocks = [self.scores(part)]
        if self._projected:
            # D. Achlioptas, "Database-friendly random projections" (2003): distances survive nearly unchanged.
            projected = np.zeros((len(codes), PROJECTIONS))
            for column, signs in self._projected:
                projected += signs[codes[:, column]]
            blocks.append(projected)
        return np.hstack(blocks)

    def of(self, part: slice | IntArray = slice(None), constant: bool = True) -> FloatArray:
        """The outputs of some cells, shape (c, o).

        Without `constant` the one-hot outputs that are equal in all of them are left out: they tell no split from
        another.
        """
        codes = self._cells.codes[part]
        blocks = [self.numeric(part)]
        for column, present, scale in self.one_hot:
            code = codes[:, column]
            here = present if constant else np.flatnonzero(np.bincount(code))
            if constant or len(here) > 1:
                blocks.append((code[:, None] == here) * scale)
        return np.hstack(blocks)

    @property
    def width(self) -> int:
        """Number of outputs, o."""
        return int(self.numeric(slice(0, 1)).shape[1]) + sum(len(present) for _, present, _ in self.one_hot)


def criterion(cells: Cells, spread: float, seed: int, weighed: bool = False) -> FloatArray:
    """The outputs of all cells, shape (C, o); see `Criterion`."""
    return Criterion(cells, spread, seed, weighed=weighed).of()


def _per_deviation(variance: float) -> float:
    return float(1 / np.sqrt(variance)) if variance > 1e-12 else 0.0


def _ordered_outputs(domain: Domain, share: FloatArray) -> FloatArray:
    """What each code of an ordered column adds to the outputs: its z-score, and an indicator where one is missing.

    Both together have total variance 1. Shape (m + 1, 1 or 2).
    """
    code = np.flatnonzero(share).astype(np.int32)
    raw = standardized(domain, code, share[code])
    centred = raw - np.einsum("c,co->o", share[code], raw)
    outputs = np.zeros((len(domain), raw.shape[1]))
    outputs[code] = centred * _per_deviation(np.einsum("c,co->", share[code], centred**2))
    return outputs


def standardized(domain: Domain, code: npt.NDArray[np.int32], weight: FloatArray) -> FloatArray:
    """Values of an ordered column, missing ones at the mean and told apart by an indicator, shape (C, 1 or 2)."""
    known = code > 0
    value = np.zeros(len(code))
    value[known] = domain.positions.astype(np.float64)[code[known] - 1]  # type: ignore[union-attr]
    if not known.any():
        return value[:, None]
    centre = float(np.average(value[known], weights=weight[known]))
    value[known] -= centre
    deviation = np.sqrt(float(np.average(value[known] ** 2, weights=weight[known])))
    if deviation > 0:
        value /= deviation
    return value[:, None] if known.all() else np.c_[value, ~known]


def fit_tree(cells: Cells, k: int, spread: float, orders: Orders, seed: int, weighed: bool = False) -> SplitTree:
    """Fit the tree on cells so that every leaf holds at least k people; `weighed` as in `Criterion`.

    Each cell weighs as many as it has people; with a smallest leaf weight of (k - 1e-6) / N the partition is the one
    that `min_samples_leaf=k` gives on the N rows. In a large table the groups of more than `BLOCK` cells are split by
    counts, and the blocks that are left by scikit-learn: the splits are the same but where two are equally good, or
    where a column has so many values that counts only see bins of them (`BINS`). Where a hierarchy is strict, counts
    split every group, since scikit-learn would split any group along any axis.
    """
    features = split_features(cells, orders)
    outputs = Criterion(cells, spread, seed, at_once=False, weighed=weighed)
    if outputs.width == 0 or len(cells.counts) == 1 or cells.n < 2 * k:
        return _assembled(features, [_leaf()])
    if any(axis.within is not None for axis in features):
        return _assembled(features, [_grow(features, cells, outputs, k, block=0)[0]])
    if len(cells.counts) <= BLOCK or len(cells.counts) * outputs.width <= WHOLE:
        return _assembled(features, [_fit(features, cells, outputs, slice(None), k, seed)])
    top, blocks = _grow(features, cells, outputs, k, BLOCK)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # scikit-learn lets go of the interpreter while it splits
        below = list(pool.map(lambda block: _fit(features, cells, outputs, block, k, seed), blocks))
    return _assembled(features, [top, *below])


#: feature, threshold, left and right of each node, -1 for the feature of a leaf
_Nodes = tuple[IntArray, FloatArray, IntArray, IntArray]


def _leaf() -> _Nodes:
    nothing = np.array([-1])
    return nothing, np.zeros(1), nothing, nothing


def _grow(
    features: tuple[SplitFeature, ...], cells: Cells, outputs: Criterion, k: int, block: int
) -> tuple[_Nodes, list[IntArray]]:
    """The top of the tree, split by counts, and the cells of each of its leaves, from left to right.

    A leaf is a group of at most `block` cells, or one for which counts know no split.
    """
    counter = Counter(features, cells, outputs)
    limit = len(cells.counts) if len(cells.counts) <= EXACT_LIMIT else SAMPLE
    order = hash_of_codes(cells.codes)

    def counted(group: IntArray) -> Table:
        """The table of a group, or of a part of a very large one: k people of the part are k of the group."""
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
        goes_left = axis.rank[cells.codes[group, axis.column]] <= split[1]
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
    features: tuple[SplitFeature, ...], cells: Cells, outputs: Criterion, part: slice | IntArray, k: int, seed: int
) -> _Nodes:
    """A tree of scikit-learn's on some cells, whose leaves hold at least k of their people."""
    from sklearn.tree import DecisionTreeRegressor

    counts = cells.counts[part]
    people = int(counts.sum())
    if people < 2 * k or len(counts) == 1:
        return _leaf()
    numbers = outputs.of(part, constant=False)
    model = DecisionTreeRegressor(
        min_weight_fraction_leaf=min((k - 1e-6) / people, 0.5), random_state=seed, criterion="squared_error"
    )
    ranks = feature_matrix(features, cells.codes[part])
    model.fit(ranks, numbers, sample_weight=counts.astype(float), check_input=False)  # a third of a small block
    fitted = model.tree_
    is_leaf = fitted.children_left == -1
    return (
        np.where(is_leaf, -1, fitted.feature).astype(np.int64),
        fitted.threshold.astype(np.float64),
        fitted.children_left.astype(np.int64),
        fitted.children_right.astype(np.int64),
    )


def _assembled(features: tuple[SplitFeature, ...], parts: list[_Nodes]) -> SplitTree:
    """One tree of a top and, where there are any, the trees that take the place of its leaves, in their order.

    Leaves are numbered from left to right, so that their numbers do not tell how the tree was put together.
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
