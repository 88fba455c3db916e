"""What a failed run came to, as its event log tells it: refused by which checks, or failed for which reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import dagster as dg

from anon_pipeline.pipeline.runtime import EXIT_CODE, REFUSED
from anon_pipeline.pipeline.wrapping import CRASHED, NAME

KILLED = "it ended before any of its steps said why: its process was killed, or never started"


@dataclass(frozen=True)
class Ending:
    """How a run ended and why.

    Attributes
    ----------
    sentence : names checks and demands, files and remedies; no figure that was measured
    """

    event: Literal["failed", "refused"]
    sentence: str


def ending_of(instance: dg.DagsterInstance, run_id: str) -> Ending:
    """The ending of a run that Dagster counts as failed."""
    kinds = {dg.DagsterEventType.ASSET_CHECK_EVALUATION, dg.DagsterEventType.STEP_FAILURE}
    refused, failed = [], []
    for entry in instance.all_logs(run_id, of_type=kinds):
        event = entry.get_dagster_event()
        if event.is_step_failure:
            failure = event.step_failure_data.user_failure_data
            if failure is None:  # of Dagster itself, or of an asset that is not ours: its text may hold anything
                failed.append(f"{event.step_key}: internal error")
            elif failure.metadata[EXIT_CODE].value == REFUSED:
                refused.append(str(failure.description))
            else:
                failed.append(str(failure.description))
        elif not event.asset_check_evaluation_data.passed:
            _judge(event.asset_check_evaluation_data, refused, failed)
    if refused:
        return Ending("refused", "; ".join(refused))
    return Ending("failed", "; ".join(failed) or KILLED)


def _judge(evaluation: Any, refused: list[str], failed: list[str]) -> None:
    """A check that does not hold refuses; one that broke says nothing of the data."""
    name = evaluation.metadata[NAME].value
    if CRASHED in evaluation.metadata:
        failed.append(f"the check {name} broke")
    else:
        refused.append(f"{name}: {evaluation.metadata['demand'].value}")
