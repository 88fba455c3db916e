"""The package's log lines in the event log of the run that they are of, where Dagster's pages show them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from anon_pipeline.pipeline.step import log

#: Lines of one step that the event log takes; each is a row of a database that keeps them for weeks.
MOST = 500


class _EventLog(logging.Handler):
    """Hands on the text of a line and its level, and nothing else: a traceback may quote a person's row."""

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
        except Exception:  # a line that cannot be stored ends no step: the step's own events tell of a full disk
            self._left = 0


@contextmanager
def lines_in(event_log: logging.Logger, beginning: str) -> Iterator[None]:
    """Hand on every line from INFO on while the block runs.

    Parameters
    ----------
    event_log : of a step, as its context in Dagster has it (`context.log`)
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
