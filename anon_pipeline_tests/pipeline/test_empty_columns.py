"""A run warns of columns in which the source has no value at all, since a schedule looks at no table."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import Run
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, write_dataset


@pytest.mark.parametrize("rows", [0, 399, 400])
def test_a_column_without_any_value_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture, rows: int) -> None:
    """A month in which the source had lost everybody's age and visits was released without a word."""
    frame = people().astype({"age": float, "visits": float})
    frame.loc[: rows - 1, ["age", "visits"]] = float("nan")
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", frame))
    home = Home(tmp_path / "home").prepare()
    graph = graph_of(spec)
    with caplog.at_level(logging.WARNING, "anon_pipeline"):
        make(graph, graph.steps[0], Run(spec, home, DuckDBEngine(home.private_folder("spill"))))
    said = [line for line in caplog.messages if "no row has a value of age, visits; if that is a mistake" in line]
    assert len(said) == (rows == 400)
