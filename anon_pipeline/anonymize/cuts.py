"""Cuts of unions of classes in two: many unions at once, along lines that follow from the key.

A line puts the people of a class into an order. It is a direction in the space of the tree's criterion: the sum of the
members' deviations from their mean, each with a sign drawn under the key. The covariance of such sums is that of the
class, so they mostly point to where the class is widest, and a cut across the line separates people who differ.
Where a hierarchy is strict the lines are the axes of the tree instead, since only these keep its nodes whole.

All sums are of whole numbers, so that no order of addition and no processor decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.tree import hash_of_codes
from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.privacy.statistics import ClassStatistics, Holds

#: Directions per class.
LINES = 8
#: Outputs of the criterion beyond this many are projected onto as many random sums of them.
OUTPUTS = 24
#: Outputs are rounded to this many steps per unit, directions to as many steps in all.
STEPS, DIRECTIONS = 2**8, 2**10
#: Of so many of a class's best cuts, one after which both halves hold is drawn at random.
CUTS = 8
#: So many numbers are worked on together, so that they stay in the processor's cache.
TOGETHER = 500_000


def rounded(outputs: FloatArray) -> npt.NDArray[np.float32]:
    """The criterion in whole numbers, at most `OUTPUTS` per cell, shapes (C, o) to (C, d)."""
    signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(outputs.shape[1], OUTPUTS))
    points = np.empty((len(outputs), min(outputs.shape[1], OUTPUTS)), dtype=np.float32)
    for start in range(0, len(outputs), TOGETHER // OUTPUTS):
        part = np.rint(outputs[start : start + TOGETHER // OUTPUTS] * STEPS)
        points[start : start + len(part)] = part if part.shape[1] <= OUTPUTS else np.rint(part @ signs / OUTPUTS**0.5)
    return points


@dataclass(frozen=True, eq=False)
class Tried:
    """The best cuts of some classes, before it is looked at whether both halves hold: no sensitive value decides them.

    Attributes
    ----------
    of : the class of each cut, shape (q,)
    drawn : the number drawn for each cut, shape (q,)
    cells : the cells of all classes in the order of each line, one line after another
    low, high : where among these the cells of the one half of each cut stand, and then of the others, shape (2 q,)
    """

    of: IntArray
    drawn: FloatArray
    cells: IntArray
    low: IntArray
    high: IntArray

    def __len__(self) -> int:
        return len(self.of)

    def half(self, place: int) -> IntArray:
        """The cells of the half that a cut takes off."""
        return self.cells[self.low[len(self) + place] : self.high[len(self) + place]]


class Cutter:
    """Finds cuts of classes after which both halves hold.

    Parameters
    ----------
    features : the axes of the tree
    codes : quasi-identifiers per cell, shape (C, p)
    points : the criterion as `rounded` gives it, shape (C, d)
    chance : draws the signs and the cut under the key
    holds : the demands
    least : no half with fewer people is tried
    """

    def __init__(
        self,
        features: tuple[SplitFeature, ...],
        codes: npt.NDArray[np.int32],
        points: npt.NDArray[np.float32],
        chance: Chance,
        holds: Holds,
        least: int,
    ) -> None:
        self._features = features if any(axis.within is not None for axis in features) else ()
        self._codes = codes
        self._points = points
        self._chance = chance
        self._holds = holds
        self.least = least
        self._signs = _signs(codes, chance)

    def halves(self, people: ClassStatistics, cells: IntArray, starts: IntArray) -> Iterator[IntArray]:
        """The cells of one half of each class that can be split.

        Parameters
        ----------
        people : what the demands look at, per cell
        cells : the cells of the classes, class after class
        starts : where those of each class begin
        """
        ends = np.append(starts[1:], len(cells))
        width = len(self._features) * self._points.shape[1] if self._features else LINES
        first = 0
        while first < len(starts):
            last = int(np.searchsorted(ends, starts[first] + max(1, TOGETHER // width), side="right"))
            last = max(last, first + 1)
            begin = starts[first]
            part = _Part(cells[begin : ends[last - 1]], starts[first:last] - begin, people.sizes)
            first = last
            tried = self._of_part(part)
            if tried is None:
                continue
            done = -1
            for place in self.fit(people, tried).tolist():
                if tried.of[place] != done:  # of a class's cuts the first
                    yield tried.half(place)
                done = int(tried.of[place])

    def tried(self, cells: IntArray, people: IntArray) -> Tried | None:
        """The cuts of a class that are judged, by its cells and the people of all cells; None where there are none."""
        if people[cells].sum() < 2 * self.least:
            return None
        return self._of_part(_Part(cells, np.zeros(1, dtype=np.int64), people))

    def fit(self, people: ClassStatistics, tried: Tried) -> IntArray:
        """The cuts after which both halves hold, class by class, and in the order of the number drawn for each."""
        good = self._holds(people.pool(_pooled(tried.cells, tried.low, tried.high, len(people.sizes))))
        fit = np.flatnonzero(good[: len(tried)] & good[len(tried) :])
        return fit[np.lexsort((tried.drawn[fit], tried.of[fit]))]

    def ways(self, people: ClassStatistics, tried: Tried | None) -> int:
        """From how many of the cuts of one class one is drawn, each as likely as the others."""
        return 0 if tried is None else len(set(tried.drawn[self.fit(people, tried)].tolist()))  # two lines can give one

    def _of_part(self, part: _Part) -> Tried | None:
        """The cuts of some classes that are judged; None where there are none."""
        places, spread = self._along_axes(part) if self._features else self._along_directions(part)
        lines = len(places)
        # Every class along every line is a segment; within it the cells go in the order of their places.
        segment = (np.arange(lines)[:, None] * part.classes + part.of).ravel()
        places = (places - places.min()).ravel()
        order = np.argsort((segment << 40) | places)  # cells at the same place are never separated
        places, cell = places[order], order % len(part.cells)
        bounds = (np.arange(lines)[:, None] * len(part.cells) + part.starts).ravel()
        left = _so_far(part.people[cell], bounds, segment)
        everybody = part.size[part.of][cell]
        between = np.append((places[1:] != places[:-1]) & (segment[1:] == segment[:-1]), False)
        cut = np.flatnonzero(between & (left >= self.least) & (everybody - left >= self.least))
        if not len(cut):
            return None
        if spread is None:
            values, length = self._points[part.cells].astype(np.int64)[cell], np.ones(1)
        else:
            values, length = places[:, None], np.maximum(spread.ravel(), 1.0)[segment[cut]]
        gain = _saved(values, part.people[cell], bounds, segment, left, cut) / length
        members = _so_far(self._chance.members[part.cells[cell]], bounds, segment)[cut]
        of = segment[cut] % part.classes
        best = np.lexsort((-gain, of))
        rank = np.arange(len(best)) - np.searchsorted(of[best], of[best])
        tried = best[rank < CUTS]
        drawn = self._chance.uniform("cut", members[tried])
        at, own = cut[tried] + 1, segment[cut[tried]]
        low, high = np.append(bounds[own], at), np.append(at, np.append(bounds[1:], len(cell))[own])
        return Tried(of[tried], drawn, part.cells[cell], low, high)

    def _along_directions(self, part: _Part) -> tuple[IntArray, FloatArray]:
        """The place of each cell along each direction of its class, (l, c), and the squared length of each, (l, J)."""
        points = self._points[part.cells].astype(np.float64)
        points -= np.rint(part.summed(points) / part.size[:, None])[part.of]
        signs = (self._signs[part.cells] >> np.arange(LINES, dtype=np.uint64)[:, None]) & np.uint64(1)
        weights = np.where(signs, part.people, -part.people).astype(np.float64)
        shape = LINES * part.classes, len(part.cells)
        pointer = np.append(np.arange(LINES)[:, None] * shape[1] + part.starts, weights.size)
        summing = sparse.csr_array((weights.ravel(), np.tile(np.arange(shape[1]), LINES), pointer), shape=shape)
        directions = np.asarray(summing @ points)
        longest = np.maximum(np.abs(directions).max(axis=1, keepdims=True), 1.0)
        directions = np.rint(directions * (DIRECTIONS / longest)).reshape(LINES, part.classes, -1)
        places = np.stack([np.einsum("cd,cd->c", points, direction[part.of]) for direction in directions])
        return places.astype(np.int64), np.einsum("ljd,ljd->lj", directions, directions)

    def _along_axes(self, part: _Part) -> tuple[IntArray, None]:
        """The rank of each cell along each axis, all alike where the axis may not split the class."""
        places = np.zeros((len(self._features), len(part.cells)), dtype=np.int64)
        for number, axis in enumerate(self._features):
            code = self._codes[part.cells, axis.column]
            places[number] = axis.rank[code]
            if axis.within is not None:
                node = axis.within[code]
                in_one_node = np.minimum.reduceat(node, part.starts) == np.maximum.reduceat(node, part.starts)
                places[number] *= in_one_node[part.of]
        return places, None


class _Part:
    """Some classes, one after another: their cells and people."""

    def __init__(self, cells: IntArray, starts: IntArray, people: IntArray) -> None:
        self.cells = cells
        self.starts = starts
        self.classes = len(starts)
        self.of = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(cells)))
        self.people = people[cells]
        self.size = np.add.reduceat(self.people, starts)

    def summed(self, points: FloatArray) -> FloatArray:
        """The sums of points over each class's people, shapes (c, d) to (J, d)."""
        return np.add.reduceat(points * self.people[:, None], self.starts, axis=0)


def _saved(
    values: IntArray, people: IntArray, bounds: IntArray, segment: IntArray, left: IntArray, cut: IntArray
) -> FloatArray:
    """By how much cuts lower the squared error of values within segments, shape (q,)."""
    summed = _so_far(values * people[:, None], bounds, segment)
    end = np.append(bounds[1:], len(segment)) - 1
    total, everybody = summed[end][segment[cut]], left[end][segment[cut]].astype(np.float64)
    below = left[cut].astype(np.float64)
    apart = summed[cut] - total * (below / everybody)[:, None]
    # Not einsum, which adds in an order that follows from the processor: cuts can be equally good but for rounding.
    saved: FloatArray = np.square(apart).sum(axis=1) * (everybody / (below * (everybody - below)))
    return saved


def _so_far(numbers: IntArray, bounds: IntArray, segment: IntArray) -> IntArray:
    """Sums within each segment up to each entry and including it, along the first axis."""
    summed = np.cumsum(numbers, axis=0)
    before: IntArray = summed[bounds] - numbers[bounds]
    summed -= before[segment]
    return summed


def _signs(codes: npt.NDArray[np.int32], chance: Chance) -> npt.NDArray[np.uint64]:
    """As many random bits per cell as there are lines, made from its values and the key, shape (C,)."""
    first_word, second_word = chance.members.view(np.uint64).T
    mixed = (hash_of_codes(codes) + first_word * np.uint64(0x9E3779B97F4A7C15)) ^ (
        second_word * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    signs: npt.NDArray[np.uint64] = mixed >> np.uint64(64 - LINES)
    return signs


def _pooled(cells: IntArray, low: IntArray, high: IntArray, width: int) -> sparse.csr_array:
    """Which cells stand from one place up to another, as a 0-1 matrix of shape (q, C)."""
    length = high - low
    pointer = np.append(0, np.cumsum(length))
    index = cells[np.arange(pointer[-1]) + np.repeat(low - pointer[:-1], length)]
    return sparse.csr_array((np.ones(len(index), dtype=np.int64), index, pointer), shape=(len(low), width))
