"""An audit that holds people out of the release, where there are too few to hold out anybody."""

from __future__ import annotations

from pathlib import Path

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import Run
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset


def test_where_nobody_is_held_out_nothing_is_attacked(tmp_path: Path) -> None:
    """The empty table of control people ended the step with an internal error."""
    of_two = {"privacy": {"k_anonymity": {"k": 2}}, "guide": {"model": "decision_tree", "folds": 2}}
    frame = people(2).assign(ill=["yes", "no"])
    folder = write_dataset(tmp_path / "people", frame, policy() | of_two | {"audit": {"control": "held_out"}})
    spec, home = ReleaseSpec.load(folder), Home(tmp_path / "home").prepare()
    run, graph = Run(spec, home, DuckDBEngine(home.private_folder("spill"))), graph_of(spec)
    made = {step.name: make(graph, step, run) for step in graph.steps if step.name not in ("utility", "release")}
    assert made["attack_audit"].metadata["skipped"].startswith("2 people are too few to attack")
