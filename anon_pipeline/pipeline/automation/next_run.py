"""The decision about a content of a source: start a run, wait, or do nothing. Uses neither Dagster nor a clock.

    what is known of the content under the policy           what is done
    ------------------------------------------------------  ---------------------------------------------
    a run of the dataset is queued or under way             wait: it may read this very content
    the current release was made from it                    nothing
    ... and a place of `publish` does not have it yet       run again as after a death, until it is there
    its release was withdrawn                               nothing: a person took it back
    its last run was refused, or found it unusable          nothing: the next run would end as that one
    its last run was stopped by a person                    nothing
    its runs died, fewer than five since the last release   run again after 1, 5, 25 and 125 minutes
    its runs died five times                                nothing: a person has to look
    none of these                                           run

A content that was released and is not current (the source changed from A to B and back) is run again. That makes its
release the current one, and publishes nothing twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

#: Seconds until a run that died is tried again, after the first death, the second, and so on; then no more.
RETRY_AFTER = (60, 300, 1_500, 7_500)


class Ending(Enum):
    """The kinds of endings of a run."""

    RELEASED = "released"
    REFUSED = "refused"
    UNUSABLE = "unusable"  # the spec or the data
    STOPPED = "stopped"  # by a person
    DIED = "died"  # killed, or because something was missing that may be there later


class Action(Enum):
    """The actions of the sensor."""

    RUN = "run"
    WAIT = "wait"
    SKIP = "skip"


@dataclass(frozen=True)
class PastRun:
    """A run that has ended.

    Attributes
    ----------
    ended : seconds since 1970
    version : the version of its release, if known
    why : the reason of its ending, in a sentence
    failed : whether it failed after its release was published
    """

    run_id: str
    ending: Ending
    ended: float
    version: str | None = None
    why: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Known:
    """The known facts about a content under a policy.

    Attributes
    ----------
    under_way : the queued or running run of the dataset, for any content
    runs : the ended runs that read this content under this policy, newest first
    current : the version of the dataset's current release
    since : when it became current, seconds since 1970
    withdrawn : versions that were withdrawn
    undelivered : whether a destination does not have the current release yet
    """

    under_way: str | None = None
    runs: Sequence[PastRun] = ()
    current: str | None = None
    since: float = 0.0
    withdrawn: frozenset[str] = frozenset()
    undelivered: bool = False


@dataclass(frozen=True)
class Decision:
    """An action and its reason, for the page of the tick."""

    action: Action
    why: str


def decide(known: Known, now: float) -> Decision:
    """The first line of the table above that fits; `now` is in seconds since 1970."""
    if known.under_way is not None:
        return Decision(
            Action.WAIT,
            f"run {known.under_way[:8]} is queued or under way; the source is looked at again when it has ended",
        )
    released = [run.version for run in known.runs if run.ending is Ending.RELEASED]
    if known.current is not None and known.current in released:
        if known.undelivered:
            in_vain = list(itertools.takewhile(lambda run: run.failed or run.ending is Ending.DIED, known.runs))
            return _again(in_vain, now) if in_vain else Decision(Action.RUN, "released, but not everywhere yet")
        return Decision(Action.SKIP, f"released: {known.current}, the current release, was made of this content")
    concluded = next((run for run in known.runs if run.ending is not Ending.DIED), None)
    if concluded is not None and (why := _final(concluded, known.withdrawn)):
        return Decision(Action.SKIP, why)
    since = known.since if known.since <= now else 0.0  # a clock was set back: nothing would be later than the release
    deaths = [
        run
        for run in known.runs[: len(known.runs) if concluded is None else known.runs.index(concluded)]
        if run.ended > since
    ]
    if not deaths:
        return Decision(Action.RUN, "not released yet" if concluded is None else "released before, but not current")
    return _again(deaths, now)


def _final(run: PastRun, withdrawn: frozenset[str]) -> str | None:
    """Why no further run should follow a run with this ending; None if one should."""
    match run.ending:
        case Ending.REFUSED:
            return f"refused in run {run.run_id[:8]} ({run.why}); change the source or the spec"
        case Ending.UNUSABLE:
            return f"cannot be used, as run {run.run_id[:8]} found ({run.why}); change the source or the spec"
        case Ending.STOPPED:
            return f"run {run.run_id[:8]} was stopped by a person; start the job by hand, or change the source"
        case Ending.RELEASED if run.version in withdrawn:
            return f"its release {run.version} was withdrawn; change the source or the spec"
    return None


def _again(deaths: Sequence[PastRun], now: float) -> Decision:
    """The decision after runs that died, newest first: try again now, wait, or stop trying."""
    last, times = deaths[0], len(deaths)
    if times > len(RETRY_AFTER):
        return Decision(
            Action.SKIP,
            f"{times} runs of it died, the last one, {last.run_id[:8]}, since {last.why}; start the job by hand "
            "when that is mended",
        )
    left = last.ended + RETRY_AFTER[times - 1] - now
    if left > 0 and last.ended <= now:  # otherwise a clock was set back, and it died some time ago
        return Decision(
            Action.WAIT,
            f"run {last.run_id[:8]} died, since {last.why}; tried again in {left:.0f} s (attempt {times + 1})",
        )
    return Decision(Action.RUN, f"run {last.run_id[:8]} died, since {last.why}; attempt {times + 1}")
