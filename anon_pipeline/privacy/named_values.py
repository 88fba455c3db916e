"""Check that every value that a class table names is shared by k people, counted from the people themselves.

The recoding decides which values may be named; this check does not rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.arrays import IntArray
from anon_pipeline.tables import Domain

Numbers = npt.NDArray[Any]

#: By how much a float may differ from the number that it stands for, as a share of that number.
DUST = 1e-15
#: Texts for a value that is not named, and for a missing value.
UNNAMED, MISSING = "*", "missing"


def unshared_numbers(domain: Domain, classes: pd.DataFrame, k: int, left_out: int) -> int:
    """How many numbers or dates the classes name that too few people share.

    An upper end is shared by the people above the next smaller upper end, up to this end. A lower end is shared by the
    people from this end to below the next larger lower end. An open end is shared by the people beyond the last end. A
    representative is shared by the people between the ends around it. In addition, nobody or at least k people must
    have a named number, or k people must lie on the step that begins there. The steps are as long as the smallest
    difference of two named numbers.

    Parameters
    ----------
    domain : the column with the people of each value
    classes : the class table, with the columns `name`, `name_low` and `name_high`
    left_out : how many people are in no class; a named number may be the value of these people only
    """
    people = _People(domain)
    columns = [_numbers(classes[f"{domain.name}{end}"], domain) for end in ("_low", "_high", "")]
    lows, highs, representatives = (np.unique(numbers[~absent]) for numbers, absent in columns)
    (_, no_low), (_, no_high), _ = columns
    below_lows, up_to_highs = people.below(lows), people.up_to(highs)
    everybody = people.reached[-1]
    of_low = np.diff(np.r_[below_lows, everybody])
    of_high = np.diff(np.r_[0, up_to_highs])
    ends = np.union1d(lows, highs)
    up_to_end_before = np.r_[0, people.up_to(ends)][np.searchsorted(ends, representatives, "left")]
    below_end_after = np.r_[people.below(ends), everybody][np.searchsorted(ends, representatives, "right")]
    of_representative = below_end_after - up_to_end_before
    named = np.union1d(ends, representatives)
    step = np.diff(named).min() if len(named) > 1 else 0
    before = people.below(named)
    bearers, on_step = people.up_to(named) - before, people.below(named + step) - before
    few = [of_low < k, of_high < k, of_representative < k, (bearers > left_out) & (bearers < k) & (on_step < k)]
    if (~no_high & no_low).any():
        few.append(np.array([(below_lows[0] if len(lows) else everybody) < k]))
    if (~no_low & no_high).any():
        few.append(np.array([everybody - (up_to_highs[-1] if len(highs) else 0) < k]))
    return int(sum(mask.sum() for mask in few))


def unshared_categories(domain: Domain, named: Iterable[str | None], k: int) -> int:
    """How many of these categories (None for a missing value) fewer than k people have."""
    shared = {None if code == 0 else str(domain.values[code - 1]) for code in np.flatnonzero(domain.counts >= k)}
    return len({name for name in named if name != UNNAMED} - shared)


def unshared_texts(domain: Domain, texts: Iterable[str], k: int) -> int:
    """How many of these texts name a value, or a node of the column's hierarchy, that fewer than k people have.

    The texts are labels or ranges of ordered categories: "low", "low .. middle", "≥ low", "low or missing".
    """
    written = [str(value) for value in domain.readable(domain.values)]
    counted = {name: int(count) for name, count in zip(written, domain.counts[1:], strict=True)}
    if domain.nodes is not None:
        for place, names in enumerate(domain.nodes.labels):
            people = np.bincount(domain.nodes.node[:, place], weights=domain.counts[1:], minlength=len(names))
            for name, count in zip(names, people.astype(int).tolist(), strict=True):
                counted[name] = max(count, counted.get(name, 0))
    shared = {name for name, count in counted.items() if count >= k} | {UNNAMED, MISSING}
    return sum(not _all_shared(text, shared) for text in set(texts))


def _all_shared(text: str, shared: Set[str]) -> bool:
    """Whether a text is a shared name, or made of shared names."""
    if text in shared or text + " 00:00:00" in shared:
        return True
    for ending in (f" or {MISSING}", f" or {UNNAMED}"):
        if text.endswith(ending):
            return _all_shared(text.removesuffix(ending), shared)
    if text[:2] in ("≥ ", "≤ "):
        return text[2:] in shared
    first, span, last = text.partition(" .. ")
    return bool(span) and first in shared and last in shared


class _People:
    """The people of an ordered column, counted up to its values."""

    def __init__(self, domain: Domain) -> None:
        self._values = domain.values
        self.reached: IntArray = np.r_[0, np.cumsum(domain.counts[1:])]
        self._dust = 0.0 if domain.values.dtype.kind == "i" else DUST

    def up_to(self, numbers: Numbers) -> IntArray:
        return self.reached[np.searchsorted(self._values, self._moved(numbers, self._dust), "right")]

    def below(self, numbers: Numbers) -> IntArray:
        return self.reached[np.searchsorted(self._values, self._moved(numbers, -self._dust), "left")]

    def _moved(self, numbers: Numbers, dust: float) -> Numbers:
        return numbers + dust * np.abs(numbers) if dust else numbers


def _numbers(column: pd.Series, domain: Domain) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """A column of a class table as the domain codes its values, and where it is missing."""
    absent = column.isna().to_numpy()
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        unit = "datetime64[D]" if domain.storage == "DATE" else "datetime64[us]"
        return column.to_numpy("datetime64[us]").astype(unit).astype(np.int64), absent
    # Whole numbers stay whole: as floats, numbers above 2^53 would be mistaken for their neighbours.
    kind = np.int64 if pd.api.types.is_integer_dtype(column.dtype) else np.float64
    return column.to_numpy(kind, na_value=0), absent
