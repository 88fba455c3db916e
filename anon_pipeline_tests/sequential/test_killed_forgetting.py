"""A `forget` that was killed between two files is finished by the next call, under the numbers that it began with.

The accident: a machine is restarted while people are forgotten. In the first release they are strangers already, in the
second still themselves. A second call took other random numbers for the rest. So everybody who was forgotten became two
strangers of two histories, for whom the next release had to find company twice or not at all.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline import home as home_module
from anon_pipeline.home import Home
from anon_pipeline.pipeline.forgetting import Forgotten, forget_people
from anon_pipeline.sequential import release_history
from anon_pipeline_tests.pipeline.test_forgetting import store
from anon_pipeline_tests.sequential.test_release_history import IDS, publish, spec, window_key

VERSIONS = ("a" * 12, "b" * 12, "c" * 12)
#: The writes of a call: the note, and a file for each release. After them the note is removed.
WRITES = 1 + len(VERSIONS)


class Killed(BaseException):
    """In place of the end of a process, which no `except Exception` stops."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home").prepare()
    for version in VERSIONS:
        publish(home, version, IDS, [0, 0, 0, 1, 1, 1])
    store(home, "raw_data", IDS.slice(3))
    (tmp_path / "gone.txt").write_text("person 1\nperson 2\n")
    return home


def killed_after(writes: int, home: Home, file: Path) -> None:
    """A call that ends after so many files were written."""
    write, remove, left = release_history.write_file, Path.unlink, [writes]

    def until_killed(*given: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        write(*given)

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name == release_history.UNDER_WAY:
            raise Killed
        remove(path, missing_ok)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(release_history, "write_file", until_killed)
        patched.setattr(Path, "unlink", unlink)
        with pytest.raises(Killed):
            forget_people(spec(), home, file)


def strangers(home: Home) -> list[set[int]]:
    """The numbers in each release that are nobody's."""
    everybody = set(release_history.hashed(IDS, window_key(home)).tolist())
    return [set(member.person.tolist()) - everybody for member in release_history.window(home, spec()).members]


def require_forgotten(home: Home) -> None:
    gone = pa.array(["person 1", "person 2"])
    assert not release_history.known(home, "people", gone).any()
    first, second, third = strangers(home)
    assert first == second == third and len(first) == 2
    for member in release_history.window(home, spec()).members:
        assert (np.diff(member.person) > 0).all()
        assert sorted(member.class_) == [0, 0, 0, 1, 1, 1]
    assert not list((home.private / "people" / "memberships").glob("*.parquet"))


@pytest.mark.parametrize("writes", range(1, WRITES + 1))
def test_the_same_call_again_finishes_it(home: Home, tmp_path: Path, writes: int) -> None:
    killed_after(writes, home, tmp_path / "gone.txt")
    done = forget_people(spec(), home, tmp_path / "gone.txt")
    assert done == Forgotten(2, 2, 2 * (WRITES - writes))  # what was replaced before is not counted again
    require_forgotten(home)


@pytest.mark.parametrize("writes", range(1, WRITES + 1))
def test_the_next_run_finishes_it(home: Home, tmp_path: Path, writes: int) -> None:
    killed_after(writes, home, tmp_path / "gone.txt")
    assert release_history.finish_forgetting(home, "people") == 2 * (WRITES - writes)
    require_forgotten(home)
    assert release_history.finish_forgetting(home, "people") == 0


def test_a_call_for_others_finishes_it_too(home: Home, tmp_path: Path) -> None:
    killed_after(2, home, tmp_path / "gone.txt")
    (tmp_path / "other.txt").write_text("person 0\n")
    assert forget_people(spec(), home, tmp_path / "other.txt") == Forgotten(1, 1, 2 * 2 + 3)
    first, second, third = strangers(home)
    assert first == second == third and len(first) == 3


def test_a_call_that_wrote_nothing_changed_nothing(home: Home, tmp_path: Path) -> None:
    killed_after(0, home, tmp_path / "gone.txt")
    assert strangers(home) == [set(), set(), set()]
    assert forget_people(spec(), home, tmp_path / "gone.txt") == Forgotten(2, 2, 6)
    require_forgotten(home)


def _killed_before_renaming(home: Home, file: Path, moment: int) -> None:
    """A process that dies before a file of the history gets its name, as the kernel kills."""
    rename, left = os.replace, [moment]

    def replace(source: str, final: Path) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        rename(source, final)

    home_module.os.replace = replace  # type: ignore[assignment]
    forget_people(spec(), home, file)


@pytest.mark.long
@pytest.mark.parametrize("moment", [0, 1])
def test_no_half_written_file_names_who_is_forgotten(home: Home, tmp_path: Path, moment: int) -> None:
    """What a killed write leaves beside the note says who became which stranger, and stayed there for good.

    A release that was killed while it was remembered leaves the people of the release.
    """
    memberships = home.private / "people" / "memberships"
    shutil.copy(memberships / VERSIONS[0] / release_history.MEMBERS, memberships / VERSIONS[0] / ".members.parquet.x")
    killed = multiprocessing.get_context("fork").Process(
        target=_killed_before_renaming, args=(home, tmp_path / "gone.txt", moment)
    )
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    forget_people(spec(), home, tmp_path / "gone.txt")
    gone = release_history.hashed(pa.array(["person 1", "person 2"]), window_key(home))
    for left in memberships.rglob("*.parquet*"):
        assert not np.isin(gone, pq.read_table(left).column(release_history.PERSON).to_numpy()).any(), left.name
    require_forgotten(home)
