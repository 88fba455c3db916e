"""A target of two numbers is estimated, and whoever runs it is told how to have it classified."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import write_dataset


@pytest.mark.long
@pytest.mark.parametrize(
    ("type_", "values", "told"), [("numeric", 2, True), ("numeric", 3, False), ("categorical", 2, False)]
)
def test_a_target_of_two_numbers_is_estimated_without_a_word(
    type_: str, values: int, told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    draw = np.random.default_rng(0)
    people = pd.DataFrame({"age": draw.integers(20, 60, 200), "ill": draw.integers(0, values, 200)})
    columns = {"age": {"role": "quasi_identifier"}, "ill": {"role": "sensitive", "type": type_}}
    spec = {"dataset": "people", "target": "ill", "columns": columns, "privacy": {"k_anonymity": {"k": 5}}}
    spec["source"] = {"path": "people.csv"}
    loaded = ReleaseSpec.load(write_dataset(tmp_path / "people", people, spec))
    run = Run(loaded, Home(tmp_path / "home").prepare(), DuckDBEngine(tmp_path / "spill"))
    with caplog.at_level(logging.INFO, "anon_pipeline"):
        for part in graph_of(loaded).parts:
            if not isinstance(part, CheckDef) and part.name in ("raw_data", "trained_model"):
                make(graph_of(loaded), part, run)
    assert ("ill has two values and is a number, so models estimate it" in caplog.text) is told
