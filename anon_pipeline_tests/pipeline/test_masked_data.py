"""What a run keeps of its masking steps, and later publishes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("rows", "role", "warns"),
    [(1, "insensitive", False), (3, "insensitive", True), (3, "exclude", False), (3, "quasi_identifier", False)],
)
def test_a_token_that_stands_in_several_rows_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, rows: int, role: str, warns: bool
) -> None:
    """The attacker groups visits by the token: a class of at least 5 visits was those of one person, without a word."""
    monkeypatch.setenv("ANON_PIPELINE_KEY", "a1" * 32)
    frame, spec = people(120), policy()
    frame["patient"] = [f"patient {row // rows}" for row in range(120)]
    spec["columns"]["patient"] = {"role": role, "type": "categorical", "steps": [{"technique": "pseudonymize"}]}
    if role == "exclude":
        del spec["columns"]["patient"]["steps"]
        spec["columns"]["city"]["steps"] = [{"technique": "prefix", "length": 1}]
    folder = write_dataset(tmp_path / "people", frame, spec)
    run = Run(ReleaseSpec.load(folder), Home(tmp_path / "home").prepare(), DuckDBEngine(tmp_path / "spill"))
    graph = graph_of(run.spec)
    with caplog.at_level("WARNING", "anon_pipeline"):
        for step in graph.steps[:2]:
            make(graph, step, run)
    told = [record.getMessage() for record in caplog.records if "stand in several rows" in record.getMessage()]
    assert len(told) == warns
    assert all("tokens of patient" in sentence and "patient 3" not in sentence for sentence in told)
