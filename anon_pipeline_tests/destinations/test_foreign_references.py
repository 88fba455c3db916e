"""Tags and branches that others have put on a release in an Iceberg table do not keep it from being withdrawn."""

from __future__ import annotations

import pytest

from anon_pipeline.destinations import delivery
from anon_pipeline.home import Home
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline_tests.destinations import test_lake
from anon_pipeline_tests.destinations.releases import DATASET, deliver, publish
from anon_pipeline_tests.destinations.test_lake import FOUND, Kind, rows, same

kind = test_lake.kind  # the fixture; only its table of Iceberg is asked for below


@pytest.mark.long
@pytest.mark.parametrize("kind", ["iceberg"], indirect=True)
@pytest.mark.parametrize("reference", ["tag", "branch"])
@pytest.mark.parametrize("newest", [True, False])
def test_a_release_that_others_named_is_withdrawn_whole(home: Home, kind: Kind, reference: str, newest: bool) -> None:
    deliver(home, publish(home, "v1", rows("v1")), kind.place)
    table = kind._iceberg()
    make = getattr(table.manage_snapshots(), f"create_{reference}")
    make(table.current_snapshot().snapshot_id, "for_the_paper").commit()
    if not newest:
        deliver(home, publish(home, "v2", rows("v2")), kind.place)
    withdraw(home, "v1", "too much")
    delivery.deliver(home, DATASET, "v1")
    assert kind.holding(f"{FOUND} v1") == []
    assert delivery.verify(home) == []
    assert "for_the_paper" not in kind._iceberg().refs()
    if not newest:
        assert same(kind.read(), "v2")
