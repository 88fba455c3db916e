"""The graph as a list of steps: each gets what it names, records what it read, and runs without Dagster."""

import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import answer, make
from anon_pipeline.pipeline.graph import Graph, graph_of
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import DESTINATIONS, PEOPLE, RELEASE, CheckDef, Run, StepDef, StepResult
from anon_pipeline.pipeline.wrapping import asset_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import ASSETS, people, policy, write_dataset


def everything() -> dict[str, Any]:
    """A spec whose people are masked and followed, and whose attacks are bounded."""
    spec = policy()
    spec["columns"] = {"name": {"role": "identifier"}, **spec["columns"]}
    spec["columns"]["age"]["steps"] = [{"technique": "round", "to": 5}]
    followed = {"person": "name", "across_releases": {"k": 5, "window": 3}}
    return spec | followed | {"audit": {**spec["audit"], "linkage": 0.9}, "frontier": {"k": [5, 10]}}


def groups() -> dict[str, Any]:
    spec = policy()
    spec["columns"]["age"]["steps"] = [{"technique": "round", "to": 20}]
    return spec | {"steps": [{"technique": "aggregate", "columns": ["city", "age"], "means": [], "threshold": 12}]}


def names(spec: dict[str, Any]) -> list[str]:
    return [part.name for part in graph_of(ReleaseSpec.model_validate(spec)).parts]


def test_the_steps_of_a_spec_are_those_it_asks_for() -> None:
    checks = {"source_checks", "candidate_checks"}
    assert [name for name in names(policy()) if name not in checks] == list(ASSETS)
    assert set(names(everything())) - set(names(policy())) == {
        "masked_data", "followed_people", "audit_checks", "frontier",
    }  # fmt: skip
    assert "attack_audit" not in names(policy() | {"audit": {"enabled": False}})
    for spec in (policy(), everything(), groups()):  # whatever is released, copies of it come last
        with_copies = names(spec | {"publish": [{"delta": "open/people"}]})
        assert [name for name in with_copies if name not in names(spec)] == [DESTINATIONS]
        assert with_copies.index(DESTINATIONS) > with_copies.index(RELEASE)
    assert set(names(groups())) == {"raw_data", "masked_data", "aggregated_table", "release", *checks}


@pytest.mark.parametrize("spec", [policy(), everything(), groups()], ids=["plain", "everything", "groups"])
def test_every_part_takes_what_it_declares(spec: dict[str, Any]) -> None:
    graph = graph_of(ReleaseSpec.model_validate(spec))
    for part in graph.parts:
        given = 2 if isinstance(part, StepDef) else 1  # the run, and the folder of a step
        function = part.make if isinstance(part, StepDef) else part.ask
        parameters = list(inspect.signature(function).parameters.values())[given:]
        optional = part.needs_if_made if isinstance(part, StepDef) else ()
        assert [one.name for one in parameters] == [*part.needs, *optional], part.name
        assert {one.name for one in parameters if one.default is None} == set(optional), part.name
        assert set(part.needs) <= set(graph.sources(part)), part.name


def test_people_are_those_of_the_last_step_that_makes_them() -> None:
    graph = graph_of(ReleaseSpec.model_validate(everything()))
    sources = {part.name: graph.sources(part).get(PEOPLE) for part in graph.parts}
    assert sources["followed_people"] == "masked_data"
    assert {sources[name] for name in ("trained_model", "utility", "attack_audit", "release", "frontier")} == {
        "followed_people"
    }
    assert graph_of(ReleaseSpec.model_validate(policy())).people == "raw_data"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Run]:
    """Every part of the largest graph, made without Dagster and MLflow."""
    root = tmp_path_factory.mktemp("graph")
    frame = people(300)
    frame.insert(0, "name", [f"Name-{number}" for number in range(len(frame))])
    spec = ReleaseSpec.load(write_dataset(root / "people", frame, everything()))
    graph, run = graph_of(spec), run_in(spec, root / "home")
    for part in graph.parts:
        if isinstance(part, CheckDef):
            assert all(one.passed for one in answer(graph, part, run)), part.name
        else:
            make(graph, part, run)
    return graph, run


def run_in(spec: ReleaseSpec, home: Path) -> Run:
    ids = {"dagster": "none", "mlflow": "none"}
    return Run(spec, Home(home).prepare(), DuckDBEngine(home / "spill", threads=1), ids=ids)


def record(run: Run, name: str) -> dict[str, Any]:
    (file,) = (run.home.private / run.spec.dataset / name).glob("*/record.json")
    content: dict[str, Any] = json.loads(file.read_text())
    return content


@pytest.mark.long
def test_the_last_step_publishes(made: tuple[Graph, Run]) -> None:
    _, run = made
    version = record(run, "release")["facts"]["version"]
    manifest = json.loads((run.home.releases / "people" / version / "manifest.json").read_text())
    assert manifest["version"] == version and manifest["runs"] == run.ids
    assert {check["name"] for check in manifest["checks"]} >= {"k_anonymity", "across_releases", "linkage"}


@pytest.mark.long
def test_a_record_names_what_was_read(made: tuple[Graph, Run]) -> None:
    _, run = made
    assert set(record(run, "followed_people")["made_from"]) == {"masked_data"}
    assert set(record(run, "trained_model")["made_from"]) == {"followed_people"}
    assert set(record(run, "candidate_checks")["made_from"]) == {"raw_data", "followed_people", "anonymized_table"}
    assert set(record(run, "audit_checks")["made_from"]) == {"attack_audit"}


@pytest.mark.long
def test_what_was_made_of_something_older_is_not_used_however_far_back(made: tuple[Graph, Run], tmp_path: Path) -> None:
    """A new source, and steps made again from the middle on: whoever reads the tree is told where it begins."""
    graph, run = made
    stored = run.home.private / "people" / "raw_data"
    before = (stored / "current").read_text()
    raw_data = graph.steps[0]
    assert raw_data.name == "raw_data"

    def other(run: Run, folder: Path) -> StepResult:
        return replace(raw_data.make(run, folder), facts={**record(run, "raw_data")["facts"], "read": "another"})

    changed = Graph(run.spec, [replace(raw_data, make=other), *graph.parts[1:]])
    kept = {path.name: path.read_bytes() for path in (stored / before[:16]).iterdir()}
    make(changed, changed.steps[0], run)
    try:
        step = next(one for one in graph.steps if one.name == "anonymized_table")
        with pytest.raises(InputError, match="masked_data: was made from another raw_data; materialize people/masked"):
            make(graph, step, run)
    finally:  # as the other tests of this module want it
        (stored / before[:16]).mkdir()
        for name, content in kept.items():
            (stored / before[:16] / name).write_bytes(content)
        (stored / "current").write_text(before)


def count_ages(run: Run, folder: Path, people: Stage) -> StepResult:
    """A step as somebody may add it: how many people have each age."""
    ages = pd.read_parquet(people.folder / "data.parquet", columns=["age"])["age"].value_counts()
    ages.to_frame("people").to_parquet(folder / "ages.parquet")
    return StepResult({"ages": len(ages)}, rows=len(ages), metrics={"ages": len(ages)})


@pytest.mark.long
def test_a_step_more_is_a_function_and_a_line(made: tuple[Graph, Run]) -> None:
    graph, run = made
    step = StepDef("ages", (PEOPLE,), frozenset({"pandas"}), count_ages)
    longer = Graph(graph.spec, [*graph.parts, step])
    assert make(longer, step, run).facts == {"ages": record(run, "ages")["facts"]["ages"]}
    assert set(record(run, "ages")["made_from"]) == {"followed_people"}
    asset = asset_of(longer, step)
    assert asset.key.path == ["people", "ages"]
    assert [key.path[-1] for key in asset.asset_deps[asset.key]] == ["followed_people"]
    assert "how many people have each age" in str(asset.descriptions_by_key[asset.key])
