"""Making values missing: a whole column, cells that a rule names, values that few people have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from anon_pipeline.engine.sql import literal
from anon_pipeline.engine.typed import is_whole
from anon_pipeline.masking.base import Applied, Columns, ColumnTechnique, Context, Guarantee, RowTechnique
from anon_pipeline.masking.expressions import TEXT, date_literal, moment, number, number_literal, text, written
from anon_pipeline.masking.grouping import codes_of
from anon_pipeline.masking.masks import LONGEST, Replace
from anon_pipeline.masking.rounding import Number
from anon_pipeline.masking.texts import as_texts
from anon_pipeline.spec import ColumnType


class Suppress(RowTechnique):
    """The whole column becomes missing.

    A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 3.2. To leave a column out altogether, give
    it the role exclude.
    """

    technique: Literal["suppress"] = "suppress"

    meaning: ClassVar[str] = "makes every value of a column missing"
    use_when: ClassVar[str] = "the table must keep its shape, but not this column's values"
    ends: ClassVar[bool] = True

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        return f"CAST(NULL AS {self.storage_after(kind, storage)})"

    @override
    def storage_after(self, kind: ColumnType, storage: str) -> str:
        return TEXT if storage.startswith(("ENUM", '"NULL"')) else storage


class SuppressCells(RowTechnique):
    """Cells that a rule names become missing; with several rules, those that any of them names.

    A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 3.2.5 (cell suppression by rule). A day
    means all its moments (in UTC), since one person's hour decides whether a column is of days or of moments.
    """

    technique: Literal["suppress_cells"] = "suppress_cells"
    values: tuple[str | bool | int | float, ...] = Field(default=(), description="these values")
    below: Number | None = Field(default=None, description="numbers below this")
    above: Number | None = Field(default=None, description="numbers above this")
    pattern: str | None = Field(default=None, max_length=LONGEST, description="texts in which this is found (RE2)")

    meaning: ClassVar[str] = "makes the values missing that a rule names"
    use_when: ClassVar[str] = "single values are known to give people away: a rare diagnosis, a legendary salary"

    @field_validator("pattern")
    @classmethod
    def _is_portable(cls, pattern: str | None) -> str | None:
        return None if pattern is None else Replace._is_portable(pattern)

    @model_validator(mode="after")
    def _has_a_rule(self) -> SuppressCells:
        if not self.values and self.below is None and self.above is None and self.pattern is None:
            raise ValueError("values: is missing, and so are below, above and pattern; give at least one rule")
        return self

    def objection(self, kind: ColumnType) -> str | None:
        if kind is not ColumnType.NUMERIC and (self.below is not None or self.above is not None):
            return "below and above are rules for numbers; list values, or give a pattern"
        if kind is not ColumnType.CATEGORICAL and self.pattern is not None:
            return "a pattern is a rule for texts; give below, above or values"
        if kind is ColumnType.NUMERIC and any(isinstance(value, str | bool) for value in self.values):
            return "values of a numeric column must be numbers"
        if kind is ColumnType.DATE and any(_moment_of(value) is None for value in self.values):
            return "values of a column of dates must be dates, such as 2024-02-29 or 2024-02-29 13:00"
        return None

    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        rules = []
        compared = value if is_whole(storage) else number(value, storage)
        if kind is ColumnType.NUMERIC and self.values:
            rules.append(f"{compared} IN ({', '.join(number_literal(listed) for listed in self.values)})")  # type: ignore[arg-type]
        elif self.values and kind is ColumnType.DATE:
            rules += self._dates(moment(value, storage))
        elif self.values:
            listed_texts = ", ".join(literal(written(listed, storage)) for listed in self.values)
            rules.append(f"{text(value, storage)} IN ({listed_texts})")
        if self.below is not None:
            rules.append(f"{compared} < {number_literal(self.below)}")
        if self.above is not None:
            rules.append(f"{compared} > {number_literal(self.above)}")
        if self.pattern is not None:
            rules.append(f"regexp_matches({text(value, storage)}, {literal(self.pattern)})")
        kept = text(value, storage) if storage.startswith("ENUM") else value
        return f"CASE WHEN {' OR '.join(rules)} THEN NULL ELSE {kept} END"

    def _dates(self, value: str) -> list[str]:
        """The rules that name days, and those that name moments."""
        named = [(_moment_of(listed), str(listed)) for listed in self.values]
        days = [date_literal(when.date()) for when, text in named if when is not None and _is_day(text)]
        moments = [date_literal(when) for when, text in named if when is not None and not _is_day(text)]
        rules = [f"date_trunc('day', {value}) IN ({', '.join(days)})"] if days else []
        return [*rules, f"{value} IN ({', '.join(moments)})"] if moments else rules

    @override
    def storage_after(self, kind: ColumnType, storage: str) -> str:
        return TEXT if storage.startswith("ENUM") else storage


def _moment_of(value: str | float) -> datetime | None:
    """The moment that a text names, in UTC where it has a time zone; None where it names none."""
    try:
        named = datetime.fromisoformat(str(value))
        return named if named.tzinfo is None else named.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):  # the second beyond the years that there are
        return None


def _is_day(text: str) -> bool:
    return not any(sign in text for sign in "T :")


class SuppressRare(ColumnTechnique):
    """Values that fewer than k people have become missing, or one common text.

    The threshold rule of tables (A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 4.2.1) on one
    column. Where those who are hidden are themselves fewer than k, the next rarest value is hidden too. Who has no
    value is shown without one, also where fewer than k people have none, unless others are hidden among them.
    """

    technique: Literal["suppress_rare"] = "suppress_rare"
    k: int = Field(ge=2, le=2**31, description="values of fewer people are hidden")
    by: str | None = Field(default=None, min_length=1, description="the text in their place; missing where absent")

    meaning: ClassVar[str] = "hides the values that fewer than k people have"
    guarantee: ClassVar[Guarantee] = "k"
    use_when: ClassVar[str] = "a column has a long tail of rare values, each of which names its bearer"

    def kind_after(self, kind: ColumnType) -> ColumnType:
        return kind if self.by is None else ColumnType.CATEGORICAL

    @override
    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        codes, values = codes_of(column)
        counts = np.bincount(codes, minlength=len(values) + 1)
        rare = counts < self.k
        rare[0] = False
        hidden = int(counts[rare].sum()) + (int(counts[0]) if self.by is None else 0)
        common = np.flatnonzero(~rare)
        for code in common[np.argsort(counts[common], kind="stable")]:
            if not rare.any() or hidden >= self.k:
                break
            if code:
                rare[code], hidden = True, hidden + int(counts[code])
        suppressed = pa.array(rare[codes])
        if self.by is None:
            masked = pc.if_else(suppressed, pa.scalar(None, column.type), column)
        else:
            masked = pc.if_else(suppressed, pa.scalar(self.by), as_texts(column))
        return Applied({name: masked}, facts={"values_hidden": int(rare.sum()), "rows_hidden": int(rare[codes].sum())})
