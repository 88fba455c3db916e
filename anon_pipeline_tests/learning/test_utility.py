"""Accuracy before and after: exact where it can be, and never a number where none is defined."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score

from anon_pipeline.arrays import FloatArray
from anon_pipeline.learning import guide as guide_module
from anon_pipeline.learning import targets as targets_module
from anon_pipeline.learning.models import Task
from anon_pipeline.learning.problem import Fitting, Problem, unit_of
from anon_pipeline.learning.scores import (
    SCALES,
    SHARE,
    classification_scores,
    difference,
    estimate,
    regression_scores,
)
from anon_pipeline.learning.utility import CrossValidation, Utility, compare, measure_utility, prepare
from anon_pipeline.spec import ColumnType, Guide
from anon_pipeline.workers import Workers
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.learning.models import HERE, TYPES, people

CHEAP = Guide(model="decision_tree", folds=2)


def table(task: Task, n: int = 400, classes: int = 2) -> pd.DataFrame:
    frame, labels, numbers = people(n, classes=classes)
    return frame.assign(target=labels if task is Task.CLASSIFICATION else numbers)


def identity(part: pd.DataFrame, guidance: FloatArray) -> pd.DataFrame:
    return part


def destroy(part: pd.DataFrame, guidance: FloatArray) -> pd.DataFrame:
    """Everybody in one class: one value per column for all."""
    return part.assign(age=40.0, job="cook", pay=100.0, town="town 00")


def measure(frame: pd.DataFrame, task: Task, anonymize: Any = identity, **settings: Any) -> Utility:
    guide = settings.pop("guide", CHEAP)
    problem = Problem.within(frame, "target", task, TYPES, 0)
    return measure_utility(
        problem,
        CrossValidation(guide, settings.pop("folds", 4), settings.pop("further_models", ())),
        anonymize,
        Fitting(**{name: settings.pop(name) for name in ("load_logged", "workers", "progress") if name in settings}),
        **settings,
    )


# ------------------------------------------------------------------------------------------------ the cross-validation


@pytest.mark.long
@pytest.mark.parametrize("task", list(Task))
@pytest.mark.parametrize("model", ["gradient_boosting", "random_forest", "linear", "decision_tree"])
def test_nothing_done_is_nothing_lost(task: Task, model: str) -> None:
    guide = Guide.model_validate({"model": model, "folds": 2})
    utility = measure(table(task, 200), task, guide=guide, folds=2)
    assert len(utility.metrics) == (3 if task is Task.CLASSIFICATION else 2)
    for comparison in utility.metrics.values():
        assert comparison.before == comparison.after
        assert comparison.before.mean is not None
        assert comparison.difference.per_fold == (0.0, 0.0)
        assert (comparison.difference.mean, comparison.difference.low, comparison.difference.high) == (0, 0, 0)


def test_numbers_too_near_for_floats_have_no_r2() -> None:
    tiny = np.array([1e-300, 2e-300, 3e-300])
    assert regression_scores(tiny, tiny)["r2"] is None


@pytest.mark.long
def test_destroying_a_table_shows() -> None:
    metrics = measure(table(Task.CLASSIFICATION), Task.CLASSIFICATION, destroy).metrics
    assert metrics["roc_auc"].before.mean > 0.85  # type: ignore[operator]
    assert metrics["roc_auc"].after.mean == 0.5
    for name in ("accuracy", "balanced_accuracy", "roc_auc"):
        assert metrics[name].difference.high < -0.2  # type: ignore[operator]
    metrics = measure(table(Task.REGRESSION), Task.REGRESSION, destroy).metrics
    assert metrics["r2"].before.mean > 0.7  # type: ignore[operator]
    assert metrics["r2"].difference.high < -0.5  # type: ignore[operator]
    assert metrics["mae"].difference.low > 0.2  # type: ignore[operator]


@pytest.mark.long
def test_a_fold_sees_its_training_part_only_and_is_scored_on_raw_rows(monkeypatch: Any) -> None:
    """Every row carries its own number; the anonymizer notes the ones it gets, the models the ones they are asked."""
    frame = table(Task.CLASSIFICATION, 100)
    frame["pay"] = np.arange(100.0)
    given, asked = [], []
    predict = guide_module.FittedModel.predict

    def noted(self: Any, rows: pd.DataFrame) -> Any:
        asked.append(rows)
        return predict(self, rows)

    def anonymize(part: pd.DataFrame, guidance: FloatArray) -> pd.DataFrame:
        assert guidance.shape == (len(part), 1)
        assert part.index.tolist() == list(range(len(part)))
        given.append(part.copy())
        part["pay"] = -1.0  # in place, as a careless anonymizer would
        return part.set_axis(part.index[::-1])

    monkeypatch.setattr(guide_module.FittedModel, "predict", noted)
    measure(frame, Task.CLASSIFICATION, anonymize)
    assert len(given) == 4
    assert len(asked) == 8
    tested = []
    for part, before, after in zip(given, asked[:4], asked[4:], strict=True):
        pd.testing.assert_frame_equal(before, after)
        assert not set(part["pay"]) & set(after["pay"])
        assert len(part) + len(after) == 100
        pd.testing.assert_frame_equal(frame.iloc[after["pay"].astype(int)].reset_index(drop=True), after)
        tested += after["pay"].tolist()
    assert sorted(tested) == list(range(100))
    assert not (frame["pay"] == -1).any()


@pytest.mark.parametrize(("predictions", "own"), [("in_sample", 1.0), ("out_of_fold", 0.0)])
def test_guidance_follows_the_spec(predictions: str, own: float) -> None:
    """A memorizing model says "unseen" about every row it has not seen, so out-of-fold guidance is all "unseen"."""
    frame = pd.DataFrame({"number": np.arange(90.0), "target": ["class 0", "class 1", "unseen"] * 30})
    guide = Guide.model_validate(
        {"model": {"import": f"{HERE}:memorizer"}, "on": "label", "predictions": predictions, "folds": 3}
    )
    seen: list[FloatArray] = []

    def anonymize(part: pd.DataFrame, guidance: FloatArray) -> pd.DataFrame:
        seen.append(guidance[(part["target"] == "class 0").to_numpy(), 0])
        return part

    types = {"number": ColumnType.NUMERIC}
    utility = measure_utility(
        Problem.within(frame, "target", Task.CLASSIFICATION, types, 0), CrossValidation(guide, 2), anonymize
    )
    assert np.unique(np.concatenate(seen)).tolist() == [own]
    assert utility.metrics["roc_auc"].before.mean is None  # it has no predict_proba
    assert utility.metrics["accuracy"].before.mean == pytest.approx(1 / 3)


@pytest.mark.long
def test_the_target_is_never_a_feature() -> None:
    frame = table(Task.CLASSIFICATION)
    types = {**TYPES, "target": ColumnType.CATEGORICAL}
    utility = measure_utility(
        Problem.within(frame, "target", Task.CLASSIFICATION, types, 0), CrossValidation(CHEAP, 4), identity
    )
    assert utility == measure(frame, Task.CLASSIFICATION)
    assert utility.metrics["accuracy"].before.mean < 1  # type: ignore[operator]


@pytest.mark.long
def test_suppressed_people_and_a_class_that_is_lost() -> None:
    def only_class_0(part: pd.DataFrame, guidance: FloatArray) -> pd.DataFrame:
        return part[part["target"] == "class 0"]

    utility = measure(table(Task.CLASSIFICATION), Task.CLASSIFICATION, only_class_0)
    assert utility.rows == 400
    assert utility.rows_trained_before == (300,) * 4
    assert utility.rows_trained_after == (150,) * 4
    assert utility.metrics["accuracy"].after.mean == 0.5
    assert utility.metrics["roc_auc"].after.mean == 0.5


@pytest.mark.long
def test_a_class_that_only_the_test_part_holds_counts_as_missed() -> None:
    frame = table(Task.CLASSIFICATION, 80).assign(target="common")
    frame.loc[7, "target"] = "rare"
    metrics = measure(frame, Task.CLASSIFICATION).metrics
    assert sorted(metrics["balanced_accuracy"].before.per_fold) == [0.5, 1, 1, 1]  # type: ignore[type-var]
    auc = metrics["roc_auc"].before
    assert set(auc.per_fold) == {0.5, None}
    assert auc.mean is None


@pytest.mark.long
def test_a_table_of_nobody_is_no_silent_pass() -> None:
    utility = measure(table(Task.CLASSIFICATION), Task.CLASSIFICATION, lambda part, guidance: part.head(0))
    for comparison in utility.metrics.values():
        assert comparison.before.mean is not None
        assert comparison.after.per_fold == comparison.difference.per_fold == (None,) * 4
        assert comparison.after.mean is comparison.difference.mean is comparison.difference.high is None
    json.dumps(utility.as_dict(), allow_nan=False)


@pytest.mark.long
def test_a_result_is_deterministic_and_json() -> None:
    done: list[tuple[int, int]] = []
    frame = table(Task.CLASSIFICATION, classes=3)
    first = measure(frame, Task.CLASSIFICATION, progress=lambda *count: done.append(count))
    tasks = 4 + 4 * (1 + CHEAP.folds)  # folds, and fits for each of them: M, and M without each inner fold
    assert done == [(count + 1, tasks) for count in range(tasks)]
    assert first == measure(frame.set_axis(frame.index[::-1] // 3), Task.CLASSIFICATION)
    content = json.loads(json.dumps(first.as_dict(), allow_nan=False))
    assert (content["model"], content["task"], content["folds"]) == ("decision_tree", "classification", 4)
    assert len(content["metrics"]["roc_auc"]["difference"]["per_fold"]) == 4


@pytest.mark.long
def test_raw_models_are_fitted_once_and_compared_with_any_number_of_anonymizations() -> None:
    """The first one ruins the table it gets; the second gets it whole, and finds what it would have found alone."""

    def careless(part: pd.DataFrame, guidance: FloatArray) -> pd.DataFrame:
        part["age"] = part["pay"] = guidance[:] = -1.0
        return part

    frame = table(Task.CLASSIFICATION)
    prepared = prepare(Problem.within(frame, "target", Task.CLASSIFICATION, TYPES, 0), CrossValidation(CHEAP, 4))
    ruined = compare(prepared, careless)
    assert ruined.metrics["roc_auc"].difference.high < 0  # type: ignore[operator]
    for anonymize in (destroy, identity):
        alone = measure(frame, Task.CLASSIFICATION, anonymize)
        assert compare(prepared, anonymize) == replace(alone, calibration=None)
    assert all((fold.guidance >= 0).all() for fold in prepared.folds)


@pytest.mark.long
def test_folds_that_share_a_fit_get_what_each_would_have_fitted(monkeypatch: Any) -> None:
    """Without folds i and j there is one model: it guides the people of j for the sake of i, and those of i for j."""
    frame = table(Task.CLASSIFICATION)
    fitted = []
    fit = targets_module.fit_parts
    monkeypatch.setattr(targets_module, "fit_parts", lambda *given: fitted.extend(given[2]) or fit(*given))
    guide = Guide(model="decision_tree", folds=4)
    prepared = prepare(Problem.within(frame, "target", Task.CLASSIFICATION, TYPES, 0), CrossValidation(guide, 4))
    assert len(fitted) == 4 + 4 * 3
    assert len({part.tobytes() for part in fitted}) == 4 + 4 * 3 // 2
    outer = guide_module.assign_folds(frame["target"], Task.CLASSIFICATION, 4, 0)
    for number, fold in enumerate(prepared.folds):
        assert len(fold.part) == (outer != number).sum()
        own = outer[outer != number]
        names = {left: place for place, left in enumerate(np.unique(own).tolist())}
        alone = guide_module.train(
            Problem(fold.part, fold.part["target"], Task.CLASSIFICATION, TYPES, 0),
            guide,
            np.array([names[one] for one in own]),
        )
        assert (alone.guidance(fold.part, np.array([names[one] for one in own])) == fold.guidance).all()


@pytest.mark.long
def test_nobody_guides_who_was_tested_on() -> None:
    """Whoever is in the test fold changes nothing of what the training part is guided by."""
    frame = table(Task.CLASSIFICATION)
    guide = Guide(model="decision_tree", folds=4)
    before = prepare(Problem.within(frame, "target", Task.CLASSIFICATION, TYPES, 0), CrossValidation(guide, 4))
    tested = guide_module.assign_folds(frame["target"], Task.CLASSIFICATION, 4, 0) == 0
    changed = frame.assign(age=frame["age"].where(~tested, 99.0))
    after = prepare(Problem.within(changed, "target", Task.CLASSIFICATION, TYPES, 0), CrossValidation(guide, 4))
    assert (before.folds[0].guidance == after.folds[0].guidance).all()
    assert (before.folds[1].guidance != after.folds[1].guidance).any()


@pytest.mark.long
def test_the_figures_do_not_depend_on_how_many_processes_measure() -> None:
    frame = table(Task.CLASSIFICATION, classes=3)
    settings: dict[str, Any] = {"further_models": ["random_forest"], "columns": {"job": "VARCHAR"}}
    with Workers(2) as workers:
        assert measure(frame, Task.CLASSIFICATION, destroy, workers=workers, **settings) == measure(
            frame, Task.CLASSIFICATION, destroy, **settings
        )


@pytest.mark.long
def test_a_model_store_is_asked_once() -> None:
    asked = []

    def load(uri: str) -> Any:
        from anon_pipeline_tests.learning.models import pipeline

        asked.append(uri)
        return pipeline()

    guide = Guide.model_validate({"model": {"mlflow": "models:/m/1"}, "folds": 2})
    measure(table(Task.CLASSIFICATION), Task.CLASSIFICATION, guide=guide, load_logged=load)
    assert asked == ["models:/m/1"]


# ------------------------------------------------------------------------------------------------------ the arithmetic


def test_the_interval_by_hand() -> None:
    """Four folds .80 .82 .84 .90: mean .84, s2 = .0056/3; t(.975, 3) = 3.182446; variance (1/4 + 1/3) s2."""
    result = estimate([0.80, 0.82, 0.84, 0.90])
    reach = 3.182446305 * math.sqrt((1 / 4 + 1 / 3) * 0.0056 / 3)
    assert result.mean == pytest.approx(0.84)
    assert result.low == pytest.approx(0.84 - reach)
    assert result.high == pytest.approx(0.84 + reach)
    assert result.per_fold == (0.80, 0.82, 0.84, 0.90)


def test_the_interval_of_a_share_by_hand() -> None:
    """The same folds on the scale of log odds: log(.84 / .16) = 1.658228; the slope there is 1 / (.84 * .16)."""
    result = estimate([0.80, 0.82, 0.84, 0.90], SHARE)
    reach = 3.182446305 * math.sqrt((1 / 4 + 1 / 3) * 0.0056 / 3) / (0.84 * 0.16)
    assert result.mean == pytest.approx(0.84)
    assert result.low == pytest.approx(1 / (1 + math.exp(reach - 1.658228077)))
    assert result.high == pytest.approx(1 / (1 + math.exp(-reach - 1.658228077)))


@given(st.sampled_from(sorted(SCALES)), st.data())
def test_no_interval_says_what_no_score_can_be(score: str, data: st.DataObject) -> None:
    for scale in SCALES[score]:
        low, high = (scale.low, scale.high) if scale is not None else (-math.inf, math.inf)
        values = data.draw(st.lists(st.floats(max(low, -1e6), min(high, 1e6)), min_size=2, max_size=6))
        result = estimate(values, scale)
        assert result.low is not None
        assert result.high is not None
        rounding = 1e-9 * max(1, *map(abs, values))
        assert low - rounding <= result.low <= result.mean + rounding
        assert result.mean - rounding <= result.high <= high + rounding


@pytest.mark.parametrize("undefined", [None, math.nan, math.inf])
def test_an_undefined_fold_leaves_no_mean(undefined: float | None) -> None:
    result = estimate([0.8, undefined, 0.9])
    assert (result.mean, result.low, result.high) == (None, None, None)
    assert result.per_fold == (0.8, None, 0.9)
    assert difference(None, 0.5) is difference(0.5, None) is None
    assert difference(0.5, 0.75) == -0.25


def test_scores_agree_with_scikit_learn() -> None:
    random = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"], dtype=object)
    probabilities = random.dirichlet([1, 1, 1], 200)
    truth, predicted = random.choice(classes, 200), classes[probabilities.argmax(axis=1)]
    scores = classification_scores(truth, predicted, probabilities, classes)
    assert scores["accuracy"] == (truth == predicted).mean()
    assert scores["balanced_accuracy"] == pytest.approx(
        balanced_accuracy_score(truth.astype(str), predicted.astype(str))
    )
    assert scores["roc_auc"] == pytest.approx(roc_auc_score(truth.astype(str), probabilities, multi_class="ovr"))
    x, y = random.normal(size=50), random.normal(size=50)
    assert regression_scores(x, y)["r2"] == pytest.approx(r2_score(x, y))
    assert regression_scores(x, y)["mae"] == pytest.approx(np.abs(x - y).mean())


@settings(max_examples=times(50))
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.5000001, 1.0])), min_size=2, max_size=40))
def test_of_equal_scores_half_count_as_in_scikit_learn(answers: list[tuple[bool, float]]) -> None:
    positive, score = np.array(answers).T
    assume(0 < positive.sum() < len(positive))
    truth = np.where(positive, "yes", "no").astype(object)
    scores = classification_scores(
        truth, truth, np.stack([1 - score, score], axis=1), np.array(["no", "yes"], dtype=object)
    )
    assert scores["roc_auc"] == pytest.approx(roc_auc_score(positive, score))


def test_the_second_class_is_the_positive_one() -> None:
    truth = np.array(["no", "yes", "yes"], dtype=object)
    scores = classification_scores(
        truth, truth, np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]), np.array(["no", "yes"], dtype=object)
    )
    assert scores == {"accuracy": 1.0, "balanced_accuracy": 1.0, "roc_auc": 1.0}


def test_classes_absent_from_a_test_part() -> None:
    classes = np.array(["a", "b", "c"], dtype=object)
    truth, predicted = np.array(["a", "a", "b"], dtype=object), np.array(["a", "c", "b"], dtype=object)
    probabilities = np.array([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7], [0.2, 0.7, 0.1]])
    scores = classification_scores(truth, predicted, probabilities, classes)
    assert scores["balanced_accuracy"] == 0.75  # a: one of two, b: one of one; c is not asked for
    assert scores["roc_auc"] == pytest.approx((0.5 + 1.0) / 2)  # a against the rest, b against the rest
    alone = np.array(["a", "a", "a"], dtype=object)
    assert classification_scores(alone, predicted, probabilities, classes)["roc_auc"] is None
    assert regression_scores(np.ones(3), np.zeros(3)) == {"r2": None, "mae": 1.0}


def test_errors_of_moments_are_told_in_days() -> None:
    """A moment is a number of microseconds: an error of two days was told as 172,800,000,000."""
    frame = table(Task.REGRESSION)
    days = measure(frame, Task.REGRESSION)
    unit = unit_of(ColumnType.DATE, "TIMESTAMP")
    assert (unit_of(ColumnType.DATE, "DATE"), unit_of(ColumnType.NUMERIC, "DOUBLE"), unit) == (1, 1, 86_400_000_000)
    moments = frame.assign(target=frame["target"] * unit)
    problem = replace(Problem.within(moments, "target", Task.REGRESSION, TYPES, 0), unit=unit)
    told = measure_utility(problem, CrossValidation(CHEAP, 4), identity)
    for name in ("mae", "r2"):
        assert told.metrics[name].before.mean == pytest.approx(days.metrics[name].before.mean, rel=1e-6)
        assert told.metrics[name].difference.mean == pytest.approx(days.metrics[name].difference.mean, abs=1e-6)
    assert told.calibration is not None
    assert days.calibration is not None
    assert told.calibration.before.observed == pytest.approx(days.calibration.before.observed)
    assert told.calibration.error.before.high == pytest.approx(days.calibration.error.before.high, rel=1e-6)
