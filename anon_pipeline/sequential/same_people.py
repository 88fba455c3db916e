"""Whether identifiers still name the same people: those who are followed must be like their former selves.

Identifiers that are numbered anew for each table name somebody in every one, and nobody twice. Then the wrong people
are followed, and no two releases keep the promise. Most people stay as they were from one table to the next, or change
little. So what they are now belongs to the class that they had; of strangers it is independent. Nothing is kept for
this but what the release history has: the class of each person, and the tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import IntArray
from anon_pipeline.errors import InputError
from anon_pipeline.sequential.republication import PeopleByCohort, Routing

#: People count as strangers if nothing about them is more closely associated with their former class than where one in
#: ten has stayed as they were, or than so many standard deviations beyond that of strangers.
AS_THEY_WERE, DEVIATIONS = 0.1, 4.0
#: Nothing is said where half of the people could have stayed as they were, and still be taken for strangers.
AT_LEAST = 0.5


@dataclass(frozen=True)
class Association:
    """How closely one thing about people belongs to the class that they had.

    Attributes
    ----------
    chi_square : people times the share of the thing's variance that lies between classes; Pearson's of categories
    of_strangers : its mean where people are paired at random, exact for these classes and values
    deviation : its standard deviation then, as of a chi-square distribution
    most : its largest value, where the class says all about the thing
    """

    chi_square: float
    of_strangers: float
    deviation: float
    most: float

    @classmethod
    def of_categories(cls, former: IntArray, value: IntArray, people: IntArray) -> Association:
        """
        Parameters
        ----------
        former, value : numbers of the class and of the category of groups of people, shape (g,)
        people : the number of people of each group, shape (g,)
        """
        classes, row = np.unique(former, return_inverse=True)
        values, column = np.unique(value, return_inverse=True)
        number = float(people.sum())
        pairs, pair = np.unique(row * len(values) + column, return_inverse=True)
        together = np.bincount(pair, weights=people)
        of_row, of_column = np.bincount(row, weights=people), np.bincount(column, weights=people)
        expected = of_row[pairs // len(values)] * of_column[pairs % len(values)] / number
        chi_square = float((together**2 / expected).sum()) - number
        return cls._of(chi_square, (len(classes) - 1) * (len(values) - 1), number, min(len(classes), len(values)) - 1)

    @classmethod
    def of_numbers(cls, former: IntArray, value: IntArray, people: IntArray) -> Association:
        """The same of ordered values, which count by their ranks, so that a step up is less than a leap."""
        classes, row = np.unique(former, return_inverse=True)
        number = float(people.sum())
        centred = value - (value @ people) / number
        total = float(people @ centred**2)
        sums, of_row = np.bincount(row, weights=people * centred), np.bincount(row, weights=people)
        share = float((sums**2 / of_row).sum()) / total if total > 0 else 0.0
        return cls._of(
            number * share, len(classes) - 1 if total > 0 else 0, number, int(total > 0 and len(classes) > 1)
        )

    @classmethod
    def _of(cls, chi_square: float, degrees: int, number: float, most: int) -> Association:
        return cls(chi_square, degrees * number / (number - 1), math.sqrt(2 * degrees), number * most)

    @property
    def limit(self) -> float:
        """The statistic from which on these are no strangers."""
        return max(self.of_strangers + DEVIATIONS * self.deviation, self.if_so_many_stay(AS_THEY_WERE))

    @property
    def excess(self) -> float:
        """By how much these are more closely associated than strangers are expected to be."""
        return self.chi_square - self.of_strangers

    def if_so_many_stay(self, share: float) -> float:
        """The statistic that is expected where a share of people stay as they were, and all others are strangers."""
        return self.of_strangers + share**2 * max(0.0, self.most - self.of_strangers)

    @property
    def would_tell(self) -> bool:
        """Whether people of whom half stay as they were could not be taken for strangers."""
        return self.if_so_many_stay(AT_LEAST) >= self.limit + DEVIATIONS * self.deviation > 0


def are_strangers(cohorts: PeopleByCohort, former: Routing) -> bool:
    """Whether the people who are in the newest former release, too, are no more like themselves than strangers are.

    Where the tree has other columns than the table nothing can be told.

    Parameters
    ----------
    former : the tree of that release
    """
    if not former.has_columns(cohorts.cells.domains[:-1]):
        return False
    number = cohorts.numbers()
    class_ = np.where(number > 0, cohorts.former_class[np.maximum(number, 0)], -1)
    known = np.flatnonzero(class_ >= 0)
    cells, class_ = cohorts.cells.part(known), class_[known]
    if cells.n < 2:
        return False
    by_tree = Association.of_categories(class_, former.tree.apply(former.apply(cells)), cells.counts)
    if not by_tree.would_tell or by_tree.chi_square >= by_tree.limit:
        return False
    for place, domain in enumerate(cells.domains[:-1]):
        of = Association.of_numbers if domain.ordered else Association.of_categories
        column = of(class_, cells.codes[:, place].astype(np.int64), cells.counts)
        if column.chi_square >= column.limit > 0:
            return False
    return True


def require_same_people(cohorts: PeopleByCohort, former: Routing) -> None:
    """
    Raises
    ------
    InputError
        Where the identifiers do not name the people whom they named in the newest former release.
    """
    if are_strangers(cohorts, former):
        raise InputError(
            "person: those who are followed are no more like what they were in the last release than people who are "
            "paired at random; are the identifiers numbered anew for each table? Nobody can be followed by them: name "
            "a column that stays. If nearly everything about people changes, say so, for everybody to read: "
            "across_releases_unlike: <why>"
        )
