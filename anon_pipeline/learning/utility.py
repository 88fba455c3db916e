"""What a release costs the model: accuracy before and after anonymization, by cross-validation.

In each fold everything is learnt on the training part alone: the guide, the grouping, and two models of one kind, one
on the raw and one on the anonymized training part. Both are scored on the same raw rows that none of them has seen.
How the table is anonymized is the caller's; the arithmetic is in `scores`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.learning.guide import (
    FittedModel,
    FloatArray,
    LoadLogged,
    Task,
    assign_folds,
    build_model,
    fit_model,
    name_of,
    train,
)
from anon_pipeline.learning.scores import Estimate, classification_scores, difference, estimate, regression_scores
from anon_pipeline.spec import ColumnType, Guide

#: Takes the raw training part (all released columns, the target among them) and its guidance, shape (n, g); gives the
#: anonymized training part with the same columns and, where people were suppressed, fewer rows.
Anonymize = Callable[[pd.DataFrame, FloatArray], pd.DataFrame]

#: Of these scores a smaller value is the better one, so that a loss shows as a positive difference.
SMALLER_IS_BETTER = frozenset({"mae"})


@dataclass(frozen=True)
class Comparison:
    """One score: on the raw table, on the anonymized one, and the paired difference after - before."""

    before: Estimate
    after: Estimate
    difference: Estimate


@dataclass(frozen=True)
class Utility:
    """Accuracy before and after.

    Attributes
    ----------
    model
        The model that was trained, as the spec names it.
    rows
        People in the table; each is in the test part once.
    rows_trained_before, rows_trained_after
        Per fold, people in the training part, raw and after suppression.
    metrics
        accuracy, balanced_accuracy and roc_auc, or r2 and mae.
    """

    model: str
    task: Task
    folds: int
    rows: int
    rows_trained_before: tuple[int, ...]
    rows_trained_after: tuple[int, ...]
    metrics: dict[str, Comparison]

    def as_dict(self) -> dict[str, Any]:
        """Plain data that `json.dumps(..., allow_nan=False)` accepts; what is not defined is None."""
        return asdict(self)


@dataclass(frozen=True)
class Fold:
    """What one fold needs whatever the anonymization: its parts, what M says, and the scores without it."""

    part: pd.DataFrame
    test: pd.DataFrame
    truth: npt.NDArray[Any]
    guidance: FloatArray
    before: dict[str, float | None]


@dataclass(frozen=True)
class Folds:
    """A cross-validation whose raw models have been fitted; `compare` adds an anonymization to it."""

    folds: tuple[Fold, ...]
    rows: int
    target: str
    task: Task
    feature_types: dict[str, ColumnType]
    classes: npt.NDArray[Any] | None
    guide: Guide
    seed: int
    load_logged: LoadLogged | None


@dataclass(frozen=True)
class Anonymized:
    """What came of an anonymization in one fold: the rows left to train on, and the scores with it."""

    rows: int
    after: dict[str, float | None]


def measure_utility(
    frame: pd.DataFrame,
    target_name: str,
    feature_types: dict[str, ColumnType],
    task: Task,
    guide: Guide,
    folds: int,
    seed: int,
    anonymize: Anonymize,
    load_logged: LoadLogged | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Utility:
    """Cross-validate the model on the raw and on the anonymized table; `prepare`, then `compare`."""
    prepared = prepare(frame, target_name, feature_types, task, guide, folds, seed, load_logged, progress)
    return compare(prepared, anonymize)


def prepare(
    frame: pd.DataFrame,
    target_name: str,
    feature_types: dict[str, ColumnType],
    task: Task,
    guide: Guide,
    folds: int,
    seed: int,
    load_logged: LoadLogged | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Folds:
    """Fit M in every fold and score it on the raw test part.

    Parameters
    ----------
    frame
        All released columns, shape (n, c), in a canonical order of rows.
    feature_types
        The columns a model may look at; the target is left out where it is among them.
    folds
        Of this cross-validation; out-of-fold guidance has `guide.folds` inner ones.
    progress
        Called with (folds done, folds) after each fold.
    """
    feature_types = {name: type_ for name, type_ in feature_types.items() if name != target_name}
    if load_logged is not None:
        load_logged = functools.cache(load_logged)  # a model store is asked once, not in every fold
    outer = assign_folds(frame[target_name], task, folds, seed)
    values = frame[target_name].to_numpy(dtype=_dtype(task))
    classes = np.unique(values) if task is Task.CLASSIFICATION else None
    prepared = []
    for number in range(folds):
        part = frame.iloc[np.flatnonzero(outer != number)].reset_index(drop=True)
        test = frame.iloc[np.flatnonzero(outer == number)].reset_index(drop=True)
        truth = values[outer == number]
        inner = np.zeros(len(part), dtype=np.int64)
        if guide.predictions == "out_of_fold":
            inner = assign_folds(part[target_name], task, guide.folds, seed)
        trained = train(part, part[target_name], guide, task, feature_types, seed, inner, load_logged)
        # The guide's full model is the raw model: the same kind, the same seed, the same rows.
        before = _score(replace(trained.full, classes=classes), test, truth)
        prepared.append(Fold(part, test, truth, trained.guidance(part, inner), before))
        if progress is not None:
            progress(number + 1, folds)
    return Folds(tuple(prepared), len(frame), target_name, task, feature_types, classes, guide, seed, load_logged)


def compare(prepared: Folds, anonymize: Anonymize) -> Utility:
    """Train a fresh model of the same kind on each anonymized training part, and score it on the same raw rows."""
    return summarize(prepared, [compare_fold(prepared, fold, anonymize) for fold in prepared.folds])


def compare_fold(prepared: Folds, fold: Fold, anonymize: Anonymize) -> Anonymized:
    """What `compare` does in one fold; several may be done at a time, and in any order."""
    # The anonymizer gets a table of its own: whatever it does to it, the next step sees nothing of it.
    anonymized = anonymize(fold.part.copy(), fold.guidance.copy()).reset_index(drop=True)
    if not len(anonymized):
        return Anonymized(0, dict.fromkeys(fold.before))  # everybody was suppressed: there is nothing to learn from
    task, guide = prepared.task, prepared.guide
    prototype = build_model(guide.model, task, prepared.feature_types, prepared.seed, prepared.load_logged)
    learnt = anonymized[prepared.target].to_numpy(dtype=_dtype(task))
    features = tuple(prepared.feature_types)
    model = fit_model(name_of(guide.model), prototype, anonymized, learnt, task, features, prepared.classes)
    return Anonymized(len(anonymized), _score(model, fold.test, fold.truth))


def summarize(prepared: Folds, anonymized: Sequence[Anonymized]) -> Utility:
    """The utility over all folds, in their order."""
    pairs = [(fold.before, one.after) for fold, one in zip(prepared.folds, anonymized, strict=True)]
    metrics = {
        metric: Comparison(
            before=estimate([before[metric] for before, _ in pairs]),
            after=estimate([after[metric] for _, after in pairs]),
            difference=estimate([difference(after[metric], before[metric]) for before, after in pairs]),
        )
        for metric in pairs[0][0]
    }
    return Utility(
        model=name_of(prepared.guide.model),
        task=prepared.task,
        folds=len(pairs),
        rows=prepared.rows,
        rows_trained_before=tuple(len(fold.part) for fold in prepared.folds),
        rows_trained_after=tuple(one.rows for one in anonymized),
        metrics=metrics,
    )


def _dtype(task: Task) -> type:
    return object if task is Task.CLASSIFICATION else np.float64


def _score(model: FittedModel, test: pd.DataFrame, truth: npt.NDArray[Any]) -> dict[str, float | None]:
    predicted = model.predict(test)
    if model.classes is None:
        return regression_scores(truth, predicted)
    probabilities = model.probabilities(test) if model.has_probabilities else None
    return classification_scores(truth, predicted, probabilities, model.classes)
