"""The models that are trained on a release and scored on raw rows: AUC (one class against the rest), or R2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

CLASSIFIERS: dict[str, Any] = {
    "gradient boosting": HistGradientBoostingClassifier(max_iter=60, random_state=0),
    "random forest": RandomForestClassifier(60, min_samples_leaf=3, random_state=0, n_jobs=1),
    "linear": LogisticRegression(max_iter=200),
    "shallow tree": DecisionTreeClassifier(max_depth=6, min_samples_leaf=20, random_state=0),
}
REGRESSORS: dict[str, Any] = {
    "gradient boosting": HistGradientBoostingRegressor(max_iter=60, random_state=0),
    "random forest": RandomForestRegressor(60, min_samples_leaf=3, random_state=0, n_jobs=1),
    "linear": Ridge(),
    "shallow tree": DecisionTreeRegressor(max_depth=6, min_samples_leaf=20, random_state=0),
}


class Coded:
    """Encodes features as numbers, fitted on raw training rows: codes for trees, one-hot columns for linear models."""

    def __init__(self, features: pd.DataFrame) -> None:
        texts = [name for name in features if features[name].dtype == object]
        numbers = [name for name in features if features[name].dtype != object]
        known = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
        fill = SimpleImputer(strategy="constant", fill_value="missing")
        self._codes = make_column_transformer(
            (make_pipeline(fill, OrdinalEncoder(**known)), texts),
            (SimpleImputer(strategy="median", keep_empty_features=True), numbers),
        ).fit(features)
        self._one_hot = make_column_transformer(
            (make_pipeline(fill, OneHotEncoder(handle_unknown="ignore", sparse_output=False)), texts),
            (make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()), numbers),
        ).fit(features)

    def of(self, features: pd.DataFrame, model: str) -> np.ndarray:
        coded: np.ndarray = (self._one_hot if model == "linear" else self._codes).transform(features)
        return coded


def score(
    model: str, coded: Coded, train: pd.DataFrame, truth: np.ndarray, test: pd.DataFrame, test_truth: np.ndarray
) -> float:
    """Train on one table; return the score on another."""
    from sklearn.base import clone

    if truth.dtype != object:
        fitted = clone(REGRESSORS[model]).fit(coded.of(train, model), truth.astype(float))
        return float(r2_score(test_truth.astype(float), fitted.predict(coded.of(test, model))))
    fitted = clone(CLASSIFIERS[model]).fit(coded.of(train, model), truth)
    said = fitted.predict_proba(coded.of(test, model))
    if len(fitted.classes_) == 2:
        return float(roc_auc_score(test_truth == fitted.classes_[1], said[:, 1]))
    places = {label: place for place, label in enumerate(fitted.classes_)}
    aucs, weights = [], []
    for label in np.unique(test_truth):
        if label in places and (test_truth == label).sum() >= 10:
            aucs.append(roc_auc_score(test_truth == label, said[:, places[label]]))
            weights.append((test_truth == label).sum())
    return float(np.average(aucs, weights=weights))


def guidance(coded: Coded, features: pd.DataFrame, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Out-of-fold predictions of gradient boosting: probabilities or numbers, and labels (tenths of numbers)."""
    given = coded.of(features, "gradient boosting")
    if truth.dtype != object:
        said = cross_val_predict(REGRESSORS["gradient boosting"], given, truth.astype(float), cv=5)
        tenths = np.searchsorted(np.quantile(said, np.arange(0.1, 1, 0.1)), said)
        return (said - said.mean()) / max(said.std(), 1e-12), tenths.astype(str)
    said = cross_val_predict(CLASSIFIERS["gradient boosting"], given, truth, cv=5, method="predict_proba")
    labels = np.unique(truth)[said.argmax(axis=1)]
    return (said[:, 1:] if said.shape[1] == 2 else said), labels.astype(str)
