"""The ledger: a line that was altered, removed, moved or added is found, and so is every file it answers for."""

import json
import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, sha256_of, write_file
from anon_pipeline.release import ledger


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with three releases of two datasets."""
    home = Home(tmp_path / "home").prepare()
    for dataset, version in (("people", "aaaa"), ("others", "bbbb"), ("people", "cccc")):
        publish(home, dataset, version)
    return home


def publish(home: Home, dataset: str, version: str) -> None:
    folder = home.releases / dataset / version
    folder.mkdir(parents=True)
    (folder / "data.parquet").write_text(f"data of {version}")
    files = {"data.parquet": {"sha256": sha256_of(folder / "data.parquet")}}
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    with home.lock("ledger"):
        ledger.append(home, "publish", dataset, version, sha256_of(folder / "manifest.json"))


def lines(home: Home) -> list[str]:
    return home.ledger.read_text().splitlines()


def write(home: Home, kept: list[str]) -> None:
    home.ledger.write_text("".join(f"{line}\n" for line in kept))


def test_an_untouched_ledger_holds(home: Home) -> None:
    assert ledger.verify(home) == []
    assert [(one.sequence, one.dataset, one.version) for one in ledger.read(home)] == [
        (1, "people", "aaaa"),
        (2, "others", "bbbb"),
        (3, "people", "cccc"),
    ]
    assert ledger.last_version(home, "people") == "cccc"
    assert ledger.last_version(home, "nobody") is None


def test_releases_of_a_dataset_stand_until_they_are_withdrawn(home: Home) -> None:
    assert [entry.version for entry in ledger.standing(home, "people")] == ["aaaa", "cccc"]
    assert [entry.version for entry in ledger.standing(home, "others")] == ["bbbb"]
    with home.lock("ledger"):
        ledger.append(home, ledger.WITHDRAW, "people", "aaaa", ledger.read(home)[0].manifest)
    assert [entry.version for entry in ledger.standing(home, "people")] == ["cccc"]


def test_an_empty_home_holds(tmp_path: Path) -> None:
    assert ledger.verify(Home(tmp_path)) == []
    assert ledger.read(Home(tmp_path)) == []


def test_each_line_holds_the_hash_of_the_one_before(home: Home) -> None:
    first, second, third = ledger.read(home)
    assert first.previous == ledger.FIRST
    assert second.previous == ledger.hash_of(lines(home)[0])
    assert third.previous == ledger.hash_of(lines(home)[1])


@pytest.mark.parametrize("field", ["time", "dataset", "version", "manifest", "action", "previous", "sequence"])
@pytest.mark.parametrize("number", [0, 1])
def test_an_altered_field_is_found(home: Home, number: int, field: str) -> None:
    altered = lines(home)
    entry = json.loads(altered[number])
    entry[field] = 9 if field == "sequence" else "f" * 64
    altered[number] = json.dumps(entry, sort_keys=True)
    write(home, altered)
    assert any(f"line {number + 1}" in problem for problem in ledger.verify(home))


@pytest.mark.parametrize("field", ["version", "manifest", "dataset", "previous", "sequence"])
def test_an_altered_field_of_the_last_line_is_found(home: Home, field: str) -> None:
    altered = lines(home)
    entry = json.loads(altered[2])
    entry[field] = 9 if field == "sequence" else "f" * 64
    altered[2] = json.dumps(entry, sort_keys=True)
    write(home, altered)
    assert ledger.verify(home)


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept[1:],
        lambda kept: [kept[0], kept[2]],
        lambda kept: kept[:2],
        lambda kept: [kept[1], kept[0], kept[2]],
        lambda kept: [*kept, kept[2]],
        lambda kept: [kept[0], kept[0], *kept[1:]],
        lambda kept: [],
        lambda kept: [*kept, ""],
        lambda kept: [*kept[:2], kept[2][: len(kept[2]) // 2]],
        lambda kept: [kept[0], "{}", *kept[1:]],
        lambda kept: [kept[0], "[1, 2]", *kept[1:]],
        lambda kept: [kept[0], "no json", *kept[1:]],
    ],
    ids=[
        "first removed", "middle removed", "last removed", "swapped", "last twice", "first twice", "emptied",
        "empty line", "torn", "no entry", "a list", "no json",
    ],
)  # fmt: skip
def test_a_changed_sequence_of_lines_is_found(home: Home, change: Callable[[list[str]], list[str]]) -> None:
    write(home, change(lines(home)))
    assert ledger.verify(home)


def test_a_line_that_says_that_it_is_another_one_is_found(home: Home) -> None:
    """Even where all that follows was hashed anew: the chain holds, the numbers do not."""
    first, *rest = [json.loads(line) for line in lines(home)]
    first["sequence"] = 7
    kept = [json.dumps(first)]
    for one in rest:
        kept.append(json.dumps(one | {"previous": ledger.hash_of(kept[-1])}))
    write(home, kept)
    assert "ledger line 1 says that it is line 7" in ledger.verify(home)


def test_a_line_names_its_fields_in_the_order_of_the_alphabet(home: Home) -> None:
    """Its bytes are what the next line's hash and the signature are made of."""
    for line in lines(home):
        assert line == json.dumps(json.loads(line), sort_keys=True)


def test_lines_are_numbered_from_one(home: Home) -> None:
    assert [entry.sequence for entry in ledger.read(home)] == list(range(1, len(lines(home)) + 1))


def test_a_removed_ledger_is_found(home: Home) -> None:
    home.ledger.unlink()
    assert len(ledger.verify(home)) == 4  # three folders without a line, and no newest line


@pytest.mark.long
def test_every_single_byte_counts(home: Home) -> None:
    """Any one altered byte of any line is found."""
    content = home.ledger.read_bytes()
    missed = []
    for place in range(0, len(content), 3):
        altered = bytearray(content)
        altered[place] ^= 1 if place % 2 else 0x80
        home.ledger.write_bytes(altered)
        if not ledger.verify(home):
            missed.append(place)
    assert missed == []


def test_a_last_line_cut_off_with_its_folder_is_found(home: Home) -> None:
    """The chain alone cannot know that it once was longer."""
    last = json.loads(lines(home)[-1])
    write(home, lines(home)[:-1])
    shutil.rmtree(home.releases / last["dataset"] / last["version"])
    assert ledger.verify(home) == ["the last ledger line is not the one that was written last"]


def test_a_head_one_line_behind_is_found(home: Home) -> None:
    """Else whoever can write the ledger could add a line of their own."""
    (home.private / "ledger.head").write_text(ledger.hash_of(lines(home)[-2]))
    assert ledger.verify(home) == ["the last ledger line is not the one that was written last"]
    (home.private / "ledger.head").unlink()
    assert ledger.verify(home) == []  # an auditor's copy has no private zone


def test_a_private_zone_from_an_older_backup_is_not_told_to_give_up_the_releases_since(home: Home) -> None:
    for head in (ledger.hash_of(lines(home)[0]), ledger.hash_of(lines(home)[-2]), ledger.FIRST):
        (home.private / "ledger.head").write_text(head)
        with pytest.raises(Refused, match=r"written last; .*private knows a former line as the last: if it is from"):
            ledger.append(home, ledger.PUBLISH, "others", "eeee", "f" * 64)
    (home.private / "ledger.head").write_text(ledger.hash_of("no line of this ledger"))
    with pytest.raises(Refused, match=r"not the one that was written last; restore .* from a copy"):
        ledger.append(home, ledger.PUBLISH, "others", "eeee", "f" * 64)


def test_an_altered_ledger_is_not_continued(home: Home) -> None:
    """The next line would vouch for what was altered before it."""
    altered = lines(home)
    write(home, [*altered[:2], altered[2].replace("cccc", "dddd")])
    with pytest.raises(Refused, match=r"not the one that was written last; restore .* from a copy"):
        publish(home, "others", "eeee")
    write(home, altered)
    publish(home, "others", "ffff")


def test_a_withdrawal_needs_a_release_before_it(home: Home) -> None:
    ledger.append(home, ledger.WITHDRAW, "people", "none", "f" * 64, "never was")
    assert ledger.verify(home) == ["ledger line 4 is neither of a new release nor of one that stands before"]


def test_a_line_that_is_no_entry_is_bad_input_for_readers(home: Home) -> None:
    write(home, [*lines(home), "no json"])
    with pytest.raises(InputError, match="line 4 is no ledger entry"):
        ledger.read(home)


@pytest.mark.parametrize("name", ["data.parquet", "manifest.json"])
def test_files_are_what_they_were(home: Home, name: str) -> None:
    file = home.releases / "others" / "bbbb" / name
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"x")
    assert ledger.verify(home) == [f"others/bbbb: {name} was altered"]
    file.unlink()
    assert ledger.verify(home) == [f"others/bbbb: {name} is gone"]


def test_a_removed_folder_is_found(home: Home) -> None:
    for file in (home.releases / "others" / "bbbb").iterdir():
        file.unlink()
    (home.releases / "others" / "bbbb").rmdir()
    assert ledger.verify(home) == ["others/bbbb: manifest.json is gone"]


def test_an_added_file_or_folder_is_found(home: Home) -> None:
    (home.releases / "others" / "bbbb" / "names.csv").write_text("")
    (home.releases / "others" / "dddd").mkdir()
    assert sorted(ledger.verify(home)) == [
        "others/bbbb: names.csv was added",
        "others/dddd: the ledger does not know it",
    ]


def test_a_name_adds_no_line_to_what_is_printed(home: Home) -> None:
    """A file called "x, line feed, data.parquet was altered" would else tell of another file than itself."""
    for name in ("x\nothers: data.parquet was altered", "tab\t", "\x1b"):
        (home.releases / "others" / "bbbb" / name).write_text("")
    (home.releases / "top\nline").write_text("")
    (home.releases / "others" / "of\ndataset").symlink_to("bbbb")
    problems = ledger.verify(home)
    assert len(problems) == 5
    assert not [problem for problem in problems if not problem.isprintable()]
    assert "others/bbbb: x␊others: data.parquet was altered was added" in problems


def test_a_dataset_in_the_place_of_a_version_is_told_how_its_version_is_found(home: Home) -> None:
    with pytest.raises(InputError, match=r"people: is a dataset; .* `anon-pipeline releases current people` prints"):
        ledger.published(home, "people", None)
    with pytest.raises(InputError, match="nobody: there is no such release; see `anon-pipeline releases list`"):
        ledger.published(home, "nobody", None)


def test_a_path_in_the_place_of_a_version_is_told_the_version(home: Home) -> None:
    """`releases current --path` prints one, and `report` said that there was no such release."""
    folder = home.releases / "people" / ledger.read(home)[0].version
    with pytest.raises(
        InputError, match=f"{folder}: is a path, which may lead to a copy; name the version {folder.name}$"
    ):
        ledger.published(home, str(folder), None)
    with pytest.raises(InputError, match="nowhere: there is no such release"):
        ledger.published(home, str(folder.parent / "nowhere"), None)


@pytest.mark.parametrize("where", ["names.csv", "people/names.csv"])
def test_a_file_beside_the_releases_is_found(home: Home, where: str) -> None:
    (home.releases / where).write_text("")
    assert ledger.verify(home)


def test_a_manifest_cannot_point_outside_of_its_folder(home: Home) -> None:
    """What a line vouches for by its hash is believed, but nothing else: a manifest without files is one problem."""
    folder = home.releases / "others" / "bbbb"
    (folder / "manifest.json").write_text("{}")
    assert ledger.verify(home) == ["others/bbbb: manifest.json was altered"]


def test_what_a_killed_writer_left_goes_with_the_next_line(home: Home) -> None:
    (home.releases / ".ledger.jsonl.abc").write_text("half")
    publish(home, "people", "dddd")
    assert ledger.verify(home) == []
    assert [file for file in home.releases.iterdir() if file.name.startswith(".")] == []


def test_all_may_read_the_ledger(home: Home) -> None:
    assert home.ledger.stat().st_mode & 0o777 == 0o644


def _many(root: Path, dataset: str) -> None:
    for number in range(10):
        publish(Home(root), dataset, f"{number:04}")


@pytest.mark.long
def test_many_writers_keep_one_chain(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_many, args=(home.root, f"dataset{number}")) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert len(ledger.read(home)) == 40
    assert ledger.verify(home) == []


def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anon_pipeline import home as module

    write_file(tmp_path / "file", "before")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        write_file(tmp_path / "file", "after")
    assert (tmp_path / "file").read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
