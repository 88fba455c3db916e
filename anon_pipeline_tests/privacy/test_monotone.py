"""Merging keeps what a monotone model demands: the promise that enforcement by merging rests on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from anon_pipeline.privacy.alpha_k import AlphaKAnonymity
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram
from anon_pipeline.spec import PRIVACY_MODELS, load_privacy_model
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.privacy.tables import COLUMN, classes_of, merged, tables

fractions = st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 1])
hierarchy = {"all": {"low": {"lowest": [0, 1], "lower": [2]}, "high": [3, 4, 5]}}
column = st.just(COLUMN)
population = st.just("people.csv")
#: Every monotone model and kind, with the parameters to try.
PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "k": ("k_anonymity", {"k": st.integers(2, 30)}),
    "distinct l": ("l_diversity", {"column": column, "l": st.integers(2, 5)}),
    "binned l": ("l_diversity", {"column": column, "l": st.integers(2, 3), "bins": st.just([1, 3])}),
    "entropy l": (
        "l_diversity",
        {"column": column, "kind": st.just("entropy"), "l": st.sampled_from([1.2, 1.5, 2, 3])},
    ),
    "recursive": (
        "l_diversity",
        {"column": column, "kind": st.just("recursive"), "l": st.integers(2, 4), "c": st.sampled_from([0.5, 1, 2, 5])},
    ),
    "alpha, k": ("alpha_k_anonymity", {"column": column, "alpha": fractions, "k": st.integers(2, 30)}),
    "t": ("t_closeness", {"column": column, "t": fractions, "distance": st.sampled_from(["equal", "ordered"])}),
    "t in a hierarchy": ("t_closeness", {"column": column, "t": fractions, "hierarchy": st.just(hierarchy)}),
    "beta": ("beta_likeness", {"column": column, "beta": st.sampled_from([0.2, 0.5, 1, 3])}),
    "enhanced": ("beta_likeness", {"column": column, "beta": st.just(3), "kind": st.just("enhanced")}),
    "delta": ("delta_disclosure", {"column": column, "delta": st.sampled_from([0.5, 1, 2])}),
    "k-map": ("k_map", {"k": st.integers(2, 30), "population": population}),
    "presence": (
        "delta_presence",
        {"min": st.sampled_from([0, 0.1, 0.25, 0.5]), "max": st.sampled_from([0.5, 0.7, 1]), "population": population},
    ),
}


def badness(model: PrivacyModel, classes: ClassStatistics) -> float:
    """The measured value so that more is worse; for two limits, how far outside or near them."""
    value = model.measured(classes)
    if model.name == "delta_presence":
        least, most = model.min, model.max  # type: ignore[attr-defined]
        return max(least - value, value - most) if least > 0 else value
    return -value if model.larger_is_safer else value


@pytest.mark.parametrize("case", PARAMETERS)
@settings(max_examples=times(60))
@given(data=st.data())
def test_merging_keeps_holding_classes_and_never_worsens_the_worst(case: str, data: st.DataObject) -> None:
    name, parameters = PARAMETERS[case]
    model = load_privacy_model(name).model_validate({key: data.draw(one) for key, one in parameters.items()})
    assert isinstance(model, PrivacyModel)
    assert model.monotone
    rows = data.draw(tables(least_classes=2))
    counted = classes_of(rows, ordered=True)
    matching = [int(size) + data.draw(st.integers(0, 2 * int(size))) for size in counted.sizes]
    classes = ClassStatistics(counted.sizes, counted.sensitive, np.array(matching), data.draw(st.integers(0, 1)))
    a, b = data.draw(st.sampled_from([(a, b) for a in range(len(rows)) for b in range(a)]))
    before, after = model.holds(classes), merged(classes, a, b)
    if before[a] and before[b]:
        assert model.holds(after)[0]
    assert badness(model, after) <= badness(model, classes) + 1e-12


@pytest.mark.parametrize("case", PARAMETERS)
@settings(max_examples=times(20))
@given(data=st.data())
def test_hypothetical_classes_are_held_against_the_whole_table(case: str, data: st.DataObject) -> None:
    # Enforcement asks what a union would come to, without building the grouping that has it.
    name, parameters = PARAMETERS[case]
    model = load_privacy_model(name).model_validate({key: data.draw(one) for key, one in parameters.items()})
    assert isinstance(model, PrivacyModel)
    counted = classes_of(data.draw(tables(least_classes=3)), ordered=True)
    classes = ClassStatistics(counted.sizes, counted.sensitive, counted.sizes * 2, data.draw(st.integers(0, 1)))
    union = sparse.csr_array(np.array([[1, 1, *[0] * (len(classes.sizes) - 2)]]))
    alone, among_all = classes.pool(union), merged(classes, 0, 1)
    assert model.holds(alone)[0] == model.holds(among_all)[0]
    assert model.values(alone)[0] == model.values(among_all)[0]
    if hasattr(model, "column"):
        assert model.impossible(alone) == model.impossible(among_all)


@pytest.mark.parametrize("case", PARAMETERS)
@settings(max_examples=times(20))
@given(data=st.data())
def test_suppressed_people_count_neither_in_the_table_nor_for_the_classes_that_stay(
    case: str, data: st.DataObject
) -> None:
    name, parameters = PARAMETERS[case]
    model = load_privacy_model(name).model_validate({key: data.draw(one) for key, one in parameters.items()})
    assert isinstance(model, PrivacyModel)
    counted = classes_of(data.draw(tables(least_classes=3)), ordered=True)
    classes = ClassStatistics(counted.sizes, counted.sensitive, counted.sizes * 2, data.draw(st.integers(0, 1)))
    # Class 0 is left out, and with it the values that only its people have.
    marked = classes.without(np.arange(len(classes.sizes)) == 0)
    gone = {column: Histogram(h.values, h.counts[1:], h.ordered) for column, h in classes.sensitive.items()}
    # The people of the population who match class 0 match no released class any more.
    outside = (classes.population_unmatched or 0) + 2 * int(classes.sizes[0])
    stays = ClassStatistics(classes.sizes[1:], gone, classes.sizes[1:] * 2, outside)
    assert model.holds(marked)[1:].tolist() == model.holds(stays).tolist()
    assert model.values(marked)[1:].tolist() == model.values(stays).tolist()


@pytest.mark.parametrize(
    ("name", "parameters", "value"),
    [
        ("t_closeness", {"t": 0.99}, 1),
        ("t_closeness", {"t": 0.99, "distance": "equal"}, 1),
        ("t_closeness", {"t": 0.99, "hierarchy": hierarchy}, 1),
        ("beta_likeness", {"beta": 1e9}, np.inf),
        ("beta_likeness", {"beta": 1e9, "kind": "enhanced"}, np.inf),
        ("delta_disclosure", {"delta": 1e9}, np.inf),
        ("delta_disclosure", {"delta": 1e9, "kind": "observed"}, np.inf),
    ],
)
def test_a_value_that_the_table_lacks_is_never_like_the_table(name: str, parameters: Any, value: float) -> None:
    model = load_privacy_model(name).model_validate({"column": COLUMN, **parameters})
    assert isinstance(model, PrivacyModel)
    marked = classes_of([[1, 1, 1], [1, 1, 0], [1, 1, 0]], ordered=True).without(np.array([True, False, False]))
    assert model.holds(marked).tolist() == [False, True, True]
    assert model.values(marked).tolist()[0] == value


def test_people_with_such_a_value_are_counted_within_their_class() -> None:
    marked = classes_of([[1, 0, 3], [2, 2, 0]]).without(np.array([True, False]))
    assert LDiversity(column=COLUMN, l=2).values(marked).tolist() == [2, 2]
    assert LDiversity(column=COLUMN, l=2, bins=(1, 2)).values(
        classes_of([[1, 0, 3], [2, 2, 0]], ordered=True).without(np.array([True, False]))
    ).tolist() == [2, 2]
    assert AlphaKAnonymity(column=COLUMN, alpha=0.5, k=2).values(marked).tolist() == [0.75, 0.5]


def test_every_model_is_tried() -> None:
    assert {name for name, _ in PARAMETERS.values()} == set(PRIVACY_MODELS)
