"""The axes that the anonymizer tree may split: each column's codes in one or several orders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.tables import Cells, Nodes

#: What categories are ordered by: guidance; frequency too; and every output of the guidance by itself too.
Orders = Literal["guidance", "both", "each"]


@dataclass(frozen=True, eq=False)
class SplitFeature:
    """One axis the tree may split: a column's codes, put into some order.

    Attributes
    ----------
    column : position of the quasi-identifier
    rank : place of each code in this order, int32 of shape (m + 1,); codes that are never parted have one rank
    within : the node of each code, where a group of people may be split along this axis only if one node holds all of
        it (a strict hierarchy), shape (m + 1,); None without one
    """

    column: int
    rank: npt.NDArray[np.int32]
    within: IntArray | None = None

    def splits(self, codes: IntArray) -> bool:
        """Whether a group in which these codes occur may be split along this axis."""
        return self.within is None or not len(codes) or bool((self.within[codes] == self.within[codes[0]]).all())


def feature_matrix(features: tuple[SplitFeature, ...], codes: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """Ranks of each tuple along each axis, shape (n, F); float32 because that is what scikit-learn's trees compare."""
    matrix = np.empty((len(codes), len(features)), dtype=np.float32)
    for position, axis in enumerate(features):
        matrix[:, position] = axis.rank.take(codes[:, axis.column])
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
    """The scores by which categories, or nodes of them, are ordered, each of shape (m + 1,); `code` is by cell."""
    scores = [_guidance_score(cells.guidance, code, people)]
    if orders == "each" and cells.guidance.shape[1] > 1:
        scores += [_guidance_score(output[:, None], code, people) for output in cells.guidance.T]
    return scores if orders == "guidance" else [*scores, people]


def _strict_axes(cells: Cells, column: int, nodes: Nodes, orders: Orders) -> Iterator[SplitFeature]:
    """One axis for each level of a hierarchy: along it, groups within one node of the next level are split.

    Each half of such a group then has every node of the level as a whole or not at all. Nodes directly below the same
    node follow each other in the order of the axis: numbers and dates by their smallest value, categories by their
    `_scores`, with an axis for each score. Missing values are a node of their own on every level but the last.
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
                continue  # each node of the next level has only one node of this level
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
