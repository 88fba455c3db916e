"""Demands on sensitive values, asked of what is left of classes of rows less groups of a table: arrays in, numbers out.

A table by town and illness tells how many people of a town are ill, and rows tell it of their classes. So it follows
for every union of classes less the groups that lie in them, and of groups less classes, however many people are left.
The union in which a value has the largest share is sought: for a given share it is the heaviest closed set of a
bipartite graph, which a flow finds (Picard 1976), and the share is raised to what that union has until no other has
more (Dinkelbach 1967). Then the demand itself is asked of it. So nothing is missed of demands that bound the share of
each value; of those that look at several values at once, sets of a few values are tried, and no mixtures of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.linked_releases.classes import (
    CountedColumn,
    KeptValues,
    LinkedClasses,
    joint_cells,
    told_together,
)
from anon_pipeline.privacy.linked_releases.demands import FailingDemand, histogram_of, is_as_fine
from anon_pipeline.privacy.linked_releases.tables import NOT_IN
from anon_pipeline.privacy.sensitive import SensitiveModel
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram

#: Of more values only the commonest are asked, and with more than few no sets of several.
MOST_VALUES, FEW_VALUES = 200, 6
#: How often unions are sought that others tell without the candidate; what is left then counts as new.
MOST_TOLD = 100
#: What all weights come to at most, since flows are counted in 32 bits, and more than any flow.
LARGEST, UNLIMITED = 2**30, 2**31 - 1


def failing_beside_groups(
    candidate: LinkedClasses, rows: Sequence[LinkedClasses], table: LinkedClasses
) -> list[FailingDemand]:
    """The demands of releases of rows that fail on what is left of their classes less groups of a table.

    What fails in the table alone, in the linked rows alone, or in the other rows beside the table, is not held against
    the candidate: of these people only a larger share counts than is told already.

    Parameters
    ----------
    candidate : rows, or the table itself
    rows : the other releases of rows, whose rows are linked
    """
    others = [of.members for of in rows]
    linked = others if candidate is table else [candidate.members, *others]
    readers = table.readers.union(*(of.readers for of in linked))
    failing = []
    for place, of in enumerate(linked, start=int(candidate is table)):
        for demand in (asked for asked in of.demands if asked.population_file is None):
            columns = of.protected if demand.sensitive_column is None else [demand.sensitive_column]
            people, is_counted = np.zeros(len(table.classes), dtype=bool), True
            for name, counted in product(sorted(columns), table.published.items()):
                if name == counted[0] and name not in of.protected:
                    people, is_counted = people | counted[1].published, False
                elif name in of.protected and _tells(*counted, name, of):
                    asked = _Asked(of, demand, name, counted[1], readers - {name})
                    people |= asked.newly(linked, [] if candidate is table else others)
            if (people & of.is_in).any():
                failing.append(FailingDemand(place, demand.demand(), int((people & of.is_in).sum()), is_counted))
    return failing


def _tells(name: str, counted: CountedColumn, protected: str, of: LinkedClasses) -> bool:
    """Whether a column of a table tells a protected one: it is the same, or that follows from it, as from a code."""
    if name == protected:
        return True
    codes = counted.codes[of.is_in]
    return len(np.unique(joint_cells([codes, of.protected[protected].codes[of.is_in]]))) == len(np.unique(codes))


@dataclass(frozen=True, eq=False)
class _Share:
    """The share of some values: of whom it is, and who has them.

    Attributes
    ----------
    has : who has one of the values, or may have it, shape (n,)
    counts : among whom the share is, shape (n,)
    """

    has: BoolArray
    counts: BoolArray

    @property
    def whole(self) -> int:
        """The whole, as shares are counted."""
        return LARGEST // max(1, len(self.has))

    def weights(self, share: IntArray) -> IntArray:
        """By how much each person exceeds a share, shape (n,)."""
        weights: IntArray = np.where(self.counts, self.whole * self.has.astype(np.int64) - share, 0)
        return weights

    def of(self, people: BoolArray) -> int:
        """The share among some people, rounded up."""
        return -(-self.whole * int((self.has & people).sum()) // max(1, int((self.counts & people).sum())))

    def apart(self, classes: IntArray, groups: IntArray) -> tuple[IntArray, IntArray]:
        """Both with their parts for themselves, where everybody of a class or group has the values, or nobody has.

        Of each part it then follows how many of it have them: of a class of twelve, eleven are in a group of which
        nobody is ill, and so the class tells whether the last one is.
        """
        parts = joint_cells([classes, groups]) + max(int(classes.max(initial=0)), int(groups.max(initial=0))) + 1
        by_class, by_group = (np.where(self._is_of_one(cells), parts, cells) for cells in (classes, groups))
        return by_class, by_group

    def _is_of_one(self, cells: IntArray) -> BoolArray:
        """Who is in a cell of which everybody has the values, or nobody, shape (n,)."""
        number = cells - NOT_IN
        people, having = np.bincount(number), np.bincount(number, self.has)
        is_of_one: BoolArray = ((having == 0) | (having == people))[number] & (cells != NOT_IN)
        return is_of_one

    def within(self, cells: IntArray) -> IntArray:
        """The share in the cell of each person, rounded up, shape (n,)."""
        number = cells - NOT_IN
        having, counted = (np.bincount(number, of) for of in (self.has & self.counts, self.counts))
        share: IntArray = np.ceil(self.whole * having / np.maximum(counted, 1)).astype(np.int64)[number]
        return share


@dataclass(frozen=True, eq=False)
class _Asked:
    """A demand of a release of rows on a column that a table of groups shows, too.

    Attributes
    ----------
    readers : the other columns that readers of any of the releases know
    """

    of: LinkedClasses
    demand: PrivacyModel
    column: str
    table: CountedColumn
    readers: frozenset[str]

    def newly(self, linked: Sequence[LinkedClasses], before: Sequence[LinkedClasses]) -> BoolArray:
        """Of whom more follows than the demand allows, shape (n,).

        Parameters
        ----------
        linked, before : all releases of rows, and those beside the candidate where that has rows
        """
        groups, shows = self.table.groups, self._who_is_shown(before)
        rows = [self._cells(linked), *([np.where(shows, self._cells(before), NOT_IN)] if shows.any() else [])]
        failing = [(cells, self._fails_in(cells)) for cells in (rows[0], groups)]
        found = np.zeros(len(groups), dtype=bool)
        for share in _shares(self.demand, self.of.protected[self.column], self.of.is_in):
            unions = [_Unions(*share.apart(cells, self._counted(groups, share))) for cells in rows]
            told = np.zeros(len(groups), dtype=np.int64)
            for cells, fails in failing:
                told = np.maximum(told, np.where(fails, share.within(cells), 0))
            for former in unions[1:]:
                for _ in range(MOST_TOLD):
                    if (union := self._failing(former, share, told)) is None:
                        break
                    told[union] = np.maximum(told[union], share.of(union))
            if (union := self._failing(unions[0], share, told)) is not None:
                found |= union
        return found

    def _cells(self, rows: Sequence[LinkedClasses]) -> IntArray:
        """The joint cells of those who are in the release with the demand, NOT_IN for others, shape (n,)."""
        return np.where(self.of.is_in, told_together(rows, self.readers), NOT_IN)

    def _who_is_shown(self, before: Sequence[LinkedClasses]) -> BoolArray:
        """Whose value some of these releases of rows show, as finely as the one that has the demand, shape (n,)."""
        codes = self.of.protected[self.column].codes
        showing = [of.is_in for of in before if is_as_fine(of, self.column, codes)]
        shown: BoolArray = np.any(showing, axis=0) if showing else np.zeros(len(codes), dtype=bool)
        return shown

    def _counted(self, groups: IntArray, share: _Share) -> IntArray:
        """The groups of which it is known how many have the values, NOT_IN for others, shape (n,).

        Readers know how many people a group has, so all with the values must be shown, or all without.
        """
        published, known = self.table.published, np.zeros(int(groups.max(initial=0)) + 2, dtype=bool)
        for those in (share.has, ~share.has):
            people, seen = (np.bincount(groups[of] - NOT_IN, minlength=len(known)) for of in (those, those & published))
            known |= (people > 0) & (people == seen)
        return np.where(known[groups - NOT_IN], groups, NOT_IN)

    def _fails_in(self, cells: IntArray) -> BoolArray:
        """Who is in a cell that does not meet the demand, shape (n,)."""
        among = cells != NOT_IN
        fails = np.zeros(len(cells), dtype=bool)
        if among.any():
            number = np.unique(cells[among], return_inverse=True)[1]
            fails[among] = ~self._holds(among, number)[number]
        return fails

    def _holds(self, among: BoolArray, number: IntArray) -> BoolArray:
        """Whether the cells of some people meet the demand."""
        names = self.of.protected if self.demand.sensitive_column is None else [self.column]
        counted = {name: histogram_of(self.of.protected[name], self.of.is_in, number, among) for name in names}
        return self.demand.holds(ClassStatistics(np.bincount(number).astype(np.int64), counted))

    def _failing(self, unions: _Unions, share: _Share, told: IntArray) -> BoolArray | None:
        """People of whom a larger share follows than is told, and than the demand allows; None if there are none."""
        bound, found = share.of(self.of.is_in), None
        while (union := unions.heaviest(share.weights(np.maximum(bound, told)))) is not None:
            rest = union & (told > bound)
            fresh, gain = union & ~rest, int(share.weights(told)[rest].sum())
            people = union if gain > 0 or not fresh.any() else fresh
            if not self._holds(people, np.zeros(int(people.sum()), dtype=np.int64))[0]:
                found = people
            size = int((share.counts & fresh).sum())
            if not size:
                break
            # Where it is raised above what is told of the rest, the union has failed already.
            bound = max(bound + 1, -(-(share.whole * int((share.has & fresh).sum()) + gain) // size))
        return found


def _shares(demand: PrivacyModel, column: KeptValues, is_in: BoolArray) -> Iterator[_Share]:
    """The shares that may be too large: of single values, of all values but one, and of sets of a few."""
    value_of = _values_as_judged(demand, column)
    gaps = np.zeros(len(is_in), dtype=bool)
    if column.values and column.values[0] is None and not column.missing_is_a_value:
        gaps = column.codes == 0
    of = value_of[column.codes]
    values, people = np.unique(of[is_in & ~gaps], return_counts=True)
    values = values[np.argsort(-people, kind="stable")][:MOST_VALUES]
    sizes = range(1, len(values) + gaps.any()) if len(values) <= FEW_VALUES else [1]
    sets = [list(chosen) for size in sizes for chosen in combinations(values.tolist(), size)]
    everybody = np.ones(len(is_in), dtype=bool)
    for has in (np.isin(of, chosen) & ~gaps for chosen in sets):
        yield _Share(has, everybody)
        if gaps.any():  # a value may be what they stand for, or they are not asked about
            yield _Share(has | gaps, everybody)
            yield _Share(has, ~gaps)
        if len(values) > FEW_VALUES:
            yield _Share(~has & ~gaps, ~gaps)


def _values_as_judged(demand: PrivacyModel, column: KeptValues) -> IntArray:
    """The value that each value is for a demand, such as its interval, shape (m,)."""
    each = np.arange(len(column.values))
    if not isinstance(demand, SensitiveModel):
        return each
    alone, once = csr_array(eye_array(len(each), dtype=np.int64)), np.ones(len(each), dtype=np.int64)
    stated = column.ordered, once, column.missing_is_a_value, column.categorical
    judged = demand.histograms(Histogram(column.values, alone, *stated))[0].counts
    value_of: IntArray = np.asarray(judged.argmax(axis=1)).ravel()
    return value_of


class _Unions:
    """The unions that follow from classes and groups: classes less groups that lie in them, and groups less classes."""

    def __init__(self, classes: IntArray, groups: IntArray) -> None:
        """
        Parameters
        ----------
        classes, groups : of each person, NOT_IN where what they have does not count there, shape (n,)
        """
        # Who is in none is behind the same vertex for both: they follow from nothing.
        _, left = np.unique(np.append(classes, NOT_IN), return_inverse=True)
        _, right = np.unique(np.append(groups, NOT_IN), return_inverse=True)
        self.left, self.right = left[:-1], np.where(right[:-1] > 0, right[:-1] + left.max(), 0)
        self.vertices = int(max(self.left.max(initial=0), self.right.max(initial=0))) + 1
        cells = np.unique(np.stack([self.right, self.left], axis=1)[self.left != self.right], axis=0)
        self.needs, self.needed = cells.T

    def heaviest(self, weights: IntArray) -> BoolArray | None:
        """Who is in a union with the largest sum of weights; None if none has a positive one.

        A union has its classes and not its groups. A group can be taken out only with all classes that it is in.
        """
        profit = _sums(self.left, weights, self.vertices) - _sums(self.right, weights, self.vertices)
        gains, costs = np.flatnonzero(profit > 0), np.flatnonzero(profit < 0)
        source, sink = self.vertices, self.vertices + 1
        starts = np.concatenate([np.full(len(gains), source), costs, self.needs])
        ends = np.concatenate([gains, np.full(len(costs), sink), self.needed])
        most = np.concatenate([profit[gains], -profit[costs], np.full(len(self.needs), UNLIMITED)])
        shape = (self.vertices + 2, self.vertices + 2)
        room = csr_array((most.astype(np.int32), (starts, ends)), shape=shape)
        flow = maximum_flow(room, source, sink)
        if flow.flow_value >= profit[gains].sum():
            return None
        left = csr_array(room - flow.flow)
        left.data = (left.data > 0).astype(np.int32)
        left.eliminate_zeros()
        chosen = np.zeros(self.vertices + 2, dtype=bool)
        chosen[breadth_first_order(left, source, return_predecessors=False)] = True
        union: BoolArray = chosen[self.left] & ~chosen[self.right]
        return union


def _sums(vertex: IntArray, weights: IntArray, vertices: int) -> IntArray:
    """The sum of whole weights by vertex, exactly, shape (vertices,)."""
    sums = np.zeros(vertices, dtype=np.int64)
    np.add.at(sums, vertex, weights)
    return sums
