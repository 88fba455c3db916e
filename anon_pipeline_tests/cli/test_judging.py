"""`verify` and `attack`: options that contradict one another, and the exit code that a script goes by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anon_pipeline.audit.attacked_files import Files
from anon_pipeline.audit.foreign_columns import Roles
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.cli.commands import published, run, sentence, written
from anon_pipeline_tests.differential_privacy import synthetic_people

COLUMNS = {
    "age": {"role": "quasi_identifier", "type": "numeric"},
    "ill": {"role": "sensitive", "type": "categorical"},
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two classes of three people each."""
    return written(tmp_path / "people.csv", ["age,ill", "20,no", "20,yes", "20,no", "50,yes", "50,no", "50,yes"])


def spec_of(folder: Path, **more: Any) -> Path:
    content = {"dataset": "people", "source": {"path": "people.csv"}, "target": "ill", "columns": COLUMNS}
    file = folder / "release.yaml"
    file.write_text(yaml.safe_dump(content | {"privacy": {"k_anonymity": {"k": 3}}} | more))
    return file


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name either --spec, or --quasi-identifiers with --k"),
        (("--spec", "x", "--quasi-identifiers", "age"), "name either --spec, or --quasi-identifiers with --k"),
        (("--spec", "x", "--k", "3"), "--k and --sensitive: the spec says both"),
        (("--spec", "x", "--sensitive", "ill"), "--k and --sensitive: the spec says both"),
        (("--quasi-identifiers", " , ", "--k", "3"), "--quasi-identifiers: names no column"),
        (("--quasi-identifiers", "", "--k", "3"), "--quasi-identifiers: names no column"),
        (("--quasi-identifiers", "age"), "--k is missing"),
    ],
)
def test_verify_is_asked_in_a_single_way(table: Path, options: tuple[str, ...], said: str) -> None:
    assert sentence("verify", table, *options).startswith(said)


def test_a_class_of_a_single_person_is_no_demand(table: Path) -> None:
    ended = run("verify", table, "--quasi-identifiers", "age", "--k", "1")
    assert ended.code == 2
    assert run("verify", table, "--quasi-identifiers", "age", "--k", "2").code == 0


@pytest.mark.long
def test_verify_ends_with_3_where_a_table_does_not_hold(table: Path) -> None:
    ended = run("verify", table, "--quasi-identifiers", "age", "--k", "3", "--sensitive", "ill")
    assert (ended.code, ended.lines[0]) == (0, "people.csv: holds")
    assert any(line.startswith("ill: ") for line in ended.lines)
    ended = run("verify", table, "--quasi-identifiers", "age", "--k", "4", "--json")
    assert (ended.code, ended.json["holds"], ended.json["smallest_class"]) == (3, False, 3)


@pytest.mark.long
def test_a_table_is_judged_by_a_spec(table: Path) -> None:
    spec = spec_of(table.parent)
    ended = run("verify", table, "--spec", spec)
    assert (ended.code, ended.lines[0]) == (0, "people.csv: holds")
    written(table, ["age,ill", "20,no", "20,yes", "50,yes", "50,no"])
    assert run("verify", table, "--spec", spec).code == 3


@pytest.mark.long
def test_a_table_of_groups_is_judged_by_its_spec(table: Path) -> None:
    spec = spec_of(table.parent, steps=[{"technique": "aggregate", "columns": ["age"]}])
    written(table, ["age,people", "20,30", "50,40"])
    ended = run("verify", table, "--spec", spec, "--json")
    assert ended.error is None
    assert (ended.code, ended.json["groups"], ended.json["smallest_class"]) == (0, True, 30)
    written(table, ["age,people", "20,30", "50,2"])
    assert run("verify", table, "--spec", spec).code == 3


def test_what_a_synthetic_release_promises_is_not_counted_in_its_table(table: Path) -> None:
    spec = table.parent / "release.yaml"
    spec.write_text(yaml.safe_dump(synthetic_people.content()))
    assert sentence("verify", table, "--spec", spec).startswith("--spec: is of a synthetic release")


@pytest.mark.parametrize(
    ("options", "targets", "seed"),
    [((), 2_000, 0), (("--targets", "1"), 1, 0), (("--seed", "0"), 2_000, 0), (("--seed", "7"), 2_000, 7)],
)
def test_as_many_people_are_attacked_as_the_help_says(
    table: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], targets: int, seed: int
) -> None:
    asked: list[tuple[int, int]] = []

    def attacking(files: Files, roles: Roles, scratch: Path, most: int, drawn: int) -> None:
        asked.append((most, drawn))
        raise InputError("enough")

    monkeypatch.setattr("anon_pipeline.audit.foreign_table.attack_table", attacking)
    assert sentence("attack", table, "--original", table, "--quasi-identifiers", "age", *options) == "enough"
    assert asked == [(targets, seed)]


def test_the_format_of_a_table_is_detected_or_stated(table: Path) -> None:
    table.write_bytes("age|größe\n20|a\n20|a\n".encode("cp1252"))
    ended = run(
        *("verify", table, "--quasi-identifiers", "größe", "--k", "2", "--json"),
        *("--delimiter", "|", "--encoding", "cp1252"),
    )
    assert (ended.code, ended.json["rows"]) == (0, 2)


OF_LETTERS = [("--delimiter", ";"), ("--encoding", "cp1252")]


@pytest.mark.parametrize("option", OF_LETTERS)
@pytest.mark.parametrize("kind", ["parquet", "xlsx", "dta"])
def test_what_is_said_of_text_files_is_not_ignored_for_another_table(
    table: Path, option: tuple[str, str], kind: str
) -> None:
    """Both options were taken for a Parquet file without a word, and an encoding that does not exist, too."""
    file, frame = table.with_suffix(f".{kind}"), pd.DataFrame({"age": [20, 20, 20]})
    {"parquet": frame.to_parquet, "xlsx": frame.to_excel, "dta": frame.to_stata}[kind](file)
    said = sentence("verify", file, "--quasi-identifiers", "age", "--k", "3", *option)
    assert said == f"{option[0]}: is said of text files, and people.{kind} is none; leave it out"


def test_a_sheet_of_several_is_judged_by_its_name(table: Path) -> None:
    """`verify` refused each workbook with two sheets, and had no option to say which."""
    file = table.with_suffix(".xlsx")
    with pd.ExcelWriter(file) as book:
        for sheet, people in (("all", 3), ("few", 2)):
            pd.DataFrame({"age": [20] * people}).to_excel(book, sheet_name=sheet, index=False)
    asked = ("verify", file, "--quasi-identifiers", "age", "--k", "3")
    assert sentence(*asked) == "--sheet: people.xlsx has the sheets all, few; say which holds the people"
    assert run(*asked, "--sheet", "all").code == 0
    assert run(*asked, "--sheet", "few").code == 3
    said = sentence("verify", table, "--quasi-identifiers", "age", "--k", "3", "--sheet", "all")
    assert said == "--sheet: only a workbook of Excel or LibreOffice has sheets; leave it out"


@pytest.mark.parametrize("option", OF_LETTERS)
def test_an_option_of_text_files_needs_one_among_the_files_of_an_attack(table: Path, option: tuple[str, str]) -> None:
    pq.write_table(pa.table({"age": [20, 20, 20]}), table.with_suffix(".parquet"))
    file = table.with_suffix(".parquet")
    said = sentence("attack", file, "--original", file, "--quasi-identifiers", "age", *option)
    assert said == f"{option[0]}: is said of text files, and none of these files is one; leave it out"


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--sensitive", "ill"),
        ("--spec", "SPEC", "--quasi-identifiers", "age"),
        ("--spec", "SPEC", "--sensitive", "ill"),
        ("--spec", "SPEC", "--quasi-identifiers", "age", "--sensitive", "ill"),
    ],
)
def test_attack_is_asked_in_a_single_way(table: Path, options: tuple[str, ...]) -> None:
    spec = str(spec_of(table.parent))
    said = sentence("attack", table, "--original", table, *(spec if option == "SPEC" else option for option in options))
    assert said == "name either --spec, or --quasi-identifiers and, where there are any, --sensitive"


@pytest.mark.parametrize(("option", "value"), [("--targets", "0"), ("--seed", "-1")])
def test_nobody_is_attacked_with_numbers_that_make_no_sense(table: Path, option: str, value: str) -> None:
    columns = ("--quasi-identifiers", "age", "--sensitive", "ill")
    assert run("attack", table, "--original", table, *columns, option, value).code == 2


@pytest.mark.long
@pytest.mark.parametrize("by_spec", [True, False])
def test_what_an_attack_finds_is_no_failure(table: Path, by_spec: bool) -> None:
    named = ("--quasi-identifiers", "age", "--sensitive", "ill")
    columns = ("--spec", spec_of(table.parent)) if by_spec else named
    ended = run("attack", table, "--original", table, *columns)
    assert (ended.code, ended.lines[0]) == (0, "people.csv: 6 rows")
    content = run("attack", table, "--original", table, *columns, "--json").json
    assert (content["columns"]["quasi_identifiers"], content["columns"]["sensitive"]) == (["age"], ["ill"])


@pytest.mark.parametrize(("kind", "notes"), [(None, 1), ("numeric", 0), ("categorical", 0)])
def test_verify_says_of_numbers_without_a_stated_type_that_they_may_be_codes(
    tmp_path: Path, kind: str | None, notes: int
) -> None:
    """Of codes the distance would be larger, and a run may have had them as texts."""
    rows = [f"{20 if place < 3 else 50},{place}" for place in range(6)]
    codes = written(tmp_path / "people.csv", ["age,ill", *rows])
    columns = COLUMNS | {"ill": {"role": "sensitive", "type": kind} if kind else {"role": "sensitive"}}
    demands = {"k_anonymity": {"k": 3}, "t_closeness": {"column": "ill", "t": 1}}
    ended = run("verify", codes, "--spec", spec_of(tmp_path, columns=columns, privacy=demands), "--json")
    assert (ended.code, len(ended.json["notes"])) == (0, notes)
    plain = pd.read_csv(codes)
    plain.to_parquet(tmp_path / "people.parquet")  # which states that they are numbers
    assert run("verify", tmp_path / "people.parquet", "--spec", tmp_path / "release.yaml", "--json").json["notes"] == []


def test_verify_reads_dates_as_the_spec_says(table: Path) -> None:
    """It read the days of a CSV as texts without an order, whatever the spec said, and did not say so."""
    days = [f"{day}.{month}.2024" for month, day in ((1, 30), (2, 20), (3, 10), (10, 30), (11, 20), (12, 10))]
    rows = [f"{20 if place < 3 else 50},{day}" for place, day in enumerate(days)]
    written(table, ["age,born", *rows])
    born = {"role": "sensitive", "type": "date", "format": "%d.%m.%Y"}
    demands = {"k_anonymity": {"k": 3}, "t_closeness": {"column": "born", "t": 0.4, "distance": "ordered"}}
    spec = spec_of(
        table.parent, target="born", columns={**COLUMNS, "ill": {"role": "exclude"}, "born": born}, privacy=demands
    )
    ended = run("verify", table, "--spec", spec, "--json")
    assert (ended.code, ended.json["findings"][1]["measured"], ended.json["notes"]) == (0, pytest.approx(0.3), [])
    ended = run("verify", table, "--quasi-identifiers", "age", "--k", "3", "--sensitive", "born")
    assert ended.code == 0
    assert ended.lines[-1].startswith("note: born: its texts seem to be dates (%d.%m.%Y)")


@pytest.fixture
def folder(home: Home, tmp_path: Path) -> Path:
    """A release of the people of `table`, with the spec in its manifest."""
    folder = published(home, "1" * 12)
    file = folder / "manifest.json"
    policy = ReleaseSpec.load(spec_of(tmp_path)).policy()
    file.write_text(json.dumps(json.loads(file.read_text()) | {"spec": policy}))
    return folder


@pytest.mark.parametrize("by_manifest", [True, False])
def test_the_folder_of_a_release_is_judged(folder: Path, by_manifest: bool) -> None:
    """It was refused, with the file to name in its place."""
    asked = ("--spec", folder / "manifest.json") if by_manifest else ("--quasi-identifiers", "age", "--k", "3")
    ended = run("verify", folder, *asked)
    assert (ended.code, ended.lines[0]) == (0, "data.parquet: holds")
    (folder / "more.csv").write_text("")
    assert "holds more.csv, which its manifest does not name" in sentence("verify", folder, *asked)


def test_a_table_is_judged_by_the_spec_in_a_manifest(folder: Path, table: Path) -> None:
    """A manifest was refused as a spec that lacks most of its keys."""
    asked = ("verify", table, "--spec", folder / "manifest.json", "--json")
    assert run(*asked).code == 0
    written(table, ["age,ill,more", "20,no,1", "20,yes,1", "50,yes,1", "50,no,1"])
    ended = run(*asked)
    assert (ended.code, ended.json["smallest_class"]) == (3, 2)
    assert ended.json["problems"] == ["the column more is not one that the spec releases"]


def test_the_folder_of_a_release_is_attacked(folder: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attacked: list[Path] = []

    def attacking(files: Files, *_: object) -> None:
        attacked.append(files.table)
        raise InputError("enough")

    monkeypatch.setattr("anon_pipeline.audit.foreign_table.attack_table", attacking)
    assert sentence("attack", folder, "--original", table, "--quasi-identifiers", "age") == "enough"
    assert attacked == [folder / "data.parquet"]
    (folder / "more.csv").write_text("")
    assert "holds more.csv" in sentence("attack", folder, "--original", table, "--quasi-identifiers", "age")
