"""A budget is looked at where nothing can be written: an archive, a backup, a disk that is mounted for reading."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.cli.queries import _budget
from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.differential_privacy.verification import verify
from anon_pipeline.home import VARIABLE, Home
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy.tables import policy, write_dataset
from anon_pipeline_tests.differential_privacy.test_budget import question
from anon_pipeline_tests.differential_privacy.test_queries import people


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after which nothing can be written any more, not even by root."""

    def refuses(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def switch() -> None:
        for name in ("mkdir", "chmod", "write_bytes", "write_text", "touch"):
            monkeypatch.setattr(Path, name, refuses)
        monkeypatch.setattr(Home, "lock", refuses)
        monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)

    return switch


def test_it_is_shown_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: Callable[[], None]
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "var"))
    folder = write_dataset(tmp_path / "people", people(), policy())
    allowance = Allowance.of(asked_of(ReleaseSpec.load(folder)))
    Budget(Home.default().prepare(), allowance).ask(question("a"), lambda: b"noise")
    read_only()
    budget = _budget(folder)
    assert (budget.state().reserved, budget.state().answered) == (1, 1)
    assert verify(budget).problems == []


def test_to_look_at_it_makes_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong path became a home, with keys and locks of its own."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "wrong"))
    budget = _budget(write_dataset(tmp_path / "people", people(), policy()))
    assert budget.state().reserved == 0 and verify(budget).problems == []
    assert not (tmp_path / "wrong").exists()


def test_a_home_that_can_be_written_is_locked_while_it_is_read(tmp_path: Path) -> None:
    from filelock import Timeout

    home = Home(tmp_path / "var").prepare()
    with home.reading("budget-x"), pytest.raises(Timeout), home.lock("budget-x", timeout=0):
        pytest.fail("a writer could be here at once")
    with suppress(Timeout), home.lock("budget-x", timeout=0):
        return
    pytest.fail("the lock is still held")
