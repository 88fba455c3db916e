"""A home of another user is called so: the system only said that an operation is not permitted."""

import errno
import os
from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home


def test_whose_home_it_is_comes_before_what_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "var").prepare()

    def refuses(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "chmod", refuses)
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(InputError, match=r"private: belongs to the user .*; run the command as this user"):
        home.prepare()
