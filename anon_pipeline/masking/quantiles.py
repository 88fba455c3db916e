"""Column techniques on numbers and dates with limits computed from the column: quantile bins, quantile coding.

Limits are rounded before they are shown, since an exact quantile is one person's value.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from decimal import Context as DecimalContext
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator
from typing_extensions import override

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError
from anon_pipeline.masking.base import ORDERED, Applied, Columns, ColumnTechnique, Context
from anon_pipeline.masking.expressions import plain
from anon_pipeline.masking.numbers import from_floats, to_floats
from anon_pipeline.spec import ColumnType

#: Significant digits of a limit that is shown.
DIGITS = 3
#: With so many digits every float is exact.
EXACT = 17
ROUNDING = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}


class QuantileBin(ColumnTechnique):
    """Numbers and dates become one of n intervals that about equally many people lie in.

    A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 3.2.3 (global recoding). Edges are
    quantiles (linear interpolation), rounded to three significant digits, or to days; equal edges are one, so there can
    be fewer.
    """

    technique: Literal["quantile_bin"] = "quantile_bin"
    bins: int = Field(ge=2, le=1000, description="how many intervals")

    meaning: ClassVar[str] = "shows one of n intervals of about equally many people"
    use_when: ClassVar[str] = "a skewed number needs classes, none of them nearly empty"
    accepts: ClassVar = ORDERED

    @override
    def kind_after(self, kind: ColumnType) -> ColumnType:
        return ColumnType.CATEGORICAL

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        values, is_date = to_floats(column), context.kinds[name] is ColumnType.DATE
        known = values[~np.isnan(values)]
        if not len(known):
            return Applied({name: pa.nulls(len(column), pa.string())}, facts={"bins": 0})
        edges = rounded(np.quantile(known, np.arange(1, self.bins) / self.bins), is_date)
        edges = edges[(edges > known.min()) & (edges <= known.max())]
        written = [_written(edge, is_date) for edge in edges.tolist()]
        labels = ["all"] if not written else [f"< {written[0]}"]
        labels += [f"[{low}, {high})" for low, high in pairwise(written)]
        labels += [f">= {written[-1]}"] if written else []
        masked = pa.array(np.searchsorted(edges, values, side="right"), mask=np.isnan(values), type=pa.int64())
        texts = pa.DictionaryArray.from_arrays(masked, pa.array(labels)).cast(pa.string())
        return Applied({name: texts}, facts={"bins": len(labels)})


class QuantileCode(ColumnTechnique):
    """Numbers and dates beyond a quantile become a limit near it, or the mean of those beyond it.

    A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 3.2.4 (top and bottom coding). The limit is
    that of the last person within, rounded inwards to three significant digits, or to days: between that person, who is
    shown, and the next, it would tell where the next one is. Where that would leave nothing between the two limits (as
    among years of one decade), they have more digits, or are moments. A mean is shown only of three people or more,
    else the limit.
    """

    technique: Literal["quantile_code"] = "quantile_code"
    bottom: float | None = Field(default=None, gt=0, lt=1, description="the share of people to code at the bottom")
    top: float | None = Field(default=None, gt=0, lt=1, description="the share of people to code at the top")
    show: Literal["limit", "mean"] = Field(default="limit", description="what stands for values beyond the limit")

    meaning: ClassVar[str] = "shows a limit, or their mean, for the largest or smallest share of the values"
    use_when: ClassVar[str] = "the extremes single people out and no customary limit exists (incomes)"
    accepts: ClassVar = ORDERED

    @model_validator(mode="after")
    def _has_shares(self) -> QuantileCode:
        if self.bottom is None and self.top is None:
            raise ValueError("top: is missing, and so is bottom; give the share of people to code, 0.01 for one in 100")
        if (self.bottom or 0) + (self.top or 0) >= 1:
            raise ValueError("top: together with bottom it must leave some people as they are")
        return self

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        values, is_date = to_floats(column), context.kinds[name] is ColumnType.DATE
        known = values[~np.isnan(values)]
        if not len(known):
            return Applied({name: column}, facts={"rows_coded": 0})
        low, high = self._limits(known, is_date)
        changed = values.copy()
        for beyond, limit in ((values < low, low), (values > high, high)):
            is_mean = self.show == "mean" and int(beyond.sum()) >= 3
            changed[beyond] = values[beyond].mean() if is_mean else limit
        coded = (values < low) | (values > high)
        if self._are_rounded(column, values, low, high):
            raise InputError(
                f"columns.{name}.steps: quantile_code: the largest or the smallest numbers differ only in digits that "
                "floats do not hold, so nobody would be coded; round them before"
            )
        masked = from_floats(changed, column.type)
        # Where nothing was coded, whole numbers beyond 2^53 and fine decimals stay exactly as they were.
        masked = pc.if_else(pa.array(coded), masked, column)
        return Applied({name: masked}, facts={"rows_coded": int(coded.sum())})

    def _are_rounded(self, column: pa.Array, values: FloatArray, low: float, high: float) -> bool:
        """Whether floats take the extremes for one number, so that nobody beyond a limit would be coded."""
        ends = [np.nanmax(values)] if self.top is not None and not (values > high).any() else []
        ends += [np.nanmin(values)] if self.bottom is not None and not (values < low).any() else []
        return any(pc.count_distinct(column.filter(pa.array(values == end))).as_py() > 1 for end in ends)

    def _limits(self, known: FloatArray, is_date: bool) -> tuple[float, float]:
        """The lower and the upper limit, as coarse as leaves the lower below the upper."""
        low, high = np.array([-np.inf]), np.array([np.inf])
        if self.bottom is not None:
            low = np.quantile(known, [self.bottom], method="higher")
        if self.top is not None:
            high = np.quantile(known, [1 - self.top], method="lower")
        for digits in () if is_date else range(DIGITS, EXACT):
            coarse = rounded(low, False, "up", digits)[0], rounded(high, False, "down", digits)[0]
            if coarse[0] < coarse[1]:
                return float(coarse[0]), float(coarse[1])
        if is_date and (day := float(np.ceil(low[0]))) < (last := float(np.floor(high[0]))):
            return day, last
        # Of very few people the quantiles themselves can cross: then nobody lies beyond both.
        return float(min(low[0], high[0])), float(max(low[0], high[0]))


def rounded(
    limits: FloatArray, is_date: bool, how: Literal["nearest", "up", "down"] = "nearest", digits: int = DIGITS
) -> FloatArray:
    """Limits, rounded to so many significant digits or whole days; ascending and distinct."""
    if is_date:
        return np.unique({"nearest": np.rint, "up": np.ceil, "down": np.floor}[how](limits))
    context = DecimalContext(prec=digits, rounding=ROUNDING[how])
    return np.unique(np.array([float(context.create_decimal(repr(limit))) + 0.0 for limit in limits.tolist()]))


def _written(edge: float, is_date: bool) -> str:
    return str(np.datetime64(int(edge), "D")) if is_date else plain(edge)
