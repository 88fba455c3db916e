"""Calibration and subgroups: what is said against what is true, and for whom, by hand and on models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.learning.calibration import calibration, error_of, reliability
from anon_pipeline.learning.scores import Answers
from anon_pipeline.learning.subgroups import subgroups
from anon_pipeline.spec import ColumnType

NO_YES = np.array(["no", "yes"], dtype=object)


def answers(probability: np.ndarray, truth: np.ndarray) -> Answers:
    said = np.column_stack([1 - probability, probability])
    return Answers(NO_YES[truth.astype(int)], NO_YES[(probability > 0.5).astype(int)], said)


def test_a_model_that_is_right_has_a_small_error_and_one_that_boasts_a_large_one() -> None:
    random = np.random.default_rng(0)
    folds = []
    for _ in range(4):
        chance = random.random(2000)
        folds.append((chance, random.random(2000) < chance))
    right = [answers(chance, truth) for chance, truth in folds]
    boasting = [answers(np.where(chance > 0.5, 0.99, 0.01), truth) for chance, truth in folds]
    found = calibration(right, boasting, NO_YES, 10)
    assert found is not None and found.of == "yes"
    assert found.error.before.mean < 0.03  # type: ignore[operator]
    assert found.error.after.mean == pytest.approx(0.24, abs=0.02)
    assert found.error.difference.low > 0.15  # type: ignore[operator]
    assert found.before.people == (800,) * 10
    assert sum(found.after.people) == 8000 and len(found.after.people) == 2  # two answers, two groups


def test_by_hand() -> None:
    found = reliability(np.array([0.1, 0.1, 0.8, 0.9]), np.array([0.0, 1.0, 1.0, 1.0]), 2)
    assert found.people == (2, 2)
    assert found.predicted == pytest.approx((0.1, 0.85)) and found.observed == (0.5, 1.0)
    assert error_of(found) == pytest.approx((2 * 0.4 + 2 * 0.15) / 4)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=200), st.integers(1, 30), st.randoms())
def test_no_group_is_too_small_and_the_order_of_people_decides_nothing(said: list[int], smallest: int, order) -> None:  # type: ignore[no-untyped-def]
    predicted = np.array(said, dtype=np.float64)
    found = reliability(predicted, predicted, smallest)
    assert sum(found.people) == len(said) and len(found.people) <= 10
    assert len(said) < smallest or min(found.people) >= smallest
    assert error_of(found) == pytest.approx(0, abs=1e-9)
    shuffled = list(said)
    order.shuffle(shuffled)
    again = reliability(np.array(shuffled, dtype=np.float64), np.array(shuffled, dtype=np.float64), smallest)
    assert again.people == found.people and again.predicted == pytest.approx(found.predicted)


def test_several_values_are_judged_by_the_models_own_answer_and_numbers_by_their_mean() -> None:
    classes = np.array(["a", "b", "c"], dtype=object)
    one = Answers(
        np.array(["a", "b"], dtype=object),
        np.array(["a", "c"], dtype=object),
        np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]),
    )
    found = calibration([one], [one], classes, 2)
    assert found is not None and found.of is None
    assert found.before.predicted == pytest.approx((0.65,)) and found.before.observed == (0.5,)
    numbers = Answers(np.array([1.0, 5.0]), np.array([2.0, 6.0]), None)
    regression = calibration([numbers], [numbers], None, 2)
    assert regression is not None and regression.error.before.mean == pytest.approx(1.0)
    assert calibration([Answers(one.truth, one.predicted, None)], [one], classes) is None


def test_a_group_for_which_the_release_does_not_work_is_seen() -> None:
    random = np.random.default_rng(0)
    tests, before, after = [], [], []
    for _ in range(5):
        frame = pd.DataFrame(
            {"town": random.choice(["large", "small", "tiny"], 1000, p=[0.88, 0.1, 0.02]), "age": random.random(1000)}
        )
        truth = random.random(1000) < 0.5
        hit = random.random(1000) < 0.9
        small = (frame["town"] == "small").to_numpy()
        tests.append(frame)
        before.append(answers(np.where(hit, truth, ~truth).astype(float), truth))
        wrong = np.where(small, random.random(1000) < 0.5, hit)  # as good as a coin for them, unchanged for the rest
        after.append(answers(np.where(wrong, truth, ~truth).astype(float), truth))
    kinds = {"town": (ColumnType.CATEGORICAL, "VARCHAR"), "age": (ColumnType.NUMERIC, "DOUBLE")}
    found = {(one.column, one.value): one for one in subgroups(tests, (before, after), NO_YES, kinds, 10, 7)}
    assert {value for column, value in found if column == "town"} == {"large", "small", "all others"}
    assert found["town", "small"].metrics["accuracy"].difference.high < -0.2  # type: ignore[operator]
    assert found["town", "large"].metrics["accuracy"].difference.mean == 0
    assert all(one.metrics["roc_auc"].after.per_fold == () for one in found.values())
    for column in kinds:
        sizes = [one.people for one in found.values() if one.column == column]
        assert sum(sizes) == 5000 and min(sizes) >= 50
    assert len([one for one in found.values() if one.column == "age"]) > 3


def test_one_person_decides_neither_which_categories_are_groups_nor_their_order() -> None:
    """Of 800 people forty are 5 %, and the larger of two towns came first: both told where the last one lives."""
    truth = np.zeros(800, dtype=bool)
    given = [answers(truth.astype(float), truth)]

    def told(last: str, seed: int) -> tuple[str, ...]:
        towns = np.repeat(["Bonn", "Trier", "Hof"], [380, 380, 40])
        towns[-1] = last
        kinds = {"town": (ColumnType.CATEGORICAL, "VARCHAR")}
        found = subgroups([pd.DataFrame({"town": towns})], (given, given), NO_YES, kinds, 1, seed)
        return tuple(one.value for one in found)

    ways = {town: {told(town, seed) for seed in range(40)} for town in ("Bonn", "Trier", "Hof")}
    assert ways["Hof"] == {("Bonn", "Hof", "Trier"), ("Bonn", "Trier", "all others")}
    assert ways["Bonn"] == ways["Trier"] == ways["Hof"]


NUMERIC = ColumnType.NUMERIC
#: Columns of 800 people by what the last of them may have; all others are the same.
LAST: dict[str, tuple[ColumnType, str, list[Any], list[Any]]] = {
    "just enough": (NUMERIC, "BIGINT", [25] * 380 + [35] * 380 + [45] * 39, [25, 35, 45]),
    "just whole": (NUMERIC, "DOUBLE", [25.0] * 300 + [35.0] * 300 + [45.0] * 159 + [25.5] * 40, [25.0, 45.0, 25.5]),
    "the only one missing": (NUMERIC, "DOUBLE", [25.0] * 400 + [35.0] * 399, [25.0, None]),
    "the 98th percentile": (NUMERIC, "BIGINT", [25] * 383 + [35] * 400 + [200] * 16, [25, 35, 200]),
    "far from all others": (
        ColumnType.DATE,
        "TIMESTAMP",
        ["2020-03-01", "2021-06-01"] * 399 + ["2020-03-01"],
        [1920, 2021],
    ),
}


@pytest.mark.parametrize("of", LAST)
def test_one_person_does_not_decide_where_numbers_are_cut(of: str) -> None:
    """Of 60 random tables of 400 ages a fifth told some other age of one person, and 9 % of all ages were ruled out."""
    kind, storage, others, lasts = LAST[of]
    truth = np.zeros(800, dtype=bool)
    given = [answers(truth.astype(float), truth)]

    def told(last: Any, seed: int) -> tuple[str, ...]:
        values = pd.Series([*others, f"{last}-03-01" if kind is ColumnType.DATE else last])
        values = pd.to_datetime(values) if kind is ColumnType.DATE else values
        kinds = {"x": (kind, storage)}
        found = subgroups([pd.DataFrame({"x": values})], (given, given), NO_YES, kinds, 1, seed)
        return tuple(one.value for one in found)

    ways = [{told(last, seed) for seed in range(60)} for last in lasts]
    assert all(way == ways[0] for way in ways)
