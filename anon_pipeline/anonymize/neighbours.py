"""The nearest classes of each class by Ward's cost, which is the rise of the squared error if two classes are merged.

If there are at most a few thousand classes, each is compared with all others. Otherwise a class is only compared with
those of the blocks whose centres are nearest to that of its own block (the inverted file of H. Jegou, M. Douze and
C. Schmid, TPAMI 2011). A block is a run of classes with consecutive numbers; numbers follow the tree's leaves, so
neighbours are alike. Apart from comparing the centres, the work then grows with the number of classes and not with its
square.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anon_pipeline.arrays import FloatArray, IntArray

#: With at most so many classes, each is compared with all others.
ALL = 4_096
#: Blocks have at most so many classes, and a class is compared with those of so many blocks; of half as many blocks if
#: there are more than `MANY` classes, since then neighbours are nearer.
BLOCK, BLOCKS, MANY = 64, 32, 10_000
#: Steps per unit of the outputs, where blocks are compared: sums of whole numbers are the same on every machine.
STEPS = 2**10


def nearest(mean: FloatArray, weight: FloatArray, asking: IntArray, width: int) -> tuple[IntArray, FloatArray]:
    """The cheapest partners of some classes, `width` each, and what they cost.

    Parameters
    ----------
    mean : of each class, shape (J, o)
    weight : people of each class, shape (J,)
    asking : the classes that ask, ascending, shape (a,)

    Returns
    -------
    Pairs of shape (a * width, 2), in the order of the asking classes, the cheapest partner first; their costs.

    Candidates come from a matrix product, whose last bits depend on threads. The cheapest among them are chosen by
    costs that do not depend on threads; on a tie the lower number wins.
    """
    pairs, costs = [], []
    square = np.einsum("jo,jo->j", mean, mean)
    for some, among in _compared(mean, asking):
        near, own_place = mean[among], np.searchsorted(among, some)
        rough = square[some, None] + square[among] - 2 * (mean[some] @ near.T)
        rough *= weight[some, None] * weight[among] / (weight[some, None] + weight[among])
        rough[np.arange(len(some)), own_place] = np.inf
        margin = 1e-11 * weight[some] * (square[some] + square.max())
        row, place = np.nonzero(rough <= (np.partition(rough, width - 1, axis=1)[:, width - 1] + margin)[:, None])
        own, other = some[row], among[place]
        distance = square[own] + square[other] - 2 * np.einsum("po,po->p", mean[own], mean[other])
        cost = np.maximum(distance, 0) * (weight[own] * weight[other] / (weight[own] + weight[other]))
        order = np.lexsort((cost, row))
        first = np.searchsorted(row, np.arange(len(some)))
        order = order[np.arange(len(order)) - first[row] < width]
        pairs.append(np.stack([own[order], other[order]], axis=1))
        costs.append(cost[order])
    return np.concatenate(pairs), np.concatenate(costs)


def _compared(mean: FloatArray, asking: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Some of the asking classes, and those with which they are compared, both ascending."""
    if len(mean) <= ALL:
        for first in range(0, len(asking), BLOCK):  # small enough for a cache
            yield asking[first : first + BLOCK], np.arange(len(mean))
        return
    starts = np.arange(0, len(mean), BLOCK)
    ends = np.minimum(starts + BLOCK, len(mean))
    blocks = BLOCKS if len(mean) <= MANY else BLOCKS // 2
    summed = np.add.reduceat(np.rint(mean * STEPS), starts, axis=0)
    centre = np.rint(summed / (ends - starts)[:, None])
    for own, start, end in zip(centre, starts.tolist(), ends.tolist(), strict=True):
        some = asking[slice(*np.searchsorted(asking, (start, end)))]
        if len(some):
            near = np.sort(np.argsort(((centre - own) ** 2).sum(axis=1), kind="stable")[:blocks])
            yield some, np.concatenate([np.arange(starts[neighbour], ends[neighbour]) for neighbour in near.tolist()])
