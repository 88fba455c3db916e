"""Fixtures that every layer's tests may use, and how hypothesis runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.skips import Skips
from anon_pipeline_tests.watchdog import Watchdog

#: Imported by a test on purpose, and by the doctest collector only to fail.
collect_ignore = ["learning/gossiping_module.py"]

# By default the same examples in every run: a test that fails today fails tomorrow. `make fresh` and `make explore`
# (HYPOTHESIS_PROFILE=fresh) draw others under a seed that is printed; with --hypothesis-seed they can be had again.
# No example is too slow: on a busy machine any may be.
TIMELESS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "max_examples": times(100)}
settings.register_profile("default", derandomize=True, **TIMELESS)
settings.register_profile("fresh", derandomize=False, database=None, print_blob=True, **TIMELESS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Watchdog(config), "watchdog")
    config.pluginmanager.register(Skips(config), "skips")


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    """DuckDB on two threads, as the pipeline uses it."""
    return DuckDBEngine(tmp_path / "spill", threads=2)
