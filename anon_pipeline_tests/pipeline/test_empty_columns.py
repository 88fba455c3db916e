"""A run warns of columns without any value, and of rows within a field, since a schedule looks at no table."""

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


def warnings(spec: ReleaseSpec, folder: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is said when a source is read."""
    home, graph = Home(folder / "home").prepare(), graph_of(spec)
    with caplog.at_level(logging.WARNING, "anon_pipeline"):
        make(graph, graph.steps[0], Run(spec, home, DuckDBEngine(home.private_folder("spill"))))
    return caplog.messages


@pytest.mark.parametrize("rows", [0, 399, 400])
def test_a_column_without_any_value_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture, rows: int) -> None:
    """A month in which the source had lost everybody's age and visits was released without a word."""
    frame = people().astype({"age": float, "visits": float})
    frame.loc[: rows - 1, ["age", "visits"]] = float("nan")
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", frame))
    told = warnings(spec, tmp_path, caplog)
    said = [line for line in told if "no row has a value of age, visits; if that is a mistake" in line]
    assert len(said) == (rows == 400)


def test_people_whom_a_quote_has_taken_into_a_field_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of 400 people 261 were released, without a word, where one name began with a quote and another ended with one."""
    frame = people()
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", frame))
    frame.loc[10, "city"], frame.loc[150, "city"] = f'"{frame["city"][10]}', f'{frame["city"][150]}"'
    rows = [",".join(map(str, row)) for row in [frame.columns, *frame.itertuples(index=False)]]
    spec.source_path.write_text("\n".join([*rows, ""]))
    told = warnings(spec, tmp_path, caplog)
    assert [line for line in told if "139 lines of" in line and "a quote was never closed" in line]
