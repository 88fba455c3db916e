"""A home belongs to the user who made it: others read its releases, and nobody else writes into its private zone."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import Ended, Place

NOBODY = pwd.getpwnam("nobody").pw_uid
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


def as_nobody() -> None:
    os.chdir("/")
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def whole(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(path), path.lstat().st_uid, path.lstat().st_mtime_ns) for path in folder.rglob("*"))


@pytest.fixture
def reachable(published: Place) -> Place:
    """A home with one release, whose folder others may enter, as that of most services."""
    published.home.root.parent.chmod(0o755)
    return published


@pytest.fixture
def other(reachable: Place) -> Callable[..., Ended]:
    def asks(*arguments: object) -> Ended:
        return harness.command(*arguments, home=reachable.home.root, sabotage=as_nobody)

    return asks


@only_root
def test_another_user_reads_and_checks_releases(reachable: Place, other: Callable[..., Ended]) -> None:
    version = reachable.release.name
    for asked in (["list"], ["show", version], ["verify"], ["verify", version], ["current", "people", "--path"]):
        ended = other("releases", *asked)
        assert ended.exit_code == 0, ended.said
    assert "belongs to the user root, who alone can check copies" in other("releases", "verify").sentence
    (reachable.release / "data.parquet").write_bytes(b"altered")
    assert other("releases", "verify").exit_code == 3


@only_root
@pytest.mark.parametrize("asked", ["open VERSION", "deliver VERSION", "compare VERSION --spec SPEC"])
def test_what_needs_the_private_zone_is_left_to_its_owner(
    reachable: Place, other: Callable[..., Ended], asked: str
) -> None:
    for path in (reachable.dataset, *reachable.dataset.iterdir()):
        path.chmod(0o755)
    words = asked.replace("VERSION", reachable.release.name).replace("SPEC", str(reachable.dataset)).split()
    ended = other("releases", *words)
    assert ended.exit_code == 2, ended.said
    assert "/private: belongs to the user root; run the command as this user" in ended.sentence


@only_root
def test_root_leaves_no_files_in_the_home_of_somebody_else(published: Place) -> None:
    """Its owner could neither open nor lock them: the next command ended with an internal error."""
    for path in (published.home.root, *published.home.root.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    before, version = whole(published.home.root), published.release.name
    assert harness.command("releases", "verify", home=published.home.root).exit_code == 0
    writing = (
        ["run", published.dataset],
        ["prune"],
        ["checks", "--path"],
        ["releases", "withdraw", version, "--why", "x"],
        ["releases", "compare", version, "--spec", published.dataset],
    )
    for asked in writing:
        ended = harness.command(*asked, home=published.home.root)
        assert ended.exit_code == 2, ended.said
        assert "belongs to the user nobody; run the command as this user" in ended.sentence
    assert whole(published.home.root) == before


def test_a_private_zone_of_a_user_who_is_gone_is_told_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path).prepare()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr(Path, "owner", lambda _: pwd.getpwuid(4_000_000_000).pw_name)
    with pytest.raises(InputError, match=rf"private: belongs to the user {os.getuid()}; run the command"):
        home.prepare()
    with pytest.raises(InputError, match="belongs to the user"), home.lock("ledger"):
        pass
