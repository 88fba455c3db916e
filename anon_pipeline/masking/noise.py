"""Techniques that add random numbers: additive and proportional noise, and noise that keeps the covariance."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, model_validator
from typing_extensions import override

from anon_pipeline.arrays import FloatArray
from anon_pipeline.engine.content import ContentHash, row_hashes
from anon_pipeline.masking.base import (
    MISSINGNESS_IS_RELEASED,
    NUMERIC,
    ORDERED,
    Applied,
    Columns,
    ColumnTechnique,
    Context,
    Fact,
    TableTechnique,
)
from anon_pipeline.masking.draws import Draws, seen
from anon_pipeline.masking.numbers import deviation, from_floats, to_floats, two_digits, with_fractions
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import scale_of

Finite = Annotated[float, Field(allow_inf_nan=False)]
LARGEST_SHARE = 100.0
#: A column that keeps at most this part of its variance, given the columns before it, is determined by them.
SINGULAR = 1e-12
#: The step to which noisy numbers are rounded, as a part of the noise's standard deviation.
FINEST = 2.0**-20


def _drawn(draws: Draws, distribution: str) -> FloatArray:
    """Noise of standard deviation 1, shape (n,)."""
    return draws.normal() if distribution == "gaussian" else draws.laplace() / np.sqrt(2)


def _deviation(values: FloatArray) -> float:
    """The deviation of the known values; of a single one, which has none, its size, or it would be shown as it is."""
    known = values[~np.isnan(values)]
    return abs(float(known[0])) if len(known) == 1 else deviation(values)


def _snapped(noisy: FloatArray, scale: float | FloatArray) -> FloatArray:
    """Noisy numbers, rounded to a grid that is finer than the noise and coarser than a float's last digits.

    The last digits would reveal to which values the noise can have been added (I. Mironov, CCS 2012). The step of the
    grid is a power of two, so that one more person hardly ever changes it.
    """
    grid = np.exp2(np.floor(np.log2(np.maximum(scale, 1e-290)))) * FINEST
    with np.errstate(over="ignore", invalid="ignore"):
        snapped: FloatArray = np.rint(noisy / grid) * grid
    return np.where(np.isfinite(snapped), snapped, noisy)  # where the grid is too fine for the number


class Noise(ColumnTechnique):
    """Independent noise is added to every number or date.

    R. Brand: Microdata protection through noise addition, in: Inference Control in Statistical Databases, LNCS 2316,
    2002. With Laplace noise of a stated scale and stated bounds, to which values are clamped first, it is the Laplace
    mechanism on one person's value (C. Dwork et al., TCC 2006), locally differentially private with epsilon = (high -
    low) / b, where b = standard deviation / sqrt 2. What is shown lies on a grid of a millionth of the deviation, since
    the last digits of floats would tell the value (I. Mironov: On significance of the least significant bits for
    differential privacy, CCS 2012). Where it is locally private, whole numbers get fractions too: else their form would
    tell that nobody has a fraction. A share of the column's deviation is rounded to two digits.
    """

    technique: Literal["noise"] = "noise"
    distribution: Literal["gaussian", "laplace"] = Field(default="gaussian", description="the shape of the noise")
    deviation: Finite | None = Field(
        default=None, gt=0, description="the noise's standard deviation, in units of the column (dates: days)"
    )
    share: Finite | None = Field(
        default=None, gt=0, le=LARGEST_SHARE, description="the same as a part of the column's standard deviation"
    )
    bounds: tuple[Finite, Finite] | None = Field(default=None, description="values are clamped to these first")

    meaning: ClassVar[str] = "adds independent noise to every value"
    use_when: ClassVar[str] = "means and totals matter, single values must be uncertain; epsilon only with bounds"
    accepts: ClassVar = ORDERED
    random: ClassVar[bool] = True

    @model_validator(mode="after")
    def _has_one_scale(self) -> Noise:
        if (self.deviation is None) == (self.share is None):
            raise ValueError(
                "deviation: give either the deviation, in units of the column, or the share of the column's"
            )
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise ValueError("bounds: the first must lie below the second")
        return self

    def objection(self, kind: ColumnType) -> str | None:
        return "bounds are numbers, and the column holds dates" if self.bounds and kind is ColumnType.DATE else None

    @property
    @override
    def is_locally_private(self) -> bool:
        return self.bounds is not None and self.deviation is not None and self.distribution == "laplace"

    @property
    @override
    def of_own_values(self) -> bool:
        return self.deviation is not None

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        values = to_floats(column)
        scale = self.deviation or two_digits((self.share or 0.0) * _deviation(values))
        if self.bounds is not None:
            values = np.clip(values, *self.bounds)
        added = scale * _drawn(context.draws.bound(scale), self.distribution)
        type_ = with_fractions(column.type) if self.is_locally_private else column.type
        noisy = from_floats(_snapped(values + added, scale) if scale else values, type_)
        facts: dict[str, Fact] = {"deviation": scale}
        if self.bounds is None or self.deviation is None or not self.is_locally_private:
            return Applied({name: noisy}, facts=facts)
        facts["epsilon"] = (self.bounds[1] - self.bounds[0]) / (self.deviation / float(np.sqrt(2)))
        return Applied({name: noisy}, facts=facts, notes=(MISSINGNESS_IS_RELEASED,), guarantee="local DP")


class ProportionalNoise(ColumnTechnique):
    """Every number is multiplied by a random factor around 1, so that large values get more noise.

    J. Kim, W. Winkler: Multiplicative noise for masking continuous data, US Census Bureau, Statistics 2003-01. The
    factor is normal with mean 1 and a standard deviation of `share`, and lies between 0 and 2, so that no value changes
    its sign. What would lie beyond is reflected: a factor of exactly 2 would show a round number as its double, among
    numbers that are not round. A 0 is shown as 0.
    """

    technique: Literal["proportional_noise"] = "proportional_noise"
    share: Finite = Field(gt=0, le=0.5, description="the standard deviation of the factor: 0.1 for some ten percent")

    meaning: ClassVar[str] = "multiplies every number by a random factor around 1"
    use_when: ClassVar[str] = "numbers span orders of magnitude (turnover, wealth), and large ones need more noise"
    accepts: ClassVar = NUMERIC
    random: ClassVar[bool] = True

    @property
    @override
    def of_own_values(self) -> bool:
        return True

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        values = to_floats(column)
        factor = np.abs(1 + self.share * context.draws.normal())
        factor = np.abs(np.where(factor > 2, 4 - factor, factor))
        noisy = _snapped(values * factor, self.share * np.abs(values * factor))
        return Applied({name: from_floats(noisy, column.type)}, facts={"share": self.share})


class CorrelatedNoise(TableTechnique):
    """Noise with the columns' own covariance is added to several columns, and the sums shrunk to the old covariance.

    J. Kim: A method for limiting disclosure in microdata based on random noise and transformation, ASA 1986: with x the
    values, m their means, e normal noise of covariance share^2 Cov(x), the release is m + (x - m + e) / sqrt(1 +
    share^2). Means and covariance are kept in expectation. The correlations are those of the rows that lack no value,
    if there are more of these than columns, and the deviations those of all values there are. Where any value of these
    columns is another, all noise is drawn anew: one noise under two covariances could be solved for.
    """

    technique: Literal["correlated_noise"] = "correlated_noise"
    share: Finite = Field(gt=0, le=LARGEST_SHARE, description="noise as a part of each column's standard deviation")

    meaning: ClassVar[str] = "adds noise to several numbers together and keeps their means and covariance"
    use_when: ClassVar[str] = "regressions on the masked numbers must still come out right"
    accepts: ClassVar = ORDERED
    random: ClassVar[bool] = True

    def apply(self, columns: Columns, context: Context) -> Applied:
        values = np.column_stack([to_floats(columns[name]) for name in self.columns])
        root = _root_of_known(values)
        draws = context.draws.bound(_fingerprint([columns[name] for name in self.columns]))
        drawn = np.column_stack([draws.normal() for _ in self.columns])
        noise = self.share * sum(drawn[:, [i]] * root[[i], :] for i in range(len(root)))
        with np.errstate(invalid="ignore"):
            means = np.nan_to_num(np.array([_mean(column) for column in values.T]))
        masked = means + (values - means + noise) / np.sqrt(1 + self.share**2)
        scales = self.share * np.sqrt((root**2).sum(axis=0) / (1 + self.share**2))
        changed = {
            name: from_floats(_snapped(masked[:, place], scale) if scale else masked[:, place], columns[name].type)
            for place, (name, scale) in enumerate(zip(self.columns, scales.tolist(), strict=True))
        }
        complete = int((~np.isnan(values).any(axis=1)).sum())
        return Applied(changed, facts={"share": self.share, "complete_rows": complete})


def _fingerprint(columns: list[pa.Array]) -> str:
    """A hash of the content of whole columns, whatever the order of their rows."""
    content = ContentHash()
    lanes = row_hashes([seen(column) for column in columns], [str(place) for place in range(len(columns))])
    content.add(lanes, np.ones(lanes.shape[1], dtype=np.int64))
    return content.hexadecimal([])


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


def _root_of_known(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """As `_root`, where values may be missing: correlations of the rows that lack none, deviations of all known values.

    With the covariance of those rows, a table in which nobody has all values would be shown without any noise. A column
    whose correlations are unknown, since these rows are few or all have one value there, has noise of its own.
    """
    complete = values[~np.isnan(values).any(axis=1)]
    p = values.shape[1]
    if len(complete) == len(values):
        return _root(values)
    root = _root(complete) if len(complete) > p else np.zeros((p, p))
    largest = np.abs(root).max(axis=0)
    root = np.where(largest > 0, root / np.where(largest > 0, largest, 1), np.eye(p))
    known: npt.NDArray[np.float64] = root / np.sqrt((root**2).sum(axis=0)) * [_deviation(each) for each in values.T]
    return known


def _root(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A matrix A of shape (p, p) such that A'A is the covariance of `values`, shape (n, p); it may be singular.

    It is Cholesky's matrix of columns scaled to variance 1, so that the precision does not depend on units of measure.
    It is computed here because BLAS adds in an order that depends on the machine, and so would the release.
    """
    n, p = values.shape
    if n < 2:
        return np.zeros((p, p))
    units = np.array([scale_of(column) for column in values.T])
    centred = values / units - (values / units).mean(axis=0)
    scale = centred.std(axis=0)
    scaled = centred / np.where(scale > 0, scale, 1)
    lower = np.zeros((p, p))
    for j in range(p):
        for i in range(j, p):
            rest = float((scaled[:, i] * scaled[:, j]).mean()) - float((lower[i, :j] * lower[j, :j]).sum())
            if i == j:
                lower[j, j] = np.sqrt(rest) if rest > SINGULAR else 0.0
            elif lower[j, j] > 0:
                lower[i, j] = rest / lower[j, j]
    root: npt.NDArray[np.float64] = lower.T * (scale * units)[None, :]
    return root
