"""Which values of a column a release may name: those that at least k of its people share.

A category is named where k people have it. A number is named where k people share every use of it: as the upper end of
their value, as the lower end, and as the number that stands for their value. It is a multiple of the column's grid that
k people have, or that nobody has, or at which a grid step with k people begins. Where people lie far apart, such
numbers are multiples of 2, 5, 10, 20, ... grid steps. Beyond the last of them an end stays open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import BoolArray, IntArray

#: Where the nearest multiple of a step may not be named, so many multiples are tried before those of a coarser step.
MULTIPLES = 10
#: A round number below which a few people lie is passed over where the steps without it are so many times as coarse.
MUCH_COARSER = 5
#: So many round numbers one after another, each with a few people below it, are passed over at most.
DEEPEST = 50
#: And so many with a few people exactly at them.
DEEPEST_AT = 3
#: No grid point beyond this is named, since the computations here use numbers up to twice as large.
LARGEST = 2**61


def coarser() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50, ..."""
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


@dataclass(frozen=True, eq=False)
class Values:
    """The places of a column's values on its grid, ascending, and their numbers of people; every array has shape (m,).

    Attributes
    ----------
    first, last : the places of the smallest and the largest number that a value stands for: grid point i is place 2 i,
        and everything between the points i and i + 1 is place 2 i + 1
    nearest : the grid point nearest to each value
    people : how many have the value, or one of the values that it stands for
    """

    first: IntArray
    last: IntArray
    nearest: IntArray
    people: IntArray


@dataclass(frozen=True, eq=False)
class Scale:
    """The numbers of a column that may be named, as grid points.

    Between two neighbouring points lie k people or nobody, or each of the two points is the value of k people.

    Attributes
    ----------
    points : ascending, shape (s,)
    of_few : which points are the value of some people, but of fewer than k; these people are placed a little above the
        point, so that no published value is exactly this number, shape (s,)
    between : the number that stands for the people between a point and the next; where they are too few for a number
        of their own, they go to the nearer point, shape (s,)
    apart : whether they are enough for a number of their own, shape (s,)
    open_below, open_above : whether some people, but fewer than k, lie beyond the first or the last point; that point
        is then no end either, so that people at it cannot be distinguished from people beyond it
    """

    points: IntArray
    of_few: BoolArray
    between: IntArray
    apart: BoolArray
    open_below: bool
    open_above: bool

    def lower(self, first: IntArray) -> tuple[IntArray, BoolArray]:
        """The lower end for each place, and whether it stays open."""
        place = np.searchsorted(self.points, first // 2, "right") - 1
        return self._at(place), place < int(self.open_below)

    def upper(self, last: IntArray) -> tuple[IntArray, BoolArray]:
        """The upper end for each place, and whether it stays open."""
        place = np.searchsorted(self.points, (last + 1) // 2, "left")
        place = place + (self._at(place, self.of_few) & (2 * self._at(place) == last))
        return self._at(place), place >= len(self.points) - int(self.open_above)

    def stand_in(self, first: IntArray, last: IntArray, nearest: IntArray) -> IntArray:
        """The number that stands for each value, between its ends; meaningless where no number may be named."""
        place = np.searchsorted(self.points, first // 2, "right") - 1
        below, above = self._at(place), self._at(place + 1)
        closer = np.where(nearest - below <= above - nearest, below, above)
        inside = (place >= 0) & (place < len(self.points) - 1)
        number = np.where(self._at(place, self.apart), self._at(place, self.between), closer)
        return np.where(inside & ((last > 2 * below) | self._at(place, self.of_few)), number, below)

    def _at(self, place: IntArray, of: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = self.points if of is None else of
        if not len(values):
            return np.zeros(place.shape, dtype=values.dtype)
        chosen: npt.NDArray[Any] = values[np.clip(place, 0, len(values) - 1)]
        return chosen


def named_codes(people: IntArray, k: int) -> BoolArray:
    """Which categories may be named, the missing value among them; `people` is how many have each."""
    named: BoolArray = people >= k
    return named


def named_ends(first: IntArray, last: IntArray, people: IntArray, named: BoolArray) -> tuple[IntArray, IntArray]:
    """The next places outwards that may be named, -1 where an end stays open.

    Where people lie beyond the outermost place that may be named, that place is no end either, so that people at it
    cannot be distinguished from people beyond it.

    Parameters
    ----------
    first, last : places in an order of m names
    people, named : how many people have each, and whether it may be named, shape (m,)
    """
    places = np.flatnonzero(named)
    if not len(places):
        return np.full(first.shape, -1), np.full(last.shape, -1)
    beyond = bool(people[: places[0]].any()), bool(people[places[-1] + 1 :].any())
    below, above = np.searchsorted(places, first, "right") - 1, np.searchsorted(places, last, "left")
    return (
        np.where(below < int(beyond[0]), -1, places[below]),
        np.where(above >= len(places) - int(beyond[1]), -1, places[np.minimum(above, len(places) - 1)]),
    )


def scale(values: Values, k: int) -> Scale:
    """The finest scale that can be made from a column without revealing a value of fewer than k people."""
    line = _Line.of(values)
    own = np.flatnonzero((line.first == line.last) & (line.first % 2 == 0) & (line.people >= k))
    starts, ends = np.r_[0, own + 1], np.r_[own, len(line.people)]
    people = line.reached[ends] - line.reached[starts]
    outer = np.r_[True, np.zeros(len(own), dtype=bool)] | np.r_[np.zeros(len(own), dtype=bool), True]
    points = (line.first[own] // 2).tolist()
    for stretch in np.flatnonzero(people >= np.where(outer, k, 2 * k)).tolist():
        below = None if stretch == 0 else int(line.first[own[stretch - 1]]) // 2
        above = None if stretch == len(own) else int(line.first[own[stretch]]) // 2
        points += line.split(int(starts[stretch]), int(ends[stretch]), below, above, k)
    ends_between = np.array(sorted(points), dtype=np.int64)
    between, apart = line.centres(ends_between, k)
    of_few = (line.at(ends_between) > 0) & (line.at(ends_between) < k)
    return Scale(ends_between, of_few, between, apart, bool(0 < people[0] < k), bool(0 < people[-1] < k))


@dataclass(frozen=True, eq=False)
class _Line:
    """The occupied places of a column's values.

    Attributes
    ----------
    first, last : places that people occupy, ascending; several where one code stands for values far apart, shape (a,)
    people, nearest : how many are there, and the mean of their nearest grid points, shape (a,)
    reached : how many people lie before each place, and all people, shape (a + 1,)
    """

    first: IntArray
    last: IntArray
    people: IntArray
    nearest: npt.NDArray[np.float64]
    reached: IntArray

    @classmethod
    def of(cls, values: Values) -> _Line:
        some = np.flatnonzero(values.people)
        first, last, people = values.first[some], values.last[some], values.people[some]
        starts = np.flatnonzero(np.r_[True, (np.diff(first) != 0) | (np.diff(last) != 0)]) if len(some) else some
        counts = np.add.reduceat(people, starts) if len(some) else people
        offset = (values.nearest[some] - first // 2) * people.astype(np.float64)
        mean = (np.add.reduceat(offset, starts) if len(some) else offset) / np.maximum(counts, 1)
        first, last = first[starts], last[starts]
        return cls(first, last, counts, first // 2 + mean, np.r_[0, np.cumsum(counts)])

    def at(self, points: IntArray) -> IntArray:
        """How many people may lie at each grid point."""
        before, until = np.searchsorted(self.last, 2 * points), np.searchsorted(self.first, 2 * points, "right")
        return self.reached[until] - self.reached[before]

    def nameable(self, point: int, k: int) -> bool:
        """Whether nobody lies at a grid point, or k people lie on the step that begins there."""
        start, end = (
            int(np.searchsorted(self.first, 2 * point)),
            int(np.searchsorted(self.last, 2 * point + 1, "right")),
        )
        if np.searchsorted(self.last, 2 * point) < start:  # one code stands for values on both sides
            return False
        nobody = start == len(self.first) or int(self.first[start]) > 2 * point
        return nobody or bool(self.reached[end] - self.reached[start] >= k)

    def split(self, start: int, end: int, below: int | None, above: int | None, k: int) -> list[int]:
        """Points between the people `start` to `end`; `below` and `above` are the points of k people next to them.

        Each stretch between two points has the finest step of `coarser` at which k people lie before the next multiple.
        It ends at the first multiple that may be named.
        """
        points: list[int] = []
        lowest, odd = divmod(int(self.first[start]), 2)
        beyond = int(np.searchsorted(self.last, 2 * lowest + 1, "right"))
        if below is None and not odd and self.reached[beyond] - self.reached[start + 1] >= k:
            start, below, points = start + 1, lowest, [lowest]
        while start < end:
            low, high, _ = self._next(start, end, (below, above), k)
            points += [point for point in (low, high) if point is not None and point != below]
            if high is None:
                break
            start, below = int(np.searchsorted(self.first, 2 * high, "right")), high
        return points

    def _next(
        self, start: int, end: int, beside: tuple[int | None, int | None], k: int, depth: int = 0
    ) -> tuple[int | None, int | None, int]:
        """The first two points of the people `start` to `end`, None for one that is not named, and their step.

        A few people below a round number hold up every step that has this number as a multiple. Where the next step
        that has not is much coarser, they go with the people above that number: the upper end follows from those, and
        the lower end is of the coarse step, so that the points say that there are a few and not where. The same is done
        where a few have a round number, and the next that may be named lies on a step much coarser than that of the
        people from that number on.
        """
        below, above = beside
        limit = LARGEST + 1 if above is None else above
        held: dict[int, int] = {}
        few_below = limit
        for step in coarser():
            nearest = self._multiple(start, step)
            if nearest < limit and not self._parted(start, end, nearest, k):
                if self._below(start, nearest) < k:
                    held.setdefault(nearest, step)
                    few_below = nearest
                continue
            multiples = range(nearest, min(nearest + MULTIPLES * step, limit), step)
            named = (point for point in multiples if self.nameable(point, k))
            high = next((point for point in named if self._parted(start, end, point, k)), None)
            if high is None and nearest < limit:
                continue
            # Only a step at which k people are enclosed may say where the first of them is.
            low = self.origin + ((int(self.first[start]) - 1) // 2 - self.origin) // step * step
            low = low if below is None else max(low, below)
            if step >= MUCH_COARSER * held.get(few_below, step) and depth < DEEPEST:
                passed, finer = self._next_over(few_below, end, beside, k, depth)
                if passed is not None and finer < step:
                    return None if high is None else low, passed, finer
            if nearest != high and depth < DEEPEST_AT:
                passed, finer = self._next_over(nearest, end, beside, k, depth)
                if passed is not None and MULTIPLES * finer <= step:
                    return None if high is None else low, passed, finer
            return (None if high is None and above is None else low), high, step
        raise AssertionError

    @cached_property
    def origin(self) -> int:
        """A power of ten below everybody: multiples from there are those from 0, but none is rounded towards 0."""
        return -int(10 ** len(str(int(np.abs(np.r_[self.first[:1], self.last[-1:]]).max()))))

    def _multiple(self, start: int, step: int) -> int:
        """The first multiple of a step above the place `start`."""
        return int(self.origin - (self.origin - int(self.last[start]) // 2 - 1) // step * step)

    def _next_over(
        self, few: int, end: int, beside: tuple[int | None, int | None], k: int, depth: int = 0
    ) -> tuple[int | None, int]:
        """The second point of the people from `few` to `end`, and its step; None where it is not named."""
        over = int(np.searchsorted(self.first, 2 * few))
        if over >= end or int(np.searchsorted(self.last, 2 * few)) != over:  # nobody, or a code lies on both sides
            return None, 0
        _, passed, finer = self._next(over, end, beside, k, depth + 1)
        return passed, finer

    def _parted(self, start: int, end: int, point: int, k: int) -> bool:
        """Whether k of the people from `start` to `end` lie below a point, and k or nobody above it."""
        rest = self.reached[end] - self.reached[np.searchsorted(self.first, 2 * point, "right")]
        return self._below(start, point) >= k and not 0 < rest < k

    def _below(self, start: int, point: int) -> int:
        """How many people from `start` on lie below a point."""
        return int(self.reached[np.searchsorted(self.last, 2 * point)] - self.reached[start])

    def centres(self, points: IntArray, k: int) -> tuple[IntArray, BoolArray]:
        """The number that stands for the people between each point and the next, and whether they are enough."""
        after = np.searchsorted(self.last, 2 * points, "right")
        before = np.searchsorted(self.last, 2 * points[1:], "left")
        apart = np.zeros(len(points), dtype=bool)
        apart[:-1] = self.reached[before] - self.reached[after[:-1]] >= k
        between = points.copy()
        for gap in np.flatnonzero(apart).tolist():
            inside, low, high = slice(after[gap], before[gap]), int(points[gap]), int(points[gap + 1])
            people = self.people[inside]
            mean = low + float(((self.nearest[inside] - low) * people).sum() / people.sum())
            end = low if mean - low <= high - mean else high
            between[gap] = end
            for step in coarser():
                if step > high - low:
                    break
                number = self._near(mean, step, low, high, k) if step * 10 >= high - low else None
                if number is not None and abs(number - mean) <= abs(end - mean):
                    between[gap] = number
                    break
        return between, apart

    def _near(self, mean: float, step: int, low: int, high: int, k: int) -> int | None:
        """The multiple nearest to a mean, or that on its other side if the first may not be named; None for neither."""
        both = (math.floor(mean / step) * step, math.ceil(mean / step) * step)
        for multiple in sorted(both, key=lambda multiple: abs(multiple - mean)):
            number = min(max(multiple, low), high)
            if number in (low, high) or self.nameable(number, k):
                return number
        return None
