"""What Dagster loads: every dataset folder as a documented graph, and nothing hidden by a bad one."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.instance import settings
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.technical_names import owners, technical
from anon_pipeline.pipeline.wrapping import checks_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import ASSETS, policy, write_dataset
from anon_pipeline_tests.examples import times

ROOT = Path(__file__).parents[2]
Load = Callable[[Path], dg.Definitions]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with two datasets."""
    write_dataset(tmp_path / "people")
    write_dataset(tmp_path / "others", spec=policy("others") | {"schedule": "30 4 * * *"})
    return tmp_path


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Definitions of a data folder, with a home of their own."""
    return lambda data: build_definitions(data=data, runtime=Runtime(home=str(tmp_path / "home")))


def check_definitions(spec: ReleaseSpec) -> list[dg.AssetChecksDefinition]:
    """The batteries of checks of a dataset, as Dagster has them."""
    graph = graph_of(spec)
    return [checks_of(graph, checks) for checks in graph.checks]


def specs_of(definitions: dg.Definitions) -> dict[str, dg.AssetSpec]:
    return {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}


def names(definitions: dg.Definitions) -> set[str]:
    return set(specs_of(definitions))


@pytest.mark.long
def test_every_dataset_of_this_repository_loads(load: Load) -> None:
    definitions = load(ROOT / "data")
    dg.Definitions.validate_loadable(definitions)
    for folder in (ROOT / "data").iterdir():
        steps = graph_of(ReleaseSpec.load(folder)).steps
        assert {f"{folder.name}/{step.name}" for step in steps} <= names(definitions)


def test_every_asset_says_what_it_is_and_whose(load: Load) -> None:
    for key, spec in specs_of(load(ROOT / "data")).items():
        assert spec.description, key
        assert spec.owners, key
        assert spec.group_name == key.split("/")[0]
        assert spec.kinds, key
        assert spec.code_version, key
        published = key.split("/")[1] in ("release", "dp_statistics")
        assert spec.tags["anon_pipeline/zone"] == ("public" if published else "private"), key


def test_every_job_of_a_dataset_says_whose_it_is(data: Path, load: Load) -> None:
    write_dataset(data / "people", spec=policy() | {"owner": "Jane Doe", "retention": {"private_days": 30}})
    definitions = load(data)
    for name in ("people_release", "people_retention"):
        job = definitions.resolve_job_def(name)
        assert job.metadata["owner"].value == "team:Jane Doe"
        assert job.description


def test_every_check_says_what_it_asks_and_blocks() -> None:
    for file in (ROOT / "data").glob("*/release.yaml"):
        for battery in check_definitions(ReleaseSpec.load(file)):
            for spec in battery.check_specs:
                assert spec.description, spec.name
                assert spec.blocking, spec.name


def test_a_folder_more_is_a_graph_more(data: Path, load: Load) -> None:
    definitions = load(data)
    dg.Definitions.validate_loadable(definitions)
    assert names(definitions) == {f"{dataset}/{asset}" for dataset in ("people", "others") for asset in ASSETS}
    assert {job.name for job in definitions.jobs} == {
        *(f"{dataset}_{job}" for dataset in ("people", "others") for job in ("release", "release_anew")),
        "prune",
    }
    assert {sensor.name for sensor in definitions.sensors} == {
        "people_source_sensor",
        "others_source_sensor",
        "alerts_of_runs",
        "alerts_of_late_releases",
    }
    assert {schedule.name: schedule.cron_schedule for schedule in definitions.schedules} == {
        "others_schedule": "30 4 * * *",
        "prune_schedule": "37 1 * * *",
    }
    for dataset in ("people", "others"):
        job = definitions.resolve_job_def(f"{dataset}_release")
        assert {key.to_user_string() for key in job.asset_layer.executable_asset_keys} == {
            f"{dataset}/{asset}" for asset in ASSETS
        }
        assert len(job.asset_layer.asset_graph.asset_check_keys) >= 8


@pytest.mark.parametrize(
    "text",
    ["dataset: [", "", "dataset: broken\n", "dataset: people\n"],
    ids=["no yaml", "empty", "incomplete", "name taken and incomplete"],
)
def test_a_broken_spec_is_shown_and_does_not_hide_the_others(data: Path, text: str, load: Load) -> None:
    (data / "broken-one").mkdir()
    (data / "broken-one" / "release.yaml").write_text(text)
    definitions = load(data)
    dg.Definitions.validate_loadable(definitions)
    broken = f"{technical('broken-one')}/spec"
    assert names(definitions) >= {"people/release", "others/release", broken}
    shown = specs_of(definitions)[broken]
    assert "broken-one/release.yaml" in str(shown.description)


@pytest.mark.parametrize("folder", ["Größe", "a-b", "a b", "1st", "q'uote", "🦆"])
def test_a_broken_folder_of_any_name_is_shown(data: Path, folder: str, load: Load) -> None:
    for name in (folder, "a_b"):
        (data / name).mkdir()
        (data / name / "release.yaml").write_text("dataset: [")
    definitions = load(data)
    dg.Definitions.validate_loadable(definitions)
    shown = specs_of(definitions)
    assert {"people/release", "others/release", "a_b/spec", f"{technical(folder)}/spec"} <= set(shown)
    assert folder in str(shown[f"{technical(folder)}/spec"].description)


def test_a_spec_that_dagster_does_not_take_is_shown_and_hides_no_other(
    data: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(spec: ReleaseSpec) -> None:
        if spec.dataset == "others":
            raise dg.DagsterInvalidDefinitionError("for a reason that nobody thought of")

    monkeypatch.setattr("anon_pipeline.pipeline.build.build_retention", lambda spec: refuse(spec))
    definitions = load(data)
    dg.Definitions.validate_loadable(definitions)
    assert "others/release" not in names(definitions)
    assert "people/release" in names(definitions)
    assert "DagsterInvalidDefinitionError" in str(specs_of(definitions)["others/spec"].description)


def test_two_datasets_that_would_share_a_name_in_dagster_are_told_apart(data: Path, load: Load) -> None:
    write_dataset(data / "people", spec=policy() | {"retention": {"private_days": 1}})
    write_dataset(data / "people_retention", spec=policy("people_retention") | {"schedule": "30 4 * * *"})
    definitions = load(data)
    dg.Definitions.validate_loadable(definitions)
    assert "people/release" in names(definitions)
    said = str(specs_of(definitions)["people_retention/spec"].description)
    assert "schedule people_retention_schedule stands in another folder too" in said


@pytest.mark.long
def test_an_owner_of_any_name_is_shown(data: Path, load: Load) -> None:
    for owner in ("Jane Doe", "Ministère de la Santé", "jane@example.org", "team:statistics", "q'u\"o🦆", "x" * 300):
        write_dataset(data / "people", spec=policy() | {"owner": owner})
        definitions = load(data)
        dg.Definitions.validate_loadable(definitions)
        assert owner in specs_of(definitions)["people/release"].owners[0]
    assert owners(None) == owners(" ") == ["team:data-stewards"]


#: Names of columns that SQL, Dagster, Great Expectations or MLflow do not take as they are, and any others.
column_names = st.sampled_from(
    [
        "blood type",
        "Größe",
        "a-b",
        "1st",
        "a.b",
        'q"uote',
        "it's",
        "{x}",
        "%s",
        "../up",
        "a//b",
        "🦆",
        "x" * 300,
        "select",
    ]
) | st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)


@pytest.mark.long
@examples(max_examples=times(40))
@given(first=column_names, second=column_names)
def test_any_name_of_a_column_works_and_none_hides_another(first: str, second: str) -> None:
    assume(len({name.casefold() for name in (first, second, "age", "city", "sex", "visits")}) == 6)
    assume(all(name.strip() and not name.startswith("#") for name in (first, second)))
    spec = policy()
    for name in (first, second):
        spec["columns"][name] = {"role": "sensitive", "type": "categorical"}
    spec["target"] = first
    del spec["columns"]["ill"]
    spec["privacy"]["l_diversity"] = [{"column": name, "l": 2} for name in (first, second)]
    spec["audit"] |= {"attribute_inference": {first: 0.5, second: 0.5}}
    release = ReleaseSpec.model_validate(spec)
    definitions = build_definitions([release], Runtime(home="nowhere"))
    dg.Definitions.validate_loadable(definitions)
    checks = [check.name for battery in check_definitions(release) for check in battery.check_specs]
    assert len(set(checks)) == len(checks)


@pytest.mark.long
@given(st.lists(st.text(max_size=30) | st.just("l_diversity_ill"), unique=True))
def test_different_names_stay_different_when_translated(given_names: list[str]) -> None:
    translated = [technical(name) for name in given_names]
    assert len(set(translated)) == len(translated)
    again = {technical(name) for name in translated}
    assert len(again) == len(translated)
    assert all(name.isascii() and name.replace("_", "a").isalnum() for name in translated)
    assert technical("l_diversity_ill") == "l_diversity_ill"
    assert technical("a b") != technical("a_b")
    assert technical(technical("a b")) != technical("a b")  # else a column could take the name of another's


def test_two_folders_of_one_name_are_told_apart(data: Path, load: Load) -> None:
    write_dataset(data / "zz_copy", spec=policy("people"))
    definitions = load(data)
    dg.Definitions.validate_loadable(definitions)
    assert "people stands in another folder too" in str(specs_of(definitions)["zz_copy/spec"].description)


@pytest.mark.parametrize("folder", ["people", "others"])
def test_a_broken_folder_with_the_name_of_a_dataset(data: Path, folder: str, load: Load) -> None:
    (data / folder).rename(data / "moved")
    (data / folder).mkdir()
    (data / folder / "release.yaml").write_text("dataset: [")
    definitions = load(data)
    dg.Definitions.validate_loadable(definitions)
    assert f"{folder}/spec" in names(definitions)


def test_a_dataset_that_refers_to_nothing_but_its_spec_loads_without_its_source(data: Path, load: Load) -> None:
    (data / "people" / "people.csv").unlink()
    dg.Definitions.validate_loadable(load(data))


def test_no_datasets_at_all(tmp_path: Path, load: Load) -> None:
    dg.Definitions.validate_loadable(load(tmp_path))
    dg.Definitions.validate_loadable(load(tmp_path / "none"))


def test_the_settings_in_the_root_are_those_of_the_code() -> None:
    assert yaml.safe_load((ROOT / "dagster.yaml").read_text()) == settings("var/private/dagster")


@pytest.mark.long
def test_an_instance_starts_from_those_settings(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(settings(str(tmp_path))))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        assert instance.run_monitoring_enabled


@pytest.mark.long
def test_the_workspace_names_a_module_that_loads_without_a_warning_of_ours(data: Path) -> None:
    (module,) = [one["python_module"] for one in yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]]
    home = data / "home"
    loaded = subprocess.run(
        [sys.executable, "-W", "always", "-c", f"import {module} as m; print(len(m.defs.resolve_all_asset_specs()))"],
        cwd=ROOT,
        env=os.environ | {"ANON_PIPELINE_DATA": str(data), "ANON_PIPELINE_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.strip() == str(2 * len(ASSETS))
    assert "anon_pipeline" not in loaded.stderr
    assert "Dagster" not in loaded.stderr
    assert "Superseded" not in loaded.stderr
    assert stat.S_IMODE((home / "private").stat().st_mode) == 0o700
