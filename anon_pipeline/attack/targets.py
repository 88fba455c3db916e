"""The people an attack is tried on: members of a release and control people, as codes.

They are ordered by a hash of their content and the seed. So the people who are drawn, and the numbers drawn for them,
do not depend on the order of any table's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse

from anon_pipeline.arrays import IntArray
from anon_pipeline.attack.boxes import Domain
from anon_pipeline.attack.released import Knowledge, Released, combined, encode, read_release
from anon_pipeline.errors import InputError


@dataclass(frozen=True, eq=False)
class People:
    """Raw people, ordered by their content.

    Attributes
    ----------
    row : position of each in the table they are from, shape (n,)
    codes : quasi-identifiers, shape (n, p)
    kept : columns that are released as they are, shape (n, q)
    identity : a number for each distinct person in all released columns, shape (n,)
    same_kept : a number for each distinct person in the kept columns, shape (n,)
    """

    row: IntArray
    codes: IntArray
    kept: IntArray
    identity: IntArray
    same_kept: IntArray

    def __len__(self) -> int:
        return len(self.row)

    def first(self, number: int) -> People:
        """The first people, a random sample."""
        return People(*(getattr(self, name)[:number] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Attacked:
    """A release with its people (members) and with control people.

    Attributes
    ----------
    release : the table as its reader sees it
    kept : the columns that are released as they are
    kept_codes : of the released rows, shape (N, q)
    same_kept : a number for each released row, equal to that of people with the same kept columns, shape (N,)
    origin : the person behind each released row, a position in the original table, -1 for none, shape (N,)
    identity : the number of that person in all released columns, -1 for none, shape (N,); None with `origin`
    members, control : the people; no control people where None
    seed : of everything that is drawn
    """

    release: Released
    kept: tuple[Domain, ...]
    kept_codes: IntArray
    same_kept: IntArray
    origin: IntArray | None
    identity: IntArray | None
    members: People
    control: People | None
    seed: int

    @property
    def knowledge(self) -> Knowledge:
        return self.release.knowledge


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of an audit.

    Attributes
    ----------
    released : one row per released person, N rows, by any tool
    original : the raw people who are in the release
    control : raw people like them who are not in it; without them a leak cannot be distinguished from statistics
    origin : position in `original` of the person behind each released row, -1 for none, shape (N,); None if unknown
    classes : our own published class table, where there is one
    """

    released: pd.DataFrame
    original: pd.DataFrame
    control: pd.DataFrame | None = None
    origin: IntArray | None = None
    classes: pd.DataFrame | None = None


def read_attacked(given: Tables, knowledge: Knowledge, seed: int = 0) -> Attacked:
    """Read all tables of an audit.

    A kept column that the release or a table of people lacks is left out: nothing can be compared in it.

    Raises
    ------
    InputError
        For a table without people or without a quasi-identifier, or origins that do not fit the tables.
    """
    released, original, control, origin = given.released, given.original, given.control, given.origin
    tables = [original] if control is None or not len(control) else [original, control]
    if not len(original):
        raise InputError("there are no people to attack: the original table has no rows")
    if origin is not None:
        origin = np.asarray(origin, dtype=np.int64)
        if len(origin) != len(released):
            raise InputError(f"origin has {len(origin)} entries, the released table {len(released)} rows")
        if len(origin) and (origin.min() < -1 or origin.max() >= len(original)):
            raise InputError("origin points outside of the original table")
    release = read_release(released, tables, knowledge, given.classes)
    names = [name for name in knowledge.kept if all(name in table.columns for table in (released, *tables))]
    kept = tuple(
        Domain.learn(name, name in knowledge.numeric, [table[name] for table in (*tables, released)]) for name in names
    )
    codes = [encode(release.domains, table) for table in tables]
    plain = [_encode(kept, table) for table in (released, *tables)]
    same_kept = _split(_numbers(plain), plain)
    identity = _split(_numbers([np.hstack(pair) for pair in zip(codes, plain[1:], strict=True)]), codes)
    people = []
    for place, table in enumerate(tables):
        order = content_order(table[[*knowledge.quasi_identifiers, *names]], seed)
        people.append(
            People(
                order,
                codes[place][order],
                plain[place + 1][order],
                identity[place][order],
                same_kept[place + 1][order],
            )
        )
    behind = None if origin is None else np.where(origin >= 0, identity[0][origin], -1)
    return Attacked(
        release=release,
        kept=kept,
        kept_codes=plain[0],
        same_kept=same_kept[0],
        origin=origin,
        identity=behind,
        members=people[0],
        control=people[1] if len(people) > 1 else None,
        seed=seed,
    )


def content_order(table: pd.DataFrame, seed: int) -> IntArray:
    """Positions of the rows in an order that depends only on their content and the seed; equal rows may swap.

    Equal rows do not stand together, so that the first of a table of a few kinds of people are of all kinds.
    """
    plain = table.astype({name: object for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)})
    content = pd.util.hash_pandas_object(plain, index=False).to_numpy(dtype=np.uint64)
    mixed = content ^ np.uint64((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)
    equal = pd.Series(content).groupby(content).cumcount().to_numpy(np.uint64)
    mixed += equal * np.uint64(0x9E3779B97F4A7C15)
    for multiplier, shift in ((0xBF58476D1CE4E5B9, 31), (0x94D049BB133111EB, 29)):  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(multiplier)
    return np.argsort(mixed, kind="stable").astype(np.int64)


def with_wrong_cells(people: People, domains: Sequence[Domain], share: float, seed: int) -> IntArray:
    """The people's codes as an attacker knows them: a share of the cells is replaced by random values of the column."""
    generator = np.random.default_rng([seed, round(share * 1_000_000), 1])
    believed = people.codes.copy()
    for column, domain in enumerate(domains):
        wrong = generator.random(len(people)) < share
        drawn = generator.choice(len(domain), size=len(people), p=domain.shares)
        believed[wrong, column] = drawn[wrong]
    return believed


def counts(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    """How often each pair occurs; a row or column below 0 is left out."""
    known = (rows >= 0) & (columns >= 0)
    pairs = (rows[known], columns[known])
    return sparse.coo_array((np.ones(int(known.sum())), pairs), shape=shape).tocsr()


def _encode(domains: Sequence[Domain], table: pd.DataFrame) -> IntArray:
    return encode(domains, table) if domains else np.empty((len(table), 0), dtype=np.int64)


def _numbers(tables: Sequence[IntArray]) -> IntArray:
    """A number for each distinct row of all tables together."""
    rows = np.vstack(tables)
    return combined(list(rows.T))[0] if rows.shape[1] else np.zeros(len(rows), dtype=np.int64)


def _split(values: IntArray, like: Sequence[IntArray]) -> list[IntArray]:
    return np.split(values, np.cumsum([len(table) for table in like])[:-1])
