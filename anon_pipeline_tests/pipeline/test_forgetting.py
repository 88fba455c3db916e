"""Forgetting: whoever is on the list is found however an editor has written it, and nobody else is."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation.retention import remove_stage
from anon_pipeline.pipeline.forgetting import Forgotten, forget_people
from anon_pipeline.sequential import release_history
from anon_pipeline_tests.sequential.test_release_history import publish, spec

NAMES = ["ann", " bo ", "bo", "cy", "7"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home").prepare()
    publish(home, "a" * 12, pa.array(NAMES), [0] * 5)
    store(home, "raw_data", pa.array(["somebody else"]))
    return home


def store(home: Home, step: str, identifiers: pa.Array) -> None:
    """The table of a run, as a step stores it."""
    folder = home.private_folder("people") / step
    (folder / ("f" * 16)).mkdir(parents=True, exist_ok=True)
    (folder / "current").write_text("f" * 64)
    pq.write_table(pa.table({"id": identifiers}), folder / ("f" * 16) / "data.parquet")


def left(home: Home) -> list[str]:
    """Who is still known."""
    known = release_history.known(home, "people", pa.array(NAMES)).tolist()
    return [name for name, is_known in zip(NAMES, known, strict=True) if is_known]


@pytest.mark.parametrize(
    ("content", "done", "known"),
    [
        (b"ann\n", Forgotten(1, 1, 1), [" bo ", "bo", "cy", "7"]),
        (b"\xef\xbb\xbfann\ncy", Forgotten(2, 2, 2), [" bo ", "bo", "7"]),
        (b"ann \r\n\r\n\tcy\t\r\nnobody\r\n", Forgotten(3, 2, 2), [" bo ", "bo", "7"]),
        (b"cy\ncy\n", Forgotten(1, 1, 1), ["ann", " bo ", "bo", "7"]),
        (b" bo \n", Forgotten(1, 1, 1), ["ann", "bo", "cy", "7"]),  # the blanks are of the identifier
        (b"bo  \n", Forgotten(1, 1, 1), ["ann", " bo ", "cy", "7"]),
        (b" 7\n", Forgotten(1, 1, 1), ["ann", " bo ", "bo", "cy"]),
    ],
)
def test_whoever_is_listed_is_forgotten(
    home: Home, tmp_path: Path, content: bytes, done: Forgotten, known: list[str]
) -> None:
    (tmp_path / "gone.txt").write_bytes(content)
    assert forget_people(spec(), home, tmp_path / "gone.txt") == done
    assert left(home) == known


def test_numbers_are_found_as_numbers(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    publish(home, "a" * 12, pa.array([7, 8, 9]), [0, 0, 0])
    publish(home, "b" * 12, pa.array([7, 8, 9]), [0, 0, 0])
    store(home, "raw_data", pa.array([8]))
    (tmp_path / "gone.txt").write_text("\ufeff7 \n9\n12\n", encoding="utf-8")
    assert forget_people(spec(), home, tmp_path / "gone.txt") == Forgotten(3, 2, 4)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("secret\n", "its identifier is not in what is kept"),
        ("\n \n", "has no identifier"),
    ],
)
def test_a_list_of_nobody_is_told(home: Home, tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "gone.txt").write_text(content)
    with pytest.raises(InputError, match=sentence) as told:
        forget_people(spec(), home, tmp_path / "gone.txt")
    assert "secret" not in str(told.value)
    assert left(home) == NAMES


@pytest.mark.parametrize("step", ["raw_data", "followed_people"])
def test_who_is_still_in_the_table_is_not_forgotten(home: Home, tmp_path: Path, step: str) -> None:
    """They would come back as newcomers, in a class that nobody of their former class is in."""
    store(home, step, pa.array(["ann", "bo", None]))
    (tmp_path / "gone.txt").write_text("ann\ncy\n")
    with pytest.raises(InputError, match="1 of these people are in the table of the last run"):
        forget_people(spec(), home, tmp_path / "gone.txt")
    assert left(home) == NAMES
    (tmp_path / "gone.txt").write_text("cy\n bo \n")  # whose identifier has blanks is somebody else
    assert forget_people(spec(), home, tmp_path / "gone.txt").entries == 2


def test_nobody_is_forgotten_where_no_run_tells_who_is_still_there(home: Home, tmp_path: Path) -> None:
    """Retention removes the table of the last run, and then everybody seemed to have left the source."""
    remove_stage(home.private_folder("people") / "raw_data")
    (tmp_path / "gone.txt").write_text("ann\n")
    with pytest.raises(InputError, match="no table of a run is stored any more"):
        forget_people(spec(), home, tmp_path / "gone.txt")
    assert left(home) == NAMES


def cut_off(home: Home, list_: Path) -> None:
    """A call that a full disk ends after its note."""
    genuine = release_history.write_file

    def full(file: Path, content: bytes) -> None:
        if file.name == release_history.MEMBERS:
            raise OSError(28, "No space left on device")
        genuine(file, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_history, "write_file", full)
        with pytest.raises(OSError, match="No space"):
            forget_people(spec(), home, list_)


def test_what_a_call_that_was_cut_off_has_begun_is_told_as_done(home: Home, tmp_path: Path) -> None:
    """It was finished, and the command said that nobody was forgotten."""
    (tmp_path / "gone.txt").write_text("ann\ncy\n")
    cut_off(home, tmp_path / "gone.txt")
    remove_stage(home.private_folder("people") / "raw_data")
    assert forget_people(spec(), home, tmp_path / "gone.txt") == Forgotten(2, 2, 2)
    assert left(home) == [" bo ", "bo", "7"]


@pytest.mark.parametrize("asked", ["nobody", "bo"])
def test_what_a_call_that_was_cut_off_has_begun_is_told_with_a_refusal(home: Home, tmp_path: Path, asked: str) -> None:
    (tmp_path / "gone.txt").write_text("ann\n")
    cut_off(home, tmp_path / "gone.txt")
    store(home, "raw_data", pa.array(["bo"]))
    (tmp_path / "gone.txt").write_text(asked)
    with pytest.raises(InputError, match=r"nobody was forgotten but for 1 entry of a call that was cut off: "):
        forget_people(spec(), home, tmp_path / "gone.txt")
    assert left(home) == [" bo ", "bo", "cy", "7"]


def unreadable(patch: pytest.MonkeyPatch, file: Path) -> None:
    """As in a folder of the home that root has made."""
    stat = os.stat

    def denied(path: Any, **named: Any) -> os.stat_result:
        if Path(path) == file:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **named)

    patch.setattr(os, "stat", denied)


def test_a_release_whose_people_cannot_be_looked_at_is_not_passed_over(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told that they are forgotten, and they were in one release of two only."""
    publish(home, "b" * 12, pa.array(NAMES), [0] * 5)
    (tmp_path / "gone.txt").write_text("ann\n")
    with monkeypatch.context() as patch:
        unreadable(patch, release_history.members(home, "people", "b" * 12))
        with pytest.raises(PermissionError):
            forget_people(spec(), home, tmp_path / "gone.txt")
    assert forget_people(spec(), home, tmp_path / "gone.txt") == Forgotten(1, 1, 2)


def test_a_table_of_the_last_run_that_cannot_be_looked_at_is_not_taken_for_none(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another table was asked in its place, which may be of the run before."""
    store(home, "raw_data", pa.array(["ann"]))
    store(home, "followed_people", pa.array(["somebody else"]))
    (tmp_path / "gone.txt").write_text("ann\n")
    read, pointer = Path.read_text, home.private_folder("people") / "raw_data" / "current"

    def denied(path: Path, *arguments: Any, **named: Any) -> str:
        if path == pointer:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", denied)
        with pytest.raises(PermissionError):
            forget_people(spec(), home, tmp_path / "gone.txt")
    assert left(home) == NAMES
