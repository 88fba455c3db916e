"""Logistic regression solved to its optimum, so that the result does not depend on where a solver stops.

If a solver stops at a tolerance, its result depends on the last bits of its sums, and these differ between processors:
with lbfgs at scikit-learn's tolerance the same 10,000 people got probabilities .013 apart. Newton's method doubles the
correct digits in each step, so its last step is as exact as the arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

#: Most coefficients for which Newton's matrix is computed (its memory grows with their square, 32 MB here). With more,
#: each step is solved by conjugate gradients, which takes longer and comes to within about 1e-11 of the optimum.
MOST_COEFFICIENTS = 2000


class ExactLogisticRegression(LogisticRegression):  # type: ignore[misc]
    """scikit-learn's `LogisticRegression` with a solver and a tolerance that reach the optimum."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactLogisticRegression:
        classes = len(np.unique(y))
        small = X.shape[1] * (1 if classes == 2 else classes) <= MOST_COEFFICIENTS
        self.set_params(solver="newton-cholesky" if small else "newton-cg", tol=1e-8 if small else 1e-13)
        fitted: ExactLogisticRegression = super().fit(X, y, sample_weight)
        return fitted
