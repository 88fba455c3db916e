"""scikit-learn's encoders of categories, which count people only if some categories must share a code or a column.

With `max_categories` scikit-learn always counts them, value by value in Python, which takes longer than all the rest.
"""

from __future__ import annotations

from typing import Any, Self

import pandas as pd
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder


class _CountsIfAsked:
    """Fits an encoder to an object array of shape (n, columns), with the same result."""

    max_categories: int | None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit without `max_categories` if no column has so many categories, since it then decides nothing."""
        most = self.max_categories
        if most is not None and all(len(pd.unique(column)) < most for column in X.T):
            self.max_categories = None
        try:
            super().fit(X, y)  # type: ignore[misc]
        finally:
            self.max_categories = most
        return self


class CategoryCodes(_CountsIfAsked, OrdinalEncoder):
    """`OrdinalEncoder`, a code per category."""


class CategoryColumns(_CountsIfAsked, OneHotEncoder):
    """`OneHotEncoder`, a column per category."""
