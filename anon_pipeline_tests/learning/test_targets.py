"""Guidance of several targets: each weighs the same, no model sees a target, and everything is out of fold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.errors import InputError
from anon_pipeline.learning.guide import assign_folds, train
from anon_pipeline.learning.models import Task
from anon_pipeline.learning.problem import Problem
from anon_pipeline.learning.targets import JointGuide, train_guide
from anon_pipeline.learning.utility import CrossValidation, measure_utility, prepare
from anon_pipeline.spec import ColumnType, Guide
from anon_pipeline_tests.learning.models import TYPES, people

BOTH = Guide(model="decision_tree", folds=3, targets=("label", "pay_rise"))
TYPES_OF_BOTH = {**TYPES, "pay_rise": ColumnType.NUMERIC}


def table(n: int = 400) -> pd.DataFrame:
    """Features, a label, and a number that is a thousand times as large and tells the label exactly."""
    frame, labels, _ = people(n)
    return frame.assign(label=labels, pay_rise=1000.0 * (labels == "class 1") + 5000.0)


def joint(frame: pd.DataFrame, guide: Guide = BOTH) -> tuple[JointGuide, np.ndarray]:
    folds = assign_folds(frame["label"], Task.CLASSIFICATION, 3, 0)
    trained = train_guide(Problem(frame, frame["label"], Task.CLASSIFICATION, TYPES_OF_BOTH, 0), guide, folds)
    assert isinstance(trained, JointGuide)
    return trained, folds


@pytest.mark.long
def test_every_target_weighs_the_same() -> None:
    frame = table()
    trained, folds = joint(frame)
    said = trained.guidance(frame, folds)
    assert said.shape == (400, 2)
    assert said.var(axis=0) == pytest.approx([1.0, 1.0])


@pytest.mark.long
def test_no_model_looks_at_a_target_and_each_is_asked_out_of_fold() -> None:
    frame = table()
    trained, folds = joint(frame)
    assert [part.full.features for part in trained.parts] == [tuple(TYPES)] * 2
    truth = frame["label"] == "class 1"
    for column in trained.guidance(frame, folds).T:
        assert 0.6 < roc_auc_score(truth, column) < 0.99  # 1 for who has seen the other target, or their own row
    changed = frame.assign(pay_rise=frame["pay_rise"].to_numpy()[::-1], label="class 0")
    assert (trained.guidance(changed, folds) == trained.guidance(frame, folds)).all()


@pytest.mark.long
def test_each_part_says_what_it_would_say_alone() -> None:
    frame = table()
    trained, folds = joint(frame)
    said = trained.guidance(frame, folds)
    one = BOTH.model_copy(update={"targets": ()})
    for place, (name, task) in enumerate({"label": Task.CLASSIFICATION, "pay_rise": Task.REGRESSION}.items()):
        alone = train(Problem(frame, frame[name], task, TYPES, 0), one, folds).guidance(frame, folds)
        assert said[:, [place]] / trained.scales[place] == pytest.approx(alone)


def test_one_target_is_guided_as_ever() -> None:
    frame = table()
    folds = assign_folds(frame["label"], Task.CLASSIFICATION, 3, 0)
    guide = Guide(model="decision_tree", folds=3)
    ours = train_guide(Problem(frame, frame["label"], Task.CLASSIFICATION, TYPES, 0), guide, folds)
    plain = train(Problem(frame, frame["label"], Task.CLASSIFICATION, TYPES, 0), guide, folds)
    assert not isinstance(ours, JointGuide)
    assert (ours.guidance(frame, folds) == plain.guidance(frame, folds)).all()


def test_a_target_that_tells_nothing_is_not_blown_up() -> None:
    frame = table().assign(pay_rise=5000.1)
    trained, folds = joint(frame)
    assert trained.scales[1] == 1.0
    assert np.ptp(trained.guidance(frame, folds)[:, 1]) == 0


def test_people_without_a_value_in_a_target_are_counted() -> None:
    frame = table()
    frame.loc[[3, 5], "pay_rise"] = np.nan
    with pytest.raises(InputError, match=r"guide.targets: 2 of 400 people have no value in pay_rise"):
        joint(frame)


@pytest.mark.long
def test_utility_is_measured_by_models_that_see_no_target() -> None:
    frame = table()
    folds = prepare(Problem.within(frame, "label", Task.CLASSIFICATION, TYPES_OF_BOTH, 0), CrossValidation(BOTH, 2))
    assert list(folds.feature_types) == list(TYPES)
    turned = BOTH.model_copy(update={"targets": ("pay_rise", "label")})
    types = {**TYPES_OF_BOTH, "label": ColumnType.CATEGORICAL}
    measured = measure_utility(
        Problem.within(frame, "pay_rise", Task.REGRESSION, types, 0),
        CrossValidation(turned, 2),
        lambda part, guidance: part,
    )
    assert measured.metrics["r2"].before.mean is not None and measured.metrics["r2"].before.mean < 0.99
    assert all(fold.guidance.shape[1] == 2 for fold in folds.folds)


def test_two_targets_are_both_kept_apart_where_one_alone_loses_the_other() -> None:
    frame = pd.DataFrame({"town": [f"t{one}" for one in range(40)] * 10})
    number = frame["town"].str[1:].astype(int)
    first, second = (number % 2).to_numpy(float), (number >= 20).to_numpy(float)

    def lost(guidance: np.ndarray, target: np.ndarray) -> float:
        tree = AnonymizerTree(k=100, spread=0, orders="each").fit(frame, guidance)
        return float(pd.Series(target).groupby(tree.apply(frame)).var(ddof=0).mean())

    assert lost(first, second) > 0.2
    together = np.stack([first, second], axis=1)
    assert lost(together, first) < 0.1 and lost(together, second) < 0.1
