"""Whether control people are in the table after all: then attacks succeed on them as on anybody in it, and hide leaks.

People can equal one another by chance, the more the fewer columns there are. How many do is seen among people who are
in the table: whoever is not in it, and like those who are, equals somebody in it as often as these equal another.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from anon_pipeline.arrays import IntArray
from anon_pipeline.attack import generalized_values
from anon_pipeline.attack.rates import Rate, percent, wilson
from anon_pipeline.errors import InputError

#: From which share of the control people on they are not taken for people outside of the table.
MOSTLY = 0.5


@dataclass(frozen=True)
class SharedPeople:
    """How many control people equal somebody who is in the table.

    Attributes
    ----------
    control : of the control people
    chance : of people like them who are not in the table
    within_control : of the control people, another one of them
    whom : whom they equal, in words
    """

    control: Rate
    chance: Rate
    within_control: Rate
    whom: str

    @classmethod
    def of(cls, original: pd.DataFrame, control: pd.DataFrame, ordered: Collection[str]) -> SharedPeople:
        """Count those in the original by the columns of both tables; `ordered` ones hold numbers or dates."""
        people, others = _hashes(original, ordered), _hashes(control, ordered)
        shared = int(np.isin(others, people).sum())
        chance, within_control = (wilson(_twins(hashes), len(hashes)) for hashes in (people, others))
        return cls(wilson(shared, len(others)), chance, within_control, "in the original in every column")

    @classmethod
    def by_kept(
        cls, released: pd.DataFrame, original: pd.DataFrame, control: pd.DataFrame, ordered: Collection[str]
    ) -> SharedPeople | None:
        """Count those in the table by columns that it keeps, the columns of all three; None where chance is unknown."""
        rows, people, others = (_hashes(table, ordered) for table in (released, original, control))
        of_rows, of_people, within_control = (wilson(_twins(hashes), len(hashes)) for hashes in (rows, people, others))
        distinct, times = np.unique(rows, return_counts=True)
        of_person = np.where(np.isin(people, distinct), times[_places(distinct, people)], 0)
        once, again = (wilson(int((of_person >= least).sum()), len(people)) for least in (1, 2))
        chance, at_most = _chance(once.rate, again.rate), _chance(once.low, again.high)
        if chance is None or at_most is None or of_rows.high < of_people.low:  # the table was rid of its twins
            return None
        chances = replace(
            again,
            rate=max(chance, of_people.rate, within_control.rate),
            high=max(at_most, of_people.high, within_control.high),
        )
        shared = wilson(int(np.isin(others, rows).sum()), len(others))
        return cls(shared, chances, within_control, "in the table in every column that it keeps")

    def require_others(self, control: str) -> None:
        """
        Raises
        ------
        InputError
            If most of the control people are certainly in the table.
        """
        chance = max(self.chance.high, self.within_control.high)  # the original may have been rid of its twins
        if self.control.low - chance > MOSTLY * (1 - chance):
            raise InputError(
                f"{control}: {percent(self.control.rate)} of its people equal somebody {self.whom}, where "
                f"{percent(self.chance.rate)} would by chance; control people are people who are not in the table, "
                "since otherwise no leak can show: name others, or leave --control out"
            )

    @property
    def note(self) -> str | None:
        """What a reader should know where more control people equal somebody than chance explains."""
        if self.control.low <= self.chance.high:
            return None
        seem = (self.control.rate - self.chance.rate) / (1 - self.chance.rate)
        return (
            f"{percent(self.control.rate)} of the control people equal somebody {self.whom}, where "
            f"{percent(self.chance.rate)} would by chance: about {percent(seem)} of them seem to be in the table. "
            "They hide leaks, so each leak may be larger than is said here; take them out."
        )


def _chance(once: float, again: float) -> float | None:
    """How often somebody who is not in a table equals a row of it, at most; None where nothing bounds it.

    Parameters
    ----------
    once, again : shares of the people of the original who equal at least one row, and at least two

    Where a share `a` of them has their own row in the table, and chance gives a share `c` another, `once` is
    a + (1 - a) c, and `again` at least a c. So `c` is at most the smaller root of c^2 - (once + again) c + again. It
    may be that rows of people who are like nobody are left out; then `again` is larger, and so is the bound.
    """
    middle = (once + again) / 2
    under_root = middle * middle - again
    return middle - math.sqrt(under_root) if under_root >= 0 else None


def _places(distinct: IntArray, of: IntArray) -> IntArray:
    """Where each number stands in an ascending list that may lack it, shape (n,)."""
    return np.minimum(np.searchsorted(distinct, of), len(distinct) - 1)


def _hashes(people: pd.DataFrame, ordered: Collection[str]) -> IntArray:
    """A number for each row, the same for equal ones, however their values are stored, shape (n,)."""
    plain: dict[str, pd.Series] = {}
    for name in people:
        if name in ordered:
            plain[str(name)] = pd.Series(generalized_values.numbers(people[name]))
        else:
            plain[str(name)] = pd.Series(generalized_values.texts(people[name])).fillna("\0")  # which no text is
    return pd.util.hash_pandas_object(pd.DataFrame(plain), index=False).to_numpy().astype(np.int64)


def _twins(hashes: IntArray) -> int:
    """How many rows equal another one."""
    counts = np.unique(hashes, return_counts=True)[1]
    return int(counts[counts > 1].sum())
