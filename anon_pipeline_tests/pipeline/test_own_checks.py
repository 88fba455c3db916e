"""Checks of a steward's own: what may stand in their files, what is asked, and that nothing of a row is kept.

The attacker of these files writes the dataset's folder, which somebody else runs: a suite in JSON must not run code.
The other one reads what checks leave behind, and wants a value of a person.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.pipeline.checks import own
from anon_pipeline.pipeline.checks.answers import ANSWERS
from anon_pipeline.pipeline.expectations.check_records import RUNS, keep_records, read_records
from anon_pipeline.pipeline.expectations.questions import RELEASED, Question, validate
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run
from anon_pipeline.release.facts import losses
from anon_pipeline.release.noise import NO_NOISE
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy.synthetic_people import people as synthetic_people
from anon_pipeline_tests.differential_privacy.synthetic_people import write as write_synthetic
from anon_pipeline_tests.end_to_end.harness import policy, write_dataset
from anon_pipeline_tests.pipeline.expectations.asked import ask

AGES = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "age", "min_value": 0, "max_value": 120}}


@pytest.fixture
def spec(tmp_path: Path) -> ReleaseSpec:
    return ReleaseSpec.load(write_dataset(tmp_path / "people"))


def write(spec: ReleaseSpec, content: Any) -> None:
    (spec.folder / own.SUITE).write_text(content if isinstance(content, str) else json.dumps(content))


def suite(*expectations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "mine", "expectations": list(expectations), **more}


def test_without_files_nothing_is_asked(spec: ReleaseSpec) -> None:
    assert own.NAME not in [part.name for part in graph_of(spec).parts]


def test_names_and_demands_follow_from_the_suite_and_tell_no_argument(spec: ReleaseSpec) -> None:
    named = {**AGES, "meta": {"name": "plausible"}, "description": "ages are those of people"}
    lost = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "information_loss", "max_value": 0.5}}
    write(spec, suite(AGES, named, {**lost, "meta": {"over": "aggregates"}}))
    assert own.checks_of(spec) == {
        "expect_column_values_to_be_between(age)": "The steward's own: expect column values to be between of age.",
        "plausible": "The steward's own: ages are those of people.",
        "expect_column_max_to_be_between(information_loss)": (
            "The steward's own: expect column max to be between of information_loss."
        ),
    }
    names = [part.name for part in graph_of(spec).parts]
    assert names.index("candidate_checks") < names.index(own.NAME) < names.index("release")


def test_the_suite_of_the_page_can_be_used(spec: ReleaseSpec) -> None:
    page = Path(__file__).parents[2] / "docs" / "experiments.md"
    (written,) = re.findall(r"```json\n(.*?)```", page.read_text(), re.DOTALL)
    write(spec, written)
    assert set(own.checks_of(spec)) == {"half_is_kept", "expect_column_values_to_be_between(age)"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is no JSON"),
        ([], "has no list of expectations"),
        (suite(), "has no list of expectations"),
        (suite({"type": "expect_the_unexpected"}), "is no expectation of Great Expectations"),
        (suite({"kwargs": {"column": "age"}}), "'None' is no expectation of Great Expectations"),
        (suite({**AGES, "type": ["x"]}), "is no expectation of Great Expectations"),
        (suite({**AGES, "kwargs": ["age"]}), "kwargs and meta are mappings"),
        (suite({**AGES, "meta": ["mine"]}), "kwargs and meta are mappings"),
        (suite({**AGES, "kwargs": {"column_list": ["age", "agee"]}}), "release has no column 'agee'"),
        (suite(AGES, meta={"over": "aggregates"}), "aggregates has no column 'age'"),
        ({"name": "mine"}, "has no list of expectations"),
        ({"expectations": AGES}, "has no list of expectations"),
        ({"expectations": [AGES, "expect_column_to_exist"]}, "has no list of expectations"),
        (suite({"type": "unexpected_rows_expectation"}), "is no expectation of Great Expectations"),
        (suite({**AGES, "kwargs": {"column": "agee"}}), "release has no column 'agee'; it has age, city"),
        (suite({**AGES, "meta": {"over": "aggregates"}}), "aggregates has no column 'age'"),
        (suite({**AGES, "meta": {"over": "source"}}), "meta.over is aggregates or release"),
        (suite(AGES, AGES), "is asked twice"),
        (suite({**AGES, "meta": {"name": "k_anonymity"}}), "is what another check is called"),
    ],
)
def test_a_suite_that_cannot_be_used_is_told_before_anything_is_made(
    spec: ReleaseSpec, content: Any, sentence: str
) -> None:
    write(spec, content)
    with pytest.raises(InputError, match=r"expectations\.json") as raised:
        graph_of(spec)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "evaluated",
    [
        {"row_condition": "@__import__('os').system('touch pwned')", "condition_parser": "pandas"},
        {"min_value": {"$PARAMETER": "now() - timedelta(days=1)"}},
        {"nested": [{"deep": {"$ref": "http://127.0.0.1:1/x"}}]},
    ],
)
def test_a_suite_of_somebody_else_evaluates_nothing(spec: ReleaseSpec, evaluated: dict[str, Any]) -> None:
    write(spec, suite({**AGES, "kwargs": {**AGES["kwargs"], **evaluated}}))
    with pytest.raises(InputError, match="would be evaluated as code"):
        graph_of(spec)


@pytest.mark.long
def test_a_module_is_not_run_without_leave(spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = spec.folder / "ran"
    (spec.folder / own.MODULE).write_text(
        f"open({str(marker)!r}, 'w')\nimport great_expectations.expectations as gxe\n\n"
        "def expect_rows():\n    'There are rows.'\n    return gxe.ExpectTableRowCountToBeBetween(min_value=1)\n\n"
        "def expect_nothing():\n    return None\n"
    )
    monkeypatch.delenv("ANON_PIPELINE_ALLOW_CODE", raising=False)
    with pytest.raises(InputError, match="--allow-code"):
        graph_of(spec)
    monkeypatch.setitem(os.environ, "ANON_PIPELINE_ALLOW_CODE", "1")
    assert own.checks_of(spec)["expect_rows"] == "The steward's own: There are rows."
    assert not marker.exists()
    expectation, over = own._from_module(spec, "expect_rows")
    assert (expectation.min_value, over) == (1, RELEASED)
    with pytest.raises(InputError, match="expect_nothing gives no expectation"):
        own._from_module(spec, "expect_nothing")


def test_a_module_without_words_is_asked_by_its_names(spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its functions whose name starts as it should; of a docstring only the first line."""
    monkeypatch.setenv("ANON_PIPELINE_ALLOW_CODE", "1")
    module = spec.folder / own.MODULE
    module.write_text("def expect_many_rows(): ...\n\ndef expect_said():\n    'Said.\\nMore.'\n\ndef other(): ...\n")
    assert [(one.name, one.demand, one.kind, one.arguments, one.over) for one in own.read_own(spec)] == [
        ("expect_many_rows", "expect many rows", None, {}, None),
        ("expect_said", "Said", None, {}, None),
    ]
    for content, sentence in (("def other(): ...", "has no function whose name starts with"), ("def", "is no Python")):
        module.write_text(content)
        with pytest.raises(InputError, match=sentence):
            own.read_own(spec)


@pytest.mark.parametrize(
    ("meta", "kind", "over"),
    [
        ("None", "'expect_x'", RELEASED),
        ("{'over': 'aggregates'}", "'expect_x'", "aggregates"),
        ("{'over': 'source'}", "'expect_x'", None),
        ("{}", "7", None),
    ],
)
def test_a_function_of_a_module_gives_an_expectation_about_a_table_that_there_is(
    spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, meta: str, kind: str, over: str | None
) -> None:
    monkeypatch.setenv("ANON_PIPELINE_ALLOW_CODE", "1")
    (spec.folder / own.MODULE).write_text(
        f"class Given:\n    meta, expectation_type = {meta}, {kind}\n\ndef expect_x():\n    return Given()\n"
    )
    if over is None:
        with pytest.raises(InputError, match="expect_x gives no expectation"):
            own._from_module(spec, "expect_x")
    else:
        assert own._from_module(spec, "expect_x")[1] == over


def question(**changes: Any) -> Question:
    table = pd.DataFrame({"age": [40, 97], "city": ["Bergen", "Xanadu-on-Sea"]})
    values = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "city", "value_set": ["Bergen"]}}
    given = {"name": "mine", "demand": "asked", "expectation": values["type"], "arguments": values["kwargs"]}
    return Question(**{**given, "table": table, "own_of": RELEASED, "remedy": "mend it", **changes})


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("expect_column_values_to_be_in_set", {"column": "city", "value_set": ["Bergen"]}),
        ("expect_column_distinct_values_to_be_in_set", {"column": "city", "value_set": ["Bergen"]}),
        ("expect_column_max_to_be_between", {"column": "age", "max_value": 3}),
        ("expect_column_most_common_value_to_be_in_set", {"column": "city", "value_set": ["A"]}),
        ("expect_column_mean_to_be_between", {"column": "city", "max_value": 3}),
    ],
)
def test_no_value_of_a_row_is_kept_or_told(kind: str, arguments: dict[str, Any]) -> None:
    validated = validate([question(expectation=kind, arguments=arguments)], suite="people.own_checks")
    (answer,) = validated.answers
    assert not answer.passed
    assert answer.measured is None
    left = json.dumps(validated.records) + repr(validated.answers)
    assert "Xanadu" not in left
    assert "97" not in json.dumps(validated.records[0]["result"]["results"][0]["result"])
    assert validated.records[0]["suite"]["name"] == "people.own_checks.release"


def test_an_own_check_that_holds_says_so() -> None:
    (answer,) = ask([question(arguments={"column": "city", "value_set": ["Bergen", "Xanadu-on-Sea"]})])
    assert (answer.passed, answer.sentence) == (True, "asked; it holds")


def test_arguments_that_great_expectations_does_not_take_are_bad_input() -> None:
    with pytest.raises(
        InputError, match=r"mine: is not what Great Expectations takes; look at no_such_argument, value_set$"
    ) as raised:
        ask([question(arguments={"column": "city", "no_such_argument": "Xanadu-on-Sea"})])
    assert "Xanadu" not in str(raised.value)


def test_an_expectation_that_is_none_at_all_is_bad_input_without_a_named_argument() -> None:
    with pytest.raises(InputError, match=r"look at its arguments$"):
        ask([question(expectation="expect_the_unexpected")])


def test_a_suite_that_was_changed_since_it_was_asked_does_not_count(spec: ReleaseSpec) -> None:
    write(spec, suite(AGES))
    asked = Stage(spec.folder, "x", own._facts(spec))
    write(spec, suite({**AGES, "kwargs": {"column": "age", "min_value": 50}}))
    with pytest.raises(InputError, match="was changed since"):
        own.require(spec, asked)


def test_answers_to_the_suite_as_it_is_are_what_a_release_requires(spec: ReleaseSpec, tmp_path: Path) -> None:
    assert own.require(spec, None) == []
    write(spec, suite(AGES))
    (name,) = own.checks_of(spec)
    answers = [{"name": name, "passed": True, "sentence": "it holds"}]
    (tmp_path / ANSWERS).write_text(json.dumps(answers))
    assert own.require(spec, Stage(tmp_path, "x", own._facts(spec))) == answers
    with pytest.raises(Refused, match="was not asked"):
        own.require(spec, None)


def test_the_last_runs_of_a_stage_are_kept(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    for number in range(RUNS + 3):
        keep_records(home, "people", "own_checks", [{"number": number}])
    kept = [records[0]["number"] for _, _, _, records in read_records(home, "people")]
    assert kept == list(range(3, RUNS + 3))
    assert not list(read_records(home, "others"))


def facts_of(losses: dict[str, float]) -> dict[str, Any]:
    """What the step says of a candidate of eight people, beside whom one was suppressed."""
    counts = {"released": 8, "suppressed": 1, "waiting": 0}
    return counts | {"information_loss": losses, "apart": dict.fromkeys(losses, 8), "version": "v"}


def test_figures_of_a_candidate_are_those_of_its_classes(spec: ReleaseSpec, tmp_path: Path) -> None:
    table = pd.DataFrame({"age": [20] * 3 + [40] * 5, "city": "Bonn", "sex": "f", "ill": ["yes", "no"] * 4})
    table.to_parquet(tmp_path / "data.parquet", index=False)
    facts = facts_of({"age": 0.1, "city": 0.9, "sex": 0.6})
    run = Run(spec, Home(tmp_path / "home").prepare(), DuckDBEngine(tmp_path / "spill"))
    told = losses(facts, run.noise("v"))  # as the manifest tells them
    (figures,) = own._aggregates(run, Stage(tmp_path, "", facts)).to_dict("records")
    assert figures == {  # of classes of 3 and 5
        "released": 8,
        "suppressed": 1,
        "classes": 2,
        "smallest_class": 3,
        "median_class_size": 4.0,
        "mean_class_size": 4.0,
        "largest_class": 5,
        "information_loss": told["mean"],
        "information_loss_age": told["columns"]["age"],
        "information_loss_city": told["columns"]["city"],
        "information_loss_sex": told["columns"]["sex"],
    }
    assert losses(facts, NO_NOISE)["columns"] == {"age": 0.0, "city": 1.0, "sex": 0.5}  # of nine people in halves


def test_the_figures_of_other_candidates_are_their_numbers_of_rows(spec: ReleaseSpec, tmp_path: Path) -> None:
    """Of a table of groups or a synthetic one nothing else is published that an answer could be compared with."""
    pd.DataFrame({"city": ["Bonn", "Cork"], "people": [12, 13]}).to_parquet(tmp_path / "data.parquet", index=False)
    step = {"technique": "aggregate", "columns": ["city"], "threshold": 12}
    groups = ReleaseSpec.model_validate(policy() | {"steps": [step]})
    synthetic = write_synthetic(tmp_path / "clinic", synthetic_people(20))
    for of, name in ((groups, "groups"), (synthetic, "rows")):
        run = Run(of, Home(tmp_path / name).prepare(), DuckDBEngine(tmp_path / "spill"))
        assert own._aggregates(run, Stage(tmp_path, "", {})).to_dict("records") == [{name: 2}]


def test_each_check_is_asked_of_its_table_which_is_read_once(spec: ReleaseSpec, tmp_path: Path) -> None:
    table = pd.DataFrame({"age": [20] * 8, "city": "Bonn", "sex": "f", "ill": ["yes", "no"] * 4})
    table.to_parquet(tmp_path / "data.parquet", index=False)
    rows = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}}
    write(
        spec,
        suite(
            AGES,
            {**rows, "meta": {"over": "aggregates", "name": "one row"}},
            {**rows, "meta": {"name": "some rows"}},
            {**rows, "meta": {"over": "aggregates", "name": "one row again"}},
        ),
    )
    run = Run(spec, Home(tmp_path / "home").prepare(), DuckDBEngine(tmp_path / "spill"))
    questions = own.ask_own(run, Stage(tmp_path, "", facts_of({"age": 0.1, "city": 0.3, "sex": 0.2})))
    assert [(question.own_of, len(question.table)) for question in questions] == [
        ("release", 8),
        ("aggregates", 1),
        ("release", 8),
        ("aggregates", 1),
    ]
    assert questions[0].table is questions[2].table
    assert questions[1].table is questions[3].table
