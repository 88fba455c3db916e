"""An older ledger of a budget that is put back into its own folder waits for a person, as one that was moved does.

What was spent since the backup is not in it: whoever restores a home over itself would get that budget a second time.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

from anon_pipeline.differential_privacy import ledger
from anon_pipeline.errors import Refused
from anon_pipeline.home import write_file
from anon_pipeline_tests.differential_privacy.test_budget import budget_in, question


def wait() -> None:
    """Until the next second, since file systems may know of no shorter time."""
    time.sleep(1.1)


@pytest.mark.parametrize("everything", [True, False])
def test_a_ledger_that_was_restored_into_its_folder_waits_for_a_person(tmp_path: Path, everything: bool) -> None:
    budget, backup = budget_in(tmp_path / "home"), tmp_path / "backup"
    budget.ask(question("a"), lambda: b"x")
    shutil.copytree(budget.folder, backup)
    budget.ask(question("b"), lambda: b"x")
    spent = budget.state().spent
    wait()
    for file in [path for path in backup.glob("*") if path.is_file()]:
        if everything or file.name != ledger.WITNESS:
            shutil.copy2(file, budget.folder / file.name)  # into the same files, with their times
    with pytest.raises(Refused, match="was restored") as refused:
        budget.ask(question("c"), lambda: pytest.fail("noise was drawn"))
    assert "budget verify" in str(refused.value)
    budget.accept("restored after the disk failed; one question is not in it")
    budget.ask(question("c"), lambda: b"x")
    assert budget.state().spent == spent and not ledger.problems(budget.folder, ledger.read(budget.folder))


def test_a_ledger_of_a_former_version_is_continued(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"x")
    (budget.folder / ledger.WITNESS).unlink()
    wait()
    os.utime(budget.folder / ledger.FILE)
    budget.ask(question("b"), lambda: b"x")
    assert (budget.folder / ledger.WITNESS).exists()


@pytest.mark.parametrize("note", ["", "x", "x y z"])
def test_a_spoilt_note_is_taken_for_a_restoration(tmp_path: Path, note: str) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"x")
    (budget.folder / ledger.WITNESS).write_text(note)
    with pytest.raises(Refused, match="was restored"):
        budget.ask(question("b"), lambda: pytest.fail("noise was drawn"))


def test_a_line_that_did_not_fit_on_the_disk_is_no_restoration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"x")
    wait()
    with monkeypatch.context() as full:

        def fails(*_: object) -> None:
            os.utime(budget.folder / ledger.FILE)
            raise OSError(28, "No space left on device")

        full.setattr(ledger, "_write_at", fails)
        with pytest.raises(Exception, match="No space left"):
            budget.ask(question("b"), lambda: pytest.fail("noise was drawn"))
    assert budget.ask(question("b"), lambda: b"x") == (b"x", True)


def test_the_note_is_made_before_and_after_each_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []

    def noted(file: Path, content: str | bytes, public: bool = False) -> None:
        if file.name == ledger.WITNESS:
            notes.append(str(content).split()[1])
        write_file(file, content, public)

    monkeypatch.setattr(ledger, "write_file", noted)
    budget_in(tmp_path).ask(question("a"), lambda: b"x")
    assert [note == ledger.UNDER_WAY for note in notes] == [True, False] * 3
