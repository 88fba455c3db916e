"""What models answer, how few people are inverted, and the sentences of an audit, by models that are made up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from anon_pipeline.attack import membership_inference, model_inference, models_audit, rates
from anon_pipeline.attack.model_answers import Answer, Question, answer_of, confidence, log_odds
from anon_pipeline.attack.models_audit import FITTED, RAW, RELEASE, Bought, Effort, audit_fitted, audit_models
from anon_pipeline.errors import InputError

PEOPLE = pd.DataFrame({"illness": ["none"] * 6 + ["flu"] * 3 + ["mumps"], "paid": ["yes"] * 5 + ["no"] * 5})
HALF = np.array([True, False] * 5)


class Told:
    """A model that answers with the probability of a "yes" that stands in a column."""

    classes_ = np.array(["no", "yes"])

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        self.asked.append(rows.index.tolist())
        return np.column_stack([1 - rows["p"], rows["p"]])


class ByIllness:
    """Answers from a table: P(yes) by illness."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        p = rows["illness"].map({"none": 0.2, "flu": 0.5, "mumps": 0.9}).to_numpy()
        return np.column_stack([1 - p, p])


# --- answers


@pytest.mark.parametrize("answers", [[np.nan, 0.5], [np.nan, np.nan], [np.inf, 0.5]])
def test_a_model_that_answers_with_anything_but_numbers_is_refused(answers: list[float]) -> None:
    with pytest.raises(InputError, match="not finite"):
        confidence(Told(), pd.DataFrame({"p": answers}), pd.Series(["yes", "yes"]), Answer.PROBABILITY)


def test_the_probability_of_the_truth_is_that_of_its_class_and_0_for_one_never_seen() -> None:
    rows = pd.DataFrame({"p": [0.2, 0.2, 0.2]})
    assert confidence(Told(), rows, pd.Series(["no", "yes", "?"]), Answer.PROBABILITY).tolist() == [0.8, 0.2, 0]


def test_people_may_all_be_of_the_first_class() -> None:
    found = confidence(Told(), pd.DataFrame({"p": [0.2, 0.7]}), pd.Series(["no", "no"]), Answer.PROBABILITY)
    assert found == pytest.approx([0.8, 0.3])


@pytest.mark.parametrize("classes", ["abc", "abcd"])
def test_decisions_of_pairs_of_classes_are_no_margins(classes: str) -> None:
    """Three classes have as many pairs as classes."""
    rows = pd.DataFrame({"x": np.arange(10.0 * len(classes))})
    truth = pd.Series(np.repeat(list(classes), 10))
    pairs = SVC(decision_function_shape="ovo").fit(rows, truth)
    assert answer_of(pairs, truth) is Answer.MARGIN
    wrong = truth.where(rows["x"] != rows["x"].max(), "a")
    assert confidence(pairs, rows, wrong, Answer.MARGIN).tolist() == [1.0] * (len(rows) - 1) + [0.0]


def test_decisions_of_three_classes_are_margins() -> None:
    rows = pd.DataFrame({"x": np.arange(30.0)})
    truth = pd.Series(np.repeat(["a", "b", "c"], 10))
    model = SVC().fit(rows, truth)
    decisions = model.decision_function(rows)
    own = np.repeat(np.eye(3, dtype=bool), 10, axis=0)
    expected = decisions[own] - np.where(own, -np.inf, decisions).max(axis=1)
    assert confidence(model, rows, truth, Answer.MARGIN) == pytest.approx(expected)


class Decides:
    """A model of three classes that predicts the last one, and whose decisions are largest elsewhere for some."""

    classes_ = np.array(["a", "b", "c"])

    def __init__(self, otherwise: int) -> None:
        self._otherwise = otherwise

    def predict(self, features: pd.DataFrame) -> np.ndarray:
        return np.full(len(features), "c")

    def decision_function(self, features: pd.DataFrame) -> np.ndarray:
        return np.where(np.arange(len(features))[:, None] < self._otherwise, [3.0, 2, 1], [1.0, 2, 3])


def test_nine_predictions_of_ten_must_have_the_largest_decision_to_be_of_three_classes() -> None:
    people, truth = pd.DataFrame({"x": range(10)}), pd.Series(["c"] * 10)
    assert confidence(Decides(1), people, truth, Answer.MARGIN).tolist() == [-2.0] + [1.0] * 9
    assert confidence(Decides(2), people, truth, Answer.MARGIN).tolist() == [1.0] * 10


def test_odds_are_kept_away_from_infinity() -> None:
    assert log_odds(np.array([0, 0.25, 0.75, 1]), 0.1) == pytest.approx(np.log([1 / 9, 1 / 3, 3, 9]))


def test_a_model_is_asked_about_rows_with_a_plain_index() -> None:
    people = pd.DataFrame({"p": np.linspace(0.1, 0.9, 9), "ill": ["yes"] * 9}, index=range(50, 59))
    model = Told()
    found = membership_inference.attack_by_loss(model, people[5:], people[:5], Question("ill", ["p"]))
    assert (found.auc, found.members, found.non_members) == (1, 4, 5)
    audit_fitted(model, people[4:], people[:4], Question("ill", ["p"]))
    assert all(rows == list(range(len(rows))) for rows in model.asked)


def test_an_auc_of_a_half_at_least_is_no_leak_yet() -> None:
    people = pd.DataFrame({"p": [0.5] * 9, "ill": ["yes"] * 9})
    found = membership_inference.attack_by_loss(Told(), people[5:], people[:5], Question("ill", ["p"]))
    assert (found.auc_low, found.epsilon, found.leaks) == (0.5, None, False)


# --- attribute inference and inversion


def test_an_inversion_agrees_with_people_as_far_as_the_likeliest_one_does() -> None:
    """The likeliest "yes" has the flu, the likeliest "no" has none; the first five people have none, and a "yes"."""
    found = model_inference.model_inversion(ByIllness(), PEOPLE, HALF, Question("paid", ["illness"]))
    assert found.attack == rates.measured([0, 0, 0, 0, 0])
    assert found.control == rates.measured([0, 0, 1, 0, 0])
    assert found.baseline == rates.measured([1, 1, 1, 0, 0])
    assert found.details["labels"] == 2
    assert found.details["nearness"]["auc"] == pytest.approx(0.4)


@pytest.mark.parametrize(("most", "trials"), [(1, 3), (2, 5)])
def test_people_of_labels_that_are_too_many_are_left_out(
    most: int, trials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_inference, "MOST_LABELS", most)
    found = model_inference.model_inversion(ByIllness(), PEOPLE, HALF, Question("paid", ["illness"]))
    assert (found.details["labels"], found.attack.trials) == (most, trials)
    labels, label_of = model_inference._labels(pd.Series(["c", "b", "a", "a", "b", "a"]), Answer.LABEL)
    assert labels.tolist() == ["a", "b"][:most]
    assert label_of.tolist() == [-1, *((1, 0, 0, 1, 0) if most == 2 else (-1, 0, 0, -1, 0))]


def test_numbers_are_inverted_by_five_equal_groups_or_fewer() -> None:
    labels, label_of = model_inference._labels(pd.Series([5.0, 1, 2, 3, 4, 10, 9, 8, 7, 6]), Answer.NUMBER)
    assert (labels.tolist(), label_of.tolist()) == ([1.5, 3.5, 5.5, 7.5, 9.5], [2, 0, 0, 1, 1, 4, 4, 3, 3, 2])
    labels, label_of = model_inference._labels(pd.Series([5.0, 1, 2]), Answer.NUMBER)
    assert (labels.tolist(), label_of.tolist()) == ([1, 2, 5], [2, 0, 1])


@pytest.mark.parametrize("member", [np.ones(10, bool), np.zeros(10, bool)])
def test_without_people_on_either_side_nothing_is_nearer(member: np.ndarray) -> None:
    found = model_inference.model_inversion(ByIllness(), PEOPLE, member, Question("paid", ["illness"]))
    assert found.details["nearness"] is None


def reconstructed(scores: dict[tuple[int, int], float]) -> list[int]:
    """Two features of three equally frequent values, and how well each pair of values explains the label."""
    tried = {name: model_inference.candidates(pd.Series([0, 1, 2])) for name in "ab"}

    def fit(rows: pd.DataFrame, truths: pd.Series) -> np.ndarray:
        return np.array([scores.get(pair, -9.0) for pair in zip(rows["a"], rows["b"], strict=True)])

    return model_inference._reconstruct(tried, pd.Series(["yes"]), fit).ravel().tolist()


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ({(0, 0): 0, (1, 0): -1, (0, 1): 1, (1, 1): 3}, [1, 1]),  # in the first round only "b" changes
        ({(0, 0): 0, (1, 0): 1, (1, 1): 2, (2, 1): 5}, [2, 1]),  # in the first round both change
        ({(0, 0): 0, (1, 0): 0, (0, 2): 0}, [0, 0]),
        ({(0, 0): 0, (1, 0): 5e-13, (0, 2): 5e-13}, [0, 0]),  # a tie, but for rounding
        ({(0, 0): 0, (2, 0): 1e-9}, [2, 0]),
    ],
)
def test_features_are_changed_in_turns_until_none_is_better(
    scores: dict[tuple[int, int], float], found: list[int]
) -> None:
    assert reconstructed(scores) == found


@pytest.mark.parametrize(("values", "tried"), [(10, 10), (11, 3)])
def test_ten_numbers_are_tried_as_they_are_and_eleven_in_groups(values: int, tried: int) -> None:
    column = pd.Series([0.0] * 80 + [float(value) for value in range(1, values)])
    assert len(model_inference.candidates(column).values) == tried


# --- an audit of models


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.01, 0.05, "The release-trained model tells more about who it was trained on"),
        (-0.05, -0.01, "The release-trained model tells less about who it was trained on"),
        (0.0, 0.05, "No difference shows"),
        (-0.05, 0.0, "No difference shows"),
        (-0.05, 0.05, "No difference shows"),
    ],
)
def test_a_difference_is_told_where_its_interval_leaves_out_0(low: float, high: float, told: str) -> None:
    sentence = Bought("lira", 0.6, 0.6 + (low + high) / 2, (low + high) / 2, low, high).sentence()
    assert sentence.startswith(
        f"{told}: with shadow models, an attacker tells members from others in 60 % of the pairs"
    )
    assert sentence.endswith(f"points, {100 * low:+.1f} to {100 * high:+.1f}).")


def test_of_an_odd_sample_the_smaller_half_are_members() -> None:
    random = np.random.default_rng(0)
    people = pd.DataFrame({"p": random.uniform(0.1, 0.9, 30), "ill": ["yes", "no"] * 15})
    found = audit_models(
        people,
        Question("ill", ["p"]),
        {RAW: lambda part, seed: Told(), RELEASE: lambda part, seed: Told()},
        Effort(sample=21, shadows=4, asked=8),
    )
    assert (found.members, found.non_members) == (10, 11)
    assert [(one.attack.trials, one.control.trials) for one in found.inference if one.control] == [(8, 8)] * 4
    of_raw = [one for one in found.membership if one.model == RAW]
    assert found.strongest(RAW).auc == max(one.auc for one in of_raw) > min(one.auc for one in of_raw)
    assert {one.attack: one.shadows for one in of_raw} == {"lira": 4, "lira_offline": 4, "loss_threshold": 0}


def test_of_a_fitted_model_half_of_the_sample_are_members_and_fewer_are_asked_about() -> None:
    people = pd.DataFrame({"p": np.linspace(0.1, 0.9, 60), "ill": ["yes", "no"] * 30})
    people.loc[3, "ill"] = None
    found = audit_fitted(Told(), people[:40], people[40:], Question("ill", ["p"]), Effort(sample=60, asked=25))
    assert (found.members, found.non_members, found.strongest(FITTED).shadows) == (30, 20, 0)
    assert [(one.attack.trials, one.control.trials) for one in found.inference if one.control] == [(25, 20)] * 2
    assert (Effort().asked, Effort().seed) == (1000, 0)
    assert models_audit._some(5, 9, 0).tolist() == list(range(5))
