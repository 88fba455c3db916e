"""The anonymizer tree: which people are put together, and how a person finds the leaf.

The tree of Goldsteen et al., "Anonymizing Machine Learning Models" (arXiv 2007.13086), fitted on cells instead of
rows, with the quasi-identifiers' own spread as further outputs beside the guidance.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from anon_pipeline.tables import GUIDANCE_UNIT, Cells, Domain, IntArray

FloatArray = npt.NDArray[np.float64]

#: Above this many numbers in the criterion's one-hot block it is replaced by `PROJECTIONS` random projections.
ONE_HOT_LIMIT = 40_000_000
PROJECTIONS = 24

#: Above this many cells the first splits are learnt on `SAMPLE` of them, until a group has at most `BLOCK` of these.
EXACT_LIMIT = 400_000
SAMPLE = 200_000
BLOCK = 1_600

#: Tuples that walk down the tree together.
CACHED = 2**15


@dataclass(frozen=True, eq=False)
class SplitFeature:
    """One axis the tree may split: a column's codes, put into some order.

    Attributes
    ----------
    column : position of the quasi-identifier
    rank : place of each code in this order, int32 of shape (m + 1,)
    """

    column: int
    rank: npt.NDArray[np.int32]


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


def split_features(cells: Cells, orders: Literal["guidance", "both"]) -> tuple[SplitFeature, ...]:
    """The axes: ordered columns by value (missing below all), categories by mean guidance, and by frequency.

    Ordering categories by the mean of one output makes the best binary split of the categories a threshold
    (W. D. Fisher 1958; Breiman et al. 1984, section 4.2.2). For several outputs the order is taken along the first
    principal component of the categories' mean guidance. Ties go by value.
    """
    features: list[SplitFeature] = []
    for column, domain in enumerate(cells.domains):
        if domain.ordered:
            features.append(SplitFeature(column, np.arange(len(domain), dtype=np.int32)))
            continue
        code = cells.codes[:, column]
        people = np.bincount(code, weights=cells.counts, minlength=len(domain)).astype(np.float64)
        features.append(SplitFeature(column, _ranked(_guidance_score(cells, code, people))))
        if orders == "both":
            features.append(SplitFeature(column, _ranked(people)))
    return tuple(features)


def _guidance_score(cells: Cells, code: npt.NDArray[np.int32], people: FloatArray) -> FloatArray:
    """Mean guidance of each category along its first principal component, shape (m + 1,)."""
    width = cells.guidance.shape[1]
    # Integer sums in float64: exact below 2^53, deterministic beyond, since cells come in one order.
    summed = np.stack(
        [np.bincount(code, weights=cells.guidance[:, g].astype(float), minlength=len(people)) for g in range(width)], 1
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
    large, all categories together as `PROJECTIONS` random projections.
    """

    def __init__(self, cells: Cells, spread: float, seed: int) -> None:
        self._cells = cells
        self._centre = np.zeros(cells.guidance.shape[1])
        self._scale = 1.0
        self._ordered: list[tuple[int, FloatArray]] = []
        self._one_hot: list[tuple[int, npt.NDArray[np.intp], float]] = []
        self._projected: list[tuple[int, FloatArray]] = []
        if spread == 0:
            return
        weight = cells.counts / cells.n
        guidance = cells.mean_guidance()
        self._centre = np.einsum("c,co->o", weight, guidance)
        self._scale = _per_deviation(np.einsum("c,co->", weight, (guidance - self._centre) ** 2))
        categories = []
        for column, domain in enumerate(cells.domains):
            share: FloatArray = np.bincount(cells.codes[:, column], weights=weight, minlength=len(domain)).astype(float)
            if domain.ordered:
                self._ordered.append((column, np.sqrt(spread) * _ordered_outputs(domain, share)))
            elif (gini := 1.0 - float((share * share).sum())) > 1e-12:
                categories.append((column, np.flatnonzero(share), float(np.sqrt(spread / gini))))
        if sum(len(present) for _, present, _ in categories) * len(cells.counts) <= ONE_HOT_LIMIT:
            self._one_hot = categories
        else:
            generator = np.random.default_rng(seed)
            for column, _, scale in categories:
                signs = generator.choice((-1.0, 1.0), size=(len(cells.domains[column]), PROJECTIONS))
                self._projected.append((column, signs * scale / np.sqrt(PROJECTIONS)))

    def of(self, part: slice | IntArray = slice(None)) -> FloatArray:
        """The outputs of some cells, shape (c, o)."""
        codes, counts = self._cells.codes[part], self._cells.counts[part]
        guidance = self._cells.guidance[part] * GUIDANCE_UNIT / counts[:, None]
        blocks = [(guidance - self._centre) * self._scale]
        blocks += [outputs[codes[:, column]] for column, outputs in self._ordered]
        blocks += [(codes[:, column][:, None] == present) * scale for column, present, scale in self._one_hot]
        if self._projected:
            # D. Achlioptas, "Database-friendly random projections" (2003): distances survive nearly unchanged.
            projected = np.zeros((len(codes), PROJECTIONS))
            for column, signs in self._projected:
                projected += signs[codes[:, column]]
            blocks.append(projected)
        return np.hstack(blocks)


def criterion(cells: Cells, spread: float, seed: int) -> FloatArray:
    """The outputs of all cells, shape (C, o); see `Criterion`."""
    return Criterion(cells, spread, seed).of()


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
    value[known] = domain.values.astype(np.float64)[code[known] - 1]
    if not known.any():
        return value[:, None]
    centre = float(np.average(value[known], weights=weight[known]))
    value[known] -= centre
    deviation = np.sqrt(float(np.average(value[known] ** 2, weights=weight[known])))
    if deviation > 0:
        value /= deviation
    return value[:, None] if known.all() else np.c_[value, ~known]


def fit_tree(cells: Cells, k: int, spread: float, orders: Literal["guidance", "both"], seed: int) -> SplitTree:
    """Fit the tree on cells so that every leaf holds at least k people.

    Each cell weighs as many as it has people; with a smallest leaf weight of (k - 1e-6) / N the partition is the one
    that `min_samples_leaf=k` gives on the N rows. Above `EXACT_LIMIT` cells the first splits, which part groups of
    thousands, are learnt on a sample of the cells, and everything below them on all cells (see `_fit_in_blocks`).
    """
    features = split_features(cells, orders)
    outputs = Criterion(cells, spread, seed)
    if outputs.of(slice(0, 1)).shape[1] == 0 or len(cells.counts) == 1 or cells.n < 2 * k:
        return _assembled(features, [_leaf()])
    if len(cells.counts) <= EXACT_LIMIT:
        return _assembled(features, [_fit(features, cells, outputs, slice(None), k, seed)])
    return _fit_in_blocks(features, cells, outputs, k, seed)


def _fit_in_blocks(
    features: tuple[SplitFeature, ...], cells: Cells, outputs: Criterion, k: int, seed: int
) -> SplitTree:
    """A tree whose top is learnt on `SAMPLE` cells chosen by what they are, and whose blocks are then fitted exactly.

    Half of the cost of a large tree lies in its first ten levels, where each split is chosen among millions of cells
    although thousands would tell the same. No promise rests on the sample: a block is a group of whole cells, and
    every leaf below it holds at least k people, as counted on all of them.
    """
    chosen = np.sort(np.argsort(_hash_of_codes(cells.codes), kind="stable")[:SAMPLE])
    top = _fit(features, cells, outputs, chosen, k, seed, whole=BLOCK)
    block_of_cell = _assembled(features, [top]).apply(cells.codes)
    order = np.argsort(block_of_cell, kind="stable")
    blocks = np.split(order, np.flatnonzero(np.diff(block_of_cell[order])) + 1)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # scikit-learn lets go of the interpreter while it splits
        below = list(pool.map(lambda block: _fit(features, cells, outputs, block, k, seed), blocks))
    return _assembled(features, [top, *below])


#: feature, threshold, left and right of each node, -1 for the feature of a leaf
_Nodes = tuple[IntArray, FloatArray, IntArray, IntArray]


def _leaf() -> _Nodes:
    nothing = np.array([-1])
    return nothing, np.zeros(1), nothing, nothing


def _fit(
    features: tuple[SplitFeature, ...],
    cells: Cells,
    outputs: Criterion,
    part: slice | IntArray,
    k: int,
    seed: int,
    whole: int = 1,
) -> _Nodes:
    """A tree on some cells whose leaves hold at least k of their people; `whole` cells or fewer stay together."""
    from sklearn.tree import DecisionTreeRegressor

    counts = cells.counts[part]
    people = int(counts.sum())
    if people < 2 * k or len(counts) == 1:
        return _leaf()
    model = DecisionTreeRegressor(
        min_weight_fraction_leaf=min((k - 1e-6) / people, 0.5),
        min_samples_split=whole + 1,
        random_state=seed,
        criterion="squared_error",
    )
    ranks = feature_matrix(features, cells.codes[part])
    model.fit(ranks, np.ascontiguousarray(outputs.of(part)), sample_weight=counts.astype(float))
    fitted = model.tree_
    is_leaf = fitted.children_left == -1
    return (
        np.where(is_leaf, -1, fitted.feature).astype(np.int64),
        fitted.threshold.astype(np.float64),
        fitted.children_left.astype(np.int64),
        fitted.children_right.astype(np.int64),
    )


def _assembled(features: tuple[SplitFeature, ...], parts: list[_Nodes]) -> SplitTree:
    """One tree of a top and, where there are any, the trees that take the place of its leaves, in their order."""
    top = tuple(array.copy() for array in parts[0])
    grown, nodes = [top], len(top[0])
    for leaf, block in zip(np.flatnonzero(parts[0][0] == -1), parts[1:], strict=len(parts) > 1):
        # The root of the block takes the place of the leaf, and its other nodes follow all that is there already.
        moved = np.r_[leaf, nodes + np.arange(len(block[0]) - 1)]
        children = [np.where(block[0] >= 0, moved[side], -1) for side in block[2:]]
        for array, of_block in zip(top, (block[0], block[1], *children), strict=True):
            array[leaf] = of_block[0]
        grown.append((block[0][1:], block[1][1:], children[0][1:], children[1][1:]))
        nodes += len(block[0]) - 1
    feature, threshold, left, right = (np.concatenate([part[position] for part in grown]) for position in range(4))
    leaf_number = np.where(feature == -1, np.cumsum(feature == -1) - 1, -1)
    return SplitTree(features, feature, threshold, left, right, leaf_number)


def _hash_of_codes(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.uint64]:
    """A number per cell that looks random and is the same wherever the cell occurs."""
    mixed = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed
