"""Statistics of classes, and the cost of inserting a cell into a class or removing it from one.

Most of a cell's cost is a sum over its values: it depends on the share of a category in the class, or on the distance
of a number from the class's mean. So every value has a cost in every class, kept in a table, and a cell costs the sum
over its values. All members of a class are compared with the same other classes. The costs are therefore looked up
once for each value that occurs in the class, which is far less often than once for each member.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from anon_pipeline.anonymize.criterion import Criterion
from anon_pipeline.arrays import FloatArray, IntArray

#: In a column of numbers or dates with at most so many different values each value has a cost of its own in a table;
#: columns with more are compared cell by cell.
TABULATED = 256
#: So many cells are compared with the classes near them at a time.
TOGETHER = 2048


@dataclass(frozen=True, eq=False)
class _Span:
    """An ordered column, as shares of its span.

    Attributes
    ----------
    value : the value of each cell, NaN where it is missing, shape (c,)
    order : the cells that have a value, ordered by it
    tabulated : the places of the column's values in the table of costs, None where they have no costs there
    different : the values that occur, by their places
    """

    value: FloatArray
    order: IntArray
    tabulated: slice | None
    different: FloatArray


class ClusterStatistics:
    """The statistics of some classes, and the cells in them.

    Attributes
    ----------
    group : class of each cell, 0 ... J - 1, shape (c,)
    classes : J
    people : people of each cell, float64 of shape (c,)
    size : people of each class, float64 of shape (J,)
    """

    def __init__(self, criterion: Criterion, group: IntArray) -> None:
        cells = criterion.cells
        self.people = cells.counts.astype(np.float64)
        # Rounded, so that the last bits, which depend on the order of values, decide between no two changes.
        self._scores = np.round(criterion.scores(), 6)
        squared_scale = {column: round(scale**2, 6) for column, _, scale in criterion.categories}
        # Values of all columns as places in one list, with the squared scale of their column and what another category
        # adds to its set cover; and the scores that such a value decides.
        places: list[IntArray] = []
        scales, steps = [np.zeros(0)], [np.zeros(0)]
        self._value_outputs: list[tuple[slice, int, FloatArray]] = []
        self._values = 0
        self._free = list(range(self._scores.shape[1]))
        self._spans: list[_Span] = []
        for column, domain in enumerate(cells.domains):
            occurs = np.bincount(cells.codes[:, column]) > 0
            present, place = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[cells.codes[:, column]]
            values = slice(self._values, self._values + len(present))
            tabulated = column in squared_scale or len(present) <= TABULATED
            if tabulated:
                places.append(place + self._values)
                self._values += len(present)
                scales.append(np.full(len(present), squared_scale.get(column, 0.0)))
                steps.append(np.full(len(present), 1 / max(1, len(domain.values) - 1) * (column in squared_scale)))
                for position, output in criterion.outputs_of(column):
                    self._value_outputs.append((values, position, np.round(output[present], 6)))
                    self._free.remove(position)
            positions = domain.without_extremes.positions
            known = np.zeros(0) if positions is None else positions.astype(np.float64)
            if len(known) and known.max() > known.min():
                share = np.r_[np.nan, (known - known.min()) / np.ptp(known)]
                value = share[cells.codes[:, column]]
                order = np.argsort(value, kind="stable")[: np.count_nonzero(~np.isnan(value))]
                self._spans.append(_Span(value, order, values if tabulated else None, share[present]))
        self._place = np.stack(places) if places else np.zeros((0, len(group)), dtype=np.int64)
        self._scale, self._step = np.concatenate(scales), np.concatenate(steps)
        self._constant = sum(float(self._scale[place[0]]) for place in self._place)
        self._cover = self._decay = 0.0
        self.arrange(group)

    def arrange(self, group: IntArray) -> None:
        """Put every cell into the class that is given, 0 ... J - 1."""
        self.group = group.copy()
        self.classes = classes = int(group.max()) + 1
        self.size = np.bincount(group, weights=self.people, minlength=classes)
        weighted = (self.people[:, None] * self._scores).T
        self._total = np.stack([np.bincount(group, weights=output, minlength=classes) for output in weighted], axis=1)
        # People and cells by class and value.
        shape, numbers = (classes, self._values), classes * self._values
        key = (group * self._values + self._place).ravel()
        people = np.tile(self.people, len(self._place))
        self._bearing = np.bincount(key, weights=people, minlength=numbers).reshape(shape)
        self._bearers = np.bincount(key, minlength=numbers).reshape(shape)
        self._mean = np.zeros_like(self._total)
        self._alike, self._present = np.zeros(classes), np.zeros(classes)
        self._share, self._value_cost, self._one_more, self._one_less = (np.zeros(shape) for _ in range(4))
        self._ends = [np.zeros((4, classes)) for _ in self._spans]
        self._refresh(np.arange(classes))

    def change(self, cell: IntArray, to: IntArray) -> None:
        """Put cells into other classes."""
        people, place = self.people[cell], self._place[:, cell]
        bearing, bearers = self._bearing.ravel(), self._bearers.ravel()
        for group, sign in ((self.group[cell], -1), (to, 1)):
            np.add.at(self.size, group, sign * people)
            np.add.at(self._total, group, (sign * people)[:, None] * self._scores[cell])
            key = (group * self._values + place).ravel()
            np.add.at(bearing, key, np.tile(sign * people, len(place)))
            np.add.at(bearers, key, sign)
        changed = np.union1d(self.group[cell], to)
        self.group[cell] = to
        self._refresh(changed)

    def weigh_cover(self, weight: float, decay: float) -> None:
        """From here on, the set cover has a weight beside the squared error.

        A value keeps the share `decay` of its cost for each cell of the class that has it. At 0 this is the set cover;
        above 0 a class can lose a value cell by cell.
        """
        self._cover, self._decay = weight, decay
        self._refresh_cover(np.arange(self.classes))

    def _refresh(self, changed: IntArray) -> None:
        """Compute anew what follows from the sums, for the classes that have changed."""
        size = self.size[changed][:, None]
        self._mean[changed] = self._total[changed] / size
        share = self._bearing[changed] / size
        self._share[changed] = share
        # Squared distance to a class: that of the scores, and per category scale * (1 - 2 share of the value + alike).
        value_cost = share * (-2 * self._scale)
        for values, position, output in self._value_outputs:
            value_cost[:, values] += (output - self._mean[changed, position][:, None]) ** 2
        self._value_cost[changed] = value_cost
        self._alike[changed] = np.einsum("jv,jv,v->j", share, share, self._scale) + self._constant
        if self._cover:
            self._refresh_cover(changed)

    def _refresh_cover(self, changed: IntArray) -> None:
        """Compute anew what the set cover needs, for the classes that have changed."""
        bearers, decay = self._bearers[changed], self._decay
        powers = decay ** np.arange(bearers.max(initial=0) + 1)
        left = powers.take(bearers)  # the share of a value's cost that is left: 1 where no cell has the value
        self._present[changed] = np.einsum("jv,v->j", 1 - left, self._step)
        one_more = (1 - decay) * left * self._step
        self._one_less[changed] = (1 - decay) * powers.take(np.maximum(bearers - 1, 0)) * self._step
        for span, ends in zip(self._spans, self._ends, strict=True):
            ends[:, changed] = _ends(span, self.group, changed)
            if span.tabulated is not None:
                low, high = ends[:2, changed]
                one_more[:, span.tabulated] = _outside(span.different, low[:, None], high[:, None])
        self._one_more[changed] = one_more
        self._covered = self._present + sum(high - low for low, high, _, _ in self._ends)

    def objective(self) -> float:
        """Squared error within classes, without the part that is the same for all classes, and the set cover."""
        apart = np.einsum("jo,jo->j", self._total, self._mean) + self.size * (self._alike - self._constant)
        cover = self._cover * (self.size * self._covered).sum() if self._cover else 0.0
        return float(cover - apart.sum())

    def distance(self, cell: IntArray, group: IntArray) -> FloatArray:
        """Squared distance of cells to the centres of classes, shape (q,)."""
        distance = self._alike.take(group)
        for position in self._free:
            distance += (self._scores[:, position].take(cell) - self._mean[:, position].take(group)) ** 2
        first, value_cost = group * self._values, self._value_cost.ravel()
        for place in self._place:
            distance += value_cost.take(first + place.take(cell))
        return np.maximum(distance, 0.0)

    def apart(self, cell: IntArray, other: IntArray) -> FloatArray:
        """Squared distance of cells to others, shape (q,)."""
        apart = np.zeros(len(cell))
        for score in self._scores.T:
            apart += (score.take(cell) - score.take(other)) ** 2
        for place in self._place:
            if scale := self._scale[place[0]]:
                apart += 2 * scale * (place.take(cell) != place.take(other))
        return apart

    def insertion_cost(self, cell: IntArray, group: IntArray) -> FloatArray:
        """The cost of inserting each cell into a class, shape (q,)."""
        wider = np.zeros(len(cell))
        if self._cover:
            first, one_more = group * self._values, self._one_more.ravel()
            for place in self._place:
                wider += one_more.take(first + place.take(cell))
            for span, (low, high, _, _) in zip(self._spans, self._ends, strict=True):
                if span.tabulated is None:
                    wider += _outside(span.value.take(cell), low.take(group), high.take(group))
        return self._cost(self.people.take(cell), group, self.distance(cell, group), wider)

    def choices(self, near: IntArray, most: int) -> tuple[IntArray, FloatArray]:
        """The classes near its own into which each cell is inserted at least cost, and the costs, both (m, c)."""
        of, value = np.nonzero(self._bearers)
        number = np.zeros(self._bearers.shape, dtype=np.int64)
        number[of, value] = np.arange(len(of))
        value_costs = [self._value_cost, self._one_more] if self._cover else [self._value_cost]
        at = near.take(of, axis=0) * self._values + value[:, None]
        value_costs = [value_cost.ravel().take(at) if self._values else value_cost for value_cost in value_costs]
        index = number.ravel().take(self.group * self._values + self._place) if self._values else self._place
        cells, most = len(self.group), min(most, near.shape[1])
        choice, costs = np.empty((most, cells), dtype=np.int64), np.empty((most, cells))
        for start in range(0, cells, TOGETHER):  # in parts that stay in the processor's cache
            cell = np.arange(start, min(start + TOGETHER, cells))
            around = near.take(self.group[cell], axis=0)
            cost = self._insertion_cost_near(cell, around, index[:, cell], value_costs)
            for rank in range(most):
                best = cost.argmin(axis=1)
                here = np.arange(len(cell)), best
                choice[rank, cell], costs[rank, cell] = around[here], cost[here]
                cost[here] = np.inf
        return choice, costs

    def _insertion_cost_near(
        self, cell: IntArray, around: IntArray, index: IntArray, value_costs: list[FloatArray]
    ) -> FloatArray:
        """The cost of inserting each cell into each of the classes around it, shape (q, n).

        The costs of a cell's values there are rows of `value_costs`; `index` has their numbers, shape (p, q).
        """
        columns = len(index)
        if columns:
            summed = sparse.csr_array(
                (np.ones(index.size), index.T.ravel(), np.arange(0, index.size + 1, columns)),
                shape=(len(cell), len(value_costs[0])),
            )
            distance, *wider = (summed @ value_cost for value_cost in value_costs)
        else:
            distance, wider = np.zeros(around.shape), [np.zeros(around.shape)]
        distance += self._alike.take(around)
        for position in self._free:
            distance += (self._scores[cell, position][:, None] - self._mean[:, position].take(around)) ** 2
        np.maximum(distance, 0.0, out=distance)
        if self._cover:
            for span, (low, high, _, _) in zip(self._spans, self._ends, strict=True):
                if span.tabulated is None:
                    wider[0] += _outside(span.value[cell][:, None], low.take(around), high.take(around))
        return self._cost(self.people[cell][:, None], around, distance, wider[0] if self._cover else distance)

    def _cost(self, people: FloatArray, group: IntArray, distance: FloatArray, wider: FloatArray) -> FloatArray:
        """By how much the objective rises if people enter classes at these distances, which widens their cover."""
        size = self.size.take(group)
        both = size + people
        cost = size * people
        cost /= both
        cost *= distance
        if self._cover:
            both *= wider
            both += people * self._covered.take(group)
            both *= self._cover
            cost += both
        return cost

    def removal_cost(self, cell: IntArray) -> FloatArray:
        """What is saved by removing each cell from its class, in which somebody stays, shape (q,)."""
        group, people = self.group.take(cell), self.people.take(cell)
        size = self.size.take(group)
        rest = np.maximum(size - people, 1e-9)
        saved = self.distance(cell, group) * (size * people / rest)
        if self._cover:
            narrower = np.zeros(len(cell))
            first, one_less = group * self._values, self._one_less.ravel()
            for place in self._place:
                narrower += one_less.take(first + place.take(cell))
            for span, (low, high, second_low, second_high) in zip(self._spans, self._ends, strict=True):
                own = span.value.take(cell)
                narrower += np.where(own == low.take(group), (second_low - low).take(group), 0)
                narrower += np.where(own == high.take(group), (high - second_high).take(group), 0)
            saved += self._cover * (rest * narrower + people * self._covered.take(group))
        return saved

    def near(self, most: int) -> IntArray:
        """The classes nearest to each class by their centres, at most `most` of them, shape (J, n)."""
        # Whole numbers, so that their products are exact; all in one array, which takes less time than steps apart.
        steps, scores = 2.0**7, self._mean.shape[1]
        centre = np.empty((self.classes, scores + self._values))
        np.multiply(self._mean, steps, out=centre[:, :scores])
        np.multiply(self._share, np.sqrt(self._scale) * steps, out=centre[:, scores:])
        np.rint(centre, out=centre)
        square = np.einsum("jv,jv->j", centre, centre)
        if square.max() < 2**24:  # no sum of products is larger, so that half the digits hold them all as exactly
            centre = centre.astype(np.float32)
        key = (centre @ centre.T).astype(np.float64, copy=False)
        key *= -2
        key += square  # the square of the own centre is the same all along a row
        key *= self.classes
        key += np.arange(self.classes)  # no two are equal
        np.fill_diagonal(key, 2.0**52)
        near = min(most, self.classes - 1)
        key.partition(max(near - 1, 0), axis=1)
        return np.sort(key[:, :near].astype(np.int64), axis=1) % self.classes

    def error(self, of: IntArray, cell: IntArray) -> FloatArray:
        """Squared error within groups of cells, shape (J,)."""
        people = self.people.take(cell)
        size = np.maximum(np.bincount(of, weights=people, minlength=self.classes), 1.0)
        error = np.zeros(self.classes)
        for score in self._scores.T:
            weighted = people * (own := score.take(cell))
            error += np.bincount(of, weights=people * own**2, minlength=self.classes)
            error -= np.bincount(of, weights=weighted, minlength=self.classes) ** 2 / size
        for place in self._place:
            if scale := self._scale[place[0]]:
                key = of * self._values + place.take(cell)
                bearing = np.bincount(key, weights=people, minlength=self.classes * self._values)
                bearing = bearing.reshape(self.classes, self._values)
                error += scale * (size - np.einsum("jv,jv->j", bearing, bearing) / size)  # sums of whole numbers
        return error


def _outside(value: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """How far values lie outside of intervals; not at all where they are missing."""
    outside: FloatArray = np.fmax(low - value, 0) + np.fmax(value - high, 0)
    return outside


def _ends(span: _Span, group: IntArray, classes: IntArray) -> tuple[FloatArray, ...]:
    """The smallest and the largest known value of some classes, and those next to them, each of shape (q,)."""
    number = np.full(int(group.max(initial=0)) + 1, len(classes), dtype=np.uint16)  # few bits sort in one pass
    number[classes] = np.arange(len(classes))
    of = number.take(group.take(span.order))
    inside = np.flatnonzero(of < len(classes))
    of, order = of.take(inside), span.order.take(inside)
    by_class = of.argsort(kind="stable")
    order = order.take(by_class)
    ends = np.cumsum(np.bincount(of, minlength=len(classes)))
    first, last = np.r_[0, ends[:-1]], ends - 1
    ordered = np.r_[span.value.take(order), 0.0]
    places = first, last, np.minimum(first + 1, last), np.maximum(last - 1, first)
    low, high, second_low, second_high = (np.where(last < first, 0.0, ordered[place]) for place in places)
    return low, high, second_low, second_high
