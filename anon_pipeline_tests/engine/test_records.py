"""Fields within records are columns of their own, in every format that has records, or are refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.first_look import first_look
from anon_pipeline.engine.records import _field, fields_of, is_record
from anon_pipeline.engine.spark import SparkEngine
from anon_pipeline.errors import InputError
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset
from anon_pipeline.spec import ReleaseSpec, Source
from anon_pipeline.spec.source import path_of, path_parts
from anon_pipeline_tests.engine.test_sources import QI, refused, stored
from anon_pipeline_tests.lake import write_delta, write_iceberg
from anon_pipeline_tests.people import write_spec

PEOPLE = [
    {"age": 30, "home": {"town": "Ulm", "post.code": "007", "at": {"floor": 2}}, "seen": [1, 2], "t": "a"},
    {"age": 40, "home": None, "seen": None, "t": "b"},
    {"age": 50, "home": {"town": None, "post.code": "010", "at": None}, "seen": [3], "t": "a"},
]
PATHS = {"town": "home.town", "code": 'home."post.code"', "floor": "home.at.floor"}
COLUMNS = {"age": QI, "home": "exclude", "seen": "exclude", "town": QI, "code": QI, "floor": QI}


def written(folder: Path, name: str) -> str:
    table, path = pa.Table.from_pylist(PEOPLE), folder / name
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(person) + "\n" for person in PEOPLE))
    elif name.endswith(".arrow"):
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif name.endswith(".db"):
        with duckdb.connect(str(path)) as database:
            database.register("given", table)
            database.execute("CREATE TABLE people AS FROM given")
    else:
        pq.write_table(table, path)
    return name


@pytest.mark.parametrize("name", ["people.parquet", "people.jsonl", "people.arrow", "people.db"])
def test_a_field_of_a_record_is_a_column(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    _, table = stored(engine, tmp_path, COLUMNS, written(tmp_path, name), source={"paths": PATHS})
    people = table.sort_by("age").to_pydict()
    assert people["town"] == ["Ulm", None, None]
    assert people["code"] == ["007", None, "010"]
    assert people["floor"] == [2, None, None]
    assert "home" not in people


@pytest.mark.long
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_field_of_a_record_in_a_table_with_states_is_a_column(
    engine: DuckDBEngine, tmp_path: Path, kind: str
) -> None:
    table = pa.Table.from_pylist(PEOPLE)
    if kind == "delta":
        write_delta(tmp_path / "people", table)
        place = "people"
    else:
        place = str(write_iceberg(tmp_path / "lake", table)[0])
    source = {"path": None, kind: place, "paths": PATHS}
    _, people = stored(engine, tmp_path, COLUMNS, source=source)
    assert people.sort_by("age")["code"].to_pylist() == ["007", None, "010"]


def test_both_engines_read_the_same_fields(quick_spark: None, tmp_path: Path) -> None:
    spec = write_spec(
        tmp_path, {**COLUMNS, "t": "sensitive"}, written(tmp_path, "people.parquet"), source={"paths": PATHS}
    )
    engines = (SparkEngine(tmp_path / "spill", "1GB", 2), DuckDBEngine(tmp_path / "spill"))
    hashes = [one.store_source(spec, tmp_path / "stored.parquet").content_hash for one in engines]
    assert hashes[0] == hashes[1]


@pytest.mark.long
def test_fields_are_looked_at_by_conditions_and_before_any_work(engine: DuckDBEngine, tmp_path: Path) -> None:
    source = {"paths": PATHS, "where": "floor = 2 OR town IS NULL"}
    facts, _ = stored(engine, tmp_path, COLUMNS, written(tmp_path, "people.parquet"), source=source)
    assert facts.rows == 3
    for name in ("people.parquet", "people.db"):
        written(tmp_path, name) if not (tmp_path / name).exists() else None
        assert first_look(write_spec(tmp_path, {**COLUMNS, "t": "sensitive"}, name, source=source)).rows == 3


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        ({"x": "hom.town"}, "source.paths.x: people.parquet has no column hom; did you mean home? correct"),
        ({"x": "home.twon"}, "home of people.parquet has no field twon; did you mean town? correct"),
        ({"x": "home.town.street"}, "source.paths.x: home.town is no record; name a field"),
        ({"x": "age.years"}, "source.paths.x: age is no record"),
        ({"x": "seen.l"}, "source.paths.x: seen is a list, of which a person may have several"),
        ({"x": "home.at"}, "source.paths.x: ends at a record; go on to one of its fields, as in home.at.city"),
        ({"Age": "home.town"}, "source.paths.Age: people.parquet has a column of that name already"),
        ({"x": "home.town", "X": "home.at.floor"}, "source.paths.X: people.parquet has a column of that name"),
    ],
)
def test_a_path_that_leads_nowhere_is_told(
    engine: DuckDBEngine, tmp_path: Path, paths: dict[str, str], sentence: str
) -> None:
    columns = {"age": QI, "home": "exclude", "seen": "exclude"}
    written(tmp_path, "people.parquet")
    assert sentence in refused(engine, tmp_path, columns, name="people.parquet", source={"paths": paths})


def test_a_record_without_a_path_is_refused_with_the_remedy(engine: DuckDBEngine, tmp_path: Path) -> None:
    said = refused(
        engine,
        tmp_path,
        {"age": QI, "home": QI, "seen": "exclude"},
        name=written(tmp_path, "people.parquet"),
    )
    assert "columns.home: holds records; exclude it, and name what is needed of it under source.paths" in said


@pytest.mark.long
@given(st.lists(st.text(min_size=1, max_size=6), min_size=2, max_size=4))
def test_any_names_can_stand_on_a_path(names: list[str]) -> None:
    assert path_parts(path_of(names)) == tuple(names)


@pytest.mark.parametrize("path", ["", "town", "home.", ".town", "home..town", 'home."town', 'home."a"b', '"home.town"'])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="is a column and fields within it"):
        Source(path="people.parquet", paths={"x": path})


def test_a_plain_column_has_no_fields() -> None:
    assert fields_of("age", "BIGINT") == []


def test_fields_are_listed_without_those_in_lists() -> None:
    storage = (
        'STRUCT(town VARCHAR, "post.code" VARCHAR, seen INTEGER[], "at" STRUCT(floor INTEGER, m MAP(VARCHAR, INT)))'
    )
    assert fields_of("home", storage) == ["home.town", 'home."post.code"', "home.at.floor"]


@pytest.mark.long
def test_a_proposed_spec_reads_the_fields(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Under their own names or, where a column or another field has that, under their paths."""
    people: list[dict[str, Any]] = [
        {"age": 20 + i % 9, "home": {"town": "uvw"[i % 3], "age": i % 4}, "work": {"city": "xy"[i % 2]}, "left": i % 2}
        for i in range(200)
    ]
    pq.write_table(pa.Table.from_pylist(people), tmp_path / "people.parquet")
    made = start_dataset(engine, DatasetRequest("people", tmp_path / "people.parquet"), tmp_path / "data")
    text = made.file.read_text()
    for place in (made.profile.target or "left",):
        text = text.replace("target: decide", f"target: {place}").replace("{role: decide", "{role: sensitive")
    made.file.write_text(text)
    spec = ReleaseSpec.load(made.file)
    assert spec.source.paths == {"town": "home.town", "home_age": "home.age", "city": "work.city"}
    assert spec.columns["home"].role == "exclude" and spec.columns["town"].role == QI
    assert engine.store_source(spec, tmp_path / "stored.parquet").rows == 200


STORAGE = {
    "age": "BIGINT",
    "seen": "BIGINT[]",
    "home": "STRUCT(town VARCHAR, seen INTEGER[], three INTEGER[3], m MAP(VARCHAR, INTEGER), "
    'either UNION(a INTEGER, b VARCHAR), "at" STRUCT(floor INTEGER), visits STRUCT(day DATE)[])',
}
SEVERAL, ENDS_AT_LIST = "is a list, of which a person may have several", "ends at a list, of which a person may have"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("home.town", "struct_extract(\"home\", 'town')"),
        ("home.at.floor", "struct_extract(struct_extract(\"home\", 'at'), 'floor')"),
        ("home.seen", f"source.paths.x: {ENDS_AT_LIST}"),
        ("home.three", f"source.paths.x: {ENDS_AT_LIST}"),
        ("home.m", f"source.paths.x: {ENDS_AT_LIST}"),
        ("home.either", f"source.paths.x: {ENDS_AT_LIST}"),
        ("home.visits", f"source.paths.x: {ENDS_AT_LIST}"),
        ("home.visits.day", f"source.paths.x: home.visits {SEVERAL}"),
        ("home.m.key", f"source.paths.x: home.m {SEVERAL}"),
        ("seen.l", f"source.paths.x: seen {SEVERAL}"),
        ("home.at", "source.paths.x: ends at a record; go on to one of its fields, as in home.at.city"),
        ("home.town.x", "source.paths.x: home.town is no record"),
        ("age.x", "source.paths.x: age is no record"),
        ("home.Town", "source.paths.x: home of p has no field Town"),
        ("work.town", "source.paths.x: p has no column work"),
    ],
)
def test_a_path_ends_at_a_plain_field(path: str, told: str) -> None:
    if told.startswith("struct"):
        assert _field(STORAGE, "x", path_parts(path), "p") == told
        return
    with pytest.raises(InputError) as refusal:
        _field(STORAGE, "x", path_parts(path), "p")
    assert str(refusal.value).startswith(told)


def test_a_list_of_records_is_no_record() -> None:
    kinds = ["STRUCT(a INTEGER)", "STRUCT(a INTEGER)[]", "STRUCT(a INTEGER)[3]", "INTEGER", "INTEGER[]"]
    assert [kind for kind in kinds if is_record(kind)] == kinds[:1]
    assert fields_of("home", STORAGE["home"]) == ["home.town", "home.at.floor"]
