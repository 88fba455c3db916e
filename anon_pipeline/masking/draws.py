"""Random numbers of masking steps: a pseudo-random function, under the private key, of what they are drawn for.

A row's numbers follow from the dataset, the row as the source holds it, its number among the rows equal to it, the step
with all its parameters, and what the row holds when the step begins. Where one of these is another, so are the numbers,
independently; where none is, they are the same in every release, and there is nothing to average. Other rows have no
part in them. A step whose scale comes from the whole column binds its numbers to that scale, too: of one number shown
on two scales, both could be solved.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.engine.content import Lanes, row_hashes
from anon_pipeline.keys import Key

#: 128 bits for each thing that numbers are drawn for, shape (n, 2).
Blocks = npt.NDArray[np.uint64]
#: Up to here every whole number is a float.
WHOLE = 2.0**53


def identities(table: pa.Table, key: Key, dataset: str) -> Blocks:
    """128 bits per row that only the key's holder can tell, of its content and its number among its equals.

    Rows with the same content are interchangeable, so which of them has which number changes nothing in the release.
    """
    lanes = content_of(table)
    order = np.lexsort((lanes[1], lanes[0]))
    differs = (np.diff(lanes[:, order], axis=1) != 0).any(axis=0)
    first = np.r_[0, np.flatnonzero(differs) + 1] if len(order) else np.zeros(0, dtype=np.int64)
    numbers = np.empty(len(order), dtype=np.uint64)
    numbers[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    rows = key.pseudorandom("rows", dataset, lanes.T)
    rows[:, 0] ^= numbers
    return key.pseudorandom("rows", dataset, rows)


def content_of(table: pa.Table) -> Lanes:
    """128 bits per row of all that it holds, shape (2, n).

    A whole number counts as the same whether its column stores whole numbers or, for the sake of others, fractions.
    """
    names, columns = [], []
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        kinds = pa.types.is_integer(column.type), pa.types.is_floating(column.type)
        parts = _parts(column) if any(kinds) else [column]
        names += [name, f"{name}#rest"][: len(parts)]
        columns += parts
    return row_hashes(columns, names)


def _parts(column: pa.Array) -> list[pa.Array]:
    """The whole numbers of a column and what is left of its values; beyond 2^53 floats are all rest."""
    if pa.types.is_integer(column.type):
        return [column, pa.array(np.zeros(len(column)))]
    values = np.asarray(column.cast(pa.float64()).fill_null(0.0), dtype=np.float64)
    whole = np.where(np.abs(values) < WHOLE, np.trunc(values), 0.0)
    missing = np.asarray(column.is_null())
    return [pa.array(whole.astype(np.int64), mask=missing), pa.array(values - whole)]


class Draws:
    """Random numbers of one step for each of n things, which are rows unless `of` says otherwise.

    Every call gives new numbers, also calls through `at`, `given` and `bound`.
    """

    def __init__(self, key: Key, step: Sequence[Any], things: Blocks, calls: itertools.count[int] | None = None):
        """
        Parameters
        ----------
        step : which step of which dataset it is, with all its parameters, as plain data
        things : what to draw for, shape (n, 2); nobody without the key can tell the numbers of another
        """
        self._key, self._step, self._things = key, step, things
        self._calls = itertools.count() if calls is None else calls

    def at(self, positions: IntArray) -> Draws:
        """For the things at these positions only."""
        return self._with(self._things[positions])

    def given(self, *columns: pa.Array | FloatArray) -> Draws:
        """Where a value here is another, so are a thing's numbers; columns of shape (n,)."""
        things = self._key.pseudorandom("given", self._label(), self._things)
        return self._with(things ^ _hashed(columns))

    def of(self, *columns: pa.Array | FloatArray) -> Draws:
        """For things that these values tell apart, instead of rows: equal ones get the same numbers in every row."""
        return self._with(_hashed(columns))

    def bound(self, *further: Any) -> Draws:
        """Where what the step made of the whole column (plain data) is another, so are all numbers."""
        return Draws(self._key, [*self._step, *further], self._things, self._calls)

    def number(self) -> float:
        """A number strictly between 0 and 1 that belongs to the step, and to no thing."""
        return float(self._with(np.zeros((1, 2), dtype=np.uint64)).uniform()[0])

    def uniform(self) -> FloatArray:
        """Numbers strictly between 0 and 1, shape (n,)."""
        drawn: FloatArray = ((self._bits()[:, 0] >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return drawn

    def normal(self) -> FloatArray:
        """Standard normal numbers, shape (n,)."""
        size, sign = self._signed()
        from scipy.special import ndtri  # a quarter of a second, for commands that only read a spec

        drawn: FloatArray = -sign * ndtri(size / 2)
        return drawn

    def laplace(self) -> FloatArray:
        """Laplace numbers of scale 1, shape (n,)."""
        size, sign = self._signed()
        drawn: FloatArray = -sign * np.log(size)
        return drawn

    def below(self, limits: IntArray) -> IntArray:
        """A whole number from 0 to below each limit (at least 1), shape (n,)."""
        drawn = (self.uniform() * limits).astype(np.int64)
        return np.minimum(drawn, limits - 1)

    def _signed(self) -> tuple[FloatArray, FloatArray]:
        """Uniform numbers above 0 with 64 bits, so that tails have no gaps, and a sign for each, shapes (n,)."""
        bits = self._bits()
        return (bits[:, 0].astype(np.float64) + 0.5) * 2.0**-64, np.where(bits[:, 1] >> np.uint64(63), 1.0, -1.0)

    def _bits(self) -> Blocks:
        return self._key.pseudorandom("draws", self._label(), self._things)

    def _label(self) -> str:
        return json.dumps([*self._step, next(self._calls)], sort_keys=True)

    def _with(self, things: Blocks) -> Draws:
        return Draws(self._key, self._step, things, self._calls)


def _hashed(columns: Sequence[pa.Array | FloatArray]) -> Blocks:
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
    return np.ascontiguousarray(row_hashes(arrays, [str(place) for place in range(len(arrays))]).T)


def seen(column: pa.Array) -> pa.Array:
    """A column as draws look at it: without the last bits of floats, which processors may differ in."""
    return column.cast(pa.float32(), safe=False) if pa.types.is_float64(column.type) else column
