"""Class statistics for tests: from counts by hand, and at random. Holds no test and no expected value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from anon_pipeline.privacy.statistics import ClassStatistics, Histogram

Rows = list[list[int]]
COLUMN = "illness"


def classes_of(
    rows: Sequence[Sequence[int]], values: Sequence[object] | None = None, *, ordered: bool = False
) -> ClassStatistics:
    """One class per row of counts, one sensitive column."""
    counts = np.array(rows, dtype=np.int64)
    names = tuple(range(counts.shape[1])) if values is None else tuple(values)
    histogram = Histogram(names, sparse.csr_array(counts), ordered)
    return ClassStatistics(counts.sum(axis=1), {COLUMN: histogram})


def classes_of_people(
    people: Sequence[Sequence[object]], values: Sequence[object], *, ordered: bool
) -> ClassStatistics:
    """One class per list of people's values; `values` in their order."""
    return classes_of([[group.count(value) for value in values] for group in people], values, ordered=ordered)


def merged(classes: ClassStatistics, a: int, b: int) -> ClassStatistics:
    """Class b joins class a; the merged class has the number 0 and the others follow in any order."""
    count = len(classes.sizes)
    group = np.zeros(count, dtype=np.int64)
    group[[j for j in range(count) if j not in (a, b)]] = np.arange(1, count - 1)
    return classes.merge(group, count - 1)


@st.composite
def tables(draw: st.DrawFn, least_classes: int = 1) -> Rows:
    """Small counts, so that exact ties with a limit are common; every class and every value has people."""
    m = draw(st.integers(1, 6))
    count = st.one_of(st.just(0), st.integers(0, 4), st.integers(0, 60))
    rows = draw(st.lists(st.lists(count, min_size=m, max_size=m), min_size=least_classes, max_size=6))
    for j, row in enumerate(rows):
        if not any(row):
            row[j % m] = 1
    for s in range(m):
        if not any(row[s] for row in rows):
            rows[s % len(rows)][s] = 1
    return rows
