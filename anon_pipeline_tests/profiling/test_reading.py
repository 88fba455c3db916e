"""Files as they come: how each is written is found, stated in the proposed spec, and asked where it is in doubt."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml
from pyarrow import feather

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.parquet_files import ordered_categories
from anon_pipeline.errors import InputError
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset
from anon_pipeline.spec import ReleaseSpec, Source

N = 300
#: A value of a person that nothing may repeat.
SECRET = "Ottilie"
HEADER = ["town", "pay", "born", "left"]


def people(pay: Callable[[int], str], born: Callable[[int], str], town: str = "Köln") -> list[list[str]]:
    random = np.random.default_rng(0)
    towns = [town, "Ulm", SECRET]
    return [
        [towns[random.integers(3)], pay(int(random.integers(100, 900_000))), born(int(random.integers(1, 10_000))),
         str(random.choice(["yes", "no"]))]
        for _ in range(N)
    ]  # fmt: skip


def plain_pay(cents: int) -> str:
    return f"{cents / 100:.2f}"


def german_pay(cents: int) -> str:
    return f"{cents / 100:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


def day(form: str) -> Callable[[int], str]:
    return lambda days: (np.datetime64("1960-01-01") + days).item().strftime(form)


def write(folder: Path, rows: list[list[str]], delimiter: str = ",", encoding: str = "utf-8") -> Path:
    lines = [delimiter.join(f'"{one}"' if delimiter in one else one for one in row) for row in rows]
    file = folder / "people.csv"
    file.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))
    return file


def proposed(engine: DuckDBEngine, folder: Path, file: Path) -> tuple[dict[str, Any], str]:
    """The proposed spec, and what its lines ask."""
    made = start_dataset(engine, DatasetRequest("people", file), folder / "data")
    text = made.file.read_text(encoding="utf-8")
    assert SECRET not in text
    assert SECRET not in str(made.to_json())
    content: dict[str, Any] = yaml.safe_load(text)
    return content, "\n".join(f"{one.place}: {one.question}" for _, one in made.open)


@pytest.mark.long
def test_a_spreadsheet_with_semicolons_decimal_commas_and_dates_is_understood(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    rows = people(german_pay, day("%d.%m.%Y"))
    spec, asked = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows], ";", "cp1252"))
    assert spec["source"] == {
        "path": "../../people.csv", "delimiter": ";", "encoding": "cp1252", "decimal": ",", "thousands": "."
    }  # fmt: skip
    assert spec["columns"]["pay"]["type"] == "numeric"
    assert spec["columns"]["born"]["type"] == "date"
    assert spec["columns"]["born"]["format"] == "%d.%m.%Y"
    assert "source" not in asked
    file = tmp_path / "data/people/release.yaml"
    text = (
        file.read_text(encoding="utf-8")
        .replace("target: decide", "target: left")
        .replace("left: {role: decide", "left: {role: sensitive")
    )
    for name in ("pay", "born"):
        assert spec["columns"][name]["role"] != "identifier"
    file.write_text(text.replace("role: exclude, type", "role: quasi_identifier, type"), encoding="utf-8")
    facts = engine.store_source(ReleaseSpec.load(file), tmp_path / "stored.parquet")
    assert {one.name: one.storage for one in facts.columns} == {
        "town": "VARCHAR", "pay": "DOUBLE", "born": "DATE", "left": "VARCHAR"
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("encoding", "town", "found", "question"),
    [
        ("utf-8", "Köln", "utf-8", False),
        ("utf-8-sig", "Köln", "utf-8", False),
        ("utf-16", "Köln", "utf-16", False),
        ("utf-16-le", "Köln", "utf-16-le", False),
        ("latin-1", "Köln", "cp1252", False),
        ("cp1250", "Łódź", "decide", True),
        ("cp1251", "Кёльн", "decide", True),
    ],
)
def test_the_encoding_is_found_or_asked(
    engine: DuckDBEngine, tmp_path: Path, encoding: str, town: str, found: str, question: bool
) -> None:
    rows = people(plain_pay, day("%Y-%m-%d"), town)
    spec, asked = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows], ",", encoding))
    assert spec["source"].get("encoding", "utf-8") == found
    assert ("source.encoding" in asked) == question


@pytest.mark.long
def test_title_lines_and_a_header_of_two_lines_are_told_apart(engine: DuckDBEngine, tmp_path: Path) -> None:
    rows = people(plain_pay, day("%Y-%m-%d"))
    rows = [[town, pay, str(place % 80), left] for place, (town, pay, _, left) in enumerate(rows)]
    spec, _ = proposed(engine, tmp_path, write(tmp_path, [["Report"], [], HEADER, *rows]))
    assert spec["source"] == {"path": "../../people.csv", "skip": 2}
    assert set(spec["columns"]) == set(HEADER)
    (tmp_path / "data/people/release.yaml").unlink()
    lines = [["Report", "", "", ""], HEADER, ["", "gross", "years", ""], *rows]
    spec, _ = proposed(engine, tmp_path, write(tmp_path, lines))
    assert spec["source"] == {"path": "../../people.csv", "skip": 1, "header": 2}
    assert set(spec["columns"]) == {"town", "pay gross", "born years", "left"}
    (tmp_path / "data/people/release.yaml").unlink()
    spec, _ = proposed(engine, tmp_path, write(tmp_path, [["who", "", "what", ""], HEADER, *rows]))
    assert spec["source"] == {"path": "../../people.csv", "header": 2}


@pytest.mark.long
def test_a_file_without_a_header_is_told_with_its_line(engine: DuckDBEngine, tmp_path: Path) -> None:
    rows = people(plain_pay, day("%Y-%m-%d"))
    file = write(tmp_path, [["Report", "", "", ""], [SECRET, *rows[0][1:]], *rows])
    with pytest.raises(InputError, match="line 2 seems to be a person's and no header") as raised:
        proposed(engine, tmp_path, file)
    assert SECRET not in str(raised.value)
    named = Source(path="people.csv", header=0, skip=1, names=("a", "b", "c", "d"))
    made = start_dataset(engine, DatasetRequest("people", file, source=named), tmp_path / "data")
    assert yaml.safe_load(made.file.read_text())["source"]["names"] == ["a", "b", "c", "d"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("totals", "condition"),
    [
        (["Total", "123456.78", "", ""], "\"town\" IS DISTINCT FROM 'Total'"),
        (["", "Total", "", ""], 'CAST("pay" AS VARCHAR) IS DISTINCT FROM \'Total\' AND "pay" IS NOT NULL'),
    ],
)
def test_a_line_of_totals_is_asked_about_and_empty_lines_are_counted(
    engine: DuckDBEngine, tmp_path: Path, totals: list[str], condition: str
) -> None:
    """Also where the word stands among numbers, which it cannot be compared with."""
    rows = people(plain_pay, day("%Y-%m-%d"))
    for place in (5, 70):
        rows[place] = ["", "", "", ""]
    file = write(tmp_path, [HEADER, *rows, totals])
    spec, asked = proposed(engine, tmp_path, file)
    assert spec["source"]["where"] == "decide"
    advice = asked.partition("; write ")[2].partition(" to leave it out")[0]  # is pasted as it is
    assert yaml.safe_load(advice) == condition
    assert spec["columns"]["pay"]["type"] == "numeric"
    assert f"# {2} rows are empty throughout" in (tmp_path / "data/people/release.yaml").read_text()
    text = (tmp_path / "data/people/release.yaml").read_text()
    text = (
        text.replace("where: decide", f"where: {advice}")
        .replace("target: decide", "target: left")
        .replace("left: {role: decide", "left: {role: sensitive")
    )
    (tmp_path / "data/people/release.yaml").write_text(text)
    spec_ = ReleaseSpec.load(tmp_path / "data/people")
    assert engine.store_source(spec_, tmp_path / "stored.parquet").rows == N - 2


@pytest.mark.long
def test_numbers_with_markers_stay_numbers_and_other_words_are_asked_about(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    rows = people(plain_pay, day("%Y-%m-%d"))
    for place, marker in ((3, "N/A"), (4, "-"), (5, "-")):
        rows[place][1] = marker
    spec, asked = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows]))
    assert set(spec["source"]["missing"]) == {"N/A", "-"}
    assert spec["columns"]["pay"]["type"] == "numeric"
    assert "columns.pay" not in asked
    (tmp_path / "data/people/release.yaml").unlink()
    rows = [[row[0], str(place % 70), *row[2:]] for place, row in enumerate(rows)]
    rows[7][1] = rows[8][1] = SECRET
    spec, asked = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows]))
    assert (
        "columns.pay.type: 2 rows hold 1 text among numbers; write categorical, or numeric and this text under" in asked
    )
    assert spec["columns"]["pay"]["type"] == "decide"


@pytest.mark.long
def test_amounts_that_nearly_all_differ_are_left_out_for_a_few_words_among_them(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    """A refused answer made all incomes of a survey texts, which are left out without a question."""
    rows = people(plain_pay, day("%Y-%m-%d"))
    rows[7][1] = SECRET
    spec, asked = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows]))
    assert (spec["columns"]["pay"]["role"], spec["columns"]["pay"]["type"]) == ("decide", "decide")
    assert "columns.pay.role: exclude is proposed, as of texts; 1 row holds 1 text among numbers: quasi" in asked


@pytest.mark.long
def test_fields_of_blanks_among_numbers_are_not_known(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Amounts that nearly all differ were taken for texts and left out, for a blank of those who have none yet."""
    rows = people(plain_pay, day("%Y-%m-%d"))
    rows[3][1] = rows[4][1] = " "
    spec, asked = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows]))
    assert spec["source"]["missing"] == [" "]
    assert (spec["columns"]["pay"]["type"], spec["columns"]["pay"]["role"]) == ("numeric", "quasi_identifier")
    assert "columns.pay" not in asked


@pytest.mark.long
def test_codes_that_are_numbers_and_numbers_that_may_be_markers_are_asked_about(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    random = np.random.default_rng(1)
    rows = [[str(random.integers(10_000, 10_050)), str(999 if i % 50 == 0 else random.integers(18, 90)),
             str(random.integers(1, 9)), str(random.choice(["yes", "no"]))] for i in range(N)]  # fmt: skip
    spec, asked = proposed(engine, tmp_path, write(tmp_path, [["plz", "age", "industry_code", "left"], *rows]))
    assert "columns.plz.type: by its name a code" in asked
    assert "hierarchy: {prefix: [5, 3, 2]}" in asked
    assert "columns.industry_code.type: by its name a code" in asked
    assert "columns.age.missing: 999 stands in 6 rows, far from all others" in asked
    assert spec["columns"]["age"]["missing"] == "decide"
    text = (tmp_path / "data/people/release.yaml").read_text().replace("missing: decide", "missing: [999]")
    text = (
        text.replace("target: decide", "target: left")
        .replace("left: {role: decide", "left: {role: sensitive")
        .replace("type: decide", "type: categorical")
    )
    (tmp_path / "data/people/release.yaml").write_text(text)
    facts = engine.store_source(ReleaseSpec.load(tmp_path / "data/people"), tmp_path / "stored.parquet")
    assert {one.name: one.missing for one in facts.columns}["age"] == 6


@pytest.mark.long
def test_amounts_of_money_and_percentages_are_proposed_as_numbers(engine: DuckDBEngine, tmp_path: Path) -> None:
    """They were proposed as texts: the amounts to be left out, the percentages without an order."""
    rows = [
        [f"${1000 + 10 * (i % 90):,}", f"{i % 50}%", ["Ulm", SECRET][i % 2], "yes" if i % 3 else "no"] for i in range(N)
    ]
    file = tmp_path / "people.csv"
    pd.DataFrame(rows, columns=["pay", "share", "town", "left"]).to_csv(file, index=False)
    spec, asked = proposed(engine, tmp_path, file)
    assert (spec["source"]["thousands"], spec["source"]["symbols"]) == (",", ["$", "%"])
    assert "source" not in asked
    assert [spec["columns"][name]["type"] for name in ("pay", "share")] == ["numeric", "numeric"]
    place = tmp_path / "data/people/release.yaml"
    text = place.read_text(encoding="utf-8").replace("target: decide", "target: left")
    place.write_text(text.replace("left: {role: decide", "left: {role: sensitive"), encoding="utf-8")
    stored = tmp_path / "stored.parquet"
    engine.store_source(ReleaseSpec.load(place), stored)
    assert sorted(set(pq.read_table(stored).column("pay").to_pylist()))[:2] == [1000, 1010]


@pytest.mark.long
def test_a_negative_marker_beside_zero_is_said_to_be_far_from_all_others(engine: DuckDBEngine, tmp_path: Path) -> None:
    rows = people(lambda i: str(-1 if i % 60 == 0 else i % 9), day("%Y-%m-%d"))
    _, asked = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows]))
    assert "columns.pay.missing: -1 stands in 3 rows, where no other number is negative; write [-1] if" in asked


@pytest.mark.long
def test_moments_in_halves_of_a_day_are_read_as_proposed(engine: DuckDBEngine, tmp_path: Path) -> None:
    rows = people(plain_pay, lambda i: f"{1 + i % 12}/{1 + i % 28}/2024 {1 + i % 12}:{i % 60:02d} {'AP'[i % 2]}M")
    spec, _ = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows]))
    assert spec["columns"]["born"]["format"] == "%m/%d/%Y %I:%M %p"
    place = tmp_path / "data/people/release.yaml"
    text = (
        place.read_text()
        .replace("target: decide", "target: left")
        .replace("born: {role: decide", "born: {role: quasi_identifier")
    )
    place.write_text(text.replace("left: {role: decide", "left: {role: sensitive"))
    stored = tmp_path / "stored.parquet"
    engine.store_source(ReleaseSpec.load(place), stored)
    expected = pd.to_datetime([row[2] for row in rows], format="%m/%d/%Y %I:%M %p")
    assert sorted(pq.read_table(stored).column("born").to_pylist()) == sorted(expected.to_pydatetime())


def test_total_is_a_category_where_others_bear_it_too(engine: DuckDBEngine, tmp_path: Path) -> None:
    rows = people(plain_pay, day("%Y-%m-%d"))
    rows[3][0] = rows[-1][0] = "Total"
    _, asked = proposed(engine, tmp_path, write(tmp_path, [HEADER, *rows]))
    assert "source.where" not in asked


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b no gzip", b"\x00\x01\x02"])
def test_a_file_that_is_not_what_its_name_says_is_told_in_a_sentence(
    engine: DuckDBEngine, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "people.csv.gz").write_bytes(content)
    with pytest.raises(InputError, match="people"):
        start_dataset(engine, DatasetRequest("people", tmp_path / "people.csv.gz"), tmp_path / "data")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "parquet"])
@pytest.mark.parametrize(("written", "decimal", "thousands"), [("1,234.50", None, ","), ("1.234,50", ",", ".")])
def test_numbers_written_for_a_person_are_texts_in_a_database(
    kind: str, written: str, decimal: str | None, thousands: str, engine: DuckDBEngine, tmp_path: Path
) -> None:
    """A column of texts was proposed as `exclude` or `identifier`, though in a CSV the same column is a number."""
    frame = pd.DataFrame(
        {
            "pay": [written.replace("234", str(100 + i % 90)) for i in range(N)],
            "town": ["Ulm", SECRET, "Bonn"] * (N // 3),
            "left": ["yes", "no"] * (N // 2),
        }
    )
    file = tmp_path / f"people.{kind}"
    if kind == "parquet":
        frame.to_parquet(file)
    elif kind == "sqlite":
        with closing(sqlite3.connect(file)) as database, database:
            frame.to_sql("people", database, index=False)
    else:
        with duckdb.connect(file) as database:
            database.execute("CREATE TABLE people AS FROM frame")
    spec, asked = proposed(engine, tmp_path, file)
    expected = {"decimal": decimal, "thousands": thousands}
    assert {key: spec["source"].get(key) for key in expected} == expected
    assert spec["columns"]["pay"] == {"role": "quasi_identifier", "type": "numeric"}
    assert "source" not in asked
    text = (tmp_path / "data/people/release.yaml").read_text(encoding="utf-8")
    (tmp_path / "data/people/release.yaml").write_text(
        text.replace("target: decide", "target: left").replace("left: {role: decide", "left: {role: sensitive"),
        encoding="utf-8",
    )
    stored = tmp_path / "stored.parquet"
    engine.store_source(ReleaseSpec.load(tmp_path / "data/people/release.yaml"), stored)
    assert min(pq.read_table(stored).column("pay").to_pylist()) == 1100.5


@pytest.mark.long
@pytest.mark.parametrize(("folders", "partitioned"), [(["year=1999", "year=2007"], True), (["1999", "2007"], False)])
def test_folders_called_as_hive_calls_them_are_a_column(
    engine: DuckDBEngine, tmp_path: Path, folders: list[str], partitioned: bool
) -> None:
    for place, folder in enumerate(folders):
        (tmp_path / "parts" / folder).mkdir(parents=True)
        rows = people(plain_pay, day("%Y-%m-%d"))[place:]
        pd.DataFrame(rows, columns=HEADER).to_parquet(tmp_path / "parts" / folder / "a.parquet", index=False)
    spec, _ = proposed(engine, tmp_path, tmp_path / "parts")
    assert spec["source"].get("partitions", False) is partitioned
    assert ("year" in spec["columns"]) is partitioned


def test_moments_without_their_offset_are_remarked(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Two moments of one instant were hours apart in a release, and nobody was told."""
    rows = [f"{20 + row % 40},2024-05-{1 + row % 28:02}T10:00:00{{}},{('no', 'yes')[row % 2]}" for row in range(200)]
    for offset, remarked in (("+02:00", True), ("Z", False), ("", False)):
        file = tmp_path / "people.csv"
        file.write_text("\n".join(["age,seen,ill", *(row.format(offset) for row in rows)]))
        folder = tmp_path / f"of{len(offset)}"
        proposed(engine, folder, file)
        said = "read as the clocks show, without the offset" in (folder / "data/people/release.yaml").read_text()
        assert said is remarked, offset
    moments = [{"age": 20 + row % 40, "seen": f"2024-05-01T1{row % 9}:00:00+02:00"} for row in range(90)]
    (tmp_path / "people.json").write_text(json.dumps([*moments, {"age": 30, "seen": "?"}]))
    proposed(engine, tmp_path / "json", tmp_path / "people.json")
    text = (tmp_path / "json/data/people/release.yaml").read_text()
    assert "without the offset" not in text and "type: date" in text, "a column of dates of JSON is taken in UTC"


def test_an_order_that_a_parquet_file_states_becomes_levels(engine: DuckDBEngine, tmp_path: Path) -> None:
    """As pandas writes it; polars states an order as well, but writes the categories as they come."""
    random, grades = np.random.default_rng(0), ["none", "some", "much"]
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, 300),
            "pain": pd.Categorical(random.choice(grades, 300), [*grades, "never seen"], ordered=True),
            "town": pd.Categorical(random.choice(["Ulm", "Bonn"], 300)),
            "same": pd.Categorical(["x"] * 300, ["x"], ordered=True),
            "ill": random.choice(["yes", "no"], 300),
        }
    )
    frame.loc[:9, "pain"] = None
    frame.to_parquet(tmp_path / "people.parquet", row_group_size=50)
    pl.DataFrame({"pain": pl.Series(["much", "none"] * 9, dtype=pl.Enum(grades))}).write_parquet(tmp_path / "p.parquet")
    spec, _ = proposed(engine, tmp_path, tmp_path / "people.parquet")
    assert spec["columns"]["pain"]["levels"] == [*grades, "never seen"]
    assert not any("levels" in column for name, column in spec["columns"].items() if name != "pain")
    lines = (tmp_path / "data/people/release.yaml").read_text().splitlines()
    (remark,) = [place for place, line in enumerate(lines) if "a release states its levels" in line]
    assert lines[remark + 1].startswith("  pain:"), "the remark stands above the column"
    assert ordered_categories(tmp_path / "people.parquet") == {"pain": (*grades, "never seen")}
    assert ordered_categories(tmp_path / "p.parquet") == {}
    frame.iloc[:0].to_parquet(tmp_path / "nobody.parquet")
    assert set(ordered_categories(tmp_path / "nobody.parquet")) <= {"pain"}


@pytest.mark.long
def test_durations_are_numbers_of_a_unit_that_is_stated(engine: DuckDBEngine, tmp_path: Path) -> None:
    """A report told of "ranges, typical width 18,000,000,000,000"."""
    random = np.random.default_rng(0)
    minutes = random.integers(1, 600, 300)
    frame = pd.DataFrame({"stay": pd.to_timedelta(minutes, unit="min"), "ill": random.choice(["yes", "no"], 300)})
    frame.assign(minutes=minutes).to_parquet(tmp_path / "pandas.parquet")
    pl.DataFrame(frame.assign(minutes=minutes)).with_columns(pl.col("stay").dt.cast_time_unit("ms")).write_parquet(
        tmp_path / "polars.parquet"
    )
    feather.write_feather(pq.read_table(tmp_path / "polars.parquet"), tmp_path / "arrow.feather")
    files = {"pandas.parquet": "nanoseconds", "polars.parquet": "milliseconds", "arrow.feather": "milliseconds"}
    for file, unit in files.items():
        name = file.partition(".")[0]
        spec, _ = proposed(engine, tmp_path / name, tmp_path / file)
        assert (spec["columns"]["stay"]["type"], spec["columns"]["stay"]["unit"]) == ("numeric", unit)
        assert "unit" not in spec["columns"]["minutes"]
        place = tmp_path / name / "data/people/release.yaml"
        text = (
            place.read_text()
            .replace("target: decide", "target: ill")
            .replace("ill: {role: decide", "ill: {role: sensitive")
        )
        place.write_text(text)
        engine.store_source(ReleaseSpec.load(place), tmp_path / "stored.parquet")
        in_a_minute = pd.Timedelta("1min") // pd.Timedelta(1, unit[:-1])
        stored = pq.read_table(tmp_path / "stored.parquet").column("stay").to_pylist()
        assert set(stored) == {int(of) * in_a_minute for of in minutes}
