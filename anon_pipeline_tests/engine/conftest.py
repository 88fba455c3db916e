"""Fixtures for the tests of engines."""

from pathlib import Path

import pytest

from anon_pipeline.engine.spark import SparkEngine


@pytest.fixture
def spark(quick_spark: None, tmp_path: Path) -> SparkEngine:
    """Spark on two threads of this machine; the first test starts it, all others find it running."""
    return SparkEngine(tmp_path / "spill", memory_limit="1GB", threads=2)
