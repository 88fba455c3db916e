"""A new dataset: its table named or copied, of every kind that can be read, and nothing overwritten."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

from anon_pipeline.cli.tables import show_new_dataset
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import data_folder
from anon_pipeline.profiling.new_dataset import DatasetRequest, dataset_name, start_dataset
from anon_pipeline.spec import ReleaseSpec, Source
from anon_pipeline_tests.end_to_end.harness import people


def csv(folder: Path) -> Source:
    people().to_csv(folder / "people.csv", index=False)
    return Source(path="people.csv")


def semicolons_of_latin_1(folder: Path) -> Source:
    people().replace("Cork", "Córk").to_csv(folder / "people.csv", index=False, sep=";", encoding="latin-1")
    return Source(path="people.csv", delimiter=";", encoding="latin-1")


def parquet_folder(folder: Path) -> Source:
    (folder / "people/2024").mkdir(parents=True)
    people(200).to_parquet(folder / "people/a.parquet")
    people(200, seed=2).to_parquet(folder / "people/2024/b.parquet")
    return Source(path="people")


def sqlite(folder: Path) -> Source:
    with sqlite3.connect(folder / "people.sqlite") as database:
        people().to_sql("people", database, index=False)
    return Source(path="people.sqlite", query="SELECT * FROM people WHERE age > 0")


def duckdb_file(folder: Path) -> Source:
    frame = people()  # noqa: F841 (DuckDB finds it)
    with duckdb.connect(folder / "people.duckdb") as database:
        database.execute("CREATE TABLE people AS FROM frame")
    return Source(path="people.duckdb", query="FROM people")


KINDS: list[Callable[[Path], Source]] = [csv, semicolons_of_latin_1, parquet_folder, sqlite, duckdb_file]


def settle(file: Path) -> ReleaseSpec:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("target: decide", "target: ill").replace("{role: decide", "{role: sensitive"))
    return ReleaseSpec.load(file)


@pytest.mark.long
@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_table_cannot_be_stored_once_its_draft_is_decided(
    kind: Callable[[Path], Source], copy: bool, engine: DuckDBEngine, tmp_path: Path
) -> None:
    source = kind(tmp_path)
    data = tmp_path / "data"
    made = start_dataset(engine, DatasetRequest("people", tmp_path / source.path, copy, source), data)
    assert made.file == data / "people/release.yaml"
    assert [one.place for _, one in made.open] == ["target", "columns.ill.role"]
    spec = settle(made.file)
    assert spec.source.path == (source.path if copy else f"../../{source.path}")
    assert engine.store_source(spec, tmp_path / "stored.parquet").rows == 400


def test_a_copy_can_be_read_by_others_or_differs(engine: DuckDBEngine, tmp_path: Path) -> None:
    csv(tmp_path)
    (tmp_path / "people.csv").chmod(0o644)
    start_dataset(engine, DatasetRequest("people", tmp_path / "people.csv", copy=True), tmp_path / "data")
    copy = tmp_path / "data/people/people.csv"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert copy.read_bytes() == (tmp_path / "people.csv").read_bytes()
    assert sorted(file.name for file in copy.parent.iterdir()) == ["people.csv", "release.yaml"]


def test_a_copied_folder_can_be_read_by_others(engine: DuckDBEngine, tmp_path: Path) -> None:
    parquet_folder(tmp_path)
    start_dataset(engine, DatasetRequest("people", tmp_path / "people", copy=True), tmp_path / "data")
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "data/people/people").rglob("*.parquet")}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "data/people/people").stat().st_mode) == 0o700


def test_a_table_in_its_folder_is_copied_onto_itself(engine: DuckDBEngine, tmp_path: Path) -> None:
    place = tmp_path / "data/people"
    place.mkdir(parents=True)
    csv(place)
    before = (place / "people.csv").read_bytes()
    made = start_dataset(engine, DatasetRequest("people", place / "people.csv", copy=True), tmp_path / "data")
    assert settle(made.file).source.path == "people.csv"
    assert (place / "people.csv").read_bytes() == before


def test_a_target_that_was_named_is_asked_for(
    engine: DuckDBEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ages = pd.DataFrame({"age": [20 + i % 40 for i in range(400)], "x": [i % 2 for i in range(400)]})
    ages.to_csv(tmp_path / "people.csv", index=False)
    made = start_dataset(engine, DatasetRequest("people", tmp_path / "people.csv", target="x"), tmp_path / "data")
    assert not made.open
    assert ReleaseSpec.load(made.file).target == "x"
    assert "stands on a line; it stands on none." in made.file.read_text()
    show_new_dataset("people", made)
    assert "no line is left open, but read each: a reason stands above each column\n" in capsys.readouterr().out


@pytest.mark.long
def test_lines_in_a_pipe_end_with_blanks(
    engine: DuckDBEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were as long as the longest line of the table of roles."""
    names = {f"column_of_a_long_name_[{number}]": [number + i % 40 for i in range(400)] for number in range(12)}
    pd.DataFrame(names | {"x": [i % 2 for i in range(400)], "one": 1}).to_csv(tmp_path / "people.csv", index=False)
    made = start_dataset(engine, DatasetRequest("people", tmp_path / "people.csv", target="x"), tmp_path / "data")
    show_new_dataset("people", made)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "people: 400 rows"
    assert [line for line in lines if line != line.rstrip()] == []
    assert "sensitive         x" in lines
    assert "insensitive       one" in lines


def test_a_policy_is_overwritten(engine: DuckDBEngine, tmp_path: Path) -> None:
    csv(tmp_path)
    made = start_dataset(engine, DatasetRequest("people", tmp_path / "people.csv"), tmp_path / "data")
    made.file.write_text("decided: by a person")
    with pytest.raises(InputError, match="exists already, and a policy is not overwritten"):
        start_dataset(engine, DatasetRequest("people", tmp_path / "people.csv", copy=True), tmp_path / "data")
    assert made.file.read_text() == "decided: by a person"
    assert [file.name for file in made.file.parent.iterdir()] == ["release.yaml"]


@pytest.mark.parametrize("name", ["People", "../people", "2024", "", "a-b", "a\n", "spec/x"])
def test_a_name_that_is_none_makes_a_folder(name: str, engine: DuckDBEngine, tmp_path: Path) -> None:
    csv(tmp_path)
    with pytest.raises(InputError, match="is no name of a dataset"):
        start_dataset(engine, DatasetRequest(name, tmp_path / "people.csv"), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_dataset_is_called_as_published_statistics_are(engine: DuckDBEngine, tmp_path: Path) -> None:
    csv(tmp_path)
    with pytest.raises(InputError, match="choose one that does not end in _statistics"):
        start_dataset(engine, DatasetRequest("people_statistics", tmp_path / "people.csv"), tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no such file or folder"),
        ("", "is empty"),
        ("a,b\n", "the table is empty"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields where the first line has 2"),
        ("a,b\n1\n3\n", "do not all have the fields of its header"),
    ],
)
def test_a_table_that_cannot_be_read_leaves_a_folder_behind(
    content: str | None, sentence: str, engine: DuckDBEngine, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "people.csv").write_text(content)
    with pytest.raises(InputError, match=sentence) as error:
        start_dataset(engine, DatasetRequest("people", tmp_path / "people.csv"), tmp_path / "data")
    assert "people.csv" in str(error.value)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Kunden 2024.csv", "kunden_2024"),
        ("2024.csv.gz", "data_2024"),
        ("Ä.csv", "data"),
        ("people.parquet", "people"),
        ("a_statistics.csv", "a"),
    ],
)
def test_a_file_gives_another_name_or_none_that_a_spec_may_have(file: str, name: str) -> None:
    assert dataset_name(Path(file)) == name


def test_datasets_are_looked_for_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANON_PIPELINE_DATA", raising=False)
    assert data_folder() == Path("data")
    monkeypatch.setenv("ANON_PIPELINE_DATA", str(tmp_path))
    assert data_folder() == tmp_path


@pytest.mark.long
@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_columns_that_differ_by_capitals_end_init(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    """They are proposed as two, the second under a name of its own, which a note says."""
    frame = people().rename(columns={"sex": "City"})
    frame.to_csv(tmp_path / name, index=False) if name.endswith("csv") else frame.to_parquet(tmp_path / name)
    made = start_dataset(engine, DatasetRequest("people", tmp_path / name), tmp_path / "data")
    assert "# City is called City_2: another column differs" in made.file.read_text(encoding="utf-8")
    spec = settle(made.file)
    assert spec.source.rename == {"City": "City_2"}
    assert {"city", "City_2"} <= set(spec.columns)
    table = tmp_path / "stored.parquet"
    engine.store_source(spec, table)
    assert set(pq.read_table(table)["City_2"].to_pylist()) == {"f", "m"}


def test_a_name_that_stands_twice_is_told_apart(engine: DuckDBEngine, tmp_path: Path) -> None:
    """No name of the file says which of the two a new one would be for."""
    (tmp_path / "people.csv").write_text("age,city,city,ill\n" + "30,Ulm,Bonn,no\n" * 20)
    with pytest.raises(InputError, match="the columns 2 and 3 of its first line have one name"):
        start_dataset(engine, DatasetRequest("people", tmp_path / "people.csv"), tmp_path / "data")


@pytest.mark.long
def test_infinite_numbers_are_asked_about_since_no_run_takes_them(engine: DuckDBEngine, tmp_path: Path) -> None:
    """What `init` accepts in silence would end the run; the answer that it proposes lets the run go on."""
    table = people()
    table["income"] = [float("-inf"), float("inf"), *([float(number % 50) for number in range(len(table) - 2)])]
    table.to_parquet(tmp_path / "people.parquet")
    wanted = DatasetRequest("people", tmp_path / "people.parquet", target="ill")
    proposed = start_dataset(engine, wanted, tmp_path / "data")
    asked = {question.place: question.question for _, question in proposed.open}
    assert "infinite, which no run takes: write [-inf, inf]" in asked["columns.income.missing"]
    answered = proposed.file.read_text(encoding="utf-8").replace("missing: decide", "missing: [-inf, inf]")
    proposed.file.write_text(answered.replace("{role: decide", "{role: sensitive"))
    spec = ReleaseSpec.load(proposed.file)
    engine.store_source(spec, tmp_path / "stored.parquet")
    assert pd.read_parquet(tmp_path / "stored.parquet")["income"].isna().sum() == 2
