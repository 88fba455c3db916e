"""LiRA on the models that a synthetic release publishes: what an attacker reaches stays below the claim."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from anon_pipeline.attack import lira
from anon_pipeline.attack.model_answers import Question
from anon_pipeline.differential_privacy.synthesis import measuring, stored
from anon_pipeline.differential_privacy.synthesis.coded_table import CodedTable, axes_of
from anon_pipeline.differential_privacy.synthesis.made_table import make_table, settings_of
from anon_pipeline.differential_privacy.synthesis.models import model_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy import synthetic_people

VALUES = [f"v{place}" for place in range(8)]
FEATURES, TARGET = ["a", "b", "c", "d"], "ill"
#: A model that keeps its word fails once in so many runs, if the people of one training are independent.
FALSE_ALARM = 1e-6
EPSILON = 1.0
PEOPLE, SHADOWS = 1000, 8


def spec_of(folder: Path, kind: str) -> ReleaseSpec:
    said = {"values": VALUES, "why": "the form"}
    columns: dict[str, Any] = {name: {"role": "quasi_identifier", "type": "categorical"} for name in FEATURES}
    content = {
        **synthetic_people.content(),
        "columns": {**columns, TARGET: {"role": "sensitive", "type": "categorical"}},
        "synthesis": {"epsilon": EPSILON, "rounds": 3},
        "model": {"kind": kind},
    }
    domains = {**dict.fromkeys(FEATURES, said), TARGET: {"values": ["no", "yes"], "why": "the form"}}
    content["differential_privacy"] = {**content["differential_privacy"], "domains": domains}
    return ReleaseSpec.model_validate(content)


def strangers() -> pd.DataFrame:
    """People of whom nothing can be learnt but by heart."""
    random = np.random.default_rng(4)
    table = pd.DataFrame({name: random.choice(VALUES, PEOPLE) for name in FEATURES})
    return table.assign(**{TARGET: random.choice(["no", "yes"], PEOPLE)}).astype(object)


def published(spec: ReleaseSpec) -> lira.Train:
    """The model of a synthetic release, from the people of a part to what is published."""
    axes = axes_of(spec)

    def train(part: pd.DataFrame, _seed: int) -> Any:
        codes = [pd.Index(axis.domain.values or ()).get_indexer(pd.Index(part[axis.name])) for axis in axes]
        table = CodedTable(
            tuple(axis.size for axis in axes),
            np.stack(codes, axis=1).astype(np.int32),
            np.ones(len(part), dtype=np.int64),
        )
        measured = measuring.measure(table, settings_of(spec, axes))
        return model_of(spec, make_table(spec, stored.to_bytes(measured, "token")))

    return train


def by_heart(part: pd.DataFrame, seed: int) -> Any:
    """A tree of the people themselves, to show that the attack sees something."""
    tree = DecisionTreeClassifier(random_state=seed)
    codes = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), FEATURES))
    return make_pipeline(codes, tree).fit(part[FEATURES], part[TARGET])


def lower_bound(found: lira.ShadowScores) -> float:
    """A bound of epsilon from below, from whom the attack takes for members and whom for strangers."""
    scores, member = lira.scores(found), found.halves.member
    return max(_one_sided(scores, member), _one_sided(-scores, ~member))


def _one_sided(scores: np.ndarray, wanted: np.ndarray) -> float:
    """Half of the people choose the threshold, the others are counted (Clopper-Pearson)."""
    chooses = np.random.default_rng(1).permutation(len(scores)) % 2 == 0

    def hits(cut: float, of: np.ndarray) -> int:
        return int((scores[of] >= cut).sum())

    cut = max(
        np.unique(scores[chooses]),
        key=lambda tried: math.log((hits(tried, chooses & wanted) + 1) / (hits(tried, chooses & ~wanted) + 1)),
    )
    (right, of_right), (wrong, of_wrong) = (
        (hits(cut, of), int(of.sum())) for of in (~chooses & wanted, ~chooses & ~wanted)
    )
    least = stats.beta.ppf(FALSE_ALARM / 4, right, of_right - right + 1) if right else 0.0
    most = stats.beta.ppf(1 - FALSE_ALARM / 4, wrong + 1, of_wrong - wrong) if wrong < of_wrong else 1.0
    return math.log(max(float(least), 1e-12) / float(most))


@pytest.mark.long
def test_lira_reaches_no_more_than_epsilon_says(tmp_path: Path) -> None:
    """On both kinds of model; a passing audit of whole models is weak evidence, so a tree that memorises is caught."""
    trains = {kind: published(spec_of(tmp_path, kind)) for kind in ("naive_bayes", "synthetic")}
    halves = lira.draw_halves(PEOPLE, SHADOWS, 3)
    found = lira.train_all_shadows({**trains, "by heart": by_heart}, strangers(), Question(TARGET, FEATURES), halves)
    bounds = {name: lower_bound(scores) for name, scores in found.items()}
    assert bounds["by heart"] > EPSILON, bounds
    assert bounds["naive_bayes"] <= EPSILON and bounds["synthetic"] <= EPSILON, bounds
