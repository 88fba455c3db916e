"""What linear models need: numbers without lone extremes, and a solver that does not stop before the optimum.

If a solver stops at a tolerance, its result depends on the last bits of its sums, and these differ between processors:
with lbfgs at scikit-learn's tolerance the same 10,000 people got probabilities .013 apart. Newton's method doubles the
correct digits in each step, so its last step is as exact as the arithmetic.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression

from anon_pipeline.arrays import FloatArray

#: Most coefficients for which Newton's matrix is computed (its memory grows with their square, 32 MB here). With more,
#: each step is solved by conjugate gradients, which takes longer and comes to within about 1e-11 of the optimum.
MOST_COEFFICIENTS = 2000
#: The number of the person who is so many people away from an end is the farthest one that is kept.
FARTHEST = 5


class ExactLogisticRegression(LogisticRegression):  # type: ignore[misc]
    """scikit-learn's `LogisticRegression` with a solver and a tolerance that reach the optimum."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactLogisticRegression:
        classes = len(np.unique(y))
        small = X.shape[1] * (1 if classes == 2 else classes) <= MOST_COEFFICIENTS
        self.set_params(solver="newton-cholesky" if small else "newton-cg", tol=1e-8 if small else 1e-13)
        fitted: ExactLogisticRegression = super().fit(X, y, sample_weight)
        return fitted


class Winsorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A number farther out than that of the fifth person from an end counts as the number of that person.

    This is Winsorizing (W. J. Dixon, Annals of Mathematical Statistics 31, 1960). A line goes on for ever: a single
    value far from all others would decide its slope and the error, and the scores that are published of the model would
    tell that value, which a class hides. Missing values stay missing.
    """

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:  # noqa: ARG002
        ends = [_ends(column) for column in _numbers(X).T]
        self.low_, self.high_ = np.array(ends, dtype=np.float64).reshape(len(ends), 2).T
        return self

    def transform(self, X: pd.DataFrame) -> FloatArray:
        values = _numbers(X)
        within: FloatArray = np.where(np.isinf(values), values, np.clip(values, self.low_, self.high_))
        return within


def _numbers(frame: pd.DataFrame) -> FloatArray:
    numbers: FloatArray = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _ends(column: FloatArray) -> tuple[float, float]:
    """The numbers that five people lie at or beyond, below and above; of few people the middle ones."""
    known = np.sort(column[~np.isnan(column)])
    if not len(known):
        return -np.inf, np.inf
    place = min(FARTHEST, (len(known) + 1) // 2) - 1
    return float(known[place]), float(known[-1 - place])
