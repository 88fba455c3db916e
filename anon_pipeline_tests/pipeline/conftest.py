"""The same homes as the end-to-end tests use, and nothing of one test's Dagster instance in another test."""

from anon_pipeline_tests.end_to_end.conftest import (
    first_run,
    folder,
    fresh,
    no_state_of_another_instance,
    published,
    template,
)

__all__ = ["first_run", "folder", "fresh", "no_state_of_another_instance", "published", "template"]
