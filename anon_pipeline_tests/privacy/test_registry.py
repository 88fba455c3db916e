"""The names a spec may use, and the forms it may write them in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anon_pipeline.privacy.base import PrivacyModel, privacy_models
from anon_pipeline.spec import PRIVACY_MODELS, load_privacy_model
from anon_pipeline_tests.privacy.tables import classes_of

SPEC_FORMS: dict[str, dict[str, Any]] = {
    "k_anonymity": {"k": 10},
    "l_diversity": {"column": "income", "l": 2, "kind": "distinct"},
    "alpha_k_anonymity": {"column": "income", "alpha": 0.8, "k": 10},
    "t_closeness": {"column": "capital_gain", "t": 0.3},
    "beta_likeness": {"column": "income", "beta": 2, "kind": "enhanced"},
    "delta_disclosure": {"column": "income", "delta": 1.5},
    "k_map": {"k": 10, "population": "population.parquet"},
    "delta_presence": {"min": 0, "max": 0.5, "population": "population.parquet"},
}


@pytest.mark.parametrize("name", PRIVACY_MODELS)
def test_a_registered_name_loads_the_model_of_that_name(name: str) -> None:
    model = load_privacy_model(name)
    assert issubclass(model, PrivacyModel)
    assert model.name == name


@pytest.mark.parametrize("name", PRIVACY_MODELS)
def test_the_written_form_is_read_and_survives_a_manifest(name: str) -> None:
    model = load_privacy_model(name).model_validate(SPEC_FORMS[name])
    again = load_privacy_model(name).model_validate(json.loads(json.dumps(model.model_dump(mode="json"))))
    assert again == model


@pytest.mark.parametrize("name", PRIVACY_MODELS)
def test_a_demand_is_a_sentence_with_its_numbers_and_no_epsilon(name: str) -> None:
    model = load_privacy_model(name).model_validate(SPEC_FORMS[name])
    assert isinstance(model, PrivacyModel)
    words = model.demand()
    assert "epsilon" not in words
    assert not words.endswith(".")
    numbers = [(key, value) for key, value in SPEC_FORMS[name].items() if isinstance(value, int | float) and key != "c"]
    shares = {"alpha", "min", "max"}  # of people, which are told in percent
    told = [f"{value:.0%}".replace("%", " %") if key in shares else f"{value:g}" for key, value in numbers]
    assert all(number in words for number in told)


@pytest.mark.parametrize("name", PRIVACY_MODELS)
def test_an_unknown_parameter_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="extra"):
        load_privacy_model(name).model_validate({**SPEC_FORMS[name], "epsilon": 1})


def test_a_registered_class_that_is_no_privacy_model_is_never_passed_over() -> None:
    class Careless:
        name = "careless"

    model = load_privacy_model("k_anonymity").model_validate({"k": 2})
    with pytest.raises(TypeError, match="no PrivacyModel"):
        privacy_models([model, Careless()])  # type: ignore[list-item]
    assert privacy_models([model]) == [model]


def test_values_and_holds_have_one_entry_per_class() -> None:
    classes = classes_of([[1, 2], [3, 4], [5, 6]])
    for name, form in SPEC_FORMS.items():
        if "column" in form:
            model = load_privacy_model(name).model_validate({**form, "column": "illness"})
            assert isinstance(model, PrivacyModel)
            assert model.values(classes).shape == model.holds(classes).shape == (3,)


@pytest.mark.parametrize(
    ("name", "asked", "words"),
    [
        ("k_anonymity", {"k": 7}, "every class has at least 7 people"),
        ("l_diversity", {"column": "x", "l": 3}, "every class has at least 3 distinct values of x"),
        (
            "l_diversity",
            {"column": "x", "l": 3, "bins": [5]},
            "every class has at least 3 distinct values of x in bins",
        ),
        (
            "l_diversity",
            {"column": "x", "l": 2.5, "kind": "entropy"},
            "the exponential of the entropy of x is at least 2.5 in every class",
        ),
        (
            "l_diversity",
            {"column": "x", "l": 3, "c": 1.5, "kind": "recursive"},
            "in every class the most frequent value of x has fewer people than 1.5 times all values from the 3. most "
            "frequent on",
        ),
        (
            "alpha_k_anonymity",
            {"column": "x", "alpha": 0.25, "k": 7},
            "every class has at least 7 people and no value of x has a share above 25 % in it",
        ),
        (
            "t_closeness",
            {"column": "x", "t": 0.25},
            "the earth mover's distance of x to the whole table is at most 0.25 in every class",
        ),
        (
            "t_closeness",
            {"column": "x", "t": 0.25, "distance": "equal"},
            "the equal earth mover's distance of x to the whole table is at most 0.25 in every class",
        ),
        (
            "t_closeness",
            {"column": "x", "t": 0.25, "hierarchy": [["a"]]},
            "the hierarchical earth mover's distance of x to the whole table is at most 0.25 in every class",
        ),
        (
            "beta_likeness",
            {"column": "x", "beta": 1.5},
            "no value of x gains more than 1.5, relative to its share in the table, in any class",
        ),
        (
            "beta_likeness",
            {"column": "x", "beta": 1.5, "kind": "enhanced"},
            "no value of x gains more than min(1.5, -ln of its share in the table), relative to its share in the "
            "table, in any class",
        ),
        (
            "delta_disclosure",
            {"column": "x", "delta": 1.5},
            "for every value of the table, the logarithm of the ratio of the share of x in the class to that in the "
            "table lies strictly between -1.5 and 1.5",
        ),
        (
            "delta_disclosure",
            {"column": "x", "delta": 1.5, "kind": "observed"},
            "for every value observed in the class, the logarithm of the ratio of the share of x in the class to that "
            "in the table lies strictly between -1.5 and 1.5",
        ),
        ("k_map", {"population": "p", "k": 7}, "every class matches at least 7 people of the population"),
        (
            "delta_presence",
            {"population": "p", "min": 0.25, "max": 0.75},
            "every person of the population is in the table with a chance from 25 % to 75 %",
        ),
    ],
)
def test_a_demand_of_each_kind_says_what_is_held(name: str, asked: dict[str, Any], words: str) -> None:
    model = load_privacy_model(name).model_validate(asked)
    assert isinstance(model, PrivacyModel)
    assert model.demand() == words
