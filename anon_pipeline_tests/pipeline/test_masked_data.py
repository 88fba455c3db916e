"""What a run keeps of its masking steps, and later publishes."""

from __future__ import annotations

import json
from pathlib import Path

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import Run
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset


def test_the_values_that_a_file_lists_are_in_no_report(tmp_path: Path) -> None:
    """The plan reads the file before the steps are carried out, and the manifest had named the town of one person."""
    frame, spec = people(100), policy()
    frame.loc[5, "city"] = "Isle of one"
    spec["columns"]["city"]["steps"] = [{"technique": "hierarchy", "file": "towns.csv"}]
    folder = write_dataset(tmp_path / "people", frame, spec)
    (folder / "towns.csv").write_text("".join(f"{town};{town[0] < 'C'}\n" for town in sorted(set(frame["city"]))))
    run = Run(ReleaseSpec.load(folder), Home(tmp_path / "home").prepare(), DuckDBEngine(tmp_path / "spill"))
    graph = graph_of(run.spec)
    masked = [make(graph, step, run) for step in graph.steps[:2]][1]
    told = json.dumps(masked.facts["masking"])
    assert "towns.csv" in told
    assert "Isle" not in told
    assert sha256_of(folder / "towns.csv") not in told  # who knows all people but one would try the last one's town
