"""The accuracy of models before and after anonymization, by cross-validation.

In each fold everything is learnt on the training part alone: the guide, the grouping, and two models of each kind, one
on the raw and one on the anonymized training part. Both are scored on the same raw rows, which neither of them has
seen. For the guide's answers the probabilities are checked too (`calibration`), and the scores within groups of people
(`subgroups`). The caller anonymizes the table; the arithmetic is in `scores`.
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
from anon_pipeline.learning.guide import FittedModel, Model, TrainedGuide, assign_folds, fit_model
from anon_pipeline.learning.models import LoadLogged, ModelChoice, Task, build_model, name_of, rounds_of
from anon_pipeline.learning.problem import PLAINLY, Fitting, Problem
from anon_pipeline.learning.scores import Answers, Comparison, compared
from anon_pipeline.learning.subgroups import Subgroup, subgroups
from anon_pipeline.learning.targets import JointGuide, modelled, train_guides_by_fold
from anon_pipeline.spec import BuiltInModel, ColumnType, Guide
from anon_pipeline.workers import ALONE, Progress, Tally, Workers

#: Takes the raw training part (all released columns, the target among them) and its guidance, shape (n, g). Gives the
#: anonymized training part with the same columns and, if people were suppressed, fewer rows.
Anonymize = Callable[[pd.DataFrame, FloatArray], pd.DataFrame]

#: Scores of which a smaller value is better, so that a loss is a positive difference.
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
        The same scores of the further models, by name.
    calibration
        Whether the model's probabilities are right; None where it gives none, or where in some fold nobody was left to
        train on.
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
class CrossValidation:
    """How accuracy is measured.

    Attributes
    ----------
    guide
        The guide, whose model is scored first.
    folds
        The number of folds of this cross-validation. If out-of-fold guidance has equally many, its folds within a
        training part are the remaining folds of the cross-validation. Then a single fit without the folds i and j
        predicts both the people of fold j when i is tested and those of fold i when j is tested. Otherwise each
        training part is split again, into `guide.folds`.
    further_models
        Models that are scored besides the guide's own.
    """

    guide: Guide
    folds: int
    further_models: Sequence[BuiltInModel] = ()


@dataclass(frozen=True)
class Fold:
    """The data of a fold that do not depend on the anonymization: its parts, M's guidance, the raw models' answers."""

    part: pd.DataFrame
    test: pd.DataFrame
    truth: npt.NDArray[Any]
    guidance: FloatArray
    before: dict[str, Answers]


@dataclass(frozen=True)
class Folds:
    """A cross-validation whose raw models have been fitted; `compare` adds an anonymization to it.

    `models` are by name, the guide's first; `unit` is that of `Problem`.
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
    unit: float = 1.0


@dataclass(frozen=True)
class Anonymized:
    """The result of an anonymization in a fold: the number of rows to train on, and the answers of the new models.

    Where everybody was suppressed there is no model, and no answer.
    """

    rows: int
    after: dict[str, Answers]


def measure_utility(
    problem: Problem,
    validation: CrossValidation,
    anonymize: Anonymize,
    fitting: Fitting = PLAINLY,
    columns: Mapping[str, str] | None = None,
    smallest: int = 1,
) -> Utility:
    """Cross-validate the models on the raw and on the anonymized table, with calibration and subgroups of the guide.

    Parameters
    ----------
    problem
        Its frame has all released columns, the target among them.
    fitting
        Fits and folds run side by side in its workers; pickle must then be able to store `anonymize`. Its progress is
        called after each task: first for models of M without a fold or two, then for anonymized folds.
    columns
        The columns by which `subgroups` groups people, each with its type in the source.
    smallest
        Fewest people of any figure.
    """
    fits = Tally(fitting.progress, after=validation.folds)
    prepared = prepare(problem, validation, replace(fitting, progress=fits))
    anonymized = compare_folds(prepared, anonymize, fitting.workers, fits.next())
    measured = summarize(prepared, anonymized)
    if not all(part.rows for part in anonymized):
        return measured
    before = [fold.before[measured.model] for fold in prepared.folds]
    after = [part.after[measured.model] for part in anonymized]
    kinds = {name: (problem.types[name], storage) for name, storage in (columns or {}).items()}
    tests = [fold.test for fold in prepared.folds]
    return replace(
        measured,
        calibration=calibration(before, after, prepared.classes, smallest),
        subgroups=subgroups(tests, (before, after), prepared.classes, kinds, smallest, problem.seed),
    )


def prepare(problem: Problem, validation: CrossValidation, fitting: Fitting = PLAINLY) -> Folds:
    """Fit M, and the further models, in every fold and ask them about the raw test part.

    Parameters
    ----------
    problem
        Its frame has all released columns, the target among them.
    """
    guide, frame, name = validation.guide, problem.frame, str(problem.target.name)
    if isinstance(guide.model, str):
        fitting = replace(fitting, load_logged=None)  # nothing will be loaded, and pickle need not store the loader
    elif fitting.load_logged is not None:
        # The model store is asked once, and not in every fold.
        fitting = replace(fitting, load_logged=functools.cache(fitting.load_logged))
    outer = assign_folds(problem.target, problem.task, validation.folds, problem.seed)
    values = problem.target.to_numpy(dtype=_dtype(problem.task))
    classes = np.unique(values) if problem.task is Task.CLASSIFICATION else None
    further: dict[str, ModelChoice] = {model: model for model in validation.further_models}
    models: dict[str, ModelChoice] = {name_of(guide.model): guide.model, **further}
    prepared = Folds(
        folds=(),
        rows=len(frame),
        target=name,
        task=problem.task,
        feature_types=modelled(guide, problem.types),
        classes=classes,
        guide=guide,
        models=models,
        seed=problem.seed,
        load_logged=fitting.load_logged,
        unit=problem.unit,
    )
    inner = [_inner_folds(problem, validation, outer, number) for number in range(validation.folds)]
    guides = train_guides_by_fold(problem, guide, outer, inner, fitting)
    tasks = []
    for number, trained in enumerate(guides):
        training, tested = np.flatnonzero(outer != number), np.flatnonzero(outer == number)
        part, test = (frame.iloc[rows].reset_index(drop=True) for rows in (training, tested))
        tasks.append((prepared, part, test, values[tested], trained, inner[number][training]))
    return replace(prepared, folds=tuple(fitting.workers.map(_fold, tasks)))


def _inner_folds(
    problem: Problem, validation: CrossValidation, outer: npt.NDArray[np.int64], number: int
) -> npt.NDArray[np.int64]:
    """The inner folds of the people outside of a fold, for out-of-fold guidance; -1 within the fold, shape (n,)."""
    guide, training = validation.guide, outer != number
    inner = np.full(len(outer), -1)
    if guide.predictions == "out_of_fold":
        shared = guide.folds == validation.folds and validation.folds > 2
        inner[training] = (
            outer[training]
            if shared
            else assign_folds(problem.target[training], problem.task, guide.folds, problem.seed)
        )
    else:
        inner[training] = 0
    return inner


def _fold(
    prepared: Folds,
    part: pd.DataFrame,
    test: pd.DataFrame,
    truth: npt.NDArray[Any],
    trained: TrainedGuide | JointGuide,
    inner: npt.NDArray[np.int64],
) -> Fold:
    """A fold, with the answers of each raw model about the people in it."""
    # The guide's full model is the raw model: the same kind, the same seed, the same rows.
    own, *further = prepared.models
    before = {own: _ask(prepared, replace(trained.full, classes=prepared.classes), test, truth)}
    before |= {name: _ask(prepared, _fitted(prepared, name, part), test, truth) for name in further}
    return Fold(part, test, truth, trained.guidance(part, inner), before)


def compare(prepared: Folds, anonymize: Anonymize) -> Utility:
    """Train fresh models of the same kinds on each anonymized training part, and score them on the same raw rows."""
    return summarize(prepared, compare_folds(prepared, anonymize))


def compare_folds(
    prepared: Folds, anonymize: Anonymize, workers: Workers = ALONE, progress: Progress | None = None
) -> list[Anonymized]:
    """The results of `compare_fold` for every fold, in their order."""
    alone = replace(prepared, folds=())  # a task gets its own fold only
    return workers.map(compare_fold, [(alone, fold, anonymize) for fold in prepared.folds], progress)


def compare_fold(prepared: Folds, fold: Fold, anonymize: Anonymize) -> Anonymized:
    """The work of `compare` in a fold; several folds may be done at the same time, in any order."""
    # The anonymizer gets a copy, so that changes it makes do not affect the next step.
    anonymized = anonymize(fold.part.copy(), fold.guidance.copy()).reset_index(drop=True)
    if not len(anonymized):
        return Anonymized(0, {})
    models = {name: _fitted(prepared, name, anonymized) for name in prepared.models}
    after = {name: _ask(prepared, model, fold.test, fold.truth) for name, model in models.items()}
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
        rows_trained_after=tuple(part.rows for part in anonymized),
        metrics=metrics[own],
        further_models={name: metrics[name] for name in further},
    )


def _compared(prepared: Folds, anonymized: Sequence[Anonymized], name: str) -> dict[str, Comparison]:
    """Every score of a model; a fold in which nobody is left to train on has no scores after."""
    before = [fold.before[name].scores(prepared.classes) for fold in prepared.folds]
    after = [part.after[name].scores(prepared.classes) if part.rows else {} for part in anonymized]
    return {
        metric: compared([scores[metric] for scores in before], [scores.get(metric) for scores in after], metric)
        for metric in before[0]
    }


def _fitted(prepared: Folds, name: str, part: pd.DataFrame) -> FittedModel:
    """A new model by its name, trained on a part of the people."""
    task, features = prepared.task, prepared.feature_types
    choice, rounds = prepared.models[name], rounds_of(prepared.rows, prepared.classes)
    prototype = build_model(choice, task, features, prepared.seed, prepared.load_logged, rounds)
    target = part[prepared.target].to_numpy(dtype=_dtype(task))
    return fit_model(Model(name, task, tuple(features), prepared.classes, prototype), part, target)


def _ask(prepared: Folds, model: FittedModel, test: pd.DataFrame, truth: npt.NDArray[Any]) -> Answers:
    """The answers of a model about the people of a fold; numbers are in the unit in which errors are told."""
    answers = model.predict(test)
    if prepared.task is Task.REGRESSION:
        truth, answers = truth / prepared.unit, answers / prepared.unit
    return Answers(truth, answers, model.probabilities(test) if model.has_probabilities else None)


def _dtype(task: Task) -> type:
    return object if task is Task.CLASSIFICATION else np.float64
