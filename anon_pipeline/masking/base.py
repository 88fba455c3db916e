"""What a masking technique is: its parameters, what it says of itself, how it is carried out. No technique lives here.

Rows reach a technique in the canonical order of `masking/order.py`, so that nothing depends on how they stood.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import KeySource, Secrets
from anon_pipeline.masking.draws import Draws
from anon_pipeline.spec import ColumnType, MaskingStep

Guarantee = Literal["none", "k", "local DP"]
Columns = dict[str, pa.Array]
Fact = float | int | str | bool

ANY: frozenset[ColumnType] = frozenset(ColumnType)
NUMERIC: frozenset[ColumnType] = frozenset({ColumnType.NUMERIC})
MISSINGNESS_IS_RELEASED = "that a value is missing is shown as it is, and epsilon says nothing of it"
DATE: frozenset[ColumnType] = frozenset({ColumnType.DATE})
CATEGORICAL: frozenset[ColumnType] = frozenset({ColumnType.CATEGORICAL})
ORDERED: frozenset[ColumnType] = NUMERIC | DATE


class Technique(MaskingStep):
    """One masking step. The docstring of each technique names its source.

    Class attributes
    ----------------
    meaning : what it does, in one line
    guarantee : what it promises by itself: nothing, k people alike in its columns, or local differential privacy
    use_when : when to take it rather than another
    accepts : the column types it can work on
    ends : whether it leaves nothing of the value that a later step could work on
    random : whether it draws
    """

    meaning: ClassVar[str]
    guarantee: ClassVar[Guarantee] = "none"
    use_when: ClassVar[str]
    accepts: ClassVar[frozenset[ColumnType]] = ANY
    ends: ClassVar[bool] = False
    random: ClassVar[bool] = False

    def kind_after(self, kind: ColumnType) -> ColumnType:
        """How values compare afterwards."""
        return kind

    def resolved(self, folder: Path) -> Self:  # noqa: ARG002 - techniques that read files need it
        """The technique with what it names in files (relative to the spec's folder) read into it."""
        return self

    @property
    def is_locally_private(self) -> bool:
        """Whether what it leaves of a cell is differentially private by its parameters, whatever all others hold."""
        return self.guarantee == "local DP"

    @property
    def key_source(self) -> KeySource | None:
        """Where the key lies that it works with, if it needs one."""
        return None

    @property
    def key_file(self) -> str | None:
        return None if self.key_source is None else self.key_source.file


class OneColumnTechnique(Technique, ABC):
    """A technique that stands under a column."""

    def objection(self, kind: ColumnType) -> str | None:  # noqa: ARG002 - few object
        """Why its parameters do not fit a column of this type; None where they do."""
        return None


class RowTechnique(OneColumnTechnique):
    """A technique whose result in a cell follows from that cell alone.

    `heavy` ones make or search texts, which takes an engine longer than to look the result up by value.
    """

    heavy: ClassVar[bool] = False

    @abstractmethod
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        """The new value in SQL, as DuckDB reads it and sqlglot can translate it.

        Parameters
        ----------
        value : an SQL expression for the old value; short, for it may stand several times
        kind : how values compare
        storage : the type of `value` in DuckDB's words
        """

    @abstractmethod
    def storage_after(self, kind: ColumnType, storage: str) -> str:
        """The type of `expression`, in DuckDB's words."""


@dataclass(frozen=True)
class Context:
    """What a technique on whole columns is given beside them.

    Attributes
    ----------
    kinds : how the values of each column compare
    draws : random numbers of this step's own, for each row
    secrets : where keys come from
    place : where the step stands in the spec, for sentences
    rows : how many rows the table has
    """

    kinds: Mapping[str, ColumnType]
    draws: Draws
    secrets: Secrets
    place: str
    rows: int


@dataclass(frozen=True)
class Applied:
    """What a technique on whole columns made.

    Attributes
    ----------
    columns : the columns that changed or are new; those in `dropped` are gone
    kept : the rows that stay, ascending positions; None where all do
    dropped : columns that are no longer there
    replaces_table : `columns` are a new table (of groups, not of people), and nothing else is left
    facts : what to report, as numbers or words that hold no value of a person
    notes : sentences for whoever decides
    guarantee : what was in fact promised, where that depends on the parameters
    """

    columns: Columns
    kept: IntArray | None = None
    dropped: tuple[str, ...] = ()
    replaces_table: bool = False
    facts: dict[str, Fact] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    guarantee: Guarantee | None = None


class ColumnTechnique(OneColumnTechnique):
    """A technique that needs a whole column, or a key."""

    @abstractmethod
    def apply(self, columns: Columns, context: Context) -> Applied:
        """Carry it out on the one column that `columns` holds, rows in canonical order."""


class TableTechnique(Technique, ABC):
    """A technique on several columns together."""

    columns: tuple[str, ...] = Field(min_length=1, description="the columns it works on, in this order")

    @model_validator(mode="after")
    def _names_columns_once(self) -> Self:
        if len(set(self.used)) < len(self.used):
            raise ValueError("columns: a column is named twice; name each once")
        return self

    @property
    def used(self) -> tuple[str, ...]:
        """All columns that it must see."""
        return self.columns

    def accepted(self, column: str) -> frozenset[ColumnType]:  # noqa: ARG002 - some ask for different types
        """The types it can work on in one of its columns."""
        return self.accepts

    def objection(self, kinds: Mapping[str, ColumnType]) -> str | None:  # noqa: ARG002 - few object
        """Why it cannot work on a table of these columns, beside names and types; None where it can."""
        return None

    def columns_after(self, kinds: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """The columns of the table afterwards."""
        return {name: self.kind_after(kind) if name in self.columns else kind for name, kind in kinds.items()}

    @abstractmethod
    def apply(self, columns: Columns, context: Context) -> Applied:
        """Carry it out on the columns of `used`, rows in canonical order."""
