"""Fixtures that every layer's tests may use, and how hypothesis runs."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline_tests import fixed_keys
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.object_store import ObjectStore, running_object_store
from anon_pipeline_tests.quick_spark import LOG, QUICK, defaults_in, write_defaults
from anon_pipeline_tests.skips import Skips, require_spark
from anon_pipeline_tests.watchdog import Watchdog

# By default the same examples in every run: a test that fails today fails tomorrow. `make fresh` and `make explore`
# (HYPOTHESIS_PROFILE=fresh) draw others under a seed that is printed; with --hypothesis-seed they can be had again.
# No example is too slow: on a busy machine any may be.
TIMELESS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "max_examples": times(100)}
settings.register_profile("default", derandomize=True, **TIMELESS)
settings.register_profile("fresh", derandomize=False, database=None, print_blob=True, **TIMELESS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
if os.environ.get("HYPOTHESIS_PROFILE", "default") == "default":
    fixed_keys.fix()

#: Tests of these fixtures, and all of these rooms, run whole commands or start Spark: `make fast` leaves them out, with
#: whatever else is marked slow.
SLOW_FIXTURES = {"beside", "desk", "first_run", "fresh", "published", "quick_spark", "template"}
SLOW_ROOMS = {"end_to_end"}
#: Files whose tests find Spark running if another of them has started it: one worker takes them all.
SHARING_SPARK = {
    "differential_privacy/test_queries.py",
    "differential_privacy/test_reading.py",
    "engine/test_records.py",
    "engine/test_spark.py",
    "engine/test_spark_refusals.py",
    "masking/test_spark.py",
    "pipeline/test_same_release.py",
}


class FilesOfAWorker(LoadFileScheduling):
    """The tests of a file go to one worker, and those of all files that share Spark to one, too."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "spark" if file.endswith(tuple(SHARING_SPARK)) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    return FilesOfAWorker(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """A worker more than cores: while a test waits for a server, a browser or a disk, another one works."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if SLOW_ROOMS.intersection(item.path.parts) or SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What is imported and collected stays to the end: no use in going through it again and again."""
    gc.freeze()


# What a worker has left to be collected may belong to threads, which a fork of it has not: collected there, it crashes.
os.register_at_fork(after_in_child=gc.freeze)


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries tell at the end what was not given back to them


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Watchdog(config), "watchdog")
    config.pluginmanager.register(Skips(config), "skips")


def pytest_runtest_setup() -> None:
    """Let pytest hear the package's log: commands send it to their own terminal, and other libraries switch it off."""
    log = logging.getLogger("anon_pipeline")
    log.handlers, log.propagate, log.disabled = [], True, False
    log.setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> DuckDBEngine:
    """DuckDB on two threads, as the pipeline uses it; one for all tests, as for all steps of a run."""
    return DuckDBEngine(tmp_path_factory.mktemp("spill"), threads=2)


@pytest.fixture(scope="session")
def running_store() -> Iterator[ObjectStore]:
    """One object store for all tests."""
    with running_object_store() as store:
        yield store


@pytest.fixture
def object_store(running_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The object store, whose credentials and endpoint stand in the environment."""
    for name, value in running_store.environment.items():
        monkeypatch.setenv(name, value)
    return running_store


@pytest.fixture(scope="session")
def quick_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Spark with settings for short tests; whichever test comes first starts it, all others find it running."""
    require_spark()
    with defaults_in(write_defaults(tmp_path_factory.mktemp("spark"), QUICK, LOG)):
        yield
