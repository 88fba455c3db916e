"""The guidance: its shape, aligned with the classes, and for values that a model has not seen."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.learning import models
from anon_pipeline.learning.guide import TrainedGuide, assign_folds, train
from anon_pipeline.learning.models import Task
from anon_pipeline.learning.problem import Problem
from anon_pipeline.spec import ColumnType, Guide
from anon_pipeline_tests.learning.models import BUILT_IN, TYPES, guided, people


@pytest.mark.long
@pytest.mark.parametrize("model", BUILT_IN)
def test_shapes(model: str) -> None:
    frame, two, numbers = people(120)
    three = people(120, classes=3)[1]
    probability = Guide.model_validate({"model": model, "predictions": "in_sample"})
    label = probability.model_copy(update={"on": "label"})
    assert guided(probability, frame, two).shape == (120, 1)
    assert guided(label, frame, two).shape == (120, 2)
    assert guided(probability, frame, three).shape == (120, 3)
    assert guided(label, frame, three).shape == (120, 3)
    for guide in (probability, label):
        assert guided(guide, frame, numbers, Task.REGRESSION).shape == (120, 1)


@pytest.mark.long
def test_the_one_column_of_two_classes_is_the_second_in_sorted_order() -> None:
    frame, labels, _ = people()
    guidance = guided(Guide(folds=2), frame, labels)
    assert guidance[labels == "class 1"].mean() > 0.7 > 0.3 > guidance[labels == "class 0"].mean()
    one_hot = guided(Guide(on="label", folds=2), frame, labels)
    assert (one_hot[:, 1] == (guidance[:, 0] > 0.5)).all()
    assert (one_hot.sum(axis=1) == 1).all()


@pytest.mark.long
def test_probabilities_are_aligned_where_a_fold_lacks_a_class() -> None:
    frame, _, _ = people(90)
    target = pd.Series(["b"] * 30 + ["a"] * 30 + ["c"] * 30, dtype=object)
    fold = np.repeat([0, 1, 2], 30)  # each class fills one fold: the model for it never saw it
    for model in ("gradient_boosting", "linear"):
        guide = Guide.model_validate({"model": model})
        trained = train(Problem(frame, target, Task.CLASSIFICATION, TYPES, 0), guide, fold)
        assert trained.classes is not None
        assert trained.classes.tolist() == ["a", "b", "c"]
        guidance = trained.guidance(frame, fold)
        np.testing.assert_allclose(guidance.sum(axis=1), 1, atol=3 * 2.0**-17)  # a linear one is rounded
        for rows, absent in zip(np.split(guidance, 3), (1, 0, 2), strict=True):
            assert (rows[:, absent] == 0).all()
            assert (np.delete(rows, absent, axis=1) > 0).any(axis=0).all()
        labels = train(
            Problem(frame, target, Task.CLASSIFICATION, TYPES, 0), guide.model_copy(update={"on": "label"}), fold
        )
        assert (labels.guidance(frame, fold)[:30, 1] == 0).all()


@pytest.mark.long
@pytest.mark.parametrize("model", BUILT_IN)
def test_a_training_part_with_one_class_gives_a_constant(model: str) -> None:
    frame, _, _ = people(60)
    target = pd.Series(["a"] * 30 + ["b"] * 30, dtype=object)
    fold = np.repeat([0, 1], 30)
    for on in ("probability", "label"):
        guide = Guide.model_validate({"model": model, "on": on})
        guidance = train(Problem(frame, target, Task.CLASSIFICATION, TYPES, 0), guide, fold).guidance(frame, fold)
        assert np.unique(guidance[:30], axis=0).tolist() == [[1.0] if on == "probability" else [0.0, 1.0]]
        assert np.unique(guidance[30:], axis=0).tolist() == [[0.0] if on == "probability" else [1.0, 0.0]]
    only = pd.Series(["a"] * 60, dtype=object)
    assert (guided(Guide.model_validate({"model": model}), frame, only) == np.ones((60, 1))).all()
    same = pd.Series(np.full(60, 3.5))
    assert (guided(Guide.model_validate({"model": model}), frame, same, Task.REGRESSION) == 3.5).all()


@pytest.mark.long
def test_a_trained_guide_survives_pickling() -> None:
    frame, labels, _ = people(200, classes=3)
    fold = assign_folds(labels, Task.CLASSIFICATION, 2, 0)
    for model in BUILT_IN:
        trained = train(
            Problem(frame, labels, Task.CLASSIFICATION, TYPES, 0), Guide.model_validate({"model": model}), fold
        )
        again = pickle.loads(pickle.dumps(trained))
        assert isinstance(again, TrainedGuide)
        assert again.guidance(frame, fold).tobytes() == trained.guidance(frame, fold).tobytes()


@pytest.mark.long
def test_no_rows_give_no_guidance() -> None:
    frame, labels, _ = people(60)
    fold = assign_folds(labels, Task.CLASSIFICATION, 5, 0)
    for predictions in ("in_sample", "out_of_fold"):
        guide = Guide.model_validate({"predictions": predictions, "on": "label"})
        trained = train(Problem(frame, labels, Task.CLASSIFICATION, TYPES, 0), guide, fold)
        assert trained.guidance(frame.iloc[:0], fold[:0]).shape == (0, 2)


@pytest.mark.long
@pytest.mark.parametrize("model", BUILT_IN)
def test_unseen_and_missing_values_are_predicted(model: str) -> None:
    frame, labels, _ = people()
    frame["nothing"] = pd.Series([None] * len(frame), dtype=object)
    frame["void"] = frame["self"] = np.nan  # pandas has a parameter called self
    types = {**TYPES, "nothing": ColumnType.CATEGORICAL, "void": ColumnType.DATE, "self": ColumnType.NUMERIC}
    fold = np.zeros(len(frame), dtype=int)
    guide = Guide.model_validate({"model": model, "predictions": "in_sample"})
    trained = train(Problem(frame, labels, Task.CLASSIFICATION, types, 0), guide, fold)
    strange = frame.head(3).copy()
    strange["job"] = pd.Series(["astronaut", None, "astronaut"], dtype=object)
    strange["town"] = pd.Series([None, "nowhere", "nowhere"], dtype=object)
    strange["nothing"] = pd.Series(["something", None, "else"], dtype=object)
    strange["age"] = [np.nan, 1e300, -5.0]
    strange["pay"] = [np.nan, 0.0, np.nan]  # never missing in training
    guidance = trained.guidance(strange, np.full(3, -1))
    assert ((guidance >= 0) & (guidance <= 1)).all()


@pytest.mark.long
def test_boosting_learns_from_missingness() -> None:
    """None in a category must reach the model as missing, and missing must be a value to split on."""
    missing = np.arange(400) % 2 == 0
    frame = pd.DataFrame({"job": np.where(missing, None, "cook")})  # type: ignore[call-overload]
    target = pd.Series(np.where(missing, "yes", "no"), dtype=object)
    fold = np.arange(400) // 2 % 2
    for model in BUILT_IN:
        guide = Guide.model_validate({"model": model})
        trained = train(Problem(frame, target, Task.CLASSIFICATION, {"job": ColumnType.CATEGORICAL}, 0), guide, fold)
        guidance = trained.guidance(frame, fold)[:, 0]
        assert guidance[missing].min() > 0.9
        assert guidance[~missing].max() < 0.1
    encoder = models._coded({"job": ColumnType.CATEGORICAL}).fit(frame)
    encoded = encoder.transform(frame)
    assert np.isnan(encoded[missing]).all()
    assert not np.isnan(encoded[~missing]).any()
    assert np.isnan(encoder.transform(pd.DataFrame({"job": ["astronaut"]}, dtype=object))).all()


@pytest.mark.long
@pytest.mark.parametrize("model", BUILT_IN)
def test_more_categories_than_boosting_has_codes(model: str) -> None:
    n = 1200
    frame = pd.DataFrame({"town": [f"town {i % 600}" for i in range(n)]}, dtype=object)
    target = pd.Series(np.arange(n) % 2 == 0).map({True: "a", False: "b"}).astype(object)
    guide = Guide.model_validate({"model": model, "folds": 2})
    fold = assign_folds(target, Task.CLASSIFICATION, 2, 0)
    trained = train(Problem(frame, target, Task.CLASSIFICATION, {"town": ColumnType.CATEGORICAL}, 0), guide, fold)
    assert trained.guidance(frame, fold).shape == (n, 1)
    encoder = trained.full.estimator[0]
    width = encoder.transform(frame).shape[1]
    assert width <= models.MOST_COLUMNS


def test_gradient_boosting_treats_categories_as_categories() -> None:
    frame, labels, _ = people()
    guide = Guide(predictions="in_sample")
    model = train(
        Problem(frame, labels, Task.CLASSIFICATION, TYPES, 0), guide, np.zeros(len(frame), int)
    ).full.estimator
    # The encoder puts numbers first: age, pay, job, town.
    assert model[-1].is_categorical_.tolist() == [False, False, True, True]


@pytest.mark.long
@pytest.mark.parametrize("types", [{"age": ColumnType.NUMERIC}, {"town": ColumnType.CATEGORICAL}])
@pytest.mark.parametrize("model", BUILT_IN)
def test_tables_of_one_kind_of_column(model: str, types: dict[str, ColumnType]) -> None:
    frame, labels, _ = people(100)
    fold = np.arange(100) % 2
    trained = train(Problem(frame, labels, Task.CLASSIFICATION, types, 0), Guide.model_validate({"model": model}), fold)
    assert trained.guidance(frame, fold).shape == (100, 1)
