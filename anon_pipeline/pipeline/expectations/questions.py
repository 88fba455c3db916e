"""Great Expectations: the questions about a stored table, as one suite, failing closed.

A stage has a suite named after it. Most questions are about one column of their own small table of aggregates. These
columns form one batch, each under the name of its question. A steward's own questions are asked about a whole table.
The kept results hold numbers and verdicts, and never the content of a row.
"""

from __future__ import annotations

import logging
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.errors import InputError
from anon_pipeline.plain_json import finite
from anon_pipeline.workers import ALONE, Workers

AGGREGATES, RELEASED = "aggregates", "release"
#: What Great Expectations may put into a result. About rows of a release, it may only answer yes or no.
RESULT_FORMATS = {
    AGGREGATES: {"result_format": "BASIC", "partial_unexpected_count": 0},
    RELEASED: {"result_format": "BOOLEAN_ONLY"},
}
WITHHELD = "withheld, since it may quote a value"


@dataclass(frozen=True)
class Question:
    """One expectation about one column of a small table of aggregates, or a steward's own about a whole table.

    Attributes
    ----------
    name : name of the check, as Dagster, the manifest and the report show it
    demand : the demand in words
    expectation : class name in `great_expectations.expectations`; for a steward's own, its type or the object itself
    arguments : arguments of the expectation
    table : the aggregates, never rows of people; for a steward's own also the candidate for release
    measured : the value to report as measured; the expectation's observed value if absent
    remedy : what to do if it fails
    idle : why there is nothing to check, by the spec or the counts; it is still asked, and may fail
    own_of : for a steward's own, the table that it is about (`aggregates` or `release`)
    of_share : whether `measured` is a share, which the demand gives in percent
    """

    name: str
    demand: str
    expectation: Any
    arguments: dict[str, Any]
    table: pd.DataFrame
    measured: float | int | str | None = None
    remedy: str = ""
    idle: str = ""
    own_of: str | None = None
    of_share: bool = False


@dataclass(frozen=True)
class Answer:
    """The answer to a question. `crashed` distinguishes a crashed check from failing data; neither passes.

    If there was nothing to check, the answer has `passed` and does not apply. `remedy` says what to do if it has not
    passed.
    """

    name: str
    demand: str
    measured: float | int | str | None
    passed: bool
    crashed: bool
    sentence: str
    applies: bool
    remedy: str


@dataclass(frozen=True)
class Validated:
    """The answers in the order of the questions, and suites with their results as Great Expectations writes them."""

    answers: list[Answer]
    records: list[dict[str, Any]] = field(default_factory=list)


def validate(questions: Sequence[Question], workers: Workers = ALONE, suite: str = "checks") -> Validated:
    """Ask the questions with Great Expectations, as one suite.

    An expectation that raises, or an answer other than a plain yes, counts as failed.

    Parameters
    ----------
    workers : one of them answers if they have been started and this process has not imported Great Expectations; the
        import takes seconds, and the workers have made it by then
    suite : name of the suite

    Raises
    ------
    InputError
        If one of the steward's own expectations cannot be made.
    """
    code = any(not isinstance(question.expectation, str) for question in questions)  # pickle may be unable to store it
    if code or "great_expectations" in sys.modules or not workers.started:
        return _validated(questions, suite)
    with workers.meanwhile(_validated, questions, suite) as answers:
        return answers()


@dataclass(frozen=True)
class _Batch:
    """A table and the expectations about it, each with the position of its question."""

    about: str
    table: pd.DataFrame
    expectations: dict[int, Any]


def _validated(questions: Sequence[Question], suite: str) -> Validated:
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)  # its errors quote values
    results: dict[int, Any] = {}
    records = []
    batches = _batches(questions)
    unasked = len(questions) - sum(len(batch.expectations) for batch in batches)
    for batch in batches:
        name = suite if batch.about == AGGREGATES else f"{suite}.{batch.about}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # so may its warnings
                asked, result = _asked(batch, name)
            results |= {answered.expectation_config.meta["position"]: answered for answered in result.results}
            records.append({"suite": asked, "result": _kept(result.to_json_dict(), unasked)})
        except Exception:  # after any error, no check of this batch has passed; the text might quote a value
            logging.getLogger("anon_pipeline").debug("the suite %s ended early", name)
    answers = [_answer(question, results.get(position)) for position, question in enumerate(questions)]
    return Validated(answers, records)


def _batches(questions: Sequence[Question]) -> list[_Batch]:
    """The questions that can be asked, by their table. Questions that are left out count as crashed."""
    from anon_pipeline.pipeline.expectations.great_expectations import gxe

    columns: dict[str, pd.Series[Any]] = {}
    beside: dict[int, Any] = {}
    own: dict[str, _Batch] = {}
    for position, question in enumerate(questions):
        if question.own_of is not None:
            batch = own.setdefault(question.own_of, _Batch(question.own_of, question.table, {}))
            batch.expectations[position] = _own_expectation(question, position)
            continue
        try:
            column = question.table[question.arguments["column"]]
            # An empty table would answer every question with yes, and missing values would be ignored.
            if question.table.empty or question.table.isna().any(axis=None):
                continue
            label = question.name if question.name not in columns else f"{question.name} ({position})"
            arguments = {**question.arguments, "column": label, **_labels(question, position)}
            beside[position] = getattr(gxe, question.expectation)(**arguments)
            columns[label] = _with_room(column)
        except Exception:  # noqa: S112 (the question counts as crashed)
            continue
    aggregates = [_Batch(AGGREGATES, pd.DataFrame(columns), beside)] if beside else []
    return [*aggregates, *own.values()]


def _labels(question: Question, position: int) -> dict[str, Any]:
    """Labels of a question for the pages of Great Expectations, and the position by which its result is found."""
    return {"meta": {"check": question.name, "position": position}, "description": question.demand}


def _with_room(column: pd.Series[Any]) -> pd.Series[Any]:
    """The column with a type that takes gaps, so that whole numbers stay whole beside longer columns."""
    values = column.reset_index(drop=True)
    return values.astype("Int64") if values.dtype.kind in "iub" else values


def _own_expectation(question: Question, position: int) -> Any:
    """
    Raises
    ------
    InputError
        If Great Expectations does not accept it; only the names of arguments are quoted from its message.
    """
    from anon_pipeline.pipeline.expectations.great_expectations import get_expectation_impl

    try:
        if not isinstance(question.expectation, str):
            return question.expectation.copy(update=_labels(question, position))
        return get_expectation_impl(question.expectation)(**question.arguments, **_labels(question, position))
    except Exception as error:
        named = {str(place["loc"][0]) for place in getattr(error, "errors", list)() if place["loc"]}
        where = ", ".join(sorted(named - {"__root__"})) or "its arguments"
    raise InputError(f"{question.name}: is not what Great Expectations takes; look at {where}")


def _asked(batch: _Batch, name: str) -> tuple[dict[str, Any], Any]:
    """The suite as it was asked, and its result."""
    from anon_pipeline.pipeline.expectations.great_expectations import ProgressBarsConfig, gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    suite = gx.ExpectationSuite(name=name, expectations=list(batch.expectations.values()))
    table = context.data_sources.pandas_default.read_dataframe(batch.table)
    result = table.validate(suite, result_format=RESULT_FORMATS[batch.about])
    run = gx.RunIdentifier(run_name="run")
    result.meta |= {"run_id": run, "validation_time": run.run_time}  # by which the pages tell runs apart
    return dict(suite.to_json_dict()), result


def _kept(result: dict[str, Any], unasked: int) -> dict[str, Any]:
    """A result without any content of rows: for each expectation its verdict and one number.

    If a question could not be asked, the whole has not passed.
    """
    kept = [
        {
            **answered,
            "result": {"observed_value": _plain((answered["result"] or {}).get("observed_value"))},
            "exception_info": {
                "raised_exception": (raised := _raised(answered["exception_info"])),
                "exception_message": WITHHELD if raised else None,
                "exception_traceback": None,
            },
        }
        for answered in result["results"]
    ]
    success = result["success"] and not unasked
    return dict(finite({**result, "results": kept, "success": success, "meta": _meta(result["meta"])}))


def _meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The data about a run that the pages need, without the batch."""
    return {name: meta[name] for name in ("great_expectations_version", "run_id", "validation_time") if name in meta}


def _answer(question: Question, result: Any) -> Answer:
    crashed = result is None or _raised(result.exception_info)
    passed = result is not None and result.success is True and not crashed
    observed = result.result.get("observed_value") if result is not None and result.result else None
    measured = question.measured if question.measured is not None else _plain(observed)
    finding = (
        "" if question.own_of is not None and measured is None else f"measured {_in_words(measured, question.of_share)}"
    )
    if passed and question.idle:
        sentence = f"not applicable: {question.idle}"
    elif passed:
        sentence = f"{question.demand}; {finding or 'it holds'}"
    elif crashed:
        sentence = (
            f"the check crashed, which counts as failed (asked: {question.demand}); nothing was published: run it "
            f"again, and if it crashes again {'correct it' if question.own_of else 'report a fault of this package'}"
        )
    else:
        sentence = f"{question.demand}, but {finding or 'it does not hold'}" + (
            f"; {question.remedy}" * bool(question.remedy)
        )
    applies = not (passed and question.idle)
    return Answer(
        question.name, question.demand, measured, passed, crashed, sentence, applies, "" if passed else question.remedy
    )


def _raised(info: dict[str, Any] | None) -> bool:
    """Whether an exception was raised; Great Expectations reports exceptions either flat or once per metric."""
    if not info:
        return False
    if "raised_exception" in info:
        return bool(info["raised_exception"])
    return any(isinstance(raised, dict) and raised.get("raised_exception") for raised in info.values())


def _plain(value: Any) -> float | int | str | None:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return None


def _in_words(measured: float | int | str | None, of_share: bool) -> str:
    if measured is None:
        return "nothing"
    if of_share and isinstance(measured, float | int):
        return f"{100 * measured:.4g} %"
    if isinstance(measured, float):
        return f"{measured:.0f}" if measured.is_integer() else f"{measured:.4g}"
    return f"{measured}"
