"""Who works is left in peace however long it takes; who hangs is failed, with a word on where."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anon_pipeline_tests import watchdog
from anon_pipeline_tests.watchdog import Rest, works

ROOT = Path(__file__).parents[1]
PLUGINS = """
from anon_pipeline_tests.skips import Skips
from anon_pipeline_tests.watchdog import Watchdog

def pytest_configure(config):
    config.pluginmanager.register(Watchdog(config, every=0.2, quiet=3.0), "watchdog")
    config.pluginmanager.register(Skips(config), "skips")
"""
WORKS, RESTS = "while True: pass", "import time; time.sleep(10 ** 6)"


@contextmanager
def running(code: str) -> Iterator[int]:
    """A shell whose child runs Python."""
    with subprocess.Popen(["sh", "-c", f"{sys.executable} -c '{code}' & wait"], start_new_session=True) as shell:
        try:
            yield shell.pid
        finally:
            os.killpg(shell.pid, 9)


def soon(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true while one looks often, counted in looks."""
    return any(condition() for _ in range(20_000))


@pytest.mark.long
def test_a_child_at_work_is_seen_and_one_at_rest_is_too() -> None:
    with running(WORKS) as pid:
        assert soon(lambda: watchdog.cpu_seconds(pid) > 0.1)
        assert works(pid)
        rest = Rest(pid, most=3)
        assert not any(rest.hangs() for _ in range(20))
    with running(RESTS) as pid:
        assert soon(lambda: not works(pid))
        rest = Rest(pid, most=3)
        assert soon(rest.hangs)


def test_who_works_now_and_then_is_not_at_work_and_who_works_often_is(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: Iterator[bool] = iter(())
    monkeypatch.setattr(watchdog, "works", lambda root: next(looks))
    monkeypatch.setattr(watchdog, "slowness", lambda: 1.0)
    looks = iter(([False] * 19 + [True]) * 100)
    rest = Rest(0, most=100)
    assert sum(not rest.hangs() for _ in range(400)) < 400
    looks = iter(([False] * 9 + [True]) * 100)
    rest = Rest(0, most=100)
    assert not any(rest.hangs() for _ in range(1000))


def test_a_slow_machine_is_given_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "works", lambda root: False)
    monkeypatch.setattr(watchdog, "slowness", lambda: 4.0)
    rest = Rest(0, most=10)
    assert [rest.hangs() for _ in range(40)] == [False] * 39 + [True]


def pytest_says(folder: Path, tests: str, **environment: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(PLUGINS)
    (folder / "test_it.py").write_text(tests)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", "/dev/null", str(folder)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "CI"} | environment,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.long
def test_a_test_that_hangs_fails_with_its_stack_and_the_next_one_runs(tmp_path: Path) -> None:
    code, said = pytest_says(
        tmp_path,
        "import threading\ndef test_hangs():\n    threading.Event().wait()\ndef test_next():\n    pass\n",
    )
    assert code == 1
    assert "1 failed, 1 passed" in said
    assert "it hangs: nothing of it has worked for long" in said
    assert "threading.Event().wait()" in said


@pytest.mark.long
def test_a_test_that_cannot_be_failed_ends_the_run(tmp_path: Path) -> None:
    stubborn = (
        "import threading\ndef test_hangs():\n    while True:\n        try:\n            threading.Event().wait()\n"
    )
    code, said = pytest_says(tmp_path, stubborn + "        except BaseException:\n            pass\n")
    assert code == 1
    assert "it hangs: nothing of it has worked for long" in said
    assert "test_it.py" in said


@pytest.mark.long
def test_a_skip_says_what_was_not_tested_and_fails_where_all_must_be(tmp_path: Path) -> None:
    tests = "from anon_pipeline_tests.skips import require_package\ndef test_cells():\n    require_package('h4')\n"
    code, said = pytest_says(tmp_path, tests)
    assert code == 0
    summary = said[said.index("not tested") :]
    assert "the package h4 is not installed: `make test` installs it" in summary
    assert "test_it.py::test_cells" in summary
    code, said = pytest_says(tmp_path, tests, CI="true")
    assert code == 1
    assert "CI=true: a test that is skipped fails the run" in said


def test_no_wait_in_the_tests_has_a_limit_of_its_own() -> None:
    """What ends a wait is what it waits for, or the watchdog."""
    limit = re.compile(r"timeout=(?!0\b)|deadline=(?!None)|mark\.timeout|\.(join|wait)\(\d|time\.monotonic")
    allowed = {"watchdog.py", "test_watchdog.py", "browser.py"}
    found = [
        f"{file.name}:{number}: {line.strip()}"
        for file in sorted((ROOT / "anon_pipeline_tests").rglob("*.py"))
        if file.name not in allowed
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if limit.search(line)
    ]
    assert found == []
