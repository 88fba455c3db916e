"""Fixtures that every layer's tests may use, and how hypothesis runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from anon_pipeline.engine.duckdb import DuckDBEngine

#: Imported by a test on purpose, and by the doctest collector only to fail.
collect_ignore = ["learning/gossiping_module.py"]

# The same examples in every run: a test that fails today fails tomorrow. HYPOTHESIS_PROFILE=explore looks further.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    """DuckDB on two threads, as the pipeline uses it."""
    return DuckDBEngine(tmp_path / "spill", threads=2)
