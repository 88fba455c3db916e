"""The guide: deterministic, really out of fold, and silent about what it saw; imported, logged and bad models."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

from anon_pipeline.errors import InputError
from anon_pipeline.keys import Key, seed_under
from anon_pipeline.learning import guide as guide_module
from anon_pipeline.learning.guide import assign_folds, train
from anon_pipeline.learning.models import Task, build_model, task_of
from anon_pipeline.learning.problem import Problem
from anon_pipeline.spec import ColumnType, Guide
from anon_pipeline_tests.learning.models import (
    BUILT_IN,
    HERE,
    SECRET,
    TYPES,
    Memorizer,
    guided,
    imported,
    people,
    pipeline,
)


def test_task_follows_the_type_of_the_target() -> None:
    assert [task_of(type_) for type_ in (ColumnType.CATEGORICAL, ColumnType.NUMERIC, ColumnType.DATE)] == [
        "classification",
        "regression",
        "regression",
    ]


# ------------------------------------------------------------------------------------------------------ determinism


@pytest.mark.long
@pytest.mark.parametrize("model", BUILT_IN)
@pytest.mark.parametrize("task", list(Task))
def test_every_bit_is_the_same_for_any_number_of_threads(model: str, task: Task, monkeypatch: Any) -> None:
    frame, labels, numbers = people(1500)
    target = labels if task is Task.CLASSIFICATION else numbers
    guide = Guide.model_validate({"model": model, "folds": 2})
    results = []
    for threads in (1, 5):
        monkeypatch.setattr("joblib.cpu_count", lambda threads=threads: threads)
        with threadpool_limits(limits=threads):
            results.append(guided(guide, frame, target, task).tobytes())
    assert results[0] == results[1]


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_job_has_one_thread_of_each_kind(jobs: int, monkeypatch: Any) -> None:
    """Small tables give the same bits on many threads by luck, so the limit itself is looked at."""
    monkeypatch.setattr("joblib.cpu_count", lambda: 3)
    with threadpool_limits(limits=2):
        seen = guide_module.side_by_side([threadpool_info] * jobs)
        assert len(seen) == jobs
        assert {pool["num_threads"] for pools in seen for pool in pools} == {1}
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}  # and afterwards all is as it was


@pytest.mark.long
def test_a_seed_is_given_to_an_imported_model_that_leaves_it_open() -> None:
    frame, labels, _ = people()
    first, second, other = (guided(imported("bare", folds=2), frame, labels, seed=seed) for seed in (1, 1, 2))
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != other.tobytes()


@pytest.mark.long
def test_forests_predict_with_one_job() -> None:
    frame, labels, _ = people()
    for guide in (Guide(model="random_forest"), imported("bare")):
        trained = train(
            Problem(frame, labels, Task.CLASSIFICATION, TYPES, 0),
            guide,
            assign_folds(labels, Task.CLASSIFICATION, 2, 0),
        )
        for model in (trained.full, *trained.by_fold.values()):
            assert model.estimator[-1].n_jobs == 1


@pytest.mark.long
def test_an_index_means_nothing() -> None:
    frame, labels, _ = people()
    expected = guided(Guide(model="decision_tree"), frame, labels)
    strange = np.random.default_rng(1).integers(0, 5, len(frame))  # shuffled and full of duplicates
    actual = guided(Guide(model="decision_tree"), frame.set_axis(strange), labels.set_axis(strange[::-1]))
    assert actual.tobytes() == expected.tobytes()


@pytest.mark.long
def test_chunks_do_not_change_predictions(monkeypatch: Any) -> None:
    frame, labels, _ = people()
    whole = guided(Guide(folds=2), frame, labels)
    monkeypatch.setattr(guide_module, "CHUNK", 7)
    assert guided(Guide(folds=2), frame, labels).tobytes() == whole.tobytes()


# ------------------------------------------------------------------------------------------------------- out of fold


def memorized(predictions: str, fold: list[int], ask: list[int]) -> list[list[float]]:
    """What a model that knows its own training rows by heart says; labels class 0, class 1, unseen in turn."""
    frame = pd.DataFrame({"number": np.arange(len(fold), dtype=float)})
    target = pd.Series((["class 0", "class 1", "unseen"] * len(fold))[: len(fold)], dtype=object)
    guide = imported("memorizer", on="label", predictions=predictions)
    types = {"number": ColumnType.NUMERIC}
    trained = train(Problem(frame, target, Task.CLASSIFICATION, types, 0), guide, np.array(fold))
    result: list[list[float]] = trained.guidance(frame, np.array(ask)).tolist()
    return result


ZERO, ONE, UNSEEN = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


def test_out_of_fold_never_sees_its_own_row() -> None:
    fold = [0, 1, 2, 0, 1, 2]
    assert memorized("out_of_fold", fold, fold) == [UNSEEN] * 6


def test_out_of_fold_models_know_the_other_folds() -> None:
    fold = [0, 1, 2, 0, 1, 2]
    assert memorized("out_of_fold", fold, [1, 2, 0, 1, 2, 0]) == [ZERO, ONE, UNSEEN] * 2


def test_in_sample_sees_its_own_row() -> None:
    fold = [0, 1, 2, 0, 1, 2]
    assert memorized("in_sample", fold, fold) == [ZERO, ONE, UNSEEN] * 2


@pytest.mark.parametrize("predictions", ["in_sample", "out_of_fold"])
def test_rows_outside_the_sample_are_not_trained_on_and_asked_of_the_full_model(predictions: str) -> None:
    fold = [0, 1, 2, 0, 1, 2, -1, -1]
    assert memorized(predictions, fold, [-1] * 8) == [ZERO, ONE, UNSEEN] * 2 + [UNSEEN] * 2


def test_a_fold_that_no_model_was_trained_without_is_an_error() -> None:
    with pytest.raises(ValueError, match="folds \\[7\\]"):
        memorized("out_of_fold", [0, 1, 2], [0, 1, 7])


def test_one_fold_cannot_be_out_of_fold() -> None:
    with pytest.raises(ValueError, match="two folds"):
        memorized("out_of_fold", [0, 0, 0], [0, 0, 0])


def test_folds_are_stratified_where_they_can_be() -> None:
    target = pd.Series(["a"] * 40 + ["b"] * 10, dtype=object)
    fold = assign_folds(target, Task.CLASSIFICATION, 5, 0)
    assert [np.bincount(fold[target == label]).tolist() for label in "ab"] == [[8] * 5, [2] * 5]
    assert fold.tolist() != assign_folds(target, Task.CLASSIFICATION, 5, 1).tolist()
    rare = pd.Series(["a"] * 48 + ["b"] * 2, dtype=object)
    assert np.bincount(assign_folds(rare, Task.CLASSIFICATION, 5, 0)).tolist() == [10] * 5
    unique = pd.Series(list("abcdefghij"), dtype=object)
    assert np.bincount(assign_folds(unique, Task.CLASSIFICATION, 5, 0)).tolist() == [2] * 5
    numbers = pd.Series(np.arange(7.0))
    assert sorted(np.bincount(assign_folds(numbers, Task.REGRESSION, 3, 0)).tolist()) == [2, 2, 3]
    with pytest.raises(InputError, match="7 rows cannot be split into 8 folds"):
        assign_folds(numbers, Task.REGRESSION, 8, 0)


@pytest.mark.parametrize("bit", [32, 63, 64, 127])
def test_every_bit_of_the_measuring_seed_divides_people_otherwise(bit: int) -> None:
    """A seed of 32 bits could be tried: whoever knows all rows but one would find the folds by the scores."""
    labels = pd.Series(np.resize(["a", "b"], 60), dtype=object)
    for target, task in ((labels, Task.CLASSIFICATION), (pd.Series(np.arange(60.0)), Task.REGRESSION)):
        first, other = (assign_folds(target, task, 3, seed) for seed in (12345, 12345 + 2**bit))
        assert (first == other).mean() < 0.7


@pytest.mark.long
def test_the_measuring_seed_is_longer_than_can_be_tried_and_every_model_takes_it() -> None:
    seeds = [seed_under(Key(number.to_bytes(32, "big")), "clinic") for number in range(20)]
    assert min(seeds) > 2**100
    for model in ("gradient_boosting", "random_forest", "decision_tree", "linear"):
        frame, labels, _ = people(60)
        build_model(model, Task.CLASSIFICATION, TYPES, max(seeds)).fit(frame, labels)


@pytest.mark.long
def test_a_missing_target_is_refused_with_its_count() -> None:
    frame, labels, _ = people(50)
    fold = assign_folds(labels, Task.CLASSIFICATION, 5, 0)
    labels[3] = None
    with pytest.raises(InputError, match="1 of 50 rows has no value"):
        train(Problem(frame, labels, Task.CLASSIFICATION, TYPES, 0), Guide(), fold)
    with pytest.raises(InputError, match="1 of 50 rows has no value"):
        assign_folds(labels, Task.CLASSIFICATION, 5, 0)
    fold[3] = -1  # outside the sample it may be missing
    assert train(Problem(frame, labels, Task.CLASSIFICATION, TYPES, 0), Guide(), fold).guidance(frame, fold).shape == (
        50,
        1,
    )


# ----------------------------------------------------------------------------------- imported, logged and bad models


@pytest.mark.long
def test_an_imported_pipeline_gets_the_frame_and_a_bare_estimator_an_encoding() -> None:
    frame, labels, _ = people()
    assert build_model(imported("pipeline").model, Task.CLASSIFICATION, TYPES, 0).steps[0][0] == "functiontransformer"
    assert guided(imported("pipeline"), frame, labels).shape == (400, 1)
    assert guided(imported("bare"), frame, labels).shape == (400, 1)
    assert guided(imported("without_probabilities", on="label"), frame, labels).shape == (400, 2)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("no_such_package.models:make", "there is no module no_such_package"),
        (f"{HERE}:no_such_function", "has no function no_such_function"),
        (f"{HERE}:not_a_function", "is not a function"),
        (f"{HERE}:no_estimator", "gives a str, not a scikit-learn estimator"),
        (f"{HERE}:estimator_class", "not a scikit-learn estimator"),
        (f"{HERE}:gossip_in_factory", "failed to be made \\(RuntimeError"),
        (f"{HERE}:regressor", "made for regression, but the target asks for classification"),
        ("gossiping_module:make", "raises RuntimeError"),
    ],
)
def test_a_bad_import_is_one_sentence_that_names_the_field(
    path: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gossiping_module.py").write_text(f"raise RuntimeError({SECRET!r})")
    monkeypatch.syspath_prepend(tmp_path)
    guide = Guide.model_validate({"model": {"import": path}})
    with pytest.raises(InputError, match=f"^guide.model.import: .*{says}") as caught:
        build_model(guide.model, Task.CLASSIFICATION, TYPES, 0)
    assert_silent(caught.value)


def test_a_logged_model_is_fitted_anew() -> None:
    frame, labels, _ = people()
    stored = pipeline().fit(frame, labels)
    guide = Guide.model_validate({"model": {"mlflow": "models:/m/1"}})
    asked: list[str] = []

    def load(uri: str) -> Pipeline:
        asked.append(uri)
        return stored

    model = build_model(guide.model, Task.CLASSIFICATION, TYPES, 7, load)
    assert asked == ["models:/m/1"]
    assert isinstance(model[-1], DecisionTreeClassifier)
    assert not hasattr(model[-1], "tree_")
    assert model[-1].random_state == 7
    assert stored[-1].random_state is None
    with pytest.raises(InputError, match=r"^guide.model.mlflow: .* no model store"):
        build_model(guide.model, Task.CLASSIFICATION, TYPES, 0)


def test_a_sentence_of_the_model_store_is_passed_on_but_nothing_else() -> None:
    guide = Guide.model_validate({"model": {"mlflow": "models:/m/1"}})

    def absent(uri: str) -> Any:
        raise InputError("guide.model.mlflow: there is no such model")

    def broken(uri: str) -> Any:
        raise OSError(SECRET)

    with pytest.raises(InputError, match="there is no such model"):
        build_model(guide.model, Task.CLASSIFICATION, TYPES, 0, absent)
    with pytest.raises(InputError, match="failed to load \\(OSError") as caught:
        build_model(guide.model, Task.CLASSIFICATION, TYPES, 0, broken)
    assert_silent(caught.value)


def test_probabilities_that_a_model_lacks() -> None:
    frame, labels, _ = people()
    fold = assign_folds(labels, Task.CLASSIFICATION, 5, 0)
    with pytest.raises(InputError, match=r"^guide.on: .*use `on: label`"):
        train(Problem(frame, labels, Task.CLASSIFICATION, TYPES, 0), imported("without_probabilities"), fold)


def test_labels_that_are_no_classes() -> None:
    frame = pd.DataFrame({"number": np.arange(4.0)})
    target = pd.Series(["class 0", "class 1"] * 2, dtype=object)  # "unseen" is not among them
    guide, types = imported("memorizer", on="label"), {"number": ColumnType.NUMERIC}
    trained = train(Problem(frame, target, Task.CLASSIFICATION, types, 0), guide, np.array([0, 0, 1, 1]))
    with pytest.raises(InputError, match="labels that are not classes of the target"):
        trained.guidance(frame, np.array([0, 0, 1, 1]))


def test_numbers_that_are_not_finite() -> None:
    frame, _, numbers = people()
    with pytest.raises(InputError, match="not finite"):
        guided(imported("endless"), frame, numbers, Task.REGRESSION)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("gossip_in_fit", "failed to fit \\(ValueError"),
        ("gossip_in_predict", "failed to predict \\(ValueError"),
        ("gossip_on_exit", "failed to fit \\(SystemExit"),
    ],
)
@pytest.mark.parametrize("predictions", ["in_sample", "out_of_fold"])
def test_what_a_model_says_about_a_person_is_not_passed_on(function: str, says: str, predictions: str) -> None:
    frame, labels, _ = people(60)
    frame.loc[0, "town"] = SECRET
    with pytest.raises(InputError, match=f"^guide.model: {HERE}:{function} {says}") as caught:
        guided(imported(function, predictions=predictions), frame, labels)
    assert_silent(caught.value)


def assert_silent(error: BaseException) -> None:
    assert SECRET not in str(error)
    assert SECRET not in repr(error.args)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(error))


def test_the_memorizer_memorizes() -> None:
    """The out-of-fold tests mean something only if it does."""
    frame = pd.DataFrame({"number": [1.0, 2.0]})
    assert Memorizer().fit(frame, ["class 0", "class 1"]).predict(frame).tolist() == ["class 0", "class 1"]
