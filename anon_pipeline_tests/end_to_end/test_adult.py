"""The real thing: 48,842 people of Adult, from the source to a release that is as useful as it was promised to be.

Its grouping is the one that it always was: what the tree does without any key, and the release under one. A change that
is meant to alter releases says **release** in CHANGELOG.md and pins the new hashes, which the failing test prints. The
same of small tables, on both engines, is in pipeline/test_same_release.py.
"""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from anon_pipeline.anonymize.grouping import Grouping
from anon_pipeline.anonymize.policy import tree_of
from anon_pipeline.anonymize.storage import load_cells
from anon_pipeline.arrays import IntArray
from anon_pipeline.audit import regrouping
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home, write_file
from anon_pipeline.keys import Key, kept_place
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.release.descriptors.written import DESCRIPTORS
from anon_pipeline.release.manifest import code_hash
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import Cells
from anon_pipeline_tests.docs import test_figures as figures
from anon_pipeline_tests.end_to_end.harness import command
from anon_pipeline_tests.people import KEY

ADULT = Path(__file__).parents[2] / "data" / "adult"
STEPS = ("raw_data", "masked_data", "trained_model", "predictions", "anonymizer_tree", "anonymized_table")

#: Cells, and the hashes of their codes and of what the guide says of them (its folds are drawn under the key).
GUIDANCE = [39723, "ca5d9300aeb7f3b2", "90018a1279538442"]
#: Classes where k = 10 is all that is demanded, and the hash of who is in which.
ALONE = [4336, "6987a0711a67f9d4"]
#: Classes that meet every demand, and the hashes of the released table and of the table of classes.
RELEASE = [2415, "a0cc9b984f8c62fd", "72ed263d0a0ae67d"]


def made_before() -> dict[str, Any] | None:
    """The release that `make release` made, where this code made it of this spec; to make it again takes a minute."""
    for manifest in sorted((Home.default().releases / "adult").glob("[!.]*/manifest.json")):
        content = json.loads(manifest.read_text())
        if content["software"]["code"] == code_hash() and content["spec_hash"] == ReleaseSpec.load(ADULT).policy_hash:
            return {"manifest": content, "folder": str(manifest.parent)}
    return None


def keyed(root: Path) -> Home:
    """A new home in which Adult's private key is `KEY`."""
    home = Home(root).prepare()
    write_file(kept_place("adult", home), KEY.material.hex())
    return home


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    before = made_before()
    if before is not None:
        return before
    home = keyed(tmp_path_factory.mktemp("home")).root
    ended = subprocess.run(
        [Path(sys.executable).with_name("anon-pipeline"), "run", ADULT, "--json"],
        env=os.environ | {"ANON_PIPELINE_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def release(told: dict[str, Any]) -> Path:
    return Path(told["folder"])


@pytest.fixture(scope="module")
def data(release: Path) -> pd.DataFrame:
    return pd.read_parquet(release / "data.parquet")


@pytest.fixture(scope="module")
def spec() -> ReleaseSpec:
    return ReleaseSpec.load(ADULT)


def test_little_accuracy_is_lost(told: dict[str, Any]) -> None:
    metrics = told["manifest"]["utility"]["metrics"]
    assert {"accuracy", "balanced_accuracy", "roc_auc"} <= metrics.keys()
    assert metrics["roc_auc"]["difference"]["mean"] > -0.004
    assert metrics["roc_auc"]["before"]["mean"] > 0.91  # of people whose capital gains and losses are intervals
    for comparison in metrics.values():
        for when in ("before", "after", "difference"):
            assert comparison[when]["low"] < comparison[when]["mean"] < comparison[when]["high"]


def test_the_commands_find_that_it_holds(release: Path) -> None:
    home = release.parents[2]
    judged = command("verify", release / "data.parquet", "--spec", ADULT, home=home)
    assert judged.exit_code == 0, judged.said
    found = json.loads(command("releases", "verify", "--json", home=home).stdout)
    assert [problem for problem in found["problems"] if release.name in problem] == []  # a home may hold others


def test_little_information_is_lost(told: dict[str, Any], spec: ReleaseSpec) -> None:
    loss = told["manifest"]["measured"]["information_loss"]
    # .215 to .225 by the key; .197 as long as what failed was merged class by class, which told of people
    assert 0 < loss["mean"] < 0.24
    assert set(loss["columns"]) == set(spec.quasi_identifiers)


def test_every_class_has_ten_people_by_an_independent_count(
    told: dict[str, Any], data: pd.DataFrame, spec: ReleaseSpec
) -> None:
    sizes = data.groupby(spec.quasi_identifiers, dropna=False, observed=True).size()
    assert sizes.min() >= 10
    assert told["manifest"]["measured"]["class_sizes"]["smallest"] == sizes.min()
    assert told["manifest"]["measured"]["class_sizes"]["classes"] == len(sizes)


def test_everybody_is_accounted_for(told: dict[str, Any], data: pd.DataFrame) -> None:
    rows = told["manifest"]["rows"]
    assert rows["source"] == 48_842
    assert rows["released"] == len(data) == 48_842 - rows["suppressed"]


def test_the_manifest_is_complete(told: dict[str, Any], release: Path) -> None:
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest == told["manifest"]
    assert manifest.keys() >= {
        "checks", "content_hashes", "created", "dataset", "files", "format", "lineage", "measured", "previous", "rows",
        "runs", "software", "source", "spec", "spec_hash", "utility", "verified", "version",
    }  # fmt: skip
    written = {"data.parquet", "classes.parquet", "report.html", "openlineage.jsonl", "prov.json", *DESCRIPTORS}
    assert manifest["files"].keys() == written
    assert all(check["passed"] and not check["crashed"] for check in manifest["checks"])
    assert all(check["measured"] is not None for check in manifest["checks"])
    assert all(finding["holds"] for finding in manifest["verified"])
    assert manifest["runs"]["dagster"]
    assert manifest["runs"]["mlflow"]


def test_the_columns_have_the_types_of_the_source(release: Path, spec: ReleaseSpec) -> None:
    source = pq.read_schema(ADULT / "adult.parquet")
    written = pq.read_schema(release / "data.parquet")
    assert sorted(written.names) == sorted(spec.released)
    assert {name: str(written.field(name).type) for name in written.names} == {
        name: "string" if name.startswith("capital") else str(source.field(name).type) for name in written.names
    }


def test_what_is_kept_is_kept(data: pd.DataFrame) -> None:
    source = pd.read_parquet(ADULT / "adult.parquet")
    if len(data) == len(source):
        assert data["income"].value_counts().to_dict() == source["income"].value_counts().to_dict()
        for column in ("capital_gain", "capital_loss"):
            assert (data[column] == "< 1").sum() == (source[column] == 0).sum()


def test_no_column_alone_singles_anybody_out(told: dict[str, Any], data: pd.DataFrame) -> None:
    """Exact capital gains did: some were borne by one person."""
    assert all(data[column].value_counts().min() >= 10 for column in data)
    (replayed,) = told["manifest"]["audit"]["replayed"]  # here in full, in other tests briefly (harness.py)
    assert replayed["people"] == regrouping.PEOPLE
    assert told["manifest"]["audit"]["bounds"]
    assert all(bound["holds"] for bound in told["manifest"]["audit"]["bounds"])


def test_the_class_table_counts_everyone_and_its_ranges_contain_what_is_shown(
    release: Path, data: pd.DataFrame, spec: ReleaseSpec
) -> None:
    classes = pd.read_parquet(release / "classes.parquet")
    assert classes["class_size"].sum() == len(data)
    for column in ("age", "hours_per_week"):
        low, high = classes[f"{column}_low"], classes[f"{column}_high"]
        assert (low.isna() | (low <= classes[column])).all()  # an end that is missing is open
        assert (high.isna() | (classes[column] <= high)).all()
    for column in set(spec.quasi_identifiers) - {"age", "hours_per_week"}:
        shown = zip(classes[column], classes[f"{column}_values"], strict=True)
        assert all(value is None or value in values for value, values in shown)


def test_the_figures_of_the_pages_are_those_of_this_release(told: dict[str, Any], data: pd.DataFrame) -> None:
    assert figures.stale(figures.Adult(told["manifest"], data)) == []


# The same release as ever


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
def made(told: dict[str, Any], spec: ReleaseSpec, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What the run above has stored; that of `make release` is under another key, so the steps are made again."""
    folder, home = tmp_path_factory.mktemp("adult"), Home(Path(told["folder"]).parents[2])
    engine = DuckDBEngine(folder / "spill", threads=2)
    if kept_place(spec.dataset, home).read_text().strip() != KEY.material.hex():
        home = keyed(folder / "home")
        graph, run = graph_of(spec), Run(spec, home, engine)
        for part in graph.parts:
            if not isinstance(part, CheckDef) and part.name in STEPS:
                make(graph, part, run)
    stages = Stages(home, spec)
    tables = stages.load("anonymized_table").folder
    return Made(
        spec,
        load_cells(stages.load("predictions").folder),
        stages.load("anonymizer_tree").facts["classes"],
        [engine.content_hash(tables / name)[1][:16] for name in ("data.parquet", "classes.parquet")],
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
