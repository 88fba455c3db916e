"""Files of withdrawn releases in the folder of an Iceberg table that no snapshot names: they are gone, or told."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from anon_pipeline.destinations import delivery, record
from anon_pipeline.home import Home
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination
from anon_pipeline_tests.destinations.releases import DATASET, deliver, failure, publish
from anon_pipeline_tests.destinations.test_lake import FOUND, rows
from anon_pipeline_tests.end_to_end.harness import forked
from anon_pipeline_tests.object_store import ACCESS_KEY, BUCKET, SECRET, ObjectStore
from anon_pipeline_tests.skips import require_package

PLACE = Destination(iceberg="hospital.open.people")


class Warehouse:
    """The files of a catalogue, on a disk or in an object store."""

    def __init__(self, store: fs.FileSystem, folder: str) -> None:
        self.store, self._folder = store, folder

    def files(self) -> list[str]:
        below = self.store.get_file_info(fs.FileSelector(self._folder, recursive=True, allow_not_found=True))
        return [file.path for file in below if file.type == fs.FileType.File]

    def holding(self, version: str) -> list[str]:
        """Files with the rows of a release."""
        found = (file for file in self.files() if file.endswith(".parquet"))
        return [
            file
            for file in found
            if f"{FOUND} {version}" in str(pq.read_table(file, filesystem=self.store).to_pylist())
        ]


def catalogue() -> Any:
    return importlib.import_module("pyiceberg.catalog").load_catalog("hospital")


def configure(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__HOSPITAL__{name}", value)
    config = importlib.import_module("pyiceberg.utils.config").Config()
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", config)


@pytest.fixture(params=["disk", "store"])
def warehouse(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    require_package("pyiceberg.catalog.sql")
    settings = {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalogue.db"}
    if request.param == "disk":
        (tmp_path / "warehouse").mkdir()
        configure(monkeypatch, settings | {"WAREHOUSE": f"file://{tmp_path}/warehouse"})
        yield Warehouse(fs.LocalFileSystem(), f"{tmp_path}/warehouse")
        return
    server: ObjectStore = request.getfixturevalue("object_store")
    access = {
        "S3__ENDPOINT": server.environment["AWS_ENDPOINT_URL"],
        "S3__REGION": "us-east-1",
        "S3__ACCESS_KEY_ID": ACCESS_KEY,
        "S3__SECRET_ACCESS_KEY": SECRET,
    }
    configure(monkeypatch, settings | access | {"WAREHOUSE": f"s3://{BUCKET}/warehouse"})
    yield Warehouse(server.files(), f"{BUCKET}/warehouse")
    server.files().delete_dir_contents(f"{BUCKET}/warehouse", missing_dir_ok=True)


def _delivers_and_dies(home: Home, version: str, environment: dict[str, str]) -> None:
    """As the kernel kills, between the files of a release and their commit."""
    os.environ.update(environment)
    catalogues = importlib.import_module("pyiceberg.catalog.sql").SqlCatalog
    catalogues.commit_table = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    deliver(home, version, PLACE)


def deliver_killed(home: Home, version: str) -> None:
    killed = forked(_delivers_and_dies, home, version, dict(os.environ))
    killed.join()
    assert killed.exitcode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["never completed", "completed by the next run"])
def test_what_a_killed_delivery_has_written_goes(home: Home, warehouse: Warehouse, again: bool) -> None:
    """No snapshot names its files, and the withdrawal was told as done while they were there."""
    publish(home, "v1", rows("v1"))
    deliver_killed(home, "v1")
    assert len(warehouse.holding("v1")) == 1
    if again:
        deliver(home, "v1", PLACE)
        deliver(home, publish(home, "v2", rows("v2")), PLACE)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert warehouse.holding("v1") == []
    assert delivery.verify(home) == []
    assert bool(warehouse.holding("v2")) == again


@pytest.mark.long
def test_what_a_refused_commit_has_written_goes(
    home: Home, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(home, publish(home, "v1", rows("v1")), PLACE)
    publish(home, "v2", rows("v2"))
    owner = importlib.import_module("pyiceberg.catalog.sql").SqlCatalog
    genuine, others = owner.commit_table, [True]

    def commit(*arguments: Any, **named: Any) -> Any:
        if others.pop() if others else False:
            catalogue().load_table("open.people").delete("score < 1")
        return genuine(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(owner, "commit_table", commit)
        assert "somebody else changed the table at the same time" in failure(home, "v2", PLACE)
    deliver(home, "v2", PLACE)
    assert len(warehouse.holding("v2")) == 2
    withdraw(home, "v2", "too much")
    delivery.deliver(home, DATASET, "v2")
    assert warehouse.holding("v2") == []
    assert catalogue().load_table("open.people").scan().to_arrow().to_pylist() == rows("v1").to_pylist()
    assert delivery.verify(home) == []


@pytest.mark.long
def test_statistics_that_others_made_of_a_release_go_and_those_of_others_stay(home: Home, warehouse: Warehouse) -> None:
    statistics = importlib.import_module("pyiceberg.table.statistics")
    for version in ("v1", "v2"):
        deliver(home, publish(home, version, rows(version)), PLACE)
        table = catalogue().load_table("open.people")
        number, file = table.current_snapshot().snapshot_id, f"{table.location()}/metadata/{version}.puffin"
        with table.io.new_output(file).create() as stream:
            stream.write(f"{FOUND} {version}".encode())
        with table.update_statistics() as update:
            update.set_statistics(
                statistics.StatisticsFile(
                    snapshot_id=number,
                    statistics_path=file,
                    file_size_in_bytes=10,
                    file_footer_size_in_bytes=0,
                    blob_metadata=[],
                )
            )
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert [os.path.basename(file) for file in warehouse.files() if file.endswith(".puffin")] == ["v2.puffin"]
    assert delivery.verify(home) == []


@pytest.mark.long
def test_the_files_of_a_table_that_was_renamed_stay_and_the_withdrawal_says_so(
    home: Home, warehouse: Warehouse
) -> None:
    """A new table of the former name lies in the same folder."""
    deliver(home, publish(home, "v1", rows("v1")), PLACE)
    catalogue().rename_table("open.people", "open.theirs")
    deliver(home, publish(home, "v2", rows("v2")), PLACE)
    withdraw(home, "v2", "too much")
    delivery.deliver(home, DATASET, "v2")
    assert warehouse.holding("v2") == []
    assert "another table has files in the same folder" in record.read(home, DATASET, "v2")[0].why
    assert catalogue().load_table("open.theirs").scan().to_arrow().to_pylist() == rows("v1").to_pylist()


@pytest.mark.long
@pytest.mark.parametrize("warehouse", ["disk"], indirect=True)
def test_files_of_a_state_that_nobody_lists_any_more_stay_and_the_withdrawal_says_so(
    home: Home, warehouse: Warehouse
) -> None:
    """They seemed to be nobody's, and were removed with those of the withdrawn release."""
    for version in ("v1", "v2"):
        deliver(home, publish(home, version, rows(version)), PLACE)
    table = catalogue().load_table("open.people")
    listing = Path(table.current_snapshot().manifest_list.removeprefix("file://"))
    listing.rename(aside := listing.with_name("aside"))
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert (warehouse.holding("v1"), len(warehouse.holding("v2"))) == ([], 1)
    assert "a file that lists those of another state is gone" in record.read(home, DATASET, "v1")[0].why
    assert "files that list those of its newest state are gone; restore them, or drop the table" in failure(
        home, publish(home, "v3", rows("v3")), PLACE
    )
    aside.rename(listing)
    assert catalogue().load_table("open.people").scan().to_arrow().to_pylist() == rows("v2").to_pylist()


@pytest.mark.long
@pytest.mark.parametrize("warehouse", ["disk"], indirect=True)
def test_rows_that_are_gone_from_a_state_are_put_again(home: Home, warehouse: Warehouse) -> None:
    deliver(home, publish(home, "v1", rows("v1")), PLACE)
    (file,) = warehouse.holding("v1")
    os.unlink(file)
    delivery.deliver(home, DATASET, "v1", compare=True)
    assert (len(warehouse.holding("v1")), delivery.verify(home)) == (1, [])
    (state,) = (copy.state for copy in record.read(home, DATASET, "v1"))
    assert state == record.STANDS
