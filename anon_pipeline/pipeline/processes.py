"""The worker processes of a run: they train models, group people, and ask questions with Great Expectations."""

import sys
from functools import cache

from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.workers import Workers, how_many

#: Its import takes seconds, so a worker process imports it meanwhile.
CHECKER = "anon_pipeline.pipeline.expectations.great_expectations"
#: What nearly every task is made of.
TASKS = ("anon_pipeline.learning.utility", "anon_pipeline.anonymize.policy")


def processes(spec: ReleaseSpec, threads: int | None, memory_limit: str | None) -> Workers:
    """The worker processes that all steps of a run share, so that they start once; arguments override the spec."""
    return _of(how_many(threads or spec.engine.threads, memory_limit or spec.engine.memory_limit))


def warm(workers: Workers) -> None:
    """Start the imports of the workers before this process starts its own."""
    if CHECKER not in sys.modules:
        workers.warm()


@cache
def _of(count: int) -> Workers:
    return Workers(count, imports=TASKS, unless_here=(CHECKER,))
