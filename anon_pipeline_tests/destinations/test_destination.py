"""What a spec says of destinations: refused in a sentence before any work, and no part of the release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from anon_pipeline.destinations import delivery, record
from anon_pipeline.destinations.delta import DeltaLakeTable
from anon_pipeline.destinations.iceberg import IcebergTable
from anon_pipeline.destinations.objects import ObjectPrefix
from anon_pipeline.destinations.postgresql import DatabaseSchema
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination, ReleaseSpec
from anon_pipeline_tests.destinations.releases import DATASET, publish
from anon_pipeline_tests.end_to_end.harness import policy
from anon_pipeline_tests.skips import require_package

SERVER = {"database": "postgresql", "connection": {"env": "OPEN_DSN"}, "schema": "open"}


def spec_of(folder: Path, *publish: dict[str, Any], dataset: str = "people") -> ReleaseSpec:
    folder.mkdir(exist_ok=True)
    file = folder / "release.yaml"
    file.write_text(yaml.safe_dump(policy(dataset) | {"publish": list(publish)}))
    return ReleaseSpec.load(file)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ({}, "names one place: objects, database, delta or iceberg"),
        ({"objects": "s3://open/data", "delta": "open"}, "names one place"),
        ({"objects": "ftp://open/data"}, "objects: lies at an address of a kind that is not read"),
        ({"objects": "open/data"}, "objects: lies at an address of a kind that is not read"),
        ({"objects": "s3://me:geheim@open/data"}, "objects: holds a user"),
        ({"objects": "s3://open/data?signature=geheim"}, "objects: ends with the key of an object"),
        ({"objects": "s3://open/a/../data"}, "objects: has a part of its key that is empty, . or .."),
        ({"objects": "s3://open"}, "objects: names no object"),
        ({"delta": "s3://me:geheim@open/data"}, "delta: holds a user"),
        ({"iceberg": "people"}, "iceberg: is catalogue.namespace.table"),
        ({"delta": "open", "readers": ["me"]}, "readers: goes with a database"),
        (SERVER | {"connection": None}, "connection: is missing"),
        (SERVER | {"connection": {"env": "postgresql://me:geheim@there"}}, "connection"),
        ({"database": "postgresql", "connection": {"env": "X"}}, "schema: is missing"),
        (SERVER | {"schema": "pg_catalog"}, "schema: belongs to the server itself"),
        (SERVER | {"schema": "a\nb"}, "a name has 1 to 63 bytes"),
        (SERVER | {"schema": "ö" * 32}, "a name has 1 to 63 bytes"),
        (SERVER | {"readers": ["public"]}, "readers: public is no role of somebody"),
        (SERVER | {"readers": [""]}, "a name has 1 to 63 bytes"),
        (SERVER | {"password": "geheim"}, "password"),
    ],
)
def test_what_is_no_place_is_told(tmp_path: Path, place: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as told:
        spec_of(tmp_path / "people", place)
    assert sentence in str(told.value)
    assert "geheim" not in str(told.value)


def test_a_place_stands_once_and_has_room_for_the_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="s3://open/data stands twice"):
        spec_of(tmp_path / "people", {"objects": "s3://open/data"}, {"objects": "s3://open/data"})
    with pytest.raises(InputError, match="the name of the dataset has at most 46 letters"):
        spec_of(tmp_path / "people", SERVER, dataset="a" * 47)
    spec_of(tmp_path / "people", SERVER, dataset="a" * 46)


def test_the_release_does_not_depend_on_its_destinations(tmp_path: Path) -> None:
    here = spec_of(tmp_path / "people", {"objects": "s3://open/data"}, SERVER)
    without = spec_of(tmp_path / "others")
    assert (here.policy_hash, here.input_hash) == (without.policy_hash, without.input_hash)
    assert "open" not in str(here.policy())


def test_a_spec_of_somebody_else_writes_where_it_may_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, home = tmp_path / "people", tmp_path / "home"
    monkeypatch.setenv("ANON_PIPELINE_HOME", str(home))
    monkeypatch.setenv("ANON_PIPELINE_DATA", str(tmp_path / "data"))
    spec_of(folder, {"delta": "open"})
    spec_of(folder, {"delta": str(tmp_path / "data/open")})
    for place in ("../elsewhere", str(tmp_path / "elsewhere"), "/etc/people"):
        with pytest.raises(InputError, match="lies neither with the spec nor in the folder of the datasets"):
            spec_of(folder, {"delta": place})
    monkeypatch.setenv("ANON_PIPELINE_ALLOW_FILES", str(tmp_path))
    spec_of(folder, {"delta": "../elsewhere"})
    for folder_of_home in (home / "releases/people", home / "private/raw", tmp_path):
        with pytest.raises(InputError, match="leads into the home"):
            spec_of(folder, {"delta": str(folder_of_home)})
    with pytest.raises(InputError, match="put it into ANON_PIPELINE_ALLOW_OBJECTS"):  # ALLOW_FILES is set
        spec_of(folder, {"objects": "s3://open/data"})
    for server in (SERVER, SERVER | {"connection": {"file": "OPEN_DSN"}}, {"iceberg": "hospital.open.people"}):
        with pytest.raises(InputError, match="is no place that specs may write to"):
            spec_of(folder, server)
    monkeypatch.setenv("ANON_PIPELINE_ALLOW_OBJECTS", "s3://open/data postgresql:OPEN_DSN/open iceberg:hospital.open")
    spec_of(folder, SERVER, {"iceberg": "hospital.open.people"})
    for server in (
        SERVER | {"schema": "opened"},
        SERVER | {"connection": {"file": "OPEN_DSN"}},  # a file of the spec's own, of the same name
        {"iceberg": "hospital.opened.people"},
    ):
        with pytest.raises(InputError, match="is no place that specs may write to"):
            spec_of(folder, server)
    spec_of(folder, {"objects": "s3://open/data"}, {"delta": "s3://open/data/delta"})
    for place in ("objects", "delta"):
        with pytest.raises(InputError, match="put it into ANON_PIPELINE_ALLOW_OBJECTS"):
            spec_of(folder, {place: "s3://open/database"})


def test_what_is_missing_is_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(tmp_path / "people", SERVER)
    monkeypatch.delenv("OPEN_DSN", raising=False)
    with pytest.raises(InputError, match=r"publish.connection: the environment variable OPEN_DSN is not set"):
        delivery.require_ready(spec.publish, spec.folder)
    (tmp_path / "people/dsn").write_text("postgresql://me:geheim@there")
    spec = spec_of(tmp_path / "people", SERVER | {"connection": {"file": "dsn"}})
    (tmp_path / "people/dsn").chmod(0o644)
    with pytest.raises(InputError, match=r"publish.connection: dsn can be read by others; run `chmod 600` on it"):
        delivery.require_ready(spec.publish, spec.folder)
    monkeypatch.setitem(delivery.NEEDED, "delta", (("no_such_package",), "delta"))
    with pytest.raises(InputError, match=r"publish: delta:open: install `anon-pipeline\[delta\]`"):
        delivery.require_ready(spec_of(tmp_path / "people", {"delta": "open"}).publish, spec.folder)


@pytest.mark.parametrize(("folder", "place"), [("people", "open[2024]"), ("num#ber", "open"), ("people", "a\tb")])
def test_a_folder_that_delta_lake_cannot_write_to_is_told_before_any_work(
    tmp_path: Path, folder: str, place: str
) -> None:
    """It was told after the run, with exit code 4, of every release anew."""
    require_package("deltalake")
    spec = spec_of(tmp_path / folder, {"delta": place})
    with pytest.raises(InputError, match=r"publish: delta:.*: the path has a %, # or \? in it, .* call its folders"):
        delivery.require_ready(spec.publish, spec.folder)


def test_a_former_copy_there_is_looked_for_all_the_same(home: Home, tmp_path: Path) -> None:
    """A record of a former version: a withdrawal is not refused for a path that nothing was ever written to."""
    require_package("deltalake")
    place = Destination(delta=str(tmp_path / "a#b" / "people"))
    record.note(home, DATASET, publish(home, "v1"), place, record.FAILED)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert [copy.state for copy in record.read(home, DATASET, "v1")] == [record.TAKEN_BACK]


def test_the_record_of_a_copy_names_its_place_as_a_spec_does() -> None:
    stated = SERVER | {"readers": ["analyst"]}
    copy = record.Copy(Destination.model_validate(stated), record.STANDS, "2026-01-01", "why")
    content = {"state": "stands", "time": "2026-01-01", "why": "why", "label": copy.place.label, "place": stated}
    assert json.loads(json.dumps(copy.to_json())) == content


def test_former_releases_stay_in_an_object_store_alone() -> None:
    kept = {kind.__name__: kind.keeps_former for kind in (DatabaseSchema, DeltaLakeTable, IcebergTable, ObjectPrefix)}
    assert [name for name, keeps_former in kept.items() if keeps_former] == ["ObjectPrefix"]
