"""The commands on releases that stand: what they print, what they leave, and the exit code a script goes by."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pytest

from anon_pipeline.destinations import delivery
from anon_pipeline.destinations.base import Place
from anon_pipeline.errors import InputError, NotDelivered
from anon_pipeline.home import Home
from anon_pipeline.release import signing
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import Destination
from anon_pipeline_tests.cli.commands import published, run, sentence
from anon_pipeline_tests.skips import require_package


@pytest.fixture(autouse=True)
def _unsigned(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (signing.KEY_VARIABLE, signing.FILE_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.long
def test_releases_are_listed_and_shown(home: Home) -> None:
    folder = published(home, "v1")
    assert [line.split("  ")[2:] for line in run("releases", "list").lines[1:]] == [["people", "v1", "publish"]]
    listed = run("releases", "list", "--json").json
    assert [(line["sequence"], line["version"]) for line in listed["releases"]] == [(1, "v1")]
    shown = run("releases", "show", "v1")
    assert shown.lines[:2] == ["people v1", "state  released"]
    assert shown.lines[-1] == f"folder  {folder}"
    content = run("releases", "show", "v1", "--json").json
    assert content["version"] == "v1"
    assert not {"withdrawn", "copies"} & set(content)


@pytest.mark.long
def test_a_withdrawn_release_is_shown_as_such(home: Home) -> None:
    published(home, "v1")
    ended = run("releases", "withdraw", "v1", "--why", "[too] much")
    assert ended.lines == ["people/v1 is withdrawn; whoever has copied it has it still"]
    assert ended.told == []
    shown = run("releases", "show", "v1").lines
    assert shown[0].startswith("withdrawn on ")
    assert shown[0].endswith(": [too] much")
    assert shown[2] == "state  withdrawn; only its manifest is left"
    assert run("releases", "show", "v1", "--json").json["withdrawn"]["why"] == "[too] much"


def test_a_withdrawal_is_an_object_with_json(home: Home) -> None:
    published(home, "v1")
    line = run("releases", "withdraw", "v1", "--why", "too much", "--json").json
    assert (line["action"], line["version"], line["why"]) == ("withdraw", "v1", "too much")
    assert "copies" not in line


def test_a_manifest_that_cannot_be_read_is_told(home: Home) -> None:
    (published(home, "v1") / "manifest.json").write_text("{")
    assert sentence("releases", "show", "v1") == (
        "v1: its manifest cannot be read; run `anon-pipeline releases verify`"
    )


@pytest.mark.long
def test_verify_ends_with_3_where_something_is_not_what_it_was(home: Home) -> None:
    folder = published(home, "v1")
    published(home, "v2")
    ended = run("releases", "verify")
    assert (ended.code, ended.told) == (0, [])
    assert ended.lines == ["2 ledger lines and all their files are what they were"]
    ended = run("releases", "verify", "v1", "--json")
    assert (ended.code, ended.json) == (0, {"holds": True, "problems": []})
    (folder / "report.html").write_text("[else]")
    (folder / f"[added] {'by hand ' * 12}").write_text("")
    ended = run("releases", "verify")
    assert (ended.code, ended.lines) == (3, [])
    assert any("report.html" in line for line in ended.told)
    assert any("[added]" in line for line in ended.told)
    problems = run("releases", "verify", "--json")
    assert (problems.code, problems.json["holds"]) == (3, False)
    assert problems.json["problems"] == ended.told


@pytest.mark.long
def test_a_signature_is_checked_with_the_public_key_only(home: Home, tmp_path: Path) -> None:
    published(home, "v1")
    file = tmp_path / "key.pem"
    public = run("releases", "key", "--new", file).out
    assert public.startswith("-----BEGIN PUBLIC KEY-----")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(signing.FILE_VARIABLE, str(file))
        assert run("releases", "key").out == public
        assert run("releases", "sign").lines == ["1 ledger line is signed"]
    (tmp_path / "public.pem").write_text(public)
    unchecked = ["the ledger's signature was not checked; name the publisher's --public-key"]
    assert run("releases", "verify").told == unchecked
    ended = run("releases", "verify", "--public-key", tmp_path / "public.pem")
    assert (ended.code, ended.told) == (0, [])
    assert run("releases", "verify", "--json").told == []
    other = run("releases", "key", "--new", tmp_path / "other.pem").out
    (tmp_path / "other").write_text(other)
    ended = run("releases", "verify", "--public-key", tmp_path / "other")
    assert (ended.code, ended.told) == (3, ["the ledger is not what was signed with this key"])


def test_who_has_no_key_is_told_how_to_make_one(home: Home) -> None:
    assert "are not set" in sentence("releases", "key")
    assert signing.KEY_VARIABLE in sentence("releases", "sign")


@pytest.mark.parametrize(("closed", "there"), [(True, True), (False, True), (True, False)])
def test_who_does_not_own_the_home_is_told_what_was_not_checked(
    home: Home, monkeypatch: pytest.MonkeyPatch, closed: bool, there: bool
) -> None:
    published(home, "v1")
    genuine, told = os.access, f"{home.private} belongs to the user {home.owner}, who alone can check"
    if not there:
        home.private.rename(home.root / "elsewhere")
    monkeypatch.setattr(os, "access", lambda path, mode: genuine(path, mode) and not (closed and path == home.private))
    ended = run("releases", "verify", "--json")
    assert ended.json["holds"]
    assert [line.startswith(told) for line in ended.told] == ([True] if closed and there else [])


def test_a_release_is_exported(home: Home, tmp_path: Path) -> None:
    published(home, "v1")
    file = tmp_path / f"[people]{'x' * 80}.csv"
    ended = run("releases", "export", "v1", file)
    assert (ended.out, ended.err) == ("", f"wrote 6 rows to {file}\n")
    with file.open(newline="") as text:
        assert next(csv.reader(text)) == ["age", "ill"]


@pytest.mark.long
def test_a_report_goes_to_stdout_or_to_a_file_for_everybody(home: Home, tmp_path: Path) -> None:
    published(home, "v1")
    page = run("report", "v1").out
    assert page.startswith("# ")
    assert run("report", "v1", "--as", "html").out.lstrip().startswith("<")
    file = tmp_path / f"[report]{'x' * 80}.md"
    ended = run("report", "v1", "--out", file)
    assert (ended.out, ended.err) == ("", f"wrote {file}\n")
    assert file.read_text() == page
    assert file.stat().st_mode & 0o777 == 0o644
    assert sentence("report", "v1", "--out", tmp_path / "absent/report.md").endswith(
        "report.md: cannot be written (No such file or directory)"
    )


@pytest.mark.long
def test_the_current_release_and_its_folder(home: Home) -> None:
    published(home, "v1")
    folder = published(home, "v2")
    assert run("releases", "current", "people").out == "v2\n"
    assert run("releases", "current", "people", "--path").out == f"{folder}\n"
    current = run("releases", "current", "people", "--json").json
    assert current == {"dataset": "people", "version": "v2", "since": current["since"], "folder": str(folder)}
    assert sentence("releases", "current", "nobody").startswith("nobody: no release of it stands")
    shutil.rmtree(folder)
    assert sentence("releases", "current", "people", "--path").startswith(f"{folder}: is gone, and was the current")


def test_the_difference_of_two_releases(home: Home) -> None:
    published(home, "v1")
    published(home, "v2")
    assert run("releases", "diff", "v1", "v2").lines == ["v1 and v2 tell the same of themselves"]
    assert run("releases", "diff", "v1", "v2", "--json").json == {"first": "v1", "second": "v2", "changes": []}


@pytest.fixture
def copied(home: Home, tmp_path: Path) -> Destination:
    """A place to which the release v1 was delivered."""
    require_package("deltalake")
    published(home, "v1")
    place = Destination(delta=str(tmp_path / "warehouse"))
    delivery.deliver(home, "people", "v1", [place])
    return place


@pytest.mark.long
def test_copies_of_a_release_are_shown_and_taken_back(home: Home, copied: Destination) -> None:
    assert run("releases", "show", "v1").lines[-1].startswith(f"stands at {copied.label} since ")
    content = run("releases", "show", "v1", "--json").json
    assert [copy["state"] for copy in content["copies"]] == ["stands"]
    assert run("releases", "deliver", "v1").lines == [f"stands at {copied.label}"]
    delivered = run("releases", "deliver", "v1", "--json").json
    assert (delivered["dataset"], delivered["version"]) == ("people", "v1")
    assert [copy["label"] for copy in delivered["copies"]] == [copied.label]
    ended = run("releases", "withdraw", "v1", "--why", "too much")
    assert ended.lines == ["people/v1 is withdrawn; whoever has copied it has it still"]
    assert ended.told[0].startswith(f"taken back at {copied.label}; the files of all former states are removed")


@pytest.mark.long
def test_a_copy_that_has_lost_its_rows_is_put_again(home: Home, copied: Destination) -> None:
    """The table said that it has the release: the command said "stands", and `releases verify` went on telling it."""
    (file,) = Path(str(copied.delta)).glob("*.parquet")
    file.unlink()
    assert run("releases", "verify").code == 3
    assert run("releases", "deliver", "v1").lines == [f"stands at {copied.label}"]
    assert run("releases", "verify").code == 0


@pytest.mark.long
def test_a_withdrawal_with_copies_is_an_object_with_json(home: Home, copied: Destination) -> None:
    ended = run("releases", "withdraw", "v1", "--why", "too much", "--json")
    assert [copy["state"] for copy in ended.json["copies"]] == ["taken back"]
    assert run("releases", "verify").code == 0


@pytest.mark.long
def test_a_second_withdrawal_takes_back_what_the_first_could_not_reach(
    home: Home, copied: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that the release was withdrawn already, and left the copy."""
    again = ("releases", "withdraw", "v1", "--why")

    def away(_: Destination) -> Place:
        raise InputError("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(delivery, "_place", away)
        for _ in range(2):
            error = run(*again, "too much").error
            assert isinstance(error, NotDelivered)  # exit code 4
            assert str(error).startswith("people/v1 is withdrawn, but not every destination follows")
    ended = run(*again, "another reason")
    assert (ended.code, len(ended.told)) == (0, 1)
    assert ended.told[0].startswith(f"taken back at {copied.label}; the files of all former states are removed")
    (line,) = ended.lines
    assert line.startswith("people/v1 was withdrawn already, on ")
    assert line.endswith(": too much; now its destinations follow, too")
    assert run("releases", "verify").code == 0
    assert sentence(*again, "once more").startswith("people/v1: was withdrawn already, on ")


@pytest.mark.long
def test_a_second_withdrawal_is_told_as_an_object_with_json(home: Home, copied: Destination) -> None:
    withdraw(home, "v1", "too much")
    told = run("releases", "withdraw", "v1", "--why", "another reason", "--json").json
    assert (told["action"], told["why"], [copy["state"] for copy in told["copies"]]) == (
        "withdraw",
        "too much",
        ["taken back"],
    )


def test_a_release_that_is_nowhere_else_is_said_to_be_so(home: Home) -> None:
    published(home, "v1")
    assert run("releases", "deliver", "v1").lines == [
        "people/v1 was put nowhere; name places under publish: in its spec and run it"
    ]
    assert run("releases", "deliver", "v1", "--json").json["copies"] == []


def test_copies_of_the_named_release_only_are_verified(home: Home, tmp_path: Path) -> None:
    published(home, "v1", "people")
    published(home, "v1", "others")
    assert "--dataset" in sentence("releases", "verify", "v1")
    assert run("releases", "verify", "v1", "--dataset", "others").code == 0
