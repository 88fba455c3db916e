"""The row technique that makes dates coarser."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from anon_pipeline.masking.base import DATE, RowTechnique
from anon_pipeline.masking.expressions import moment
from anon_pipeline.spec import ColumnType


class TruncateDate(RowTechnique):
    """Dates and moments become the first day of their day, week (from Monday, ISO 8601), month, quarter or year.

    A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 3.2.3 (global recoding); HIPAA's safe
    harbor (45 CFR 164.514(b)(2)) asks for the year. Moments with a time zone are taken in UTC.
    """

    technique: Literal["truncate_date"] = "truncate_date"
    to: Literal["day", "week", "month", "quarter", "year"] = Field(description="the period that is kept")

    meaning: ClassVar[str] = "shows the first day of a date's week, month, quarter or year"
    use_when: ClassVar[str] = "an exact date (of birth, of a visit) would be known to others"
    accepts: ClassVar = DATE

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        if self.to == "day":
            return f"CAST({moment(value, storage)} AS DATE)"
        return f"CAST(date_trunc('{self.to}', {value if storage == 'DATE' else moment(value, storage)}) AS DATE)"

    @override
    def storage_after(self, kind: ColumnType, storage: str) -> str:
        return "DATE"
