"""Demands on sensitive values, asked of people who share their classes in several releases: arrays in, numbers out.

Readers know everybody's class in each release, and link rows by the columns that are kept. Of a joint cell they so know
how many have each sensitive value: that is what a class of one release shows, and so what its demands are asked of. A
union of joint cells holds where its cells do, as all demands but one kind of delta-disclosure are monotone.

Who cannot link rows, since the releases keep no column in common, or can link some only, has bounds on the same counts:
whatever follows from them for certain follows from the counts as well. So no more is asked for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.linked_releases.classes import KeptValues, LinkedClasses, joint_cells, told_together
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram, histogram

#: Why a demand on a population is not counted.
POPULATION = "nobody has counted the people of the population who match the classes of all releases"


@dataclass(frozen=True)
class FailingDemand:
    """A demand of a release that does not hold of joint cells.

    Attributes
    ----------
    of : the place of the release among candidate and others, 0 for the candidate
    demand : in words
    people : in joint cells that fail, where no part of the releases tells as much
    is_counted, why_not : whether it can be counted, and why not; then every joint cell of its own is taken to fail
    """

    of: int
    demand: str
    people: int
    is_counted: bool
    why_not: str = "steps draw its values or mix people"

    @property
    def sentence(self) -> str:
        """The demand, and why nobody can count it."""
        return self.demand if self.is_counted else f"{self.demand} (nobody can count it, since {self.why_not})"


def failing_demands(candidate: LinkedClasses, others: Sequence[LinkedClasses]) -> list[FailingDemand]:
    """The demands of any of the releases that fail on people who share their classes in all of them.

    Each demand is asked about the people of its own release, by the values that it shows. What the candidate alone, or
    the others without it, tell already is not held against the candidate: there the joint cell has the same share of
    each value as the class that they tell, and this fails as well. Where people were drawn, readers are taken to know
    who was: whoever does not know has unions of these joint cells.

    A demand on a population is about the people of the population who match classes. Those who match the classes of all
    releases are fewer, and nobody has counted them: every joint cell of its own is taken to fail.
    """
    if not others:
        return []
    candidate, others = candidate.members, [of.members for of in others]
    releases = (candidate, *others)
    joint = told_together(releases)
    failing = []
    for place, of in enumerate(releases):
        parts = [candidate], list(others)
        for demand in of.demands:
            fails = _fails(of, demand, joint)
            is_counted = fails is not None
            newly = of.is_in.copy() if fails is None else fails
            for part in parts:
                if newly.any() and not _brings_columns(demand, releases, part):
                    newly &= ~_is_told(of, demand, joint, part)
            if newly.any():
                why_not = [] if demand.population_file is None else [POPULATION]
                failing.append(FailingDemand(place, demand.demand(), int(newly.sum()), is_counted, *why_not))
    return failing


def _fails(
    of: LinkedClasses, demand: PrivacyModel, cells: IntArray, among: BoolArray | None = None
) -> BoolArray | None:
    """Who is in a cell that does not meet a demand, shape (n,); None where its values cannot be counted.

    Parameters
    ----------
    among : the people of the cells; by default those of the release
    """
    column = demand.sensitive_column
    if demand.population_file is not None or (column is not None and column not in of.protected):
        return None
    among = of.is_in if among is None else among
    fails = np.zeros(len(cells), dtype=bool)
    if among.any():
        number = joint_cells([cells[among]])
        sizes = np.bincount(number)
        names = of.protected if column is None else [column]
        counted = {name: histogram_of(of.protected[name], of.is_in, number, among) for name in names}
        fails[among] = ~demand.holds(ClassStatistics(sizes.astype(np.int64), counted))[number]
    return fails


def histogram_of(column: KeptValues, is_in: BoolArray, number: IntArray, among: BoolArray) -> Histogram:
    """The values of the people of each cell, beside those of everybody in the release."""
    ones, values = np.ones(len(number), dtype=np.int64), len(column.values)
    counts = histogram(number, column.codes[among], ones, (int(number.max()) + 1, values))
    table = np.bincount(column.codes[is_in], minlength=values).astype(np.int64)
    stated = column.ordered, table, column.missing_is_a_value, column.categorical
    return Histogram(column.values, counts, *stated)


def _is_told(of: LinkedClasses, demand: PrivacyModel, joint: IntArray, part: Sequence[LinkedClasses]) -> BoolArray:
    """Of whom some of the releases tell alone what their joint cell tells, shape (n,)."""
    cells, column = told_together(part), demand.sensitive_column
    if column is None or column not in of.protected:
        # Nothing is compared but who they are.
        same_people: BoolArray = _people(joint) == _people(cells)
        return same_people & any(release is of for release in part)
    codes = of.protected[column].codes
    tell = [release.is_in for release in part if is_as_fine(release, column, codes)]
    is_told: BoolArray = np.any(tell, axis=0) if tell else np.zeros(len(joint), dtype=bool)
    if not is_told.any():
        return is_told
    fails = _fails(of, demand, cells, is_told)
    alike, wider = (joint_cells([family, codes]) for family in (joint, cells))
    same = _people(alike) * _people(cells) == _people(wider) * _people(joint)
    is_told &= np.bincount(joint, ~same)[joint] == 0
    return is_told if fails is None else is_told & fails


def _brings_columns(demand: PrivacyModel, releases: Sequence[LinkedClasses], part: Sequence[LinkedClasses]) -> bool:
    """Whether fewer of a population may match all releases than match a part, with the same people in the classes.

    Ten people of 30 who are all in Ulm are a class of either release, and few of the population who are 30 live there.
    """
    if demand.population_file is None:
        return False
    others = [of.readers for of in releases if not any(of is told for told in part)]
    return not frozenset[str]().union(*others) <= frozenset[str]().union(*(of.readers for of in part))


def is_as_fine(release: LinkedClasses, column: str, codes: IntArray) -> bool:
    """Whether a release shows a column so finely that these values follow from it."""
    if column not in release.protected:
        return False
    own = release.protected[column].codes[release.is_in]
    return len(np.unique(own)) == int(joint_cells([own, codes[release.is_in]]).max(initial=-1)) + 1


def _people(cells: IntArray) -> IntArray:
    """How many people are in each person's cell, shape (n,)."""
    people: IntArray = np.bincount(cells)[cells]
    return people
