"""`verify` looks where it is told to, believes no file for its name, and leaves nobody's rows behind."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import PRIVATE_FOLDERS, Home, sha256_of
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset
from anon_pipeline.release import ledger
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end import sabotage
from anon_pipeline_tests.end_to_end.harness import command
from anon_pipeline_tests.people import write_spec

NAMED = ["x[1].parquet", "a*.csv", "a?.csv", "age=40/b.csv", "age=40/b.parquet", "[a-z]/b.csv"]


@pytest.mark.parametrize("name", NAMED)
def test_the_table_that_is_named_is_judged_and_no_other(tmp_path: Path, name: str) -> None:
    """Beside it lies a table that holds, which a pattern or the name of a folder could be taken for."""
    safe = pd.DataFrame({"age": [40] * 10, "town": ["Ulm"] * 10})
    for place in (tmp_path, tmp_path / "a", tmp_path / "age=40"):
        place.mkdir(exist_ok=True)
        safe.to_parquet(place / "x1.parquet")
        for other in ("ab.csv", "b.csv"):
            safe.to_csv(place / other, index=False)
    unsafe = pd.DataFrame({"age": range(10), "town": ["Ulm"] * 10})
    table = tmp_path / name
    table.parent.mkdir(exist_ok=True)
    unsafe.to_parquet(table) if name.endswith("parquet") else unsafe.to_csv(table, index=False)
    ended = command("verify", table, "--quasi-identifiers", "age,town", "--k", 5, "--json", home=tmp_path / "home")
    assert ended.exit_code == 3, ended.said
    assert json.loads(ended.stdout)["classes"] == 10


@pytest.mark.parametrize("letter", ["?", "%"])
def test_a_home_that_databases_would_take_for_another_place_is_refused(tmp_path: Path, letter: str) -> None:
    spec = write_spec(tmp_path, {"age": "quasi_identifier", "t": "sensitive"}, "people.csv")
    ended = command("forget", spec.folder, tmp_path / "nobody", home=tmp_path / f"a{letter}b")
    assert ended.exit_code == 2
    assert "set ANON_PIPELINE_HOME" in ended.sentence
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release.yaml"]


@pytest.fixture
def mapped(tmp_path: Path) -> Path:
    """A table whose classes are those of a population of few, though 5 to a class."""
    random = np.random.default_rng(0)
    people = pd.DataFrame({"age": random.integers(18, 80, 60), "town": random.choice(["Ulm", "Bonn"], 60)})
    people.assign(t="yes").to_csv(tmp_path / "people.csv", index=False)
    pd.concat([people, people]).to_csv(tmp_path / "population.csv", index=False)
    roles = {"age": {"role": "quasi_identifier", "type": "numeric"}, "town": {"role": "quasi_identifier"}}
    privacy = {"k_anonymity": {"k": 5}, "k_map": {"k": 100, "population": str(tmp_path / "population.csv")}}
    write_spec(tmp_path, {**roles, "t": "sensitive"}, "people.csv", privacy=privacy)
    tree = AnonymizerTree(k=5).fit(people, np.zeros((60, 1)))
    tree.transform(people).assign(t="yes").to_parquet(tmp_path / "data.parquet", index=False)
    tree.classes_.to_parquet(tmp_path / "classes.parquet", index=False)
    return tmp_path


def verified(folder: Path) -> dict[str, object]:
    ended = command("verify", folder / "data.parquet", "--spec", folder, "--json", home=folder / "home")
    assert ended.exit_code == 3, ended.said
    (finding,) = [one for one in json.loads(ended.stdout)["findings"] if one["name"] == "k_map"]
    assert not finding["holds"]
    return finding


def test_the_verdict_tells_the_risks_beside_a_population(mapped: Path) -> None:
    """A journalist's and a marketer's by the people of the population in the box of each class.

    A prosecutor's by the rows that look alike: two classes of the class table show the same values.
    """
    asked = "verify", mapped / "data.parquet", "--spec", mapped
    risk = json.loads(command(*asked, "--json", home=mapped / "home").stdout)["risk"]
    classes, population = pd.read_parquet(mapped / "classes.parquet"), pd.read_csv(mapped / "population.csv")
    sizes = classes["class_size"].to_numpy()
    matching = np.array(
        [
            (population["age"].between(box.age_low, box.age_high) & population["town"].isin(box.town_values)).sum()
            for box in classes.itertuples()
        ]
    )
    by_record = (sizes / matching).sum() / sizes.sum()
    alike = pd.read_parquet(mapped / "data.parquet").groupby(["age", "town"], dropna=False).size()
    assert len(alike) == len(sizes) - 1
    assert risk["prosecutor"] == pytest.approx({"max": 1 / alike.min(), "mean": len(alike) / alike.sum()})
    mean = max(len(sizes) / matching.sum(), by_record)
    assert risk["journalist"] == pytest.approx({"max": 1 / matching.min(), "mean": mean})
    assert risk["marketer"] == pytest.approx({"mean": by_record})
    assert "journalist risk of being re-identified: highest " in command(*asked, home=mapped / "home").stdout
    pd.read_parquet(mapped / "classes.parquet").iloc[:1].to_parquet(mapped / "classes.parquet", index=False)
    risk = json.loads(command(*asked, "--json", home=mapped / "home").stdout)["risk"]
    assert set(risk) == {"prosecutor"}  # nobody vouches for these classes


def test_a_class_table_of_another_table_is_not_believed(mapped: Path) -> None:
    """Who puts one class of everybody beside the table would have it match everybody of the population."""
    assert "this one does not" not in str(verified(mapped)["demand"])
    classes = pd.read_parquet(mapped / "classes.parquet")
    wide = classes.assign(age_low=0, age_high=200, town_values=[["Bonn", "Ulm"]] * len(classes))
    everybody = wide.iloc[:1].assign(class_size=60)
    everybody.to_parquet(mapped / "classes.parquet", index=False)
    assert "this one does not" in str(verified(mapped)["demand"])
    wide.assign(class_size=wide["class_size"] + 95).to_parquet(mapped / "classes.parquet", index=False)
    assert "this one does not" in str(verified(mapped)["demand"])
    wide.assign(town="Ulm").to_parquet(mapped / "classes.parquet", index=False)
    assert "this one does not" in str(verified(mapped)["demand"])


def test_a_class_table_that_cannot_be_read_is_bad_input(mapped: Path) -> None:
    (mapped / "classes.parquet").write_bytes(b"PAR1 no table")
    ended = command("verify", mapped / "data.parquet", "--spec", mapped, home=mapped / "home")
    assert ended.exit_code == 2
    assert "classes.parquet" in ended.sentence


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with one release of one file."""
    home = Home(tmp_path / "home").prepare()
    folder = home.releases / "people" / "aaaa"
    folder.mkdir(parents=True)
    (folder / "data.parquet").write_text("people")
    files = {"data.parquet": {"sha256": sha256_of(folder / "data.parquet")}}
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    with home.lock("ledger"):
        ledger.append(home, "publish", "people", "aaaa", sha256_of(folder / "manifest.json"))
    return home


def test_the_report_of_an_altered_folder_is_refused(home: Home) -> None:
    (home.releases / "people" / "aaaa" / "data.parquet").write_text("others")
    ended = command("report", "aaaa", home=home.root)
    assert ended.exit_code == 3, ended.said
    assert "data.parquet was altered" in ended.sentence
    assert ended.stdout == ""


@pytest.mark.parametrize(
    "place", [".people", ".x/data.parquet", "people/.bbbb/data.parquet", "people/.x", "people/aaaa/.x", "people/aaaa/x"]
)
def test_nothing_that_was_added_is_passed_over(home: Home, place: str) -> None:
    assert command("releases", "verify", home=home.root).exit_code == 0
    file = home.releases / place
    file.parent.mkdir(exist_ok=True)
    file.write_text("somebody")
    ended = command("releases", "verify", home=home.root)
    assert ended.exit_code == 3, ended.said


@pytest.mark.parametrize("place", ["people", "people/aaaa", "people/aaaa/data.parquet", "ledger.jsonl"])
def test_what_lies_elsewhere_is_not_what_was_published(home: Home, tmp_path: Path, place: str) -> None:
    link, elsewhere = home.releases / place, tmp_path / "elsewhere"
    link.rename(elsewhere)
    link.symlink_to(elsewhere)
    ended = command("releases", "verify", home=home.root)
    assert ended.exit_code == 3, ended.said
    assert place in ended.sentence or "data.parquet is a link" in ended.sentence


def _temporary_files_in(folder: Path, die: bool) -> None:
    """Where a command keeps temporary files; it dies, or not, as soon as the table is imported."""
    import tempfile

    from anon_pipeline.privacy import verdict

    tempfile.tempdir = str(folder)
    if die:
        verdict.verify_by_columns = lambda *_: sabotage.die()  # type: ignore[assignment]


def test_a_killed_command_leaves_nobodys_rows_once_another_starts(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    pd.DataFrame({"age": [40] * 10, "name": ["Quackenbush"] * 10}).to_csv(tmp_path / "a.csv", index=False)
    arguments = ("verify", tmp_path / "a.csv", "--quasi-identifiers", "age", "--k", 5)

    there = partial(partial, _temporary_files_in, tmp_path / "temporary")

    def rows_of_people() -> list[Path]:
        return list((tmp_path / "temporary").rglob("*.parquet"))

    killed = command(*arguments, home=tmp_path / "home", sabotage=there(die=True))
    assert killed.exit_code < 0
    assert rows_of_people()
    assert command(*arguments, home=tmp_path / "home", sabotage=there(die=False)).exit_code == 0
    assert rows_of_people() == []


@pytest.mark.parametrize("name", sorted(PRIVATE_FOLDERS))
def test_no_dataset_has_the_name_of_a_folder_of_the_private_zone(
    tmp_path: Path, engine: DuckDBEngine, name: str
) -> None:
    (tmp_path / "release.yaml").write_text(f"dataset: {name}\n")
    with pytest.raises(InputError, match="folder of the private zone"):
        ReleaseSpec.load(tmp_path)
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    with pytest.raises(InputError, match="folder of the private zone"):
        start_dataset(engine, DatasetRequest(name, tmp_path / "t.csv"), tmp_path / "data")


def test_no_dataset_shares_a_folder_with_the_private_zone(tmp_path: Path) -> None:
    """What the commands make of any such name (see the test above)."""
    name = "keys"
    (tmp_path / "release.yaml").write_text(f"dataset: {name}\n")
    ended = command("run", tmp_path, home=tmp_path / "home")
    assert ended.exit_code == 2
    assert "folder of the private zone" in ended.sentence
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    ended = command("init", name, "--from", tmp_path / "t.csv", home=tmp_path / "home")
    assert ended.exit_code == 2
    assert "folder of the private zone" in ended.sentence


def test_no_dataset_shares_a_folder_with_published_statistics(tmp_path: Path) -> None:
    (tmp_path / "release.yaml").write_text("dataset: clinic_statistics\n")
    ended = command("run", tmp_path, home=tmp_path / "home")
    assert ended.exit_code == 2
    assert "what the published statistics of 'clinic' are called" in ended.sentence
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    ended = command("init", "clinic_statistics", "--from", tmp_path / "t.csv", home=tmp_path / "home")
    assert ended.exit_code == 2
    assert "the name of published statistics" in ended.sentence


@pytest.mark.parametrize(("answers", "exit_code"), [([], 3), (["hiv"], 0)])
def test_a_missing_value_is_no_second_value_unless_the_spec_says_so(
    tmp_path: Path, answers: list[str], exit_code: int
) -> None:
    """Nine with HIV and one of whom nothing is told: who is found there has HIV, or is the one."""
    told = pd.DataFrame({"age": [40] * 10 + [50] * 10, "hiv": ["yes"] * 9 + [None] + ["yes", "no"] * 5, "t": "x"})
    told.to_csv(tmp_path / "people.csv", index=False)
    hiv = {"role": "sensitive", "missing_is_a_value": True} if answers else "sensitive"
    roles = {"age": {"role": "quasi_identifier", "type": "numeric"}, "hiv": hiv, "t": "insensitive"}
    privacy = {"k_anonymity": {"k": 10}, "l_diversity": {"column": "hiv", "l": 2, "kind": "distinct"}}
    spec = write_spec(tmp_path, roles, "people.csv", privacy=privacy)
    ended = command("verify", tmp_path / "people.csv", "--spec", spec.folder, home=tmp_path / "home")
    assert ended.exit_code == exit_code, ended.said


@pytest.mark.parametrize(("name", "ending"), [("#people", "parquet"), ("#people", "csv"), ("#Class", "parquet")])
def test_a_table_says_of_no_row_how_many_people_it_is(tmp_path: Path, name: str, ending: str) -> None:
    """A publisher hands in one row a person and a column by which each row counts as a thousand: k = 10 was said to
    hold, by columns and by a spec, which did not tell of the column either."""
    people = pd.DataFrame({"age": range(50), "t": ["yes", "no"] * 25, name: [1000] * 50})
    table = tmp_path / f"people.{ending}"
    people.to_parquet(table) if ending == "parquet" else people.to_csv(table, index=False)
    write_spec(tmp_path, {"age": "quasi_identifier", "t": "sensitive"}, "people.csv")
    for judged_by in (("--quasi-identifiers", "age", "--k", 10), ("--spec", tmp_path)):
        ended = command("verify", table, *judged_by, home=tmp_path / "home")
        assert ended.exit_code == 2, ended.said
        assert f"has the column {name}, a name that is used for counting" in ended.sentence
