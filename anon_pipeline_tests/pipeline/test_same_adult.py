"""Adult's grouping is the one that it always was: what the tree does without any key, and the release under one.

A change that is meant to alter releases says **release** in CHANGELOG.md and pins the new hashes, which the failing
test prints. The same of small tables, on both engines, is in test_same_release.py.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from anon_pipeline.anonymize.grouping import Grouping
from anon_pipeline.anonymize.policy import tree_of
from anon_pipeline.anonymize.storage import load_cells
from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home, write_file
from anon_pipeline.keys import Key, kept_place
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import Cells
from anon_pipeline_tests.people import KEY

ADULT = Path(__file__).parents[2] / "data/adult"
STEPS = ("raw_data", "masked_data", "trained_model", "predictions", "anonymizer_tree", "anonymized_table")

#: Cells, and the hashes of their codes and of what the guide says of them (its folds are drawn under the key).
GUIDANCE = [39723, "ca5d9300aeb7f3b2", "90018a1279538442"]
#: Classes where k = 10 is all that is demanded, and the hash of who is in which.
ALONE = [4336, "6987a0711a67f9d4"]
#: Classes that meet every demand, and the hashes of the released table and of the table of classes.
RELEASE = [2415, "a0cc9b984f8c62fd", "72ed263d0a0ae67d"]

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Made:
    """Adult as far as the stored candidate, under `KEY`."""

    spec: ReleaseSpec
    cells: Cells
    classes: int
    hashes: list[str]


def digest(numbers: IntArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(numbers.astype("<i8"))).hexdigest()[:16]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("adult")
    home, spec = Home(folder / "home").prepare(), ReleaseSpec.load(ADULT)
    write_file(kept_place(spec.dataset, home), KEY.material.hex())
    run = Run(spec, home, DuckDBEngine(folder / "spill", threads=2))
    assert run.key == KEY
    graph = graph_of(spec)
    parts = [part for part in graph.parts if not isinstance(part, CheckDef) and part.name in STEPS]
    for part in parts:
        make(graph, part, run)
    stages = Stages(home, spec)
    tables = stages.load("anonymized_table").folder
    return Made(
        spec,
        load_cells(stages.load("predictions").folder),
        stages.load("anonymizer_tree").facts["classes"],
        [run.engine.content_hash(tables / name)[1][:16] for name in ("data.parquet", "classes.parquet")],
    )


def test_guidance_is_what_it_always_was(made: Made) -> None:
    found = [len(made.cells.counts), digest(made.cells.codes), digest(made.cells.guidance)]
    assert found == GUIDANCE, f"now {found}"


@pytest.mark.parametrize("key", [KEY, Key(bytes(32))], ids=["key", "another key"])
def test_without_a_demand_that_is_met_by_merging_the_tree_needs_no_key(made: Made, key: Key) -> None:
    alone = made.spec.replaced({"privacy": {"k_anonymity": {"k": 10}}})
    tree = tree_of(alone, key).fit_cells(made.cells)
    grouping = Grouping.of_tree(tree, made.cells)
    found = [len(grouping.sizes), digest(grouping.class_of_cell)]
    assert found == ALONE, f"now {found}"


def test_the_release_is_what_it_always_was(made: Made) -> None:
    found = [made.classes, *made.hashes]
    assert found == RELEASE, f"now {found}"
