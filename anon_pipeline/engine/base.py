"""The interface of an engine: the operations that the pipeline calls, and small results, never N rows at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
    """The facts about a stored column, in numbers.

    Attributes
    ----------
    name, role, type : as in the spec and the source
    storage : type in the stored table, in the engine's words
    missing : rows without a value
    distinct : distinct values, missing not counted
    by_values : whether people's values decided the type in which it is stored
    """

    name: str
    role: Role
    type: ColumnType
    storage: str
    missing: int
    distinct: int
    by_values: bool = False


@dataclass(frozen=True)
class Repetition:
    """How often the values of an identifier repeat; a row without a value does not count.

    Attributes
    ----------
    name : the column
    rows : rows whose value occurs in another row too
    most : the largest number of rows with the same value
    """

    name: str
    rows: int
    most: int


@dataclass(frozen=True)
class SourceFacts:
    """The facts about a stored source: its size, its content hash, its columns and each of its identifiers.

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
        """Rows whose value of the identifier occurs in another row too, for the identifier that repeats most."""
        return max((repetition.rows for repetition in self.identifiers), default=0)

    def typed_by_values(self, names: Collection[str]) -> SourceFacts:
        """The same, of whose columns people's values decided the types of these."""
        return replace(self, columns=tuple(replace(column, by_values=column.name in names) for column in self.columns))

    @property
    def by_values(self) -> frozenset[str]:
        """The columns of which people's values decided the types."""
        return frozenset(column.name for column in self.columns if column.by_values)

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
    """The facts about a column of an unknown table, in numbers.

    Attributes
    ----------
    storage : type in the table, in DuckDB's words
    known, distinct : rows with a value, and distinct values, in the whole table; where it was sampled, HyperLogLog
        estimates those that are more than about a thousand and fewer than about a fifth of the rows with a value
    present, numbers, codes, dates : rows of the sample with a value; with a value that reads as a number; as digits
        with a leading zero or too long for a number; as a date
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
    """An unknown table: its columns, and a sample of its rows.

    Attributes
    ----------
    rows : rows of the whole table
    missing : texts in it that stand for "not known"; they count as missing
    sample : all rows, or of a large table the rows that a hash of their position chooses
    empty : rows of a text file that are entirely empty, and are not among `rows`
    codes_with_na : columns of codes of two letters in which NA stands, which is a code and a text for "not known"
    """

    rows: int
    columns: tuple[ColumnSurvey, ...]
    missing: tuple[str, ...]
    sample: pa.Table
    empty: int
    codes_with_na: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of the stored table, for a model and then for the cells.

    Attributes
    ----------
    features : the model's columns; numbers and dates as float64, categories as text
    target : as `features`
    hash : 63-bit hash of each row's released content, the same on every machine and engine, int64; empty if not
        asked for
    key : the quasi-identifiers of each row packed into q integers, shape (n, q)
    people : how many people each row stands for
    digits : kept numbers that floats may round, with all their digits; no column where there are none
    """

    features: pd.DataFrame
    target: pd.Series
    hash: IntArray
    key: IntArray
    people: IntArray
    digits: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True, eq=False)
class Recoding:
    """The classes of a table's people, and the recoded values of each class.

    Attributes
    ----------
    cells : the C distinct tuples of quasi-identifiers
    class_of_cell : the class of each cell, -1 for people who are left out, shape (C,)
    recoded : the recoded quasi-identifiers, a row per class
    storage : the types of columns that are released in another type than they are stored, by name
    """

    cells: Cells
    class_of_cell: IntArray
    recoded: pa.Table
    storage: Mapping[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """The relational operations of the pipeline. Paths name Parquet files that the engine reads or writes."""

    def store_source(self, spec: ReleaseSpec, destination: Path) -> SourceFacts:
        """Read the source, give its columns the types of the spec, write it without excluded columns and describe it.

        Raises
        ------
        InputError
            For a source that cannot be used, with a sentence that holds no value of a person.
        """

    def aggregated(self, spec: ReleaseSpec, query: Callable[[Reader, str], str], reads_rows: bool = True) -> pa.Table:
        """A small result of a query over the relation that the source opens as; nothing is stored.

        Each value is read by itself: what stands in one row never changes how another is read. A file in which it could
        is refused, unless the query reads the header alone.
        """

    def describe(self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType]) -> SourceFacts:
        """Describe a stored table, from the file."""

    def rows(self, table: Path) -> int:
        """Rows of a stored table; no more than it has people, and no fewer than it has cells."""

    def domains(
        self, table: Path, types: dict[str, ColumnType], bins: Mapping[str, int] | None = None
    ) -> tuple[Domain, ...]:
        """The values of the named columns and how many people have each; some columns coarsened into so many bins."""

    def count_cells(self, table: Path, domains: tuple[Domain, ...]) -> int:
        """The number of distinct tuples of codes."""

    def sample(
        self, table: Path, spec: ReleaseSpec, types: dict[str, ColumnType], size: int, left_out: Cells | None = None
    ) -> Batch:
        """`size` people whom their content draws, equal people one by one; a row each, in the order of their hash.

        Nobody in the cells `left_out` is among them. Only with these the rows have a key.
        """

    def frame(self, table: Path, types: Mapping[str, ColumnType]) -> pd.DataFrame:
        """A table small enough for memory, a row per person, values coded as in a batch; ranges stay texts.

        Numbers that floats may round have all their digits, as in `Batch.digits`.
        """

    def everybody(self, table: Path, about: int | None = None) -> pa.Table:
        """A stored table in memory, a row per person; or about so many people of it, chosen by their values."""

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
        """Write a stored table with a further column of whole numbers, computed from another column by batches."""

    def classes_of_people(
        self, table: Path, cells: Cells, class_of_cell: IntArray, *columns: str, distinct: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The values of some columns and the class of everybody whose cell has a class, in any order.

        With `distinct`, people with the same values are one row; their class is in the last column.
        """

    def hold_out(self, table: Path, spec: ReleaseSpec, chosen: Mapping[int, int], kept: Path, held_out: Path) -> None:
        """Split a stored table in two: so many people of each content hash, and everybody else."""

    def batches(
        self,
        table: Path,
        spec: ReleaseSpec,
        types: dict[str, ColumnType],
        domains: tuple[Domain, ...],
        hashed: bool = True,
        together: bool = False,
    ) -> Iterator[Batch]:
        """Everybody, in any order; a row may stand for several people who are equal in all released columns.

        With `together`, it stands for all of these.
        """

    def cells(self, domains: tuple[Domain, ...], key: IntArray, counts: IntArray, guidance: IntArray) -> Cells:
        """Unpack distinct keys, shape (C, q), into cells."""

    def write_release(
        self,
        table: Path,
        recoding: Recoding,
        columns: Sequence[str],
        destination: Path,
    ) -> tuple[int, str]:
        """Write `columns` of every person whose cell has a class, the quasi-identifiers taken from the recoding.

        Rows are sorted by all their values, so that their order tells nothing. Gives back what `content_hash` says of
        the written table, counted while it is written: few rows are different there.
        """

    def classes(self, table: Path, quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> ClassCounts:
        """Group any table by its quasi-identifiers, as they are written in it."""

    def groups(self, table: Path, recoded: GroupColumns, people: Path | None = None) -> pd.DataFrame:
        """A row per group without its values: the figures that the table shows, and the same counted from the people.

        Columns: `alike` (a number that groups of the same known values share), `times` (rows of the table that show
        the group), `people` (shown), `counted` (the people themselves), and for the i-th mean `mean<i>` (shown),
        `known<i>` (how many values are known), `sum<i>`, `size<i>` (the sum of the values' sizes) and `largest<i>` (the
        same of the largest values). What the table does not show is missing; so is, without `people`, what is counted.
        """

    def content_hash(self, table: Path) -> tuple[int, str]:
        """Number of rows, and a hash of the typed rows that does not depend on their order."""

    def columns(self, table: Path) -> dict[str, str]:
        """Names and storage types of a table's columns."""

    def sensitive_of_cells(self, table: Path, cells: Cells, sensitive: Sequence[str]) -> ClassCounts:
        """The sensitive columns counted per cell, as if each cell were a class."""

    def population_table(self, spec: ReleaseSpec, types: Mapping[str, ColumnType], path: str) -> pd.DataFrame:
        """The distinct quasi-identifier tuples of a population table and how many people have each.

        The table is named relative to the spec and read as its source is. Values are coded as a Domain holds them
        (dates as timestamps); the column "#people" counts.
        """

    def out_of_bounds(self, table: Path, bounds: dict[str, list[Any]]) -> dict[str, int]:
        """Per ordered column, how many rows lie outside [low, high], given as a Domain codes values."""

    def foreign_values(self, released: Path, stored: Path, columns: Sequence[str]) -> dict[str, int]:
        """Per column, how many released rows hold a value that the stored source does not."""


class ForeignTables(Protocol):
    """Reads tables from other tools, small enough for one machine."""

    def import_table(
        self,
        path: Path,
        scratch: Path,
        measured: Mapping[str, Column] = MappingProxyType({}),
        written: Source | None = None,
    ) -> Path:
        """Any CSV or Parquet table as a Parquet file, with its values as an outsider sees them.

        `written` says how a text file is written, where that is known. The `measured` columns, those of a spec, become
        numbers or dates where all their fields are.
        """

    def survey(self, source: Source, path: Path, columns: Mapping[str, Column] = MappingProxyType({})) -> Survey:
        """Describe every column of the source at `path`, and find texts that stand for "not known".

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
