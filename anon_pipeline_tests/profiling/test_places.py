"""A spec that is proposed for an address, a table with states or a server names it as such, and reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from anon_pipeline.cli import app
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.profiling.places import keys_of_place, kind_of_server, seen_from
from anon_pipeline.spec import Source
from anon_pipeline_tests.lake import write_delta, write_iceberg
from anon_pipeline_tests.object_store import ObjectStore

PEOPLE = pa.table(
    {
        "age": [20 + number % 40 for number in range(200)],
        "town": [("Cork", "Delft", "Köln")[number % 3] for number in range(200)],
        "ill": [("no", "yes")[number % 2] for number in range(200)],
    }
)
CSV = "age;pay;ill\n" + "\n".join(f"{20 + n % 40};1.{n % 900:03},50;{'yes' if n % 3 else 'no'}" for n in range(200))


def proposed(*arguments: str) -> dict[str, object]:
    """The section `source` of what `profile` writes to its output."""
    ended = CliRunner().invoke(app, ["profile", *arguments], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    source = yaml.safe_load(ended.stdout)["source"]
    assert isinstance(source, dict)
    return source


def rows(source: dict[str, object], folder: Path, scratch: Path) -> int:
    said = Source.model_validate(source)
    path = (folder / said.path).resolve() if said.is_file else folder
    return DuckDBEngine(scratch).survey(said, path).rows


@pytest.mark.long
def test_objects_are_looked_at_as_the_files_that_they_are(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address = object_store.put("places/people.csv", CSV.encode("cp1252"))
    source = proposed(address)
    assert source == {"path": address, "delimiter": ";", "decimal": ",", "thousands": "."} | source
    assert rows(source, tmp_path, tmp_path / "scratch") == 200
    ended = CliRunner().invoke(app, ["profile", "s3://clinic/places/nobody.csv"])
    assert isinstance(ended.exception, InputError)


@pytest.mark.long
def test_tables_with_states_are_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_delta(tmp_path / "delta", PEOPLE)
    metadata, _ = write_iceberg(tmp_path / "iceberg", PEOPLE)
    for place in ("delta", "delta:delta"):
        source = proposed(place)
        assert source == {"delta": "delta"}
        assert rows(source, tmp_path, tmp_path / "scratch") == 200
    of_iceberg = metadata.relative_to(tmp_path).as_posix()
    assert proposed(of_iceberg) == {"iceberg": of_iceberg}
    with pytest.raises(InputError, match=r"is an Iceberg table; name the state to read, such as .*\.metadata\.json"):
        keys_of_place(str(metadata.parent.parent))


@pytest.mark.long
def test_init_names_a_place_as_its_own_folder_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANON_PIPELINE_DATA", str(tmp_path / "data"))
    write_delta(tmp_path / "warehouse", PEOPLE)
    ended = CliRunner().invoke(app, ["init", "people", "--from", "warehouse", "--json"], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    spec = Path(json.loads(ended.stdout)["spec"])
    source = yaml.safe_load(spec.read_text())["source"]
    assert source == {"delta": "../../warehouse"}
    assert rows(source, spec.parent, tmp_path / "scratch") == 200
    again = CliRunner().invoke(app, ["init", "other", "--from", "delta:warehouse", "--copy"])
    assert isinstance(again.exception, InputError), "only a file is copied"


def test_a_place_is_seen_from_another_folder(tmp_path: Path) -> None:
    address = Source.model_validate({"path": "s3://clinic/people.parquet"})
    assert seen_from(tmp_path, address) == address
    assert seen_from(tmp_path, Source(iceberg="prod.clinic.people")).iceberg == "prod.clinic.people"
    assert seen_from(tmp_path / "data", Source(path=str(tmp_path / "people.csv"))).path == "../people.csv"
    versioned = seen_from(tmp_path / "data", Source(delta=str(tmp_path / "people"), version=3))
    assert (versioned.delta, versioned.version, versioned.path) == ("../people", 3, "delta:../people")


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("postgresql://a:b@h/x", "postgresql"),
        ("host=h user=a", "postgresql"),
        ("mysql://a:b@h/x", "mysql"),
        ("mariadb://a:b@h/x", "mysql"),
        ("Server=tcp:h;PWD=mysql://", "sqlserver"),
        ("UID=a; server=h", "sqlserver"),
        ("", "postgresql"),
    ],
)
def test_a_server_is_known_by_its_address(address: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINIC_DSN", address)
    assert kind_of_server("CLINIC_DSN") == kind


@pytest.mark.long
def test_the_folder_of_a_table_is_no_folder_of_parquet_files(object_store: ObjectStore, tmp_path: Path) -> None:
    """Its files are those of all states, with people who were deleted."""
    write_delta(tmp_path / "people", PEOPLE)
    write_iceberg(tmp_path / "iceberg", PEOPLE)
    engine = DuckDBEngine(tmp_path / "scratch")
    with pytest.raises(InputError, match=r"say source\.delta"):
        engine.survey(Source(path="people"), tmp_path / "people")
    with pytest.raises(InputError, match=r"say source\.iceberg"):
        engine.survey(Source(path="iceberg"), tmp_path / "iceberg")
    for file in (tmp_path / "people").rglob("*.*"):
        object_store.put(f"people/{file.relative_to(tmp_path / 'people').as_posix()}", file.read_bytes())
    with pytest.raises(InputError, match=r"say source\.delta"):
        engine.survey(Source(path="s3://clinic/people"), tmp_path)
    pq.write_table(PEOPLE, tmp_path / "alone.parquet")
    assert DuckDBEngine(tmp_path / "scratch").survey(Source(path="x"), tmp_path / "alone.parquet").rows == 200
