"""Models and tables that the tests of the learning layer share; the models are named by `import:` paths."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from anon_pipeline.arrays import FloatArray
from anon_pipeline.learning.guide import assign_folds, train
from anon_pipeline.learning.models import Task
from anon_pipeline.learning.problem import Problem
from anon_pipeline.spec import ColumnType, Guide

HERE = "anon_pipeline_tests.learning.models"
SECRET = "Ottilie Wildermuth, HIV positive"

BUILT_IN = ["gradient_boosting", "random_forest", "linear", "decision_tree"]

TYPES = {
    "age": ColumnType.NUMERIC,
    "job": ColumnType.CATEGORICAL,
    "pay": ColumnType.NUMERIC,
    "town": ColumnType.CATEGORICAL,
}


def people(n: int = 400, seed: int = 0, classes: int = 2) -> tuple[pd.DataFrame, pd.Series[Any], pd.Series[Any]]:
    """A table with missing values: features, a target of `classes` labels, and a numeric target."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": random.integers(17, 90, n).astype(float)})
    frame["job"] = random.choice(["clerk", "cook", "smith", "nurse"], n).astype(object)
    frame["pay"] = random.normal(100, 20, n) + 20 * (frame["job"] == "smith")
    frame["town"] = random.choice([f"town {i:02d}" for i in range(20)], n).astype(object)
    signal = frame["age"] / 20 + (frame["job"] == "nurse") * 2 + random.normal(0, 0.3, n)
    labels = pd.qcut(signal, classes, labels=[f"class {c}" for c in range(classes)]).astype(object)
    frame.loc[random.random(n) < 0.1, "age"] = np.nan
    frame.loc[random.random(n) < 0.1, "job"] = None
    return frame, labels, signal.astype(float)


def imported(function: str, **settings: Any) -> Guide:
    return Guide.model_validate({"model": {"import": f"{HERE}:{function}"}, **settings})


def guided(
    guide: Guide, frame: pd.DataFrame, target: pd.Series[Any], task: Task = Task.CLASSIFICATION, seed: int = 0
) -> FloatArray:
    fold = assign_folds(target, task, guide.folds, seed)
    return train(Problem(frame, target, task, TYPES, seed), guide, fold).guidance(frame, fold)


class Memorizer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Gives a row it was trained on its own label, and every other row the label "unseen"."""

    def fit(self, rows: pd.DataFrame, target: Any) -> Memorizer:
        self.known_ = dict(zip(rows["number"], target, strict=True))
        self.classes_ = np.array(["class 0", "class 1", "unseen"], dtype=object)
        return self

    def predict(self, rows: pd.DataFrame) -> Any:
        return np.array([self.known_.get(number, "unseen") for number in rows["number"]], dtype=object)


class Gossip(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Raises an exception that quotes a person, while fitting or while predicting."""

    def __init__(self, when: str = "fit", leave: bool = False) -> None:
        self.when = when
        self.leave = leave

    def fit(self, rows: Any, target: Any) -> Gossip:
        self.classes_ = np.unique(target)
        if self.when == "fit":
            self._tell()
        return self

    def predict_proba(self, rows: Any) -> Any:
        self._tell()

    predict = predict_proba

    def _tell(self) -> None:
        if self.leave:
            sys.exit(SECRET)
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(f"could not convert {SECRET}") from error


class Endless(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts infinity."""

    def fit(self, rows: Any, target: Any) -> Endless:
        self.fitted_ = True
        return self

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), np.inf)


def _number(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["age"]].fillna(0)


def memorizer() -> Pipeline:
    return Pipeline([("memorizer", Memorizer())])


def pipeline() -> Pipeline:
    """Chooses its columns by name: works only where it gets the frame itself."""
    return make_pipeline(FunctionTransformer(_number), DecisionTreeClassifier())


def bare() -> RandomForestClassifier:
    return RandomForestClassifier(20, n_jobs=2)


def without_probabilities() -> RidgeClassifier:
    return RidgeClassifier()


def regressor() -> LinearRegression:
    return LinearRegression()


def endless() -> Endless:
    return Endless()


def gossip_in_fit() -> Gossip:
    return Gossip("fit")


def gossip_in_predict() -> Gossip:
    return Gossip("predict")


def gossip_on_exit() -> Gossip:
    return Gossip("fit", leave=True)


def gossip_in_factory() -> Any:
    raise RuntimeError(SECRET)


def no_estimator() -> str:
    return SECRET


def estimator_class() -> Any:
    return DecisionTreeClassifier


not_a_function = os.sep
