"""Tables with states after more than a release: what is replaced, what comes back, and what others did with it."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from anon_pipeline.destinations import delivery, record
from anon_pipeline.destinations.base import Release
from anon_pipeline.destinations.iceberg import IcebergTable
from anon_pipeline.destinations.lake import WITHDRAWN, metadata_of, working
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import Home
from anon_pipeline.release import ledger
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination
from anon_pipeline_tests.destinations import test_lake
from anon_pipeline_tests.destinations.releases import DATASET, deliver, failure, publish
from anon_pipeline_tests.destinations.test_lake import Kind, rows, same
from anon_pipeline_tests.skips import require_package

kind = test_lake.kind  # the fixture


@pytest.mark.long
def test_a_former_release_is_never_put_over_the_current_one(home: Home, kind: Kind) -> None:
    for version in ("v1", "v2"):
        deliver(home, publish(home, version, rows(version)), kind.place)
    deliver(home, "v1", kind.place)
    assert same(kind.read(), "v2")
    assert [copy.state for copy in record.read(home, DATASET, "v1")] == [record.REPLACED]
    assert delivery.verify(home) == []


def test_a_release_that_never_came_there_is_no_difference_once_it_is_replaced(home: Home, tmp_path: Path) -> None:
    require_package("deltalake")
    place = Destination(delta=str(tmp_path / "open/people"))
    (tmp_path / "open").write_text("a file, where a folder should be")
    assert "cannot be written" in failure(home, publish(home, "v1"), place)
    assert len(delivery.verify(home)) == 1
    publish(home, "v2")
    assert delivery.verify(home) == []


@pytest.mark.long
def test_a_withdrawn_release_that_somebody_puts_back_is_told(home: Home, kind: Kind) -> None:
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    release = Release.of(home, ledger.published(home, "v1", DATASET))
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert delivery.verify(home) == []
    if kind.name == "delta":
        library = importlib.import_module("deltalake")
        named = library.CommitProperties(custom_metadata=metadata_of(release))
        library.write_deltalake(str(kind.folder), rows("v1"), mode="append", commit_properties=named)
    else:
        newest = kind._iceberg().current_snapshot()
        assert newest.summary[WITHDRAWN] == "v1", "a reader of the table finds a state, and what became of it"
        common = rows("v1").set_column(0, "age", pa.array([20, None], pa.int32()))
        kind._iceberg().append(common, snapshot_properties=metadata_of(release))
    (told,) = delivery.verify(home)
    assert told.endswith(": is there, although the release was withdrawn")


@pytest.mark.long
def test_a_table_that_is_gone_holds_no_withdrawn_release(home: Home, kind: Kind) -> None:
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    if kind.name == "delta":
        shutil.rmtree(kind.folder)
    else:
        importlib.import_module("pyiceberg.catalog").load_catalog("hospital").drop_table("open.people")
    assert delivery.verify(home) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["iceberg"], indirect=True)
def test_what_others_made_of_a_release_that_stands_stays_when_another_is_withdrawn(home: Home, kind: Kind) -> None:
    for version in ("v1", "v2"):
        deliver(home, publish(home, version, rows(version)), kind.place)
    kind._iceberg().delete("score < 1")
    theirs = kind._iceberg().current_snapshot().snapshot_id
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert kind._iceberg().snapshot_by_id(theirs) is not None
    assert same(kind.read(), "v2")


def test_a_release_is_replaced_where_the_next_is_put_and_nowhere_else(home: Home, tmp_path: Path) -> None:
    require_package("deltalake")
    first, second = (Destination(delta=str(tmp_path / "deeper" / name / "people")) for name in ("first", "second"))
    publish(home, "v1")
    delivery.deliver(home, DATASET, "v1", [first, second])
    withdrawn = publish(home, "v2")
    deliver(home, withdrawn, first)
    withdraw(home, withdrawn, "too much")
    delivery.deliver(home, DATASET, withdrawn)
    deliver(home, publish(home, "v3"), first)
    states = {version: states_of(home, version) for version in ("v1", "v2", "v3")}
    assert states == {
        "v1": {first.label: record.REPLACED, second.label: record.STANDS},
        "v2": {first.label: record.TAKEN_BACK},
        "v3": {first.label: record.STANDS},
    }


def states_of(home: Home, version: str) -> dict[str, str]:
    return {copy.place.label: copy.state for copy in record.read(home, DATASET, version)}


class CommitFailedError(Exception):
    """As deltalake calls it."""


class NoSuchTableError(Exception):
    """As pyiceberg calls it."""


@pytest.mark.parametrize(
    ("error", "lasting", "sentence"),
    [
        (ValueError("Ottilie"), True, "the table cannot be written or read: the library reported ValueError"),
        (KeyError("Ottilie"), True, "the library reported KeyError"),
        (TypeError("Ottilie"), True, "the library reported TypeError"),
        (NotImplementedError("Ottilie"), True, "the library reported NotImplementedError"),
        (NoSuchTableError("Ottilie"), True, "the library reported NoSuchTableError"),
        (ImportError("Ottilie"), True, "a package that its catalogue or store needs is not installed"),
        (InputError("there: told"), True, "there: told"),
        (CommitFailedError("Ottilie"), False, "somebody else changed the table at the same time; deliver again"),
        (RuntimeError("Ottilie"), False, "the library reported RuntimeError; the store cannot be reached"),
        (OSError("Ottilie"), False, "there: the store cannot be reached"),
        (FileNotFoundError("Ottilie"), False, "there is no such object"),
        (pa.ArrowInvalid("Ottilie is no Parquet file"), True, "it is no intact Parquet file"),
    ],
)
def test_an_error_of_a_library_is_told_in_our_words(error: Exception, lasting: bool, sentence: str) -> None:
    with pytest.raises(InputError) as told, working("there"):
        raise error
    assert sentence in str(told.value)
    assert "Ottilie" not in str(told.value)
    assert isinstance(told.value, Unavailable) is not lasting


def test_an_iceberg_table_that_gives_no_answer_may_lie_in_a_catalogue_that_gives_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(self: IcebergTable, release: Release) -> None:
        raise RuntimeError("Ottilie")

    monkeypatch.setattr(IcebergTable, "_table", away)
    release = Release(DATASET, "v1", Path(), "0" * 64, current=True)
    with pytest.raises(Unavailable, match="RuntimeError; the catalogue or the store cannot be reached"):
        IcebergTable("nightly.clinic.people").holds(release)


def test_too_little_memory_is_no_matter_of_a_table() -> None:
    with pytest.raises(MemoryError), working("there"):
        raise MemoryError
