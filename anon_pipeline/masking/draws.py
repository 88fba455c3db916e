"""Random numbers of masking steps: a pseudo-random function, under the private key, of the row and the step.

A row's numbers depend on the dataset, the row in the source, its number among the rows equal to it, the step with all
its parameters, and the row's content when the step begins. Where one of these changes, the numbers are new independent
ones. Where none changes, the numbers are the same in every release, and nobody can average them. Other rows have no
influence on them. A step whose scale comes from the whole column makes its numbers depend on that scale too: from one
number shown on two scales, the value could be computed.
"""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.engine.content import Lanes, row_hashes
from anon_pipeline.keys import Key

#: 128 bits for each thing for which numbers are drawn, shape (n, 2).
Blocks = npt.NDArray[np.uint64]
#: One more than the largest number of 128 bits, of which a probability is a whole part.
ALL = 1 << 128
#: Numbers of 64 bits below this are so few that the lower 64 bits count as well.
WIDE = np.uint64(2**32)
#: Up to this number every whole number can be stored as a float.
WHOLE = 2.0**53


def identities(table: pa.Table, key: Key, dataset: str) -> Blocks:
    """128 bits per row, from its content and its number among equal rows; only the key's holder can compute them.

    Rows with the same content are interchangeable, so the release does not depend on which of them has which number.
    """
    lanes = content_of(table)
    order = np.lexsort((lanes[1], lanes[0]))
    differs = (np.diff(lanes[:, order], axis=1) != 0).any(axis=0)
    first = np.r_[0, np.flatnonzero(differs) + 1]
    numbers = np.empty(len(order), dtype=np.uint64)
    numbers[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    rows = key.pseudorandom("rows", dataset, lanes.T)
    rows[:, 0] ^= numbers
    return key.pseudorandom("rows", dataset, rows)


def content_of(table: pa.Table) -> Lanes:
    """128 bits per row that depend on all its values, shape (2, n).

    A whole number gives the same bits whether its column is of integers or, because of other values, of floats; a day,
    whether its column is of days or of moments.
    """
    names, columns = [], []
    for name in table.column_names:
        column = _as_moments(table.column(name).combine_chunks())
        kinds = pa.types.is_integer(column.type), pa.types.is_floating(column.type)
        parts = _parts(column) if any(kinds) else [column]
        names += [name, f"{name}#rest"][: len(parts)]
        columns += parts
    return row_hashes(columns, names)


def _parts(column: pa.Array) -> list[pa.Array]:
    """The whole parts of a column's values and the rests; a float beyond 2^53 is a rest as a whole."""
    if pa.types.is_integer(column.type):
        return [column, pa.array(np.zeros(len(column)))]
    values = np.asarray(column.cast(pa.float64()).fill_null(0.0), dtype=np.float64)
    whole = np.where(np.abs(values) < WHOLE, np.trunc(values), 0.0)
    missing = np.asarray(column.is_null())
    return [pa.array(whole.astype(np.int64), mask=missing), pa.array(values - whole)]


class Draws:
    """Random numbers of one step for each of n things, which are rows unless `of` was called.

    Every call gives new numbers, also calls through `at`, `given` and `bound`.
    """

    def __init__(self, key: Key, step: Sequence[Any], things: Blocks, calls: itertools.count[int] | None = None):
        """
        Parameters
        ----------
        step : the step and its dataset, with all parameters, as plain data
        things : the things to draw for, shape (n, 2); without the key nobody can compute their numbers
        """
        self._key, self._step, self._things = key, step, things
        self._calls = itertools.count() if calls is None else calls

    def at(self, positions: IntArray) -> Draws:
        """Draws for the things at these positions only."""
        return self._with(self._things[positions])

    def given(self, *columns: pa.Array | FloatArray) -> Draws:
        """Draws that also depend on the thing's values in these columns, each of shape (n,)."""
        things = self._key.pseudorandom("given", self._label(), self._things)
        return self._with(things ^ _hashed(columns))

    def of(self, *columns: pa.Array | FloatArray) -> Draws:
        """Draws for values instead of rows: rows with equal values in these columns get the same numbers."""
        return self._with(_hashed(columns))

    def bound(self, *further: Any) -> Draws:
        """Draws that also depend on `further`, plain data that the step computed from the whole column."""
        return Draws(self._key, [*self._step, *further], self._things, self._calls)

    def number(self) -> float:
        """A number strictly between 0 and 1 for the step as a whole."""
        return float(self._with(np.zeros((1, 2), dtype=np.uint64)).uniform()[0])

    def uniform(self) -> FloatArray:
        """Numbers strictly between 0 and 1, shape (n,)."""
        return _uniform(self._bits())

    def normal(self) -> FloatArray:
        """Standard normal numbers, shape (n,)."""
        size, sign = self._signed(self._bits())
        from scipy.special import ndtri  # a quarter of a second, which commands that only read a spec save

        drawn: FloatArray = -sign * ndtri(size / 2)
        return drawn

    def laplace(self) -> FloatArray:
        """Laplace numbers of scale 1, shape (n,)."""
        bits = self._bits()
        size, sign = self._signed(bits)
        lower = bits[:, 1] & np.uint64(2**63 - 1)  # the bit above is the sign
        fine = (bits[:, 0].astype(np.float64) + (lower.astype(np.float64) + 0.5) * 2.0**-63) * 2.0**-64
        # Where 64 bits leave gaps that are wider than the grid on which noise is shown: one draw in 2^32.
        drawn: FloatArray = -sign * np.log(np.where(bits[:, 0] < WIDE, fine, size))
        return drawn

    def beyond(self) -> FloatArray:
        """One less `uniform`, shape (n,): in 128 bits where it is small, so that what is rare can be drawn."""
        bits = self._bits()
        coarse = 1 - _uniform(bits)
        above, below = (~bits[:, place] for place in (0, 1))
        fine = (above.astype(np.float64) + (below.astype(np.float64) + 0.5) * 2.0**-64) * 2.0**-64
        drawn: FloatArray = np.where(above < WIDE, fine, coarse)
        return drawn

    def below(self, limits: IntArray) -> IntArray:
        """For each limit (at least 1) a whole number from 0 to below it, shape (n,)."""
        return (self.uniform() * limits).astype(np.int64)  # 1 - 2^-53 times a limit up to 2^53 is rounded below it

    def blocks(self) -> Blocks:
        """128 bits for each, of which `uniform` has the first 52; for probabilities too small for it, shape (n, 2)."""
        return self._bits()

    def any_of(self, number: int) -> IntArray:
        """A whole number from 0 to below `number`, which is at most 2^31, each equally likely to 2^-128, shape (n,)."""
        carried, half = np.zeros(len(self._things), dtype=np.uint64), np.uint64(32)
        bits = self._bits()
        for word in (bits[:, 1], bits[:, 0]):  # the product of 128 bits and the number, 32 bits at a time
            for part in (word & np.uint64(2**32 - 1), word >> half):
                carried = (part * np.uint64(number) + carried) >> half
        return carried.astype(np.int64)

    @staticmethod
    def _signed(bits: Blocks) -> tuple[FloatArray, FloatArray]:
        """Uniform numbers above 0 with 64 bits, so that tails have few gaps, and a sign for each, shapes (n,)."""
        return (bits[:, 0].astype(np.float64) + 0.5) * 2.0**-64, np.where(bits[:, 1] >> np.uint64(63), 1.0, -1.0)

    def _bits(self) -> Blocks:
        return self._key.pseudorandom("draws", self._label(), self._things)

    def _label(self) -> str:
        return json.dumps([*self._step, next(self._calls)], sort_keys=True)

    def _with(self, things: Blocks) -> Draws:
        return Draws(self._key, self._step, things, self._calls)


def _uniform(bits: Blocks) -> FloatArray:
    """The first 52 bits as a number strictly between 0 and 1, shape (n,)."""
    drawn: FloatArray = ((bits[:, 0] >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return drawn


def places(drawn: Blocks, ends: Sequence[int]) -> IntArray:
    """How many of the ascending `ends` a number of 128 bits has reached, shape (n,).

    Parameters
    ----------
    drawn : shape (n, 2), the higher 64 bits first
    ends : from 0 to `ALL`; the number lies between two of them with the probability of their difference
    """
    ends = [end for end in ends if end < ALL]
    high = np.array([end >> 64 for end in ends], dtype=np.uint64)
    reached = np.searchsorted(high, drawn[:, 0], side="left")
    if not ends:
        return reached.astype(np.int64)
    equal = high[np.minimum(reached, len(ends) - 1)] == drawn[:, 0]
    for place in np.flatnonzero(equal):  # next to nobody: the lower 64 bits decide
        reached[place] = bisect_right(ends, (int(drawn[place, 0]) << 64) + int(drawn[place, 1]))
    return reached.astype(np.int64)


def _hashed(columns: Sequence[pa.Array | FloatArray]) -> Blocks:
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
    return np.ascontiguousarray(row_hashes(arrays, [str(place) for place in range(len(arrays))]).T)


def seen(column: pa.Array) -> pa.Array:
    """A column as draws depend on it: without the last bits of fractions, in which processors may differ.

    Whole numbers become floats, and days moments, since other people's values decide as which a column is stored.
    """
    if not pa.types.is_integer(column.type) and not pa.types.is_float64(column.type):
        return _as_moments(column)
    values = np.asarray(column.cast(pa.float64(), safe=False).fill_null(0.0), dtype=np.float64)
    with np.errstate(over="ignore"):
        coarse = values.astype(np.float32)
    return pa.array(np.where(np.trunc(values) == values, values, coarse), mask=np.asarray(column.is_null()))


def _as_moments(column: pa.Array) -> pa.Array:
    """Days as moments of midnight; any other column as it is."""
    return column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column
