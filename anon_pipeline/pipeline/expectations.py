"""Great Expectations: the questions asked of a stored table, each over a small table of aggregates, failing closed."""

import logging
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.workers import ALONE, Workers


@dataclass(frozen=True)
class Question:
    """One expectation, by its name in Great Expectations, over one column of a small table of aggregates.

    Attributes
    ----------
    name : of the check, as Dagster, the manifest and the report show it
    demand : what is asked, in words
    expectation : class name in `great_expectations.expectations`
    arguments : its arguments
    table : the aggregates; never a row of people
    measured : what to report as measured; the expectation's observed value where absent
    remedy : what to do where it fails
    idle : why there is nothing to check, by the spec or what was counted; it is asked all the same, and may fail
    """

    name: str
    demand: str
    expectation: str
    arguments: dict[str, Any]
    table: pd.DataFrame
    measured: float | int | str | None = None
    remedy: str = ""
    idle: str = ""


@dataclass(frozen=True)
class Answer:
    """What a question came to. `crashed` tells a check that broke from data that failed; neither passes.

    One that holds nothing back since there was nothing to check has `passed`, and does not apply. `remedy` says what
    to do about one that has not passed.
    """

    name: str
    demand: str
    measured: float | int | str | None
    passed: bool
    crashed: bool
    sentence: str
    applies: bool = True
    remedy: str = ""


def ask(questions: list[Question], workers: Workers = ALONE) -> list[Answer]:
    """Put the questions to Great Expectations.

    An expectation that raises, or an answer that is no plain yes, counts as failed.

    Parameters
    ----------
    workers : one of them answers where they have been started and this process has not imported Great Expectations,
        which takes seconds; by then they have
    """
    if "great_expectations" in sys.modules or not workers.started:
        return _asked(questions)
    with workers.meanwhile(_asked, questions) as answers:
        return answers()


def _asked(questions: list[Question]) -> list[Answer]:
    from anon_pipeline.pipeline.checker import ProgressBarsConfig, gx

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_pandas("aggregates")
    return [_answer(question, source) for question in questions]


def _answer(question: Question, source: Any) -> Answer:
    from anon_pipeline.pipeline.checker import gxe

    try:
        batch = (
            source.add_dataframe_asset(question.name)
            .add_batch_definition_whole_dataframe("all")
            .get_batch({"dataframe": question.table})
        )
        expectation = getattr(gxe, question.expectation)(**question.arguments)
        result = batch.validate(expectation, result_format="BASIC")
        crashed = _raised(result.exception_info)
        observed = result.result.get("observed_value") if result.result else None
        passed = result.success is True and not crashed
        # An empty table of aggregates answers every question with yes, and so none; gaps are passed over.
        if question.table.empty or question.table.isna().any(axis=None):
            passed, crashed = False, True
    except Exception:  # whatever went wrong, the check has not passed; the text might quote a value
        observed, passed, crashed = None, False, True
    measured = question.measured if question.measured is not None else _plain(observed)
    if passed and question.idle:
        sentence = f"not applicable: {question.idle}"
    elif passed:
        sentence = f"{question.demand}; measured {_shown(measured)}"
    elif crashed:
        sentence = (
            f"the check crashed, which counts as failed (asked: {question.demand}); nothing was published: run it "
            "again, and if it crashes again report a fault of this package"
        )
    else:
        sentence = f"{question.demand}, but measured {_shown(measured)}" + (
            f"; {question.remedy}" * bool(question.remedy)
        )
    applies = not (passed and question.idle)
    return Answer(
        question.name, question.demand, measured, passed, crashed, sentence, applies, "" if passed else question.remedy
    )


def _raised(info: dict[str, Any] | None) -> bool:
    """Great Expectations reports an exception either flat or once per metric."""
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


def _shown(measured: float | int | str | None) -> str:
    if measured is None:
        return "nothing"
    if isinstance(measured, float):
        return f"{measured:.0f}" if measured.is_integer() else f"{measured:.4g}"
    return f"{measured}"
