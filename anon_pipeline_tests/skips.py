"""Skips are loud: the summary says what was not tested and what to install, and with CI=true a skip fails the run."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.terminal import TerminalReporter

#: Servers lie where only root looks for programs.
PROGRAMS = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def require_browser() -> str:
    """The installed browser; without one the test is skipped."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no browser is on the PATH: install one, for example with `apt-get install chromium`")
    return found


def require_spark() -> None:
    """Without PySpark or Java the test is skipped."""
    from anon_pipeline.engine.spark_process import INSTALL

    if not all(importlib.util.find_spec(name) for name in ("pyspark", "sqlglot")) or not shutil.which("java"):
        pytest.skip(INSTALL)


def require_postgresql() -> Path:
    """The folder of a PostgreSQL server's programs; without one the test is skipped."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    installed = found[-1] if found else shutil.which("initdb")
    if installed is None:
        pytest.skip("no PostgreSQL server is installed: install one, for example with `apt-get install postgresql`")
    return Path(installed).parent


def require_mariadb() -> None:
    """Without a MariaDB server, and the package that reads it, the test is skipped."""
    if shutil.which("mariadbd", path=PROGRAMS) is None or shutil.which("mariadb-install-db", path=PROGRAMS) is None:
        pytest.skip("no MariaDB server is installed: install one, for example with `apt-get install mariadb-server`")
    require_package("pymysql")


def require_program(name: str) -> None:
    """A program that Debian has under its own name; without it the test is skipped."""
    if shutil.which(name) is None:
        pytest.skip(f"no {name} is on the PATH: install it, for example with `apt-get install {name}`")


def require_package(name: str) -> ModuleType:
    """A package of an extra; without it the test is skipped."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(
            f"the package {name} is not installed: `make test` installs it, or `pip install 'anon-pipeline[dev]'`"
        )
    return importlib.import_module(name)


class Skips:
    """A plugin of pytest; with several workers it speaks in the process that collects their results."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and self._reasons() and _is_strict():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        reasons = self._reasons()
        if not reasons:
            return
        terminalreporter.section("not tested", red=True, bold=True)
        for reason, places in sorted(reasons.items()):
            terminalreporter.line(reason, bold=True)
            for place in sorted(places):
                terminalreporter.line(f"  {place}")
        if _is_strict():
            terminalreporter.line("CI=true: a test that is skipped fails the run", red=True, bold=True)

    def _reasons(self) -> dict[str, set[str]]:
        """What was skipped, by the reason given."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        reasons: dict[str, set[str]] = defaultdict(set)
        for report in reporter.stats.get("skipped", []) if reporter else []:
            told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            reasons[told.removeprefix("Skipped: ")].add(report.nodeid)
        return reasons


def _is_strict() -> bool:
    return os.environ.get("CI") == "true"
