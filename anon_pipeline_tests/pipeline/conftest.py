"""The same homes as the end-to-end tests use."""

from anon_pipeline_tests.end_to_end.conftest import first_run, folder, fresh, published, template

__all__ = ["first_run", "folder", "fresh", "published", "template"]
