"""Withdrawing: the files go, manifest and reason stay, and a kill in between is completed by the next command."""

import errno
import json
import multiprocessing
import os
import shutil
import signal
from pathlib import Path
from unittest.mock import create_autospec

import pytest

from anon_pipeline import home as home_module
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused, Unavailable
from anon_pipeline.home import Home
from anon_pipeline.release import ledger, publish, unfinished
from anon_pipeline.release.publication import MANIFEST
from anon_pipeline.release.withdraw import WithdrawnAlready, withdraw
from anon_pipeline_tests.release import test_publish
from anon_pipeline_tests.release.test_ledger import publish as plain_release

WHY = "a column told more than it should"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with two releases of one dataset and one of another."""
    home = Home(tmp_path / "home").prepare()
    for dataset, version in (("people", "aaaa"), ("people", "bbbb"), ("others", "aaaa")):
        plain_release(home, dataset, version)
    return home


def files(home: Home, dataset: str, version: str) -> set[str]:
    return {path.name for path in (home.releases / dataset / version).iterdir()}


def test_the_files_go_and_the_manifest_and_the_reason_stay(home: Home) -> None:
    entry = withdraw(home, "bbbb", f"  {WHY} ")
    assert (entry.action, entry.dataset, entry.version, entry.why) == ("withdraw", "people", "bbbb", WHY)
    assert files(home, "people", "bbbb") == {MANIFEST}
    assert files(home, "people", "aaaa") == {MANIFEST, "data.parquet"}
    assert ledger.verify(home) == []
    assert ledger.read(home)[-1] == entry == ledger.withdrawal(home, "people", "bbbb")
    assert [one.version for one in ledger.standing(home, "people")] == ["aaaa"]
    assert ledger.last_version(home, "people") == "aaaa"


def test_folders_and_links_that_somebody_laid_into_a_release_go_and_what_links_lead_to_stays(
    home: Home, tmp_path: Path
) -> None:
    release, outside = home.releases / "people/bbbb", tmp_path / "outside"
    for folder in (outside, release / "copies"):
        folder.mkdir()
        (folder / "data.csv").write_text("age\n7\n")
    (release / "link").symlink_to(outside)
    withdraw(home, "bbbb", WHY)
    assert files(home, "people", "bbbb") == {MANIFEST}
    assert (outside / "data.csv").exists()


def test_lines_of_releases_have_no_reason(home: Home) -> None:
    """A ledger that was written before there were withdrawals reads and hashes as it did."""
    assert all("why" not in json.loads(line) for line in home.ledger.read_text().splitlines())


def test_a_version_of_two_datasets_needs_the_dataset(home: Home) -> None:
    with pytest.raises(InputError, match="people, others have such a release; say which with --dataset"):
        withdraw(home, "aaaa", WHY)
    withdraw(home, "aaaa", WHY, "others")
    assert files(home, "people", "aaaa") == {MANIFEST, "data.parquet"}
    assert ledger.verify(home) == []


@pytest.mark.parametrize("why", ["", "  ", "two\nlines", "x" * 501, "bell \a"])
def test_a_reason_is_a_line(home: Home, why: str) -> None:
    with pytest.raises(InputError, match="--why: is one line"):
        withdraw(home, "bbbb", why)
    assert len(ledger.read(home)) == 3


def test_a_reason_has_at_most_500_characters(home: Home) -> None:
    assert withdraw(home, "bbbb", "x" * 500).why == "x" * 500


def test_what_is_not_there_or_gone_already_cannot_be_withdrawn(home: Home) -> None:
    with pytest.raises(InputError, match="cccc: there is no such release"):
        withdraw(home, "cccc", WHY)
    with pytest.raises(InputError, match="bbbb: there is no such release"):
        withdraw(home, "bbbb", WHY, "others")
    withdraw(home, "bbbb", WHY)
    with pytest.raises(WithdrawnAlready, match=f"was withdrawn already, on .*: {WHY}") as told:
        withdraw(home, "bbbb", "once more")
    assert told.value.entry == ledger.withdrawal(home, "people", "bbbb")


@pytest.mark.parametrize("name", ["data.parquet", "names.csv"])
def test_a_file_that_comes_back_is_found(home: Home, name: str) -> None:
    withdraw(home, "bbbb", WHY)
    (home.releases / "people" / "bbbb" / name).write_text("data of bbbb")
    assert ledger.verify(home) == [f"people/bbbb: {name} is there, although the release was withdrawn"]


def test_the_manifest_of_a_withdrawn_release_is_still_watched(home: Home) -> None:
    withdraw(home, "bbbb", WHY)
    manifest = home.releases / "people" / "bbbb" / MANIFEST
    manifest.write_text(manifest.read_text() + " ")
    assert ledger.verify(home) == [f"people/bbbb: {MANIFEST} was altered"]
    manifest.unlink()
    assert ledger.verify(home) == [f"people/bbbb: {MANIFEST} is gone"]


def test_files_that_cannot_be_removed_are_told_and_removed_by_the_next_command(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name == "data.parquet":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        remove(path, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink)
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"bbbb: the release is withdrawn, but its files cannot be removed"):
                withdraw(home, "bbbb", "too much", "people")
    assert any("although the release was withdrawn" in problem for problem in ledger.verify(home))
    assert withdraw(home, "bbbb", "once more", "people").why == "too much"
    assert ledger.verify(home) == []
    with pytest.raises(InputError, match="was withdrawn already"):
        withdraw(home, "bbbb", "once more", "people")


@pytest.mark.parametrize("where", ["the folder cannot be listed", "the pointer cannot be moved"])
def test_a_withdrawal_that_the_system_refuses_is_not_told_as_done(
    home: Home, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Path.glob passes over a folder that it may not list: the files stayed, and no later command removed them."""
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def refuse(*_: object) -> None:
        raise denied

    with monkeypatch.context() as patched:
        for module, name in [(os, "listdir"), (os, "scandir")] if "listed" in where else [(ledger, "point")]:
            patched.setattr(module, name, refuse)
        with pytest.raises(Unavailable, match=r"bbbb: the release is withdrawn, but its files cannot be removed"):
            withdraw(home, "bbbb", "too much", "people")
    assert files(home, "people", "bbbb") == {MANIFEST, "data.parquet"}
    assert withdraw(home, "bbbb", "too much", "people").action == ledger.WITHDRAW
    assert files(home, "people", "bbbb") == {MANIFEST}


def test_a_withdrawal_that_a_full_disk_stops_is_told_as_begun(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk was said to be full, and nothing else: the next run withdrew the release, whatever was decided since."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    before = home.ledger.read_bytes()
    for module, name in ((unfinished, "note"), (ledger, "append")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, create_autospec(getattr(module, name), side_effect=full))
            with pytest.raises(OSError if name == "note" else Unavailable) as told:
                withdraw(home, "bbbb", WHY, "people")
        assert ("its withdrawal is noted, but the system refuses" in str(told.value)) == (name == "append")
        assert home.ledger.read_bytes() == before
    assert withdraw(home, "bbbb", "once more", "people").why == WHY  # as the sentence says that it should be done
    assert ledger.withdrawal(home, "people", "bbbb") is not None


def test_what_another_withdrawal_left_undone_is_no_withdrawal_of_this_one(home: Home) -> None:
    withdraw(home, "bbbb", WHY, "people")
    other = ledger.published(home, "aaaa", "people")
    unfinished.note(home, ledger.WITHDRAW, "people", "aaaa", other.manifest, "too much")
    with pytest.raises(InputError, match="bbbb: was withdrawn already"):
        withdraw(home, "bbbb", WHY, "people")
    assert ledger.withdrawal(home, "people", "aaaa") is not None


def test_an_altered_ledger_is_not_continued_by_a_withdrawal(home: Home) -> None:
    home.ledger.write_text("".join(home.ledger.read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(Refused, match="not the one that was written last"):
        withdraw(home, "bbbb", WHY)
    assert files(home, "people", "bbbb") == {MANIFEST, "data.parquet"}


KILLS = ["note", "ledger", "head", "files", "tidied"]


def _killed_withdrawal(root: Path, moment: str) -> None:
    """A process that dies, as the kernel kills, before this moment of a withdrawal."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    rename, unlink, remove = os.replace, Path.unlink, unfinished._remove_all_but_the_manifest
    names = {"note": "unfinished.json", "ledger": "ledger.jsonl", "head": "ledger.head"}

    def replace(source: str, final: Path) -> None:
        if Path(final).name == names.get(moment):
            die()
        rename(source, final)

    def unlinked(path: Path, missing_ok: bool = False) -> None:
        if moment == "tidied" and path.name == "unfinished.json":
            die()
        unlink(path, missing_ok)

    home_module.os.replace = replace  # type: ignore[assignment]
    Path.unlink = unlinked  # type: ignore[method-assign]
    unfinished._remove_all_but_the_manifest = die if moment == "files" else remove
    withdraw(Home(root), "bbbb", WHY)


@pytest.mark.parametrize("moment", KILLS)
def test_a_killed_withdrawal_is_undone_or_completed(home: Home, moment: str) -> None:
    killed = multiprocessing.get_context("fork").Process(target=_killed_withdrawal, args=(home.root, moment))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL

    plain_release(home, "people", "cccc") if moment == "note" else withdraw(home, "aaaa", WHY, "others")

    told = [(entry.action, entry.version) for entry in ledger.read(home)[3:]]
    if moment == "note":
        assert told == [("publish", "cccc")]
        assert files(home, "people", "bbbb") == {MANIFEST, "data.parquet"}
    else:
        assert told == [("withdraw", "bbbb"), ("withdraw", "aaaa")]
        assert files(home, "people", "bbbb") == {MANIFEST}
    assert ledger.verify(home) == []
    assert not (home.private / "unfinished.json").exists()


@pytest.mark.long
def test_a_withdrawn_release_is_not_published_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither stands for "released already" nor comes back under the same name."""
    monkeypatch.setattr(publish.release_report, "render", lambda content: "")
    home, engine = Home(tmp_path / "home").prepare(), DuckDBEngine(tmp_path / "spill")
    candidate = test_publish.candidate_of(tmp_path / "candidate", test_publish.TABLE)
    first = publish.publish(home, test_publish.SPEC, engine, candidate, test_publish.FACTS)
    withdraw(home, first.version, WHY)
    with pytest.raises(
        Refused, match=rf"{first.version}, which was withdrawn on .*{WHY}.*; change the source or the spec"
    ):
        publish.publish(home, test_publish.SPEC, engine, candidate, test_publish.FACTS)
    assert {path.name for path in first.folder.iterdir()} == {MANIFEST}
    assert ledger.verify(home) == []
    more = test_publish.candidate_of(tmp_path / "more", test_publish.pd.concat([test_publish.TABLE] * 2))
    second = publish.publish(home, test_publish.SPEC, engine, more, test_publish.FACTS)
    assert second.manifest["previous"] is None
    assert ledger.verify(home) == []


@pytest.mark.parametrize("folder", ["people/bbbb", "people"])
def test_a_release_whose_folder_somebody_has_removed_is_withdrawn_all_the_same(home: Home, folder: str) -> None:
    """The ledger got no line, and the command printed that of another release as withdrawn, or asked for the folder."""
    shutil.rmtree(home.releases / folder)
    entry = withdraw(home, "bbbb", WHY)
    assert (entry.action, entry.release, entry.why) == (ledger.WITHDRAW, ("people", "bbbb"), WHY)
    assert ledger.withdrawal(home, "people", "bbbb") == ledger.read(home)[-1] == entry
    assert f"people/bbbb: {MANIFEST} is gone" in ledger.verify(home)
    withdraw(home, "aaaa", WHY, "others")
