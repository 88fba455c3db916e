"""Why a failed run ended, from its event log: the checks that refused it, or the reason of its failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import dagster as dg

from anon_pipeline.pipeline.runtime import DEMANDED, EXIT_CODE, MAY_PASS, REFUSED
from anon_pipeline.pipeline.wrapping import CRASHED, NAME
from anon_pipeline.release.fineness import without_numbers

KILLED = "its process was killed"


@dataclass(frozen=True)
class Failure:
    """Why a step or a check failed.

    Attributes
    ----------
    kind : whether the data or the policy were refused, cannot be used, or the same run may succeed later
    sentence : the reason; may hold measured figures, but nothing about a person
    demanded : the same without those figures, for readers outside the organization
    """

    kind: Literal["refused", "unusable", "died"]
    sentence: str
    demanded: str


@dataclass(frozen=True)
class Ending:
    """How a run ended and why.

    Attributes
    ----------
    sentence : names checks and demands, files and remedies; holds no measured figure
    """

    event: Literal["failed", "refused"]
    sentence: str


def ending_of(instance: dg.DagsterInstance, run_id: str) -> Ending:
    """The ending of a run that Dagster counts as failed."""
    failures = failures_of(instance, run_id)
    refused = [failure.demanded for failure in failures if failure.kind == "refused"]
    if refused:
        return Ending("refused", "; ".join(refused))
    reasons = "; ".join(failure.demanded for failure in failures)
    return Ending("failed", reasons or f"it ended before any of its steps said why: {KILLED}, or never started")


def failures_of(instance: dg.DagsterInstance, run_id: str) -> list[Failure]:
    """Why the steps and checks of a run failed, in the order in which they did; empty where its process was killed."""
    kinds = {dg.DagsterEventType.ASSET_CHECK_EVALUATION, dg.DagsterEventType.STEP_FAILURE}
    failures = []
    for entry in instance.all_logs(run_id, of_type=kinds):
        event = entry.get_dagster_event()
        if event.is_step_failure:
            failures.append(_of_step(event))
        elif not event.asset_check_evaluation_data.passed:
            failures.append(_of_check(event.asset_check_evaluation_data))
    return failures


def _of_step(event: dg.DagsterEvent) -> Failure:
    declared = event.step_failure_data.user_failure_data
    if declared is None:  # an error of Dagster, or of an asset that is not ours: its text may hold anything
        sentence = f"{event.step_key}: internal error"
        return Failure("died", sentence, sentence)
    declarations = {name: value.value for name, value in declared.metadata.items()}
    sentence = str(declared.description)
    if declarations.get(MAY_PASS):  # about files, servers and the machine
        return Failure("died", sentence, sentence)
    # It may say how many values a column has, or the entropy of the whole table.
    demanded = str(declarations.get(DEMANDED) or without_numbers(sentence))
    return Failure("refused" if declarations.get(EXIT_CODE) == REFUSED else "unusable", sentence, demanded)


def _of_check(evaluation: Any) -> Failure:
    """The failure of a check: a check that does not hold refuses; a check that crashed says nothing about the data."""
    name = evaluation.metadata[NAME].value
    sentence = f"{name}: {evaluation.description}"
    if CRASHED in evaluation.metadata:
        return Failure("died", sentence, f"the check {name} broke")
    return Failure("refused", sentence, f"{name}: {evaluation.metadata['demand'].value}")
