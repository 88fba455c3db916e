"""The processes that work beside a run: they train models, group people, and put questions to Great Expectations."""

import sys
from functools import cache

from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.workers import Workers, how_many

#: To import it takes seconds, in which a process beside this one does so.
CHECKER = "anon_pipeline.pipeline.expectations.great_expectations"


def processes(spec: ReleaseSpec, threads: int | None, memory_limit: str | None) -> Workers:
    """The same processes for every step of a run, so that they start once; the arguments come before the spec."""
    return _of(how_many(threads or spec.engine.threads, memory_limit or spec.engine.memory_limit))


def warm(workers: Workers) -> None:
    """Begin the imports before this process begins its own."""
    if CHECKER not in sys.modules:
        workers.warm()


@cache
def _of(count: int) -> Workers:
    return Workers(count, (CHECKER,))
