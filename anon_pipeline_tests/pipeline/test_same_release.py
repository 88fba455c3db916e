"""The same source, spec and private key give the same release, before and after a change of the code.

Pinned are hashes of the typed rows of small candidates. A change that is meant to alter releases says **release** in
CHANGELOG.md and pins the new hashes, which the failing test prints.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.engine.base import Engine
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset
from anon_pipeline_tests.people import KEY

TABLES = ("data.parquet", "classes.parquet")


def demanding() -> dict[str, Any]:
    """Demands beyond k, masked values, ranges; nothing that draws but under the key."""
    spec = policy()
    spec["columns"]["visits"]["steps"] = [{"technique": "rank_swap", "share": 0.2}]
    spec["privacy"]["l_diversity"] = {"column": "ill", "l": 2}
    return spec | {"recode": {"form": "range"}}


def followed() -> dict[str, Any]:
    spec = policy()
    spec["columns"] = {"name": {"role": "identifier"}, **spec["columns"]}
    return spec | {"person": "name", "across_releases": {"k": 5, "window": 3}}


def grouped() -> dict[str, Any]:
    spec = policy()
    spec["columns"]["age"]["steps"] = [{"technique": "round", "to": 20}]
    return spec | {"steps": [{"technique": "aggregate", "columns": ["city", "age"], "means": ["visits"]}]}


PINNED: dict[Callable[[], dict[str, Any]], list[str]] = {
    policy: ["4e9500c95682e60f", "26aabf17b3a59983"],
    demanding: ["09fe64f2529ca679", "efd328fb713375b5"],
    followed: ["849cf31a59d0d6f2", "3c88c0916f910ed6"],
    grouped: ["80f2ed0d7638968d"],
}


def duckdb(folder: Path) -> Engine:
    return DuckDBEngine(folder, threads=2)


def spark(folder: Path) -> Engine:
    from anon_pipeline.engine.spark import SparkEngine

    return SparkEngine(folder, None, 2)


@pytest.mark.parametrize("engine", [duckdb, pytest.param(spark, marks=pytest.mark.slow)])
@pytest.mark.parametrize("content", PINNED)
def test_the_candidate_is_the_one_that_it_always_was(
    content: Callable[[], dict[str, Any]],
    engine: Callable[[Path], Engine],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if engine is spark:
        request.getfixturevalue("quick_spark")
    key = tmp_path / "private.key"
    key.write_text(KEY.material.hex())
    key.chmod(0o600)
    frame = people(500, 7)
    frame.insert(0, "name", [f"Name-{number}" for number in range(len(frame))])
    columns = content()["columns"]
    dataset = write_dataset(tmp_path / "people", frame[list(columns)], content() | {"draws": {"file": str(key)}})
    home = Home(tmp_path / "home").prepare()
    spec = ReleaseSpec.load(dataset)
    graph, run = graph_of(spec), Run(spec, home, engine(home.private_folder("spill")))
    for part in graph.parts:
        if isinstance(part, CheckDef):
            continue
        make(graph, part, run)
        if part.name in ("anonymized_table", "aggregated_table"):
            break
    (folder,) = (home.private / "people" / part.name).glob("*/")
    found = [DuckDBEngine(tmp_path).content_hash(folder / name)[1][:16] for name in TABLES if (folder / name).exists()]
    assert found == PINNED[content], f"now {found}"
