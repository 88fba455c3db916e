"""What a missing value of a sensitive column may stand for, and so in which readings a class must hold.

A missing value is no answer: whoever bears it has some value that the table does not tell. Unless the spec says that
missing is an answer of its own, a demand is judged in the reading that is worst for the people.

Demands that look at a class alone (diversity, the largest share) count the missing as bearers of the class's most
frequent value. No other way to fill them in leaves fewer people on the rest: the counts majorize those of all other
ways, and distinct values, entropy, (c,l)-diversity and the largest share are all worst where counts majorize.

Demands that compare a class with the table are held twice: with missing as a value, for what the release shows, and
among those of whom a value is told, of class and table alike. A class that is rare only in that most of it is missing
is not near to the table for whoever knows that the person's value is told.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from anon_pipeline.privacy.statistics import Histogram


def is_open(histogram: Histogram) -> bool:
    """Whether somebody of the table has no value, and that is no answer."""
    return bool(histogram.values) and histogram.values[0] is None and not histogram.missing_is_a_value


def as_the_most_frequent(histogram: Histogram) -> Histogram:
    """The missing of each class as bearers of its most frequent value; where nobody has one they stay as they are."""
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
    """The histogram as it is and, where somebody's value is missing, that of the people who have one."""
    total = histogram.total
    if not is_open(histogram) or not total[1:].any():
        return (histogram,)
    known = replace(histogram, values=histogram.values[1:], counts=histogram.counts[:, 1:], table=total[1:])
    return (histogram, known)
