"""The learning problem and the way models are fitted: data that the functions of this package pass to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.learning.models import LoadLogged, Task, task_of
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.workers import ALONE, Progress, Workers


@dataclass(frozen=True, eq=False)
class Problem:
    """The data that a model learns from and its task. Frame and target belong together by position.

    Attributes
    ----------
    frame
        The people, shape (n, c): numbers as float64 with NaN, categories as str with None where missing. The order of
        the rows is part of the result, so it must be a canonical one.
    target
        Shape (n,): float64 for a regression, else str. Without missing values in the training sample.
    task
        Whether the target is a category or a number.
    types
        The columns of `frame` that a model may use, in order; and the guide's other targets, whose types decide the
        task of their models.
    seed
        The seed of every random choice of the models.
    """

    frame: pd.DataFrame
    target: pd.Series[Any]
    task: Task
    types: dict[str, ColumnType]
    seed: int

    @classmethod
    def within(cls, frame: pd.DataFrame, target: str, task: Task, types: dict[str, ColumnType], seed: int) -> Problem:
        """The problem of learning a column of the frame; no model then uses this column."""
        return cls(frame, frame[target], task, {name: type_ for name, type_ in types.items() if name != target}, seed)

    def robust(self, k: int) -> Problem:
        """The same problem in which nobody's own target decides a score, for releases that leave people out.

        Labels that fewer than k people have become the most frequent one, unless fewer than two labels remain; without
        these people, the number of the others would tell of them. Of numbers, those of one of 100 people on either
        side, and of two at least, become the next number (winsorizing: J. W. Tukey, "The future of data analysis",
        1962).
        """
        name = str(self.target.name)
        if self.task is Task.CLASSIFICATION:
            counts = self.target.value_counts().sort_index()
            if (counts >= k).sum() < 2:
                return self
            frequent = self.target.isin(counts.index[counts >= k])
            frame = self.frame.assign(**{name: self.target.where(frequent, counts.idxmax())})
            return replace(self, frame=frame, target=frame[name])
        ordered = np.sort(self.target.to_numpy(dtype=np.float64))
        beyond = min(max(2, -(-len(ordered) // 100)), (len(ordered) - 1) // 2)
        frame = self.frame.assign(**{name: self.target.clip(ordered[beyond], ordered[-1 - beyond])})
        return replace(self, frame=frame, target=frame[name])

    @classmethod
    def of_spec(
        cls, spec: ReleaseSpec, types: dict[str, ColumnType], frame: pd.DataFrame, target: pd.Series[Any]
    ) -> Problem:
        """The problem of the spec's own model M."""
        task, features = task_of(types[spec.target]), {name: types[name] for name in spec.features}
        return cls(frame, target, task, features, spec.seed)


@dataclass(frozen=True)
class Fitting:
    """How models are fitted.

    Attributes
    ----------
    load_logged
        Fetches a model that MLflow stores, where the guide names one.
    workers
        Models are fitted side by side in them.
    progress
        Called with (tasks done, tasks) after each.
    """

    load_logged: LoadLogged | None = None
    workers: Workers = ALONE
    progress: Progress | None = None


#: Fitting in the calling process, one model after the other, and without a store.
PLAINLY = Fitting()
