"""What a release costs the model: accuracy before and after anonymization, by cross-validation.

In each fold everything is learnt on the training part alone: the guide, the grouping, and two models of each kind, one
on the raw and one on the anonymized training part. Both are scored on the same raw rows that none of them has seen, and
the guide's answers are looked at more closely: are its probabilities right (`calibration`), and for whom (`subgroups`)?
How the table is anonymized is the caller's; the arithmetic is in `scores`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.arrays import FloatArray
from anon_pipeline.learning.calibration import Calibration, calibration
from anon_pipeline.learning.guide import FittedModel, assign_folds, fit_model
from anon_pipeline.learning.models import LoadLogged, ModelChoice, Task, build_model, name_of
from anon_pipeline.learning.scores import Answers, Comparison, compared
from anon_pipeline.learning.subgroups import Subgroup, subgroups
from anon_pipeline.learning.targets import modelled, train_guide
from anon_pipeline.spec import BuiltInModel, ColumnType, Guide

#: Takes the raw training part (all released columns, the target among them) and its guidance, shape (n, g); gives the
#: anonymized training part with the same columns and, where people were suppressed, fewer rows.
Anonymize = Callable[[pd.DataFrame, FloatArray], pd.DataFrame]

#: Of these scores a smaller value is the better one, so that a loss shows as a positive difference.
SMALLER_IS_BETTER = frozenset({"mae"})


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
    further_models
        The same of the further models, by name.
    calibration
        How far the model's answers can be taken at their word; None where it gives no probabilities, or where in some
        fold nobody was left to train on.
    subgroups
        The same scores within the larger groups of people, column by column.
    """

    model: str
    task: Task
    folds: int
    rows: int
    rows_trained_before: tuple[int, ...]
    rows_trained_after: tuple[int, ...]
    metrics: dict[str, Comparison]
    further_models: dict[str, dict[str, Comparison]] = field(default_factory=dict)
    calibration: Calibration | None = None
    subgroups: tuple[Subgroup, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data that `json.dumps(..., allow_nan=False)` accepts; what is not defined is None."""
        return asdict(self)


@dataclass(frozen=True)
class Fold:
    """What one fold needs whatever the anonymization: its parts, what M says, and each model's answers without it."""

    part: pd.DataFrame
    test: pd.DataFrame
    truth: npt.NDArray[Any]
    guidance: FloatArray
    before: dict[str, Answers]


@dataclass(frozen=True)
class Folds:
    """A cross-validation whose raw models have been fitted; `compare` adds an anonymization to it.

    `models` are by name, the guide's first.
    """

    folds: tuple[Fold, ...]
    rows: int
    target: str
    task: Task
    feature_types: dict[str, ColumnType]
    classes: npt.NDArray[Any] | None
    guide: Guide
    models: dict[str, ModelChoice]
    seed: int
    load_logged: LoadLogged | None


@dataclass(frozen=True)
class Anonymized:
    """What came of an anonymization in one fold: the rows left to train on, and the answers of models trained on them.

    Where everybody was suppressed there is no model, and no answer.
    """

    rows: int
    after: dict[str, Answers]


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
    further_models: Sequence[BuiltInModel] = (),
    columns: Mapping[str, str] | None = None,
    smallest: int = 1,
) -> Utility:
    """Cross-validate the models on the raw and on the anonymized table, and look at the guide's answers closely.

    Parameters
    ----------
    further_models
        Scored beside the guide's own.
    columns
        By whose larger values the people are told apart in `subgroups`, each with its type in the source.
    smallest
        No figure is of fewer people than these.
    """
    prepared = prepare(
        frame, target_name, feature_types, task, guide, folds, seed, load_logged, progress, further_models
    )
    anonymized = [compare_fold(prepared, fold, anonymize) for fold in prepared.folds]
    measured = summarize(prepared, anonymized)
    if not all(one.rows for one in anonymized):
        return measured
    before = [fold.before[measured.model] for fold in prepared.folds]
    after = [one.after[measured.model] for one in anonymized]
    kinds = {name: (feature_types[name], storage) for name, storage in (columns or {}).items()}
    return replace(
        measured,
        calibration=calibration(before, after, prepared.classes, smallest),
        subgroups=subgroups([fold.test for fold in prepared.folds], before, after, prepared.classes, kinds, smallest),
    )


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
    further_models: Sequence[BuiltInModel] = (),
) -> Folds:
    """Fit M, and the further models, in every fold and ask them about the raw test part.

    Parameters
    ----------
    frame
        All released columns, shape (n, c), in a canonical order of rows.
    feature_types
        The columns a model may look at, and the types of the guide's other targets; the target is left out where it is
        among them.
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
    models: dict[str, ModelChoice] = {name_of(guide.model): guide.model, **{name: name for name in further_models}}
    looked_at = modelled(guide, feature_types)
    prepared = Folds((), len(frame), target_name, task, looked_at, classes, guide, models, seed, load_logged)
    done: list[Fold] = []
    for number in range(folds):
        part = frame.iloc[np.flatnonzero(outer != number)].reset_index(drop=True)
        test = frame.iloc[np.flatnonzero(outer == number)].reset_index(drop=True)
        truth = values[outer == number]
        inner = np.zeros(len(part), dtype=np.int64)
        if guide.predictions == "out_of_fold":
            inner = assign_folds(part[target_name], task, guide.folds, seed)
        trained = train_guide(part, part[target_name], guide, task, feature_types, seed, inner, load_logged)
        # The guide's full model is the raw model: the same kind, the same seed, the same rows.
        own, *further = models
        before = {own: _ask(replace(trained.full, classes=classes), test, truth)}
        before |= {name: _ask(_fitted(prepared, name, part), test, truth) for name in further}
        done.append(Fold(part, test, truth, trained.guidance(part, inner), before))
        if progress is not None:
            progress(number + 1, folds)
    return replace(prepared, folds=tuple(done))


def compare(prepared: Folds, anonymize: Anonymize) -> Utility:
    """Train fresh models of the same kinds on each anonymized training part, and score them on the same raw rows."""
    return summarize(prepared, [compare_fold(prepared, fold, anonymize) for fold in prepared.folds])


def compare_fold(prepared: Folds, fold: Fold, anonymize: Anonymize) -> Anonymized:
    """What `compare` does in one fold; several may be done at a time, and in any order."""
    # The anonymizer gets a table of its own: whatever it does to it, the next step sees nothing of it.
    anonymized = anonymize(fold.part.copy(), fold.guidance.copy()).reset_index(drop=True)
    if not len(anonymized):
        return Anonymized(0, {})
    after = {name: _ask(_fitted(prepared, name, anonymized), fold.test, fold.truth) for name in prepared.models}
    return Anonymized(len(anonymized), after)


def summarize(prepared: Folds, anonymized: Sequence[Anonymized]) -> Utility:
    """The scores over all folds, in their order."""
    own, *further = prepared.models
    metrics = {name: _compared(prepared, anonymized, name) for name in prepared.models}
    return Utility(
        model=own,
        task=prepared.task,
        folds=len(prepared.folds),
        rows=prepared.rows,
        rows_trained_before=tuple(len(fold.part) for fold in prepared.folds),
        rows_trained_after=tuple(one.rows for one in anonymized),
        metrics=metrics[own],
        further_models={name: metrics[name] for name in further},
    )


def _compared(prepared: Folds, anonymized: Sequence[Anonymized], name: str) -> dict[str, Comparison]:
    """Every score of one model; a fold without anybody to learn from has none after."""
    before = [fold.before[name].scores(prepared.classes) for fold in prepared.folds]
    after = [one.after[name].scores(prepared.classes) if one.rows else {} for one in anonymized]
    return {
        metric: compared([one[metric] for one in before], [one.get(metric) for one in after]) for metric in before[0]
    }


def _fitted(prepared: Folds, name: str, part: pd.DataFrame) -> FittedModel:
    """A fresh model of one kind, trained on a part of the people."""
    task, features = prepared.task, prepared.feature_types
    prototype = build_model(prepared.models[name], task, features, prepared.seed, prepared.load_logged)
    target = part[prepared.target].to_numpy(dtype=_dtype(task))
    return fit_model(name, prototype, part, target, task, tuple(features), prepared.classes)


def _ask(model: FittedModel, test: pd.DataFrame, truth: npt.NDArray[Any]) -> Answers:
    return Answers(truth, model.predict(test), model.probabilities(test) if model.has_probabilities else None)


def _dtype(task: Task) -> type:
    return object if task is Task.CLASSIFICATION else np.float64
