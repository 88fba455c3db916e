"""The catalog cannot drift from the models, and a plan refuses what makes no sense before any work."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import anon_pipeline.masking
from anon_pipeline.errors import InputError
from anon_pipeline.keys import KeySource, Secrets
from anon_pipeline.masking.base import OneColumnTechnique, TableTechnique, Technique
from anon_pipeline.masking.catalog import TECHNIQUES, catalog, read_step
from anon_pipeline.masking.execution import PERTURBING
from anon_pipeline.masking.plan import plan_steps
from anon_pipeline.masking.step_keys import secrets_of
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline_tests.masking.tables import CATEGORICAL, COLUMN_STEPS, DATE, NUMERIC, TABLE_STEPS, step


def models() -> set[type[Technique]]:
    """All techniques of the package that can be instantiated."""
    found = set()
    for module in pkgutil.iter_modules(anon_pipeline.masking.__path__):
        for value in vars(importlib.import_module(f"anon_pipeline.masking.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Technique) and not inspect.isabstract(value):
                found.add(value)
    return found - {Technique, OneColumnTechnique, TableTechnique}


def test_every_technique_is_in_the_catalog_under_its_name() -> None:
    assert models() == set(TECHNIQUES.values())
    for name, model in TECHNIQUES.items():
        assert model.model_fields["technique"].default == name
        assert model.model_fields["technique"].annotation.__args__ == (name,)  # type: ignore[union-attr]
    assert set(TECHNIQUES) >= PERTURBING


def test_the_catalog_says_all_there_is_to_say() -> None:
    rows = {row.technique: row for row in catalog()}
    assert list(rows) == list(TECHNIQUES)
    for row in rows.values():
        assert row.meaning and row.use_when and row.source.splitlines()[0].endswith((".", ":")), row.technique
        assert row.guarantee in ("none", "k", "local DP")
        assert any(char.isdigit() for char in row.source), f"{row.technique} names no source"
        for parameter in row.parameters:
            assert parameter.meaning and parameter.type and parameter.default, (row.technique, parameter.name)
            assert "None" not in parameter.type and "Annotated" not in parameter.type
    assert [(one.name, one.type, one.default) for one in rows["round"].parameters] == [
        ("to", "number > 0 and <= 1e15", "required"),
        ("how", "nearest | down | up", "nearest"),
    ]
    defaults = {one.name: one.default for one in rows["noise"].parameters}
    assert (defaults["share"], defaults["bounds"], defaults["distribution"]) == ("none", "none", "gaussian")
    assert rows["round"].stands == "column" and rows["round"].runs == "engine" and rows["round"].on == ("numeric",)
    assert rows["mdav"].stands == "table" and rows["mdav"].runs == "memory" and rows["mdav"].guarantee == "k"


#: Of each kind of type and of default: what the catalog says.
SAID = [
    ("suppress_cells", "values", "list of text | true | false | number", "none"),
    ("local_suppression", "importance", "mapping of text to number", "none"),
    ("redact", "missing", "true | false", "false"),
    ("mask", "first", "whole number >= 0 and <= 10000", "0"),
    ("pseudonymize", "key", "{environment, file}", "{'environment': 'ANON_PIPELINE_KEY'}"),
    ("bin", "width", "number > 0 and <= 1e15", "none"),
    ("bin", "start", "number >= -1e15 and <= 1e15", "0"),
    ("bin", "edges", "list of number", "none"),
    ("top_bottom_code", "top", "number | datetime | date", "none"),
    ("hierarchy", "groups", "mapping of text to list of text | number | true | false", "none"),
    ("noise", "bounds", "[number, number]", "none"),
    ("noise", "deviation", "number > 0", "none"),
    ("pram", "matrix", "mapping of text to mapping of text to number", "none"),
    ("aggregate", "dominance", "{n, share, p_percent}", "{'n': 1, 'share': 0.85, 'p_percent': 20}"),
    ("aggregate", "threshold", "whole number >= 2 and <= 2e9", "10"),
    ("synthesize", "given", "list of text", "none"),
    ("grid_cell", "metres", "number >= 1 and <= 1e6", "required"),
    ("population_donut", "inner_share", "number >= 0 and < 1", "0.1"),
]


@pytest.mark.parametrize(("technique", "parameter", "kind", "default"), SAID)
def test_types_and_defaults_are_told_as_people_read_them(
    technique: str, parameter: str, kind: str, default: str
) -> None:
    said = {row.technique: {one.name: one for one in row.parameters} for row in catalog()}[technique][parameter]
    assert (said.type, said.default) == (kind, default)


def test_steps_are_read_as_a_spec_writes_them_and_written_back() -> None:
    for name, (_, parameters) in COLUMN_STEPS.items():
        technique = step(name, **parameters)
        assert read_step(technique.model_dump(mode="json", by_alias=True)) == technique
        assert read_step(technique) is technique
    for name, parameters in TABLE_STEPS.items():
        assert read_step(step(name, **parameters).model_dump(mode="json")) == step(name, **parameters)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("round", "is a mapping with a technique"),
        ({"to": 10}, "is a mapping with a technique"),
        ({"technique": "rond", "to": 10}, "'rond' is no technique; did you mean round? Known are aggregate, bin"),
        ({"technique": "zzz"}, "'zzz' is no technique; known are"),
        ({"technique": ["round"]}, "is no technique"),
        ({"technique": "round"}, "Field required"),
        ({"technique": "round", "to": 10, "too": 1}, "Extra inputs"),
        ({"technique": "round", "to": 0}, "greater than 0"),
        ({"technique": "round", "to": float("nan")}, "finite number"),
        (
            {"technique": "noise", "column": "age"},
            "noise works on one column; state it under columns.<name>.steps, with",
        ),
        ({"technique": "round", "columns": ["age"], "to": 10}, "columns.<name>.steps, without columns"),
        ({"technique": "redact", "columns": ["age"], "column": "age"}, "steps, without column and columns"),
        ({"technique": "mdav", "column": "age", "k": 5}, "Extra inputs"),
        ({"technique": "bin"}, "either the width of all bins or their edges"),
        ({"technique": "bin", "width": 5, "edges": [1]}, "either the width"),
        ({"technique": "bin", "edges": [3, 3]}, "must ascend"),
        ({"technique": "bin", "edges": [3], "show": "middle"}, "have no middle"),
        ({"technique": "top_bottom_code"}, "give at least one"),
        ({"technique": "top_bottom_code", "top": 3, "bottom": 3}, "must lie below top"),
        ({"technique": "top_bottom_code", "top": 3, "bottom": "2020-01-01"}, "both limits must be numbers, or both"),
        ({"technique": "quantile_code"}, "give the share of people"),
        ({"technique": "quantile_code", "top": 0.6, "bottom": 0.5}, "must leave some people"),
        ({"technique": "replace", "pattern": "("}, "is no regular expression of RE2"),
        ({"technique": "replace", "pattern": "a(?=b)"}, "can neither look around nor go back"),
        ({"technique": "replace", "pattern": r"(a)\1"}, "can neither look around nor go back"),
        ({"technique": "replace", "pattern": "a", "by": r"\0"}, r"plain text without \ and $"),
        ({"technique": "suppress_cells"}, "give at least one rule"),
        ({"technique": "suppress_cells", "pattern": "["}, "is no regular expression"),
        ({"technique": "redact", "by": ""}, "an empty text is read as missing: use suppress"),
        ({"technique": "hierarchy"}, "either groups or the file"),
        ({"technique": "hierarchy", "groups": {"a": [1], "b": ["1"]}}, "stands in two groups"),
        ({"technique": "pseudonymize", "bits": 64}, "greater than or equal to 96"),
        ({"technique": "pseudonymize", "bits": 100}, "multiple of 8"),
        ({"technique": "pseudonymize", "key": {"secret": "x"}}, "Extra inputs"),
        ({"technique": "noise"}, "give either the deviation"),
        ({"technique": "noise", "share": 1, "deviation": 1}, "give either the deviation"),
        ({"technique": "noise", "share": 1, "bounds": [2, 1]}, "the first must lie below"),
        ({"technique": "noise", "share": 1, "bounds": [1, 1]}, "the first must lie below"),
        ({"technique": "hierarchy", "groups": {"a": [1]}, "file": "a.csv"}, "either groups or the file"),
        ({"technique": "quantile_code", "top": 0.5, "bottom": 0.5}, "must leave some people"),
        ({"technique": "mdav", "columns": [], "k": 3}, "at least 1 item"),
        ({"technique": "fake", "kind": "password"}, "Input should be"),
    ],
)
def test_a_step_that_is_none_is_refused_with_a_sentence(content: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is looked at below
        read_step(content)
    assert sentence in str(refused.value)


KINDS = {"age": NUMERIC, "name": CATEGORICAL, "born": DATE, "lat": NUMERIC, "lon": NUMERIC}
ROUND, REDACT = {"technique": "round", "to": 10}, {"technique": "redact"}
PSEUDONYM, BIN = {"technique": "pseudonymize"}, {"technique": "bin", "width": 5}
DONUT = {"technique": "donut", "columns": ["lat", "lon"], "inner": 1, "outer": 2}
AGGREGATE = {"technique": "aggregate", "columns": ["name"]}
CELL = {"technique": "grid_cell", "columns": ["lat", "lon"], "metres": 9, "into": "cell"}


def refusal(columns: dict[str, list[dict[str, Any]]], table: list[dict[str, Any]] | None = None) -> str:
    with pytest.raises(InputError) as refused:
        plan_steps(
            KINDS,
            {name: [read_step(one) for one in steps] for name, steps in columns.items()},
            [read_step(one) for one in table or []],
        )
    return str(refused.value)


@pytest.mark.parametrize(
    ("columns", "table", "sentence"),
    [
        ({"nobody": [ROUND]}, [], "columns.nobody.steps: the table has no column nobody"),
        (
            {"name": [ROUND]},
            [],
            "columns.name.steps.0: round needs numbers, and the column is categorical; change its type or the "
            "technique",
        ),
        (
            {"age": [REDACT, ROUND]},
            [],
            "columns.age.steps.1: round cannot follow redact (step 0), which leaves nothing of the value to work on; "
            "put it before, or remove one of the two",
        ),
        ({"age": [PSEUDONYM, ROUND]}, [], "columns.age.steps.1: round cannot follow pseudonymize (step 0)"),
        ({"name": [PSEUDONYM, PSEUDONYM]}, [], "columns.name.steps.1: pseudonymize cannot follow pseudonymize"),
        (
            {"age": [BIN, ROUND]},
            [],
            "columns.age.steps.1: round needs numbers, and bin (step 0) makes texts; put round before it",
        ),
        ({"born": [ROUND]}, [], "round needs numbers, and the column is date"),
        ({"age": [{"technique": "truncate_date", "to": "year"}]}, [], "truncate_date needs dates"),
        ({"lat": [DONUT]}, [], "columns.lat.steps.0: donut works on several columns together; state it in the table's"),
        ({}, [ROUND], "steps.0: round works on one column; state it under columns.<name>.steps"),
        ({"born": [{"technique": "top_bottom_code", "top": 3}]}, [], "steps.0: the limits must be dates"),
        ({"age": [{"technique": "top_bottom_code", "top": "2020-01-01"}]}, [], "the limits must be numbers"),
        ({"name": [{"technique": "suppress_cells", "above": 3}]}, [], "below and above are rules for numbers"),
        ({"age": [{"technique": "suppress_cells", "pattern": "3"}]}, [], "a pattern is a rule for texts"),
        ({"age": [{"technique": "suppress_cells", "values": ["3"]}]}, [], "values of a numeric column must be numbers"),
        ({"age": [{"technique": "suppress_cells", "values": [3, "x"]}]}, [], "values of a numeric column must be"),
        ({"born": [{"technique": "noise", "deviation": 1, "bounds": [0, 1]}]}, [], "bounds are numbers"),
        ({}, [DONUT | {"columns": ["lat", "place"]}], "steps.0.columns: the table has no column place, or no longer"),
        ({}, [DONUT | {"columns": ["lat", "name"]}], "donut needs numeric columns, and name is categorical here"),
        ({"lat": [BIN]}, [DONUT], "steps.0.columns: donut needs numeric columns, and lat is categorical here"),
        ({"lat": [REDACT]}, [DONUT], "steps.0.columns: lat has been through redact, which leaves nothing to work on"),
        ({}, [AGGREGATE, DONUT], "steps.1: nobody is left after aggregate (steps.0); put aggregate last"),
        ({}, [CELL, DONUT], "steps.1.columns: the table has no column lat, or no longer"),
        ({}, [CELL | {"into": "name"}], "steps.0.into: there is a column name already"),
        ({}, [AGGREGATE | {"means": ["born"]}], "aggregate needs numeric columns, and born is date here"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_place(
    columns: dict[str, list[dict[str, Any]]], table: list[dict[str, Any]], sentence: str
) -> None:
    assert sentence in refusal(columns, table)


def test_all_problems_are_named_at_once() -> None:
    said = refusal({"age": [BIN, ROUND], "name": [ROUND], "nobody": [ROUND]})
    assert said.count("; columns.") == 2 and "columns.age.steps.1" in said and "columns.name.steps.0" in said


def test_a_plan_says_what_the_table_will_be() -> None:
    plan = plan_steps(KINDS, {"age": [read_step(BIN)], "name": [read_step(PSEUDONYM)]}, [read_step(CELL)])
    assert plan.types_after == {"age": CATEGORICAL, "name": CATEGORICAL, "born": DATE, "cell": CATEGORICAL}
    assert [one.place for one in plan.steps] == ["columns.age.steps.0", "columns.name.steps.0", "steps.0"]
    assert not plan.is_row_wise and not plan.ends_as_groups
    grouped = plan_steps(KINDS, {}, [read_step(AGGREGATE | {"means": ["age"]})])
    assert grouped.ends_as_groups and grouped.types_after == {
        "name": CATEGORICAL,
        "people": NUMERIC,
        "mean_age": NUMERIC,
    }
    twice = plan_steps(KINDS, {"age": [step("noise", share=1), step("noise", share=1)]})
    assert [one.number for one in twice.steps] == [0, 1]


def test_without_the_step_that_makes_groups_a_plan_is_one_of_people() -> None:
    under = {"age": [read_step(BIN)], "born": [step("suppress")]}
    plan = plan_steps(KINDS, under, [step("sample", share=0.5), read_step(CELL), read_step(AGGREGATE)])
    people = plan.of_people
    assert [one.technique.technique for one in people.table] == ["sample", "grid_cell"]
    assert people.types_after == {"age": CATEGORICAL, "name": CATEGORICAL, "born": DATE, "cell": CATEGORICAL}
    assert (people.types, people.columns, people.ends_as_groups) == (plan.types, plan.columns, False)
    assert people.of_people is people
    assert plan.types_after == {"name": CATEGORICAL, "people": NUMERIC}


def test_every_key_of_a_spec_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)

    def spec(*steps: dict[str, Any], **others: Any) -> ReleaseSpec:
        columns = {"town": {"role": "quasi_identifier", "steps": list(steps)}, "ill": {"role": "sensitive"}}
        basis = {"dataset": "people", "source": {"path": "people.csv"}, "target": "ill", "columns": columns}
        return ReleaseSpec.model_validate(basis | {"privacy": {"k_anonymity": {"k": 5}}} | others)

    nowhere = {"environment": "NOWHERE"}
    for keyed in (
        spec(draws=nowhere),
        spec({"technique": "prefix", "length": 1}, {"technique": "encrypt", "key": nowhere}),
    ):
        with pytest.raises(InputError, match="the environment variable NOWHERE is not set"):
            secrets_of(keyed)
        monkeypatch.setenv("NOWHERE", "ab" * 32)
        assert secrets_of(keyed).key(KeySource(environment="NOWHERE")).material == bytes.fromhex("ab" * 32)
        monkeypatch.delenv("NOWHERE")
    assert isinstance(secrets_of(spec({"technique": "prefix", "length": 1})), Secrets)


def test_a_technique_names_the_file_of_its_key() -> None:
    assert step("encrypt", key={"file": "private.key"}).key_file == "private.key"
    assert step("encrypt").key_file is None and step("round", to=1).key_file is None


def test_keys_are_looked_for_before_any_work() -> None:
    plan = plan_steps(
        KINDS, {"name": [step("encrypt", key={"environment": "NOWHERE"})], "age": [step("noise", share=1)]}
    )
    with pytest.raises(InputError, match=r"columns\.name\.steps\.0\.key: the environment variable NOWHERE is not set"):
        plan.check_keys(Secrets({}))
    plan.check_keys(Secrets({"NOWHERE": "ab" * 32}))


def test_kinds_have_words_for_all_types() -> None:
    assert {row.guarantee for row in catalog()} == {"none", "k", "local DP"}
    assert {kind.value for kind in ColumnType} == {one for row in catalog() for one in row.on}
