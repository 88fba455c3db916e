"""Attacking tables of any make: a planted leak is found, other people's data are not called one, bad input is told."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from anon_pipeline import cli
from anon_pipeline.attack import inference
from anon_pipeline.audit.attacked_files import Files, read_table
from anon_pipeline.audit.foreign_columns import Roles
from anon_pipeline.audit.foreign_table import FOR_WHOM, AttackedTable, _of_other_length, attack_table
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType, ReleaseSpec, Source
from anon_pipeline_tests.attack.tables import CITIES, KNOWLEDGE, QUASI, anonymized, people

ROLES = Roles(list(QUASI), ["ill", "cost"])
N = 900
LONG = inference.ITERATIONS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of one population: people in a release, others, and three tables made of or without them."""
    here = tmp_path_factory.mktemp("tables")
    everybody = people(2 * N, 0)
    members, others = everybody[:N].reset_index(drop=True), everybody[N:]
    members.to_parquet(here / "people.parquet")
    members.to_csv(here / "people.csv", index=False)
    others.to_csv(here / "others.csv", index=False)
    released, classes, origin = anonymized(members, form="range")
    (here / "ours").mkdir()
    released.to_parquet(here / "ours/data.parquet")
    classes.to_parquet(here / "ours/classes.parquet")
    released.to_csv(here / "release.csv", index=False)
    order = np.random.default_rng(5).permutation(N)
    raw = released.assign(joined=members["joined"].to_numpy()[origin], age=members["age"].to_numpy()[origin])
    raw.iloc[order].to_csv(here / "planted.csv", index=False)
    people(N, 99).to_csv(here / "strangers.csv", index=False)
    return here


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that guess learn for a while only: how well they guess is looked at nowhere here but among strangers."""
    monkeypatch.setattr(inference, "ITERATIONS", 5)


def attacked(
    folder: Path, tmp_path: Path, table: str, roles: Roles = ROLES, targets: int = 200, **how: Any
) -> AttackedTable:
    files = {"original": "people.parquet", "control": "others.csv"} | how
    control = None if files["control"] is None else folder / files["control"]
    return attack_table(Files(folder / table, folder / files["original"], control), roles, tmp_path, targets)


@pytest.fixture(scope="module")
def of_planted(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AttackedTable:
    """The table with the planted leak, attacked once for all who look at it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference, "ITERATIONS", 5)
        return attacked(folder, tmp_path_factory.mktemp("planted"), "planted.csv")


def leak(found: AttackedTable, name: str = "linkage, all quasi-identifiers") -> Any:
    (one,) = [one for one in found.findings if one.name == name]
    return one


@pytest.mark.long
def test_a_column_left_raw_is_found_and_told_from_a_release_without_one(
    folder: Path, tmp_path: Path, of_planted: AttackedTable
) -> None:
    planted = leak(of_planted)
    clean = leak(attacked(folder, tmp_path, "release.csv"))
    assert planted.verdict == "leak"
    assert planted.leak.low > 0.5
    assert clean.leak.high < 0.2


@pytest.mark.long
def test_people_of_the_same_population_who_are_not_in_the_original_are_no_leak(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "ITERATIONS", LONG)
    found = attacked(folder, tmp_path, "strangers.csv")
    assert [one.name for one in found.findings if one.verdict == "leak"] == []


@pytest.mark.long
def test_a_csv_says_the_same_as_a_parquet_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = attacked(folder, tmp_path / "a", "planted.csv", targets=N)
    second = attacked(folder, tmp_path / "b", "planted.csv", original="people.csv", targets=N)
    assert first.knowledge == second.knowledge
    assert leak(first).attack == leak(second).attack


def test_what_is_said_of_text_files_is_said_of_those_among_the_files(folder: Path, tmp_path: Path) -> None:
    """The table may be a CSV with semicolons and the original a Parquet file."""
    written = Source(path="release.csv", delimiter=";", encoding="cp1252")
    assert len(read_table(folder / "people.parquet", tmp_path / "scratch", written)) == N


@pytest.mark.long
def test_what_is_a_number_or_a_date_is_seen_in_the_original(folder: Path, tmp_path: Path) -> None:
    found = attacked(folder, tmp_path, "release.csv", original="people.csv")
    assert set(found.knowledge.numeric) == set(KNOWLEDGE.numeric)


@pytest.mark.long
def test_codes_with_a_leading_zero_and_truth_values_are_no_numbers(folder: Path, tmp_path: Path) -> None:
    table = pd.DataFrame({"zip": ["01234", "10115"] * 40, "ok": [True, False] * 40, "age": ["1", "22"] * 40})
    table.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "scratch").mkdir()
    found = attack_table(
        Files(tmp_path / "t.csv", tmp_path / "t.csv"), Roles(["zip", "ok", "age"]), tmp_path / "scratch"
    )
    assert found.knowledge.numeric == ["age"]


@pytest.mark.long
def test_declared_types_are_believed(folder: Path, tmp_path: Path) -> None:
    roles = Roles(list(QUASI), ["ill"], declared={"age": ColumnType.CATEGORICAL})
    assert "age" not in attacked(folder, tmp_path, "release.csv", roles).knowledge.numeric


@pytest.mark.long
def test_our_own_table_of_classes_is_read_where_it_lies_beside(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert attacked(folder, tmp_path / "a", "ours/data.parquet").rows == N


@pytest.mark.long
def test_a_column_that_nobody_named_is_known_to_the_attacker_if_it_shows_peoples_own_values(
    folder: Path, tmp_path: Path
) -> None:
    table = pd.read_csv(folder / "planted.csv")
    table.assign(cost="[0, 9000]", member="*").to_csv(tmp_path / "altered.csv", index=False)
    (tmp_path / "a").mkdir()
    found = attacked(folder, tmp_path / "a", str(tmp_path / "altered.csv"), Roles(["age", "city"], ["ill"]))
    assert {"joined"} <= set(found.knowledge.other) <= {"joined", "sex"}
    (note,) = [note for note in found.notes if "Altered by the tool" in note]
    assert note.endswith("member, cost.")


@pytest.mark.long
def test_a_quasi_identifier_that_the_tool_left_out_is_known_by_nobody(folder: Path, tmp_path: Path) -> None:
    pd.read_csv(folder / "planted.csv").drop(columns=["joined"]).to_csv(tmp_path / "less.csv", index=False)
    (tmp_path / "a").mkdir()
    found = attacked(folder, tmp_path / "a", str(tmp_path / "less.csv"), Roles(list(QUASI), ["ill"], may_lack=True))
    assert "joined" not in found.knowledge.quasi_identifiers
    assert any("Not in the table" in note and "joined" in note for note in found.notes)


@pytest.mark.long
def test_without_control_people_no_leak_is_stated(folder: Path, tmp_path: Path) -> None:
    found = attacked(folder, tmp_path, "planted.csv", control=None)
    assert leak(found).leak is None
    assert any("--control" in note for note in found.notes)


@pytest.mark.long
def test_what_is_counted_is_exact_and_says_for_whom_it_is(of_planted: AttackedTable) -> None:
    """Who had the table, this result and all people but one age tried every age, and was certain in 20 of 20 tables."""
    assert of_planted.notes[-1] == FOR_WHOM


@pytest.mark.long
def test_control_people_who_are_in_the_original_are_noticed(folder: Path, tmp_path: Path) -> None:
    """It was a remark below a table that said "no leak found", and where the files differ in types not even that."""
    for control in ("people.parquet", "people.csv"):
        scratch = tmp_path / control
        scratch.mkdir()
        with pytest.raises(InputError, match=f"{control}: 100 % of its people equal somebody in the original in"):
            attacked(folder, scratch, "planted.csv", control=control)
    some = pd.concat([pd.read_csv(folder / "others.csv"), pd.read_csv(folder / "people.csv").head(90)])
    some.to_csv(tmp_path / "some.csv", index=False)
    scratch = tmp_path / "some"
    scratch.mkdir()
    found = attacked(folder, scratch, "planted.csv", control=str(tmp_path / "some.csv"))
    assert "of the control people equal somebody" in found.notes[0]
    # The original may lack them: then the table's kept columns tell.
    pd.read_csv(folder / "people.csv").iloc[90:].to_csv(tmp_path / "fewer.csv", index=False)
    scratch = tmp_path / "fewer"
    scratch.mkdir()
    found = attacked(
        folder, scratch, "planted.csv", control=str(tmp_path / "some.csv"), original=str(tmp_path / "fewer.csv")
    )
    assert "equal somebody in the table in every column that it keeps" in found.notes[0]


def test_lists_that_nobody_asks_for_are_in_nobodys_way(tmp_path: Path) -> None:
    """People with a list of visits could not be looked for in a table that shows none of it."""
    plain = pa.table({"age": [20, 20, 50, 50], "ill": ["no", "yes"] * 2})
    visits = pa.array([[1], [2, 3], [], None])
    pq.write_table(plain, tmp_path / "plain.parquet")
    pq.write_table(plain.append_column("visits", visits), tmp_path / "people.parquet")
    roles = Roles(["age"], ["ill"])
    people_there = tmp_path / "people.parquet"
    for table in ("plain", "people"):
        scratch = tmp_path / table
        scratch.mkdir()
        found = attack_table(Files(tmp_path / f"{table}.parquet", people_there, people_there), roles, scratch)
        told = "Holding lists or records, so not attacked, whatever they tell: visits." in found.notes
        assert told == (table == "people")
    (tmp_path / "named").mkdir()
    with pytest.raises(InputError, match="visits holds lists or records; attacks need plain values"):
        attack_table(Files(people_there, people_there), Roles(["visits"]), tmp_path / "named")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_times_of_day_are_known_as_they_are_written(tmp_path: Path, ending: str) -> None:
    """They were taken for dates, and ended `attack` with an internal error, whatever was done with them."""
    hours = [datetime.time(hour, 30, microsecond=micro) for hour, micro in ((1, 0), (2, 0), (3, 500), (4, 0))]
    frame = pd.DataFrame({"hour": hours, "shift": hours[::-1], "ill": ["no", "yes"] * 2})
    frame.to_parquet(tmp_path / "people.parquet")
    table = tmp_path / f"table.{ending}"
    frame.to_csv(table, index=False) if ending == "csv" else frame.to_parquet(table)
    (tmp_path / "scratch").mkdir()
    found = attack_table(Files(table, tmp_path / "people.parquet"), Roles(["hour"], ["ill"]), tmp_path / "scratch")
    assert found.people == 4
    (told,) = [note for note in found.notes if "shift" in note or "hour" in note]  # no value is not understood
    assert told.startswith("shift: every row of the table and of the original has a value of its own")


def test_a_sheet_is_that_of_the_workbooks_that_have_it(tmp_path: Path) -> None:
    """A workbook of several filled sheets could not be attacked without a spec, nor be anybody's original."""
    frame = pd.DataFrame({"age": [20, 20, 50, 50], "ill": ["no", "yes"] * 2})
    with pd.ExcelWriter(tmp_path / "people.xlsx") as book:
        for sheet in ("staff", "others"):
            frame.to_excel(book, sheet_name=sheet, index=False)
    frame.to_excel(tmp_path / "table.xlsx", sheet_name="Sheet1", index=False)
    frame.to_csv(tmp_path / "table.csv", index=False)
    for number, (table, sheet, said) in enumerate(
        (
            ("table.xlsx", "staff", None),
            ("table.csv", "staff", None),
            ("people.xlsx", "others", None),
            ("table.csv", None, "source.sheet: people.xlsx has the sheets staff, others; say which holds the people"),
            ("table.csv", "none", "source.sheet: none of these files has a sheet none; name one that holds people"),
        )
    ):
        written = Source.model_validate({"path": table} | ({} if sheet is None else {"sheet": sheet}))
        files = Files(tmp_path / table, tmp_path / "people.xlsx", None, written)
        scratch = tmp_path / str(number)
        scratch.mkdir()
        if said is None:
            assert attack_table(files, Roles(["age"], ["ill"]), scratch).people == 4
        else:
            with pytest.raises(InputError, match=f"^{said}"):
                attack_table(files, Roles(["age"], ["ill"]), scratch)


def test_a_sensitive_column_that_is_written_otherwise_is_told(tmp_path: Path) -> None:
    """Nobody's cost was guessed right, since "71,3" is not 71.3; it looked as if the table did not tell it."""
    pd.DataFrame({"age": [20, 20, 50, 50], "cost": ["71,3", "8,5", "9,5", "1,5"]}).to_csv(tmp_path / "p.csv")
    pd.DataFrame({"age": [20, 20, 50, 50], "cost": [71.3, 8.5, 9.5, 1.5]}).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "scratch").mkdir()
    found = attack_table(
        Files(tmp_path / "t.parquet", tmp_path / "p.csv"), Roles(["age"], ["cost"]), tmp_path / "scratch"
    )
    assert any(note.startswith("Nothing that the table shows of cost is a value of people") for note in found.notes)


@pytest.mark.parametrize(
    ("rows", "people_there", "is_compared", "said"),
    [
        (1, 2, True, "The table has 1 row, the original 2: whoever is not in the table lowers what is measured."),
        (3, 2, False, "The table has 3 rows, the original 2: nobody is attacked who is in the table alone."),
        (3, 2, True, "who is in the table alone; if control people are among them, they hide leaks."),
    ],
)
def test_a_table_of_other_people_says_what_that_does(
    rows: int, people_there: int, is_compared: bool, said: str
) -> None:
    """A table that has more rows than the original was said to lower what is measured, too."""
    assert _of_other_length(rows, people_there, is_compared).endswith(said)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"table": "nowhere.csv"}, "there is no such file"),
        ({"original": "nowhere.csv"}, "there is no such file"),
        ({"table": "empty.csv"}, "is empty"),
        ({"control": "header.csv"}, "has no rows"),
        ({"table": "noise.parquet"}, "is no intact Parquet file"),
        ({"original": "short.csv"}, "short.csv has no column city, sex, joined, member, ill, cost; it has age"),
        ({"table": "short.csv"}, "short.csv has no column city, sex, joined, member, ill, cost; it has age"),
        ({"table": "listed.parquet"}, "age holds lists or records"),
        ({"table": "headless.csv"}, "its first line names none of the columns asked for, but 2 others"),
        (
            {"table": "headless.csv"},
            "if it is a header, ask for its names as they are written there, else put a header there",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(folder: Path, tmp_path: Path, change: dict[str, str], sentence: str) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("age,city\n")
    (folder / "short.csv").write_text("age\n3\n")
    (folder / "headless.csv").write_text("Ottilie,HIV\nHans,none\n")
    (folder / "noise.parquet").write_bytes(bytes(range(256)))
    pd.DataFrame({"age": [[1], [2]]}).to_parquet(folder / "listed.parquet")
    files = {"table": "release.csv"} | change
    with pytest.raises(InputError, match=r".") as raised:
        attacked(folder, tmp_path, **files)
    assert sentence in str(raised.value)
    assert "Ottilie" not in str(raised.value)
    assert "Traceback" not in str(raised.value)


@pytest.mark.long
def test_a_column_has_one_role(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="age: is named twice"):
        attacked(folder, tmp_path, "release.csv", Roles(["age", "city"], ["age"]))


@pytest.mark.long
def test_nothing_that_is_printed_holds_a_value_of_a_person(folder: Path) -> None:
    arguments = ["attack", str(folder / "planted.csv"), "--original", str(folder / "people.csv"), "--control",
                 str(folder / "others.csv"), "--quasi-identifiers", ",".join(QUASI), "--sensitive", "ill,cost",
                 "--targets", "200"]  # fmt: skip
    for more in ([], ["--json"]):
        ended = CliRunner().invoke(cli.app, [*arguments, *more])
        assert ended.exit_code == 0, ended.output
        assert "linkage, all quasi-identifiers" in ended.stdout
        assert not any(city in ended.stdout for city in CITIES)
        assert "2001-" not in ended.stdout


# The people's files are read as the spec says of its source: else nobody is recognised, and no leak shows

GERMAN = """
dataset: german
source: {path: people.csv, delimiter: ";", decimal: ",", rename: {Wert: cost}}
target: ill
columns:
  city: {role: quasi_identifier}
  cost: {role: quasi_identifier, type: numeric}
  joined: {role: quasi_identifier, type: date, format: ["%d.%m.%Y"]}
  ill: {role: sensitive}
  age: {role: exclude}
  sex: {role: exclude}
  member: {role: exclude}
privacy: {k_anonymity: {k: 10}}
"""


def written_in_german(table: pd.DataFrame, file: Path, name: str = "Wert", decimal: str = ",") -> None:
    joined = pd.to_datetime(table["joined"]).dt.strftime("%d.%m.%Y")
    table.assign(joined=joined).rename(columns={"cost": name}).to_csv(file, sep=";", decimal=decimal, index=False)


@pytest.fixture
def german(folder: Path, tmp_path: Path) -> Roles:
    """The roles of a spec of files with commas in numbers, days first, and another name of a column."""
    for name, file in (("people", "people.parquet"), ("others", "others.csv")):
        table = pd.read_parquet(folder / file) if file.endswith("parquet") else pd.read_csv(folder / file)
        written_in_german(table, tmp_path / f"{name}.csv")
    (tmp_path / "release.yaml").write_text(GERMAN)
    return Roles.of(ReleaseSpec.load(tmp_path))


@pytest.mark.long
def test_people_are_read_as_the_spec_says_of_its_source(folder: Path, german: Roles, tmp_path: Path) -> None:
    files = Files(folder / "planted.csv", tmp_path / "people.csv", tmp_path / "others.csv")
    for scratch in ("first", "second"):
        (tmp_path / scratch).mkdir()
    assert leak(attack_table(files, german, tmp_path / "first", targets=200)).verdict == "leak"
    plain = Files(folder / "planted.csv", folder / "people.parquet", folder / "others.csv")
    assert leak(attack_table(plain, german, tmp_path / "second", targets=200)).verdict == "leak"


@pytest.mark.long
def test_people_who_cannot_be_read_as_the_spec_says_are_refused(folder: Path, german: Roles, tmp_path: Path) -> None:
    """They would count as people of whom nothing is known, and every attack on them would find nothing."""
    written_in_german(pd.read_parquet(folder / "people.parquet"), tmp_path / "other.csv", name="cost", decimal=".")
    with pytest.raises(InputError, match=r"other.csv: values of joined \(850\) cannot be read as the numbers or dates"):
        attack_table(Files(folder / "planted.csv", tmp_path / "other.csv"), german, tmp_path)


def test_nobody_is_known_by_a_column_that_a_step_makes(german: Roles) -> None:
    """The people's file has no such column, so a spec with one could not be used here at all."""
    spec = german.spec
    assert spec is not None
    made = spec.columns["city"].model_copy(update={"made": True})
    roles = Roles.of(spec.model_copy(update={"columns": spec.columns | {"city": made}}))
    assert list(roles.quasi_identifiers) == ["cost", "joined"]


def test_a_folder_in_the_place_of_its_table_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ours: is a folder; name the table in it, .*ours/data\.parquet"):
        attacked(folder, tmp_path, "ours")
