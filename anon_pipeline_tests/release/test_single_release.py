"""A single release in somebody's hands: its folder is taken for its table, and its manifest for its spec, or neither.

Whoever hands a folder over may have put another table into it, or a file that nobody published; and a spec that is read
as another one could ask for less.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.release.single_release import spec_to_judge_by, table_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.cli.commands import published

ROOT = Path(__file__).parents[2]
COLUMNS = {
    "age": {"role": "quasi_identifier", "type": "numeric"},
    "town": {"role": "quasi_identifier", "hierarchy": {"file": "towns.csv"}},
    "ill": {"role": "sensitive", "missing_is_a_value": True},
    "seen": {"role": "sensitive", "type": "date"},
    "name": {"role": "identifier"},
}
DEMANDS: dict[str, Any] = {
    "k_anonymity": {"k": 3},
    "l_diversity": [{"column": "ill", "l": 2}, {"column": "seen", "l": 2, "bins": ["2020-01-01", "2021-01-01"]}],
    "t_closeness": {"column": "ill", "t": 0.3, "hierarchy": {"any": {"lung": ["flu", "cold"], "gut": ["ulcer"]}}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return published(Home(tmp_path / "home").prepare(), "1" * 12)


def spec_of(**more: Any) -> ReleaseSpec:
    content = {"dataset": "people", "source": {"path": "people.csv", "decimal": ","}, "target": "ill"}
    return ReleaseSpec.model_validate({**content, "columns": COLUMNS, "privacy": DEMANDS, **more})


def manifest(folder: Path, policy: object, name: str = "manifest.json") -> Path:
    file = folder / name
    file.write_text(json.dumps({"dataset": "people", "spec": policy}))
    return file


# ------------------------------------------------------------------ the folder


def test_the_folder_of_a_release_is_taken_for_its_table(folder: Path, tmp_path: Path) -> None:
    assert table_of(folder) == folder / "data.parquet"
    link = tmp_path / "current"
    link.symlink_to(folder)
    assert table_of(link) == link / "data.parquet"


@pytest.mark.parametrize("name", [".DS_Store", "._data.parquet", "Thumbs.db", "desktop.ini"])
def test_what_file_managers_leave_behind_is_no_part_of_a_release(folder: Path, name: str) -> None:
    """Whoever had opened the folder on a Mac was asked to name the table."""
    add(folder, name)
    assert table_of(folder) == folder / "data.parquet"


def test_what_is_no_folder_of_a_release_stays_what_it_is(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (folder / "data.parquet", tmp_path / "absent", tmp_path / "empty"):
        assert table_of(path) == path


def add(folder: Path, name: str) -> None:
    (folder / name).write_text("")


def exchange(folder: Path) -> None:
    pq.write_table(pa.table({"age": [20] * 6, "ill": ["no", "yes"] * 3}), folder / "data.parquet")


def withdraw(folder: Path) -> None:
    for name in ("data.parquet", "report.html"):
        (folder / name).unlink()


def say(folder: Path, **facts: Any) -> None:
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: add(folder, "people.csv"), "holds people.csv, which its manifest does not name"),
        (lambda folder: add(folder, ".hidden"), "holds .hidden, which its manifest does not name"),
        (lambda folder: add(folder, "._people.csv"), "holds ._people.csv, which its manifest does not name"),
        (lambda folder: (folder / ".DS_Store").mkdir(), "holds .DS_Store, which its manifest does not name"),
        (lambda folder: add(folder, "classes.parquet"), "holds classes.parquet, which its manifest does not name"),
        (lambda folder: (folder / "more").mkdir(), "holds more, which its manifest does not name"),
        (exchange, "data.parquet is not the file that its manifest names"),
        (lambda folder: (folder / "data.parquet").unlink(), "data.parquet is not the file that its manifest names"),
        (lambda folder: say(folder, files={"data.parquet": {}}), "holds report.html, which its manifest does not name"),
        (lambda folder: say(folder, files={"report.html": {}}), "is a release without a table of people or groups"),
        (lambda folder: say(folder, files=None), "is no manifest of a release; name the table itself"),
        (lambda folder: (folder / "manifest.json").write_text("[]"), "is no manifest of a release; name the table"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "is no manifest of a release, whose text is JSON"),
        (lambda folder: (withdraw(folder), add(folder, ".DS_Store")), "has nothing but its manifest"),
        (withdraw, "has nothing but its manifest, as the folder of a release that was withdrawn"),
    ],
)
def test_a_folder_that_is_not_what_its_manifest_says_is_refused(
    folder: Path, change: Callable[[Path], object], said: str
) -> None:
    change(folder)
    with pytest.raises(InputError) as error:
        table_of(folder)
    assert said in str(error.value)


def test_classes_that_are_not_the_published_ones_are_no_part_of_a_release(folder: Path) -> None:
    """Demands on a population are judged by the boxes of that file."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    say(folder, files=files | {"classes.parquet": {"sha256": "0" * 64}})
    with pytest.raises(InputError, match=r"classes\.parquet is not the file that its manifest names"):
        table_of(folder)


def test_of_several_releases_a_single_one_is_named(folder: Path) -> None:
    for several in (folder.parent, folder.parent.parent):
        with pytest.raises(InputError, match=r"holds folders of releases; name that of a single one, as DATASET/"):
            table_of(several)


# ------------------------------------------------------------------ the manifest


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"suppression": {"limit": 0.05}, "recode": {"form": "range"}, "seed": 7, "license": "CC0"},
        {"privacy": {"k_anonymity": {"k": 3}, "alpha_k_anonymity": {"column": "ill", "alpha": 0.7, "k": 4}}},
        {"person": "name", "across_releases": {"k": 3, "window": 4}},
        {
            "steps": [{"technique": "aggregate", "columns": ["age", "town"], "threshold": 9}],
            "privacy": {"k_anonymity": {"k": 3}},
        },
    ],
)
def test_a_manifest_is_read_as_the_spec_that_it_was_made_of(tmp_path: Path, more: dict[str, Any]) -> None:
    spec = spec_of(**more)
    policy = {name: value for name, value in spec.policy().items() if name != "seed"}
    read = spec_to_judge_by(manifest(tmp_path, policy))
    for name in ("privacy", "columns", "quasi_identifiers", "released", "k", "answers", "categories", "aggregates"):
        assert getattr(read, name) == getattr(spec, name)
    assert read.steps == spec.steps


@pytest.mark.parametrize("dataset", ["adult", "police"])
def test_the_manifests_of_the_examples_are_read(tmp_path: Path, dataset: str) -> None:
    spec = ReleaseSpec.load(ROOT / "data" / dataset)
    read = spec_to_judge_by(manifest(tmp_path, spec.policy()))
    assert (read.privacy, read.released) == (spec.privacy, spec.released)


def test_a_column_without_a_stated_type_has_the_one_that_the_run_found(tmp_path: Path) -> None:
    """Codes from 1 to 5, texts in a Parquet file, were numbers in its export, whose values are nearer to each other."""
    columns = COLUMNS | {
        "ward": {"role": "sensitive"},
        "stay": {"role": "sensitive", "steps": [{"technique": "round"}]},
    }
    columns["stay"]["steps"][0]["to"] = 5
    file = manifest(tmp_path, spec_of(columns=columns).policy())
    found = [
        {"name": name, "role": "sensitive", "type": kind}
        for name, kind in {"ward": "categorical", "ill": "numeric", "stay": "numeric", "seen": "date"}.items()
    ]
    file.write_text(json.dumps({**json.loads(file.read_text()), "source": {"columns": found}}))
    read = {name: column.type for name, column in spec_to_judge_by(file).columns.items()}
    assert (read["ward"], read["ill"], read["seen"]) == ("categorical", "numeric", "date")
    assert read["stay"] is None  # what a step shows may be of another type
    assert read["town"] is None


def test_a_spec_in_a_folder_stands_before_a_manifest(folder: Path) -> None:
    """Whoever names the folder of a release as the spec means its manifest."""
    say(folder, spec=spec_of().policy())
    assert spec_to_judge_by(folder).privacy == spec_of().privacy
    (folder / "release.yaml").write_text((ROOT / "data/adult/release.yaml").read_text())
    assert spec_to_judge_by(folder).dataset == "adult"


def without(policy: dict[str, Any], *path: str) -> None:
    for name in path[:-1]:
        policy = policy[name]
    del policy[path[-1]]


def put(policy: dict[str, Any], value: Any, *path: str | int) -> None:
    place: Any = policy
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value


@pytest.mark.parametrize(
    "change",
    [
        lambda policy: without(policy, "grouping"),
        lambda policy: without(policy, "columns", "ill", "role"),
        lambda policy: put(policy, True, "columns", "ill", "of_another_version"),
        lambda policy: put(policy, True, "of_another_version"),
        lambda policy: put(policy, True, "privacy", 0, "of_another_version"),
        lambda policy: put(policy, "of_another_version", "privacy", 0, "model"),
        lambda policy: put(policy, "3", "privacy", 0, "k"),
        lambda policy: put(policy, policy["privacy"][1:], "privacy"),
        lambda policy: put(policy, {}, "privacy"),
        lambda policy: put(policy, ["k_anonymity"], "privacy"),
        lambda policy: put(policy, None, "source"),
        lambda policy: put(policy, {}, "columns"),
        lambda policy: policy.clear() or policy.update(privacy=[]),
    ],
)
def test_a_spec_that_might_be_read_as_less_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    policy = json.loads(json.dumps(spec_of().policy()))
    change(policy)
    with pytest.raises(InputError, match="its spec is not one that this version publishes, and might be read as less"):
        spec_to_judge_by(manifest(tmp_path, policy))


def test_a_demand_on_a_population_needs_the_publishers_spec(tmp_path: Path) -> None:
    """The manifest's path of the population would be looked for among the reader's own files."""
    demands = {"k_anonymity": {"k": 3}, "k_map": {"k": 5, "population": "everybody.csv"}}
    with pytest.raises(InputError, match="a demand is on a population, whose table no manifest has"):
        spec_to_judge_by(manifest(tmp_path, spec_of(privacy=demands).policy()))


def test_a_synthetic_release_promises_nothing_that_is_counted(tmp_path: Path) -> None:
    policy = ReleaseSpec.load(ROOT / "data/adult_synthetic").policy()
    with pytest.raises(InputError, match="is of a synthetic release, whose promise cannot be counted in its table"):
        spec_to_judge_by(manifest(tmp_path, policy))


def test_what_is_no_manifest_is_read_as_a_spec(tmp_path: Path) -> None:
    file = tmp_path / "release.json"
    file.write_text(
        json.dumps(
            {
                "dataset": "people",
                "source": {"path": "p.csv"},
                "target": "ill",
                "columns": COLUMNS,
                "privacy": {"k_anonymity": {"k": 3}},
            }
        )
    )
    assert spec_to_judge_by(file).k == 3
    assert spec_to_judge_by(ROOT / "data/adult").dataset == "adult"
    file.write_text("{")
    for path, said in ((file, "whose text is JSON"), (tmp_path / "absent.json", "there is no such file")):
        with pytest.raises(InputError, match=said):
            spec_to_judge_by(path)
