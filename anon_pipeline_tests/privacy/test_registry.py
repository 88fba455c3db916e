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
