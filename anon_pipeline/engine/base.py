"""What the pipeline asks of an engine, and what it gets back: small tables, never N rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.groups import GroupColumns
from anon_pipeline.engine.typed import Reader
from anon_pipeline.spec import Column, ColumnType, ReleaseSpec, Role, Source
from anon_pipeline.tables import Cells, Domain


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of one stored column, in numbers.

    Attributes
    ----------
    name, role, type : as the spec and the source say
    storage : type in the stored table, in the engine's words
    missing : rows without a value
    distinct : distinct values, missing not counted
    """

    name: str
    role: Role
    type: ColumnType
    storage: str
    missing: int
    distinct: int


@dataclass(frozen=True)
class Repetition:
    """How far one identifier fails to tell people apart; a row without it counts for nothing.

    Attributes
    ----------
    name : of the column
    rows : rows whose value stands in another row too
    most : rows that share one value, at most
    """

    name: str
    rows: int
    most: int


@dataclass(frozen=True)
class SourceFacts:
    """What is known of a stored source: its size, its content hash, its columns and each of its identifiers alone.

    `table` is the state that a table was read in, where it keeps former ones: see `typed.OpenSource`. `left_out` are
    the rows of the source that were not stored for want of a target.
    """

    rows: int
    content_hash: str
    columns: tuple[ColumnFacts, ...]
    identifiers: tuple[Repetition, ...]
    table: dict[str, str] | None = None
    left_out: int = 0

    @property
    def duplicate_persons(self) -> int:
        """Rows that share their value of the identifier that repeats most."""
        return max((repetition.rows for repetition in self.identifiers), default=0)

    def types(self) -> dict[str, ColumnType]:
        return {column.name: column.type for column in self.columns}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> SourceFacts:
        columns = tuple(
            ColumnFacts(**{**column, "role": Role(column["role"]), "type": ColumnType(column["type"])})
            for column in content["columns"]
        )
        identifiers = tuple(Repetition(**repetition) for repetition in content["identifiers"])
        more = content.get("table"), content.get("left_out", 0)
        return cls(content["rows"], content["content_hash"], columns, identifiers, *more)


@dataclass(frozen=True)
class ColumnSurvey:
    """What a column of an unknown table looks like, in numbers.

    Attributes
    ----------
    storage : type in the table, in DuckDB's words
    known, distinct : rows with a value, and distinct values, of the whole table; where it was sampled, `distinct` is
        estimated by HyperLogLog
    present, numbers, codes, dates : rows of the sample with a value, with one that reads as a number, as digits with a
        leading zero or too long for a number, as a date
    """

    name: str
    storage: str
    known: int
    distinct: int
    present: int
    numbers: int
    codes: int
    dates: int


@dataclass(frozen=True, eq=False)
class Survey:
    """An unknown table: its columns, and some of its rows to look at.

    Attributes
    ----------
    rows : of the whole table
    missing : texts found that stand for "not known"; counted as missing
    sample : everybody, or of a large table the rows that a hash of their position chooses
    empty : rows of a text file that are empty throughout, and are not among `rows`
    """

    rows: int
    columns: tuple[ColumnSurvey, ...]
    missing: tuple[str, ...]
    sample: pa.Table
    empty: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows on their way from the stored table to a model and on into the cells.

    Attributes
    ----------
    features : the model's columns; numbers and dates as float64, categories as text
    target : as `features`
    hash : 63-bit hash of each row's released content, the same on every machine and engine, int64; empty unasked
    key : the quasi-identifiers of each row packed into q integers, shape (n, q)
    people : how many people each row stands for
    """

    features: pd.DataFrame
    target: pd.Series
    hash: IntArray
    key: IntArray
    people: IntArray


@dataclass(frozen=True, eq=False)
class Recoding:
    """The classes of a table's people, and what each class shows.

    Attributes
    ----------
    cells : the distinct people, C of them
    class_of_cell : the class of each, -1 for who is left out, shape (C,)
    recoded : the quasi-identifiers as they are shown, a row per class
    """

    cells: Cells
    class_of_cell: IntArray
    recoded: pa.Table


class Engine(Protocol):
    """The relational operations of the pipeline. Paths name Parquet files that the engine reads or writes."""

    def store_source(self, spec: ReleaseSpec, destination: Path) -> SourceFacts:
        """Read the source, type it as the spec says, write it (without excluded columns) and describe it.

        Raises
        ------
        InputError
            For a source that cannot be used, with a sentence that holds no value of a person.
        """

    def aggregated(self, spec: ReleaseSpec, query: Callable[[Reader, str], str]) -> pa.Table:
        """A small result of a query over the relation that the source opens as; nothing is stored."""

    def describe(self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType]) -> SourceFacts:
        """Describe a stored table afresh, from the file."""

    def rows(self, table: Path) -> int:
        """Rows of a stored table; no more than it has people, and no fewer than it has cells."""

    def domains(
        self, table: Path, types: dict[str, ColumnType], bins: Mapping[str, int] | None = None
    ) -> tuple[Domain, ...]:
        """The values of the named columns and how many people bear each; some coarsened into so many bins."""

    def count_cells(self, table: Path, domains: tuple[Domain, ...]) -> int:
        """How many distinct tuples of codes there are."""

    def sample(self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType], size: int) -> Batch:
        """The `size` people of the smallest content hash, a row each, in the order of their hash; without a key."""

    def frame(self, table: Path, types: Mapping[str, ColumnType]) -> pd.DataFrame:
        """A table small enough for memory, a row per person, values coded as in a batch; ranges stay texts."""

    def everybody(self, table: Path, about: int | None = None) -> pa.Table:
        """A stored table in memory, a row per person; or about so many people of it, chosen by what they hold."""

    def rewrite(
        self, table: Path, columns: Sequence[str], query: Callable[[dict[str, str], str], str], destination: Path
    ) -> None:
        """Write `columns` of a query over a stored table, equal people counted together where there are many.

        `query` is given the table's columns with their types, the count of people among them, and the relation; it
        keeps the count.
        """

    def values(self, table: Path, column: str) -> Iterator[pa.Array]:
        """A column of a stored table, batch by batch, in any order."""

    def add_column(
        self, table: Path, of: str, name: str, new_values: Callable[[pa.Array], IntArray], destination: Path
    ) -> None:
        """Write a stored table with one more column of whole numbers, made of another batch by batch."""

    def classes_of_people(
        self, table: Path, domains: tuple[Domain, ...], cells: Cells, class_of_cell: IntArray, person: str
    ) -> Iterator[pa.RecordBatch]:
        """The value of the column `person` and the class, of everybody whose cell has one, in any order."""

    def hold_out(self, table: Path, spec: ReleaseSpec, hashes: IntArray, kept: Path, held_out: Path) -> None:
        """Part a stored table in two: the people of these content hashes (ascending), and everybody else."""

    def batches(
        self,
        table: Path,
        spec: ReleaseSpec,
        types: dict[str, ColumnType],
        domains: tuple[Domain, ...],
        hashed: bool = True,
    ) -> Iterator[Batch]:
        """Everybody, in any order; a row may stand for several people who are alike in all that is released."""

    def cells(self, domains: tuple[Domain, ...], key: IntArray, counts: IntArray, guidance: IntArray) -> Cells:
        """Unpack distinct keys, shape (C, q), into cells."""

    def write_release(
        self,
        table: Path,
        recoding: Recoding,
        columns: Sequence[str],
        destination: Path,
    ) -> None:
        """Write `columns` of every person whose cell has a class, the quasi-identifiers taken from the recoding.

        Rows are sorted by all their values, so that their order tells nothing.
        """

    def classes(self, table: Path, quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> ClassCounts:
        """Group any table by its quasi-identifiers, as they are written."""

    def groups(self, table: Path, recoded: GroupColumns, people: Path | None = None) -> pd.DataFrame:
        """A table of groups, a row per group without its values; beside it what the people themselves come to.

        Columns: `times` (rows of the table that show the group), `people` (shown), `counted`, and for the i-th mean
        `mean<i>` (shown), `known<i>`, `sum<i>`, `size<i>` (the sum of the values' sizes), `largest<i>` (that of the
        largest). What is not shown, or without `people` not counted, is missing.
        """

    def content_hash(self, table: Path) -> tuple[int, str]:
        """Number of rows, and a hash of the typed rows that does not depend on their order."""

    def columns(self, table: Path) -> dict[str, str]:
        """Names and storage types of a table's columns."""

    def sensitive_of_cells(
        self, table: Path, domains: tuple[Domain, ...], cells: Cells, sensitive: Sequence[str]
    ) -> ClassCounts:
        """The sensitive columns counted per cell, as if each cell were a class."""

    def population_table(self, spec: ReleaseSpec, types: Mapping[str, ColumnType], path: str) -> pd.DataFrame:
        """The distinct quasi-identifier tuples of a population table and how many people bear each.

        The table is named relative to the spec and read as its source is. Values are coded as a Domain holds them
        (dates as timestamps); the column "#people" counts.
        """

    def out_of_bounds(self, table: Path, bounds: dict[str, list[Any]]) -> dict[str, int]:
        """Per ordered column, how many rows lie outside [low, high], given as a Domain codes values."""

    def foreign_values(self, released: Path, stored: Path, columns: Sequence[str]) -> dict[str, int]:
        """Per column, how many released rows hold a value that the stored source does not."""


class ForeignTables(Protocol):
    """Reading tables of unknown make, small enough for one machine."""

    def import_table(
        self, path: Path, scratch: Path, measured: Sequence[str] = (), written: Source | None = None
    ) -> Path:
        """Any CSV or Parquet table as a Parquet file whose values are as an outsider sees them.

        `written` says how a text file is written, where that is known.
        """

    def survey(self, source: Source, path: Path, columns: Mapping[str, Column] = MappingProxyType({})) -> Survey:
        """Describe every column of the source at `path`; texts that often stand for "not known" are looked for.

        `columns` say how dates are written, where that is known.

        Raises
        ------
        InputError
            For a source that cannot be read or has no rows.
        """


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """A table grouped by its quasi-identifiers.

    Attributes
    ----------
    classes : the quasi-identifier tuples, one row per class
    sizes : rows per class, shape (J,)
    sensitive : per sensitive column a frame (class, value, count), values in ascending order, None for missing
    ordered : the sensitive columns whose values are numbers or dates
    """

    classes: pd.DataFrame
    sizes: IntArray
    sensitive: dict[str, pd.DataFrame]
    ordered: frozenset[str]
