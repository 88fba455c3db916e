"""Base classes of masking techniques: parameters, description and how they are carried out. No technique belongs here.

A technique gets the rows in the canonical order of `masking/order.py`, so that nothing depends on their order before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator
from typing_extensions import override

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
        """The column type after this step."""
        return kind

    def resolved(self, folder: Path) -> Self:  # noqa: ARG002 - techniques that read files need it
        """The technique after the files that it names (relative to the spec's folder) were read into it."""
        return self

    @property
    def is_locally_private(self) -> bool:
        """Whether its result in a cell is differentially private by its parameters, whatever the other cells are."""
        return self.guarantee == "local DP"

    @property
    @override
    def of_own_values(self) -> bool:
        return self.is_locally_private

    @property
    def key_source(self) -> KeySource | None:
        """The source of the key that it needs; None where it needs none."""
        return None

    @property
    def key_file(self) -> str | None:
        return None if self.key_source is None else self.key_source.file


class OneColumnTechnique(Technique, ABC):
    """A technique that stands under a column."""

    def objection(self, kind: ColumnType) -> str | None:  # noqa: ARG002 - few object
        """Why its parameters do not fit a column of this type; None where they fit."""
        return None


class RowTechnique(OneColumnTechnique):
    """A technique whose result in a cell follows from that cell alone.

    `heavy` ones make or search texts, which takes an engine longer than to look the result up by value.
    """

    heavy: ClassVar[bool] = False

    @property
    @override
    def of_own_values(self) -> bool:
        return True

    @abstractmethod
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        """The new value in SQL, as DuckDB reads it and sqlglot can translate it.

        Parameters
        ----------
        value : an SQL expression for the old value; short, since the result may repeat it
        kind : the type of the column
        storage : DuckDB's name of the type of `value`
        """

    @abstractmethod
    def storage_after(self, kind: ColumnType, storage: str) -> str:
        """DuckDB's name of the type of `expression`."""


@dataclass(frozen=True)
class Context:
    """The further inputs of a technique on whole columns.

    Attributes
    ----------
    kinds : the type of each column
    draws : random numbers for each row, which no other step has
    secrets : where keys come from
    place : the place of the step in the spec, for messages
    rows : the number of rows of the table
    """

    kinds: Mapping[str, ColumnType]
    draws: Draws
    secrets: Secrets
    place: str
    rows: int


@dataclass(frozen=True)
class Applied:
    """The result of a technique on whole columns.

    Attributes
    ----------
    columns : the columns that changed or are new
    kept : positions of the rows that stay, ascending; None where all stay
    dropped : columns that were removed
    replaces_table : `columns` are a new table (of groups, not of people), and nothing else is left
    facts : numbers or words to report, which hold no value of a person
    notes : sentences for the person who decides
    guarantee : the guarantee that was given, where it depends on the parameters
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
        """All columns that it needs."""
        return self.columns

    def accepted(self, column: str) -> frozenset[ColumnType]:  # noqa: ARG002 - some ask for different types
        """The types that one of its columns may have."""
        return self.accepts

    def objection(self, kinds: Mapping[str, ColumnType]) -> str | None:  # noqa: ARG002 - few object
        """Why it cannot work on a table of these columns, apart from names and types; None where it can."""
        return None

    def columns_after(self, kinds: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """The columns of the table afterwards."""
        return {name: self.kind_after(kind) if name in self.columns else kind for name, kind in kinds.items()}

    @abstractmethod
    def apply(self, columns: Columns, context: Context) -> Applied:
        """Carry it out on the columns of `used`, rows in canonical order."""
