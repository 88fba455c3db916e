"""Nobody who is left out of a release decides a score or an attack: what they have is in no released row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home, write_file
from anon_pipeline.keys import kept_place
from anon_pipeline.pipeline.checks.audit import AUDIT
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.pipeline.steps import attack_audit
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy, write_dataset
from anon_pipeline_tests.people import KEY

STEPS = ("raw_data", "trained_model", "predictions", "anonymizer_tree", "anonymized_table")


def made(folder: Path, last: Any, limit: float, *steps: str) -> Stages:
    """What the steps of a run make, where the last of twelve old people has the given value.

    All twelve have hardly any other value, so that their class fails whichever value the last one has.
    """
    draw = np.random.default_rng(4)
    n = 300
    young = {"age": draw.integers(20, 60, n), "city": draw.choice(["Ulm", "Bonn", "Kiel"], n)}
    old = {"age": np.full(12, 99), "city": ["Isle"] * 12}
    people = pd.concat([pd.DataFrame(young), pd.DataFrame(old)], ignore_index=True)
    people["sex"] = [*draw.choice(["f", "m"], n), *["f"] * 12]
    people["ill"] = [*draw.choice(["flu", "cold", "none"], n), *["flu"] * 11, last]
    people["visits"] = draw.integers(0, 5, len(people))
    spec = policy() | {"suppression": {"limit": limit}}
    spec["privacy"]["l_diversity"] = {"column": "ill", "l": 3, "kind": "distinct"}
    loaded = ReleaseSpec.load(write_dataset(folder / "people", people, spec))
    home = Home(folder / "home").prepare()
    write_file(kept_place(loaded.dataset, home), KEY.material.hex())
    run = Run(loaded, home, DuckDBEngine(folder / "spill"))
    graph = graph_of(loaded)
    for part in graph.parts:
        if not isinstance(part, CheckDef) and part.name in steps:
            make(graph, part, run)
    return Stages(home, loaded)


def utility(folder: Path, last: Any, limit: float) -> tuple[dict[str, Any], int]:
    """What is measured, and how many are left out."""
    stages = made(folder, last, limit, *STEPS, "utility")
    return stages.load("utility").facts, int(stages.load("anonymized_table").facts["suppressed"])


def attacks(folder: Path, last: Any) -> tuple[dict[str, Any], int]:
    """What the attacks come to, and how many are left out."""
    stages = made(folder, last, 0.1, *STEPS, "attack_audit")
    audit: dict[str, Any] = json.loads((stages.load("attack_audit").folder / AUDIT).read_text())
    return audit, int(stages.load("anonymized_table").facts["suppressed"])


@pytest.mark.long
@pytest.mark.parametrize("values", [("flu", "cold"), ("cold", "a rare one")])
def test_no_score_hangs_on_somebody_who_is_left_out(tmp_path: Path, values: tuple[str, str]) -> None:
    """Scores are ratios of whole numbers: taken together they told how many people have which label."""
    one, other = (utility(tmp_path / value, value, 0.1) for value in values)
    assert one[1] == other[1] == 12
    assert one[0]["rows"] == 300
    assert one[0] == other[0]


@pytest.mark.long
def test_where_nobody_may_be_left_out_everybody_is_scored(tmp_path: Path) -> None:
    facts, left_out = utility(tmp_path, "cold", 0.0)
    assert (facts["rows"], left_out) == (312, 0)


@pytest.mark.long
def test_no_attack_hangs_on_somebody_who_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members and control people of a twin are everybody of whom it is made.

    Where each guess is the frequent value, those who were guessed right among both are all who have it, and less those
    of the release they were exactly the people who have it and are left out.
    """
    monkeypatch.setattr(attack_audit, "regrouped", lambda *_: [])
    one, other = (attacks(tmp_path / value, value) for value in ("flu", "cold"))
    assert one[1] == other[1] == 12
    assert one[0]["members"] + one[0]["control"] <= one[0]["people"] == 300
    assert one[0] == other[0]
