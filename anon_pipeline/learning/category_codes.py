"""scikit-learn's codes of categories, where people are counted only if some categories must share a code.

With `max_categories` scikit-learn always counts them, value by value in Python, which takes longer than all the rest.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.preprocessing import OrdinalEncoder


class CategoryCodes(OrdinalEncoder):
    """`OrdinalEncoder` of an object array of shape (n, columns), with the same codes."""

    def fit(self, X: Any, y: Any = None) -> CategoryCodes:
        """Fit without `max_categories` if no column has so many categories, since it then decides nothing."""
        most: int | None = self.get_params()["max_categories"]
        if most is not None and all(len(pd.unique(column)) < most for column in X.T):
            self.max_categories = None
        try:
            super().fit(X, y)
        finally:
            self.max_categories = most
        return self
