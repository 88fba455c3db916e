"""Masking on the way to a release: what leaves is masked, what is missing is told first, and no row order matters."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from anon_pipeline.home import Home
from anon_pipeline.pipeline.masked_files import mask_source
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Ended, Place, command, people, policy, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

pytestmark = pytest.mark.slow

RELEASED = {"customer", "age", "city", "sex", "ill", "visits", "salary", "cell", "shop_lat", "shop_lon"}
KEY, DRAWS, OTHER = "a1" * 32, "b2" * 32, "c3" * 32


def everyone(n: int = 400) -> pd.DataFrame:
    frame = people(n)
    frame.insert(0, "customer", [f"customer-{number}" for number in range(n)])
    frame.insert(1, "email", [f"person{number}@example.org" for number in range(n)])
    frame["salary"] = np.random.default_rng(2).lognormal(10, 1, n).round(2)
    frame["lat"] = 48.0 + np.random.default_rng(3).random(n) / 10
    frame["lon"] = 11.0 + np.random.default_rng(4).random(n) / 10
    frame["shop_lat"] = np.random.default_rng(5).choice([48.02, 48.05, 48.08], n)
    frame["shop_lon"] = 11.05
    return frame


def masked_policy() -> dict[str, Any]:
    """The spec of `everyone()`, with steps of several kinds."""
    spec = policy()
    columns = spec["columns"]
    columns["customer"] = {
        "role": "insensitive",
        "type": "categorical",
        "steps": [{"technique": "encrypt", "key": {"environment": "MASKING_KEY"}}],
    }
    columns["email"] = {"role": "exclude"}
    columns["age"]["steps"] = [{"technique": "round", "to": 10}]
    columns["city"]["steps"] = [{"technique": "prefix", "length": 1}]
    columns["salary"] = {"role": "sensitive", "type": "numeric", "steps": [{"technique": "rank_swap", "share": 0.1}]}
    columns["lat"] = columns["lon"] = {"role": "exclude", "type": "numeric"}
    columns["cell"] = {"role": "quasi_identifier", "made": True}
    columns["shop_lat"] = columns["shop_lon"] = {"role": "insensitive", "type": "numeric"}
    audit = {"enabled": False}
    steps = [
        {"technique": "grid_cell", "columns": ["lat", "lon"], "metres": 5000, "into": "cell"},
        {"technique": "donut", "columns": ["shop_lat", "shop_lon"], "inner": 1000, "outer": 2000},
    ]
    return spec | {"steps": steps, "draws": {"environment": "MASKING_DRAWS"}, "audit": audit}


class Keyed:
    """Sets the keys in the process of a command, before it starts; it can be pickled."""

    def __init__(self, key: str | None = KEY, draws: str | None = DRAWS) -> None:
        self.keys = {"MASKING_KEY": key, "MASKING_DRAWS": draws}

    def __call__(self) -> None:
        for name, value in self.keys.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def dataset(
    root: Path, spec: dict[str, Any] | None = None, frame: pd.DataFrame | None = None, home: Home | None = None
) -> Place:
    """A dataset folder; in a home of its own, or, which saves seconds, in one that is there."""
    folder = write_dataset(root / "people", everyone() if frame is None else frame, spec or masked_policy())
    return Place(home or Home(root / "home"), folder)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = dataset(tmp_path_factory.mktemp("masking"))
    ended = place.run("--json", sabotage=Keyed())
    assert ended.exit_code == 0, ended.said
    return place


def run(place: Place, *words: object, keys: Keyed | None = None) -> Ended:
    return command(*words, home=place.home.root, sabotage=keys or Keyed())


# A run


def test_released_columns_are_masked_and_no_raw_value_leaves(released: Place) -> None:
    source, table = everyone(), pd.read_parquet(released.release / "data.parquet")
    assert set(table) == RELEASED
    assert set(table["age"].astype(float) % 10) == {0.0}
    assert set(table["city"]) <= set("ABCD")
    assert sorted(table["salary"]) == sorted(source["salary"])  # rank swapping keeps the values, not whose they are
    assert table["customer"].nunique() == len(source)
    raw = [*source["customer"], *source["email"], *source["city"].unique()]
    for file in released.home.releases.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not [value for value in raw if str(value).encode() in content], file.name


def test_the_manifest_says_what_every_step_did_and_holds_no_key(released: Place) -> None:
    content = json.loads((released.release / "manifest.json").read_text())
    steps = {(step["technique"], *step["columns"]): step for step in content["masking"]}
    assert set(steps) == {
        ("encrypt", "customer"),
        ("round", "age"),
        ("prefix", "city"),
        ("rank_swap", "salary"),
        ("grid_cell", "lat", "lon"),
        ("donut", "shop_lat", "shop_lon"),
    }
    assert steps["rank_swap", "salary"]["linkage"]["rate"] < 0.2
    assert "seed" not in content["spec"]
    assert steps["round", "age"]["costs"]["age"]["changed"] > 0.8
    page = (released.release / "report.html").read_text()
    assert "What was masked" in page
    homes, shops = content["maps"]
    assert (shops["columns"], shops["k"], len(shops["after"])) == (["shop_lat", "shop_lon"], 10, 3)
    assert "Where people are by shop_lat and shop_lon, in the release." in page
    assert (homes["columns"], homes["into"], homes["size"]) == (["lat", "lon"], "cell", 0.05)  # none finer than 5 km
    assert homes["after"] and "before" not in homes and "before" not in shops  # where people were stays untold
    assert "Where people are by lat and lon, in the release, by the cells of cell." in page
    for file in released.home.root.rglob("*"):
        assert not file.is_file() or (KEY.encode() not in file.read_bytes() and DRAWS.encode() not in file.read_bytes())


def test_the_order_of_the_source_does_not_change_the_release(
    released: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffled = dataset(tmp_path, frame=everyone().sample(frac=1, random_state=5), home=released.home)
    before = released.releases()
    monkeypatch.setenv("MASKING_KEY", KEY)
    monkeypatch.setenv("MASKING_DRAWS", DRAWS)
    assert not released_in_steps(shuffled).new
    assert released.releases() == before


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (Keyed(key=None), "MASKING_KEY is not set"),
        (Keyed(draws=None), "MASKING_DRAWS is not set"),
        (Keyed(key="short"), "MASKING_KEY: is no key"),
    ],
    ids=["no key", "no key for draws", "no key at all"],
)
def test_a_key_that_is_missing_is_told_before_anything_is_read(
    released: Place, tmp_path: Path, keys: Keyed, named: str
) -> None:
    place = dataset(tmp_path, home=released.home)
    (place.dataset / "people.csv").unlink()
    ended = place.run(sabotage=keys)
    assert (ended.exit_code, named in ended.sentence) == (2, True), ended.said


def with_aggregate() -> dict[str, Any]:
    spec = masked_policy()
    del spec["columns"]["cell"]
    spec["columns"] |= {"lat": {"role": "exclude"}, "lon": {"role": "exclude"}}
    return spec | {"steps": [{"technique": "aggregate", "columns": ["city", "sex"], "means": ["visits"]}]}


def test_an_unknown_technique_is_refused_with_its_place(tmp_path: Path) -> None:
    spec = masked_policy()
    spec["columns"]["age"]["steps"] = [{"technique": "rond", "to": 10}]
    ended = dataset(tmp_path, spec).run(sabotage=Keyed())
    assert ended.exit_code == 2, ended.said
    assert "columns.age.steps" in ended.sentence and "did you mean round" in ended.sentence


def test_a_large_table_is_masked_in_the_engine_as_it_would_be_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anon_pipeline.engine.duckdb import DuckDBEngine
    from anon_pipeline.pipeline import masking
    from anon_pipeline.pipeline.step import Run
    from anon_pipeline.spec import ReleaseSpec

    spec = policy()
    frame = everyone(2_000)[["age", "city", "sex", "ill", "visits"]].assign(day=pd.Timestamp("2024-02-29"))
    frame["note"] = frame["city"]
    frame.loc[::7, ["city", "note"]] = None
    redacted = [{"technique": "keep_format"}, {"technique": "redact", "missing": True}]  # shows missing values too
    spec["columns"]["note"] = {"role": "insensitive", "type": "categorical", "steps": redacted}
    spec["columns"]["age"]["steps"] = [{"technique": "round", "to": 10}, {"technique": "top_bottom_code", "top": 60}]
    spec["columns"]["city"]["steps"] = [{"technique": "replace", "pattern": "[aeiou]", "by": "."}]
    spec["columns"]["day"] = {
        "role": "quasi_identifier",
        "type": "date",
        "steps": [{"technique": "truncate_date", "to": "year"}],
    }
    loaded = ReleaseSpec.load(write_dataset(tmp_path / "people", frame, spec))
    engine, stored = DuckDBEngine(tmp_path), tmp_path / "stored.parquet"
    source = engine.store_source(loaded, stored)
    plan, secrets = masking.planned(loaded, source.types())
    run = Run(loaded, Home(tmp_path / "home"), engine)
    found = []
    for place in ("memory", "engine"):
        made = tmp_path / f"{place}.parquet"
        reports, maps = masking.mask(run, plan, secrets, source, stored, made)
        assert [report.technique for report in reports] == [
            *("round", "top_bottom_code", "replace"),
            *("keep_format", "redact", "truncate_date"),
        ]
        assert maps == []
        assert all(cost.changed > 0 for report in reports for cost in report.costs.values())
        found.append(engine.describe(made, loaded, plan.types_after))
        monkeypatch.setattr(masking, "SAMPLE", 100)
    assert found[0] == found[1]
    assert found[0].rows == 2_000


# The commands


def test_masking_alone_writes_for_its_owner_and_says_that_it_protects_nobody(tmp_path: Path) -> None:
    place, out = dataset(tmp_path), tmp_path / "masked.csv"
    ended = run(place, "mask", place.dataset, "--out", out)
    assert ended.exit_code == 0, ended.said
    assert "nobody here is k-anonymous by that alone" in " ".join(ended.stderr.split())
    table, source = pd.read_csv(out, dtype=str), everyone()
    assert set(table) == RELEASED
    assert len(table) == len(source)
    assert not set(table["customer"]) & set(source["customer"])
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [path.name for path in place.home.private_folder("mask").iterdir()] == ["lock"]  # which is empty
    assert not list(place.home.releases.iterdir())
    again = run(place, "mask", place.dataset, "--out", out)
    assert (again.exit_code, "exists already" in again.sentence) == (2, True)
    write_dataset(place.dataset, source.sample(frac=1, random_state=6), masked_policy())
    assert run(place, "mask", place.dataset, "--out", tmp_path / "again.csv").exit_code == 0
    assert (tmp_path / "again.csv").read_bytes() == out.read_bytes()


@pytest.mark.parametrize(("choice", "left"), [(None, 400), ("release", 400), ("leave_out", 393)])
def test_masking_alone_asks_nobody_for_a_target(
    choice: str | None, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is learnt there, so that only a spec that leaves such people out changes who is in the table."""
    monkeypatch.setenv("MASKING_KEY", KEY)
    monkeypatch.setenv("MASKING_DRAWS", DRAWS)
    table = everyone()
    table.loc[:6, "ill"] = None
    spec = masked_policy() | ({"missing_target": choice} if choice else {})
    folder = write_dataset(tmp_path / "people", table, spec)
    home = Home(tmp_path / "home").prepare()
    assert mask_source(ReleaseSpec.load(folder), home, tmp_path / "masked.csv").rows == left
    assert pd.read_csv(tmp_path / "masked.csv")["ill"].isna().sum() == left - 393


def test_masking_alone_makes_a_table_of_groups_too(tmp_path: Path) -> None:
    place, out = dataset(tmp_path, with_aggregate()), tmp_path / "groups.parquet"
    ended = run(place, "mask", place.dataset, "--out", out, "--json")
    assert ended.exit_code == 0, ended.said
    assert json.loads(ended.stdout)["groups"]
    table = pd.read_parquet(out)
    assert list(table) == ["city", "sex", "people", "mean_visits"]
    assert table["people"].sum() == 400 and table["people"].min() >= 10
    assert "table of groups" in " ".join(ended.stderr.split())


@pytest.mark.parametrize(
    ("change", "out", "said"),
    [
        ({}, "masked.txt", "neither in .csv nor in .parquet"),
        ({"steps": [{"technique": "aggregate", "columns": ["email"]}]}, "a.csv", "which the spec keeps back"),
        ({}, "nowhere/a.csv", "cannot be written"),
    ],
    ids=["no format", "an excluded column in groups", "no folder"],
)
def test_masking_refuses_with_a_sentence(tmp_path: Path, change: dict[str, Any], out: str, said: str) -> None:
    place = dataset(tmp_path, with_aggregate() | change)
    ended = run(place, "mask", place.dataset, "--out", tmp_path / out)
    assert (ended.exit_code, said in ended.sentence) == (2, True), ended.said
    assert not (tmp_path / out).exists()


def test_masking_a_spec_without_steps(tmp_path: Path) -> None:
    place = Place(Home(tmp_path / "home"), write_dataset(tmp_path / "plain"))
    ended = run(place, "mask", place.dataset, "--out", tmp_path / "a.csv")
    assert (ended.exit_code, "nothing to mask" in ended.sentence) == (2, True)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_tokens_of_a_release_are_turned_back_by_who_holds_the_key(
    released: Place, tmp_path: Path, suffix: str
) -> None:
    table, out = released.release / "data.parquet", tmp_path / f"named.{suffix}"
    if suffix == "csv":
        frame = pd.read_parquet(table)
        table = tmp_path / "data.csv"
        frame.assign(code="007").to_csv(table, index=False)
    ended = run(released, "reveal", table, "--spec", released.dataset, "--column", "customer", "--out", out)
    assert ended.exit_code == 0, ended.said
    assert ended.stdout == ""
    named = pd.read_parquet(out) if suffix == "parquet" else pd.read_csv(out, dtype=str)
    assert sorted(named["customer"]) == sorted(everyone()["customer"])
    assert suffix == "parquet" or set(named["code"]) == {"007"}  # texts stay as they were read
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [file.name for file in out.parent.iterdir() if file.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("column", "keys", "said"),
    [
        ("customer", Keyed(key=OTHER), "was not made by the key"),
        ("customer", Keyed(key=None), "MASKING_KEY is not set"),
        ("age", Keyed(), "does not encrypt it"),
        ("nobody", Keyed(), "has no column nobody"),
    ],
    ids=["another key", "no key", "not encrypted", "no such column"],
)
def test_revealing_refuses_with_a_sentence(
    released: Place, tmp_path: Path, column: str, keys: Keyed, said: str
) -> None:
    out = tmp_path / "named.csv"
    table = released.release / "data.parquet"
    ended = run(released, "reveal", table, "--spec", released.dataset, "--column", column, "--out", out, keys=keys)
    assert (ended.exit_code, said in ended.sentence) == (2, True), ended.said
    assert not out.exists()


def test_the_techniques_are_listed(tmp_path: Path) -> None:
    from anon_pipeline.masking.catalog import TECHNIQUES

    home = tmp_path / "home"
    listed = json.loads(command("steps", "--json", home=home).stdout)["techniques"]
    assert [row["technique"] for row in listed] == list(TECHNIQUES)
    for row in listed:
        assert row["meaning"] and row["use_when"] and row["guarantee"] in ("none", "k", "local DP")
    one = command("steps", "round", home=home)
    assert one.exit_code == 0
    assert "to: number > 0" in one.stdout and "guarantee  none" in one.stdout
    wrong = command("steps", "rond", home=home)
    assert (wrong.exit_code, "did you mean round" in wrong.sentence) == (2, True)


def test_the_example_of_the_police_can_be_read() -> None:
    from anon_pipeline.masking.plan import plan_steps
    from anon_pipeline.spec import ColumnType, ReleaseSpec

    folder = Path(__file__).parents[2] / "data/police"
    spec = ReleaseSpec.load(folder)
    types = {name: column.type or ColumnType.CATEGORICAL for name, column in spec.columns.items()}
    columns: Any = {name: column.steps for name, column in spec.columns.items() if column.steps}
    tables: Any = spec.steps
    assert len(plan_steps(types, columns, tables, folder).steps) == 15
    assert yaml.safe_load((folder / "release.yaml").read_text())["source"] == {"path": "stops.parquet"}
