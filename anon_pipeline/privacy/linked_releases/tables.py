"""What several tables of groups of the same people tell together, and none of them alone: arrays in, a number out.

A person is in one group of each table. The unknowns are the joint cells: the people who share all their groups. Every
published count is an equation on them. A union of cells is known if it is a sum and difference of published counts (its
row lies in the row space of the equations), and it must not be if it has fewer people than the threshold. The smallest
known union with a given cell is found by a linear program. Its integer solutions are the known unions. For two tables
the matrix is totally unimodular, so that the program is exact; otherwise its answer is at most the true one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_array, vstack

from anon_pipeline.arrays import FloatArray, IntArray

Flags = npt.NDArray[np.bool_]

#: A person or a cell that an equation is not about.
NOT_IN = -1
#: By how much the solver may miss a bound, for a part of a cell and for a weight.
TOLERANCE, LIGHTER = 1e-6, 1e-3
#: With more cells below their bound the programs would take hours.
MOST_CELLS = 20_000
#: The solver's word for constraints that nothing meets.
INFEASIBLE = 2
#: The largest value of a column as the solver sees it, so that LIGHTER is small beside it.
LARGEST = 100.0


class Undecided(Exception):
    """Nobody can tell what the tables tell together."""


@dataclass(frozen=True, eq=False)
class LinkedTable:
    """A table of groups beside others of the same people.

    Attributes
    ----------
    groups : the group of each person, NOT_IN for people who are not counted in it, shape (n,)
    published : which groups it shows, shape (J,)
    threshold : the smallest count that it may show
    means : which groups show a mean, by averaged column, shape (J,) each
    dominance : how many times the largest value a total must be so that no rule of dominance can be broken
    """

    groups: IntArray
    published: Flags
    threshold: int
    means: Mapping[str, Flags] = field(default_factory=dict)
    dominance: float = 0.0

    def equations(self, with_figure: Flags) -> IntArray:
        """The shown group of each person, or NOT_IN; shape (n,)."""
        return np.where((self.groups != NOT_IN) & with_figure[self.groups], self.groups, NOT_IN)

    @property
    def everybody(self) -> IntArray:
        """The equation of the number of all people, shape (n,)."""
        return np.where(self.groups == NOT_IN, NOT_IN, 0)


def newly_known_counts(candidate: LinkedTable, others: Sequence[LinkedTable], known: IntArray | None = None) -> int:
    """At least how many counts below the threshold are known from all tables together, and not from fewer.

    Parameters
    ----------
    known : a number that people with the same known values share, shape (n,); readers know how many these are

    Raises
    ------
    Undecided
        If it cannot be worked out.
    """
    if not others:
        return 0
    tables = (candidate, *others)
    weights = np.ones(len(candidate.groups))
    bounds = np.full(len(weights), max(table.threshold for table in tables), dtype=np.float64)
    found = 0
    for classes in [None] if known is None else [None, known]:
        beside = [] if classes is None else [classes]
        of = [[table.equations(table.published), table.everybody, *beside] for table in tables]
        found = max(found, _newly_known(of, weights, bounds, classes))
    return found


def newly_known_means(candidate: LinkedTable, others: Sequence[LinkedTable], column: str, values: FloatArray) -> int:
    """At least how many means that must not be shown are known from all tables together, and not from fewer.

    A shown mean is taken for the exact total of its group: rounding is small beside a large group.

    Parameters
    ----------
    column : the averaged column
    values : each person's value, NaN where it is missing, shape (n,)

    Raises
    ------
    Undecided
        If it cannot be worked out.
    """
    tables = [table for table in (candidate, *others) if column in table.means]
    if column not in candidate.means or len(tables) < 2:
        return 0
    has_value = ~np.isnan(values)
    of = [[table.equations(table.means[column])[has_value]] for table in tables]
    people = np.ones(int(has_value.sum()))
    found = _newly_known(of, people, people * max(table.threshold for table in tables))
    sizes = np.abs(values[has_value])
    sizes = sizes / (sizes.max(initial=0) or 1) * LARGEST
    return max(found, _newly_known(of, sizes, sizes * max(table.dominance for table in tables)))


def _newly_known(
    of: Sequence[Sequence[IntArray]], weights: FloatArray, bounds: FloatArray, classes: IntArray | None = None
) -> int:
    """At least how many known unions are lighter than their bound, and than any that fewer tables tell.

    Parameters
    ----------
    of : the equations of each table, the candidate's first: per family the equation of each person, shape (n,)
    weights : of each person, shape (n,)
    bounds : a union with this person must not be lighter, shape (n,)
    classes : classes of people whose weights are known anyway, shape (n,)
    """
    everything = [family for table in of for family in table]
    joint = _System(everything, weights, bounds, classes)
    if joint.open.sum() > MOST_CELLS:
        raise Undecided(f"there are more than {MOST_CELLS:,} small joint cells")
    former = [family for table in of[1:] for family in table]
    fewer = [_System(equations, weights, bounds, classes) for equations in (of[0], former)]
    found = 0
    for place, weight, union in joint.light_unions():
        person = joint.first[place]
        if all(weight < system.surely_known(system.of_person[person]) - LIGHTER for system in fewer):
            found += 1
            joint.open[union] = False
    return found


class _System:
    """Equations on cells; people in the same equations are one cell, since they are in the same known unions."""

    def __init__(
        self, families: Sequence[IntArray], weights: FloatArray, bounds: FloatArray, classes: IntArray | None
    ) -> None:
        table = np.stack(families, axis=1)
        self.cells, self.first, self.of_person = np.unique(table, axis=0, return_index=True, return_inverse=True)
        n = len(self.cells)
        self.weights = np.bincount(self.of_person, weights, minlength=n)
        self.bounds = np.full(n, -np.inf)
        np.maximum.at(self.bounds, self.of_person, bounds)
        self.open: Flags = self.weights < self.bounds
        self.is_zero: Flags = self.weights >= self.bounds.max(initial=-np.inf)
        self.matrix = _incidence(self.cells)
        light = [] if classes is None else self._light_classes(classes, weights)
        self.in_part = vstack([csr_array((0, n)), *(csr_array(members[None, :]) for members in light)])

    def _light_classes(self, classes: IntArray, weights: FloatArray) -> list[FloatArray]:
        """The cells of each class that is lighter than the bounds, 1 for its members, shape (C,)."""
        light = np.flatnonzero(np.bincount(classes, weights) < self.bounds.max())
        of_cell = classes[self.first]
        order = np.argsort(of_cell, kind="stable")
        starts, ends = (np.searchsorted(of_cell[order], light, side) for side in ("left", "right"))
        members = np.zeros((len(light), len(of_cell)))
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            members[row, order[start:end]] = 1
        return list(members)

    def light_unions(self) -> Iterator[tuple[int, float, Flags]]:
        """A cell, the weight of the lightest known union with it, and its cells, while that is below its bound."""
        everything = np.flatnonzero(self.open)
        if not len(everything) or self._lightest(everything)[0] >= -LIGHTER:
            return
        todo = self._apart(everything)
        while todo:
            together = todo.pop()
            together = together[self.open[together]]
            if not len(together):
                continue
            excess, parts = self._lightest(together) if len(together) > 1 else self._lightest_of(int(together[0]))
            if excess >= -LIGHTER:
                # No light union has one of these cells, unless it is light for another cell with a larger bound.
                self.is_zero[together[self.bounds[together] >= self.bounds[self.open].max()]] = True
                self.open[together] = False
            elif len(together) == 1:
                place = int(together[0])
                self.open[place] = False
                yield place, excess + self.bounds[place], parts > TOLERANCE
            else:
                todo += [together[0::2], together[1::2]]

    def _apart(self, places: IntArray) -> list[IntArray]:
        """The cells in lots of which no two are in the same equation of a family, as far as that is possible."""
        families = [family for family in self.cells[places].T if family.min() != family.max()]
        lot = np.zeros(len(places), dtype=np.int64)
        taken: list[set[tuple[int, int]]] = []
        for number in np.argsort(-self.bounds[places], kind="stable"):
            used = {(place, int(family[number])) for place, family in enumerate(families) if family[number] != NOT_IN}
            free = (index for index, others in enumerate(taken) if not used & others)
            lot[number] = next(free, len(taken))
            if lot[number] == len(taken):
                taken.append(set())
            taken[lot[number]] |= used
        return [places[lot == index] for index in reversed(range(len(taken)))]

    def surely_known(self, place: int) -> float:
        """The weight of a light known union with this cell; infinite where the program found none of whole cells."""
        excess, parts = self._lightest_of(place)
        whole = np.all(np.abs(parts - np.rint(parts)) <= TOLERANCE)
        return excess + float(self.bounds[place]) if whole else np.inf

    def _lightest_of(self, place: int) -> tuple[float, FloatArray]:
        """The same as `_lightest` for a single cell, more exactly: without each other cell of its class at a time."""
        best = self._lightest(np.array([place]))
        of_class = self.in_part[:, [place]].nonzero()[0]
        if best[0] >= -LIGHTER or not len(of_class):
            return best
        others = [other for other in self.in_part[of_class].nonzero()[1].tolist() if other != place]
        return min((self._lightest(np.array([place]), other) for other in others), key=lambda solved: solved[0])

    def _lightest(self, places: IntArray, without: int | None = None) -> tuple[float, FloatArray]:
        """By how much the lightest known union with one of these cells exceeds its bound, and its part of each cell.

        The least value over mixtures of such unions: at most that of any of them, and infinite if there is none. A
        class whose weight is known anyway can be taken out of a union, so none is in it as a whole.
        """
        n = len(self.weights)
        of_places = np.zeros(n)
        of_places[places] = 1
        objective = self.weights - self.bounds * of_places
        most = np.where(self.is_zero & (of_places == 0), 0.0, 1.0)
        if without is not None:
            most[without] = 0
        constraints = [
            LinearConstraint(self.matrix, 0, most),
            LinearConstraint((self.matrix.T @ of_places)[None, :], 1, 1),
        ]
        if self.in_part.shape[0]:
            constraints.append(LinearConstraint(self.in_part @ self.matrix, -np.inf, self.in_part.sum(axis=1) - 1))
        solved = milp(self.matrix.T @ objective, constraints=constraints, bounds=(-np.inf, np.inf))
        if solved.status == INFEASIBLE:
            return np.inf, np.zeros(n)
        if solved.x is None:
            raise Undecided(f"its linear program was not solved ({solved.message})")
        return float(solved.fun), self.matrix @ solved.x


def _incidence(cells: IntArray) -> csr_array:
    """Which cells are in which equations, shape (C, m).

    Parameters
    ----------
    cells : the equation of each cell by family, NOT_IN for none, shape (C, families)
    """
    rows, columns, start = [], [], 0
    for family in cells.T:
        inside = np.flatnonzero(family != NOT_IN)
        _, number = np.unique(family[inside], return_inverse=True)
        rows.append(inside)
        columns.append(number + start)
        start += int(number.max(initial=-1)) + 1
    row, column = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.ones(len(row)), (row, column)), shape=(len(cells), max(start, 1)))
