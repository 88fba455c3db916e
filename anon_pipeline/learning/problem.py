"""The learning problem and the way models are fitted: data that the functions of this package pass to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from anon_pipeline.anonymize.recode import MICROSECONDS
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
    unit
        Of a regression: errors are told in so many steps of the target's numbers (`unit_of`).
    """

    frame: pd.DataFrame
    target: pd.Series[Any]
    task: Task
    types: dict[str, ColumnType]
    seed: int
    unit: float = 1.0

    @classmethod
    def within(cls, frame: pd.DataFrame, target: str, task: Task, types: dict[str, ColumnType], seed: int) -> Problem:
        """The problem of learning a column of the frame; no model then uses this column."""
        return cls(frame, frame[target], task, {name: type_ for name, type_ in types.items() if name != target}, seed)

    @classmethod
    def of_spec(
        cls, spec: ReleaseSpec, types: dict[str, ColumnType], frame: pd.DataFrame, target: pd.Series[Any]
    ) -> Problem:
        """The problem of the spec's own model M."""
        task, features = task_of(types[spec.target]), {name: types[name] for name in spec.features}
        return cls(frame, target, task, features, spec.seed)


def unit_of(kind: ColumnType, storage: str) -> float:
    """The steps of a target's numbers in which its errors are told: a day of dates, and also of moments."""
    return float(MICROSECONDS[0]) if kind is ColumnType.DATE and storage != "DATE" else 1.0


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
