"""Row techniques on texts: they keep a part of a text, or replace it."""

from __future__ import annotations

from typing import ClassVar, Literal

import duckdb
from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from anon_pipeline.engine.sql import literal
from anon_pipeline.masking.base import CATEGORICAL, RowTechnique
from anon_pipeline.masking.expressions import TEXT, code
from anon_pipeline.spec import ColumnType

LONGEST = 10_000
#: Any character but a digit, a space or ASCII punctuation; RE2 and Java read this expression alike.
NO_FORMAT = r"[^0-9 !-/:-@\[-`{-~]"


class TextTechnique(RowTechnique):
    """A row technique that makes texts."""

    heavy: ClassVar[bool] = True

    @override
    def kind_after(self, kind: ColumnType) -> ColumnType:
        return ColumnType.CATEGORICAL

    @override
    def storage_after(self, kind: ColumnType, storage: str) -> str:
        return TEXT


class Prefix(TextTechnique):
    """Codes keep their first characters, which name the larger unit (ZIP 10115 -> 101, ICD C50.9 -> C50).

    L. Sweeney: Achieving k-anonymity privacy protection using generalization and suppression, IJUFKS 10(5), 2002.
    HIPAA's safe harbor keeps three digits of a ZIP code, where more than 20,000 people live in it.
    """

    technique: Literal["prefix"] = "prefix"
    length: int = Field(ge=1, le=LONGEST, description="how many characters stay")

    meaning: ClassVar[str] = "shows the first characters of a code"
    use_when: ClassVar[str] = "a code's beginning is its coarser meaning: postal codes, ICD, NACE"
    accepts: ClassVar = CATEGORICAL
    heavy: ClassVar[bool] = False

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        return f"left({code(value, storage)}, {self.length})"


class Mask(TextTechnique):
    """All characters but the first or last ones become stars: *****6789.

    Partial masking as card numbers are shown (PCI DSS 4.0, requirement 3.4). A text with no more characters than would
    be shown is hidden whole. The number of stars tells the length, unless it is stated.
    """

    technique: Literal["mask"] = "mask"
    first: int = Field(default=0, ge=0, le=LONGEST, description="characters shown at the beginning")
    last: int = Field(default=0, ge=0, le=LONGEST, description="characters shown at the end")
    character: str = Field(default="*", min_length=1, max_length=1, description="what stands for a hidden character")
    stars: int | None = Field(default=None, ge=1, le=LONGEST, description="so many, whatever the length was")

    meaning: ClassVar[str] = "shows the first or last characters of a text and hides the rest"
    use_when: ClassVar[str] = "a person must know their own entry again, and others must not"
    accepts: ClassVar = CATEGORICAL

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        value, unmasked = code(value, storage), self.first + self.last
        if self.stars is None:
            hidden = f"repeat({literal(self.character)}, CAST(length({value}) - {unmasked} AS BIGINT))"
            all_hidden = f"repeat({literal(self.character)}, CAST(length({value}) AS BIGINT))"
        else:
            hidden = all_hidden = literal(self.character * self.stars)
        parts = [
            *([f"left({value}, {self.first})"] if self.first else []),
            hidden,
            *([f"right({value}, {self.last})"] if self.last else []),
        ]
        some = f"WHEN length({value}) > {unmasked} THEN {' || '.join(parts)}"
        return f"CASE {some} WHEN {value} IS NOT NULL THEN {all_hidden} END"


class KeepFormat(TextTechnique):
    """Letters become one letter and digits one digit, the rest stays: AB-1234 -> XX-9999.

    The pattern of data profiling (F. Naumann: Data profiling revisited, SIGMOD Record 42(4), 2013). What is neither an
    ASCII digit, a space nor ASCII punctuation counts as a letter, so that no script or sign goes through.
    """

    technique: Literal["keep_format"] = "keep_format"
    letter: str = Field(default="X", pattern=r"^[A-Za-z*#]$", description="what stands for a letter")
    digit: str = Field(default="9", pattern=r"^[0-9*#]$", description="what stands for a digit")

    meaning: ClassVar[str] = "shows the format of a text: XXX-9999"
    use_when: ClassVar[str] = "software needs well-formed values, or the format itself is of interest"
    accepts: ClassVar = CATEGORICAL

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        letters = f"regexp_replace({code(value, storage)}, {literal(NO_FORMAT)}, {literal(self.letter)}, 'g')"
        return f"regexp_replace({letters}, '[0-9]', {literal(self.digit)}, 'g')"


class Replace(TextTechnique):
    """Every part of a text that fits a regular expression becomes another text.

    Regular expressions are those of RE2 (https://github.com/google/re2/wiki/Syntax), which take linear time and which
    every engine understands: no looking around, no going back.
    """

    technique: Literal["replace"] = "replace"
    pattern: str = Field(min_length=1, max_length=LONGEST, description="the regular expression")
    by: str = Field(default="*", max_length=LONGEST, description="the plain text that takes its place")

    meaning: ClassVar[str] = "replaces what fits a pattern, wherever it stands in a text"
    use_when: ClassVar[str] = (
        "free texts or compound codes hold a part that must go: numbers, the name in a mail address"
    )
    accepts: ClassVar = CATEGORICAL

    @field_validator("pattern")
    @classmethod
    def _is_portable(cls, pattern: str) -> str:
        with duckdb.connect() as connection:
            try:
                connection.execute("SELECT regexp_matches('', ?)", [pattern])
            except duckdb.Error:
                raise ValueError(
                    "is no regular expression of RE2, which can neither look around nor go back; check it at "
                    "https://github.com/google/re2/wiki/Syntax"
                ) from None
        return pattern

    @field_validator("by")
    @classmethod
    def _is_plain(cls, by: str) -> str:
        if "\\" in by or "$" in by:
            raise ValueError("is a plain text without \\ and $, which engines read in different ways")
        return by

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        return f"regexp_replace({code(value, storage)}, {literal(self.pattern)}, {literal(self.by)}, 'g')"


class Redact(TextTechnique):
    """Every known value becomes one and the same text.

    ISO/IEC 20889:2018, 9.3 (suppression, masking). Whether a value was known can still be seen, unless `missing` is
    set.
    """

    technique: Literal["redact"] = "redact"
    by: str = Field(default="[redacted]", max_length=LONGEST, description="the text")
    missing: bool = Field(default=False, description="whether missing values become the text too")

    meaning: ClassVar[str] = "shows one and the same text for every value"
    use_when: ClassVar[str] = "a column must stay in the table but nothing of its values"
    ends: ClassVar[bool] = True
    heavy: ClassVar[bool] = False

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        return literal(self.by) if self.missing else f"CASE WHEN {value} IS NOT NULL THEN {literal(self.by)} END"

    @model_validator(mode="after")
    def _says_something(self) -> Redact:
        if not self.by:
            raise ValueError("by: is empty; an empty text is read as missing: use suppress")
        return self
