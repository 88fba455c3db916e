"""Dagster's records of a test share their engines, as those of a run do: many runs are noted here, hardly any made.

Their files are in memory where possible.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from anon_pipeline.home import Home
from anon_pipeline.pipeline.quick_records import quick_records


@pytest.fixture(autouse=True)
def shared_engines(folder: Path) -> Iterator[None]:
    with quick_records(folder):
        yield


@pytest.fixture
def home(folder: Path) -> Home:
    return Home(folder / "home").prepare()
