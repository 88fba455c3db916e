"""What is told of copies of withdrawn releases is so: they are gone, or the commands say that they are not."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anon_pipeline.destinations import delivery, delta, record
from anon_pipeline.destinations.base import ABSENT
from anon_pipeline.errors import NotDelivered
from anon_pipeline.home import Home
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination
from anon_pipeline_tests.destinations.releases import DATASET, deliver, publish
from anon_pipeline_tests.end_to_end.harness import forked
from anon_pipeline_tests.skips import require_package


@pytest.fixture
def place(tmp_path: Path) -> Destination:
    require_package("deltalake")
    return Destination(delta=str(tmp_path / "table"))


def files(place: Destination) -> list[str]:
    return sorted(file.name for file in Path(str(place.delta)).glob("*.parquet*"))


def states(home: Home, version: str) -> list[str]:
    return [copy.state for copy in record.read(home, DATASET, version)]


@pytest.mark.long
def test_a_replaced_copy_of_a_withdrawn_release_is_told_until_it_is_taken_back(home: Home, place: Destination) -> None:
    """A table keeps its former states; a withdrawal that was killed before it came to them went unnoticed."""
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), place)
    assert (states(home, "v1"), len(files(place))) == ([record.REPLACED], 2)
    withdraw(home, "v1", "too much")
    assert delivery.verify(home) == [f"people/v1 at {place.label}: is there, although the release was withdrawn"]
    delivery.deliver(home, DATASET, "v1")
    assert (delivery.verify(home), len(files(place))) == ([], 1)


@pytest.mark.parametrize("moment", range(3))
def test_a_disk_that_is_full_after_a_withdrawal_tells_what_stands(
    home: Home, place: Destination, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """It said that the disk is full, with exit code 2, as if nothing were withdrawn; the rows stood at the place."""
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), place)
    withdraw(home, "v2", "too much")
    noted, note = itertools.count(), record.note

    def full(*arguments: Any) -> None:
        if next(noted) >= moment:
            raise OSError(errno.ENOSPC, "No space left on device")
        note(*arguments)

    with monkeypatch.context() as disk:
        disk.setattr(record, "note", full)
        with pytest.raises(NotDelivered, match=r"v2 is withdrawn, but .* \(No space left on device\); free disk space"):
            delivery.deliver(home, DATASET, "v2")
    delivery.deliver(home, DATASET, "v2")
    assert (delivery.verify(home), states(home, "v1"), len(files(place))) == ([], [record.STANDS], 1)


def test_a_disk_that_is_full_before_a_release_is_recorded_puts_it_nowhere(
    home: Home, place: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No withdrawal would find a copy that no record knows."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    publish(home, "v1")
    with monkeypatch.context() as disk:
        disk.setattr(record, "note", full)
        with pytest.raises(NotDelivered, match="v1 is published and stands, but"):
            deliver(home, "v1", place)
    assert files(place) == []


def test_a_copy_that_somebody_puts_there_again_is_taken_back_again(home: Home, place: Destination) -> None:
    """`releases verify` told it, and the command that it asks for said "taken back" and did nothing."""
    folder = Path(str(place.delta))
    deliver(home, publish(home, "v1"), place)
    shutil.copytree(folder, backup := folder.with_name("backup"))
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    assert len(delivery.verify(home)) == 1
    delivery.deliver(home, DATASET, "v1")
    assert (delivery.verify(home), files(place), states(home, "v1")) == ([], [], [record.TAKEN_BACK])


def test_a_place_that_is_no_more_since_a_withdrawal_fails_in_no_later_run(
    home: Home, place: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(home, publish(home, "v1"), place)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    monkeypatch.setitem(delivery.NEEDED, "delta", (("no_such_package",), "delta"))
    with pytest.raises(NotDelivered, match="install"):
        delivery.deliver(home, DATASET, "v1")
    assert states(home, "v1") == [record.TAKEN_BACK]
    publish(home, "v2")
    delivery.deliver(home, DATASET, "v2")


def _rows_without_end(_: object) -> pa.RecordBatchReader:
    batches = (pa.record_batch({"name": [os.urandom(50).hex() for _ in range(10_000)]}) for _ in itertools.count())
    return pa.RecordBatchReader.from_batches(pa.schema([("name", pa.string())]), batches)


def _delivers_without_end(home: Home, version: str, place: Destination) -> None:
    delta.rows_of = _rows_without_end  # type: ignore[assignment]
    deliver(home, version, place)


def cut_off(home: Home, version: str, place: Destination) -> None:
    """A delivery whose process is killed, as the kernel kills, while it writes its first file of rows."""
    before = set(files(place))
    process = forked(_delivers_without_end, home, version, place)
    while not set(files(place)) - before:
        assert process.is_alive()
        time.sleep(0.01)
    process.kill()
    process.join()


@pytest.mark.slow
def test_what_a_killed_delivery_has_half_written_is_removed(home: Home, place: Destination) -> None:
    """On a disk the library writes under another name, which its vacuum passes over: the rows stayed for good."""
    deliver(home, publish(home, "v1"), place)
    cut_off(home, publish(home, "v2"), place)
    assert len(files(place)) == 2
    withdraw(home, "v2", "too much")
    delivery.deliver(home, DATASET, "v2")
    assert (delivery.verify(home), len(files(place))) == ([], 1)


@pytest.mark.slow
def test_rows_of_a_delivery_that_was_killed_before_there_was_a_table_are_told(home: Home, place: Destination) -> None:
    cut_off(home, publish(home, "v1"), place)
    withdraw(home, "v1", "too much")
    with pytest.raises(NotDelivered, match=r"is no table any more, or was none yet .* 1 file of rows"):
        delivery.deliver(home, DATASET, "v1")
    assert len(delivery.verify(home)) == 1
    for name in files(place):
        (Path(str(place.delta)) / name).unlink()
    delivery.deliver(home, DATASET, "v1")
    assert delivery.verify(home) == []


def test_a_file_that_is_missing_elsewhere_does_not_make_up_for_what_is_left(home: Home, place: Destination) -> None:
    """Files were counted: a lost file of the successor hid a file of the withdrawn release."""
    folder = Path(str(place.delta))
    deliver(home, publish(home, "v1"), place)
    (file,) = folder.glob("*.parquet")
    left = Path(shutil.copy(file, folder / "left.parquet"))
    os.utime(left, (time.time() + 3600,) * 2)  # a clock ahead wrote it, so that it is not old enough to be removed
    deliver(home, publish(home, "v2"), place)
    (current,) = set(folder.glob("*.parquet")) - {file, left}
    current.unlink()
    withdraw(home, "v1", "too much")
    with pytest.raises(NotDelivered, match=r"files beside the table's own are still there \(1\)"):
        delivery.deliver(home, DATASET, "v1")


def test_a_withdrawal_that_finds_nothing_says_so(home: Home, place: Destination) -> None:
    """A table that somebody moved elsewhere has its rows still."""
    deliver(home, publish(home, "v1"), place)
    Path(str(place.delta)).rename(Path(str(place.delta)).with_name("theirs"))
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    (copy,) = record.read(home, DATASET, "v1")
    assert (copy.state, copy.why) == (record.TAKEN_BACK, ABSENT)


@pytest.mark.parametrize("state", [record.FAILED, record.PUTTING])
def test_the_current_release_follows_though_it_never_came_there_before(
    home: Home, place: Destination, state: str
) -> None:
    """A delivery that had failed, or was killed, left the place without a release after a withdrawal."""
    record.note(home, DATASET, publish(home, "v1"), place, state)
    deliver(home, publish(home, "v2"), place)
    withdraw(home, "v2", "too much")
    delivery.deliver(home, DATASET, "v2")
    assert (states(home, "v1"), states(home, "v2")) == ([record.STANDS], [record.TAKEN_BACK])
    assert (delivery.verify(home), len(files(place))) == ([], 1)


@pytest.mark.long
def test_a_withdrawn_release_is_taken_back_though_its_successor_cannot_be_put_there(
    home: Home, place: Destination
) -> None:
    """The successor's failure kept the rows of the withdrawn release, or it was not told that it is not there."""
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), place)
    altered = home.releases / DATASET / "v1" / "report.html"
    content = altered.read_bytes()
    altered.write_text("<p>something else</p>")
    withdraw(home, "v2", "too much")
    for _ in range(2):
        with pytest.raises(NotDelivered) as told:
            delivery.deliver(home, DATASET, "v2")
        assert str(told.value) == (
            f"people/v2 is withdrawn, but not every destination follows: {place.label}: the folder of the release is "
            "not what it was: report.html was altered (v1, which is the current release now); run again, or "
            "`anon-pipeline releases deliver v2`"
        )
        assert (states(home, "v1"), states(home, "v2"), files(place)) == ([record.FAILED], [record.TAKEN_BACK], [])
    altered.write_bytes(content)
    delivery.deliver(home, DATASET, "v2")
    assert (states(home, "v1"), len(files(place)), delivery.verify(home)) == ([record.STANDS], 1, [])


def test_a_release_whose_manifest_is_gone_or_another_is_put_nowhere(home: Home, place: Destination) -> None:
    """Rows that were altered together with their manifest were delivered as the release; a folder that is gone ended
    the command in the middle of a withdrawal."""
    deliver(home, publish(home, "v1"), place)
    folder = home.releases / DATASET / "v1"
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace("People", "Persons"))
    Path(str(place.delta)).rename(folder.with_name("theirs"))
    for _ in range(2):
        with pytest.raises(NotDelivered, match=r"not what it was: manifest\.json was altered"):
            delivery.deliver(home, DATASET, "v1")
        assert files(place) == []
        shutil.rmtree(folder, ignore_errors=True)
    (told,) = delivery.verify(home)
    assert told.endswith("nothing to hold it against: the folder of the release was altered")


def test_a_copy_is_not_said_to_stand_where_there_is_nothing_to_compare_it_with(home: Home, place: Destination) -> None:
    deliver(home, publish(home, "v1"), place)
    rows = home.releases / DATASET / "v1" / "data.parquet"
    content = rows.read_bytes()
    rows.write_bytes(content[:-1])
    with pytest.raises(NotDelivered, match=r"nothing to compare the copy with: data\.parquet of the release's own"):
        delivery.deliver(home, DATASET, "v1", compare=True)
    assert len(files(place)) == 1
    rows.write_bytes(content)
    assert delivery.deliver(home, DATASET, "v1", compare=True) == [place.label]
    assert (states(home, "v1"), delivery.verify(home)) == ([record.STANDS], [])
