"""Homes to work in: a copy of one that has seen a release already, since MLflow needs seconds to create its schema."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster._core.storage.defs_state.base import DefsStateStorage, set_defs_state_storage

from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import Ended, Place


@pytest.fixture(autouse=True)
def no_state_of_another_instance(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dagster looks for the state of definitions where the instance that was opened last kept it, though it is gone.

    When an instance is collected, which may be in the middle of another test, Dagster goes back to the one before it.
    """
    stored = DefsStateStorage.get

    def of_a_living_instance(_: type[DefsStateStorage]) -> DefsStateStorage | None:
        storage = stored()
        instance = getattr(storage, "_instance_weakref", lambda: None)  # where it is absent, nobody's
        return None if instance is not None and instance() is None else storage

    monkeypatch.setattr(DefsStateStorage, "get", classmethod(of_a_living_instance))
    with set_defs_state_storage(None):
        yield


@pytest.fixture(scope="session")
def first_run() -> Iterator[Ended]:
    """What the run said that made `template`."""
    yield harness.released()[1]
    harness.forget_released()


@pytest.fixture(scope="session")
def template(first_run: Ended) -> Place:
    """A home with one release of `people`; read it, do not change it."""
    return harness.released()[0]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of one's own, in memory."""
    made = harness.scratch()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def published(template: Place, folder: Path) -> Place:
    """A home of one's own with one release."""
    return template.copy(folder)


@pytest.fixture
def fresh(published: Place) -> Place:
    """A home of one's own without a release."""
    return published.without_releases()
