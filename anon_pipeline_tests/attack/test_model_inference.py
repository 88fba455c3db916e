"""A model that remembers gives features away, one that has only learnt does not; known answers on small tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from anon_pipeline.attack import model_inference as attacks
from anon_pipeline.attack import rates
from anon_pipeline.attack.model_answers import Answer, Question, answer_of
from anon_pipeline.errors import InputError

FEATURES = ["age", "city", "street", "illness"]


def some_people(n: int, seed: int = 0) -> pd.DataFrame:
    """Nothing tells anything about anything, so that only memory can."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(20, 80, n),
            "city": random.choice(["Ulm", "Bonn", "Rome"], n, p=[0.5, 0.3, 0.2]),
            "street": random.integers(0, 30, n),
            "illness": random.choice(["none", "flu", "mumps", "measles"], n, p=[0.4, 0.2, 0.2, 0.2]),
            "paid": random.choice(["yes", "no"], n),
            "sum": random.normal(size=n) * 100,
        }
    )


def encoded(estimator: Any) -> Any:
    return make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), estimator)


def attacked(model: Any, target: str, n: int = 1200, **more: Any) -> tuple[Any, pd.DataFrame, Any]:
    people = some_people(n)
    member = np.arange(n) < n // 2
    model.fit(people.loc[member, FEATURES], people.loc[member, target])
    return model, people, member


# ---------------------------------------------------------------------------------------------- attribute inference


class LabelsOnly(DecisionTreeClassifier):  # type: ignore[misc]
    @property
    def predict_proba(self) -> Any:
        raise AttributeError("labels only")


@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (DecisionTreeClassifier(random_state=0), "paid"),
        (LabelsOnly(random_state=0), "paid"),
        (DecisionTreeRegressor(random_state=0), "sum"),
    ],
)
def test_a_model_that_knows_its_people_by_heart_gives_an_illness_away(estimator: Any, target: str) -> None:
    model, people, member = attacked(encoded(estimator), target)
    (found,) = attacks.attribute_inference(model, people, member, Question(target, FEATURES, attributes=["illness"]))
    assert found.verdict == rates.LEAK
    assert found.leak is not None and found.leak.low > 0.03
    assert found.control is not None and found.attack.low > found.control.high
    assert found.knowledge.columns == ("age", "city", "street", target)
    assert "It remembers people it was trained on." in found.sentence


@pytest.mark.long
def test_a_model_that_has_learnt_nothing_gives_nothing_away() -> None:
    for estimator, target in (
        (DecisionTreeClassifier(max_depth=1), "paid"),
        (HistGradientBoostingRegressor(max_iter=2), "sum"),
    ):
        model, people, member = attacked(encoded(estimator), target)
        for found in attacks.attribute_inference(model, people, member, Question(target, FEATURES)):
            assert found.verdict != rates.LEAK
            assert found.leak is not None and found.leak.low <= 0 <= found.leak.high


@pytest.mark.long
def test_what_is_true_of_everybody_is_no_leak() -> None:
    leaks = 0
    for seed in range(8):
        people = some_people(1200, seed)
        people["paid"] = np.where(people["illness"] == "none", "no", "yes")
        member = np.arange(1200) < 600
        model = encoded(DecisionTreeClassifier(max_depth=3))
        model.fit(people.loc[member, FEATURES], people.loc[member, "paid"])
        (found,) = attacks.attribute_inference(
            model, people, member, Question("paid", FEATURES, attributes=["illness"])
        )
        assert found.attack.rate > found.baseline.rate + 0.1
        leaks += found.verdict != rates.NO_LEAK
    assert leaks <= 1


class ByIllness:
    """Answers from a table: P(yes) by illness."""

    def __init__(self, yes: dict[str, float]) -> None:
        self.classes_, self.yes = np.array(["no", "yes"]), yes

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        p = rows["illness"].map(self.yes).to_numpy()
        return np.column_stack([1 - p, p])


def test_a_guess_is_the_prior_times_the_fit() -> None:
    people = pd.DataFrame({"illness": ["none"] * 6 + ["flu"] * 3 + ["mumps"], "paid": ["yes"] * 5 + ["no"] * 5})
    member = np.array([True, False] * 5)
    # yes: .6 * .2 = .12 for none, .3 * .5 = .15 for flu, .1 * .9 = .09 for mumps; no: .48 for none.
    model = ByIllness({"none": 0.2, "flu": 0.5, "mumps": 0.9})
    (found,) = attacks.attribute_inference(model, people, member, Question("paid", ["illness"]))
    assert found.attack == rates.measured([0, 0, 0, 0, 0])  # yes, yes, yes with none; no with flu, no with flu
    assert found.control == rates.measured([0, 0, 1, 0, 0])  # the sixth has none, and no
    assert found.baseline == rates.measured([1, 1, 1, 0, 0])


class Says:
    """A model that tells a label, or a number, for each person."""

    def __init__(self, labels: list[Any] | None, classes: list[str] | None = None) -> None:
        self.answers = labels
        if classes is not None:
            self.classes_ = np.array(classes)

    def __sklearn_tags__(self) -> Any:
        raise AttributeError("tags of another version")

    def predict(self, rows: pd.DataFrame) -> Any:
        return np.array(self.answers)[rows["row"].to_numpy()]


def test_a_truth_is_as_likely_as_it_is_among_people_of_whom_the_model_says_the_same() -> None:
    truth = pd.Series(["yes", "yes", "no", "no", "no", "no"])
    model, asked = Says(["yes", "no", "no", "no", "no", "yes"], ["no", "yes"]), pd.DataFrame({"row": range(6)})
    fit = attacks.log_fit(model, asked, truth)
    # With one imagined person each, of those called "yes" 2 of 4 are, of those called "no" 4 of 6 are not.
    expected = np.log([2 / 4, 2 / 6, 4 / 6, 4 / 6, 4 / 6, 2 / 4])
    assert fit(asked, truth) == pytest.approx(expected)


def test_a_number_is_as_likely_as_its_error_is_small() -> None:
    truth = pd.Series([1.0, 2.0, 3.0, 4.0])
    model, asked = Says([1.0, 2.0, 4.0, 6.0]), pd.DataFrame({"row": range(4)})
    error = np.array([0.0, 0.0, 1.0, 2.0])
    assert attacks.log_fit(model, asked, truth)(asked, truth) == pytest.approx(-((error / error.std()) ** 2) / 2)


@pytest.mark.parametrize(
    ("truth", "answer"), [([1.5, 2.5], Answer.NUMBER), ([True, False], Answer.LABEL), (["a", "b"], Answer.LABEL)]
)
def test_what_a_model_without_tags_answers_is_seen_from_the_truth(truth: list[Any], answer: Answer) -> None:
    assert answer_of(Says(truth), pd.Series(truth)) is answer


def test_equal_scores_are_decided_for_the_frequent() -> None:
    people = pd.DataFrame({"illness": ["flu", "none", "none", "flu", "none"], "paid": ["yes"] * 5})
    model = ByIllness({"none": 0.5, "flu": 0.75})  # .6 * .5 = .4 * .75
    (found,) = attacks.attribute_inference(
        model, people, np.array([1, 1, 1, 0, 0], bool), Question("paid", ["illness"])
    )
    assert found.attack.rate == found.baseline.rate == pytest.approx(2 / 3)


# ------------------------------------------------------------------------------------------------------- candidates


def test_texts_are_tried_by_frequency_and_a_missing_one_is_a_text() -> None:
    found = attacks.candidates(pd.Series(["b", "a", None, "a", None, "a"]))
    assert found.values.tolist() == ["a", None, "b"]
    assert np.exp(found.log_prior).tolist() == pytest.approx([3 / 6, 2 / 6, 1 / 6])
    assert found.code.tolist() == [2, 0, 1, 0, 1, 0]


def test_rare_texts_are_not_tried() -> None:
    found = attacks.candidates(pd.Series([f"t{i:02}" for i in range(35)] + ["t34"]))
    assert len(found.values) == attacks.MOST_TEXTS
    assert found.values.iloc[0] == "t34"
    assert (found.code == -1).sum() == 5


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "datetime64[ns]"])
def test_numbers_are_tried_by_quantile_group_with_their_type(dtype: str) -> None:
    column = pd.Series(np.arange(100)).sample(frac=1, random_state=1).astype(dtype)  # type: ignore[call-overload]
    found = attacks.candidates(column)
    assert len(found.values) == attacks.MOST_GROUPS
    assert found.values.dtype == column.dtype
    assert (np.bincount(found.code) == 10).all()
    lowest = found.values.sort_values().iloc[0]
    assert lowest == column.sort_values().iloc[4]  # the lower median of ten


def test_who_has_no_number_is_in_a_group_of_their_own() -> None:
    column = pd.Series([*range(100), None, None], dtype=float).sample(frac=1, random_state=0, ignore_index=True)
    code, representative = attacks._groups(column)
    missing = column.isna().to_numpy()
    assert (code[missing] == 10).all() and (code[~missing] < 10).all()
    assert np.isnan(column[representative[10]])
    assert column[representative[:10]].tolist() == [4, 14, 24, 34, 44, 54, 64, 74, 84, 94]
    assert len(attacks._groups(column.dropna().reset_index(drop=True))[1]) == 10


def test_the_median_of_a_group_of_one_or_two_is_the_lower() -> None:
    code, representative = attacks._groups(pd.Series([*range(10), *range(10, 25)], dtype=float))
    assert np.bincount(code).tolist() == [3, 2, 3, 2, 3, 2, 3, 2, 3, 2]
    assert representative.tolist() == [1, 3, 6, 8, 11, 13, 16, 18, 21, 23]


def test_a_value_that_most_people_have_is_a_group_of_its_own() -> None:
    found = attacks.candidates(pd.Series([0.0] * 92 + list(range(1, 8)) + [np.nan]))
    assert found.values.iloc[0] == 0
    assert (found.code[:92] == 0).all()
    assert found.code[-1] not in found.code[:-1]
    assert np.isnan(found.values.iloc[found.code[-1]])


def test_categories_and_flags_keep_their_type() -> None:
    for column in (pd.Series(["a", "b", "a"], dtype="category"), pd.Series([True, False, True])):
        found = attacks.candidates(column)
        assert found.values.dtype == column.dtype
        assert found.code.tolist() == [0, 1, 0]


# -------------------------------------------------------------------------------------------------------- inversion


def test_a_label_that_stands_for_few_people_is_inverted() -> None:
    # Each label is a person of whom the model has seen other pictures than the control group shows.
    random = np.random.default_rng(0)
    features = [f"pixel{i}" for i in range(8)]
    faces = random.integers(0, 2, (2, 10, 8))
    who, member = random.permutation(np.tile(np.arange(10), 120)), np.arange(1200) < 600
    shown = np.where(random.random((1200, 8)) < 0.05, 1, 0) ^ faces[np.where(member, 0, 1), who]
    people = pd.DataFrame(shown, columns=features).assign(who=[f"person{one}" for one in who])
    model = DecisionTreeClassifier(random_state=0, min_samples_leaf=10).fit(
        people.loc[member, features], people.loc[member, "who"]
    )
    found = attacks.model_inversion(model, people, member, Question("who", features))
    assert found.verdict == rates.LEAK
    assert found.control is not None and found.attack.rate > found.control.rate + 0.1
    near = found.details["nearness"]
    assert near["low"] > 0.65  # members against the others, not against everybody
    assert found.details["labels"] == 10


def test_labels_that_stand_for_everybody_are_not_inverted() -> None:
    for target in ("paid", "sum"):
        estimator = DecisionTreeClassifier(max_depth=2) if target == "paid" else DecisionTreeRegressor(max_depth=2)
        model, people, member = attacked(encoded(estimator), target)
        found = attacks.model_inversion(model, people, member, Question(target, FEATURES))
        near = found.details["nearness"]
        assert found.verdict != rates.LEAK
        assert near["low"] <= 0.5 <= near["high"]
        assert found.details["labels"] == (2 if target == "paid" else 5)


def test_a_reconstruction_is_the_likeliest_person_of_its_label() -> None:
    people = pd.DataFrame({"illness": ["none"] * 6 + ["flu"] * 3 + ["mumps"], "paid": ["yes"] * 5 + ["no"] * 5})
    tried = {"illness": attacks.candidates(people["illness"])}
    model = ByIllness({"none": 0.2, "flu": 0.5, "mumps": 0.9})
    fit = attacks.log_fit(model, people[["illness"]], people["paid"])
    found = attacks._reconstruct(tried, pd.Series(["yes", "no"]), fit)
    assert tried["illness"].values.iloc[found[0]].tolist() == ["flu", "none"]


# ------------------------------------------------------------------------------------------------ habits of the house


def test_findings_are_plain_data_without_people() -> None:
    model, people, member = attacked(encoded(DecisionTreeClassifier(random_state=0)), "paid", n=200)
    found = [
        *attacks.attribute_inference(model, people, member, Question("paid", FEATURES), name="the tree"),
        attacks.model_inversion(model, people, member, Question("paid", FEATURES), name="the tree"),
    ]
    assert len(found) == 5
    for one in found:
        text = json.dumps(one.to_json(), allow_nan=False)
        assert one.sentence.startswith("the tree: asking it, an attacker can ")
        assert not any(value in text for value in ("Ulm", "Bonn", "Rome", "flu", "mumps", "measles"))


@pytest.mark.long
def test_the_same_question_gets_the_same_answer_and_nothing_is_changed() -> None:
    model, people, member = attacked(encoded(DecisionTreeClassifier(random_state=0)), "paid", n=200)
    before = people.copy()
    first, again = (attacks.attribute_inference(model, people, member, Question("paid", FEATURES)) for _ in range(2))
    assert first == again
    pd.testing.assert_frame_equal(people, before)


@pytest.mark.long
def test_each_attribute_is_guessed_with_all_the_others_known() -> None:
    model, people, member = attacked(encoded(DecisionTreeClassifier(random_state=0)), "paid", n=400)
    together = attacks.attribute_inference(model, people, member, Question("paid", FEATURES))
    for attribute, found in zip(FEATURES, together, strict=True):
        assert attacks.attribute_inference(
            model, people, member, Question("paid", FEATURES, attributes=[attribute])
        ) == [found]


def test_an_attribute_that_is_not_there_is_told() -> None:
    model, people, member = attacked(encoded(DecisionTreeClassifier(random_state=0)), "paid", n=200)
    for attribute in ("shoe", "sum", "paid"):
        with pytest.raises(InputError, match=f"{attribute} is no feature"):
            attacks.attribute_inference(model, people, member, Question("paid", FEATURES, attributes=[attribute]))


def test_without_control_people_nothing_is_claimed() -> None:
    model, people, _ = attacked(encoded(DecisionTreeClassifier(random_state=0)), "paid", n=200)
    found = attacks.attribute_inference(
        model, people, np.ones(200, bool), Question("paid", FEATURES, attributes=["illness"])
    )
    assert found[0].control is None and found[0].leak is None
    assert found[0].verdict in (rates.NO_CONTROL, rates.TOO_WEAK)
    assert "for others" not in found[0].sentence


def test_with_control_people_their_share_is_told() -> None:
    model, people, member = attacked(encoded(DecisionTreeClassifier(random_state=0)), "paid", n=200)
    (found,) = attacks.attribute_inference(model, people, member, Question("paid", FEATURES, attributes=["illness"]))
    assert found.control is not None
    assert f"and in {rates.percent(found.control.rate)} (" in found.sentence and ") for others" in found.sentence


# ------------------------------------------------------------------ questions of several features


def one_by_one(tried: dict[str, attacks.Candidates], labels: pd.Series, fit: attacks.LogFit) -> np.ndarray:
    """The same ascent with a question for each label, feature and candidate."""
    chosen = np.zeros((len(tried), len(labels)), dtype=np.int64)
    for _ in range(attacks.MOST_ROUNDS):
        before = chosen.copy()
        for row, values in enumerate(tried.values()):
            for label in range(len(labels)):
                scores = []
                for number, prior in enumerate(values.log_prior):
                    person = chosen[:, label].copy()
                    person[row] = number
                    frame = pd.DataFrame(
                        {name: [of.values.iloc[place]] for (name, of), place in zip(tried.items(), person, strict=True)}
                    )
                    scores.append(float(fit(frame, labels.iloc[[label]])[0]) + prior)
                best = int(np.argmax(scores))
                if scores[best] > scores[chosen[row, label]] + 1e-12:
                    chosen[row, label] = best
        if (chosen == before).all():
            break
    return chosen


@pytest.mark.parametrize(("strength", "seed"), [(0.0, 0), (1.0, 4), (3.0, 2), (3.0, 9)])
def test_a_question_of_several_features_reconstructs_the_same_person(
    monkeypatch: pytest.MonkeyPatch, strength: float, seed: int
) -> None:
    """Of 66 columns there were 200 questions, each of a single feature, and most of the time went into asking."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({f"c{place}": draw.integers(0, 2 + place % 3, 60) for place in range(9)})
    tried = {name: attacks.candidates(frame[name]) for name in frame}
    labels = pd.Series(["a", "b", "c"])
    weights = {label: draw.normal(0, strength, (9, 9)) for label in labels}
    asked = []

    def fit(rows: pd.DataFrame, truths: pd.Series) -> np.ndarray:
        """A model in which features act together, so that a choice depends on those before it."""
        asked.append(len(rows))
        return np.array([row @ weights[truth] @ row for row, truth in zip(rows.to_numpy(float), truths, strict=True)])

    slow = one_by_one(tried, labels, fit)
    asked.clear()
    assert (attacks._reconstruct(tried, labels, fit) == slow).all()
    assert strength or (len(asked), (slow == 0).all()) == (4, True), "1, 2, 4 and the last 2 of 9 features"
    monkeypatch.setattr(attacks, "MOST_CELLS", 1)
    assert (attacks._reconstruct(tried, labels, fit) == slow).all(), "a feature at a time"
