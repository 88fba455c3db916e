"""Whether control people are in the table after all: then attacks succeed on them as on anybody in it, and hide leaks.

People can equal one another by chance, the more the fewer columns there are. How many do is seen within the original:
whoever is not in it, and like those who are, equals somebody in it as often as its own people equal another of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

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
    """How many people equal somebody in the original in every column.

    Attributes
    ----------
    control : of the control people
    original : of the people in the original, another one of them
    within_control : of the control people, another one of them
    """

    control: Rate
    original: Rate
    within_control: Rate

    @classmethod
    def of(cls, original: pd.DataFrame, control: pd.DataFrame, ordered: Collection[str]) -> SharedPeople:
        """Count them by the columns of both tables; those that are `ordered` hold numbers or dates."""
        people, others = _hashes(original, ordered), _hashes(control, ordered)
        shared = int(np.isin(others, people).sum())
        twins = [wilson(_twins(hashes), len(hashes)) for hashes in (people, others)]
        return cls(wilson(shared, len(others)), *twins)

    def require_others(self, control: str, original: str) -> None:
        """
        Raises
        ------
        InputError
            If most of the control people are certainly in the original.
        """
        chance = max(self.original.high, self.within_control.high)  # the original may have been rid of its twins
        if self.control.low - chance > MOSTLY * (1 - chance):
            raise InputError(
                f"{control}: {percent(self.control.rate)} of its people equal somebody of {original} in every column, "
                f"where {percent(self.original.rate)} would by chance; control people are people who are not in the "
                "table, since otherwise no leak can show: name others, or leave --control out"
            )

    @property
    def note(self) -> str | None:
        """What a reader should know where more control people equal somebody in the original than chance explains."""
        if self.control.low <= self.original.high:
            return None
        seem = (self.control.rate - self.original.rate) / (1 - self.original.rate)
        return (
            f"{percent(self.control.rate)} of the control people equal somebody in the original in every column, where "
            f"{percent(self.original.rate)} would by chance: about {percent(seem)} of them seem to be in the table. "
            "They hide leaks, so each leak may be larger than is said here; take them out."
        )


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
