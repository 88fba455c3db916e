"""How far a long step is, and how long it may still take, as lines of the log."""

import time
from collections.abc import Callable

from anon_pipeline.pipeline.step import log

#: Seconds between two lines, so that a short step says nothing and a long one does not chatter.
EVERY = 10.0


def log_progress(step: str, unit: str) -> Callable[[int, int], None]:
    """A function to call with (done, total) as often as one likes; time is counted from its first call."""
    started: float | None = None
    last_message, before = 0.0, 0

    def tell(done: int, total: int) -> None:
        nonlocal started, last_message, before
        now = time.monotonic()
        if started is None:
            started, last_message, before = now, now, done
        elif before < done < total and now - last_message >= EVERY:
            last_message = now
            left = (now - started) * (total - done) / (done - before)
            log.info("%s: %s of %s %s, about %s left", step, f"{done:,}", f"{total:,}", unit, _duration(left))

    return tell


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
