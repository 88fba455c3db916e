"""Both transformers keep scikit-learn's manners: its own checks, parameters checked before work, names, frames out."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_array, check_is_fitted

from anon_pipeline.anonymize.anonymizer import CONSTRAINTS, AnonymizerTree
from anon_pipeline.anonymize.guidance import guidance_of
from anon_pipeline.anonymize.hierarchy import Prefixes
from anon_pipeline.anonymize.release_space import ReleaseSpace
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline_tests.people import KEY

PEOPLE = pd.DataFrame(
    {"age": [23, 25, 24, 29, 41, 44, 47, 43, 61, 67, 64, 66], "city": ["Ulm"] * 6 + ["Bonn"] * 5 + ["Rome"]}
)
ILL = pd.DataFrame({"ill": ["no", "yes"] * 6})


def framed(X: Any) -> pd.DataFrame:
    """An array as the frame that these transformers ask for."""
    if isinstance(X, pd.DataFrame):
        return X
    array = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=0)
    return pd.DataFrame(array, columns=[f"x{number}" for number in range(array.shape[1])])


class OfArrays(AnonymizerTree):
    """The tree behind names for the columns of arrays, so that scikit-learn's checks of arrays look at it."""

    def fit(self, X: Any, y: Any = None, sensitive: Any = None) -> OfArrays:
        return super().fit(framed(X), y, sensitive)

    def fit_transform(self, X: Any, y: Any = None, sensitive: Any = None) -> Any:
        return super().fit_transform(framed(X), y, sensitive)

    def transform(self, X: Any) -> Any:
        return super().transform(framed(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


#: What scikit-learn asks and the tree does otherwise, and why.
EXPECTED = {
    "check_n_features_in_after_fitting": "columns are matched by name, so the sentence names those that are absent",
    "check_dtype_object": "numbers stored as objects are refused, since a table of objects may mix types",
    "check_fit2d_1sample": "the sentence says how many rows there are and that k is more",
}


@pytest.mark.long
def test_scikit_learns_own_checks_hold() -> None:
    checked = check_estimator(OfArrays(k=2), expected_failed_checks=EXPECTED, on_skip=None)
    failed = {result["check_name"] for result in checked if result["status"] == "xfail"}
    assert failed == set(EXPECTED)  # what has come to hold leaves the list
    assert sum(result["status"] == "passed" for result in checked) > 35


@pytest.mark.parametrize("transformer", [AnonymizerTree(k=4), ReleaseSpace(AnonymizerTree(k=4).fit(PEOPLE).classes_)])
def test_the_tags_say_that_frames_are_taken_and_arrays_are_refused(transformer: Any) -> None:
    tags = get_tags(transformer)
    asked = tags.input_tags
    assert not asked.two_d_array and asked.categorical and asked.string and asked.allow_nan
    assert not tags.target_tags.required
    with pytest.raises(ValueError, match="the table must be a DataFrame of pandas or polars"):
        transformer.fit(PEOPLE[["age"]].to_numpy())


WRONG: list[tuple[str, Any, str]] = [
    ("k", 1, "k must be a whole number of at least 2"),
    ("k", 2.0, "k must be a whole number"),
    ("k", True, "k must be a whole number"),
    ("spread", -0.1, "spread must be a finite number of at least 0"),
    ("spread", math.nan, "spread must be a finite number"),
    ("spread", "1", "spread must be a finite number"),
    ("orders", "neither", "orders must be guidance or both or each"),
    ("refine", -1, "refine must be a whole number of at least 0"),
    ("grids", {"age": math.inf}, "grids must be a mapping from names of columns to a finite number above 0"),
    ("grids", {"age": 0}, "grids must be a mapping"),
    ("grids", {"age": True}, "grids must be a mapping"),
    ("grids", {0: 1}, "grids must be a mapping"),
    ("grids", [1], "grids must be a mapping"),
    ("grids", {"nope": 1}, "grids names nope, no quasi-identifier"),
    ("grids", {"city": 1}, "grids names city, no column of numbers or dates"),
    ("levels", {"city": "Ulm"}, "levels must be a mapping from names of columns to a list of different texts"),
    ("levels", {"city": ["Ulm", "Ulm"]}, "levels must be a mapping"),
    ("levels", {"nope": ["a", "b"]}, "nope: has levels or a hierarchy, and is no quasi-identifier"),
    ("hierarchies", {"city": "calendar"}, "hierarchies must be a mapping from names of columns to a hierarchy"),
    ("hierarchies", {"city": Prefixes}, "hierarchies must be a mapping"),
    ("hierarchies", {"nope": Prefixes((1,))}, "nope: has levels or a hierarchy, and is no quasi-identifier"),
    ("demands", "x", "demands must be a list of privacy models"),
    ("demands", [LDiversity], "demands must be a list of privacy models"),
    ("demands", LDiversity(column="ill", l=2), "demands must be a list of privacy models"),
    ("key", b"secret", "key must be a Key, or None"),
    ("answers", "ill", "answers must be a list of names of sensitive columns"),
    ("answers", ["nope"], "answers names nope, no sensitive column"),
    ("suppression", 1, "suppression must be a finite number of at least 0 and below 1"),
    ("form", "both", "form must be value or range"),
    ("random_state", None, "random_state must be a whole number of at least 0 and at most 4294967295"),
    ("random_state", 2**32, "random_state must be a whole number"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG, ids=[f"{name}={value}" for name, value, _ in WRONG])
def test_a_wrong_parameter_is_refused_in_a_sentence_before_work(name: str, value: Any, sentence: str) -> None:
    tree = AnonymizerTree(k=4).set_params(**{name: value})  # never in __init__ or set_params
    with pytest.raises(InputError, match=sentence):
        tree.fit(PEOPLE, None, ILL)
    assert not hasattr(tree, "partition_")


def test_every_parameter_has_a_constraint_that_its_default_meets() -> None:
    parameters = AnonymizerTree().get_params(deep=False)
    assert set(CONSTRAINTS) == set(parameters) == {name for name, _, _ in WRONG}
    assert all(constraint.holds(parameters[name]) for name, constraint in CONSTRAINTS.items())


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": np.int64(4), "spread": np.float32(0.5), "grids": {"age": np.int64(5)}, "refine": np.int32(9)},
        {"levels": {"city": ("Bonn", "Rome", "Ulm")}, "answers": frozenset({"ill"}), "suppression": 0},
        {"levels": MappingProxyType({"city": np.array(["Bonn", "Rome", "Ulm"])}), "random_state": np.uint32(7)},
        {"demands": (LDiversity(column="ill", l=2),), "key": KEY, "hierarchies": {"city": Prefixes((1,))}},
    ],
)
def test_what_a_caller_may_reasonably_give_is_taken(parameters: dict[str, Any], tmp_path: Path) -> None:
    """A search over k gives numbers of numpy, of which a fitted tree could not be saved."""
    tree = AnonymizerTree(**{"k": 4} | parameters).fit(PEOPLE, None, ILL)
    shown = tree.transform(PEOPLE)
    assert len(shown) == len(PEOPLE)
    tree.save(tmp_path / "tree.json")
    again = AnonymizerTree.load(tmp_path / "tree.json")
    pd.testing.assert_frame_equal(again.transform(PEOPLE), shown)
    again.fit(PEOPLE)  # its parameters are such as may be given


@pytest.mark.parametrize("classes", [None, [1], pd.DataFrame(), pd.DataFrame({"age": [1]})])
def test_a_space_refuses_what_is_no_class_table_when_it_is_used(classes: Any) -> None:
    space = ReleaseSpace(classes)
    for use in (space.fit, space.apply, space.transform):
        with pytest.raises(InputError, match=r"^classes must be "):
            use(PEOPLE)


def test_names_of_the_columns_that_come_out() -> None:
    tree = AnonymizerTree(k=4)
    with pytest.raises(NotFittedError):
        tree.get_feature_names_out()
    tree.fit(PEOPLE)
    space = ReleaseSpace(tree.classes_)
    with pytest.raises(NotFittedError):
        space.get_feature_names_out()
    for transformer in (tree, space.fit(PEOPLE)):
        assert transformer.n_features_in_ == 2
        assert transformer.get_feature_names_out().tolist() == transformer.feature_names_in_.tolist() == ["age", "city"]
        assert transformer.get_feature_names_out(["age", "city"]).tolist() == list(transformer.transform(PEOPLE))
        with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
            transformer.get_feature_names_out(["city", "age"])


def test_set_output_keeps_the_rows_that_are_left_and_their_index() -> None:
    ages, cities = [20, 21, 22, 23, 24, 25, 26, 20, 95, 96, 97], ["Ulm", "Bonn"] * 4 + ["Oslo"] * 3
    frame = pd.DataFrame({"age": ages, "city": cities}, index=range(3, 80, 7))
    demands = [LDiversity(column="ill", l=2)]
    sick = pd.DataFrame({"ill": ["no", "yes"] * 4 + ["no"] * 3})  # far from all others, and nobody ill among them
    tree = AnonymizerTree(k=2, demands=demands, key=KEY, suppression=0.9).set_output(transform="pandas")
    shown = tree.fit_transform(frame, None, sick)
    assert len(shown) < len(frame) and shown.index.isin(frame.index).all() and list(shown) == ["age", "city"]
    pd.testing.assert_frame_equal(
        shown, AnonymizerTree(k=2, demands=demands, key=KEY, suppression=0.9).fit(frame, None, sick).transform(frame)
    )


def test_the_information_lost_is_told_in_pythons_numbers() -> None:
    lost = AnonymizerTree(k=3).fit(PEOPLE, PEOPLE["age"]).information_loss_
    assert "np." not in repr(lost) and lost.keys() == {"age", "city"}


def test_in_a_pipeline_and_beside_other_columns() -> None:
    tree = AnonymizerTree(k=4).fit(PEOPLE)
    both = make_pipeline(AnonymizerTree(k=4), ReleaseSpace(tree.classes_)).set_output(transform="pandas")
    assert list(both.fit(PEOPLE).transform(PEOPLE)) == both.get_feature_names_out().tolist() == ["age", "city"]
    beside = ColumnTransformer([("people", AnonymizerTree(k=4), ["age"])], remainder="passthrough")
    beside.set_output(transform="pandas")
    assert list(beside.fit_transform(PEOPLE)) == ["people__age", "remainder__city"]


@pytest.mark.parametrize(
    "guidance",
    [
        pd.DataFrame({"job": ["a", "b"] * 6, "hours": range(12)}),  # an array of objects
        [["a", "x"], ["b", "y"]] * 6,
        np.arange(12).astype(object),
        np.array([["a"], ["b"]] * 6),
    ],
)
def test_labels_and_numbers_of_several_targets_guide(guidance: Any) -> None:
    tree = AnonymizerTree(k=3).fit(PEOPLE, guidance)
    assert tree.sizes_.min() >= 3 and tree.sizes_.sum() == 12


def test_numbers_guide_as_numbers_also_where_they_are_stored_as_objects() -> None:
    ages = PEOPLE["age"].to_numpy()
    number, stored = (AnonymizerTree(k=3).fit(PEOPLE, given) for given in (ages, ages.astype(object)))
    assert number.apply(PEOPLE).tolist() == stored.apply(PEOPLE).tolist()
    one, two = (guidance_of(given, 12) for given in (ages, pd.DataFrame({"age": ages, "city": PEOPLE["city"]})))
    assert one[:, 0].tolist() == two[:, 0].tolist() and two[:, 1:].sum(axis=1).tolist() == [1] * 12


@pytest.mark.parametrize(
    ("guidance", "sentence"),
    [
        (np.zeros((1001, 0)), "the guidance has no columns"),
        ([f"{number}" for number in range(1001)], "the guidance has 1001 different labels, more than 1000"),
        (np.array([np.nan, "a", *[1.0] * 999], dtype=object)[[0, *range(2, 1001), 2]], "infinity or missing values"),
    ],
)
def test_guidance_that_cannot_guide_is_refused_in_a_sentence(guidance: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        AnonymizerTree(k=3).fit(pd.DataFrame({"age": range(1001)}), guidance)


@pytest.mark.parametrize("form", ["value", "range"])
def test_a_batch_of_no_rows_gives_no_rows(form: str) -> None:
    draw = np.random.default_rng(0)
    people = pd.DataFrame({"age": draw.integers(18, 90, 300), "city": draw.choice(["Ulm", "Bonn"], 300)})
    tree = AnonymizerTree(k=3, form=form).fit(people, people["age"])
    assert len(tree.partition_.elsewhere)  # cells changed classes after the tree
    assert tree.apply(people[:0]).tolist() == []
    shown = tree.transform(people[:0])
    assert shown.shape == (0, 2) and shown.columns.tolist() == ["age", "city"]
    if form == "value":
        assert shown.dtypes.tolist() == people.dtypes.tolist()


def test_a_space_needs_no_fit_and_follows_its_parameter() -> None:
    tree = AnonymizerTree(k=4).fit(PEOPLE)
    space = ReleaseSpace(tree.classes_)
    check_is_fitted(space)
    first = space.transform(PEOPLE)
    pd.testing.assert_frame_equal(first, clone(space).fit_transform(PEOPLE))
    pd.testing.assert_frame_equal(first, pickle.loads(pickle.dumps(space)).transform(PEOPLE))
    coarse = AnonymizerTree(k=12).fit(PEOPLE).classes_
    assert space.set_params(classes=coarse).transform(PEOPLE)["age"].nunique() == 1
