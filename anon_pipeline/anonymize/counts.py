"""The best split of a large group of cells, found from counts instead of from the cells themselves.

A group of thousands of cells has only some hundred codes. The squared error of one-hot outputs depends only on how many
people have code i of one column and code j of another. So one pass over the group per pair of columns is enough for
every split along every axis, where scikit-learn adds up every output of every cell along every axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

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
        #: Last code of each bin of the columns that have bins.
        self._last_code: dict[int, IntArray] = {}
        #: The code, or the bin, of each cell, shape (C, p): the codes of a cell stand together, as they are read.
        self._codes = cells.codes
        for column, domain in enumerate(cells.domains):
            strict = domain.nodes is not None and domain.nodes.strict
            if domain.ordered and len(domain) > BINS and not strict:
                bin_of_code, self._last_code[column] = _bins(domain.counts)
                self._codes = self._codes.copy() if self._codes is cells.codes else self._codes
                self._codes[:, column] = bin_of_code[cells.codes[:, column]]
        self._sizes = [
            len(self._last_code[column]) if column in self._last_code else len(domain)
            for column, domain in enumerate(cells.domains)
        ]
        self._first_code = np.cumsum([0, *self._sizes])
        numbers = 1 + outputs.numeric(slice(0, 1)).shape[1]
        #: Numeric outputs that one column decides: per column their places in a row of a table, and the value per code.
        self._decided: list[list[tuple[int, FloatArray]]] = []
        #: All other numeric outputs: their place in a row of a table, and their sum over the people of each cell.
        self._summed = [
            (place, output * self._people) for place, output in enumerate(outputs.guidance_outputs().T, start=1)
        ]
        for column in range(len(cells.domains)):
            decided = [(1 + position, values) for position, values in outputs.outputs_of(column)]
            if column in self._last_code:  # the values of a bin differ
                own = cells.codes[:, column]
                self._summed += [(place, values[own] * self._people) for place, values in decided]
                decided = []
            self._decided.append(decided)
        projected = outputs.projected().T
        first = numbers - len(projected)
        self._summed += [(place, output * self._people) for place, output in enumerate(projected, start=first)]
        # Where the people by code of each one-hot category stand in a row of a table.
        ends = np.cumsum([numbers, *(self._sizes[column] for column, _, _ in outputs.one_hot)])
        self._places = {
            column: slice(start, end)
            for (column, _, _), start, end in zip(outputs.one_hot, ends, ends[1:], strict=False)
        }
        #: Pairs of columns, of which at least one decides an output.
        self._pairs = [
            pair
            for pair in combinations(range(len(cells.domains)), 2)
            if any(column in self._places or self._decided[column] for column in pair)
        ]
        self._squared_scale = np.ones(ends[-1])
        self._squared_scale[0] = 0.0
        for column, _, scale in outputs.one_hot:
            self._squared_scale[self._places[column]] = scale**2

    def count(self, group: IntArray) -> Table:
        """The table of the cells at some positions."""
        people = self._people[group]
        summed = [(place, output[group]) for place, output in self._summed]
        present, code = zip(
            *map(_present, self._codes.take(group, axis=0).T.astype(np.int64, order="C"), self._sizes), strict=True
        )
        ends = np.cumsum([len(codes) for codes in present])
        rows = [slice(end - len(codes), end) for codes, end in zip(present, ends, strict=True)]
        sums = np.zeros((ends[-1], len(self._squared_scale)))
        for column, here in enumerate(rows):
            for place, weight in [(0, people), *summed]:
                sums[here, place] = np.bincount(code[column], weights=weight, minlength=len(present[column]))
            for place, values in self._decided[column]:
                sums[here, place] = sums[here, 0] * values[present[column]]
            if column in self._places:
                sums[np.arange(here.start, here.stop), self._places[column].start + present[column]] = sums[here, 0]
        for column, other in self._pairs:
            shape = len(present[column]), len(present[other])
            if {column, other} & self._places.keys() or shape[0] * shape[1] <= len(group):
                pair = code[column] * shape[1] + code[other]
                both = np.bincount(pair, weights=people, minlength=shape[0] * shape[1]).reshape(shape)
                for by, of, counted in ((column, other, both), (other, column, both.T)):
                    if of in self._places:
                        sums[rows[by], self._places[of].start + present[of]] = counted
                    for place, values in self._decided[of]:
                        sums[rows[by], place] = np.einsum("bo,o->b", counted, values[present[of]])
            else:  # fewer cells than pairs of codes
                for by, of in ((column, other), (other, column)):
                    for place, values in self._decided[of]:
                        weight = values[present[of]][code[of]] * people
                        sums[rows[by], place] = np.bincount(code[by], weights=weight, minlength=len(present[by]))
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
