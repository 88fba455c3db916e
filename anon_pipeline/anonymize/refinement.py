"""After the tree: cells change classes, and classes are founded, where that makes classes tighter.

A tree parts people at one threshold after another, so its classes are boxes, and many have nearly 2k people because no
threshold parts them. Four changes are made, in rounds that end when none helps, or after so many:

- a cell moves to the class where it costs least (the exchange of J. A. Hartigan, "Clustering Algorithms", 1975,
  chapter 4, with a smallest size: no class falls below k people);
- where k is small, two cells of as many people change places, since hardly anybody can be spared;
- people whom their classes can spare found a new class of k (as groups are begun in the microaggregation of
  J. Domingo-Ferrer and V. Torra, DMKD 2005);
- cells move once more with the *set cover* beside the squared error, so that a class has few different values: the
  share of a column's span, or of its other categories, that stands in a class.

Who moves is decided by the quasi-identifiers alone, and by what they say of the guidance: the mean over a leaf of a
tree, never the one of a single person, which other columns decide. A cell moves as a whole. Where there are demands
beyond k, a change that would leave a class below one is not made; sensitive values choose nothing else. Sums run in
one order, and matrix products over whole numbers, so that the number of threads decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from anon_pipeline.anonymize.tree import Criterion, FloatArray, fit_tree
from anon_pipeline.tables import Cells, IntArray

BoolArray = npt.NDArray[np.bool_]
#: Which of some classes meet every demand, given which cells each of them has, a 0-1 matrix of shape (j, C).
Holds = Callable[[sparse.csr_array], BoolArray]

#: Classes that are looked at together: at most so many, and so many numbers of classes times categories.
CLASSES, NUMBERS = 500, 4_000_000
#: How many of the nearest classes cells are held against, and how many of those each cell may move to.
NEAR, CHOICES = 48, 4
#: How often classes are founded, each time by others; the founder's people come from so many classes beside its own.
COMPANIONS = (4, 4, 8, 16, 16, 16)
#: Rounds of moves in a row.
ROUNDS = 20
#: Up to this k cells change places, too: in small classes hardly anybody can be spared.
SWAPPED = 5
#: At most this share of a class moves in one round.
AT_ONCE = 0.1
#: A change must save this much of one person's variance.
LEAST = 1e-4
#: A leaf of so many people tells what the quasi-identifiers say of the guidance.
TELLING = 50
#: Weight of a column's set cover beside the share of its variance that is lost.
COVER = 2.5
#: How much of its price a value keeps for each cell of the class that bears it already: first much, so that a class is
#: rid of a value cell by cell, then nothing, which is the set cover.
PATIENCE = (0.8, 0.5, 0.0)


def refine(cells: Cells, class_of_cell: IntArray, k: int, spread: float, holds: Holds | None = None) -> IntArray:
    """The class of each cell, shape (C,), after the changes; each class has k people as before.

    Parameters
    ----------
    class_of_cell : classes 0 ... J - 1, numbered so that neighbours have near numbers (a tree's leaves, left to
        right); -1 for cells that are left out, and stay so
    holds : the demands, which the classes of `class_of_cell` meet; a change after which a class would not is not made
    """
    criterion = Criterion(replace(cells, guidance=_expected(cells, k)), spread, 0, at_once=False, weighed=True)
    refined = class_of_cell.copy()
    count = 0
    with threadpool_limits(1):  # several threads would mostly wait for each other over so little
        for members, group in _parts(cells, class_of_cell, criterion):
            part = Part(cells, criterion, members, group, k, COVER * spread, holds)
            part.improve()
            refined[members] = part.group + count
            count += part.classes
    return refined


def _expected(cells: Cells, k: int) -> IntArray:
    """The guidance that the quasi-identifiers alone would tell: each cell's share of its leaf's sum, shape (C, g)."""
    leaf = fit_tree(cells, max(k, TELLING), 0.0, "guidance", 0).apply(cells.codes)
    share = cells.counts / np.bincount(leaf, weights=cells.counts)[leaf]
    summed = np.stack([np.bincount(leaf, weights=one) for one in cells.guidance.T.astype(np.float64)], axis=1)
    return np.round(summed[leaf] * share[:, None]).astype(np.int64)


def _parts(cells: Cells, class_of_cell: IntArray, criterion: Criterion) -> Iterator[tuple[IntArray, IntArray]]:
    """The cells of so many classes as are looked at together, and the class of each, counted from 0.

    Cells go in the order of their codes, those of levels in the order of the levels, so that names decide nothing.
    """
    categories = sum(len(present) for _, present, _ in criterion.categories)
    at_once = min(CLASSES, max(64, NUMBERS // max(1, categories)))
    classes = int(class_of_cell.max()) + 1
    keys = [
        cells.codes[:, column] if domain.levels is None else np.r_[0, domain.levels + 1][cells.codes[:, column]]
        for column, domain in enumerate(cells.domains)
    ]
    order = np.lexsort((*keys[::-1], class_of_cell))
    ends = np.linspace(0, classes, -(-classes // at_once) + 1).astype(np.int64)
    cuts = np.searchsorted(class_of_cell[order], ends)
    for first, start, end in zip(ends, cuts, cuts[1:], strict=False):
        members = order[start:end]
        yield members, class_of_cell[members] - first


class Part:
    """Classes that stand beside each other, and the cells in them.

    Attributes
    ----------
    group : class of each cell, 0 ... J - 1, shape (c,)
    classes : J
    """

    def __init__(
        self,
        cells: Cells,
        criterion: Criterion,
        members: IntArray,
        group: IntArray,
        k: int,
        cover: float,
        holds: Holds | None = None,
    ) -> None:
        self.k = k
        self._members, self._cells, self._holds = members, len(cells.counts), holds
        self.group = group.copy()
        self.classes = int(group.max()) + 1
        self._people = cells.counts[members].astype(np.float64)
        # Rounded, so that the last bits, which depend on the order of values, decide between no two changes.
        self._scores = np.round(criterion.scores(members), 6)
        # Categories as places in one list of all values, with the squared scale and the cover of each column.
        places, self._scale, self._step = [], [], []
        self._values = 0
        for column, _, scale in criterion.categories:
            present, place = np.unique(cells.codes[members, column], return_inverse=True)
            places.append(place + self._values)
            self._values += len(present)
            self._scale.append(round(scale**2, 6))
            self._step.append(1 / max(1, len(cells.domains[column].values) - 1))
        self._place = np.stack(places, axis=1) if places else np.zeros((len(members), 0), dtype=np.int64)
        self._column = np.zeros(self._values, dtype=np.int64)
        for position, place in enumerate(self._place.T):
            self._column[place] = position
        # Ordered columns as shares of their span, with the cells that have a value in its order.
        self._spans: list[tuple[FloatArray, IntArray]] = []
        for column, domain in enumerate(cells.domains):
            known = np.zeros(0) if domain.positions is None else domain.positions.astype(np.float64)
            if len(known) and known.max() > known.min():
                value = np.r_[np.nan, (known - known.min()) / np.ptp(known)][cells.codes[members, column]]
                order = np.argsort(value, kind="stable")
                self._spans.append((value, order[: np.count_nonzero(~np.isnan(value))]))
        self._full_cover = cover
        self._cover = self._patience = 0.0
        self._count()

    def improve(self) -> None:
        """Move cells and found classes until neither saves anything, or for so many rounds."""
        self._settle_down()
        for rank in range(len(COMPANIONS)):
            if self._found(rank):
                self._settle_down()
        self._cover = self._full_cover
        for self._patience in PATIENCE:
            self._see(np.arange(self.classes))
            self._look_around()
            self._move()

    def _settle_down(self) -> None:
        self._look_around()
        self._move()
        if self.k <= SWAPPED:
            self._swap()
            self._look_around()
            self._move()

    # What is known of the classes.

    def _count(self) -> None:
        """People, sums of scores, and people and cells by value, of every class."""
        classes, values = self.classes, self._values
        self._size = np.bincount(self.group, weights=self._people, minlength=classes)
        weighted = (self._people[:, None] * self._scores).T
        self._total = np.stack([np.bincount(self.group, weights=one, minlength=classes) for one in weighted], axis=1)
        self._bearing = np.zeros(classes * values)
        self._bearers = np.zeros(classes * values)
        for place in self._place.T:
            key = self.group * values + place
            self._bearing += np.bincount(key, weights=self._people, minlength=classes * values)
            self._bearers += np.bincount(key, minlength=classes * values)
        self._mean = np.zeros_like(self._total)
        self._alike, self._present = np.zeros(classes), np.zeros(classes)
        self._share, self._one_more, self._one_less = (np.zeros(classes * values) for _ in range(3))
        self._see(np.arange(classes))

    def _see(self, changed: IntArray) -> None:
        """What follows from these for the classes that have changed."""
        size, shape = self._size[changed], (self.classes, self._values)
        scale, step = np.array(self._scale)[self._column], np.array(self._step)[self._column]
        self._mean[changed] = self._total[changed] / size[:, None]
        share = self._bearing.reshape(shape)[changed] / size[:, None]
        self._share.reshape(shape)[changed] = share
        # The distance to a class is that of the scores, and per column scale * (1 - 2 share of the value + alike).
        self._alike[changed] = np.einsum("jv,jv,v->j", share, share, scale) + sum(self._scale)
        if self._cover:
            bearers = self._bearers.reshape(shape)[changed]
            left = self._patience**bearers  # of the price of a value: 1 where nobody bears it
            self._present[changed] = np.einsum("jv,v->j", 1 - left, step)
            self._one_more.reshape(shape)[changed] = (1 - self._patience) * left * step
            self._one_less.reshape(shape)[changed] = (
                (1 - self._patience) * self._patience ** np.maximum(bearers - 1, 0) * step
            )
            self._ends = [_ends(value, order, self.group, self.classes) for value, order in self._spans]
            self._covered = self._present + sum(high - low for low, high, _, _ in self._ends)

    def _objective(self) -> float:
        """Squared error within classes, less what does not depend on them, and the set cover."""
        apart = np.einsum("jo,jo->j", self._total, self._mean) + self._size * (self._alike - sum(self._scale))
        cover = self._cover * (self._size * self._covered).sum() if self._cover else 0.0
        return float(cover - apart.sum())

    def _distance(self, cell: IntArray, group: IntArray) -> FloatArray:
        """Squared distance of cells to the centres of classes, shapes (q,) and (m, q) or (q,) to that of the second."""
        distance = self._alike.take(group)
        for score, mean in zip(self._scores.T, self._mean.T, strict=True):
            distance += (score.take(cell) - mean.take(group)) ** 2
        first = group * self._values
        for place, scale in zip(self._place.T, self._scale, strict=True):
            distance -= 2 * scale * self._share.take(first + place.take(cell))
        return np.maximum(distance, 0.0)

    def _apart(self, cell: IntArray, other: IntArray) -> FloatArray:
        """Squared distance of cells to others, shape (q,)."""
        apart = np.zeros(len(cell))
        for score in self._scores.T:
            apart += (score[cell] - score[other]) ** 2
        for place, scale in zip(self._place.T, self._scale, strict=True):
            apart += 2 * scale * (place[cell] != place[other])
        return apart

    def _entering(self, cell: IntArray, group: IntArray) -> FloatArray:
        """What it costs where cells enter classes, shapes (q,) and (m, q) to (m, q)."""
        people, size = self._people[cell], self._size.take(group)
        cost = self._distance(cell, group) * (size * people / (size + people))
        if self._cover:
            wider = np.zeros(group.shape)
            first = group * self._values
            for place in self._place.T:
                wider += self._one_more.take(first + place.take(cell))
            for (value, _), (low, high, _, _) in zip(self._spans, self._ends, strict=True):
                own = value[cell]
                wider += np.fmax(low.take(group) - own, 0) + np.fmax(own - high.take(group), 0)
            cost += self._cover * ((size + people) * wider + people * self._covered.take(group))
        return cost

    def _leaving(self, cell: IntArray) -> FloatArray:
        """What is saved where cells leave their classes, in which somebody stays, shape (q,)."""
        group, people = self.group[cell], self._people[cell]
        size = self._size[group]
        rest = np.maximum(size - people, 1e-9)
        saved = self._distance(cell, group) * (size * people / rest)
        if self._cover:
            narrower = np.zeros(len(cell))
            for place in self._place.T:
                narrower += self._one_less.take(group * self._values + place.take(cell))
            for (value, _), (low, high, second_low, second_high) in zip(self._spans, self._ends, strict=True):
                own = value[cell]
                narrower += np.where(own == low[group], second_low[group] - low[group], 0)
                narrower += np.where(own == high[group], high[group] - second_high[group], 0)
            saved += self._cover * (rest * narrower + people * self._covered[group])
        return saved

    # What is done.

    def _look_around(self) -> None:
        """Which classes are near each class, and to which of these each cell may move."""
        share = self._share.reshape(self.classes, self._values) * np.sqrt(np.array(self._scale))[self._column]
        centre = np.round(np.hstack([self._mean, share]) * 2**7)  # whole numbers, so that their products are exact
        square = (centre**2).sum(axis=1)
        apart = square[:, None] + square - 2 * (centre @ centre.T)
        apart = apart * self.classes + np.arange(self.classes)  # no two are equal
        np.fill_diagonal(apart, np.inf)
        near = min(NEAR, self.classes - 1)
        nearest = np.argpartition(apart, max(near - 1, 0), axis=1)[:, :near]
        self._near = np.take_along_axis(nearest, np.argsort(np.take_along_axis(apart, nearest, axis=1), axis=1), axis=1)
        around = np.ascontiguousarray(self._near.T)[:, self.group]
        cost = self._entering(np.arange(len(self.group)), around).T
        order = np.argsort(cost, axis=1, kind="stable")[:, :CHOICES]
        self._choice = np.ascontiguousarray(np.take_along_axis(around.T, order, axis=1).T)
        self._barred = np.zeros(self._choice.shape, dtype=bool)

    def _move(self) -> None:
        """Rounds of moves: several per class at once, and one per class where they hinder each other."""
        if self.classes == 1:
            return
        at_once = 0.0 if self._holds else AT_ONCE  # one per class can be taken back by itself
        before = self._objective()
        active = np.ones(len(self.group), dtype=bool)
        for _ in range(ROUNDS):
            cell = np.flatnonzero(active & (self._size[self.group] - self._people >= self.k))
            choice = self._choice[:, cell]
            cost = self._entering(cell, choice)
            cost[(choice == self.group[cell]) | self._barred[:, cell]] = np.inf
            best = cost.argmin(axis=0)
            saved = self._leaving(cell) - cost[best, np.arange(len(cell))]
            order = np.argsort(-saved, kind="stable")
            order = order[saved[order] > LEAST]
            if not len(order):
                return
            cell, best = cell[order], best[order]
            source, to = self.group[cell], self._choice[best, cell]
            chosen = self._compatible(source, to, self._people[cell], at_once)
            cell, best, source, to = cell[chosen], best[chosen], source[chosen], to[chosen]
            self._change(cell, to)
            if self._holds:
                fails = self._failing(np.union1d(source, to))
                back = fails[source] | fails[to]
                self._barred[best[back], cell[back]] = True
                self._change(cell[back], source[back])
            after = self._objective()
            if after >= before and at_once:
                self._change(cell, source)
                at_once = 0.0
                continue
            before = after
            touched = np.zeros(self.classes, dtype=bool)
            touched[source] = touched[to] = True
            active = touched[self.group] | touched[self._choice].any(axis=0)

    def _swap(self) -> None:
        """Rounds of exchanges of two cells of as many people, at most one exchange per class in a round."""
        barred = np.zeros(0, dtype=np.int64)
        touched = np.ones(self.classes, dtype=bool)
        for _ in range(ROUNDS):
            cell, other, saved = self._pairs(touched)
            key = cell * len(self.group) + other
            best = np.argsort(-saved, kind="stable")
            best = best[(saved[best] > LEAST) & ~np.isin(key[best], barred)]
            cell, other = cell[best], other[best]
            source, to = self.group[cell], self.group[other]
            chosen = self._compatible(source, to, self._people[cell], 0.0)
            cell, other, source, to = cell[chosen], other[chosen], source[chosen], to[chosen]
            if not len(cell):
                return
            both, former = np.r_[cell, other], np.r_[source, to]
            self._change(both, np.r_[to, source])
            if self._holds:
                fails = self._failing(former)
                back = np.tile(fails[source] | fails[to], 2)
                self._change(both[back], former[back])
                barred = np.r_[barred, (cell * len(self.group) + other)[back[: len(cell)]]]
            touched = np.zeros(self.classes, dtype=bool)
            touched[former] = True

    def _pairs(self, touched: BoolArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells, others of as many people in classes to which they may move, and what is saved where both change.

        Only pairs of which a class is `touched`.
        """
        by_class = np.argsort(self.group, kind="stable")
        starts = np.searchsorted(self.group[by_class], np.arange(self.classes + 1))
        own = self._distance(np.arange(len(self.group)), self.group)
        rank, cell = np.nonzero((self._choice != self.group) & (touched[self.group] | touched[self._choice]))
        to = self._choice[rank, cell]
        nearer = own[cell] - self._distance(cell, to)
        count = starts[to + 1] - starts[to]
        first = np.repeat(starts[to] - (np.cumsum(count) - count), count)
        other, cell, nearer = by_class[first + np.arange(len(first))], np.repeat(cell, count), np.repeat(nearer, count)
        alike = self._people[cell] == self._people[other]
        other, cell, nearer = other[alike], cell[alike], nearer[alike]
        people, source, to = self._people[cell], self.group[cell], self.group[other]
        nearer += own[other] - self._distance(other, source)
        nearer += people * (1 / self._size[source] + 1 / self._size[to]) * self._apart(cell, other)
        return cell, other, people * nearer

    def _failing(self, asked: IntArray) -> BoolArray:
        """Which of some classes do not meet the demands, as a mask over all, shape (J,)."""
        number = np.full(self.classes, -1)
        number[asked] = np.arange(len(asked))
        here = np.flatnonzero(number[self.group] >= 0)
        chosen = sparse.csr_array(
            (np.ones(len(here), dtype=np.int64), (number[self.group[here]], self._members[here])),
            shape=(len(asked), self._cells),
        )
        fails = np.zeros(self.classes, dtype=bool)
        fails[asked] = ~self._holds(chosen) if self._holds else False
        return fails

    def _compatible(self, source: IntArray, to: IntArray, people: FloatArray, at_once: float) -> IntArray:
        """Moves, in their order, that little change each other, as positions.

        The first of a class, and further ones while at most the share `at_once` of the class leaves or comes. A class
        keeps k people.
        """
        rank = np.arange(len(source))
        leaves, comes = _before(source, people), _before(to, people)
        few = (leaves + people <= at_once * self._size[source]) & (comes + people <= at_once * self._size[to])
        first = np.full(self.classes, len(source))
        np.minimum.at(first, source, rank)
        np.minimum.at(first, to, rank)
        alone = (first[source] == rank) & (first[to] == rank)
        return np.flatnonzero(alone | (few & (leaves + people <= self._size[source] - self.k)))

    def _change(self, cell: IntArray, to: IntArray) -> None:
        """Put cells into other classes."""
        people = self._people[cell]
        for group, sign in ((self.group[cell], -1.0), (to, 1.0)):
            np.add.at(self._size, group, sign * people)
            np.add.at(self._total, group, (sign * people)[:, None] * self._scores[cell])
            for place in self._place.T:
                key = group * self._values + place[cell]
                np.add.at(self._bearing, key, sign * people)
                np.add.at(self._bearers, key, sign)
        changed = np.union1d(self.group[cell], to)
        self.group[cell] = to
        self._see(changed)

    def _found(self, rank: int) -> bool:
        """Found classes, each by one who stands far from the centre of a class and the nearest who can be spared.

        By the one who stands furthest where `rank` is 0, by the next where it is 1, and so on.
        """
        spare = self._size - self.k
        if self.classes == 1 or np.maximum(spare, 0).sum() < self.k:
            return False
        own = self._distance(np.arange(len(self.group)), self.group)
        by_class = np.lexsort((-own, self.group))
        starts = np.searchsorted(self.group[by_class], np.arange(self.classes + 1))
        founder = by_class[np.minimum(starts[:-1] + rank, starts[1:] - 1)]
        # The people of each founder's class and of those near it: class of the founder, cell.
        near = self._near[:, : COMPANIONS[rank]]
        around = np.c_[np.arange(self.classes), near].ravel()
        count = (starts[1:] - starts[:-1])[around]
        first = np.repeat(starts[around] - (np.cumsum(count) - count), count)
        cell = by_class[first + np.arange(len(first))]
        of = np.repeat(np.repeat(np.arange(self.classes), near.shape[1] + 1), count)
        may = self._people[cell] <= spare[self.group[cell]]
        of, cell = of[may], cell[may]
        order = np.lexsort((cell, self._apart(cell, founder[of]), of))
        of, cell = of[order], cell[order]
        people = self._people[cell]
        stays = _before(of * self.classes + self.group[cell], people) + people <= spare[self.group[cell]]
        of, cell, people = of[stays], cell[stays], people[stays]
        so_far = _before(of, people)
        reached = np.bincount(of, weights=people, minlength=self.classes) >= self.k
        needed = (so_far < self.k) & reached[of]
        of, cell = of[needed], cell[needed]
        if not len(of):
            return False
        gain = np.bincount(of, weights=self._leaving(cell), minlength=self.classes) - self._error(of, cell)
        taken = np.zeros(self.classes, dtype=bool)
        former, before, classes = self.group.copy(), self._objective(), self.classes
        bounds = np.searchsorted(of, np.arange(classes + 1))
        companies = []
        for one in np.argsort(-gain, kind="stable").tolist():
            company = cell[bounds[one] : bounds[one + 1]]
            if gain[one] <= LEAST or not len(company):
                break
            if not taken[former[company]].any():  # so that each founding can be taken back by itself
                taken[former[company]] = True
                companies.append(company)
        self._settle(companies)
        if self._holds and companies:
            fails = self._failing(np.r_[np.flatnonzero(taken), classes : self.classes])
            holding = [
                company
                for number, company in enumerate(companies, start=classes)
                if not (fails[number] or fails[former[company]].any())
            ]
            self.group, self.classes = former.copy(), classes
            self._settle(holding)
        if self.classes == classes:
            return False
        self._count()
        if self._objective() >= before:
            self.group, self.classes = former, classes
            self._count()
            return False
        return True

    def _settle(self, companies: list[IntArray]) -> None:
        """Make classes of companies."""
        for company in companies:
            self.group[company] = self.classes
            self.classes += 1

    def _error(self, of: IntArray, cell: IntArray) -> FloatArray:
        """Squared error within groups of cells, shape (J,)."""
        people = self._people[cell]
        size = np.maximum(np.bincount(of, weights=people, minlength=self.classes), 1.0)
        error = np.zeros(self.classes)
        for score in self._scores.T:
            error += np.bincount(of, weights=people * score[cell] ** 2, minlength=self.classes)
            error -= np.bincount(of, weights=people * score[cell], minlength=self.classes) ** 2 / size
        for place, scale in zip(self._place.T, self._scale, strict=True):
            key, inverse = np.unique(of * self._values + place[cell], return_inverse=True)
            alike = np.bincount(inverse, weights=people) ** 2
            error += scale * (size - np.bincount(key // self._values, weights=alike, minlength=self.classes) / size)
        return error


def _before(group: IntArray, people: FloatArray) -> FloatArray:
    """How many people of the same group stand before each entry, shape (q,)."""
    order = np.argsort(group, kind="stable")
    so_far = np.cumsum(people[order]) - people[order]
    before = np.empty(len(group))
    before[order] = so_far - so_far[np.searchsorted(group[order], group[order])]
    return before


def _ends(value: FloatArray, order: IntArray, group: IntArray, classes: int) -> tuple[FloatArray, ...]:
    """The smallest and the largest known value of each class, and those next to them, each of shape (J,)."""
    order = order[np.argsort(group[order], kind="stable")]
    starts = np.searchsorted(group[order], np.arange(classes + 1))
    ordered = np.r_[value[order], 0.0]
    first, last = starts[:-1], starts[1:] - 1
    places = first, last, np.minimum(first + 1, last), np.maximum(last - 1, first)
    low, high, second_low, second_high = (np.where(last < first, 0.0, ordered[place]) for place in places)
    return low, high, second_low, second_high
