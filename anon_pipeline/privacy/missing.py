"""The readings of missing sensitive values: which values they may stand for, and in which readings a class must hold.

A missing value is no answer: the person has some value that the table does not contain. Unless the spec says that
missing is an answer of its own, a demand is judged in the reading that is worst for the people.

Demands on a class alone (diversity, the largest share) count missing values as the class's most frequent value. No
other way to fill them in leaves fewer people with the other values: the counts majorize those of all other ways.
Distinct values, entropy, (c,l)-diversity and the largest share are all worst where counts majorize.

Demands that compare a class with the table are checked twice. Once missing counts as a value, as the release shows it.
Once only people with a value count, in the class and in the table. A class may be near to the table only because most
of its values are missing; it is not near for an attacker who knows that the person's value is not missing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from anon_pipeline.privacy.statistics import Histogram


def is_open(histogram: Histogram) -> bool:
    """Whether somebody in the table has no value, and missing is not an answer of its own."""
    return bool(histogram.values) and histogram.values[0] is None and not histogram.missing_is_a_value


def as_the_most_frequent(histogram: Histogram) -> Histogram:
    """The missing values of each class as its most frequent value; where no member has a value, they stay missing."""
    if not is_open(histogram):
        return histogram
    counts = sparse.csr_array(histogram.counts, copy=True)
    missing = np.asarray(counts[:, [0]].sum(axis=1)).ravel().astype(np.int64)
    known = sparse.csr_array(counts[:, 1:])
    known.eliminate_zeros()
    row = np.repeat(np.arange(known.shape[0]), np.diff(known.indptr))
    order = np.lexsort((known.indices, -known.data, row))
    filled = np.flatnonzero(np.diff(known.indptr))
    place = np.zeros(len(missing), dtype=np.int64)
    place[filled] = known.indices[order[known.indptr[filled]]] + 1
    moved = sparse.coo_array((missing, (np.arange(len(missing)), place)), shape=counts.shape)
    empty = sparse.csr_array((len(missing), 1), dtype=np.int64)
    together = sparse.csr_array(sparse.hstack([empty, known]) + moved, dtype=np.int64)
    return replace(histogram, counts=together, table=histogram.total)


def with_and_without(histogram: Histogram) -> tuple[Histogram, ...]:
    """The histogram as it is and, where somebody's value is missing, the histogram of the people who have a value."""
    total = histogram.total
    if not is_open(histogram) or not total[1:].any():
        return (histogram,)
    known = replace(histogram, values=histogram.values[1:], counts=histogram.counts[:, 1:], table=total[1:])
    return (histogram, known)
