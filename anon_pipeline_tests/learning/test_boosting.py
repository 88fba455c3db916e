"""Boosting: its rounds by the size of the table and the number of classes, and what it says of rare classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.learning import models
from anon_pipeline.learning.models import Task, build_model
from anon_pipeline.spec import ColumnType


@pytest.mark.parametrize(
    ("people_of_table", "classes", "rounds"),
    [(100, 2, 40), (5_000, 2, 50), (50_000, 2, 100), (5_000, 4, 50), (50_000, 5, 80), (50_000, 14, 28), (100, 14, 20)],
)
def test_boosting_takes_rounds_by_people_and_classes(people_of_table: int, classes: int, rounds: int) -> None:
    assert models.rounds_of(people_of_table, range(classes)) == rounds
    assert models.rounds_of(people_of_table, None) == models.rounds_of(people_of_table, range(2))


@pytest.mark.long
def test_a_rare_class_does_not_make_boosting_overshoot() -> None:
    """Without a penalty a leaf in which nobody has a class gives it odds without a bound, and each round worse ones."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({name: random.normal(size=3_000) for name in ("a", "b", "c", "d")})
    shares = np.array([0.7, 0.2, 0.08, 0.01, 0.005, 0.005])
    labels = pd.Series(random.choice([f"class {number}" for number in range(6)], 3_000, p=shares), dtype=object)
    model = build_model("gradient_boosting", Task.CLASSIFICATION, dict.fromkeys(frame, ColumnType.NUMERIC), 0)
    fitted = model.fit(frame[:2_000], labels[:2_000])  # the most rounds, and nothing to learn
    asked, truth = frame[2_000:], labels[2_000:].to_numpy()
    probability = fitted.predict_proba(asked)[np.arange(1_000), np.searchsorted(fitted.classes_, truth)]
    known = np.array([shares[int(label[-1])] for label in truth])
    assert -np.log(probability).mean() < -np.log(known).mean() + 0.25  # .43 without a penalty
