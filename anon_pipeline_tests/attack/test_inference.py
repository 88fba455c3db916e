"""What attribute inference guesses, and what its models are given, on tables small enough to see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.attack import inference, minimality
from anon_pipeline.attack.boxes import Domain
from anon_pipeline.attack.rates import Finding
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.targets import Attacked, Tables, read_attacked


def attacked(
    groups: list[list], others: list | None = None, ordered: bool = True, answers: tuple[str, ...] = ()
) -> Attacked:
    """Groups of consecutive people by their sensitive values; `others` are control people of the first group."""
    sizes = [len(group) for group in groups]
    ends = np.cumsum([0, *sizes])
    table = pd.DataFrame({"x": np.arange(ends[-1]), "s": [value for group in groups for value in group]})
    shown = [
        f"[{low}, {high - 1}]" for low, high, size in zip(ends, ends[1:], sizes, strict=False) for _ in range(size)
    ]
    control = None if others is None else pd.DataFrame({"x": [0] * len(others), "s": others})
    knowledge = Knowledge(["x"], ["s"], numeric=["x", "s"] if ordered else ["x"], answers=answers)
    return read_attacked(Tables(table.assign(x=shown), table, control), knowledge)


def labelled(values: list, others: list) -> inference.Outcome:
    it = attacked([values], others)
    return inference.outcome(it, 0, it.members, it.control)


def by_name(it: Attacked) -> dict[str, Finding]:
    return {finding.name: finding for finding in inference.inference(it, 100)}


# --- labels


def test_five_numbers_are_labels_themselves_and_six_are_intervals() -> None:
    few = labelled([1, 2, 3, 4, 5, 5, 5, 5, 5, 5, None], [9, 1])
    assert few.labels == 6  # a missing value is a label as well
    assert few.label.tolist() == [1, 2, 3, 4, 5, 0, -1]  # nobody in the release has a 9
    assert few.control is not None and sorted(few.control.tolist()) == [-1, 2]
    many = labelled([1, 2, 3, 4, 5, 6, 6, 6, 6, 6, None], [9, 1])
    assert many.labels == 4  # up to 3, up to 5, 6, and missing
    assert many.label.tolist() == [3, 1, 1, 1, 2, 2, 0, -1]


def test_a_label_is_the_smaller_the_more_frequent() -> None:
    it = attacked([["b", "b", "a", "c", "c", "c", "c"]], ["d"], ordered=False)
    found = inference.outcome(it, 0, it.members, it.control)
    assert found.label.tolist() == [-1, 2, 1, 0, -1]
    assert (found.labels, found.released.tolist()) == (3, [1, 1, 2, 0, 0, 0, 0])


# --- within groups


@pytest.mark.parametrize(
    ("groups", "alike"),
    [
        ([["a", "a", None], ["a", None, None]], 1.0),
        ([["a", "b", None], ["a", None, None]], 0.5),
        ([[None, None], [None]], 1.0),
        ([["a", "a"], ["b", "b", "b"]], 1.0),
        ([["a", "b"], ["b", "b", "b"]], 0.6),
        ([["a"], ["b", "a", "a"]], 0.25),
    ],
)
def test_people_are_in_homogeneous_groups_where_all_known_values_are_the_same(groups: list[list], alike: float) -> None:
    found = by_name(attacked(groups, ordered=False))["inference: s"]
    assert found.details["in_homogeneous_groups"] == pytest.approx(alike)
    assert found.details["homogeneous_groups"] == sum(len({*group} - {None}) <= 1 for group in groups)


def test_where_nobody_can_be_sure_no_sure_guess_is_right() -> None:
    found = by_name(attacked([["a", "b"], ["b", "a", "c"]], ordered=False))["inference: s"]
    assert (found.details["guess_certain"], found.details["right_where_certain"]) == (0, None)
    some = by_name(attacked([["a", "b"], ["c", "c", "c"]], ordered=False))["inference: s"]
    assert (some.details["guess_certain"], some.details["right_where_certain"]) == (0.6, 1)


@pytest.mark.parametrize(
    ("values", "ordered", "told"),
    [
        (list(range(30)), True, "s right to one of 5 intervals from"),
        ([*range(30), *[None] * 8], True, "s right to one of 6 intervals from"),
        ([0, 1] * 10, True, "s right to one of 2 intervals from"),
        (["a", "b"] * 10, False, "s right from"),
    ],
)
def test_it_is_told_how_close_a_guess_of_a_number_is(values: list, ordered: bool, told: str) -> None:
    it = attacked([values[:10], values[10:]], ordered=ordered)
    assert told in by_name(it)["inference: s"].sentence
    assert ("intervals" in by_name(it)["inference across groups: s"].sentence) == ordered


# --- rare values


def test_rare_codes_of_a_category_that_are_all_scarce_are_the_most_frequent() -> None:
    domain = Domain.learn("c", False, [pd.Series([f"c{number:03}" for number in range(300)])])
    codes = np.r_[np.arange(1, 301), 7]
    assert np.flatnonzero(inference.rare_codes(domain, codes)).tolist() == [7]


@pytest.mark.parametrize(
    ("codes", "rare"),
    [
        ([0] * 10, []),  # nobody has a number
        ([0] * 9 + [1], [1, 2, 3]),  # a tenth has the smallest number, and no other one
        ([1] * 9 + [2], [2, 3]),
        ([0] * 90 + [1] * 5 + [2] * 5, [1, 2, 3]),
        ([1] * 8 + [2] * 2, [2, 3]),  # the largest, though a fifth has it
        ([2] * 18 + [3] * 2, [3]),
        ([3], [3]),
    ],
)
def test_rare_numbers_are_the_largest(codes: list[int], rare: list[int]) -> None:
    domain = Domain.learn("n", True, [pd.Series([1, 2, 3])])
    assert np.flatnonzero(inference.rare_codes(domain, np.array(codes))).tolist() == rare


def test_a_category_of_exactly_a_hundredth_is_not_scarce() -> None:
    domain = Domain.learn("c", False, [pd.Series(["a", "b"])])
    assert np.flatnonzero(inference.rare_codes(domain, np.array([1] * 99 + [2]))).tolist() == [2]
    assert np.flatnonzero(inference.rare_codes(domain, np.array([1] * 100 + [2]))).tolist() == [1]


def test_control_people_with_a_rare_value_are_named_among_themselves() -> None:
    members, control = np.array([3.0, 2, 1, 0]), np.array([5.0, 4, 4, 4, 0, 0, 0, 0])
    truths = [np.array([True, False, False, True]), np.array([True, True, False, False, False, False, False, True])]
    attack, of_control, blind = inference.named_rare([members, control], truths, 0.25)
    assert of_control is not None
    assert (attack.rate, of_control.rate) == (1 / 2, pytest.approx((1 + 1 / 3) / 3))  # a 5, and one of three by lot
    assert (blind.rate, blind.trials) == (0.25, 2)


def test_groups_where_everybody_has_a_rare_value_are_counted() -> None:
    groups = [["y"] * 3, ["n"] * 30, ["y", "n", "n"], ["y"] * 2]
    found = by_name(attacked(groups, ["y", "n"], ordered=False))["skewness: s"]
    assert found.details["groups_all_rare"] == 2
    assert found.details["rare_share"] == pytest.approx(6 / 38)
    assert found.details["largest_gain"] == pytest.approx(1 - 6 / 38)
    assert found.details["gain"]["min"] == pytest.approx(-6 / 38)


# --- similar values


def test_a_range_of_a_tenth_of_all_people_is_narrow_and_its_ends_belong_to_it() -> None:
    groups = [list(range(10)), list(range(10, 21)), list(range(21, 100))]
    it = attacked(groups, [0, 9, 10, 5])
    found = by_name(it)["similarity: s"]
    assert found.attack.rate == pytest.approx(10 / 100)  # those of the first group; the second has eleven
    assert found.baseline.rate == pytest.approx(10 / 100 * 0.1)
    assert found.control is not None and found.control.rate == 3 / 4
    assert found.details["in_narrow_groups"] == pytest.approx(10 / 100)
    assert found.details["share_of_ranks"]["min"] == pytest.approx(0.1)
    assert found.details["share_of_ranks"]["max"] == pytest.approx(0.79)


def test_values_that_everybody_lacks_are_the_least() -> None:
    found = by_name(attacked([[None], list(range(30))]))["similarity: s"]
    assert found.attack.rate == pytest.approx(1 / 31)
    assert found.details["share_of_ranks"]["max"] == pytest.approx(30 / 31)


# --- models


class Watched:
    """Stands for a model of scikit-learn, and remembers what it is given; it predicts the first column."""

    given: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def fit(self, features: Any, labels: Any, sample_weight: Any) -> None:
        self.given.append({**self.settings, "features": features, "labels": labels, "weights": sample_weight})

    def predict(self, features: Any) -> Any:
        return np.nan_to_num(features[:, 0])


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr(Watched, "given", [])
    monkeypatch.setattr(inference, "HistGradientBoostingClassifier", Watched)
    monkeypatch.setattr(minimality, "HistGradientBoostingRegressor", Watched)
    return Watched.given


def test_a_model_is_fitted_to_groups_by_the_columns_that_vary_in_full_and_by_the_seed(given: list) -> None:
    table = pd.DataFrame({"x": [1, 1, 2, 2], "y": [7, 7, 7, 7], "z": ["b", "b", "b", "a"], "s": list("uuvw")})
    table = pd.concat([table, table], ignore_index=True)
    it = read_attacked(Tables(table, table), Knowledge(["x", "y", "z"], ["s"], numeric=["x", "y"]), 5)
    inference.across_groups(it, inference.outcome(it, 0, it.members, None), it.members, None)
    (model,) = given
    assert model["features"].tolist() == [[1, 0], [2, 1], [2, 0]]  # of "z" the rank by frequency
    assert (model["labels"].tolist(), model["weights"].tolist()) == ([0, 2, 1], [4, 2, 2])
    assert (model["max_iter"], model["early_stopping"], model["random_state"]) == (inference.ITERATIONS, False, 5)
    assert model["categorical_features"].tolist() == [False, True]


def test_the_most_frequent_labels_are_learned_and_the_others_from_no_row(given: list) -> None:
    """Of a sensitive column with more values than a model learns, which is most diagnoses and occupations."""
    values = [f"s{number:02}" for number in range(30) for _ in range(2 + (number < inference.LEARNED))]
    table = pd.DataFrame({"x": np.arange(len(values)) % 3, "s": values})
    it = read_attacked(Tables(table, table), Knowledge(["x"], ["s"], numeric=["x"]))
    outcome = inference.outcome(it, 0, it.members, None)
    found = inference.across_groups(it, outcome, it.members, None)
    assert outcome.labels == 30
    (model,) = given
    assert sorted(set(model["labels"].tolist())) == list(range(inference.LEARNED))
    assert model["weights"].sum() == 3 * inference.LEARNED
    assert found.attack.trials == len(values)
    assert "inference across groups: s" in by_name(it)


def test_where_there_is_a_single_label_or_column_value_nothing_is_fitted(given: list) -> None:
    for table in (
        pd.DataFrame({"x": [1, 2], "s": ["a", "a"]}),
        pd.DataFrame({"x": [1, 1], "s": ["a", "b"]}),
        pd.DataFrame({"x": [None, 1], "s": ["a", "b"]}),
    ):
        it = read_attacked(Tables(table, table), Knowledge(["x"], ["s"], numeric=["x"]))
        found = inference.across_groups(it, inference.outcome(it, 0, it.members, None), it.members, None)
        assert found.attack.rate == found.baseline.rate
    assert not given


def test_two_labels_are_enough_to_fit_a_model(given: list) -> None:
    table = pd.DataFrame({"x": [0, 1, 1], "s": ["b", "a", "a"]})
    it = read_attacked(Tables(table, table), Knowledge(["x"], ["s"], numeric=["x"]))
    found = inference.across_groups(it, inference.outcome(it, 0, it.members, None), it.members, None)
    assert len(given) == 1
    assert found.attack.rate == 0  # 0 stands for the "a", and 1 for the "b"


def test_the_rarest_categories_are_a_single_one_to_a_model(given: list) -> None:
    table = pd.DataFrame({"c": [f"c{n:03}" for n in range(260) for _ in range(2 + (n < 255))]})
    table["s"] = ["a", "b"] * (len(table) // 2) + ["a"] * (len(table) % 2)
    it = read_attacked(Tables(table, table), Knowledge(["c"], ["s"]))
    inference.across_groups(it, inference.outcome(it, 0, it.members, None), it.members, None)
    told = given[0]["features"].ravel()
    # Codes start with the missing value, which is the rarest; 250 categories have a rank below 250.
    assert (told.max(), np.count_nonzero(np.bincount(told.astype(int)))) == (inference.MOST_CATEGORIES, 251)


def test_shapes_are_learned_by_halves_drawn_from_the_seed(given: list) -> None:
    shapes = np.stack([np.arange(50), np.full(50, 3), np.arange(50) % 2], axis=1).astype(float)
    release: Any = SimpleNamespace(sizes=np.arange(1, 51))
    predicted = minimality._cross_predicted(shapes, np.arange(50) / 50, release, 4)
    half = np.random.default_rng([4, 7]).permutation(50) % 2
    for side, model in enumerate(given):
        learned = half != side
        assert model["features"].tolist() == shapes[learned][:, [0, 2]].tolist()  # what is alike tells nothing
        assert model["labels"].tolist() == (np.arange(50) / 50)[learned].tolist()
        assert model["weights"].tolist() == release.sizes[learned].tolist()
        settings = {name: model[name] for name in ("max_iter", "min_samples_leaf", "early_stopping", "random_state")}
        assert settings == {"max_iter": 30, "min_samples_leaf": 10, "early_stopping": False, "random_state": 4}
    assert predicted.tolist() == list(range(50))  # each half is asked of the model of the other


def test_a_shape_is_the_size_the_withheld_cells_and_the_widths() -> None:
    table = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 2, 3, 4]})
    released = pd.DataFrame({"x": ["*", "*", "[3, 4]", "[3, 4]"], "y": ["*", "*", "2", "2"]})
    it = read_attacked(Tables(released, table), Knowledge(["x", "y"], numeric=["x", "y"]))
    assert sorted(minimality._shapes(it.release).tolist()) == [[2, 0, 0.5, 0.25], [2, 2, 1, 1]]


def test_a_missing_value_is_no_rare_category_unless_it_is_an_answer() -> None:
    """Where fewer people lacked a value than had the rarest one, those without were named in place of the rare."""
    domain = Domain.learn("c", False, [pd.Series(["a", "b"])])
    codes = np.array([0] * 5 + [1] * 85 + [2] * 10)
    assert np.flatnonzero(inference.rare_codes(domain, codes)).tolist() == [2]
    assert np.flatnonzero(inference.rare_codes(domain, codes, ["c"])).tolist() == [0]
    assert np.flatnonzero(inference.rare_codes(domain, np.zeros(9, dtype=np.int64))).tolist() == [0]
