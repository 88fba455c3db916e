"""The earth mover's distance between each class and the table, as exact fractions of integers.

N. Li, T. Li, S. Venkatasubramanian: t-closeness: privacy beyond k-anonymity and l-diversity, ICDE 2007, section 4. For
all three ground distances the least work is a weighted sum, over sets of values, of |q(set) - p(set)|: over the single
values, over the values up to a rank, or over the subtrees of a hierarchy. Times N f_j that is a sum of integers
|N c - f_j C|, with c and C the people of the class and of the table in the set. Nothing is rounded before it is summed,
and no array of J times m is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.privacy.exact import Integers
from anon_pipeline.privacy.hierarchy import Subtrees
from anon_pipeline.privacy.value_counts import ValueCounts

#: Sums below this are done in int64; larger ones with Python integers. Table sizes must stay below 2^31.
SAFE = 2.0**61
#: Entries of a histogram that are turned into Python integers at a time.
CHUNK = 1 << 20


@dataclass(frozen=True)
class Transport:
    """The distance of class j is `work[j] / scale[j]`, both integers."""

    work: Integers
    scale: Integers

    @property
    def distance(self) -> FloatArray:
        """Shape (J,)."""
        return (self.work / np.maximum(self.scale, 1)).astype(np.float64)


def equal_distance(counts: ValueCounts) -> Transport:
    """All values are equally far apart: 1/2 sum_s |q_s - p_s|."""
    return _over_sets(counts, counts, np.ones(counts.m, dtype=np.int64), 1)


def hierarchical_distance(counts: ValueCounts, subtrees: Subtrees) -> Transport:
    """Two values are as far apart as the height of their lowest common ancestor, over the height of the root.

    The paper sums height(node) / H * min(positive, negative extras of its children) over inner nodes. As the two extras
    sum to the children's absolute extras and differ by the node's own, min = (sum of children's |extra| - |extra|) / 2:
    collected by node, each subtree's |extra| counts (height of its parent - its own height) / (2 H).
    """
    membership = sparse.csr_array(subtrees.membership)
    sets = ValueCounts(sparse.csr_array(counts.counts @ membership), membership.T @ counts.total, counts.foreign)
    return _over_sets(counts, sets, subtrees.weight, subtrees.height)


def ordered_distance(counts: ValueCounts) -> Transport:
    """Values are as far apart as their ranks in the table: 1/(m-1) sum_i |sum_{j<=i} (q_j - p_j)|, 0 if m = 1."""
    # Only a class of over 2^61 / (N m) people can pass 64 bits, and there is room in the table for few of those.
    room = counts.sizes.astype(float) * counts.n * counts.m
    fits = room < SAFE
    if fits.all():
        work = _work_along_ranks(counts, np.dtype(np.int64))
    else:
        work = np.zeros(len(fits), dtype=object)
        work[fits] = _work_along_ranks(counts.rows(fits), np.dtype(np.int64))
        large = np.flatnonzero(~fits)
        chunk = np.cumsum(counts.distinct[large]) // CHUNK
        for number in np.unique(chunk):
            work[large[chunk == number]] = _work_along_ranks(counts.rows(large[chunk == number]), np.dtype(object))
    return _bounded(counts, work, counts.sizes.astype(work.dtype) * (counts.n * max(counts.m - 1, 1)))


def _over_sets(people: ValueCounts, sets: ValueCounts, weight: IntArray, height: int) -> Transport:
    """Sum over sets g of weight_g |q(g) - p(g)| / (2 height); the columns of `sets` count people per set."""
    n, sizes = people.n, people.sizes  # not those of `sets`, where a person is in several
    fits = 2.0 * n * height * float(sizes.max(initial=0)) < SAFE
    kind = np.dtype(np.int64 if fits else object)
    size, in_table = sizes.astype(kind), sets.total.astype(kind)
    # A set without anybody of the class costs weight * f C. Charge that for all sets, then put right those with people.
    expected = size[sets.row] * in_table[sets.column]
    work = sets.row_sum(weight[sets.column] * (np.abs(sets.entry.astype(kind) * n - expected) - expected))
    return _bounded(people, work + size * (weight * in_table).sum(), size * (2 * height * n))


def _bounded(counts: ValueCounts, work: Integers, scale: Integers) -> Transport:
    """A value that the table lacks has no place among its values; no distance is above 1, so that is taken."""
    return Transport(np.where(counts.foreign, 1, work), np.where(counts.foreign, 1, scale))


def _work_along_ranks(counts: ValueCounts, kind: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """sum_i |N c_i - f C_i| of each class, with c_i and C_i the people up to rank i in the class and in the table.

    c_i changes only at the values that occur in the class, and C_i ascends. So between two such values the difference
    changes its sign at most once, and both sides of that turn are sums that prefix sums of C_i give at once: the cost
    goes with the entries, not with J times m.
    """
    n, m = counts.n, counts.m
    upto = np.cumsum(counts.total)
    prefix = np.concatenate([[0], np.cumsum(upto)])  # prefix[i] = C_0 + ... + C_{i-1}
    starts, filled = counts.counts.indptr[:-1], counts.distinct > 0
    first = counts.column
    end = np.append(first[1:], m)  # each entry rules the ranks from its own to the next entry's ...
    end[counts.counts.indptr[1:][filled] - 1] = m  # ... the last one of a class to the end
    running = np.concatenate([[0], np.cumsum(counts.entry)])
    reached = running[1:] - running[starts[counts.row]]  # c_i from this entry on
    size = counts.sizes[counts.row]
    turn = np.clip(np.searchsorted(upto, -(-(n * reached) // size)), first, end)  # the first rank with f C_i >= N c_i

    level, entry_size, sums = (n * reached).astype(kind), size.astype(kind), prefix.astype(kind)
    above = level * (turn - first).astype(kind) - entry_size * (sums[turn] - sums[first])
    below = entry_size * (sums[end] - sums[turn]) - level * (end - turn).astype(kind)
    work = counts.row_sum(above + below)
    work[filled] += counts.sizes[filled].astype(kind) * sums[first[starts[filled]]]  # ranks before the first entry
    return work
