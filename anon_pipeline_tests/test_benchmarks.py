"""The benchmarks follow the code that they measure: small versions of them run to their end.

They are given few people, and what they print is not judged.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest.mock import create_autospec

import pandas as pd
import pytest

from anon_pipeline import Released
from anon_pipeline_tests.end_to_end.harness import module
from anon_pipeline_tests.skips import require_spark
from benchmarks import large, mutants, random_runs, scale
from benchmarks.peers import runner
from benchmarks.peers.data import ADULT, GUIDANCE, QUASI_IDENTIFIERS, TARGET
from benchmarks.peers.environments import TOOLS, Tool

ROOT = Path(__file__).parents[1]
SMALL = {
    "demand": ("--people", "2000"),
    "enforcement": ("--people", "1500"),
    "masking": ("--rows", "3000"),
    "source_figures": ("--people", "200", "--tries", "3"),
}
OURS = [tool for tool in TOOLS if tool.environment is None]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_small_benchmark_runs_to_its_end(name: str, tmp_path: Path) -> None:
    ended = module(f"benchmarks.{name}", *SMALL[name], home=tmp_path / "home", at=ROOT)
    assert ended.exit_code == 0, ended.stderr
    assert "|" in ended.stdout or "cpu s" in ended.stdout


@pytest.mark.slow
def test_a_benchmark_that_starts_processes_runs_to_its_end(tmp_path: Path) -> None:
    """They import the module that was started, so it is started as a reader of the page starts it."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.large", "--rows", "3000", "--spread", "1"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "|" in ended.stdout or "cpu s" in ended.stdout


class _Asked(Exception):
    """Ends a benchmark where it asks for a release."""


@pytest.mark.slow
def test_a_random_run_releases(tmp_path: Path) -> None:
    assert random_runs.tried(1_000_007, tmp_path) == "released"


def test_random_runs_count_a_release_again(tmp_path: Path) -> None:
    said = {"columns": {"age": {"role": "quasi_identifier"}, "name": {"role": "identifier"}, "ill": {}}}
    said |= {"privacy": {"k_anonymity": {"k": 2}, "l_diversity": {"column": "ill", "l": 2}}}
    said["columns"]["ill"]["role"] = "sensitive"
    released = Released("0" * 12, tmp_path, True, {"rows": {"released": 4}})
    pd.DataFrame({"class_size": [2, 2]}).to_parquet(tmp_path / "classes.parquet")
    holds = pd.DataFrame({"age": [30, 30, None, None], "ill": ["yes", "no", "yes", "no"]})
    for table, wrong in (
        (holds, None),
        (holds.assign(name="somebody"), "a column is released"),
        (holds.iloc[:2], "people are missing"),
        (holds.assign(age=[30, 30, 31, None]), "a class is too small"),
        (holds.assign(ill=["yes", "yes", "no", "no"]), "a class has too few values"),
    ):
        table.to_parquet(tmp_path / "data.parquet")
        with nullcontext() if wrong is None else pytest.raises(AssertionError, match=wrong):
            random_runs.require_holds(released, said)


def test_random_runs_tell_the_releases_of_two_engines_apart(tmp_path: Path) -> None:
    manifest = {"created": "today", "rows": {"released": 4}, "source": {"content": "1", "commitment": "a"}}
    again = manifest | {"created": "later", "source": {"content": "1", "commitment": "b"}}
    ends = [Released("0" * 12, tmp_path / engine, True, said) for engine, said in (("a", manifest), ("b", again))]
    for folder, name in product(ends, ("data.parquet", "classes.parquet")):
        folder.folder.mkdir(exist_ok=True)
        pd.DataFrame({"age": [30, 30]}).to_parquet(folder.folder / name)
    random_runs.require_same(*ends)
    random_runs.require_same("too few people", "too few people")
    for other, wrong in (
        (replace(ends[1], manifest=again | {"rows": {"released": 3}}), "engines tell other rows"),
        (replace(ends[1], manifest=again | {"source": {"content": "2"}}), "engines tell other source"),
        ("too few people", "engines refuse in other words"),
    ):
        with pytest.raises(AssertionError, match=wrong):
            random_runs.require_same(ends[0], other)
    pd.DataFrame({"age": [30, 31]}).to_parquet(ends[1].folder / "classes.parquet")
    with pytest.raises(AssertionError, match=r"engines write other classes\.parquet"):
        random_runs.require_same(*ends)


def test_the_benchmark_of_spark_asks_for_a_release_as_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    require_spark()
    monkeypatch.setattr(scale, "release", create_autospec(large.release, side_effect=_Asked))
    with pytest.raises(_Asked):
        scale.observed(tmp_path / "people.parquet", tmp_path, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("tool", OURS, ids=lambda tool: tool.name)
def test_our_adapters_group_people(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if tool is not OURS[0]:  # that they are run three times is one tool's to show
        monkeypatch.setattr(runner, "REPEATS", 1)
    people = pd.read_parquet(ADULT).sample(800, random_state=0).reset_index(drop=True)
    people[GUIDANCE] = people["education_num"] / 16
    people[[*QUASI_IDENTIFIERS, TARGET, GUIDANCE]].to_parquet(tmp_path / "people.parquet", index=False)
    cost = runner.run(tool, 10, tmp_path, 60.0, 16 * 2**30)
    assert cost.cpu > 0
    classes = pd.read_parquet(tmp_path / "released.parquet")["#class"].value_counts()
    assert classes.min() >= 10


@pytest.mark.long
def test_each_mutant_that_is_listed_as_equivalent_is_a_mutant_of_the_code() -> None:
    mutants.require_matched(ROOT)


@pytest.mark.parametrize("name", ["anon_pipeline/arrays.py:gone", "anon_pipeline/cli/app.py:names_in: 0 -> 1"])
def test_mutants_are_not_planted_beside_a_judgement_of_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "equivalent.yaml"
    listed.write_text(f'- {{mutant: "{name}", reason: one of a former version}}\n')
    monkeypatch.setattr(mutants, "EQUIVALENT", listed)
    monkeypatch.setattr(sys, "argv", ["mutants"])
    with pytest.raises(SystemExit, match=name):
        mutants.main()
