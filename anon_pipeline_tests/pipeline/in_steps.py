"""A release made step by step in this process, without Dagster: a third of a command's time. Holds no test."""

from uuid import uuid4

import pytest

from anon_pipeline.audit import regrouping
from anon_pipeline.pipeline.execution import answer, make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.step import CheckDef
from anon_pipeline.pipeline.steps import attack_audit
from anon_pipeline.release.publication import Published
from anon_pipeline_tests.end_to_end.harness import Place, replayed_briefly


def released_in_steps(place: Place, threads: int | None = None) -> Published:
    """Make every step and ask every check, in the order of a run; no check may fail."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(attack_audit, "regrouped", replayed_briefly)  # as in a command of the tests
        patched.setattr(regrouping, "PEOPLE", regrouping.PEOPLE)  # which that changes
        return _released(place, threads)


def _released(place: Place, threads: int | None) -> Published:
    spec = place.spec
    runtime = Runtime(home=str(place.home.prepare().root), threads=threads)
    run = runtime.run(spec, {"dagster": str(uuid4()), "mlflow": uuid4().hex})  # as both tools name their runs
    graph, published = graph_of(spec), None
    for part in graph.parts:
        if isinstance(part, CheckDef):
            failed = [asked.sentence for asked in answer(graph, part, run) if not asked.passed]
            assert not failed, failed
        else:
            published = make(graph, part, run).published or published
    assert published is not None
    return published
