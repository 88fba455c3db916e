"""What columns tell of the guidance: main effects and shares, and what they do to the criterion."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anon_pipeline import AnonymizerTree
from anon_pipeline.anonymize import encoding, feature_importance
from anon_pipeline.anonymize.criterion import IMPORTANCE_WEIGHT, Criterion
from anon_pipeline.tables import Cells


def counted(frame: pd.DataFrame, guidance: np.ndarray) -> Cells:
    learned = [encoding.learn_domain(str(name), frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    return encoding.count_cells(tuple(domain for domain, _ in learned), codes, guidance)[0]


def some_people(people: int = 4000) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 90, people).astype(float),
            "town": draw.choice(list("abcdef"), people),
            "hue": draw.choice(list("rgb"), people),
        }
    )


def test_an_effect_is_the_mean_of_those_who_share_a_code_less_that_of_all() -> None:
    frame = some_people()
    guidance = frame["town"].map({"a": 0.9, "b": 0.1}).fillna(0.5).to_numpy() + frame["age"].to_numpy() / 100
    told = feature_importance.FeatureImportance.of(counted(frame, guidance[:, None]))
    for town, said in zip("abcdef", told.effects[1][1:, 0], strict=True):
        here = guidance[frame["town"] == town]
        expected = (here.mean() - guidance.mean()) * len(here) / (len(here) + feature_importance.SHRINKAGE)
        assert said == pytest.approx(expected, abs=1e-6)
    assert told.effects[0][1, 0] < -0.2 < 0.2 < told.effects[0][-1, 0]
    assert told.shares.sum() == pytest.approx(1) and told.shares[2] < 0.02 < told.shares.min() + 0.3


def test_two_of_a_kind_tell_little_and_missing_values_are_a_kind() -> None:
    frame = some_people()
    frame.loc[:1, "town"] = "z"
    frame.loc[:999, "age"] = np.nan
    guidance = np.zeros(len(frame))
    guidance[:1000] = 1.0
    told = feature_importance.FeatureImportance.of(counted(frame, guidance[:, None]))
    assert abs(told.effects[1][-1, 0]) < 0.75 * 2 / 20  # two people of whom both are 1 where a quarter is
    assert told.effects[0][0, 0] == pytest.approx(0.75, abs=0.03) and told.effects[0][1:, 0].max() < 0


def test_several_outputs_are_told_along_two_directions() -> None:
    frame = some_people()
    labels = np.eye(6)[frame["town"].map({name: place for place, name in enumerate("abcdef")})]
    told = feature_importance.FeatureImportance.of(counted(frame, labels))
    assert [effect.shape for effect in told.effects] == [(len(np.unique(frame["age"])) + 1, 2), (7, 2), (4, 2)]
    assert told.shares[1] > 0.95


def test_nothing_told_leaves_columns_alike() -> None:
    frame = some_people(100)
    cells = counted(frame, np.zeros((100, 1)))
    assert feature_importance.FeatureImportance.of(cells).shares.tolist() == pytest.approx([1 / 3] * 3)
    plain, weighed = (Criterion(cells, 2.0, 0, weighed=weighed).of() for weighed in (False, True))
    assert (plain**2).sum() == pytest.approx((weighed**2).sum())


@pytest.mark.parametrize("telling", ["first", "second"])
def test_the_column_that_tells_more_loses_less(telling: str) -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({name: draw.choice(list("abcdefghijklmnop"), 4000) for name in ("first", "second")})
    guidance = frame[telling].map(ord).to_numpy(float)
    lost = AnonymizerTree(k=100).fit(frame, guidance).information_loss_
    silent = "second" if telling == "first" else "first"
    assert lost[telling] < 0.9 * lost[silent]


def test_the_outputs_of_a_column_weigh_as_it_tells() -> None:
    frame = some_people()[["town", "hue"]]
    cells = counted(frame, np.asarray(frame["town"] == "a", dtype=float)[:, None])
    share = feature_importance.FeatureImportance.of(cells).shares[0]
    assert share > 0.99
    weights = []
    for weighed in (False, True):
        one_hot = Criterion(cells, 2.0, 0, weighed=weighed).of()[:, -9:-3]
        people = cells.counts[:, None] / cells.n
        weights.append(float((people * (one_hot - (people * one_hot).sum(axis=0)) ** 2).sum()))
    assert weights == pytest.approx([2.0, 2.0 * (1 + IMPORTANCE_WEIGHT * (2 * share - 1))])
