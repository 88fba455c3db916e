"""The same homes as the end-to-end tests use, and nothing of one test's Dagster instance in another test."""

from collections.abc import Iterator

import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage

from anon_pipeline_tests.end_to_end.conftest import first_run, folder, fresh, published, template

__all__ = ["first_run", "folder", "fresh", "published", "template"]


@pytest.fixture(autouse=True)
def no_state_of_another_instance() -> Iterator[None]:
    """Dagster looks for the state of definitions where the instance that was opened last kept it, though it is gone."""
    with set_defs_state_storage(None):
        yield
