"""What is told of copies of withdrawn releases is so: they are gone, or the commands say that they are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from anon_pipeline.destinations import delivery, record
from anon_pipeline.errors import NotDelivered
from anon_pipeline.home import Home
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination
from anon_pipeline_tests.destinations.releases import DATASET, deliver, publish
from anon_pipeline_tests.skips import require_package


@pytest.fixture
def place(tmp_path: Path) -> Destination:
    require_package("deltalake")
    return Destination(delta=str(tmp_path / "table"))


def files(place: Destination) -> list[str]:
    return sorted(file.name for file in Path(str(place.delta)).glob("*.parquet"))


def states(home: Home, version: str) -> list[str]:
    return [copy.state for copy in record.read(home, DATASET, version)]


def test_a_replaced_copy_of_a_withdrawn_release_is_told_until_it_is_taken_back(home: Home, place: Destination) -> None:
    """A table keeps its former states; a withdrawal that was killed before it came to them went unnoticed."""
    for version in ("v1", "v2"):
        deliver(home, publish(home, version), place)
    assert (states(home, "v1"), len(files(place))) == ([record.REPLACED], 2)
    withdraw(home, "v1", "too much")
    assert delivery.verify(home) == [f"people/v1 at {place.label}: is there, although the release was withdrawn"]
    delivery.deliver(home, DATASET, "v1")
    assert (delivery.verify(home), len(files(place))) == ([], 1)


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
