"""Two releases that are put to one PostgreSQL database at the same time: one waits, and is told for whom."""

from __future__ import annotations

import pytest

from anon_pipeline.destinations import postgresql as module
from anon_pipeline.home import Home
from anon_pipeline_tests.destinations import test_postgresql
from anon_pipeline_tests.destinations.releases import deliver, failure, publish
from anon_pipeline_tests.destinations.test_postgresql import WRITER, place, version_read
from anon_pipeline_tests.postgresql import Server

running, server = test_postgresql.running, test_postgresql.server  # the fixtures


@pytest.mark.long
def test_another_release_that_takes_long_is_told(home: Home, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from adbc_driver_postgresql import dbapi

    monkeypatch.setattr(module, "WAIT", "50ms")
    deliver(home, publish(home, "v1"), place())
    publish(home, "v2")
    with dbapi.connect(server.address("writer", WRITER)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({module.ALONE})")
        cursor.fetchall()
        told = failure(home, "v2", place())
    assert "puts another release, for longer" in told
    assert version_read(server, monkeypatch) == "v1"
    deliver(home, "v2", place())
    assert version_read(server, monkeypatch) == "v2"
