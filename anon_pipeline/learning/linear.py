"""Logistic regression at its optimum, so that where a solver happens to stop decides nothing.

A solver that stops at a tolerance follows the last bits of its sums, and these differ between processors: with lbfgs
at scikit-learn's tolerance the same 10,000 people got probabilities .013 apart. Newton's method doubles the correct
digits in each step, so that its last step is as exact as the arithmetic is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

#: Coefficients up to which Newton's matrix is made (its memory grows with their square, 32 MB here). With more, each
#: step is solved by conjugate gradients, which takes longer to the same optimum and leaves about 1e-11.
MOST_COEFFICIENTS = 2000


class ExactLogisticRegression(LogisticRegression):  # type: ignore[misc]
    """scikit-learn's, with a solver and a tolerance that reach the optimum."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactLogisticRegression:
        classes = len(np.unique(y))
        small = X.shape[1] * (1 if classes == 2 else classes) <= MOST_COEFFICIENTS
        self.set_params(solver="newton-cholesky" if small else "newton-cg", tol=1e-8 if small else 1e-13)
        fitted: ExactLogisticRegression = super().fit(X, y, sample_weight)
        return fitted
