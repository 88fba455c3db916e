"""The answer of a model about a person: its confidence in the truth, read from any scikit-learn-compatible model.

This module also runs foreign code with care: on a single thread, and without passing on the text of an exception. The
attacks say how an attacker uses the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.threads import one_thread as limited

#: A fitted estimator: it has `predict`, and may have `classes_`, `predict_proba` and `decision_function`.
Model = Any
#: Takes a raw part of the people (features and target) and a seed, and gives a model fitted on that part. It may
#: anonymize the part before.
Train = Callable[[pd.DataFrame, int], Model]

#: The share of people for whom the largest of three decisions must be the predicted class to be one per class.
LARGEST_PREDICTED = 0.9

T = TypeVar("T")


class Answer(StrEnum):
    """The kinds of answers that an attacker can use, the most informative first."""

    PROBABILITY = "probability"
    MARGIN = "margin"
    LABEL = "label"
    NUMBER = "number"


def answer_of(model: Model, truth: pd.Series) -> Answer:
    """The most informative kind of answer that a model gives about people whose targets are `truth`."""
    from sklearn.base import is_regressor

    if hasattr(model, "classes_"):
        if hasattr(model, "predict_proba"):
            return Answer.PROBABILITY
        return Answer.MARGIN if hasattr(model, "decision_function") else Answer.LABEL
    try:
        regressor = is_regressor(model)
    except Exception:  # other libraries' estimators may lack the tags of this version of scikit-learn
        regressor = pd.api.types.is_numeric_dtype(truth) and not pd.api.types.is_bool_dtype(truth)
    return Answer.NUMBER if regressor else Answer.LABEL


def confidence(model: Model, features: pd.DataFrame, truth: pd.Series, answer: Answer) -> FloatArray:
    """The model's confidence in the truth of each person, shape (n,).

    PROBABILITY: the probability of the true class, 0 for a class that the model never saw. MARGIN: the decision
    function of the true class less the largest of another. LABEL: 1 where the prediction is right, else 0. NUMBER: the
    residual, truth less prediction, in the target's unit.
    """
    if answer is Answer.PROBABILITY:
        return probabilities(model, features, truth)
    if answer is Answer.MARGIN:
        return _margins(model, features, truth)
    predicted = ask(lambda: np.asarray(model.predict(features)).reshape(len(features)))
    if answer is Answer.LABEL:
        right: FloatArray = np.equal(predicted.astype(object), truth.to_numpy(dtype=object)).astype(np.float64)
        return right
    residual: FloatArray = truth.to_numpy(np.float64) - predicted.astype(np.float64)
    return _finite(residual)


def log_odds(probability: FloatArray, least: float) -> FloatArray:
    """log(p / (1 - p)), which is nearly normally distributed over trainings, unlike p (Carlini et al. 2022).

    `least` keeps p away from 0 and 1, where the odds are infinite.
    """
    p = np.clip(probability, least, 1 - least)
    odds: FloatArray = np.log(p) - np.log1p(-p)
    return odds


def probabilities(model: Model, features: pd.DataFrame, truth: pd.Series) -> FloatArray:
    """The probability that the model gives to each person's true class, shape (n,)."""
    column = _columns(model, truth)
    answers = ask(lambda: np.asarray(model.predict_proba(features), dtype=np.float64))
    return _finite(np.where(column < 0, 0.0, answers[np.arange(len(features)), np.maximum(column, 0)]))


@dataclass(frozen=True)
class Question:
    """The columns that a model predicts and needs, and those that an attacker wants to know.

    Attributes
    ----------
    target : the column that the model predicts
    features : the columns that it needs for a prediction
    attributes : the features to infer; all of them where None
    """

    target: str
    features: Sequence[str]
    attributes: Sequence[str] | None = None


def split(people: pd.DataFrame, target: str, features: Sequence[str]) -> tuple[pd.DataFrame, pd.Series]:
    """The features and the target of the people.

    Raises
    ------
    InputError
        For a column that is not there, or people without a target.
    """
    missing = [name for name in (target, *features) if name not in people.columns]
    if missing:
        raise InputError(f"the table has no column {missing[0]}")
    if target in features or not features:
        raise InputError("name at least one feature, and not the target itself")
    if people[target].isna().any():
        raise InputError(f"some people have no {target}; leave them out, a model cannot be asked about them")
    return people[list(features)].reset_index(drop=True), people[target].reset_index(drop=True)


def ask(function: Callable[[], T], verb: str = "answer") -> T:
    """Run foreign code; of an exception only the type is passed on, because its text may hold a value of a person.

    Raises
    ------
    InputError
        If the code fails.
    """
    try:
        return function()
    except (Exception, SystemExit) as error:
        if isinstance(error, InputError | Refused):
            raise
        kind = type(error).__name__
    # Raised here and not in the handler: `from None` would hide the original, but leave it in __context__.
    raise InputError(
        f"the attacked model failed to {verb} ({kind}; its own message is withheld because it may quote data); "
        "try it by hand on the same columns"
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Run foreign code on the calling thread alone, so that its figures do not depend on which thread ends first.

    Sums of floating-point numbers depend on how threads share the work: in BLAS, in OpenMP, and in forests with
    n_jobs=-1. Several models do not run side by side either: scikit-learn changes the process's warning filters while
    it works, which is not safe among threads, and on Adult it would gain nothing.
    """
    from joblib import parallel_config

    with limited(), parallel_config(backend="sequential"):
        yield


def _columns(model: Model, truth: pd.Series) -> npt.NDArray[np.intp]:
    """The place of each true class among the model's classes, shape (n,); -1 for one that the model never saw."""
    place = {label: column for column, label in enumerate(np.asarray(model.classes_).tolist())}
    column = np.array([place.get(label, -1) for label in truth.tolist()], dtype=np.intp)
    if len(column) and (column < 0).all():
        raise InputError("no class of the attacked model is a value of the target; was it trained on another column?")
    return column


def _margins(model: Model, features: pd.DataFrame, truth: pd.Series) -> FloatArray:
    column = _columns(model, truth)
    answers = ask(lambda: np.asarray(model.decision_function(features), dtype=np.float64))
    if answers.ndim == 1:  # two classes: positive for the second
        answers = np.column_stack([-answers, answers])
    if not _is_per_class(model, features, answers):
        return confidence(model, features, truth, Answer.LABEL)
    own = answers[np.arange(len(answers)), np.maximum(column, 0)]
    others = answers.copy()
    others[np.arange(len(answers)), np.maximum(column, 0)] = -np.inf
    return _finite(np.where(column < 0, answers.min(axis=1) - answers.max(axis=1), own - others.max(axis=1)))


def _is_per_class(model: Model, features: pd.DataFrame, answers: FloatArray) -> bool:
    """Whether a decision function, shape (n, columns), has a column per class rather than one per pair of classes.

    Three classes have three pairs, too; there, the largest column is the predicted class but for ties, or is of a pair.
    """
    classes = np.asarray(model.classes_)
    if answers.shape[1] != len(classes):
        return False
    if len(classes) != 3:
        return True
    predicted = ask(lambda: np.asarray(model.predict(features)).reshape(len(features)))
    return bool((classes[answers.argmax(axis=1)] == predicted).mean() >= LARGEST_PREDICTED)


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise InputError("the attacked model gives numbers that are not finite")
    return values
