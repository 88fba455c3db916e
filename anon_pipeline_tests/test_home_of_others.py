"""Whose a home is, and who may enter it: one of another user is called so, and nobody else enters the private zone."""

import errno
import os
import stat
from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, scratch


def test_whose_home_it_is_comes_before_what_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "var").prepare()

    def refuses(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "chmod", refuses)
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(InputError, match=r"private: belongs to the user .*; run the command as this user"):
        home.prepare()


def test_no_folder_of_the_private_zone_is_as_open_as_the_umask_lets_it(tmp_path: Path) -> None:
    """A folder of temporary files that others may enter is refused, and every later release with it."""
    home, before = Home(tmp_path / "var").prepare(), os.umask(0o022)
    try:
        home.private_folder("scratch", "data_docs")
        with scratch(home.private_folder("scratch")) as folder:
            assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_who_has_a_copy_of_releases_is_told_which_folder_to_name(tmp_path: Path) -> None:
    """An auditor who named the folder `releases` itself was told to run a spec first."""
    (tmp_path / "releases").mkdir()
    with pytest.raises(InputError, match="set ANON_PIPELINE_HOME to the folder in which a folder releases lies"):
        Home(tmp_path / "releases").existing()
    assert Home(tmp_path).existing().root == tmp_path
