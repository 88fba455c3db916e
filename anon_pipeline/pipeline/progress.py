"""How far a long step is, and how long it may still take, as lines of the log."""

import time
from collections.abc import Callable

from anon_pipeline.pipeline.step import log

#: Seconds between two lines, so that a short step says nothing and a long one does not chatter.
EVERY = 10.0


def log_progress(step: str, unit: str) -> Callable[[int, int], None]:
    """A function to call with (done, total) as often as one likes."""
    started = said = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if 0 < done < total and now - said >= EVERY:
            said = now
            left = (now - started) * (total - done) / done
            log.info("%s: %s of %s %s, about %s left", step, f"{done:,}", f"{total:,}", unit, _duration(left))

    return tell


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
