"""What is wrong in a spec is told in the words of somebody who writes one, at its place and once."""

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.sentences import sentences
from anon_pipeline_tests.differential_privacy import synthetic_people
from anon_pipeline_tests.end_to_end import harness

MODELS = "'gradient_boosting', 'random_forest', 'linear' or 'decision_tree'"
ROLES = "'identifier', 'quasi_identifier', 'sensitive', 'insensitive' or 'exclude'"


def told(content: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as refused:
        ReleaseSpec.model_validate(content)
    return sentences(refused.value)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"suppression": 0.1}, "suppression: must be a group of keys, as in {limit: ...}"),
        ({"source": "people.csv"}, "source: must be a group of keys, as in {path: ...}"),
        ({"audit": "no"}, "audit: must be a group of keys, as in {"),
        ({"schedule": 3}, "schedule: must be a text"),
        ({"audit": {"people": "many"}}, "audit.people: must be a whole number"),
        ({"grouping": {"refine": 1.5}}, "grouping.refine: must be a whole number"),
        ({"utility": {"models": "linear"}}, "utility.models: must be a list, as in [a, b]"),
        ({"recode": {"form": "ranges"}}, "recode.form: must be 'value' or 'range'"),
        ({"privacy": {"k_anonymity": {"k": 1}}}, "privacy: k_anonymity.k: must be greater than or equal to 2"),
        ({"privacy": {"k_anonymity": 10}}, "privacy: k_anonymity: must be a group of keys, as in {k: ...}"),
        # Where several kinds of value may stand, the kind that is written there, or else all of them.
        ({"privacy": {"k_anonymity": {"k": 5}, "l_diversity": {"column": "ill", "l": "x"}}},
         "privacy: l_diversity.l: must be a number"),
        ({"guide": {"model": "xgboost"}}, f"guide.model: must be {MODELS} or a group of keys, as in {{import: ...}}"),
        ({"guide": {"model": {"import": 3}}}, "guide.model.import: must be a text"),
        ({"guide": {"model": {"mlflow": 3}}}, "guide.model.mlflow: must be a text"),
        ({"guide": {"model": {"imports": "a:b"}}}, "guide.model.import: is missing"),
    ],
)  # fmt: skip
def test_a_value_of_another_kind(part: dict[str, Any], sentence: str) -> None:
    assert told(harness.policy() | part)[0].startswith(sentence)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"unit": "person"}, ["unit: must be 'row' or a group of keys, as in {person: ...}"]),
        ({"unit": {"person": "id", "rows": 3}}, ["unit.groups: is missing"]),
        ({"size": {"public": "many", "why": "the register"}}, ["size.public: must be a whole number"]),
        ({"size": {"public": 3}}, ["size.why: is missing"]),
        ({"size": 3}, ["size: must be 'noisy' or a group of keys, as in {public: ...}"]),
    ],
)
def test_of_several_kinds_the_one_that_is_written(part: dict[str, Any], expected: list[str]) -> None:
    content = synthetic_people.content()
    content["differential_privacy"] |= part
    assert told(content) == [f"differential_privacy.{sentence}" for sentence in expected]


def test_names_of_columns_are_no_kinds_of_value() -> None:
    """A column may be called as pydantic calls a kind, or as a class is called here."""
    names = ["int", "date", "Source", "Age"]
    found = told(harness.policy() | {"columns": {name: {"role": "quasi"} for name in names}})
    assert found == [f"columns.{name}.role: must be {ROLES}" for name in names]


def test_models_of_libraries_are_no_parts_of_a_spec() -> None:
    class Source(BaseModel):
        uri: str

    class User(BaseModel):
        name: str

    assert told(harness.policy() | {"source": "people.csv"}) == ["source: must be a group of keys, as in {path: ...}"]
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(dict[str, User]).validate_python({"User": 1, "Source": 2})
    assert [sentence.partition(":")[0] for sentence in sentences(refused.value)] == ["User", "Source"]
