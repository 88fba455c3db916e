"""A number far from all others decides no published score of a linear model, so that the scores do not tell it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.learning.linear import Winsorizer
from anon_pipeline.learning.models import Task
from anon_pipeline.learning.problem import Problem
from anon_pipeline.learning.utility import CrossValidation, measure_utility
from anon_pipeline.spec import ColumnType, Guide

TYPES = {"age": ColumnType.NUMERIC, "income": ColumnType.NUMERIC}
#: What the last person's income may be, of whom a class says that it is more than 80,000.
INCOMES = (1.5e5, 5e5, 2e6, 1e7, 1e8)


def people(task: Task, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    age, income = random.integers(18, 80, 300).astype(float), np.round(random.lognormal(10.5, 0.4, 300))
    target: Any = np.log(income) - 10.5 + (age - 50) / 60 + random.normal(0, 0.5, 300)
    if task is Task.CLASSIFICATION:
        target = np.where(target > 0, "yes", "no").astype(object)
    return pd.DataFrame({"age": age, "income": income, "target": target})


def scores(frame: pd.DataFrame, income: float, task: Task, seed: int) -> tuple[float, ...]:
    """The scores before of a linear model where the last person has this income; the seed stands for a private key."""
    frame = frame.copy()
    frame.loc[len(frame) - 1, "income"] = income
    problem = Problem.within(frame, "target", task, TYPES, seed)
    measured = measure_utility(problem, CrossValidation(Guide(model="linear", folds=3), 3), lambda part, _: part)
    return tuple(float(comparison.before.mean or 0.0) for comparison in measured.metrics.values())


@pytest.mark.long
def test_errors_do_not_tell_a_lone_extreme_value() -> None:
    """Who knows everything but one income measures the errors for each it can be, under a key of their own."""
    right, task = 0, Task.REGRESSION
    for number in range(5):
        frame = people(task, number)
        published = scores(frame, INCOMES[number], task, 1_000 + number)
        measured = [scores(frame, income, task, 1) for income in INCOMES]
        far = [abs(np.log(published[1] / error)) for _, error in measured]
        right += int(np.argmin(far)) == number
    assert right <= 3  # all five were found, and chance finds one


@pytest.mark.long
@pytest.mark.parametrize("task", list(Task))
def test_scores_are_the_same_wherever_a_lone_extreme_lies(task: Task) -> None:
    frame = people(task, 3)
    assert len({scores(frame, income, task, 5) for income in INCOMES}) == 1


def test_numbers_count_as_far_out_as_five_people_are() -> None:
    frame = pd.DataFrame({"few": [*range(98), np.nan, 1e9], "two": [0.0, 1.0] * 50, "none": [np.nan] * 100})
    shown = Winsorizer().fit(frame).transform(frame)
    assert (np.nanmin(shown[:, 0]), np.nanmax(shown[:, 0])) == (4, 94) and np.isnan(shown[98, 0])
    assert (shown[:, 1] == frame["two"]).all() and np.isnan(shown[:, 2]).all()
    few = pd.DataFrame({"x": [1.0, 2.0, 1e9]})
    assert Winsorizer().fit(few).transform(few)[:, 0].tolist() == [2, 2, 2]
    assert np.isinf(Winsorizer().fit(few).transform(pd.DataFrame({"x": [np.inf]}))).all()  # an error, later on
