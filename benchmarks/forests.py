"""Random forests that guide a grouping, and others that are trained on its release and scored on raw people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import OneHotEncoder

TARGET, POSITIVE = "income", ">50K"
SEEDS = 3


class Forests:
    """Forests over some columns of training people, scored on test people as they are.

    `numbers` and `categories` are the columns that forests see.
    """

    def __init__(
        self, train: pd.DataFrame, test: pd.DataFrame, numbers: Sequence[str], categories: Sequence[str]
    ) -> None:
        self._numbers, self._categories = list(numbers), list(categories)
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
        self._encoder = encoder.fit(train[self._categories])
        self._truth = (train[TARGET] == POSITIVE).to_numpy(int)
        self._test, self._test_truth = self._features(test), (test[TARGET] == POSITIVE).to_numpy(int)

    def guidance(self, train: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Out-of-fold probabilities, shape (n,)."""
        said = cross_val_predict(_forest(0), self._features(train), self._truth, cv=5, method="predict_proba")
        probability: npt.NDArray[np.float64] = said[:, 1]
        return probability

    def scores(self, released: pd.DataFrame) -> tuple[float, float]:
        """AUC and accuracy on raw people of forests trained on a release, the mean over `SEEDS` of them."""
        given = self._features(released)
        said = [_forest(seed).fit(given, self._truth).predict_proba(self._test)[:, 1] for seed in range(SEEDS)]
        return (
            float(np.mean([roc_auc_score(self._test_truth, one) for one in said])),
            float(np.mean([accuracy_score(self._test_truth, one > 0.5) for one in said])),
        )

    def _features(self, people: pd.DataFrame) -> npt.NDArray[np.float32]:
        numbers = people[self._numbers].to_numpy(np.float32)
        return np.hstack([self._encoder.transform(people[self._categories]), numbers])


def _forest(seed: int) -> RandomForestClassifier:
    return RandomForestClassifier(150, min_samples_leaf=3, random_state=seed, n_jobs=-1)
