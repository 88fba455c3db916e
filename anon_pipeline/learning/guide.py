"""The model M that guides the grouping: it is built, fitted on the people, and asked for a prediction for each.

Other modules use its predictions (the tree) and store models (MLflow).

Two rules hold throughout. First, everything is the same for the same seed and row order, whatever the number of
threads. Sums of floating-point numbers depend on how threads share the work; so each fit runs on one thread, and
several fits run side by side. Second, the text of a model's exception is never passed on, because it may quote a
person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.arrays import BoolArray, FloatArray
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.learning.models import Estimator, T, Task, build_model, name_of, quietly, rounds_of
from anon_pipeline.learning.problem import PLAINLY, Fitting, Problem
from anon_pipeline.spec import Guide
from anon_pipeline.threads import one_thread

IntArray = npt.NDArray[np.integer[Any]]

#: Significant bits of a linear model's guidance. Its sums differ between processors by 1e-11 at most. Those of other
#: built-in models differ in the last bit only, which `tables.GUIDANCE_UNIT` rounds away. No model is accurate to 16
#: bits.
LINEAR_BITS = 16
#: Rows predicted at a time, so that the memory of an encoded table does not grow with the table.
CHUNK = 50_000


def side_by_side(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """The results of the jobs, in order; several jobs at a time, each with one OpenMP and one BLAS thread."""
    from joblib import cpu_count  # type: ignore[import-untyped]

    def alone(job: Callable[[], T]) -> T:
        with one_thread():  # OpenMP counts threads per calling thread
            return job()

    # BLAS counts threads per process, so the limit is needed here too.
    # (With more than one thread scikit-learn's boosting even starts processes to bin the columns.)
    with one_thread():
        if len(jobs) == 1:
            return [jobs[0]()]
        with ThreadPoolExecutor(min(len(jobs), cpu_count())) as pool:
            return list(pool.map(alone, jobs))


@dataclass(frozen=True)
class Model:
    """An estimator and what it learns, before it is fitted.

    Attributes
    ----------
    classes
        The sorted classes that answers refer to, shape (c,); the estimator may have seen only some of them. None for a
        regression.
    features
        The columns that it uses, in order.
    """

    name: str
    task: Task
    features: tuple[str, ...]
    classes: npt.NDArray[np.object_] | None
    estimator: Estimator


@dataclass(frozen=True)
class FittedModel(Model):
    """A fitted estimator with its answers in a fixed form."""

    @property
    def has_probabilities(self) -> bool:
        return self.task is Task.CLASSIFICATION and hasattr(self.estimator, "predict_proba")

    def predict(self, frame: pd.DataFrame) -> npt.NDArray[Any]:
        """A label (object) or a number (float64) for each row, shape (n,)."""
        dtype = object if self.task is Task.CLASSIFICATION else np.float64

        def flat(rows: pd.DataFrame) -> npt.NDArray[Any]:
            return np.asarray(self.estimator.predict(rows), dtype=dtype).reshape(len(rows))

        answers = self._ask(frame, flat)
        if self.classes is None and not np.isfinite(answers).all():
            raise InputError(f"guide.model: {self.name} predicts numbers that are not finite; choose another one")
        return answers

    def probabilities(self, frame: pd.DataFrame) -> FloatArray:
        """The probability of each of `classes`, shape (n, c); 0 for a class that the estimator never saw."""
        if not self.has_probabilities or self.classes is None:
            raise InputError(f"guide.on: {self.name} gives no probabilities (predict_proba); use `on: label` with it")
        place = {label: column for column, label in enumerate(self.classes)}

        def aligned(rows: pd.DataFrame) -> FloatArray:
            answers = np.zeros((len(rows), len(place)))
            answers[:, [place[label] for label in self.estimator.classes_]] = self.estimator.predict_proba(rows)
            return answers

        answers = self._ask(frame, aligned)
        if not np.isfinite(answers).all():
            raise InputError(f"guide.model: {self.name} predicts probabilities that are not finite; choose another one")
        return answers

    def _ask(self, frame: pd.DataFrame, function: Callable[[pd.DataFrame], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """`function` over chunks of the rows. Their bounds do not depend on the number of threads."""
        frame = frame[list(self.features)]
        chunks = [frame.iloc[i : i + CHUNK].reset_index(drop=True) for i in range(0, len(frame), CHUNK)] or [frame]
        jobs = [lambda rows=rows: function(rows) for rows in chunks]
        return quietly("guide.model", self.name, "predict", lambda: np.concatenate(side_by_side(jobs)))


@dataclass(frozen=True)
class TrainedGuide:
    """The model M: fitted on all training rows and, for out-of-fold predictions, once more without each fold.

    Attributes
    ----------
    models
        By fold number, the model that did not see that fold; under None, the model fitted on every training row. For
        in-sample predictions there are none by fold; where only out-of-fold guidance was wanted, there is none under
        None.
    on
        Whether labels or probabilities guide; it has no meaning for a regression.
    """

    models: dict[int | None, FittedModel]
    on: str

    @property
    def full(self) -> FittedModel:
        """The model fitted on every training row."""
        return self.models[None]

    @property
    def by_fold(self) -> dict[int, FittedModel]:
        """The model that did not see each fold, by the fold's number."""
        return {number: model for number, model in self.models.items() if number is not None}

    @property
    def classes(self) -> npt.NDArray[np.object_] | None:
        """The sorted classes of the target, shape (c,); None for a regression."""
        return next(iter(self.models.values())).classes

    @property
    def width(self) -> int:
        """The number g of columns of `guidance`."""
        if self.classes is None:
            return 1
        return 1 if self.on == "probability" and len(self.classes) == 2 else len(self.classes)

    def guidance(self, frame: pd.DataFrame, fold: IntArray) -> FloatArray:
        """M's predictions for each row, as vectors that the tree keeps similar within a class.

        Parameters
        ----------
        frame
            The features, shape (n, f).
        fold
            Shape (n,): the fold of each row; -1 for a row that the model fitted on every training row predicts.

        Returns
        -------
        Shape (n, g). Labels: one column per class, 1 where it is predicted. Probabilities: one column per class, or
        that of the second class alone where there are two. Regression: the predicted value.
        """
        if len(fold) != len(frame):
            raise ValueError(f"{len(fold)} folds were given for {len(frame)} rows")
        # Without models per fold, the full model predicts everybody.
        fold = np.asarray(fold) if self.by_fold else np.full(len(frame), -1)
        numbers = np.unique(fold).tolist()
        unknown = {number for number in numbers if _known_as(number) not in self.models}
        if unknown:
            # The full model could predict these rows too, but it may have learnt from them.
            raise ValueError(f"no model was trained without the folds {sorted(unknown)}")
        answers = np.empty((len(frame), self.width))
        for number in numbers:
            rows = np.flatnonzero(fold == number)
            answers[rows] = self._columns(self.models[_known_as(number)], frame.iloc[rows])
        return answers

    def _columns(self, model: FittedModel, frame: pd.DataFrame) -> FloatArray:
        return _rounded(self._answers(model, frame)) if model.name == "linear" else self._answers(model, frame)

    def _answers(self, model: FittedModel, frame: pd.DataFrame) -> FloatArray:
        if model.classes is None:
            return np.asarray(model.predict(frame)[:, None], dtype=np.float64)
        if self.on == "label":
            chosen = model.predict(frame)[:, None] == model.classes[None, :]
            if not chosen.any(axis=1).all():
                raise InputError(f"guide.model: {model.name} predicts labels that are not classes of the target")
            return np.asarray(chosen, dtype=np.float64)
        return model.probabilities(frame)[:, -self.width :]


def _known_as(fold: int) -> int | None:
    """The key of the model that predicts a fold; for -1 the key of the model fitted on everybody."""
    return None if fold == -1 else fold


def _rounded(guidance: FloatArray) -> FloatArray:
    """The same numbers to `LINEAR_BITS` significant bits."""
    mantissa, exponent = np.frexp(guidance)
    rounded: FloatArray = np.ldexp(np.rint(np.ldexp(mantissa, LINEAR_BITS)), exponent - LINEAR_BITS)
    return rounded


def train(
    problem: Problem, guide: Guide, fold: IntArray, fitting: Fitting = PLAINLY, with_full: bool = True
) -> TrainedGuide:
    """Fit M as `guide` says.

    Parameters
    ----------
    fold
        Shape (n,): a number per row, as `assign_folds` gives it; rows with -1 are not trained on.
    with_full
        Whether M is also fitted on everybody where guidance is out of fold.

    Raises
    ------
    ValueError
        If the folds do not fit the rows, or leave nobody to train on.
    """
    rows, targets = len(problem.frame), len(problem.target)
    if not rows == targets == len(fold):
        raise ValueError(f"{rows} rows, {targets} targets and {len(fold)} folds do not fit together")
    fold = np.asarray(fold)
    sample = fold >= 0
    parts: dict[int | None, BoolArray] = {}
    if guide.predictions == "out_of_fold":
        parts |= {number: sample & (fold != number) for number in np.unique(fold[sample]).tolist()}
    if with_full or not parts:
        parts[None] = sample
    if not all(rows.any() for rows in parts.values()):
        raise ValueError("out-of-fold predictions need training rows in at least two folds")
    fitted = fit_parts(problem, guide, list(parts.values()), fitting)
    return TrainedGuide(dict(zip(parts, fitted, strict=True)), guide.on)


def fit_parts(
    problem: Problem, guide: Guide, parts: Sequence[BoolArray], fitting: Fitting = PLAINLY
) -> list[FittedModel]:
    """M fitted on each of several parts of the people, masks of shape (n,); equal parts are fitted once.

    Raises
    ------
    InputError
        Where people of a part have no target, or M does not suit it.
    """
    task, features = problem.task, tuple(problem.types)
    anyone = np.flatnonzero(np.logical_or.reduce(parts))
    check_target(problem.target.iloc[anyone])
    values = problem.target.to_numpy(dtype=object if task is Task.CLASSIFICATION else np.float64)
    classes = np.unique(values[anyone]) if task is Task.CLASSIFICATION else None
    rounds = rounds_of(len(anyone), classes)
    prototype = build_model(guide.model, task, problem.types, problem.seed, fitting.load_logged, rounds)
    model = Model(name_of(guide.model), task, features, classes, prototype)
    different = {np.packbits(part).tobytes(): part for part in parts}
    looked_at = problem.frame[list(features)]
    tasks = [(model, looked_at.iloc[np.flatnonzero(part)], values[part]) for part in different.values()]
    fitted = dict(zip(different, fitting.workers.map(fit_model, tasks, fitting.progress), strict=True))
    models = [fitted[np.packbits(part).tobytes()] for part in parts]
    if task is Task.CLASSIFICATION and guide.on == "probability" and not models[0].has_probabilities:
        raise InputError(f"guide.on: {model.name} gives no probabilities (predict_proba); use `on: label` with it")
    return models


def fit_model(model: Model, frame: pd.DataFrame, target: npt.NDArray[Any]) -> FittedModel:
    """A copy of the model, fitted on these rows alone; a constant where the target has one value only."""
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.frozen import FrozenEstimator

    prototype = model.estimator
    frame = frame[list(model.features)].reset_index(drop=True)
    # A column of numbers without any value holds no information, but boosting cannot bin it; a constant can be binned.
    void = [column for column in model.features if frame[column].dtype.kind == "f" and frame[column].isna().all()]
    frame[void] = 0.0

    def fit() -> Estimator:
        if (target == target[0]).all() and not isinstance(prototype, FrozenEstimator):  # which learns nothing here
            constant = DummyClassifier() if model.task is Task.CLASSIFICATION else DummyRegressor()
            return constant.fit(frame, target)
        estimator = clone(prototype).fit(frame, target)
        # A forest adds up its trees in the order in which threads finish; with a single job the sum is always the same.
        settings = estimator.get_params()
        jobs = [key for key in settings if key.split("__")[-1] == "n_jobs" and settings[key] is not None]
        return estimator.set_params(**dict.fromkeys(jobs, 1)) or estimator

    estimator = quietly("guide.model", model.name, "fit", lambda: side_by_side([fit])[0])
    return FittedModel(model.name, model.task, model.features, model.classes, estimator)


def assign_folds(target: pd.Series[Any], task: Task, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """A fold number 0 .. folds - 1 for each row, shape (n,), shuffled by the seed, which may have more than 32 bits.

    Each fold holds the classes in equal shares where every class has a member for each fold.

    Raises
    ------
    InputError
        For rows without a target, or fewer rows than folds.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    check_target(target)
    if len(target) < folds:
        raise InputError(
            f"folds: {number_of(len(target), 'row', 'rows')} cannot be split into {folds} folds; ask for fewer folds"
        )
    stratify = task is Task.CLASSIFICATION and bool((target.value_counts() >= folds).all())
    drawn = seed if seed < 2**32 else np.random.RandomState(np.random.MT19937(seed))
    splitter = (StratifiedKFold if stratify else KFold)(folds, shuffle=True, random_state=drawn)
    result = np.empty(len(target), dtype=np.int64)
    for number, (_, rows) in enumerate(splitter.split(np.zeros((len(target), 1)), target.to_numpy())):
        result[rows] = number
    return result


def check_target(target: pd.Series[Any]) -> None:
    """Refuse rows without a target: nothing can be learnt from them or scored on them.

    Raises
    ------
    InputError
        If there are any.
    """
    missing = int(target.isna().sum())
    if missing:
        raise InputError(
            f"target: {missing:,} of {number_of(len(target), 'row', 'rows')} {'has' if missing == 1 else 'have'} no "
            "value in it; leave those rows out, or say missing_target: release"
        )
