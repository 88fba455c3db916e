"""Two datasets of one name do not take turns in one home, and nobody who moves or copies a folder is held up."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.release.spec_folders import keep_folder, require_one_dataset
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.people import write_spec

ROLES = {"age": "quasi_identifier", "t": "sensitive"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a home").prepare()  # the command in a message quotes the blank


def spec(folder: Path) -> ReleaseSpec:
    folder.mkdir(parents=True, exist_ok=True)
    return write_spec(folder, ROLES, "people.csv")


def run(home: Home, folder: Path) -> None:
    """What a run does about its folder, before it reads and after it has released."""
    of = spec(folder)
    require_one_dataset(home, of)
    keep_folder(home, of)


def test_two_datasets_of_one_name_are_told_and_do_not_take_turns(
    home: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A user's accident: a dataset's folder is copied for other people, and its name is left as it was."""
    clinic, school = tmp_path / "clinic", tmp_path / "school"
    with caplog.at_level(logging.WARNING, logger="anon_pipeline"):
        run(home, clinic)
        run(home, clinic)
        assert not caplog.text
        run(home, school)
        assert f"the last release was of {clinic}, which is still there" in caplog.text
    with pytest.raises(InputError, match="two datasets of one name follow each other") as told:
        run(home, clinic)
    command = re.search("`(rm .+)`", str(told.value))
    assert command is not None
    run(home, school)
    subprocess.run(["sh", "-c", command[1]], check=True)  # the way out for whoever knows that they are one
    run(home, clinic)


def test_the_other_one_gets_another_name(home: Home, tmp_path: Path) -> None:
    for folder in ("clinic", "school"):
        run(home, tmp_path / folder)
    other = tmp_path / "school" / "release.yaml"
    other.write_text(other.read_text().replace("dataset: people", "dataset: pupils"))
    run(home, tmp_path / "clinic")


def test_a_folder_that_is_moved_there_and_back_is_one(
    home: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="anon_pipeline"):
        for before, after in (("a", "b"), ("b", "a"), ("a", "c")):
            run(home, tmp_path / before)
            shutil.move(tmp_path / before, tmp_path / after)
            run(home, tmp_path / after)
    assert not caplog.text


def test_checkouts_of_one_repository_take_turns(home: Home, tmp_path: Path) -> None:
    for checkout in ("blue", "green", "blue", "green"):
        run(home, tmp_path / checkout / "clinic")


def test_a_folder_for_each_month_follows_the_last_one(home: Home, tmp_path: Path) -> None:
    for month in ("2026-05", "2026-06", "2026-07"):
        run(home, tmp_path / month)


def test_a_note_that_cannot_be_read_holds_up_nobody(home: Home, tmp_path: Path) -> None:
    run(home, tmp_path / "clinic")
    (note,) = home.private.glob("*.spec-folders")
    note.write_text("{")
    run(home, tmp_path / "school")
