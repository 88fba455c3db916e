"""Row techniques that make numbers coarser: rounding, bins of stated edges, top and bottom coding by value."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from anon_pipeline.engine.sql import literal
from anon_pipeline.engine.typed import is_whole
from anon_pipeline.masking.base import NUMERIC, ORDERED, RowTechnique
from anon_pipeline.masking.expressions import (
    FLOAT,
    TEXT,
    WHOLE,
    as_parts,
    date_literal,
    decimals,
    is_integral,
    moment,
    number,
    number_literal,
    plain,
    whole,
)
from anon_pipeline.spec import ColumnType

Finite = Annotated[float, Field(allow_inf_nan=False)]
Number = int | Finite
#: A step or width beyond this makes no sense for a column of people.
LARGEST_STEP = 1e15
#: The smallest and the largest number of BIGINT.
LEAST, MOST = -(2**63), 2**63 - 1
#: In bins of a stated width, numbers beyond this become missing: engines write them in different ways, and beyond as
#: many bins from the start they count them so.
LARGEST_ROUNDED, MOST_BINS = 2**53, 2**52


class Round(RowTechnique):
    """Numbers become multiples of a step.

    A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 3.3 (rounding). Halves go away from zero. A
    whole number near the ends of 64 bits, whose multiple would lie beyond them, goes to the nearest one within.
    """

    technique: Literal["round"] = "round"
    to: Number = Field(gt=0, le=LARGEST_STEP, description="the step; 10 makes 37 a 40")
    how: Literal["nearest", "down", "up"] = Field(default="nearest", description="which multiple is taken")

    meaning: ClassVar[str] = "shows the multiple of a step that is nearest, below or above"
    use_when: ClassVar[str] = "a number's last digits help to recognize a person and nobody needs them"
    accepts: ClassVar = NUMERIC

    @override
    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        if is_integral(self.to, storage):
            return self._whole(whole(value, storage), int(self.to))
        value = number(value, storage)
        scaled, back = self._scaled(value)
        function = {"nearest": "round", "down": "floor", "up": "ceil"}[self.how]
        count = f"CAST({function}({scaled}) AS DOUBLE)"
        rounded = back(count)
        if self.how != "nearest":  # .29 * 100 is below 29: the multiple beside it may be the one that is meant
            nearer, farther, within, beyond = ("+", "-", "<=", ">") if self.how == "down" else ("-", "+", ">=", "<")
            rounded = (
                f"CASE WHEN {back(f'({count} {nearer} 1)')} {within} {value} THEN {back(f'({count} {nearer} 1)')} "
                f"WHEN {rounded} {beyond} {value} THEN {back(f'({count} {farther} 1)')} ELSE {rounded} END"
            )
        # Beyond 2^52 every float is whole, and Spark's floor gives a BIGINT; + 0.0 turns negative zero into zero.
        return f"CASE WHEN abs({scaled}) < 4503599627370496 THEN {rounded} + CAST(0 AS DOUBLE) ELSE {value} END"

    def _scaled(self, value: str) -> tuple[str, Callable[[str], str]]:
        """A number in steps, and the number of so many steps: the float nearest to it where the step is a decimal."""
        inverse = round(1 / self.to) if self.to < 1 else 0
        if inverse and math.isclose(inverse * self.to, 1, rel_tol=1e-12):  # x * 10 / 10 is cleaner than x / .1 * .1
            return f"{value} * {inverse}", lambda count: f"{count} / {inverse}"
        if (parts := as_parts(self.to)) is not None:
            ten, (step,) = parts
            return f"{value} * {ten} / {step}", lambda count: f"{count} * {step} / {ten}"
        stated = number_literal(float(self.to))
        return f"{value} / {stated}", lambda count: f"{count} * {stated}"

    def _whole(self, value: str, step: int) -> str:
        """Rounding by % alone, whose result has the sign of the value in every engine; exact where a DOUBLE is not."""
        if self.how == "nearest":
            half = step // 2
            inner = f"{value} BETWEEN {LEAST + step} AND {MOST - step}"
            shifted = f"({value} + CASE WHEN {value} < 0 THEN {-half} ELSE {half} END)"
            return f"CASE WHEN {inner} THEN {shifted} - {shifted} % {step} ELSE {value} - {value} % {step} END"
        towards_zero = f"{value} - {value} % {step}"
        if self.how == "down":
            return (
                f"CASE WHEN {value} < 0 AND {value} % {step} <> 0 AND {value} >= {LEAST + step} "
                f"THEN {towards_zero} - {step} ELSE {towards_zero} END"
            )
        return (
            f"CASE WHEN {value} > 0 AND {value} % {step} <> 0 AND {value} <= {MOST - step} "
            f"THEN {towards_zero} + {step} ELSE {towards_zero} END"
        )

    @override
    def storage_after(self, kind: ColumnType, storage: str) -> str:
        return WHOLE if is_integral(self.to, storage) else FLOAT


class Bin(RowTechnique):
    """Numbers become the interval they lie in, closed below and open above: [20, 30).

    A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 3.2.3 (global recoding). With `edges`, the
    first and the last interval are open: < 20, >= 65. With `width`, a number beyond 2^53 in size (9 * 10^15) becomes
    missing, and a whole number beyond 10^18 where the edges are whole, too.
    """

    technique: Literal["bin"] = "bin"
    width: Number | None = Field(default=None, gt=0, le=LARGEST_STEP, description="the width of all bins")
    start: Number = Field(default=0, ge=-LARGEST_STEP, le=LARGEST_STEP, description="an edge, where width is given")
    edges: tuple[Number, ...] | None = Field(default=None, min_length=1, description="the edges, ascending")
    show: Literal["interval", "middle"] = Field(default="interval", description="the interval as text, or its middle")

    meaning: ClassVar[str] = "shows the interval of stated edges that a number lies in"
    heavy: ClassVar[bool] = True
    use_when: ClassVar[str] = "readers expect customary classes (ages by ten years), the same in every release"
    accepts: ClassVar = NUMERIC

    @model_validator(mode="after")
    def _has_one_kind_of_edges(self) -> Bin:
        if (self.width is None) == (self.edges is None):
            raise ValueError("width: give either the width of all bins or their edges")
        if not all(low < high for low, high in pairwise(self.edges or ())):
            raise ValueError("edges: must ascend, none twice")
        if self.edges and self.show == "middle":
            raise ValueError("show: the outer bins of stated edges have no middle; give a width, or show the interval")
        return self

    def kind_after(self, kind: ColumnType) -> ColumnType:
        return ColumnType.CATEGORICAL if self.show == "interval" else kind

    @override
    def storage_after(self, kind: ColumnType, storage: str) -> str:
        return TEXT if self.show == "interval" else FLOAT

    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        if self.edges is not None:
            return self._between(value if is_whole(storage) else number(value, storage), self.edges)
        width = self.width or 1
        if self.show == "interval" and is_integral(width, storage) and float(self.start).is_integer():
            low = Round(to=width, how="down").expression(f"({whole(value, storage)} - {int(self.start)})", kind, WHOLE)
            low = f"(({low}) + {int(self.start)})"
            replacement = f"'[' || CAST({low} AS VARCHAR) || ', ' || CAST({low} + {int(width)} AS VARCHAR) || ')'"
            return f"CASE WHEN {value} BETWEEN {-(10**18)} AND {10**18} THEN {replacement} END"
        value = number(value, storage)
        low, high, middle, bins = self._edges(value)
        inside = f"abs({value}) <= {LARGEST_ROUNDED} AND abs({bins}) < {MOST_BINS}"
        if self.show == "middle":
            return f"CASE WHEN {inside} THEN {middle} END"
        scale = max(decimals(width), decimals(self.start))
        low_text, high_text = (f"CAST(CAST({end} AS DECIMAL(38, {scale})) AS VARCHAR)" for end in (low, high))
        return f"CASE WHEN {inside} THEN '[' || {low_text} || ', ' || {high_text} || ')' END"

    def _edges(self, value: str) -> tuple[str, str, str, str]:
        """The edges of a number's bin, its middle, and how many bins the number lies from the start.

        Each is the float nearest to it where width and start are decimals.

        How many bins lie before the number is computed and then put right: .3 / .1 is below 3.
        """
        width, start = float(self.width or 1), float(self.start)
        parts = as_parts(width, start)
        if parts is None:
            step, first = number_literal(width), number_literal(start)
            bins = f"({value} - {first}) / {step}"

            def edge(count: str, halves: int = 0) -> str:
                middle = f" + {number_literal(width / 2)}" if halves else ""
                return f"({count} * {step} + {first}{middle})"
        else:
            ten, (step_parts, first_parts) = parts
            bins = f"({value} * {ten} - ({first_parts})) / {step_parts}"

            def edge(count: str, halves: int = 0) -> str:
                return f"(({count} * {2 * step_parts} + {2 * first_parts + halves * step_parts}) / {2 * ten})"

        before = f"CAST(floor({bins}) AS DOUBLE)"
        aside = (
            f"CASE WHEN {value} >= {edge(f'({before} + 1)')} THEN 1 WHEN {value} < {edge(before)} THEN -1 ELSE 0 END"
        )
        count = f"({before} + {aside})"
        return edge(count), edge(f"({count} + 1)"), edge(count, 1), bins

    @staticmethod
    def _between(value: str, edges: tuple[Number, ...]) -> str:
        cases = [f"WHEN {value} < {number_literal(edges[0])} THEN {literal(f'< {plain(edges[0])}')}"]
        for low, high in pairwise(edges):
            cases.append(f"WHEN {value} < {number_literal(high)} THEN {literal(f'[{plain(low)}, {plain(high)})')}")
        cases.append(f"WHEN {value} >= {number_literal(edges[-1])} THEN {literal(f'>= {plain(edges[-1])}')}")
        return f"CASE {' '.join(cases)} END"


class TopBottomCode(RowTechnique):
    """Numbers and dates beyond a stated limit become the limit.

    A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 3.2.4 (top and bottom coding). HIPAA's safe
    harbor (45 CFR 164.514(b)(2)) asks for it: ages above 89 become one.
    """

    technique: Literal["top_bottom_code"] = "top_bottom_code"
    bottom: Number | datetime | date | None = Field(default=None, description="what lies below becomes this")
    top: Number | datetime | date | None = Field(default=None, description="what lies above becomes this")

    meaning: ClassVar[str] = "shows a limit in place of all that lies beyond it"
    use_when: ClassVar[str] = "the largest or smallest values single people out, and the limit is customary (age 90)"
    accepts: ClassVar = ORDERED

    @model_validator(mode="after")
    def _has_limits_in_order(self) -> TopBottomCode:
        limits = [limit for limit in (self.bottom, self.top) if limit is not None]
        if not limits:
            raise ValueError("top: is missing, and so is bottom; give at least one")
        if len({isinstance(limit, date) for limit in limits}) > 1:
            raise ValueError("top: both limits must be numbers, or both dates")
        if self.bottom is not None and self.top is not None and not _before(self.bottom, self.top):
            raise ValueError("bottom: must lie below top")
        return self

    def objection(self, kind: ColumnType) -> str | None:
        limit = self.top if self.top is not None else self.bottom
        if isinstance(limit, date) == (kind is ColumnType.DATE):
            return None
        return f"the limits must be {'dates' if kind is ColumnType.DATE else 'numbers'}, as the column holds"

    def expression(self, value: str, kind: ColumnType, storage: str) -> str:
        if kind is ColumnType.DATE:
            compared, after = moment(value, storage), self.storage_after(kind, storage)
        else:
            value = whole(value, storage) if is_whole(storage) else number(value, storage)
            compared, after = value, ""
        cases = []
        for limit, sign, towards in ((self.bottom, "<", math.ceil), (self.top, ">", math.floor)):
            if isinstance(limit, date):
                cases.append(
                    f"WHEN {compared} {sign} {date_literal(limit)} THEN CAST({date_literal(limit)} AS {after})"
                )
            elif limit is not None:
                if is_whole(storage):  # beyond all whole numbers that can be stored there is nobody
                    limit = min(max(towards(limit), -(2**63)), 2**63 - 1)
                replacement = limit if is_whole(storage) else float(limit)
                cases.append(f"WHEN {compared} {sign} {number_literal(limit)} THEN {number_literal(replacement)}")
        otherwise = value if not after or after == storage else f"CAST({value} AS {after})"
        return f"CASE {' '.join(cases)} ELSE {otherwise} END"

    def storage_after(self, kind: ColumnType, storage: str) -> str:
        if kind is ColumnType.DATE:
            return "DATE" if storage == "DATE" else "TIMESTAMP"
        return WHOLE if is_whole(storage) else FLOAT


def _before(low: float | date, high: float | date) -> bool:
    def moment_of(limit: float | date) -> float | datetime:
        if isinstance(limit, datetime):
            return limit.replace(tzinfo=None)
        return datetime(limit.year, limit.month, limit.day) if isinstance(limit, date) else limit

    first, second = moment_of(low), moment_of(high)
    return first < second  # type: ignore[operator] # both are numbers or both are moments
