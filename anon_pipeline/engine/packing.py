"""Tuples of quasi-identifier codes packed into as few 64-bit integers as hold them (mixed radix), and back.

Most of the engine's speed comes from grouping and joining on one integer instead of nine texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import CACHED, IntArray
from anon_pipeline.tables import Domain

#: A dense run of whole numbers is packed as its distance from the smallest, without a dictionary.
DENSE_SPAN = 2**31


def is_dense(domain: Domain) -> bool:
    """Whether the column is packed as value - smallest + 1."""
    values = domain.values
    return (
        not domain.binned
        and values.dtype.kind == "i"
        and len(values) > 0
        and int(values[-1]) - int(values[0]) < DENSE_SPAN
    )


@dataclass(frozen=True)
class Packing:
    """The assignment of columns to integers.

    Attributes
    ----------
    domains : the p quasi-identifiers
    parts : per integer, the positions of its columns, most significant first
    """

    domains: tuple[Domain, ...]
    parts: tuple[tuple[int, ...], ...]

    @classmethod
    def plan(cls, domains: tuple[Domain, ...]) -> Packing:
        parts: list[list[int]] = []
        room = 0
        for position, domain in enumerate(domains):
            radix = radix_of(domain)
            if room // radix == 0:  # the first column, too
                parts.append([])
                room = 2**63 - 1
            parts[-1].append(position)
            room //= radix
        return cls(domains, tuple(tuple(part) for part in parts))

    def unpack(self, key: IntArray) -> npt.NDArray[np.int32]:
        """Codes of each key, shape (n, q) to (n, p)."""
        codes = np.empty((len(key), len(self.domains)), dtype=np.int32)
        for start in range(0, len(key), CACHED):
            self._unpack(key[start : start + CACHED], codes[start : start + CACHED])
        return codes

    def _unpack(self, key: IntArray, codes: npt.NDArray[np.int32]) -> None:
        """Write the codes of each key into `codes`."""
        for column, part in enumerate(self.parts):
            rest = key[:, column]
            for position in reversed(part):
                domain = self.domains[position]
                radix = radix_of(domain)
                rest, packed = np.divmod(rest, radix)
                if is_dense(domain) and len(domain.values) < radix - 1:  # else a packed value is its own code
                    known = packed > 0
                    packed[known] = np.searchsorted(domain.values, packed[known] - 1 + domain.values[0]) + 1
                codes[:, position] = packed

    def pack(self, codes: npt.NDArray[np.int32]) -> IntArray:
        """Keys of each tuple of codes, shape (n, p) to (n, q)."""
        key = np.zeros((len(codes), len(self.parts)), dtype=np.int64)
        for column, part in enumerate(self.parts):
            for position in part:
                domain = self.domains[position]
                packed = codes[:, position].astype(np.int64)
                if is_dense(domain):
                    known = packed > 0
                    packed[known] = domain.values[packed[known] - 1].astype(np.int64) - int(domain.values[0]) + 1
                key[:, column] = key[:, column] * radix_of(domain) + packed
        return key


def radix_of(domain: Domain) -> int:
    """How many packed values the column can take, the one for missing included."""
    return int(domain.values[-1]) - int(domain.values[0]) + 2 if is_dense(domain) else len(domain)
