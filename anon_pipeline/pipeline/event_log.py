"""The package's log lines in the event log of their run, where Dagster's pages show them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from anon_pipeline.pipeline.step import log

#: The most lines of one step in the event log; each is a row of a database that keeps them for weeks.
MOST = 500


class _EventLog(logging.Handler):
    """Passes on only the text of a line and its level, since a traceback may quote a person's row."""

    def __init__(self, event_log: logging.Logger) -> None:
        super().__init__(logging.INFO)
        self._event_log, self._left = event_log, MOST

    def emit(self, record: logging.LogRecord) -> None:
        if self._left == 0:
            return
        self._left -= 1
        message = record.getMessage() if self._left else "the further lines of this step stand in the process's own log"
        try:
            self._event_log.log(record.levelno, message)
        except Exception:  # a line that cannot be stored does not end a step: the step's own events report a full disk
            self._left = 0


@contextmanager
def lines_in(event_log: logging.Logger, beginning: str) -> Iterator[None]:
    """Pass on every line of level INFO or higher while the block runs.

    Parameters
    ----------
    event_log : the event log of a step, from its context in Dagster (`context.log`)
    beginning : the first line
    """
    handler, before = _EventLog(event_log), log.level
    log.addHandler(handler)
    log.setLevel(min(log.getEffectiveLevel(), logging.INFO))
    try:
        log.info(beginning)
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)
