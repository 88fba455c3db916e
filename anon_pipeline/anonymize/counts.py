"""The best split of a large group of cells, found from counts instead of from the cells themselves.

A group of thousands of cells has only some hundred codes. The squared error of one-hot outputs depends only on how many
people have code i of one column and code j of another. So one pass over the group per pair of columns is enough for
every split along every axis, where scikit-learn adds up every output of every cell along every axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.anonymize.criterion import BINS, Criterion
from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.tables import Cells

#: A split that lowers the variance of the outputs by less does not count: the difference comes from rounding.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Table:
    """The counts of a group of cells.

    Attributes
    ----------
    codes : the codes (or bins) that occur, ascending, those of each column after those before, shape (r,)
    sums : people who bear the code, sums of their numeric outputs, and people by code of each one-hot category,
        shape (r, o)
    """

    codes: IntArray
    sums: FloatArray

    def without(self, part: Table) -> Table:
        """The table of the group without some of its cells, whose table is `part`."""
        sums = self.sums.copy()
        sums[np.searchsorted(self.codes, part.codes)] -= part.sums
        left = sums[:, 0] > 0
        return Table(self.codes[left], sums[left])


class Counter:
    """Counts groups of cells, and finds the best split of a group from its counts."""

    def __init__(self, features: Sequence[SplitFeature], cells: Cells, outputs: Criterion) -> None:
        self._features = features
        self._people = cells.counts.astype(np.float64)
        self._sums = outputs.numeric()
        self._sums *= self._people[:, None]
        #: Last code of each bin of the columns that have bins.
        self._last_code: dict[int, IntArray] = {}
        self._codes = []
        for column, domain in enumerate(cells.domains):
            code = cells.codes[:, column].astype(np.int64)
            strict = domain.nodes is not None and domain.nodes.strict
            if domain.ordered and len(domain) > BINS and not strict:
                bin_of_code, self._last_code[column] = _bins(domain.counts)
                code = bin_of_code[code]
            self._codes.append(code)
        self._sizes = [
            len(self._last_code[column]) if column in self._last_code else len(domain)
            for column, domain in enumerate(cells.domains)
        ]
        self._first_code = np.cumsum([0, *self._sizes])
        # Where the people by code of each one-hot category stand in a row of a table.
        numbers = 1 + self._sums.shape[1]
        ends = np.cumsum([numbers, *(self._sizes[column] for column, _, _ in outputs.one_hot)])
        self._places = {
            column: slice(start, end)
            for (column, _, _), start, end in zip(outputs.one_hot, ends, ends[1:], strict=False)
        }
        self._squared_scale = np.ones(ends[-1])
        self._squared_scale[0] = 0.0
        for column, _, scale in outputs.one_hot:
            self._squared_scale[self._places[column]] = scale**2

    def count(self, group: IntArray) -> Table:
        """The table of the cells at some positions."""
        people = self._people[group]
        weights = [people, *self._sums[group].T]
        placed = [_present(column[group], size) for column, size in zip(self._codes, self._sizes, strict=True)]
        present, place = [codes for codes, _ in placed], [places for _, places in placed]
        ends = np.cumsum([len(codes) for codes in present])
        rows = [slice(end - len(codes), end) for codes, end in zip(present, ends, strict=True)]
        sums = np.zeros((ends[-1], len(self._squared_scale)))
        for column, here in enumerate(rows):
            for position, weight in enumerate(weights):
                sums[here, position] = np.bincount(place[column], weights=weight, minlength=len(present[column]))
        for other, places in self._places.items():
            for column, here in enumerate(rows):
                if column in self._places and column < other:
                    continue  # the same counts as of `column` by `other`
                shape = len(present[column]), len(present[other])
                pair = place[column] * shape[1] + place[other]
                counted = np.bincount(pair, weights=people, minlength=shape[0] * shape[1]).reshape(shape)
                sums[here, places.start + present[other]] = counted
                if column in self._places:
                    sums[rows[other], self._places[column].start + present[column]] = counted.T
        codes = np.concatenate([first + codes for first, codes in zip(self._first_code, present, strict=False)])
        occurs = sums[:, 0] > 0
        return Table(codes[occurs], sums[occurs])

    def best_split(self, table: Table, k: int) -> tuple[int, float] | None:
        """Axis and threshold of the split that lowers the squared error most and leaves k people on both sides.

        A threshold lies halfway between two ranks that occur, as in scikit-learn, or between two bins. Of equally good
        splits the first is taken. None where no split lowers the error.
        """
        axis, rank, row = self._places_to_split(table)
        total = table.sums[: np.searchsorted(table.codes, self._first_code[1])].sum(axis=0)
        left = np.cumsum(table.sums[row], axis=0) - axis[:, None] * total  # each axis before has added up to the total
        people, of_left = total[0], left[:, 0]
        between = np.r_[(axis[1:] == axis[:-1]) & (rank[1:] != rank[:-1]), False]
        places = np.flatnonzero(between & (of_left >= k) & (people - of_left >= k))
        if not len(places):
            return None
        left, of_left = left[places], of_left[places]
        # With n = l + r people and sums S = L + R: L^2/l + R^2/r - S^2/n = (L - S l/n)^2 n/(l r).
        apart = left - total * (of_left / people)[:, None]
        gain = np.einsum("po,po,o->p", apart, apart, self._squared_scale) / (of_left * (people - of_left))
        best = int(np.argmax(gain))
        if gain[best] <= NOTHING:
            return None
        at = places[best]
        split, column = int(axis[at]), self._features[axis[at]].column
        if column in self._last_code:
            return split, float(self._last_code[column][rank[at]]) + 0.5
        return split, (int(rank[at]) + int(rank[at + 1])) / 2

    def _places_to_split(self, table: Table) -> tuple[IntArray, IntArray, IntArray]:
        """Axis, rank, and row of the table, axis by axis in the order of the ranks.

        Along an axis that may not split this group all its cells have the same rank.
        """
        axes, ranks, rows = [], [], []
        bounds = np.searchsorted(table.codes, self._first_code)
        for number, axis in enumerate(self._features):
            start, end = bounds[axis.column], bounds[axis.column + 1]
            code = table.codes[start:end] - self._first_code[axis.column]
            rank = code if axis.column in self._last_code else axis.rank[code] * axis.splits(code)
            order = np.argsort(rank, kind="stable")
            axes.append(np.full(end - start, number))
            ranks.append(rank[order])
            rows.append(start + order)
        return np.concatenate(axes), np.concatenate(ranks), np.concatenate(rows)


def _bins(people: IntArray) -> tuple[IntArray, IntArray]:
    """The bin of each code of an ordered column, of about equally many people each, and the last code of each bin.

    Missing values (code 0) have a bin of their own.
    """
    before = np.cumsum(people[1:]) - people[1:]
    _, place = np.unique(before * (BINS - 1) // max(int(people[1:].sum()), 1), return_inverse=True)
    bin_of_code = np.r_[0, place + 1]
    return bin_of_code, np.flatnonzero(np.r_[np.diff(bin_of_code) > 0, True])


def _present(code: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Codes of a column, at least all that occur, and the place of each cell's code among them, shape (n,)."""
    if size <= len(code):
        return np.arange(size), code
    present, place = np.unique(code, return_inverse=True)
    return present, place
