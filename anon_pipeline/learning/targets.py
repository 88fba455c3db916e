"""Guidance of several targets at once, so that one release serves several analyses: a model per target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.arrays import BoolArray, FloatArray
from anon_pipeline.errors import InputError
from anon_pipeline.learning.guide import FittedModel, IntArray, TrainedGuide, fit_parts, train
from anon_pipeline.learning.models import LoadLogged, Task, task_of
from anon_pipeline.spec import ColumnType, Guide
from anon_pipeline.workers import ALONE, Progress, Workers


@dataclass(frozen=True)
class JointGuide:
    """The models of several targets, the spec's own first.

    Attributes
    ----------
    parts
        What was trained for each target.
    scales
        What each part's guidance is multiplied by, so that its total variance is 1 and every target weighs the same.
    """

    parts: tuple[TrainedGuide, ...]
    scales: tuple[float, ...]

    @property
    def full(self) -> FittedModel:
        """The model of the spec's own target, fitted on every training row."""
        return self.parts[0].full

    def guidance(self, frame: pd.DataFrame, fold: IntArray) -> FloatArray:
        """What the models say about each row, shape (n, g); as `TrainedGuide.guidance` says for each of them."""
        scaled = [part.guidance(frame, fold) * scale for part, scale in zip(self.parts, self.scales, strict=True)]
        return np.hstack(scaled)


def modelled(guide: Guide, feature_types: dict[str, ColumnType]) -> dict[str, ColumnType]:
    """The columns that models look at: the features without any of the targets."""
    return {name: type_ for name, type_ in feature_types.items() if name not in guide.targets}


def train_guide(
    frame: pd.DataFrame,
    target: pd.Series[Any],
    guide: Guide,
    task: Task,
    feature_types: dict[str, ColumnType],
    seed: int,
    fold: IntArray,
    load_logged: LoadLogged | None = None,
    workers: Workers = ALONE,
    with_full: bool = True,
) -> TrainedGuide | JointGuide:
    """Fit M as `guide.train` does or, where the guide has several targets, a model for each.

    Parameters
    ----------
    frame
        The features, shape (n, f), the other targets among them; these no model looks at.
    target
        The first of the guide's targets.
    feature_types
        The columns of `frame`; the type of another target says what its model learns.

    Raises
    ------
    InputError
        Where people lack a value in one of the targets, or M does not suit one.
    """
    features = modelled(guide, feature_types)
    sample = np.asarray(fold) >= 0
    parts = [
        train(frame, outcome, guide, kind, features, seed, fold, load_logged, workers, with_full)
        for outcome, kind in _targets(frame, target, guide, task, feature_types, sample)
    ]
    return _joint(parts, frame, np.asarray(fold), sample)


def train_guides_by_fold(
    frame: pd.DataFrame,
    target: pd.Series[Any],
    guide: Guide,
    task: Task,
    feature_types: dict[str, ColumnType],
    seed: int,
    outer: IntArray,
    inner: Sequence[IntArray],
    load_logged: LoadLogged | None = None,
    workers: Workers = ALONE,
    progress: Progress | None = None,
) -> list[TrainedGuide | JointGuide]:
    """What `train_guide` gives for the people outside of each fold, all fits side by side, and equal ones once.

    Parameters
    ----------
    outer
        The fold of each person, 0 .. folds - 1, shape (n,).
    inner
        Per fold, what holds out whom among the people outside of it, shape (n,); -1 for who is in the fold.
    progress
        Called with (fits done, fits) for each target.
    """
    features = modelled(guide, feature_types)
    everybody = np.ones(len(frame), dtype=bool)
    by_fold: list[list[TrainedGuide]] = [[] for _ in inner]
    for outcome, kind in _targets(frame, target, guide, task, feature_types, everybody):
        parts: dict[tuple[int, int | None], BoolArray] = {}
        for number, held_out in enumerate(inner):
            outside = outer != number
            parts[number, None] = outside
            if guide.predictions == "out_of_fold":
                for left in np.unique(held_out[outside]).tolist():
                    parts[number, left] = outside & (held_out != left)
        masks = list(parts.values())
        fitted = fit_parts(frame, outcome, guide, kind, features, seed, masks, load_logged, workers, progress)
        models = dict(zip(parts, fitted, strict=True))
        for number, guides in enumerate(by_fold):
            guides.append(TrainedGuide({left: model for (of, left), model in models.items() if of == number}, guide.on))
    return [_joint(guides, frame, inner[number], outer != number) for number, guides in enumerate(by_fold)]


def _targets(
    frame: pd.DataFrame,
    target: pd.Series[Any],
    guide: Guide,
    task: Task,
    feature_types: dict[str, ColumnType],
    sample: BoolArray,
) -> Iterator[tuple[pd.Series[Any], Task]]:
    """What there is to learn, the spec's own target first."""
    yield target, task
    for name in guide.targets[1:]:
        missing = int(frame[name][sample].isna().sum())
        if missing:
            raise InputError(
                f"guide.targets: {missing} of {int(sample.sum())} people have no value in {name}; leave them out of "
                "the source, or the column out of the targets"
            )
        yield frame[name], task_of(feature_types[name])


def _joint(
    parts: Sequence[TrainedGuide], frame: pd.DataFrame, fold: IntArray, sample: BoolArray
) -> TrainedGuide | JointGuide:
    if len(parts) == 1:
        return parts[0]
    asked, of_fold = frame[sample].reset_index(drop=True), fold[sample]
    return JointGuide(tuple(parts), tuple(_scale(part.guidance(asked, of_fold)) for part in parts))


def _scale(guidance: FloatArray) -> float:
    """What brings guidance to a total variance of 1; 1 for guidance that is the same for everybody."""
    variance = float(guidance.var(axis=0).sum())
    size = float(np.abs(guidance).max(initial=0.0))
    return 1.0 if variance <= 1e-12 * size**2 or variance == 0 else 1 / float(np.sqrt(variance))
