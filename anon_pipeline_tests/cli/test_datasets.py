"""`init`, `profile` and `forget`: what they write, and what they say where nothing can be written."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anon_pipeline.cli.app import out
from anon_pipeline.home import DATA_VARIABLE, Home
from anon_pipeline_tests.cli.commands import run, sentence, written
from anon_pipeline_tests.pipeline.test_forgetting import store
from anon_pipeline_tests.sequential.test_release_history import publish

ROWS = [f"{20 + number % 40},{('Cork', 'Delft')[number % 2]},{('no', 'yes')[number % 3 > 0]}" for number in range(60)]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 60 people beside no dataset."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return written(tmp_path / "people.csv", ["age,town,ill", *ROWS])


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("init", "people"), "--from FILE"),
        (("init", "people", "--from", "people.csv", "--database", "DSN"), "--from FILE"),
        (("profile",), "TABLE"),
        (("profile", "people.csv", "--database", "DSN"), "TABLE"),
    ],
)
def test_a_table_is_named_in_a_single_way(table: Path, arguments: tuple[str, ...], where: str) -> None:
    said = f"say where the table is: {where}, or --database NAME with --table or --query"
    assert sentence(*arguments) == said


@pytest.mark.long
def test_a_dataset_is_begun(table: Path) -> None:
    ended = run("init", "people", "--from", table)
    file = table.parent / "data/people/release.yaml"
    assert ended.lines[0] == "people: 60 rows"
    assert ended.lines[-1] == f"then: anon-pipeline run {file.parent}"
    source = yaml.safe_load(file.read_text())["source"]["path"]
    assert (file.parent / source).resolve() == table.resolve()
    content = run("init", "copied", "--from", table, "--copy", "--target", "ill", "--json").json
    assert content["spec"] == str(table.parent / "data/copied/release.yaml")
    assert content["target"] == "ill"
    assert (table.parent / "data/copied/people.csv").read_text() == table.read_text()


def test_a_file_without_a_header_gets_its_names(table: Path) -> None:
    written(table, ROWS)
    content = run("init", "people", "--from", table, "--names", "age, town,ill", "--json").json
    assert content["rows"] == 60
    source = yaml.safe_load(Path(content["spec"]).read_text())["source"]
    assert (source["header"], source["names"]) == (0, ["age", "town", "ill"])


@pytest.mark.long
def test_what_noisy_questions_need_is_asked_for_on_request(table: Path) -> None:
    plain, noisy = (run("init", name, "--from", table, *more, "--json").json["spec"] for name, more in NOISE)
    assert "differential_privacy" not in Path(plain).read_text()
    assert "differential_privacy" in Path(noisy).read_text()


ROLES = {"id": "identifier", "age": "quasi_identifier", "ill": "sensitive"}
NOISE = (("plain", ()), ("noisy", ("--noise",)))


@pytest.mark.long
def test_a_proposal_is_printed_or_written_for_everybody(table: Path) -> None:
    printed = run("profile", table)
    assert yaml.safe_load(printed.out)["source"]["path"] == "people.csv"
    assert run("profile", table, "--json").json["rows"] == 60
    file = table.parent / "proposed.yaml"
    ended = run("profile", table, "--out", file)
    assert (ended.out, ended.err) == ("", f"wrote {file}; decide its lines that say `decide`, then run it\n")
    assert file.read_text() == printed.out
    assert file.stat().st_mode & 0o777 == 0o644
    assert sentence("profile", table, "--out", file) == f"{file}: exists already; a policy is not overwritten"
    absent = table.parent / "absent/proposed.yaml"
    assert sentence("profile", table, "--out", absent) == f"{absent}: cannot be written (No such file or directory)"
    other = table.parent / "other.yaml"
    assert run("profile", table, "--out", other, "--json").json["rows"] == 60
    assert other.exists()


@pytest.mark.long
@pytest.mark.parametrize("command", [("init", "people", "--from"), ("profile",)])
def test_files_of_a_folder_may_differ_where_it_is_said(table: Path, command: tuple[str, ...]) -> None:
    folder = table.parent / "parts"
    folder.mkdir()
    pq.write_table(pa.table({"age": range(60), "ill": ["no", "yes"] * 30}), folder / "a.parquet")
    pq.write_table(pa.table({"age": range(60), "town": ["Cork"] * 60}), folder / "b.parquet")
    assert run(*command, folder, "--union-by-name", "--json").json["rows"] == 120
    assert run(*(word.replace("people", "others") for word in command), folder, "--json").code != 0


def test_a_profile_is_told_which_sheet_and_which_names(table: Path) -> None:
    """It refused such tables and named options of `init` that it had not."""
    file = table.with_suffix(".xlsx")
    with pd.ExcelWriter(file) as book:
        for sheet, people in (("all", 60), ("few", 20)):
            pd.read_csv(table).head(people).to_excel(book, sheet_name=sheet, index=False)
    assert run("profile", file, "--sheet", "few", "--json").json["rows"] == 20
    written(table, ROWS)
    content = run("profile", table, "--names", "age,town,ill", "--json").json
    assert [column["name"] for column in content["columns"]] == ["age", "town", "ill"]


@pytest.mark.parametrize("command", [("init", "people", "--from"), ("profile",)])
def test_a_single_file_has_no_others_to_differ_from(table: Path, command: tuple[str, ...]) -> None:
    """The option was ignored: whoever gives it expects all files of a folder to be read."""
    said = f"--union-by-name: is said of folders of Parquet files, and {table} is none; leave it out"
    assert sentence(*command, table, "--union-by-name") == said
    assert not (table.parent / "data/people").exists()


@pytest.mark.long
def test_who_is_forgotten_is_counted(table: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out, "width", 30)
    spec = {
        "dataset": "people",
        "source": {"path": "../../people.csv"},
        "target": "ill",
        "columns": {name: {"role": role} for name, role in ROLES.items()},
        "privacy": {"k_anonymity": {"k": 3}},
        "across_releases": {"k": 3},
        "person": "id",
    }
    folder = table.parent / "data/people"
    folder.mkdir(parents=True)
    (folder / "release.yaml").write_text(yaml.safe_dump(spec))
    store(home, "raw_data", pa.array(["somebody else"]))
    for version in ("a" * 12, "b" * 12):
        publish(home, version, pa.array(["Ottilie", "Alwin", "Bertha"]), [0, 0, 0])
    ended = run("forget", folder, written(table.parent / "left.txt", ["Ottilie", "nobody"]))
    assert ended.lines == ["1 of 2 identifiers was found; 2 entries about them were replaced by random numbers"], (
        ended.error
    )
    counted = run("forget", folder, written(table.parent / "left.txt", ["Alwin", "nobody"]), "--json").json
    assert counted == {"dataset": "people", "identifiers": 2, "found": 1, "entries": 2}


@pytest.mark.parametrize("command", [("init", "people", "--from"), ("profile",)])
def test_a_table_of_one_row_has_nothing_to_propose(table: Path, command: tuple[str, ...]) -> None:
    """Every column was proposed as the same for everyone, to be kept as it is."""
    written(table, ["age,town,ill", "34,Cork,no"])
    said = f"{table}: has a single row, and in a release everybody is like others; take a table of more people"
    assert sentence(*command, table) == said
    assert not (table.parent / "data/people").exists()


@pytest.mark.parametrize("command", [("init", "people", "--from"), ("profile",)])
def test_a_command_names_its_option_where_the_engine_names_a_key(table: Path, command: tuple[str, ...]) -> None:
    """`init` named `source.sheet`, a key of a spec that is not written yet."""
    file = table.with_suffix(".xlsx")
    with pd.ExcelWriter(file) as book:
        for sheet in ("all", "few"):
            pd.read_csv(table).to_excel(book, sheet_name=sheet, index=False)
    said = "has the sheets all, few; say which holds the people"
    assert sentence(*command, file).startswith("--sheet: ") and sentence(*command, file).endswith(said)
    assert sentence(*command, file, "--sheet", "none").startswith("--sheet: ")


@pytest.mark.parametrize("command", [("profile",), ("init", "guests", "--from")])
def test_the_option_is_named_for_what_a_spec_would_say(table: Path, command: tuple[str, ...]) -> None:
    """Both the key of a spec and the option were named, of which the reader has used one only, or none yet."""
    table.write_bytes("age,größe\n20,ä\n".encode("cp1252"))
    said = f"--encoding: {table}: cannot be read: line 1 is not in the encoding asked for; state the file's"
    assert sentence(*command, table, "--encoding", "utf-8") == said
    assert sentence(*command, table, "--encoding", "rot13").startswith("--encoding: rot13 is no encoding; usual are ")
    said = f"--encoding: {table}: line 1 is not in the encoding shift_jis; state the file's"
    assert sentence(*command, table, "--encoding", "shift_jis") == said
    folder = table.parent / "months"
    folder.mkdir()
    for month, name in (("1", "age"), ("2", "years")):
        pq.write_table(pa.table({name: [20, 30]}), folder / f"{month}.parquet")
    said = "the column years, which 1.parquet has not; correct it, or say so if that is as it should be"
    assert sentence(*command, folder) == f"--union-by-name: {folder}: 2.parquet has {said}"
