"""Delta Lake and Iceberg tables on disk: each release a state with its version, and what is withdrawn is gone."""

from __future__ import annotations

import datetime
import importlib
import os
import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from anon_pipeline.destinations import delivery, record
from anon_pipeline.destinations.lake import working
from anon_pipeline.errors import NotDelivered, Unavailable
from anon_pipeline.home import Home
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination
from anon_pipeline_tests.destinations.releases import DATASET, Killed, deliver, failure, publish
from anon_pipeline_tests.end_to_end.harness import forked
from anon_pipeline_tests.object_store import BUCKET, ObjectStore
from anon_pipeline_tests.skips import require_package

#: A value by which the files of a release are found.
FOUND = "Ottilie"


def rows(version: str) -> pa.Table:
    """Rows whose columns and types differ from release to release."""
    age = pa.array([20, None], pa.int16()) if version == "v1" else pa.array(["20", None]).dictionary_encode()
    return pa.table(
        {
            "age": age,
            f"wöhn {version}": [f"{FOUND} {version}", None],
            "born": pa.array([datetime.date(1900, 2, 28), None]),
            "seen": pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3, 4), None], pa.timestamp("us")),
            "score": [0.1, float("inf")],
            "..": [True, None],
        }
    )


class Kind:
    """A kind of table, in a folder of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.place = Destination(delta=str(folder)) if name == "delta" else Destination(iceberg="hospital.open.people")
        #: What is called for each commit.
        self.commits: list[tuple[Any, str]] = []
        if name == "delta":
            library = importlib.import_module("deltalake")
            self.commits = [
                (library, "write_deltalake"),
                (library.DeltaTable, "delete"),
                (library.DeltaTable, "vacuum"),
            ]
        else:
            library = importlib.import_module("pyiceberg.catalog.sql")
            io = importlib.import_module("pyiceberg.io.pyarrow")
            self.commits = [
                (library.SqlCatalog, "create_table"),
                (library.SqlCatalog, "commit_table"),
                (io.PyArrowFileIO, "delete"),
            ]

    def _iceberg(self) -> Any:
        return importlib.import_module("pyiceberg.catalog").load_catalog("hospital").load_table("open.people")

    def read(self) -> pa.Table:
        if self.name == "delta":
            return importlib.import_module("deltalake").DeltaTable(str(self.folder)).to_pyarrow_table()
        return self._iceberg().scan().to_arrow()

    def told(self) -> list[str]:
        """The versions that the states of the table are called by."""
        if self.name == "delta":
            history = importlib.import_module("deltalake").DeltaTable(str(self.folder)).history()
            return [commit["anon_pipeline.version"] for commit in history if "anon_pipeline.version" in commit]
        return [name for name in self._iceberg().refs() if name != "main"]

    def holding(self, value: str) -> list[str]:
        """Files of data that hold a value, and others that have it in plain text."""
        found = []
        for file in self.folder.rglob("*"):
            if file.suffix == ".parquet" and file.is_file():
                import pyarrow.parquet as pq

                if value in str(pq.read_table(file).to_pylist()):
                    found.append(file.name)
            elif file.is_file() and value.encode() in file.read_bytes():
                found.append(file.name)
        return found


@pytest.fixture(params=["delta", "iceberg"])
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kind:
    require_package({"delta": "deltalake", "iceberg": "pyiceberg.catalog.sql"}[request.param])
    folder = tmp_path / "warehouse"
    if request.param == "iceberg":
        folder.mkdir()
        settings = {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalogue.db", "WAREHOUSE": f"file://{folder}"}
        for name, value in settings.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__HOSPITAL__{name}", value)
        config = importlib.import_module("pyiceberg.utils.config").Config()
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", config)
    return Kind(request.param, folder)


def same(found: pa.Table, version: str) -> bool:
    """Whether these are the rows of a release, whatever their types are called there."""
    return bool(found.to_pylist() == rows(version).to_pylist())


@pytest.mark.long
def test_the_table_holds_the_current_release_under_its_version(home: Home, kind: Kind) -> None:
    for version in ("v1", "v2"):
        deliver(home, publish(home, version, rows(version)), kind.place)
        assert same(kind.read(), version)
        assert delivery.verify(home) == []
    assert set(kind.told()) == {"v1", "v2"}
    assert [copy.state for copy in record.read(home, DATASET, "v1")] == [record.REPLACED]
    if kind.name == "delta":
        assert importlib.import_module("deltalake").DeltaTable(str(kind.folder)).metadata().name == DATASET
    before = kind.told()
    deliver(home, "v2", kind.place)  # is there already
    assert kind.told() == before


def killed(kind: Kind, moment: int, act: Any) -> bool:
    """Do it, killed before its `moment`-th commit; whether it was."""
    left = moment

    def counted(genuine: Any) -> Any:
        def called(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return genuine(*arguments, **named)

        return called

    with pytest.MonkeyPatch.context() as patched:
        for owner, name in kind.commits:
            patched.setattr(owner, name, counted(getattr(owner, name)))
        try:
            act()
        except Killed:
            return True
    return False


@pytest.mark.long
def test_killed_before_any_commit_a_reader_sees_one_release_whole_and_the_next_run_heals(
    home: Home, kind: Kind
) -> None:
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    publish(home, "v2", rows("v2"))
    moment = 0
    while killed(kind, moment, lambda: deliver(home, "v2", kind.place)):
        found = kind.read()
        assert same(found, "v1") or same(found, "v2")
        assert delivery.verify(home)
        moment += 1
    assert moment
    assert same(kind.read(), "v2")
    assert delivery.verify(home) == []


@pytest.mark.long
@pytest.mark.parametrize("former", [True, False], ids=["one before", "none before"])
def test_a_withdrawn_release_is_gone_whenever_it_was_killed(home: Home, kind: Kind, former: bool) -> None:
    if former:
        deliver(home, publish(home, "v1", rows("v1")), kind.place)
    deliver(home, publish(home, "v2", rows("v2")), kind.place)
    assert kind.holding(f"{FOUND} v2")
    withdraw(home, "v2", "too much")
    moment = 0
    while killed(kind, moment, lambda: delivery.deliver(home, DATASET, "v2")):
        assert any("although the release was withdrawn" in problem for problem in delivery.verify(home))
        moment += 1
    assert moment >= 2
    assert kind.holding(f"{FOUND} v2") == []
    assert same(kind.read(), "v1") if former else kind.read().num_rows == 0
    assert delivery.verify(home) == []
    assert "still say" in record.read(home, DATASET, "v2")[0].why
    deliver(home, publish(home, "v3", rows("v3")), kind.place)
    assert same(kind.read(), "v3")


@pytest.mark.long
@pytest.mark.parametrize("change", ["rows", "settings", "log"])
def test_a_withdrawn_release_is_gone_where_others_changed_the_table_since(home: Home, kind: Kind, change: str) -> None:
    """The table's own maintenance commits too: rows in another order, a setting, a log without its oldest commits."""
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    if kind.name == "delta":
        table = importlib.import_module("deltalake").DeltaTable(str(kind.folder))
        if change == "rows":
            table.optimize.z_order(["age"])
        else:
            table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
        if change == "log":
            table.create_checkpoint()
            table.cleanup_metadata()
            assert not any("anon_pipeline.version" in commit for commit in table.history())
    elif change == "rows":
        kind._iceberg().delete("score < 1")
    elif change == "settings":
        with kind._iceberg().transaction() as transaction:
            transaction.set_properties({"theirs": "1"})
    else:
        kind._iceberg().delete("score < 1")
        kind._iceberg().manage_snapshots().remove_tag("v1").commit()
        kind._iceberg().maintenance.expire_snapshots().by_id(kind._iceberg().snapshots()[0].snapshot_id).commit()
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert kind.read().num_rows == 0
    if kind.name == "iceberg":
        states = [kind._iceberg().scan(snapshot_id=each.snapshot_id) for each in kind._iceberg().snapshots()]
        assert [state.to_arrow().num_rows for state in states] in ([], [0])
    assert kind.holding(f"{FOUND} v1") == []
    assert delivery.verify(home) == []
    deliver(home, publish(home, "v2", rows("v2")), kind.place)
    assert same(kind.read(), "v2")
    assert delivery.verify(home) == []


@pytest.mark.long
@pytest.mark.parametrize("columns", ["all columns", "some columns"])
def test_no_statistics_are_written_where_others_have_switched_them_on(home: Home, kind: Kind, columns: str) -> None:
    """The smallest and largest values of a withdrawn release stood in what is kept of the next, or in the log."""
    every = columns == "all columns"
    deliver(home, publish(home, "v0", rows("v0")), kind.place)
    if kind.name == "delta":
        settings = {"dataSkippingNumIndexedCols": "-1"} if every else {"dataSkippingStatsColumns": "age,score"}
        table = importlib.import_module("deltalake").DeltaTable(str(kind.folder))
        table.alter.set_table_properties({f"delta.{name}": value for name, value in settings.items()})
    else:
        with kind._iceberg().transaction() as transaction:
            transaction.set_properties({f"write.metadata.metrics.{'default' if every else 'column.born'}": "full"})
    for version in ("v1", "v2"):
        deliver(home, publish(home, version, rows(version)), kind.place)
    if kind.name == "delta":
        log = "".join(file.read_text() for file in kind.folder.glob("_delta_log/*.json"))
        found = re.findall(r'(?:min|max)Values\\":{\\"', log)
    else:
        table = kind._iceberg()
        manifests = [manifest for snapshot in table.snapshots() for manifest in snapshot.manifests(table.io)]
        entries = [entry for each in manifests for entry in each.fetch_manifest_entry(table.io, discard_deleted=False)]
        found = [entry for entry in entries if entry.data_file.lower_bounds or entry.data_file.upper_bounds]
        assert len(entries) >= 3
    assert found == []
    assert same(kind.read(), "v2")


@pytest.mark.long
def test_files_that_are_not_old_enough_to_be_removed_are_removed_a_moment_later(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was given up in the same millisecond stayed for good, and the withdrawal was told as done."""
    require_package("deltalake")
    kind = Kind("delta", tmp_path / "warehouse")
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    withdraw(home, "v1", "too much")
    library = importlib.import_module("deltalake")
    genuine, calls = library.DeltaTable.vacuum, []

    def vacuum(table: Any, **named: Any) -> Any:
        calls.append(named)
        return genuine(table, **{**named, "retention_hours": 1 if len(calls) == 1 else 0})

    with monkeypatch.context() as patched:
        patched.setattr(library.DeltaTable, "vacuum", vacuum)
        delivery.deliver(home, DATASET, "v1")
    assert len(calls) == 2
    assert kind.holding(f"{FOUND} v1") == []


def _delivered_in(environment: dict[str, str], home: Home, version: str) -> None:
    os.environ.update(environment)
    delivery.deliver(home, DATASET, version)


@pytest.mark.long
def test_a_withdrawn_release_is_gone_from_a_table_in_an_object_store(home: Home, object_store: ObjectStore) -> None:
    require_package("deltalake")

    def files() -> list[str]:
        found = object_store.files().get_file_info(fs.FileSelector(BUCKET, recursive=True))
        return [file.path for file in found if file.extension == "parquet"]

    deliver(home, publish(home, "v1", rows("v1")), Destination(delta=f"s3://{BUCKET}/open/people"))
    assert len(files()) == 1
    withdraw(home, "v1", "too much")
    # In a process of its own: the library holds the interpreter while it asks the store, which is a thread of this one.
    process = forked(_delivered_in, dict(os.environ), home, "v1")
    process.join()
    assert process.exitcode == 0
    assert files() == []


@pytest.mark.long
@pytest.mark.parametrize("below", ["", "age=20"])
def test_a_withdrawal_is_not_done_while_files_of_former_states_are_there(
    home: Home, tmp_path: Path, below: str
) -> None:
    """What a clock ahead of ours has written last is not old enough to be removed."""
    require_package("deltalake")
    kind = Kind("delta", tmp_path / "warehouse")
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    (file,) = kind.folder.glob("*.parquet")
    (kind.folder / below).mkdir(exist_ok=True)
    left = file.rename(kind.folder / below / "left-by-a-killed-writer.parquet")
    file.write_bytes(left.read_bytes())
    os.utime(left, (time.time() + 3600,) * 2)
    withdraw(home, "v1", "too much")
    with pytest.raises(NotDelivered, match=r"files beside the table's own are still there \(1\)"):
        delivery.deliver(home, DATASET, "v1")
    assert kind.holding(f"{FOUND} v1") == [left.name]
    os.utime(left, (time.time() - 1,) * 2)
    delivery.deliver(home, DATASET, "v1")
    assert kind.holding(f"{FOUND} v1") == []


@pytest.mark.long
def test_a_folder_that_cannot_be_made_is_told_and_other_places_have_the_release(home: Home, tmp_path: Path) -> None:
    require_package("deltalake")
    (tmp_path / "open").write_text("a file, where a folder should be")
    blocked, other = (Destination(delta=str(tmp_path / name)) for name in ("open/people", "other"))
    publish(home, "v1", rows("v1"))
    with pytest.raises(NotDelivered, match=r"open/people: cannot be written or read \(File exists\)"):
        delivery.deliver(home, DATASET, "v1", [blocked, other])
    assert {copy.place.label: copy.state for copy in record.read(home, DATASET, "v1")} == {
        blocked.label: record.FAILED,
        other.label: record.STANDS,
    }
    (tmp_path / "open").unlink()
    delivery.deliver(home, DATASET, "v1")
    assert delivery.verify(home) == []


@pytest.mark.long
def test_who_else_commits_at_the_same_time_is_told_and_the_next_delivery_heals(
    home: Home, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    publish(home, "v2", rows("v2"))
    owner, name = kind.commits[0] if kind.name == "delta" else kind.commits[1]
    genuine, others = getattr(owner, name), [True]

    def commit(*arguments: Any, **named: Any) -> Any:
        if others.pop() if others else False:
            if kind.name == "delta":
                owner.DeltaTable(str(kind.folder)).delete("score < 1")
            else:
                kind._iceberg().delete("score < 1")
        return genuine(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, commit)
        assert "somebody else changed the table at the same time" in failure(home, "v2", kind.place)
    assert kind.read().num_rows == 1, "what the others have left of v1"
    deliver(home, "v2", kind.place)
    assert same(kind.read(), "v2")
    assert delivery.verify(home) == []


@pytest.mark.parametrize("error", [OSError, RuntimeError])
def test_a_full_disk_is_told_in_the_words_of_the_system(error: type[Exception]) -> None:
    told = r"there: cannot be written or read \(No space left on device\)"
    with pytest.raises(Unavailable, match=told), working("there"):
        raise error("Generic error: 'Ottilie' (os error 28)")


@pytest.mark.long
def test_what_somebody_else_writes_there_is_told(home: Home, kind: Kind) -> None:
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    if kind.name == "delta":
        importlib.import_module("deltalake").DeltaTable(str(kind.folder)).delete("score < 1")
    else:
        kind._iceberg().delete("score < 1")
    (told,) = delivery.verify(home)
    assert told.endswith(": the table holds other rows")
    deliver(home, "v1", kind.place)
    assert delivery.verify(home) == []


def test_a_table_that_is_no_release_of_the_dataset_is_never_overwritten(home: Home, kind: Kind) -> None:
    if kind.name == "delta":
        importlib.import_module("deltalake").write_deltalake(str(kind.folder), rows("v0"))
    else:
        catalogue = importlib.import_module("pyiceberg.catalog").load_catalog("hospital")
        catalogue.create_namespace("open")
        catalogue.create_table("open.people", rows("v0").drop(["age"]).schema).append(rows("v0").drop(["age"]))
    before = kind.read()
    publish(home, "v1", rows("v1"))
    assert "is a table that is no release of this dataset" in failure(home, "v1", kind.place)
    assert kind.read() == before


@pytest.mark.long
def test_what_another_home_has_put_there_since_is_not_taken_back(home: Home, kind: Kind, tmp_path: Path) -> None:
    """Two homes make the same version of the same table; the withdrawal of one took the rows of the other along."""
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    other = Home(tmp_path / "other").prepare()
    deliver(other, publish(other, "v1", rows("v2")), kind.place)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert same(kind.read(), "v2")
    assert delivery.verify(other) == delivery.verify(home) == []
    assert kind.holding(f"{FOUND} v1") == []
    withdraw(other, "v1", "too much")
    delivery.deliver(other, DATASET, "v1")
    assert kind.holding(FOUND) == []


@pytest.mark.parametrize("name", ["per%20cent", "num#ber", "quest?ion", "[2024]", "a^b", "a|b", "a\\b", "a\tb"])
@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_delta_lake_cannot_write_to_is_told_and_stays_as_it_is(
    home: Home, tmp_path: Path, name: str, there: bool
) -> None:
    """The library ended the run with a panic, and the copy stayed one that is "being put"."""
    require_package("deltalake")
    folder = tmp_path / name / "people"
    if there:
        folder.mkdir(parents=True)
    assert "call its folders otherwise" in failure(home, publish(home, "v1"), Destination(delta=str(folder)))
    assert [copy.state for copy in record.read(home, DATASET, "v1")] == [record.FAILED]
    assert folder.parent.exists() is there


@pytest.mark.parametrize("call", ["write_deltalake", "DeltaTable"])
def test_a_panic_of_a_library_is_told_without_its_words(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    require_package("deltalake")
    folder = tmp_path / "warehouse"
    place = Destination(delta=str(folder))
    publish(home, "v1")
    if call == "DeltaTable":
        deliver(home, "v1", place)
        publish(home, "v2")
    # What the library raises, from the library itself: a panic is no Exception.
    panic = panic_of_delta_lake(tmp_path)

    def panics(*_: Any, **__: Any) -> None:
        raise panic

    monkeypatch.setattr(f"deltalake.{call}", panics)
    told = failure(home, "v2" if call == "DeltaTable" else "v1", place)
    assert "the library reported PanicException" in told
    assert str(panic) not in told


def panic_of_delta_lake(folder: Path) -> BaseException:
    try:
        importlib.import_module("deltalake").write_deltalake(str(folder / "[a]"), rows("v1"))
    except BaseException as error:
        assert not isinstance(error, Exception)
        return error
    raise AssertionError("Delta Lake writes into every folder by now")


def test_who_stops_a_delivery_is_not_told_of_a_table() -> None:
    with pytest.raises(KeyboardInterrupt), working("delta:there"):
        raise KeyboardInterrupt
