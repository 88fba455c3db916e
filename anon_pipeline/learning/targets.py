"""Guidance of several targets at once, so that one release serves several analyses: a model per target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError
from anon_pipeline.learning.guide import FittedModel, IntArray, TrainedGuide, train
from anon_pipeline.learning.models import LoadLogged, Task, task_of
from anon_pipeline.spec import ColumnType, Guide


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
        said = [part.guidance(frame, fold) * scale for part, scale in zip(self.parts, self.scales, strict=True)]
        return np.hstack(said)


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
    parts = [train(frame, target, guide, task, features, seed, fold, load_logged)]
    if len(guide.targets) < 2:
        return parts[0]
    sample = np.flatnonzero(np.asarray(fold) >= 0)
    for name in guide.targets[1:]:
        missing = int(frame[name].iloc[sample].isna().sum())
        if missing:
            raise InputError(
                f"guide.targets: {missing} of {len(sample)} people have no value in {name}; leave them out of the "
                "source, or the column out of the targets"
            )
        parts.append(train(frame, frame[name], guide, task_of(feature_types[name]), features, seed, fold, load_logged))
    asked, of_fold = frame.iloc[sample].reset_index(drop=True), np.asarray(fold)[sample]
    return JointGuide(tuple(parts), tuple(_scale(part.guidance(asked, of_fold)) for part in parts))


def _scale(guidance: FloatArray) -> float:
    """What brings guidance to a total variance of 1; 1 for guidance that is the same for everybody."""
    variance = float(guidance.var(axis=0).sum())
    size = float(np.abs(guidance).max(initial=0.0))
    return 1.0 if variance <= 1e-12 * size**2 or variance == 0 else 1 / float(np.sqrt(variance))
