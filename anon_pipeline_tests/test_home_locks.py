"""Locks of a home: a command that waits for another one says so, and a file system without locks is refused."""

import errno
import fcntl
import logging
import os
from pathlib import Path

import pytest
from filelock import FileLock

from anon_pipeline import home as homes
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home


@pytest.mark.parametrize("answer", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
@pytest.mark.parametrize("used_before", [True, False])
def test_a_home_whose_file_system_has_no_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: int, used_before: bool
) -> None:
    home = Home(tmp_path / "var").prepare()
    if used_before:
        with home.lock("ledger"):
            pass

    def refuses(*_: object) -> None:
        raise OSError(answer, os.strerror(answer))

    monkeypatch.setattr(fcntl, "flock", refuses)
    with pytest.raises(InputError, match="its file system has no locks"), home.lock("ledger"):
        pytest.fail("two commands could be here at once")


def test_another_error_of_a_lock_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", fails)
    with pytest.raises(OSError, match="Input/output"), Home(tmp_path).prepare().lock("ledger"):
        pytest.fail("it is not locked")


def test_a_lock_is_released_after_an_error(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    with pytest.raises(KeyError), home.lock("ledger"):
        raise KeyError
    with home.lock("ledger", timeout=0):
        pass


def test_a_command_that_waits_for_another_one_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path).prepare()
    of_another = FileLock(home.private_folder("locks") / "run-adult.lock")
    of_another.acquire()
    said: list[str] = []

    class Hears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            of_another.release()  # which lets the waiting command go on

    monkeypatch.setattr(homes, "SAID_AFTER", 0.0)
    monkeypatch.setattr(homes.log, "handlers", [Hears()])
    with home.lock("run-adult"):
        assert said == ["waiting for another command of this home, which holds the lock run-adult"]
    with home.lock("run-adult"):
        assert len(said) == 1  # nobody holds it, and nothing is said
