"""The values of a column in a few readable groups, none of them smaller than asked.

Each common category is a group of its own, the commonest first, and the rare ones are one group together. Numbers and
dates are cut at round values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import IntArray
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain

#: Most groups, beside those of rare and of missing values.
MOST = 8
#: In a column of whole numbers so many of the people have one.
MOSTLY = 0.95

MISSING, OTHERS = "missing", "all others"


#: What is added to a number of people before it decides anything, by the name of what it decides.
Noise = Callable[[str], int]


def exactly(_: str) -> int:
    """No noise, for groups of people who are published or of figures that nobody else sees."""
    return 0


@dataclass(frozen=True, eq=False)
class ValueGroups:
    """Groups of the values of a column.

    Attributes
    ----------
    labels : their names, in the order in which they are read
    of_code : the group of each code of the domain (0 is missing), shape (m + 1,)
    place : the group of any value of the column's kind, whether the domain knows it or not; for ordered columns
    """

    labels: tuple[str, ...]
    of_code: IntArray
    place: Callable[[npt.NDArray[np.generic]], IntArray] | None = None


def group_values(domain: Domain, smallest: int, alone: int = 0, noise: Noise = exactly) -> ValueGroups:
    """Groups of at least `smallest` people each; none at all where the whole table has fewer.

    With noise, no single person's number decides where a column is cut; groups are then about as large.

    Parameters
    ----------
    smallest : people in every group, that of all rare values together included
    alone : people in every other group
    noise : that of an ordered column; of categories, `domain.counts` may have noise
    """
    if int(domain.counts.sum()) < max(smallest, 1):
        return ValueGroups((), np.full(len(domain), -1))
    if domain.ordered and len(domain.values):
        return _ranges(domain, smallest, max(smallest, alone), noise)
    return _categories(domain, smallest, max(smallest, alone))


def _categories(domain: Domain, smallest: int, alone: int) -> ValueGroups:
    codes = np.argsort(-domain.counts, kind="stable")
    codes = codes[domain.counts[codes] > 0]
    own = [code for code in codes[:MOST] if domain.counts[code] >= alone]
    others = codes[len(own) :]
    while own and len(others) and domain.counts[others].sum() < smallest:
        others = np.append(others, own.pop())  # too few to stand together: the next one joins them
    labels = [MISSING if code == 0 else _category(str(domain.values[code - 1])) for code in own]
    labels += [OTHERS] if len(others) else []
    of_code = np.full(len(domain), len(labels) - 1)  # of the others; what nobody has counts nowhere
    of_code[own] = np.arange(len(own))
    return ValueGroups(tuple(labels), of_code)


def _category(value: str) -> str:
    """A category by its name, in quotation marks where that is a word of ours for people who do not have it."""
    return f"\u201c{value}\u201d" if value in (MISSING, OTHERS) else value


def _ranges(domain: Domain, smallest: int, alone: int, noise: Noise) -> ValueGroups:
    known = domain.counts[1:]
    inner = _inner(domain.values, known, noise)
    index, unit = _calendar(domain, domain.values[[0, -1]] if noise is exactly else inner)
    values = index(domain.values)
    # No single person decides how groups are written: among whole numbers a fraction goes with the one below it.
    whole = bool(known[values % 1 == 0].sum() + noise("whole") >= MOSTLY * known.sum())
    edges = _edges(index(inner), whole)
    counts = np.bincount(np.searchsorted(edges, values, "right"), weights=known, minlength=len(edges) + 1)
    counts += [noise(f"below {edge}") for edge in [*edges.tolist(), "all"]]
    kept = _far_enough_apart(edges, counts.astype(np.int64), alone)
    labels = _labels(kept, unit, whole)

    def place(other: npt.NDArray[np.generic]) -> IntArray:
        return np.searchsorted(kept, index(other), "right").astype(np.int64)

    of_code = np.r_[0, place(domain.values)].astype(np.int64)
    missing = int(domain.counts[0]) + noise(MISSING)
    if missing >= smallest and known.sum() >= smallest:
        labels, of_code[0] = [*labels, MISSING], len(labels)
    elif missing > 0:  # too few for a group of their own: they join the smallest group
        sizes = np.bincount(of_code[1:], weights=known, minlength=len(labels))
        of_code[0] = int(np.argmin(sizes + [noise(label) for label in labels]))
        labels[of_code[0]] += f" or {MISSING}"
    return ValueGroups(tuple(labels), of_code, place)


def _inner(values: npt.NDArray[np.generic], counts: IntArray, noise: Noise) -> npt.NDArray[np.generic]:
    """The 2nd and the 98th percentile."""
    reached = np.cumsum(counts)
    ranks = sorted(share * reached[-1] + noise(f"rank {share}") for share in (0.02, 0.98))  # of few, noise turns them
    inner: npt.NDArray[np.generic] = values[np.searchsorted(reached, np.clip(ranks, 0, reached[-1]))]
    return inner


def _calendar(
    domain: Domain, ends: npt.NDArray[np.generic]
) -> tuple[Callable[[npt.NDArray[np.generic]], npt.NDArray[np.generic]], str]:
    """How values become numbers that are cut at round ones: dates become years, months or days since 1970.

    Parameters
    ----------
    ends : two values; of how far they lie apart the unit of dates follows
    """
    if domain.type is not ColumnType.DATE:
        return lambda values: values, ""
    first, last = domain.readable(ends).astype("datetime64[D]").astype(np.int64)
    unit = "Y" if last - first >= 3 * 365 else "M" if last - first >= 90 else "D"
    return lambda values: domain.readable(values).astype(f"datetime64[{unit}]").astype(np.int64), unit


def _edges(inner: npt.NDArray[np.generic], whole: bool) -> npt.NDArray[np.generic]:
    """At most MOST - 1 multiples of 1, 2 or 5 times a power of ten, between two numbers."""
    low, high = inner
    if float(low) == float(high):  # nearly everybody has one number, or numbers that floats do not tell apart
        return np.array([low, low + 1]) if whole else inner[:0]
    exponent = int(np.floor(np.log10(float(high) - float(low)))) - 1
    steps = (mantissa * 10.0**power for power in range(exponent, exponent + 4) for mantissa in (1, 2, 5))
    for step in steps:
        multiples = np.arange(np.floor(low / step) + 1, np.floor(high / step) + 1)
        if len(multiples) < MOST and (not whole or step >= 1):
            edges = multiples * step
            return np.round(edges).astype(np.int64) if whole else np.array([float(_short(edge)) for edge in edges])
    return inner[:0]


def _far_enough_apart(edges: npt.NDArray[np.generic], counts: IntArray, smallest: int) -> npt.NDArray[np.generic]:
    """The edges that leave `smallest` people in every range; `counts` are those of the ranges, one more than edges."""
    kept: list[int] = []
    gathered = 0
    for place, count in enumerate(counts[:-1]):
        gathered += int(count)
        if gathered >= smallest:
            kept.append(place)
            gathered = 0
    if kept and gathered + int(counts[-1]) < smallest:
        kept.pop()
    return edges[kept]


def _labels(edges: npt.NDArray[np.generic], unit: str, whole: bool) -> list[str]:
    """ "under 20", "20-29", "30 and over" for the edges 20 and 30; of dates "before 1980", "1980-1989", "from 1990"."""
    if not len(edges):
        return ["any"]
    if unit:
        pairs = [(_date(first, unit), _date(end - 1, unit)) for first, end in pairwise(edges)]
        between = [first if first == last else f"{first}\u2013{last}" for first, last in pairs]
        return [f"before {_date(edges[0], unit)}", *between, f"from {_date(edges[-1], unit)}"]
    if whole:
        pairs = [(_number(first), _number(end - 1)) for first, end in pairwise(edges)]
        between = [first if first == last else f"{first}\u2013{last}" for first, last in pairs]
    else:
        between = [f"{_number(first)} to under {_number(end)}" for first, end in pairwise(edges)]
    return [f"under {_number(edges[0])}", *between, f"{_number(edges[-1])} and over"]


def _date(index: Any, unit: str) -> str:
    """A year, month or day by its number since 1970."""
    return str(np.array(index, dtype=f"datetime64[{unit}]"))


def _number(value: np.generic) -> str:
    """With separators from 10,000 on, so that years stay years, and a true minus sign."""
    number = int(value) if isinstance(value, np.integer) else float(value)
    if isinstance(number, int) or (number.is_integer() and abs(number) < 1e15):
        text = f"{int(number):,}" if abs(number) >= 10_000 else f"{int(number)}"
    else:
        text = _short(number)
    return text.replace("-", "\u2212")


def _short(number: float) -> str:
    """All digits of a round number, and none of what a product of floats is off by."""
    return f"{number:.15g}"
