"""Naive Bayes over public values, from tables of counts that are given: it never sees a row of people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Added to every count, so that no probability is 0.
SMOOTHING = 0.5
#: Most rows that calibration uses, and a small ridge penalty that keeps weights and shifts finite.
MOST_ROWS, TINY = 50_000, 1e-6


@dataclass(frozen=True)
class Codes:
    """How values of a column become codes: places in a list, or intervals between cuts; missing is the last code.

    Attributes
    ----------
    values : the values of a list, in the order of their codes; None for numbers
    cuts : for numbers, where the next interval begins, ascending
    """

    name: str
    values: tuple[str, ...] | None = None
    cuts: tuple[float, ...] = ()

    def of(self, column: pd.Series[Any]) -> IntArray:
        """The codes, shape (n,)."""
        if self.values is not None:
            places = pd.Index(self.values).get_indexer(pd.Index(column.astype(object)))  # -1 where it is not listed
            return np.where(places < 0, len(self.values), places).astype(np.int64)
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        places = np.searchsorted(np.array(self.cuts), np.nan_to_num(numbers), side="right")
        return np.where(np.isnan(numbers), len(self.cuts) + 1, places).astype(np.int64)


class PublicNaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes whose chances are given as counts, with a weight per feature and a shift per class to calibrate it.

    Parameters
    ----------
    columns : how each feature is read
    counts : per feature, how many people have each code and each class, shape (codes, classes); below 0 counts as 0
    classes : values of the target, shape (classes,)
    held : penalty on differences between the features' weights, 0 or more; if it is infinite, all weights are equal
    """

    def __init__(
        self,
        columns: Sequence[Codes] = (),
        counts: Sequence[FloatArray] = (),
        classes: Sequence[str] = (),
        held: float = 0.0,
    ) -> None:
        self.columns, self.counts, self.classes, self.held = columns, counts, classes, held

    def fit(self, frame: pd.DataFrame, target: pd.Series[Any]) -> PublicNaiveBayes:
        """Calibrate by logistic regression on the model's own scores, on rows of a synthetic table.

        Naive Bayes treats columns as independent. So it counts information that two columns share twice, and its
        probabilities are too extreme. A weight per column corrects that (N. Zaidi, J. Cerquides, M. Carman and G. Webb,
        Alleviating naive Bayes attribute independence assumption by attribute weighting, JMLR 14, 2013).
        """
        self.classes_ = np.array(self.classes, dtype=object)
        self.n_features_in_ = len(self.columns)
        self.log_chances_ = []
        totals = np.zeros(len(self.classes))
        for table in self.counts:
            known = np.maximum(table, 0) + SMOOTHING
            totals += known.sum(axis=0) / len(self.counts)
            self.log_chances_.append(np.log(known / known.sum(axis=0)))
        self.log_prior_ = np.log(totals / totals.sum())
        self.weights_, self.shift_ = np.ones(len(self.columns)), np.zeros(len(self.classes))
        places = pd.Index(self.classes_).get_indexer(pd.Index(target.astype(object)))
        rows = np.flatnonzero(places >= 0)
        if len(rows):
            rows = rows[:: math.ceil(len(rows) / MOST_ROWS)]
            self._calibrate(self._logs(frame.iloc[rows]), places[rows])
        return self

    def predict_proba(self, frame: pd.DataFrame) -> FloatArray:
        """The chances of each class, shape (n, classes)."""
        scores = np.tile(self.log_prior_ + self.shift_, (len(frame), 1))
        for column, weight, table in zip(self.columns, self.weights_, self.log_chances_, strict=True):
            scores += weight * table[column.of(frame[column.name])]
        chances: FloatArray = softmax(scores, axis=1)
        return chances

    def predict(self, frame: pd.DataFrame) -> npt.NDArray[np.object_]:
        """The likeliest class, shape (n,)."""
        likeliest: npt.NDArray[np.object_] = self.classes_[self.predict_proba(frame).argmax(axis=1)]
        return likeliest

    def _logs(self, frame: pd.DataFrame) -> FloatArray:
        """The log-probability of each feature's value in each class, shape (features, n, classes)."""
        return np.stack(
            [
                table[column.of(frame[column.name])]
                for column, table in zip(self.columns, self.log_chances_, strict=True)
            ]
        )

    def _calibrate(self, logs: FloatArray, places: IntArray) -> None:
        features, n, classes = logs.shape
        is_class = np.eye(classes)[places]

        def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
            weights, shift = parameters[:features], parameters[features:]
            chances = log_softmax(self.log_prior_ + shift + np.tensordot(weights, logs, axes=1), axis=1)
            off = (np.exp(chances) - is_class) / n
            apart = weights - weights.mean()
            value = -chances[np.arange(n), places].mean() + self.held * (apart**2).sum() + TINY * (parameters**2).sum()
            slope = np.r_[np.tensordot(logs, off, axes=2) + 2 * self.held * apart, off.sum(axis=0)]
            return float(value), slope + 2 * TINY * parameters

        start = np.r_[self.weights_, self.shift_]
        bounds = [(0.0, None)] * features + [(None, None)] * classes  # a feature's weight is never negative
        fitted = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        self.weights_, self.shift_ = fitted[:features], fitted[features:]
