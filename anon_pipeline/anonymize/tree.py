"""The anonymizer tree: which people are put together, and how a person finds the leaf.

The tree of Goldsteen et al., "Anonymizing Machine Learning Models" (arXiv 2007.13086), fitted on cells instead of
rows, with the quasi-identifiers' own spread as further outputs beside the guidance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from anon_pipeline.tables import Cells, Domain, IntArray

FloatArray = npt.NDArray[np.float64]

#: Above this many numbers in the criterion's one-hot block it is replaced by `PROJECTIONS` random projections.
ONE_HOT_LIMIT = 40_000_000
PROJECTIONS = 24


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
        node = np.zeros(len(codes), dtype=np.int64)
        moving = np.flatnonzero(self.feature[node] >= 0)
        ranks = feature_matrix(self.features, codes)
        while len(moving):
            at = node[moving]
            goes_left = ranks[moving, self.feature[at]] <= self.threshold[at]
            node[moving] = np.where(goes_left, self.left[at], self.right[at])
            moving = moving[self.feature[node[moving]] >= 0]
        return self.leaf[node]


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


def criterion(cells: Cells, spread: float, seed: int) -> FloatArray:
    """The outputs whose squared error the tree reduces, per cell, shape (C, o).

    The guidance, of total variance 1 (unscaled where `spread` is 0, so that one-hot labels keep exact sums and squared
    error is the Gini impurity), then sqrt(spread) times each quasi-identifier, each of total variance 1: a number as
    its z-score (with an indicator where it can be missing), a category as its one-hot vector.
    """
    weight = cells.counts / cells.n
    guidance = cells.mean_guidance()
    if spread == 0:
        return guidance
    blocks = [_unit_variance(guidance, weight)]
    root = np.sqrt(spread)
    one_hot: list[tuple[int, FloatArray]] = []
    for column, domain in enumerate(cells.domains):
        code = cells.codes[:, column]
        if domain.ordered:
            blocks.append(root * _unit_variance(standardized(domain, code, weight), weight))
        else:
            share = np.bincount(code, weights=weight, minlength=len(domain))
            gini = 1.0 - float((share * share).sum())
            if gini > 1e-12:
                one_hot.append((column, np.full(len(domain), root / np.sqrt(gini))))
    width = sum(len(scale) for _, scale in one_hot)
    if width * len(cells.counts) <= ONE_HOT_LIMIT:
        for column, scale in one_hot:
            present = np.flatnonzero(np.bincount(cells.codes[:, column], minlength=len(scale)))
            blocks.append((cells.codes[:, column][:, None] == present) * scale[present])
    elif width:
        blocks.append(_projected(cells, one_hot, seed))
    return np.hstack(blocks)


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


def _unit_variance(block: FloatArray, weight: FloatArray) -> FloatArray:
    # einsum, not BLAS: the order of summation must not depend on the number of threads.
    centred = block - np.einsum("c,co->o", weight, block)
    total = float(np.einsum("c,co->", weight, centred**2))
    return centred / np.sqrt(total) if total > 1e-12 else np.zeros_like(block)


def _projected(cells: Cells, one_hot: list[tuple[int, FloatArray]], seed: int) -> FloatArray:
    """Random +-1 projections of the one-hot block: distances, and so the choice of split, survive nearly unchanged.

    D. Achlioptas, "Database-friendly random projections" (2003).
    """
    generator = np.random.default_rng(seed)
    projected = np.zeros((len(cells.counts), PROJECTIONS))
    for column, scale in one_hot:
        signs = generator.choice((-1.0, 1.0), size=(len(scale), PROJECTIONS)) / np.sqrt(PROJECTIONS)
        projected += (signs * scale[:, None])[cells.codes[:, column]]
    return projected


def fit_tree(cells: Cells, k: int, spread: float, orders: Literal["guidance", "both"], seed: int) -> SplitTree:
    """Fit the tree on cells so that every leaf holds at least k people.

    Each cell weighs as many as it has people; with a smallest leaf weight of (k - 1e-6) / N the partition is the one
    that `min_samples_leaf=k` gives on the N rows.
    """
    from sklearn.tree import DecisionTreeRegressor

    features = split_features(cells, orders)
    model = DecisionTreeRegressor(
        min_weight_fraction_leaf=min((k - 1e-6) / cells.n, 0.5), random_state=seed, criterion="squared_error"
    )
    outputs = np.ascontiguousarray(criterion(cells, spread, seed))
    if outputs.shape[1] == 0 or len(cells.counts) == 1 or cells.n < 2 * k:
        nothing = np.array([-1])
        return SplitTree(features, nothing, np.zeros(1), nothing, nothing, np.array([0]))
    model.fit(feature_matrix(features, cells.codes), outputs, sample_weight=cells.counts.astype(float))
    fitted = model.tree_
    is_leaf = fitted.children_left == -1
    leaf = np.full(fitted.node_count, -1, dtype=np.int64)
    leaf[is_leaf] = np.arange(int(is_leaf.sum()))
    return SplitTree(
        features=features,
        feature=np.where(is_leaf, -1, fitted.feature).astype(np.int64),
        threshold=fitted.threshold.astype(np.float64),
        left=fitted.children_left.astype(np.int64),
        right=fitted.children_right.astype(np.int64),
        leaf=leaf,
    )
