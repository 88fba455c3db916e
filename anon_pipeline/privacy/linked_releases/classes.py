"""What a release of rows tells together with other releases of the same people: arrays in, numbers out.

Readers are taken to know the quasi-identifiers of everybody, and so the class of everybody in each release. What they
must not have is the kept values of fewer people than k. A joint cell is the people who share their classes in all
releases. Rows of two releases can be linked by the columns that are kept, and then show the joint cell of a row. A
table of groups has no rows to link; it can be added and subtracted. A column that one release keeps and readers of
another know tells the rows of a class apart.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.linked_releases.tables import NOT_IN

#: No bound: for people who are in no release.
NO_BOUND = np.iinfo(np.int64).max


Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class KeptValues:
    """A kept column as a release shows it.

    Attributes
    ----------
    codes : the number of each person's value, shape (n,)
    values : the value of each number, as a `Histogram` has them
    ordered, missing_is_a_value, categorical : as in a `Histogram`
    """

    codes: IntArray
    values: tuple[object, ...]
    ordered: bool = False
    missing_is_a_value: bool = False
    categorical: bool = False


@dataclass(frozen=True, eq=False)
class CountedColumn:
    """A column by which a table of groups counts.

    Attributes
    ----------
    groups : the group of each person by the other columns, as far as readers know them, NOT_IN where it shows none of
        their groups, shape (n,)
    published : whether it shows the group of each person, shape (n,)
    codes : the number of each person's value, shape (n,)
    """

    groups: IntArray
    published: Flags
    codes: IntArray


@dataclass(frozen=True, eq=False)
class LinkedClasses:
    """The classes of a release beside others of the same people.

    Attributes
    ----------
    classes : the class of each person, NOT_IN for people who are not in the release, shape (n,)
    k : the fewest people of a class
    readers : the columns whose values its readers are taken to know of everybody
    kept : a number for each person's value in other columns that it shows, NOT_IN where it does not show it, shape (n,)
        each; by column
    demands : its demands beyond k
    protected : the columns on which any of the releases has a demand, as this one shows them; by column
    drawn : who was drawn into it, shape (n,), where it holds a part only of those who have its classes
    published : of a table of groups: its columns that readers do not know, or that are protected; by column
    """

    classes: IntArray
    k: int
    readers: frozenset[str] = frozenset()
    kept: Mapping[str, IntArray] = field(default_factory=dict)
    demands: Sequence[PrivacyModel] = ()
    protected: Mapping[str, KeptValues] = field(default_factory=dict)
    drawn: Flags | None = None
    published: Mapping[str, CountedColumn] = field(default_factory=dict)

    @property
    def members(self) -> LinkedClasses:
        """The same for readers who know who was drawn: nobody else is in it."""
        if self.drawn is None:
            return self
        return replace(self, classes=np.where(self.drawn, self.classes, NOT_IN), drawn=None)

    @property
    def is_in(self) -> Flags:
        """Who is in the release, shape (n,)."""
        is_in: Flags = self.classes != NOT_IN
        return is_in

    def told_to(self, readers: frozenset[str]) -> IntArray:
        """Its classes as readers tell them apart who know these columns, NOT_IN as in `classes`, shape (n,).

        A column that one spec keeps can be a quasi-identifier of another: who knows it knows whose row is which.
        """
        names = sorted(readers & set(self.kept))
        if not names:
            return self.classes
        joint = joint_cells([self.classes, *(self.kept[name] for name in names)])
        return np.where(self.classes == NOT_IN, NOT_IN, joint)


def with_few_candidates(candidate: LinkedClasses, others: Sequence[LinkedClasses]) -> int:
    """People who share their classes in all releases with fewer than k people, where fewer releases leave them more.

    Who is in one of the releases only counts too: their row is the one that is missing in the others. Releases can
    demand different k. Whom the candidate and the others each leave enough for the larger k must have so many in all of
    them; for anybody else the smallest k of the releases that show them counts. A release that demands less does not
    lower what the others keep from one another. Where people were drawn, they must have enough candidates before
    readers who do not know who was, and before those who do.
    """
    return int(_few(candidate, others).sum())


def known_by_difference(first: LinkedClasses, second: LinkedClasses) -> int:
    """People in unions of joint cells of fewer than k people that are sums and differences of classes.

    A union is known if a class of one release less a class of the other, or any longer sum of that kind, is exactly
    these people. Whom each release leaves enough for the larger k must be in a union of as many; for anybody else the
    smaller k counts. With two releases every known union follows from potentials of 0 and 1 of the classes: a cell is
    in it if its class of the one has 1 and that of the other has 0, and never the other way round. So the smallest
    known union with a given cell is a minimum cut, which is found exactly (Ford and Fulkerson 1956).
    """
    return int(_known(first, second).sum())


def newly_known_beside_groups(candidate: LinkedClasses, rows: Sequence[LinkedClasses], groups: LinkedClasses) -> int:
    """People whom rows of the candidate, linked with those of others, tell beside a table of groups.

    The joint cells of all rows are classes that nobody grouped, from which groups can be subtracted. Nobody counts whom
    any two of the releases tell, or all without the candidate.
    """
    if not rows:
        return 0
    rows = [of.members for of in rows]
    told = _few(candidate, rows) | _known(candidate, groups)
    known = np.zeros(len(told), dtype=bool)
    for part in as_strict(candidate, rows):
        before = told | _known(_together(part, groups.readers), groups, told)
        known |= _known(_together([candidate, *part], groups.readers), groups, before) & ~before
    return int(known.sum())


def newly_known_beside_rows(candidate: LinkedClasses, rows: Sequence[LinkedClasses]) -> int:
    """People whom a table of groups tells beside the linked rows of several releases, and not beside one of them."""
    told: Flags = np.any([_known(candidate, of) for of in rows], axis=0)
    known = np.zeros(len(told), dtype=bool)
    for part in as_strict(candidate, rows):
        linked = _together(part, candidate.readers)
        before = told | (linked.is_in & (_people_in(linked.classes) < linked.k))
        known |= _known(linked, candidate, before) & ~before
    return int(known.sum())


def _few(candidate: LinkedClasses, others: Sequence[LinkedClasses]) -> Flags:
    """Who has few candidates, as `with_few_candidates` says, shape (n,)."""
    if not others:
        return np.zeros(len(candidate.classes), dtype=bool)
    knowing = [(candidate, others)]
    if any(of.drawn is not None for of in (candidate, *others)):
        knowing.append((candidate.members, [of.members for of in others]))
    few = np.zeros(len(candidate.classes), dtype=bool)
    for mine, theirs in knowing:
        newly = _alike([mine, *theirs]) < _left(theirs)
        for k in sorted({of.k for of in theirs}):
            few |= newly & _few_of(mine, [of for of in theirs if of.k >= k])
    return few


def as_strict(candidate: LinkedClasses, others: Sequence[LinkedClasses]) -> Iterator[list[LinkedClasses]]:
    """The others that demand at least as much as a k, for each k up to the candidate's.

    A release that demands less must not lower what those that demand more keep from one another.
    """
    for k in sorted({min(of.k, candidate.k) for of in others}):
        yield [of for of in others if of.k >= k]


def _few_of(candidate: LinkedClasses, others: Sequence[LinkedClasses]) -> Flags:
    """The same for readers who know, or who do not know, who was drawn."""
    releases = (candidate, *others)
    together, apart = _alike(releases), np.minimum(_left([candidate]), _left(others))
    smallest = np.min([np.where(of.is_in, of.k, NO_BOUND) for of in releases], axis=0)
    is_in = np.any([of.is_in for of in releases], axis=0)
    few: Flags = is_in & (together < np.minimum(smallest, apart))
    for k in {of.k for of in releases}:
        demanded = np.any([of.is_in for of in releases if of.k >= k], axis=0)
        few |= demanded & (together < k) & (apart >= k)
    return few


def _left(releases: Sequence[LinkedClasses]) -> IntArray:
    """How many candidates releases leave each person, NO_BOUND for whom they do not have, shape (n,)."""
    left: IntArray = np.where(np.any([of.is_in for of in releases], axis=0), _alike(releases), NO_BOUND)
    return left


def _known(first: LinkedClasses, second: LinkedClasses, told: Flags | None = None) -> Flags:
    """Who is in a known union of few people, as `known_by_difference` says, shape (n,).

    Parameters
    ----------
    told : of whom it need not be asked, shape (n,)
    """
    readers = first.readers | second.readers
    left_class, right_class = first.told_to(readers), second.told_to(readers)
    is_in = (left_class != NOT_IN) | (right_class != NOT_IN)
    pairs, pair_of, people = np.unique(
        np.stack([left_class, right_class], axis=1)[is_in], axis=0, return_inverse=True, return_counts=True
    )
    # Who is in no class of a release is behind the same vertex for both: nothing is known of them by that release.
    left = np.where(pairs[:, 0] == NOT_IN, 0, 1 + pairs[:, 0])
    right = np.where(pairs[:, 1] == NOT_IN, 0, 1 + pairs[:, 1] + int(pairs[:, 0].max(initial=0)) + 1)
    k = np.minimum(np.where(left > 0, first.k, NO_BOUND), np.where(right > 0, second.k, NO_BOUND))
    # Whom each of them leaves enough for the larger k, both must leave as many.
    alone = np.full(len(pairs), NO_BOUND)
    np.minimum.at(alone, pair_of, np.minimum(_left([first]), _left([second]))[is_in])
    larger = max(first.k, second.k)
    k = np.where((left > 0) & (right > 0) & (alone >= larger), larger, k)
    is_asked = people < k
    if told is not None:
        is_asked &= np.bincount(pair_of, ~told[is_in], minlength=len(people)) > 0
    cuts = _Cuts(left, right, people)
    known = np.zeros(len(people), dtype=bool)
    for place in np.flatnonzero(is_asked).tolist():
        if known[place]:
            continue
        side = cuts.smaller_than(place, int(k[place]))
        if side is not None:
            # The same union is known for each of its cells, if it is too small for that one as well.
            union = np.fromiter((u in side and v not in side for u, v in zip(left, right, strict=True)), dtype=bool)
            known |= union & (k >= k[place])
            known[place] = True
    flags = np.zeros(len(is_in), dtype=bool)
    flags[is_in] = known[pair_of]
    return flags


def _together(releases: Sequence[LinkedClasses], readers: frozenset[str]) -> LinkedClasses:
    """Rows of several releases, linked, as one release whose classes are their joint cells."""
    readers = readers.union(*(of.readers for of in releases))
    classes = told_together(releases, readers)
    is_in = np.any([of.classes != NOT_IN for of in releases], axis=0)
    return LinkedClasses(np.where(is_in, classes, NOT_IN), min(of.k for of in releases), readers)


class _Cuts:
    """The joint cells as arcs between their classes, and cuts between them.

    A cell of w people is an arc of capacity w from its class of the one release to that of the other, and one without
    a limit back, since a cell cannot have a part of -1.
    """

    def __init__(self, left: IntArray, right: IntArray, people: IntArray) -> None:
        self.left, self.right, self.people = left.tolist(), right.tolist(), people.tolist()
        self.out: defaultdict[int, list[int]] = defaultdict(list)
        self.back: defaultdict[int, dict[int, int]] = defaultdict(dict)  # of a right vertex, the cell by its left one
        for cell, (u, v) in enumerate(zip(self.left, self.right, strict=True)):
            self.out[u].append(cell)
            self.back[v][u] = cell

    def smaller_than(self, cell: int, bound: int) -> set[int] | None:
        """The classes of potential 1 of a known union with this cell and fewer people than the bound; None if none."""
        flow: dict[int, int] = {}
        needed = bound
        while needed > 0:
            path = self._path(self.left[cell], self.right[cell], flow)
            if isinstance(path, set):
                return path
            room = [self.people[arc] - flow.get(arc, 0) for arc, forth in path if forth]
            more = min([needed, *room])
            for arc, forth in path:
                flow[arc] = flow.get(arc, 0) + (more if forth else -more)
            needed -= more
        return None

    def _path(self, start: int, end: int, flow: dict[int, int]) -> list[tuple[int, bool]] | set[int]:
        """A shortest path with room, as arcs forth or back; the vertices that can be reached if there is none."""
        if short := self._short_path(start, end, flow):
            return short
        came: dict[int, tuple[int, bool]] = {}
        reached, todo = {start}, deque([start])
        while todo:
            vertex = todo.popleft()
            forth = ((self.right[arc], arc, True) for arc in self.out[vertex] if self.people[arc] > flow.get(arc, 0))
            back = ((before, arc, False) for before, arc in self.back[vertex].items())
            for beyond, arc, is_forth in (*forth, *back):
                if beyond in reached:
                    continue
                came[beyond] = (arc, is_forth)
                if beyond == end:
                    return self._back_from(end, start, came)
                reached.add(beyond)
                todo.append(beyond)
        return reached

    def _short_path(self, start: int, end: int, flow: dict[int, int]) -> list[tuple[int, bool]]:
        """A path of one or three arcs; nearly all are, and a search would look at every class of a large group."""
        into = self.back[end]
        with_room = [arc for arc in self.out[start] if self.people[arc] > flow.get(arc, 0)]
        if into.get(start) in with_room:
            return [(into[start], True)]
        for arc in with_room:
            beside = self.back[self.right[arc]]
            fewer, more = (into, beside) if len(into) < len(beside) else (beside, into)
            for vertex in fewer:
                if vertex in more and self.people[into[vertex]] > flow.get(into[vertex], 0):
                    return [(arc, True), (beside[vertex], False), (into[vertex], True)]
        return []

    def _back_from(self, end: int, start: int, came: dict[int, tuple[int, bool]]) -> list[tuple[int, bool]]:
        path, vertex = [], end
        while vertex != start:
            arc, forth = came[vertex]
            path.append((arc, forth))
            vertex = self.left[arc] if forth else self.right[arc]
        return path


def _alike(releases: Sequence[LinkedClasses]) -> IntArray:
    """How many people share each person's classes, as readers of these releases tell them apart, shape (n,)."""
    return _people_in(told_together(releases))


def told_together(releases: Sequence[LinkedClasses], readers: frozenset[str] = frozenset()) -> IntArray:
    """The joint cell of each person, as readers of these releases (and others) tell people apart, shape (n,)."""
    readers = readers.union(*(of.readers for of in releases))
    return joint_cells([of.told_to(readers) for of in releases])


def joint_cells(families: Sequence[IntArray]) -> IntArray:
    """A number that people share who are in the same classes, shape (n,)."""
    numbers = np.zeros(len(families[0]), dtype=np.int64)
    for family in families:  # one after another, which takes a tenth of the time of all at once
        place = np.unique(family, return_inverse=True)[1]
        numbers = np.unique(numbers * (int(place.max(initial=0)) + 1) + place, return_inverse=True)[1]
    return numbers


def _people_in(classes: IntArray) -> IntArray:
    """How many people are in each person's class, shape (n,)."""
    _, place, people = np.unique(classes, return_inverse=True, return_counts=True)
    alike: IntArray = people.astype(np.int64)[place]
    return alike
