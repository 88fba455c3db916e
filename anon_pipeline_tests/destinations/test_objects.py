"""A prefix of a real server of the S3 protocol: a reader sees one release whole, whatever was killed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anon_pipeline.destinations import delivery, objects, record
from anon_pipeline.engine.object_stores import filesystem_of
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination
from anon_pipeline_tests.destinations.releases import DATASET, Killed, deliver, failure, killed_at, publish, table
from anon_pipeline_tests.object_store import BUCKET, SECRET, ObjectStore

PLACE = Destination(objects=f"s3://{BUCKET}/open")
ROOT = f"{BUCKET}/open/{DATASET}"


@pytest.fixture
def store(object_store: ObjectStore) -> ObjectStore:
    """The store, with nothing below the prefix."""
    object_store.files().delete_dir_contents(f"{BUCKET}/open", missing_dir_ok=True)
    return object_store


def content(store: ObjectStore, path: str) -> bytes:
    with store.files().open_input_stream(path, compression=None) as stream:
        return bytes(stream.read())


def read(store: ObjectStore) -> str | None:
    """The version that a reader finds, who goes by pointer and manifest; None where nothing was published yet."""
    try:
        version = content(store, f"{ROOT}/current").decode().strip()
    except FileNotFoundError:
        return None
    files = json.loads(content(store, f"{ROOT}/{version}/manifest.json"))["files"]
    for name, facts in files.items():
        assert hashlib.sha256(content(store, f"{ROOT}/{version}/{name}")).hexdigest() == facts["sha256"]
    assert version.encode() in content(store, f"{ROOT}/{version}/report.html")
    return version


def names(store: ObjectStore) -> set[str]:
    from pyarrow import fs

    below = store.files().get_file_info(fs.FileSelector(ROOT, recursive=True, allow_not_found=True))
    return {info.path.removeprefix(f"{ROOT}/") for info in below if info.type == fs.FileType.File}


FILES = ("classes.parquet", "data.parquet", "manifest.json", "report.html")


@pytest.mark.long
def test_every_file_of_a_release_lies_below_its_version(home: Home, store: ObjectStore) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    assert names(store) == {"current", *(f"v1/{name}" for name in FILES)}
    assert read(store) == "v1"
    assert delivery.verify(home) == []
    deliver(home, publish(home, "v2"), PLACE)
    assert read(store) == "v2"
    assert delivery.verify(home) == []
    assert not any(SECRET in file.read_text() for file in (home.private / "destinations").rglob("*.json"))


@pytest.mark.long
def test_a_small_file_is_no_upload_in_parts_which_would_stay_where_it_is_cut_off(
    home: Home, store: ObjectStore
) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    for name in names(store):
        with store.files().open_input_stream(f"{ROOT}/{name}", compression=None) as stream:
            tag = stream.metadata()["ETag"]
        assert b"-" not in tag, (name, "an object that was made of parts has their number in its tag")


@contextmanager
def killed_before(call: str, moment: int) -> Iterator[None]:
    """A store whose process is killed before the `moment`-th call of this name."""
    genuine, calls = filesystem_of(f"s3://{BUCKET}/x"), 0

    class Store:
        def __getattr__(self, name: str) -> object:
            nonlocal calls
            if name == call:
                if calls == moment:
                    raise Killed
                calls += 1
            return getattr(genuine, name)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(objects, "filesystem_of", lambda _: Store())
        yield


@pytest.mark.long
@pytest.mark.parametrize("moment", range(5))
def test_killed_before_any_put_a_reader_sees_one_release_whole_and_the_next_run_heals(
    home: Home, store: ObjectStore, moment: int
) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    publish(home, "v2")
    with killed_before("open_output_stream", moment), pytest.raises(Killed):
        deliver(home, "v2", PLACE)
    assert read(store) == "v1"
    assert [copy.state for copy in record.read(home, DATASET, "v2")] == [record.PUTTING]
    assert any("v2" in problem for problem in delivery.verify(home))
    deliver(home, "v2", PLACE)
    assert read(store) == "v2"
    assert delivery.verify(home) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "sentence"),
    [("v1/data.parquet", "data.parquet was altered"), ("current", "current does not lead to it")],
)
def test_what_differs_there_is_told_and_mended(home: Home, store: ObjectStore, name: str, sentence: str) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    store.put(f"open/{DATASET}/{name}", b"other")
    assert delivery.verify(home) == [f"people/v1 at s3://{BUCKET}/open: {sentence}"]
    deliver(home, "v1", PLACE)
    assert delivery.verify(home) == []


@pytest.mark.long
def test_what_is_missing_or_was_added_there_is_told(home: Home, store: ObjectStore) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    store.delete(f"open/{DATASET}/v1/report.html")
    store.put(f"open/{DATASET}/v1/more.csv", b"other")
    store.put(f"open/{DATASET}/v1/deeper/more.csv", b"other")
    told = delivery.verify(home)
    assert [problem.rpartition(": ")[2] for problem in told] == ["report.html is gone", "2 objects were added"]


@pytest.mark.long
def test_only_what_was_altered_is_put_again(home: Home, store: ObjectStore) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    store.put(f"open/{DATASET}/v1/data.parquet", b"other")
    with killed_at(objects, "_copy", 9) as calls:
        deliver(home, "v1", PLACE)
    assert len(calls) == 2, "the file and the manifest"
    assert delivery.verify(home) == []


@pytest.mark.long
def test_the_copies_of_the_named_release_only_are_looked_at(home: Home, store: ObjectStore) -> None:
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), PLACE)
    store.put(f"open/{DATASET}/v1/data.parquet", b"other")
    told = [f"people/v1 at s3://{BUCKET}/open: data.parquet was altered"]
    assert delivery.verify(home) == delivery.verify(home, DATASET) == delivery.verify(home, DATASET, "v1") == told
    assert delivery.verify(home, version="v1") == told
    assert delivery.verify(home, DATASET, "v2") == delivery.verify(home, "others", "v1") == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "content"), [("v1/deeper/data.parquet", b"rows"), ("current", b"v1\n")])
def test_what_comes_back_of_a_withdrawn_release_is_told(
    home: Home, store: ObjectStore, name: str, content: bytes
) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert delivery.verify(home) == []
    store.put(f"open/{DATASET}/{name}", content)
    assert delivery.verify(home) == [f"people/v1 at s3://{BUCKET}/open: is there, although the release was withdrawn"]


@pytest.mark.long
@pytest.mark.parametrize("changed", [{"dataset": "others"}, {"version": "v9"}, {"files": {}}])
def test_a_manifest_that_was_altered_is_no_release_of_another_home(
    home: Home, store: ObjectStore, changed: dict[str, object]
) -> None:
    """Whoever may write there could else keep a withdrawn release in its place."""
    deliver(home, publish(home, "v1"), PLACE)
    manifest = json.loads(content(store, f"{ROOT}/v1/manifest.json"))
    if changed == {"files": {}}:  # a part of its files are what they were
        changed = {"files": {**manifest["files"], "data.parquet": {"sha256": "0" * 64}}}
    store.put(f"open/{DATASET}/v1/manifest.json", json.dumps(manifest | changed).encode())
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert names(store) == set()


@pytest.mark.long
def test_an_unchanged_release_is_not_put_again(home: Home, store: ObjectStore) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    with killed_at(objects, "_copy", 0) as calls:
        deliver(home, "v1", PLACE)
    assert calls == []


@pytest.mark.long
def test_a_withdrawn_release_is_gone_and_the_one_before_is_current_again(home: Home, store: ObjectStore) -> None:
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), PLACE)
    withdraw(home, "v2", "too much")
    assert delivery.verify(home) == [
        f"people/v1 at s3://{BUCKET}/open: current does not lead to it",
        f"people/v2 at s3://{BUCKET}/open: is there, although the release was withdrawn",
    ]
    delivery.deliver(home, DATASET, "v2")
    assert names(store) == {"current", *(f"v1/{name}" for name in FILES)}
    assert read(store) == "v1"
    assert delivery.verify(home) == []
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert names(store) == set()


@pytest.mark.long
@pytest.mark.parametrize("moment", range(4))
def test_a_withdrawal_that_was_killed_is_completed_by_the_next_delivery(
    home: Home, store: ObjectStore, moment: int
) -> None:
    deliver(home, publish(home, "v1"), PLACE)
    withdraw(home, "v1", "too much")
    with killed_before("delete_file", moment), pytest.raises(Killed):
        delivery.deliver(home, DATASET, "v1")
    assert len(delivery.verify(home)) == 1
    if moment:
        assert read(store) is None
    if moment > 1:
        assert "v1/manifest.json" not in names(store), "without it, what is left is no release"
    deliver(home, publish(home, "v2"), PLACE)  # the next run
    assert read(store) == "v2"
    assert names(store) == {"current", *(f"v2/{name}" for name in FILES)}
    assert delivery.verify(home) == []


@pytest.mark.long
@pytest.mark.parametrize("ending", [b"", b"\r\n"])
def test_a_pointer_that_somebody_has_written_leads_to_no_withdrawn_release(
    home: Home, store: ObjectStore, ending: bytes
) -> None:
    """It was compared with what is written here, and went on to send readers to a release that is gone."""
    deliver(home, publish(home, "v1"), PLACE)
    store.put(f"open/{DATASET}/current", b"v1" + ending)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert names(store) == set()


def test_what_another_home_has_put_there_is_not_overwritten(home: Home, store: ObjectStore) -> None:
    publish(home, "v1")
    store.put(f"open/{DATASET}/v1/manifest.json", b"{}")
    assert "has a release v1 that another home has put there" in failure(home, "v1", PLACE)
    assert names(store) == {"v1/manifest.json"}


@pytest.mark.long
def test_what_another_home_has_put_there_is_not_taken_back(home: Home, tmp_path: Path, store: ObjectStore) -> None:
    """Two homes make the same version of the same table: the delivery of one is refused, and its withdrawal deleted
    the release of the other with its pointer."""
    other = Home(tmp_path / "other").prepare()
    deliver(other, publish(other, "v1", table("other")), PLACE)
    publish(home, "v1")
    assert "another home" in failure(home, "v1", PLACE)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    (copy,) = record.read(home, DATASET, "v1")
    assert (copy.state, "another home's, and stays" in copy.why) == (record.TAKEN_BACK, True)
    assert read(store) == "v1"
    assert delivery.verify(other) == delivery.verify(home) == []
    store.put(f"open/{DATASET}/v1/manifest.json", b"{}")
    withdraw(other, "v1", "too much")
    delivery.deliver(other, DATASET, "v1")
    assert names(store) == set(), "of a release whose manifest was altered nothing stays"


@pytest.mark.long
def test_a_store_that_is_away_is_told_and_the_release_stands(
    home: Home, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(home, "v1")
    with monkeypatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        told = failure(home, "v1", PLACE)
        assert "people/v1 is published and stands, but" in told
        assert "releases deliver v1" in told
        assert SECRET not in told
    assert record.read(home, DATASET, "v1")[0].state == record.FAILED
    deliver(home, "v1", PLACE)
    assert delivery.verify(home) == []


def test_a_release_that_was_altered_is_put_nowhere(home: Home, store: ObjectStore) -> None:
    publish(home, "v1")
    (home.releases / DATASET / "v1" / "data.parquet").write_bytes(b"other")
    assert "data.parquet was altered" in failure(home, "v1", PLACE)
    assert names(store) == set()


def test_a_service_that_allows_no_such_address_writes_none(
    home: Home, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(home, "v1")
    monkeypatch.setenv("ANON_PIPELINE_ALLOW_OBJECTS", f"s3://{BUCKET}/other")
    assert "begins with no address that specs may name" in failure(home, "v1", PLACE)
    assert names(store) == set()
    with pytest.raises(InputError, match="there is no such release"):
        deliver(home, "v9", PLACE)
