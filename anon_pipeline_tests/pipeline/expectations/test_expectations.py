"""A question that is not plainly answered with yes counts as failed, and says whether it failed or crashed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.pipeline.expectations import questions as expectations
from anon_pipeline.pipeline.expectations.questions import Answer, Question
from anon_pipeline.workers import Workers
from anon_pipeline_tests.pipeline.expectations.asked import ask

SIZES = pd.DataFrame({"class_size": [10, 12, 31]})
SMALLEST = Question(
    name="k_anonymity",
    demand="every class has at least 10 people",
    expectation="ExpectColumnMinToBeBetween",
    arguments={"column": "class_size", "min_value": 10},
    table=SIZES,
    remedy="merge classes",
)


def answer(**changes: object) -> Answer:
    (one,) = ask([replace(SMALLEST, **changes)])
    return one


@pytest.mark.long
def test_yes() -> None:
    said = answer()
    assert (said.name, said.demand, said.measured) == ("k_anonymity", SMALLEST.demand, 10)
    assert (said.passed, said.crashed) == (True, False)
    assert said.sentence.startswith(SMALLEST.demand)


@pytest.mark.long
def test_no_says_what_was_measured_and_what_to_do() -> None:
    said = answer(table=pd.DataFrame({"class_size": [9, 12]}))
    assert (said.passed, said.crashed, said.measured) == (False, False, 9)
    assert said.sentence == f"{SMALLEST.demand}, but measured 9; merge classes"


@pytest.mark.long
def test_a_share_is_told_in_percent_as_the_demand_is() -> None:
    said = answer(
        demand="at most 20 % are told", measured=0.20125, of_share=True, table=pd.DataFrame({"class_size": [9]})
    )
    assert said.sentence == "at most 20 % are told, but measured 20.12 %; merge classes"
    assert said.measured == 0.20125


def test_what_had_nothing_to_check_holds_nothing_back_and_is_no_success() -> None:
    said = answer(idle="there are no identifiers")
    assert (said.passed, said.applies) == (True, False)
    assert said.sentence == "not applicable: there are no identifiers"
    assert answer().applies


def test_saying_that_there_is_nothing_to_check_lets_nothing_through() -> None:
    """It is asked all the same, so that a wrong reason cannot hide what fails or crashes."""
    failed = answer(table=pd.DataFrame({"class_size": [9]}), idle="whatever")
    crashed = answer(table=pd.DataFrame(), idle="whatever")
    assert (failed.passed, failed.applies, failed.remedy) == (False, True, "merge classes")
    assert (crashed.passed, crashed.applies) == (False, True)


@pytest.mark.parametrize(
    "crash",
    [
        {"expectation": "ExpectNothingOfTheKind"},
        {"expectation": "__name__"},
        {"arguments": {"column": "no_such_column", "min_value": 10}},
        {"arguments": {"column": "class_size", "min_value": "ten"}},
        {"arguments": {"column": "class_size", "no_such_argument": 10}},
        {"arguments": {}},
        {"table": SIZES[:0]},
        {"table": pd.DataFrame()},
        {"table": None},
        {"table": pd.DataFrame({"class_size": ["ten", 10]})},
    ],
    ids=lambda crash: " ".join(crash),
)
def test_a_crash_has_not_passed_and_says_that_it_crashed(crash: dict[str, object]) -> None:
    said = answer(**crash)
    assert not said.passed
    assert said.crashed
    assert "the check crashed, which counts as failed" in said.sentence


@pytest.mark.parametrize("values", [[np.nan], [np.nan, np.nan], [None], [np.nan, 12], [np.inf], [-np.inf, 12]])
def test_a_number_that_is_none_does_not_pass(values: list[float]) -> None:
    said = answer(
        table=pd.DataFrame({"class_size": values}),
        arguments={"column": "class_size", "min_value": 10, "max_value": 1_000},
    )
    assert not said.passed
    assert said.measured is None or np.isfinite(said.measured)


def test_an_exception_inside_great_expectations_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    from great_expectations.datasource.fluent.interfaces import Batch

    def validate(*_: object, **__: object) -> None:
        raise RuntimeError("Zebulon Quackenbush")

    monkeypatch.setattr(Batch, "validate", validate)
    said = answer()
    assert said.crashed
    assert "Zebulon" not in said.sentence


def test_great_expectations_writes_nothing_beside_the_answers(capfd: pytest.CaptureFixture[str]) -> None:
    ask([SMALLEST, replace(SMALLEST, expectation="None")])
    assert capfd.readouterr() == ("", "")


def test_a_stewards_own_check_tells_the_number_where_there_is_one() -> None:
    number = {"expectation": "expect_column_max_to_be_between", "arguments": {"column": "class_size", "max_value": 31}}
    own = replace(SMALLEST, own_of=expectations.AGGREGATES, **number)
    rows = replace(own, name="many", expectation="expect_table_row_count_to_be_between", arguments={"min_value": 4})
    said = ask([own, rows, replace(own, own_of=expectations.RELEASED)])
    assert [one.sentence for one in said] == [
        f"{SMALLEST.demand}; measured 31",
        f"{SMALLEST.demand}, but measured 3; merge classes",
        f"{SMALLEST.demand}; it holds",
    ]


def test_one_crash_does_not_silence_the_others() -> None:
    said = ask([SMALLEST, replace(SMALLEST, name="crashes", expectation="None"), replace(SMALLEST, name="third")])
    assert [(one.name, one.passed) for one in said] == [("k_anonymity", True), ("crashes", False), ("third", True)]


def test_the_record_has_each_verdict_and_number_under_the_name_of_its_question() -> None:
    """Two questions of one name are told apart by the position of the second."""
    failing = replace(SMALLEST, table=pd.DataFrame({"class_size": [9]}))
    (record,) = expectations.validate([SMALLEST, failing], suite="people.candidate_checks").records
    assert record["suite"]["name"] == "people.candidate_checks"
    kept = [
        (one["expectation_config"]["kwargs"]["column"], one["result"], one["success"], one["exception_info"])
        for one in record["result"]["results"]
    ]
    calm = {"raised_exception": False, "exception_message": None, "exception_traceback": None}
    assert kept == [
        ("k_anonymity", {"observed_value": 10}, True, calm),
        ("k_anonymity (1)", {"observed_value": 9}, False, calm),
    ]
    assert set(record["result"]["meta"]) == {"great_expectations_version", "run_id", "validation_time"}


def test_the_record_of_questions_that_could_not_all_be_asked_is_no_success() -> None:
    crashes = replace(SMALLEST, expectation="None")
    for asked, success in (([SMALLEST], True), ([SMALLEST, crashes], False)):
        (record,) = expectations.validate(asked).records
        assert record["result"]["success"] is success


def test_a_result_without_a_number_is_kept_without_one_and_an_exception_without_its_text() -> None:
    """Great Expectations tells an exception flat or once per metric, and leaves the result out beside it."""
    flat = {"raised_exception": True, "exception_message": "Zebulon", "exception_traceback": "Quackenbush"}
    for told in (flat, {"a metric": {"raised_exception": False}, "another": flat}):
        answered = {"success": False, "result": None, "exception_info": told}
        kept = expectations._kept({"success": True, "results": [answered], "meta": {"batch": "Zebulon"}}, 0)
        (one,) = kept["results"]
        assert one["result"] == {"observed_value": None}
        assert one["exception_info"] == {
            "raised_exception": True,
            "exception_message": expectations.WITHHELD,
            "exception_traceback": None,
        }
        assert kept["meta"] == {}
    for quiet in ({"a metric": {"raised_exception": False}, "text": "raised_exception"}, {}, None):
        assert not expectations._raised(quiet)


@pytest.mark.parametrize(
    ("measured", "of_share", "shown"),
    [
        (None, True, "nothing"),
        (1, True, "100 %"),
        ("infinite", True, "infinite"),
        (3.0, False, "3"),
        (0.123456, False, "0.1235"),
        (1_234_567, False, "1234567"),
    ],
)
def test_how_a_measured_value_is_told(measured: float | str | None, of_share: bool, shown: str) -> None:
    assert expectations._in_words(measured, of_share) == shown


@pytest.mark.parametrize("value", [True, np.bool_(False), None, "text", np.inf, np.nan, [1]], ids=repr)
def test_what_is_no_finite_number_is_not_measured(value: object) -> None:
    assert expectations._plain(value) is None


@pytest.mark.long
def test_the_measured_value_is_a_plain_number() -> None:
    for column in (np.array([10, 11], dtype=np.int64), np.array([10.5, 11]), np.array([10, 11], dtype=np.uint8)):
        said = answer(table=pd.DataFrame({"class_size": column}))
        assert type(said.measured) in (int, float)
        assert said.passed


@pytest.mark.long
def test_a_process_beside_the_run_answers_as_the_run_would() -> None:
    asked = [
        SMALLEST,
        replace(SMALLEST, table=pd.DataFrame({"class_size": [9, 12]})),
        replace(SMALLEST, expectation="ExpectNothingOfTheKind"),
    ]
    with Workers(2) as workers, workers.meanwhile(expectations._validated, asked, "checks") as validated:
        assert validated().answers == ask(asked)


class Elsewhere:
    """Workers that have been started, and answer for themselves."""

    started = True

    @contextmanager
    def meanwhile(self, *_: object) -> Iterator[Callable[[], str]]:
        yield lambda: "elsewhere"


@pytest.mark.parametrize(
    ("expectation", "imported", "answers"),
    [("ExpectColumnMinToBeBetween", False, "elsewhere"), ("ExpectX", True, "here"), (object(), False, "here")],
    ids=["a name", "a name, imported here already", "an object of the steward's code"],
)
def test_another_process_answers_what_it_can_be_asked_and_this_one_has_not_imported(
    monkeypatch: pytest.MonkeyPatch, expectation: object, imported: bool, answers: str
) -> None:
    monkeypatch.setattr(expectations, "_validated", lambda *_: "here")
    if not imported:
        monkeypatch.delitem(sys.modules, "great_expectations", raising=False)
    else:
        monkeypatch.setitem(sys.modules, "great_expectations", expectations)
    asked = [SMALLEST, replace(SMALLEST, expectation=expectation)]
    assert expectations.validate(asked, cast(Workers, Elsewhere())) == answers  # type: ignore[comparison-overlap]
