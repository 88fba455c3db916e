"""How well columns distinguish people, and which columns determine others, on codes of the values in a sample.

Distinction and separation are those of R. Motwani and Y. Xu (Efficient Algorithms for Masking and Finding
Quasi-Identifiers, VLDB workshop on secure data management, 2007). Columns S are an alpha-distinct quasi-identifier if
the distinct tuples of S are a share alpha of the rows. They are an alpha-separating one if a share alpha of the pairs
of rows differ in S. The greedy choice of one column after another separates nearly all pairs with few columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anon_pipeline.arrays import IntArray

#: Numbers with more distinct values are cut into this many quantiles before their association is measured.
QUANTILES = 10
#: The number of evenly spaced rows that are tested first for whether a column determines another; most pairs fail.
FIRST_ROWS = 500
#: A dependence does not count if independent columns would show it by chance with a higher probability than this.
BY_CHANCE = 1e-6


def codes_of(column: pa.ChunkedArray) -> IntArray:
    """A whole number per row, the same for equal values, shape (n,); a missing value has a number of its own, 0."""
    encoded = column.combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.cast(pa.int64()).fill_null(-1), dtype=np.int64) + 1


def class_sizes(codes: IntArray) -> IntArray:
    """Rows per class of equal codes, in any order."""
    sizes = np.unique(codes, return_counts=True)[1]
    return sizes.astype(np.int64)


def distinction(codes: IntArray) -> float:
    """Distinct values as a share of the rows."""
    return len(class_sizes(codes)) / max(1, len(codes))


def separation(codes: IntArray) -> float:
    """Share of the pairs of rows that differ; 0 where there is no pair."""
    n = len(codes)
    sizes = class_sizes(codes)
    return 1 - float((sizes * (sizes - 1)).sum()) / (n * (n - 1)) if n > 1 else 0.0


def in_rare_values(codes: IntArray, k: int) -> float:
    """Share of the rows whose value occurs in fewer than k rows."""
    sizes = class_sizes(codes)
    return float(sizes[sizes < k].sum()) / max(1, len(codes))


@dataclass(frozen=True)
class Key:
    """A small set of columns that distinguishes people, in the order of the choice."""

    columns: tuple[str, ...]
    distinction: float
    separation: float


def greedy_key(codes: Mapping[str, IntArray], most: int = 4, enough: float = 0.9) -> Key | None:
    """The columns that together distinguish people best, each chosen so that the fewest pairs remain unseparated.

    Parameters
    ----------
    codes : the codes of each column, shape (n,)
    most : the largest number of columns
    enough : the distinction at which no further column is added
    """
    chosen: tuple[str, ...] = ()
    together: IntArray | None = None
    while len(chosen) < most and (together is None or distinction(together) < enough):
        tried = {name: _joined(together, code) for name, code in codes.items() if name not in chosen}
        if not tried:
            break
        best = max(tried, key=lambda name: separation(tried[name]))
        if together is not None and separation(tried[best]) <= separation(together):
            break
        chosen, together = (*chosen, best), tried[best]
    return None if together is None else Key(chosen, distinction(together), separation(together))


def determines(known: IntArray, determined: IntArray) -> bool:
    """Whether every value of the column `known` occurs with only one value of the column `determined`."""
    for rows in (slice(None, None, max(1, len(known) // FIRST_ROWS)), slice(None)):
        first = known[rows]
        if len(class_sizes(_joined(first, determined[rows]))) != len(class_sizes(first)):
            return False
    return True


def is_seen_often_enough(known: IntArray, determined: IntArray) -> bool:
    """Whether a column is unlikely to determine the other one by chance alone.

    If the columns are independent, the m rows of one value of the first column agree in the second with a probability
    of at most p ** (m - 1), where p is the share of the commonest value there. So all n rows with d values agree with
    at most p ** (n - d): it matters how often values repeat, not how many rows there are.
    """
    commonest = float(class_sizes(determined).max(initial=0)) / max(1, len(determined))
    repeated = len(known) - len(class_sizes(known))
    return commonest**repeated < BY_CHANCE


def functional_dependences(codes: Mapping[str, IntArray]) -> list[tuple[str, str]]:
    """The pairs (a, b) of columns in which every value of a occurs with only one value of b."""
    sizes = {name: len(class_sizes(code)) for name, code in codes.items()}
    return [
        (first, second)
        for first in codes
        for second in codes
        if first != second and sizes[first] >= sizes[second] and determines(codes[first], codes[second])
    ]


def equivalences(codes: Mapping[str, IntArray]) -> list[tuple[str, str]]:
    """The pairs (a, b) of columns, both ways round, that determine each other.

    Two columns do so where their values, numbered by their first row, are the same numbers. So each column is looked at
    once, however many there are. Columns in which no value repeats are passed over: any two of these would be a pair.
    """
    alike: dict[bytes, list[str]] = {}
    for name, code in codes.items():
        _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
        if len(first) < len(code):
            alike.setdefault(np.argsort(np.argsort(first))[inverse].tobytes(), []).append(name)
    return [pair for names in alike.values() for pair in itertools.permutations(names, 2)]


def cramers_v(left: IntArray, right: IntArray) -> float:
    """The association of two columns from 0 to 1: Cramér's V with a correction of its bias.

    W. Bergsma (A bias-correction for Cramér's V and Tschuprow's T, Journal of the Korean Statistical Society 42, 2013):
    without the correction, columns of many values seem associated by chance alone.
    """
    n = len(left)
    rows, columns = (np.unique(codes, return_inverse=True)[1] for codes in (left, right))
    r, c = int(rows.max(initial=0)) + 1, int(columns.max(initial=0)) + 1
    if n < 2 or min(r, c) < 2:
        return 0.0
    counts = np.bincount(rows * c + columns, minlength=r * c).reshape(r, c).astype(np.float64)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / n
    phi2 = float(((counts - expected) ** 2 / expected).sum()) / n
    corrected = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
    smaller = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return min(1.0, float(np.sqrt(corrected / smaller))) if smaller > 0 else 0.0


def quantile_codes(values: npt.NDArray[np.float64]) -> IntArray:
    """Codes of numbers by their quantiles, shape (n,); missing numbers have a code of their own, 0."""
    known = ~np.isnan(values)
    codes = np.zeros(len(values), dtype=np.int64)
    if known.any():
        cuts = np.unique(np.quantile(values[known], np.linspace(0, 1, QUANTILES + 1)[1:-1]))
        codes[known] = np.searchsorted(cuts, values[known], side="right") + 1
    return codes


def stand_ins(
    of: str, codes: Mapping[str, IntArray], candidates: Sequence[str], least: float
) -> list[tuple[str, float]]:
    """The columns whose Cramér's V with the column `of` is at least `least`, the strongest first, with this number."""
    measured = [(name, cramers_v(codes[of], codes[name])) for name in candidates if name != of]
    return sorted(((name, v) for name, v in measured if v >= least), key=lambda pair: (-pair[1], pair[0]))


def joined(columns: Sequence[IntArray]) -> IntArray:
    """Codes of the combinations of the values of several columns, each of shape (n,)."""
    together: IntArray | None = None
    for codes in columns:
        together = _joined(together, codes)
    return np.zeros(0, dtype=np.int64) if together is None else together


def _joined(first: IntArray | None, second: IntArray) -> IntArray:
    """Codes of the pairs of values, numbered without gaps so that they never overflow."""
    if first is None:
        return second
    pairs = first * (int(second.max(initial=0)) + 1) + second
    dense: IntArray = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return dense
