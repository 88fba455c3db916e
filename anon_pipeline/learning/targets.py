"""Guidance of several targets at once, so that one release serves several analyses: a model per target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from anon_pipeline.arrays import BoolArray, FloatArray
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.learning.guide import FittedModel, IntArray, TrainedGuide, fit_parts, train
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.problem import PLAINLY, Fitting, Problem
from anon_pipeline.spec import ColumnType, Guide


@dataclass(frozen=True)
class JointGuide:
    """The models of several targets, the spec's own first.

    Attributes
    ----------
    parts
        The trained guide of each target.
    scales
        The factor for each part's guidance, so that its total variance is 1 and every target has the same weight.
    """

    parts: tuple[TrainedGuide, ...]
    scales: tuple[float, ...]

    @property
    def full(self) -> FittedModel:
        """The model of the spec's own target, fitted on every training row."""
        return self.parts[0].full

    def guidance(self, frame: pd.DataFrame, fold: IntArray) -> FloatArray:
        """The predictions of all models for each row, shape (n, g); see `TrainedGuide.guidance`."""
        scaled = [part.guidance(frame, fold) * scale for part, scale in zip(self.parts, self.scales, strict=True)]
        return np.hstack(scaled)


def modelled(guide: Guide, feature_types: dict[str, ColumnType]) -> dict[str, ColumnType]:
    """The columns that models use: the features without any of the targets."""
    return {name: type_ for name, type_ in feature_types.items() if name not in guide.targets}


def train_guide(
    problem: Problem, guide: Guide, fold: IntArray, fitting: Fitting = PLAINLY, with_full: bool = True
) -> TrainedGuide | JointGuide:
    """Fit M as `guide.train` does or, where the guide has several targets, a model for each.

    Parameters
    ----------
    problem
        Its target is the first of the guide's. The other targets are among its columns, and no model uses these.

    Raises
    ------
    InputError
        Where people lack a value in one of the targets, or M does not suit one.
    """
    sample = np.asarray(fold) >= 0
    parts = [train(of_target, guide, fold, fitting, with_full) for of_target in _of_targets(problem, guide, sample)]
    return _joint(parts, problem.frame, np.asarray(fold), sample)


def train_guides_by_fold(
    problem: Problem, guide: Guide, outer: IntArray, inner: Sequence[IntArray], fitting: Fitting = PLAINLY
) -> list[TrainedGuide | JointGuide]:
    """The result of `train_guide` for the people outside of each fold; fits run side by side, and equal ones once.

    Parameters
    ----------
    outer
        The fold of each person, 0 .. folds - 1, shape (n,).
    inner
        For each fold, the inner folds of the people outside of it, shape (n,); -1 for people in the fold.
    fitting
        Its progress is called with (fits done, fits) for each target.
    """
    frame = problem.frame
    everybody = np.ones(len(frame), dtype=bool)
    by_fold: list[list[TrainedGuide]] = [[] for _ in inner]
    for of_target in _of_targets(problem, guide, everybody):
        parts: dict[tuple[int, int | None], BoolArray] = {}
        for number, held_out in enumerate(inner):
            outside = outer != number
            parts[number, None] = outside
            if guide.predictions == "out_of_fold":
                for left_out in np.unique(held_out[outside]).tolist():
                    parts[number, left_out] = outside & (held_out != left_out)
        fitted = fit_parts(of_target, guide, list(parts.values()), fitting)
        models = dict(zip(parts, fitted, strict=True))
        for number, guides in enumerate(by_fold):
            of_fold = {left_out: model for (of, left_out), model in models.items() if of == number}
            guides.append(TrainedGuide(of_fold, guide.on))
    return [_joint(guides, frame, inner[number], outer != number) for number, guides in enumerate(by_fold)]


def _of_targets(problem: Problem, guide: Guide, sample: BoolArray) -> Iterator[Problem]:
    """The problem of each target, the spec's own target first."""
    features = modelled(guide, problem.types)
    yield replace(problem, types=features)
    for name in guide.targets[1:]:
        learnt = problem.frame[name]
        missing = int(learnt[sample].isna().sum())
        if missing:
            raise InputError(
                f"guide.targets: {missing:,} of {number_of(int(sample.sum()), 'person', 'people')} "
                f"{'has' if missing == 1 else 'have'} no value in {name}; leave them out of the source, or the column "
                "out of the targets"
            )
        yield replace(problem, target=learnt, task=task_of(problem.types[name]), types=features)


def _joint(
    parts: Sequence[TrainedGuide], frame: pd.DataFrame, fold: IntArray, sample: BoolArray
) -> TrainedGuide | JointGuide:
    if len(parts) == 1:
        return parts[0]
    asked, of_fold = frame[sample].reset_index(drop=True), fold[sample]
    return JointGuide(tuple(parts), tuple(_scale(part.guidance(asked, of_fold)) for part in parts))


def _scale(guidance: FloatArray) -> float:
    """The factor that gives guidance a total variance of 1; it is 1 for guidance that is the same for everybody."""
    variance = float(guidance.var(axis=0).sum())
    size = float(np.abs(guidance).max(initial=0.0))
    return 1.0 if variance <= 1e-12 * size**2 or variance == 0 else 1 / float(np.sqrt(variance))
