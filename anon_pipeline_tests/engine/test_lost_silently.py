"""Nothing of a source, and nothing that a spec says of it, is passed over without a word."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine import databases
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.sources import as_that_kind, opened
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Source
from anon_pipeline_tests.engine.test_sources import QI, refused, stored, write
from anon_pipeline_tests.people import write_spec

PICTURE = b"\x89PNG\xff"


def sqlite(folder: Path, values: list[Any]) -> str:
    """A database of one person per value of `x`."""
    with closing(sqlite3.connect(folder / "people.sqlite")) as database:
        database.execute("CREATE TABLE people (x, age INTEGER, t TEXT)")
        rows = [(value, 30 + place, "ill" if place % 2 else "well") for place, value in enumerate(values)]
        database.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        database.commit()
    return "people.sqlite"


# ------------------------------------------------------------------ bytes in SQLite


@pytest.mark.parametrize("rows_at_once", [1, 50])
@pytest.mark.parametrize("values", [[1, 2, (3).to_bytes(8, "little")], ["Köln", PICTURE, None], [b"", b"a", b"b"]])
def test_bytes_of_sqlite_are_no_missing_values(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[Any], rows_at_once: int
) -> None:
    """A user's accident: numpy's whole numbers are stored as bytes, and everybody's age was missing in the release."""
    monkeypatch.setattr(databases, "SQLITE_ROWS", rows_at_once)
    name = sqlite(tmp_path, values)
    message = refused(engine, tmp_path, {"x": QI, "age": QI}, name=name)
    assert message.startswith("columns.x: holds BLOB values; flatten or exclude it, or store texts or numbers")


def test_a_column_of_bytes_may_be_left_out_and_asked_about(engine: DuckDBEngine, tmp_path: Path) -> None:
    name = sqlite(tmp_path, ["Köln", PICTURE, None, PICTURE])
    facts, _ = stored(engine, tmp_path, {"x": "exclude", "age": QI}, name, source={"where": "x IS NOT NULL"})
    assert facts.rows == 3


def test_noisy_answers_tell_nothing_of_the_bytes_of_one_person(tmp_path: Path) -> None:
    """An attacker who knows all others: were the source refused for one value, that would tell of the value."""
    spec = write_spec(
        tmp_path, {"x": {"role": QI, "type": "numeric"}, "t": "sensitive"}, sqlite(tmp_path, [1, PICTURE])
    )
    with closing(duckdb.connect()) as connection, opened(connection, spec, tmp_path, by_itself=True) as source:
        values = {row[0] for row in connection.execute(f"SELECT x FROM {source.relation}").fetchall()}
    assert values == {"1", databases.NO_TEXT}


def test_a_proposed_spec_says_that_a_column_holds_bytes(engine: DuckDBEngine, tmp_path: Path) -> None:
    name = sqlite(tmp_path, [PICTURE, b"other"])
    survey = engine.survey(Source(path=name), tmp_path / name)
    assert {column.name: (column.storage, column.present) for column in survey.columns}["x"] == ("BLOB", 2)


# ------------------------------------------------------------------ keys of text files

STATED: dict[str, dict[str, Any]] = {
    "skip": {"skip": 1},
    "header": {"header": 2},
    "names": {"header": 0, "names": ["x", "t"]},
    "delimiter": {"delimiter": ";"},
    "encoding": {"encoding": "latin-1"},
}


def table(folder: Path, kind: str) -> str:
    name = f"people.{kind}"
    rows = pa.table({"x": [1, 2, 3], "t": ["ill", "well", "ill"]})
    if kind == "sqlite":
        with closing(sqlite3.connect(folder / name)) as database:
            rows.to_pandas().to_sql("people", database, index=False)
    elif kind == "parquet":
        write(folder, name, rows)
    elif kind == "folder":
        (folder / name).mkdir()
        write(folder / name, "a.parquet", rows)
    elif kind == "arrow":
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
    else:
        write(folder, name, "".join(f'{{"x": {x}, "t": "{t}"}}\n' for x, t in ((1, "ill"), (2, "well"))))
    return name


@pytest.mark.parametrize("key", STATED)
@pytest.mark.parametrize("kind", ["parquet", "folder", "sqlite", "arrow", "jsonl"])
def test_what_is_said_of_text_files_is_not_ignored_elsewhere(
    engine: DuckDBEngine, tmp_path: Path, kind: str, key: str
) -> None:
    """A user's accident: `skip` and `names` are left from a CSV, and the Parquet file's columns are others."""
    name = table(tmp_path, kind)
    message = refused(engine, tmp_path, {"x": QI}, name=name, source=STATED[key])
    first = "header" if key == "names" else key
    assert message == f"source.{first}: is said of text files, and such a table has none; remove it"
    facts, _ = stored(engine, tmp_path, {"x": QI}, name, source={"skip": 0, "header": 1, "encoding": "UTF-8"})
    assert facts.rows in (2, 3)


@pytest.mark.parametrize("key", ["delimiter", "encoding"])
def test_a_workbook_has_lines_but_no_delimiter(engine: DuckDBEngine, tmp_path: Path, key: str) -> None:
    frame = pd.DataFrame({"x": ["as of May", "x", 1, 2], "t": ["", "t", "ill", "well"]})
    frame.to_excel(tmp_path / "people.xlsx", index=False, header=False)
    message = refused(engine, tmp_path, {"x": QI}, name="people.xlsx", source={"skip": 1} | STATED[key])
    assert message == f"source.{key}: is said of text files, and a workbook has none; remove it"
    assert stored(engine, tmp_path, {"x": QI}, "people.xlsx", source={"skip": 1})[0].rows == 2


@pytest.mark.parametrize("key", ["union_by_name", "partitions"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "sqlite"])
def test_what_is_said_of_folders_is_not_ignored_for_a_single_file(
    engine: DuckDBEngine, tmp_path: Path, kind: str, key: str
) -> None:
    """Whoever says so expects all files of a folder to be read, and one of them was."""
    name = table(tmp_path, kind) if kind != "csv" else "people.csv"
    if kind == "csv":
        write(tmp_path, name, "x,t\n1,ill\n2,well\n")
    message = refused(engine, tmp_path, {"x": QI}, name=name, source={key: True})
    assert message == f"source.{key}: is said of folders of Parquet files, and {name} is none; leave it out"
    assert stored(engine, tmp_path, {"x": QI}, name, source={key: False})[0].rows in (2, 3)


def test_a_folder_of_one_file_may_have_more_later(engine: DuckDBEngine, tmp_path: Path) -> None:
    said = {"union_by_name": True, "partitions": True}
    assert stored(engine, tmp_path, {"x": QI}, table(tmp_path, "folder"), source=said)[0].rows == 3


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_what_is_said_of_a_folder_is_left_out_for_other_tables(tmp_path: Path, name: str) -> None:
    """A population in one file beside a source in a folder."""
    pq.write_table(pa.table({"x": [1]}), tmp_path / "people.parquet")
    (tmp_path / "people.csv").write_text("x\n1\n")
    said = Source(path="people", union_by_name=True, partitions=True, decimal=",")
    other = as_that_kind(said, tmp_path / name)
    assert (other.union_by_name, other.partitions, other.decimal) == (False, False, ",")
    assert as_that_kind(said, tmp_path).union_by_name


def test_a_population_is_a_file_of_its_own_kind(engine: DuckDBEngine, tmp_path: Path) -> None:
    """What is said of the source's lines is not said of a population in Parquet."""
    write(tmp_path, "people.csv", "as of May\nx;t\n1;ill\n2;well\n")
    write(tmp_path, "everybody.parquet", pa.table({"x": [1, 1, 2]}))
    spec = write_spec(tmp_path, {"x": QI, "t": "sensitive"}, "people.csv", source={"skip": 1, "delimiter": ";"})
    types = engine.store_source(spec, tmp_path / "stored.parquet").types()
    found = engine.population_table(spec, types, "everybody.parquet")
    assert found["#people"].tolist() == [2, 1]


# ------------------------------------------------------------------ names of our own


@pytest.mark.parametrize("name", ["#position", "#People", "#class", "#history", "#key0", "#coded:x"])
def test_a_proposal_refuses_names_of_our_own_in_a_sentence(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    """A file that this program wrote for itself, or another one that marks its columns so."""
    write(tmp_path, "people.csv", f"x,{name}\n1,7\n2,8\n")
    with pytest.raises(InputError) as told:
        engine.survey(Source(path="people.csv"), tmp_path / "people.csv")
    assert str(told.value) == f"people.csv: has the column {name}, a name that is used for counting; rename it"


def test_a_condition_mixes_up_no_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "x,#kept0,t\n1,70,ill\n2,80,well\n3,90,ill\n")
    stored(engine, tmp_path, {"x": QI, "#kept0": QI}, source={"where": "x <> '3'"})
    kept = pq.read_table(tmp_path / "stored.parquet").to_pydict()
    assert (sorted(kept["x"]), sorted(kept["#kept0"])) == ([1, 2], [70, 80])
