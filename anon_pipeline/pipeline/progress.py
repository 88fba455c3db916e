"""The progress of a long step and its estimated remaining time, as lines of the log."""

import os
import time
from collections.abc import Callable

from anon_pipeline.pipeline.step import log

#: Seconds between two lines, so that a short step logs nothing and a long one does not log too much.
SECONDS_VARIABLE, SECONDS = "ANON_PIPELINE_PROGRESS_SECONDS", 10.0
#: At least this share of the time since its beginning: lines are stored, and a whole night gives some 200 of them.
SHARE = 0.05


def log_progress(step: str, unit: str) -> Callable[[int, int], None]:
    """A function to call with (done, total) at any frequency; time is counted from its first call."""
    started: float | None = None
    last_message, before = 0.0, 0
    every = float(os.environ.get(SECONDS_VARIABLE) or SECONDS)

    def tell(done: int, total: int) -> None:
        nonlocal started, last_message, before
        now = time.monotonic()
        if started is None:
            started, last_message, before = now, now, done
        elif before < done < total and now - last_message >= max(every, SHARE * (now - started)):
            last_message = now
            left = (now - started) * (total - done) / (done - before)
            log.info("%s: %s of %s %s, about %s left", step, f"{done:,}", f"{total:,}", unit, _duration(left))

    return tell


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
