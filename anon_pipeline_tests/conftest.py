"""Fixtures that every layer's tests may use, and how hypothesis runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline_tests.skips import Skips
from anon_pipeline_tests.watchdog import Watchdog

#: Imported by a test on purpose, and by the doctest collector only to fail.
collect_ignore = ["learning/gossiping_module.py"]

# The same examples in every run: a test that fails today fails tomorrow. HYPOTHESIS_PROFILE=explore looks further.
# No example is too slow: on a busy machine any may be.
TIMELESS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", derandomize=True, **TIMELESS)
settings.register_profile("explore", print_blob=True, **TIMELESS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Watchdog(config), "watchdog")
    config.pluginmanager.register(Skips(config), "skips")


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    """DuckDB on two threads, as the pipeline uses it."""
    return DuckDBEngine(tmp_path / "spill", threads=2)
