"""Tables of people as codes of public domains, each distinct row once with its count; measurements read these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.differential_privacy import reading
from anon_pipeline.differential_privacy.synthesis.junction_tree import Clique
from anon_pipeline.engine.typed import Reader
from anon_pipeline.errors import InputError
from anon_pipeline.spec import PublicDomain, ReleaseSpec


@dataclass(frozen=True)
class Axis:
    """A column of the synthetic table: its public values in `intervals`, then the place of a missing value.

    Attributes
    ----------
    width : places of the public domain in one interval
    """

    name: str
    domain: PublicDomain
    width: int

    @classmethod
    def of(cls, name: str, domain: PublicDomain) -> Axis:
        return cls(name, domain, domain.places_of_interval)

    @property
    def intervals(self) -> int:
        return math.ceil(self.domain.size / self.width)

    @property
    def size(self) -> int:
        """The number of codes; the last is that of a missing value."""
        return self.intervals + 1


@dataclass(frozen=True)
class CodedTable:
    """Distinct rows as codes, shape (m, d), and how many people have each row, shape (m,)."""

    sizes: tuple[int, ...]
    codes: npt.NDArray[np.int32]
    people: IntArray

    def counts(self, columns: Clique) -> IntArray:
        """How many people have each combination of codes, shape of `columns`."""
        shape = tuple(self.sizes[column] for column in columns)
        keys = np.ravel_multi_index(tuple(self.codes[:, column] for column in columns), shape)
        found = np.bincount(keys, weights=self.people, minlength=math.prod(shape))  # whole numbers below 2^53
        return found.astype(np.int64).reshape(shape)

    def recoded(self, codes: Sequence[IntArray]) -> CodedTable:
        """The table with new codes; `codes` maps the old ones of each column to the new ones."""
        moved = np.stack([mapping[self.codes[:, place]] for place, mapping in enumerate(codes)], axis=1)
        sizes = tuple(int(mapping.max()) + 1 for mapping in codes)
        return CodedTable(sizes, moved.astype(np.int32), self.people)


def axes_of(spec: ReleaseSpec) -> list[Axis]:
    """The columns of the synthetic table, in the order of the spec.

    Raises
    ------
    InputError
        For a column that is to be released and has no public domain.
    """
    domains = reading.asked_of(spec).domains
    for name in spec.released:
        if name not in domains or domains[name].unknown:
            raise InputError(
                f"differential_privacy.domains.{name}: a synthetic table has values that are public beforehand; state "
                "its range, bins or values, or give the column the role exclude"
            )
    return [Axis.of(name, domains[name]) for name in spec.released]


def read_coded(engine: Any, spec: ReleaseSpec, axes: Sequence[Axis]) -> CodedTable:
    """Read the source, with at most as many rows of a person as the unit of the spec allows.

    The choice of a person's rows depends on that person's rows alone. People without an identifier are not counted.
    """
    asked = reading.asked_of(spec)
    names = {axis.name: axis.domain for axis in axes}

    def query(reader: Reader, relation: str) -> str:
        coded = reading.codes(reader, relation, spec, names)
        select = [
            f"CAST(coalesce(floor({coded[axis.name]} / {axis.width}), {axis.intervals}) AS INTEGER) AS code{place}"
            for place, axis in enumerate(axes)
        ]
        columns = [f"code{place}" for place in range(len(axes))]
        listed = ", ".join(columns)
        rows = f"SELECT {', '.join(select)} FROM {relation}"
        if asked.person is not None:
            stored = reader.storage(relation)[asked.person]
            person = reading.identifier(asked.person, stored, spec.source.missing)
            rows = f"SELECT {', '.join(select)}, {person} AS person FROM {relation} WHERE {person} IS NOT NULL"
            joined = ", '/', ".join(["person", *(f"CAST({column} AS VARCHAR)" for column in columns)])
            order = f"ORDER BY md5(concat({joined})), {listed}"
            ranked = f"SELECT {listed}, row_number() OVER (PARTITION BY person {order}) AS place FROM ({rows}) AS one"
            rows = f"SELECT {listed} FROM ({ranked}) AS ranked WHERE place <= {asked.most_rows}"
        return f"SELECT {listed}, count(*) AS people FROM ({rows}) AS person GROUP BY {listed}"

    table: pa.Table = engine.aggregated(reading.readable(spec), query)
    arrays = [np.asarray(table.column(place).combine_chunks(), dtype=np.int32) for place in range(len(axes))]
    codes = np.stack(arrays, axis=1) if len(table) else np.zeros((0, len(axes)), dtype=np.int32)
    people = np.asarray(table.column(len(axes)).combine_chunks(), dtype=np.int64)
    return CodedTable(tuple(axis.size for axis in axes), codes, people)
