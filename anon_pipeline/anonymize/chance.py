"""Random decisions under the private key: nobody without the key can foretell how the repair of classes decides.

A decision depends on the key and on the people it is about, and on nothing else. An attacker who has the code and the
release cannot draw it again. A repeated release draws the same decisions, so averaging over releases gains nothing.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, time

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.keys import Key
from anon_pipeline.tables import Cells, Domain


class Chance:
    """Random numbers for groups of people, each group known by the sum of its members' numbers.

    Parameters
    ----------
    key : the dataset's private key; without one nothing is random, and every number drawn is 1
    members : two whole numbers per cell, shape (C, 2), made from the key, the cell's values and its number of people
    """

    def __init__(self, key: Key | None, members: IntArray) -> None:
        self.key = key
        self.members = members

    @classmethod
    def of(cls, key: Key, cells: Cells) -> Chance:
        """Chance for the people of some cells, which differ by their quasi-identifiers and their number of people."""
        known = np.zeros((len(cells.counts), 2), dtype=np.uint64)
        for column, domain in enumerate(cells.domains):
            known = key.pseudorandom("people", domain.name, known + _names(domain)[cells.codes[:, column]])
        return cls(key, known.view(np.int64) * cells.counts[:, None])

    @classmethod
    def none(cls, cells: Cells) -> Chance:
        """No randomness, for demands that depend on public facts only: class sizes, and the people of a population."""
        return cls(None, np.zeros((len(cells.counts), 2), dtype=np.int64))

    def joined(self, chosen: sparse.csr_array) -> IntArray:
        """The numbers of groups of cells, shape (g, 2); `chosen` is a 0-1 matrix of shape (g, C)."""
        numbers: IntArray = chosen @ self.members
        return numbers

    def uniform(self, decision: str, people: IntArray) -> FloatArray:
        """Numbers strictly between 0 and 1 for one kind of decision about groups of people, shapes (g, 2) to (g,)."""
        if self.key is None:
            return np.ones(len(people))
        drawn = self.key.pseudorandom("decision", decision, people.view(np.uint64))[:, 0]
        return ((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _names(domain: Domain) -> npt.NDArray[np.uint64]:
    """Two numbers for every value of a column, a missing value first, shape (m + 1, 2).

    A whole number has those that it has among fractions, and a day those of its midnight. Other people's values decide
    whether a column has fractions or times of day, and would else draw everything anew, a second answer about all.
    """
    values = domain.readable(domain.values) if domain.ordered else domain.values
    if not domain.ordered and domain.storage in ("FLOAT", "DOUBLE"):
        values = values.astype(np.float64)
    named = (None, *values.tolist())
    names = [hashlib.blake2b(_name(value).encode(), digest_size=16).digest() for value in named]
    return np.frombuffer(b"".join(names), dtype="<u8").reshape(-1, 2).astype(np.uint64)


def _name(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value.date() if isinstance(value, datetime) and value.time() == time.min else value)
