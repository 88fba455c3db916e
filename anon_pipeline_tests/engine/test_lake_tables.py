"""Delta Lake and Iceberg tables: the state that was asked for, and no file that a spec may not name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine import lake_tables
from anon_pipeline.engine.elsewhere import state_of_source
from anon_pipeline.engine.lake_tables import as_opened, state_of_table, store_table
from anon_pipeline.engine.object_stores import state_of
from anon_pipeline.engine.parquet_files import refuse_table
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import VARIABLE
from anon_pipeline.spec import Source
from anon_pipeline_tests.lake import write_delta, write_iceberg
from anon_pipeline_tests.object_store import ObjectStore
from anon_pipeline_tests.skips import require_package

FIRST = pa.table({"age": [30, 40], "city": ["Cork", None], "name": ["Ann", "Ben"]})
PARTITIONED = pa.table({"age": [1, 2, 3, 4], "city": ["A B", "\u00e4/\u00f6?", "50%#", None]})
MAPPING = "delta.columnMapping"
SECOND = pa.table({"age": [30, 40, 50], "city": ["Cork", None, "Delft"], "name": ["Ann", "Ben", "Cid"]})


def stored(source: Source, folder: Path, *unread: str) -> tuple[list[dict[str, object]], dict[str, str]]:
    """The rows by age, and the state that was read."""
    file = folder / "stored.parquet"
    state = store_table(source, folder, file, lambda names: None, unread)
    return pq.read_table(file).sort_by("age").to_pylist(), state


def test_a_delta_table_is_read_in_the_version_asked_for_or_in_its_newest(tmp_path: Path) -> None:
    write_delta(tmp_path / "people", FIRST, SECOND)
    assert stored(Source(delta="people"), tmp_path) == (SECOND.to_pylist(), {"format": "delta", "version": "1"})
    assert stored(Source(delta="people", version=0), tmp_path)[0] == FIRST.to_pylist()
    before = state_of_table(Source(delta="people"), tmp_path)
    write_delta(tmp_path / "people", SECOND)
    assert state_of_table(Source(delta="people"), tmp_path) != before
    with pytest.raises(InputError, match=r"source\.version: delta:people has no version 9"):
        stored(Source(delta="people", version=9), tmp_path)


@pytest.mark.long
def test_an_iceberg_table_is_read_at_the_snapshot_asked_for_or_at_its_current(tmp_path: Path) -> None:
    metadata, (first, second) = write_iceberg(tmp_path / "lake", FIRST, SECOND)
    place = str(metadata.relative_to(tmp_path))
    rows, state = stored(Source(iceberg=place), tmp_path)
    assert (rows, state) == (SECOND.to_pylist(), {"format": "iceberg", "snapshot": str(second)})
    assert stored(Source(iceberg=place, snapshot=first), tmp_path)[0] == FIRST.to_pylist()
    assert state_of_table(Source(iceberg=place), tmp_path)[1] == str(second)
    with pytest.raises(InputError, match=r"source\.snapshot: .* has no snapshot 9"):
        stored(Source(iceberg=place, snapshot=9), tmp_path)


def test_an_iceberg_table_is_found_in_a_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_iceberg(tmp_path / "lake", FIRST)
    monkeypatch.setenv("PYICEBERG_CATALOG__HOSPITAL__URI", f"sqlite:///{tmp_path}/lake/catalogue.db")
    config = require_package("pyiceberg.utils.config")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", config.Config())  # as it is read when a run imports it
    assert stored(Source(iceberg="hospital.clinic.people"), tmp_path)[0] == FIRST.to_pylist()
    with pytest.raises(InputError, match=r"iceberg:hospital\.clinic\.nobody: there is no such table"):
        stored(Source(iceberg="hospital.clinic.nobody"), tmp_path)


def test_a_partitioned_delta_table_is_read_with_the_column_that_its_folders_are(tmp_path: Path) -> None:
    require_package("deltalake").write_deltalake(str(tmp_path / "people"), PARTITIONED, partition_by=["city"])
    assert stored(Source(delta="people"), tmp_path)[0] == PARTITIONED.to_pylist()


def test_columns_that_are_left_out_are_not_read(tmp_path: Path) -> None:
    write_delta(tmp_path / "people", FIRST)
    metadata, _ = write_iceberg(tmp_path / "lake", FIRST)
    for source in (Source(delta="people"), Source(iceberg=str(metadata))):
        assert stored(source, tmp_path, "name")[0] == [{**row, "name": None} for row in FIRST.to_pylist()]


@pytest.mark.long
def test_tables_lie_in_object_stores_too(object_store: ObjectStore, tmp_path: Path) -> None:
    endpoint = object_store.environment["AWS_ENDPOINT_URL"]
    write_delta("s3://clinic/lake/people", FIRST, allow_http="true", aws_endpoint=endpoint)
    assert stored(Source(delta="s3://clinic/lake/people"), tmp_path)[0] == FIRST.to_pylist()
    with pytest.raises(Unavailable, match="there is no such table"):
        stored(Source(delta="s3://clinic/lake/nobody"), tmp_path)
    with pytest.raises(Unavailable, match="there is no such object"):
        stored(Source(iceberg="s3://clinic/lake/v1.metadata.json"), tmp_path)


@pytest.mark.parametrize("table", ["delta", "iceberg"])
def test_a_file_that_vanished_is_told(tmp_path: Path, table: str) -> None:
    write_delta(tmp_path / "people", FIRST)
    metadata, _ = write_iceberg(tmp_path / "lake", FIRST)
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    source = Source(delta="people") if table == "delta" else Source(iceberg=str(metadata))
    with pytest.raises(Unavailable, match=f"^{table}:.*: there is no such object"):
        stored(source, tmp_path)


@pytest.mark.parametrize(
    ("protocol", "configuration"),
    [
        ({"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}, {}),
        ({"minReaderVersion": 3, "readerFeatures": ["columnMapping"]}, {}),
        # Of this older way the library says nothing, and would read every value as missing.
        ({"minReaderVersion": 2}, {f"{MAPPING}.mode": "name"}),
        ({"minReaderVersion": 99}, {}),
    ],
)
def test_what_cannot_be_read_rightly_is_not_read(
    tmp_path: Path, protocol: dict[str, object], configuration: dict[str, str]
) -> None:
    write_delta(tmp_path / "people", FIRST)
    log = tmp_path / "people/_delta_log/00000000000000000000.json"
    lines = []
    for action in map(json.loads, log.read_text().splitlines()):
        if "protocol" in action:
            features = ["deletionVectors"] if "readerFeatures" in protocol else None
            action["protocol"] = {
                **protocol,
                "minWriterVersion": 7 if features else 5,
                **({"writerFeatures": protocol["readerFeatures"]} if features else {}),
            }
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"]):
                field["metadata"] = {f"{MAPPING}.id": number, f"{MAPPING}.physicalName": f"column-{number}"}
            action["metaData"] |= {"configuration": configuration, "schemaString": json.dumps(schema)}
        lines.append(json.dumps(action))
    log.write_text("\n".join(lines))
    with pytest.raises(InputError, match="is written in a way that cannot be read here"):
        stored(Source(delta="people"), tmp_path)


def test_a_table_names_no_file_of_the_private_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may write a spec could else describe a table of their own, of other people's files."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    private = tmp_path / "home/private"
    metadata, _ = write_iceberg(private / "lake", FIRST)
    (tmp_path / "theirs.metadata.json").write_bytes(metadata.read_bytes())
    with pytest.raises(InputError, match="one of its files leads into the private zone"):
        stored(Source(iceberg="theirs.metadata.json"), tmp_path)


@pytest.mark.parametrize("name", ["people", "two words", "p\u00e4ople", "per%20cent", "num#ber", "quest?ion"])
def test_a_link_leads_into_no_private_zone_whatever_its_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The library writes some letters of a place in another way than it opens them."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    private = tmp_path / "home/private"
    private.mkdir(parents=True)
    write_delta(tmp_path / "written", FIRST)
    (tmp_path / "written").rename(tmp_path / name)
    if "%" in name or "#" in name or "?" in name:
        with pytest.raises(InputError, match="has a %, # or"):
            stored(Source(delta=name), tmp_path)
        return
    assert stored(Source(delta=name), tmp_path)[0] == FIRST.to_pylist()
    (file,) = (tmp_path / name).glob("*.parquet")
    os.replace(file, private / "people.parquet")
    file.symlink_to(private / "people.parquet")
    with pytest.raises(InputError, match="one of its files leads into the private zone"):
        stored(Source(delta=name), tmp_path)


@pytest.mark.parametrize(
    "location",
    ["file:///data/a.parquet", "file:///data/a%20b.parquet", "file:///data/a#b", "file:///data/a?b", "/data/a#b?c"],
)
def test_a_location_is_looked_at_where_the_library_opens_it(location: str) -> None:
    library = require_package("pyiceberg.io.pyarrow").PyArrowFileIO
    assert as_opened(location) == library.parse_location(location)[2]


@pytest.mark.parametrize("location", ["data/a.parquet", "file:data/a", "file:/data/a", "hdfs:/data/a"])
def test_a_location_that_could_be_opened_elsewhere_is_refused(location: str) -> None:
    with pytest.raises(ValueError, match="not absolute"):
        as_opened(location)


def test_a_table_names_no_file_that_a_spec_may_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata, _ = write_iceberg(tmp_path / "elsewhere", FIRST)
    folder = tmp_path / "dataset"
    folder.mkdir()
    (folder / "theirs.metadata.json").write_bytes(metadata.read_bytes())
    monkeypatch.setenv("ANON_PIPELINE_ALLOW_FILES", "")
    with pytest.raises(
        InputError, match="one of its files lies neither with the spec nor in the folder of the datasets"
    ):
        stored(Source(iceberg="theirs.metadata.json"), folder)


def test_a_table_chooses_no_code_and_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads an Iceberg table is named in properties, which the library takes from the table, too."""
    (tmp_path / "theirs.py").write_text("raise SystemExit('their code ran')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    metadata, _ = write_iceberg(tmp_path / "lake", FIRST)
    content = json.loads(metadata.read_text())
    content["properties"] = {"py-io-impl": "theirs.Reader", "s3.endpoint": "http://theirs.example"}
    metadata.write_text(json.dumps(content))
    assert stored(Source(iceberg=str(metadata)), tmp_path)[0] == FIRST.to_pylist()


def test_a_source_elsewhere_says_its_state_in_its_own_way(object_store: ObjectStore, tmp_path: Path) -> None:
    write_delta(tmp_path / "people", FIRST)
    table = Source(delta="people")
    assert state_of_source(table, tmp_path) == state_of_table(table, tmp_path)
    address = object_store.put("state of a source.csv", b"age\n40\n")
    assert state_of_source(Source(path=address), tmp_path) == state_of(address)


@pytest.mark.parametrize(("error", "kind"), [(KeyError("x"), InputError), (OSError("away"), Unavailable)])
def test_a_table_elsewhere_that_is_broken_is_told_from_one_that_is_away(
    error: Exception, kind: type[InputError]
) -> None:
    assert type(lake_tables._sentence(Source(delta="s3://bucket/people"), error)) is kind


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("_delta_log/0.json", "Delta Lake"),
        ("year=1/_delta_log/0.json", "Delta Lake"),
        ("metadata/v1.metadata.json", "Iceberg"),
    ],
)
def test_a_folder_of_which_a_table_keeps_its_states_is_no_folder_of_files(file: str, told: str) -> None:
    refuse_table(["a.parquet", "_delta_log.parquet", "_delta_log/old/a.parquet", "metadata/notes.txt"], "people")
    with pytest.raises(InputError, match=told):
        refuse_table(["a.parquet", file], "people")
