"""Naive Bayes over public values, from tables of counts that somebody else has made: it never sees a row of people."""

from __future__ import annotations

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

#: Added to every count, so that no chance is 0.
SMOOTHING = 0.5


@dataclass(frozen=True)
class Codes:
    """How values of a column become codes: places in a list, or intervals between cuts; a missing one is the last.

    Attributes
    ----------
    values : of a list, in the order of their codes; None of numbers
    cuts : of numbers, where the next interval begins, ascending
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
    """Naive Bayes whose chances are given as counts, with one slope and one shift per class to calibrate it.

    Parameters
    ----------
    columns : how each feature is read
    counts : per feature, how many people have each code and each class, shape (codes, classes); below 0 counts as 0
    classes : values of the target, shape (classes,)
    """

    def __init__(
        self, columns: Sequence[Codes] = (), counts: Sequence[FloatArray] = (), classes: Sequence[str] = ()
    ) -> None:
        self.columns, self.counts, self.classes = columns, counts, classes

    def fit(self, frame: pd.DataFrame, target: pd.Series[Any]) -> PublicNaiveBayes:
        """Calibrate on rows that are nobody's, those of a synthetic table: logistic regression on its own scores.

        Counting every column as independent makes naive Bayes too sure of itself; slope and shift mend that (J. Platt,
        Probabilistic outputs for support vector machines, 1999, for several classes).
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
        self.slope_, self.shift_ = 1.0, np.zeros(len(self.classes))
        places = pd.Index(self.classes_).get_indexer(pd.Index(target.astype(object)))
        scores, known_rows = self._scores(frame), places >= 0
        if known_rows.any():
            self._calibrate(scores[known_rows], places[known_rows])
        return self

    def predict_proba(self, frame: pd.DataFrame) -> FloatArray:
        """The chances of each class, shape (n, classes)."""
        chances: FloatArray = softmax(self.slope_ * self._scores(frame) + self.shift_, axis=1)
        return chances

    def predict(self, frame: pd.DataFrame) -> npt.NDArray[np.object_]:
        """The likeliest class, shape (n,)."""
        likeliest: npt.NDArray[np.object_] = self.classes_[self.predict_proba(frame).argmax(axis=1)]
        return likeliest

    def _scores(self, frame: pd.DataFrame) -> FloatArray:
        scores = np.tile(self.log_prior_, (len(frame), 1))
        for column, table in zip(self.columns, self.log_chances_, strict=True):
            scores += table[column.of(frame[column.name])]
        return scores

    def _calibrate(self, scores: FloatArray, places: IntArray) -> None:
        def loss(parameters: FloatArray) -> float:
            logs = log_softmax(parameters[0] * scores + parameters[1:], axis=1)
            return float(-logs[np.arange(len(places)), places].mean() + 1e-6 * (parameters**2).sum())

        fitted = minimize(loss, np.r_[1.0, np.zeros(scores.shape[1])], method="L-BFGS-B").x
        self.slope_, self.shift_ = float(fitted[0]), fitted[1:]
