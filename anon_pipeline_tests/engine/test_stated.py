"""Files as spreadsheets write them are read as the spec states, and never in another way."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.text_files import NamesDifferByCapitals, distinct_names, joined_header
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Column, Source
from anon_pipeline_tests.engine import test_sources
from anon_pipeline_tests.engine.test_sources import QI, SECRET, alike, stored, write

NUMBER = {"role": QI, "type": "numeric"}


def refused(engine: DuckDBEngine, folder: Path, columns: dict[str, Any], **more: Any) -> str:
    (folder / "stored.parquet").unlink(missing_ok=True)
    return test_sources.refused(engine, folder, columns, **more)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*table.to_pydict().values(), strict=True), key=str)


@pytest.mark.long
def test_semicolons_decimal_commas_and_dates_of_a_spreadsheet(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "pay;born;t\n1.234,50;31.12.1999;a\n-0,5;1.2.2000;b\n2000;;a\n", "cp1252")
    source = {"encoding": "cp1252", "delimiter": ";", "decimal": ",", "thousands": "."}
    born = {"role": QI, "type": "date", "format": "%d.%m.%Y"}
    for pay in (NUMBER, QI):  # stated, or seen from the values
        _, table = stored(engine, tmp_path, {"pay": pay, "born": born}, source=source)
        assert rows(table.select(["pay", "born"])) == sorted(
            [(1234.5, date(1999, 12, 31)), (-0.5, date(2000, 2, 1)), (2000.0, None)], key=str
        )


@pytest.mark.parametrize(
    ("source", "text", "number"), [({"thousands": ","}, '"1,234"', 1234.0), ({"decimal": ","}, '"1,5"', 1.5)]
)
def test_either_of_decimal_and_thousands_is_enough(
    engine: DuckDBEngine, tmp_path: Path, source: dict[str, str], text: str, number: float
) -> None:
    write(tmp_path, "people.csv", f"x,t\n{text},a\n2,b\n")
    _, table = stored(engine, tmp_path, {"x": NUMBER}, source=source)
    assert alike(table["x"].to_pylist(), [number, 2.0])


@pytest.mark.parametrize("value", ["1.5", "12.34,5", "1,234.5", "1 234,5", "x"])
def test_a_number_that_is_not_written_as_stated_is_no_number(engine: DuckDBEngine, tmp_path: Path, value: str) -> None:
    """1.5 in a file of decimal commas is a doubt; read as one and a half it might be fifteen."""
    write(tmp_path, "people.csv", f"x;t\n1,5;a\n{value};b\n3;a\n")
    source = {"delimiter": ";", "decimal": ",", "thousands": "."}
    assert "columns.x: 1 value is no number" in refused(engine, tmp_path, {"x": NUMBER}, source=source)
    _, table = stored(engine, tmp_path, {"x": QI}, source=source)  # then it is a column of texts, as they are
    assert alike(table["x"].to_pylist(), ["1,5", value, "3"])


@pytest.mark.parametrize("value", ["(1,5)", "1.200,5-", "(5) \u20ac", "\u20ac(5)", "\u22125"])
def test_a_negative_number_of_an_account_is_told_as_one(engine: DuckDBEngine, tmp_path: Path, value: str) -> None:
    """The refusal had one list it as missing, and those who owe something would have been lost."""
    write(tmp_path, "people.csv", f"x;t\n1,5;a\n{value};b\n3;a\n")
    source = {"delimiter": ";", "decimal": ",", "thousands": ".", "symbols": ["\u20ac"]}
    message = refused(engine, tmp_path, {"x": NUMBER}, source=source)
    assert "columns.x: 1 value seems to be negative, written as accounts do: " in message
    assert "missing markers" not in message


def test_dates_in_two_formats_and_one_in_neither(engine: DuckDBEngine, tmp_path: Path) -> None:
    said = {"x": {"role": QI, "type": "date", "format": ["%m/%d/%Y", "%d %b %Y"]}}
    write(tmp_path, "people.csv", "x,t\n12/31/1999,a\n5 Feb 2000,b\n2001-03-04,a\n")
    _, table = stored(engine, tmp_path, said)
    assert alike(table["x"].to_pylist(), [date(1999, 12, 31), date(2000, 2, 5), date(2001, 3, 4)])
    write(tmp_path, "people.csv", "x,t\n12/31/1999,a\n31/12/1999,b\n")
    assert "columns.x: 1 value is no date" in refused(engine, tmp_path, said)
    with pytest.raises(ValidationError, match="is how dates are written"):
        Column(role=QI, type="date", format="dd.mm.yyyy")


def test_markers_of_one_column_are_values_of_another(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "x,y,t\n999,999,a\n5,6,b\n")
    columns = {"x": {**NUMBER, "missing": [999]}, "y": NUMBER}
    _, table = stored(engine, tmp_path, columns)
    assert rows(table.select(["x", "y"])) == sorted([(None, 999), (5, 6)], key=str)
    write(tmp_path, "people.parquet", pa.table({"x": [999.0, 5.0], "y": [999, 6], "t": ["a", "b"]}))
    _, table = stored(engine, tmp_path, columns, "people.parquet")
    assert rows(table.select(["x", "y"])) == sorted([(None, 999), (5.0, 6)], key=str)


@pytest.mark.long
@pytest.mark.parametrize("file", ["people.csv", "people.parquet"])
def test_what_is_not_known_in_a_csv_is_not_known_in_a_table_of_numbers(
    engine: DuckDBEngine, tmp_path: Path, file: str
) -> None:
    """Of people who would not say, -9 was a value of its own in Parquet: nine ill ones and it passed as two values."""
    table = pa.table(
        {
            "score": pa.array([-9, 1, 5], pa.int16()),
            "pay": pa.array([-9.0, 0.5, None], pa.float64()),
            "rate": pa.array([Decimal("-9.0"), Decimal("1.5"), None], pa.decimal128(4, 1)),
            "born": pa.array([date(1900, 1, 1), date(2000, 1, 1), None]),
            "is_ill": pa.array([True, False, None]),
            "t": ["a", "b", "-9"],
        }
    )
    write(tmp_path, "people.parquet", table)
    texts = "-9,-9,-9.0,1900-01-01,true,a\n1,.5,1.5,2000-01-01,false,b\n5,,,,,-9\n"
    write(tmp_path, "people.csv", "score,pay,rate,born,is_ill,t\n" + texts)
    columns = {"score": NUMBER, "pay": NUMBER, "rate": NUMBER, "born": {"role": QI, "type": "date"}, "is_ill": QI}
    source = {"missing": ["?", "-9", "-9.0", "1900-01-01", "1"]}
    _, read = stored(engine, tmp_path, columns, file, source=source, missing_target="release")
    plain = {name: [None if value is None else str(value) for value in read[name].to_pylist()] for name in columns}
    assert [sorted(filter(None, plain[name])) for name in ("pay", "born")] == [["0.5"], ["2000-01-01"]]
    assert [float(value) for value in filter(None, plain["rate"])] == [1.5]
    assert sorted(filter(None, plain["score"])) == ["5"]
    assert sorted(value.lower() for value in filter(None, plain["is_ill"])) == ["false", "true"]
    assert sorted(filter(None, read["t"].to_pylist())) == ["a", "b"]


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.time64("us")],
)
def test_a_day_or_a_time_that_is_a_mark_is_one_however_it_is_stored(
    engine: DuckDBEngine, tmp_path: Path, kind: pa.DataType
) -> None:
    """pandas writes every column of days as moments, whose texts are longer than that of the mark."""
    is_time = pa.types.is_time(kind)
    known = [time(0, 0), time(8, 30)] if is_time else [datetime(1900, 1, 1), datetime(2000, 1, 1)]
    write(tmp_path, "people.parquet", pa.table({"x": pa.array([*known, None]).cast(kind), "t": ["a", "b", "c"]}))
    source = {"missing": ["0:00:00" if is_time else "1900-01-01"]}
    _, read = stored(engine, tmp_path, {"x": QI}, "people.parquet", source=source)
    assert read["x"].null_count == 2


def test_lines_above_the_header_a_header_of_two_lines_and_none(engine: DuckDBEngine, tmp_path: Path) -> None:
    titled = "Report of 2024;;\n\nincome;;t\ngross;net;\n5;3;a\n7;4;b\n"
    write(tmp_path, "people.csv", titled)
    columns = {"income gross": QI, "income net": QI}
    _, table = stored(engine, tmp_path, columns, source={"delimiter": ";", "skip": 2, "header": 2})
    assert rows(table) == [(5, 3, "a"), (7, 4, "b")]
    write(tmp_path, "people.csv", "5;3;a\n7;4;b\n")
    source = {"delimiter": ";", "header": 0, "names": ["gross", "net", "t"]}
    _, table = stored(engine, tmp_path, {"gross": QI, "net": QI}, source=source)
    assert rows(table) == [(5, 3, "a"), (7, 4, "b")]
    source["names"] = ["gross", "t"]
    assert "has 2 names, and people.csv has 3 columns" in refused(engine, tmp_path, {"gross": QI}, source=source)
    assert joined_header([("a", None, "b"), (None, None, None)]) == ["a", "", "b"]


@pytest.mark.long
def test_columns_that_differ_by_capitals_are_two(engine: DuckDBEngine, tmp_path: Path) -> None:
    source = {"rename": {"Country": "country_of_birth"}}
    columns = {"country": QI, "country_of_birth": QI}
    write(tmp_path, "people.csv", "country,Country,t\nA,B,a\nC,D,b\n")
    _, table = stored(engine, tmp_path, columns, source=source)
    assert rows(table) == [("A", "B", "a"), ("C", "D", "b")]
    write(tmp_path, "people.parquet", pa.table({"country": ["A", "C"], "Country": ["B", "D"], "t": ["a", "b"]}))
    _, table = stored(engine, tmp_path, columns, "people.parquet", source=source)
    assert rows(table) == [("A", "B", "a"), ("C", "D", "b")]
    (tmp_path / "parts").mkdir()
    for part in ("1", "2"):
        shutil.copy(tmp_path / "people.parquet", tmp_path / f"parts/{part}.parquet")
    facts, table = stored(engine, tmp_path, columns, "parts", source=source)
    assert facts.rows == 4 and set(rows(table)) == {("A", "B", "a"), ("C", "D", "b")}
    with closing(sqlite3.connect(tmp_path / "people.db")) as database:
        database.execute("CREATE TABLE p AS SELECT 'A' AS a, 'B' AS b, 'a' AS t UNION SELECT 'C', 'D', 'b'")
        database.commit()
    query = {"query": 'SELECT a AS country, b AS "Country", t FROM p'}
    _, table = stored(engine, tmp_path, columns, "people.db", source=source | query)
    assert rows(table) == [("A", "B", "a"), ("C", "D", "b")]
    assert "as in source.rename: {Country: Country_2}" in refused(
        engine, tmp_path, columns, name="people.db", source=query
    )
    wrong = {"rename": {"Land": "country"}}
    assert "has no column Land" in refused(engine, tmp_path, columns, name="people.csv", source=wrong)


def test_parts_with_other_columns_are_renamed_by_what_all_have(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    pq.write_table(pa.table({"Land": ["A"], "t": ["a"]}), tmp_path / "parts/1.parquet")
    pq.write_table(pa.table({"Land": ["B"], "t": ["b"], "town": ["C"]}), tmp_path / "parts/2.parquet")
    source = {"rename": {"Land": "country"}, "union_by_name": True}
    _, table = stored(engine, tmp_path, {"country": QI, "town": QI}, "parts", source=source)
    assert set(rows(table)) == {("A", None, "a"), ("B", "C", "b")}


@pytest.mark.parametrize("second", [["Country", "country", "t"], ["Country", "t"]])
def test_columns_that_differ_by_capitals_are_not_taken_for_one_another(
    engine: DuckDBEngine, tmp_path: Path, second: list[str]
) -> None:
    """Of two such columns DuckDB takes the first that a file has for the first that the first file has."""
    (tmp_path / "parts").mkdir()
    for part, names in (("1", ["country", "Country", "t"]), ("2", second)):
        pq.write_table(pa.table({name: [name, "x"] for name in names}), tmp_path / f"parts/{part}.parquet")
    columns = {"country": QI, "birth": QI}
    source = {"rename": {"Country": "birth"}, "union_by_name": len(second) == 2}
    said = refused(engine, tmp_path, columns, name="parts", source=source)
    assert "differ by capitals only, and not in the same places of all its files" in said


def test_a_row_that_is_empty_throughout_is_nobody_in_a_source_and_somebody_in_a_release(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    write(tmp_path, "people.csv", "x,t\n1,a\n,\n,\n2,b\n,b\n")
    facts, _ = stored(engine, tmp_path, {"x": QI})
    assert facts.rows == 3
    assert engine.rows(engine.import_table(tmp_path / "people.csv", tmp_path)) == 5


# ------------------------------------------------------------------ which rows


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("age >= 18", [20, 100]),  # as numbers: "100" < "18" as texts
        ("age < 18 OR t = 'c'", [9, 100]),
        ("born < '2000-01-01'", [20]),
        ("name IS NOT NULL", [20, 100]),
        ("lower(name) LIKE 'to%'", [100]),
        ("NOT (name = 'Total') AND age BETWEEN 1 AND 50", [20]),
        ("true -- everybody", [9, 20, 100]),
        ("born < DATE '2001-01-01'", [20]),
        ("CAST(age AS VARCHAR) LIKE '20%'", [20]),
        ("TRY_CAST(name AS INTEGER) IS NULL AND age::DECIMAL(4, 1) > 20.5", [100]),
    ],
)
def test_only_rows_that_meet_the_condition_are_read(
    engine: DuckDBEngine, tmp_path: Path, condition: str, kept: list[int]
) -> None:
    write(tmp_path, "people.csv", "age,name,born,t\n9,?,,a\n20,Ada,31.12.1999,b\n100,Total,1.1.2001,c\n")
    columns = {"age": NUMBER, "name": QI, "born": {"role": QI, "type": "date", "format": "%d.%m.%Y"}}
    source = {"where": condition, "missing": ["?"]}
    if len(kept) < 2:
        assert "fewer than k" in refused(engine, tmp_path, columns, source=source)
        source["where"] = f"({condition}) OR t = 'a'"
        kept = [9, *kept]
    _, table = stored(engine, tmp_path, columns, source=source)
    assert sorted(table["age"].to_pylist()) == kept


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("getenv('HOME') = 'x'", "calls getenv, which no condition may"),
        ("age IN (SELECT 1)", "asks for more than the columns of a row"),
        ("other.age > 1", "names a column within a table"),
        ("age > 1) LIMIT (1", "is no condition"),
        ("age > 1) ORDER BY (age", "is no condition"),
        ("age > 1) UNION SELECT (1", "is no condition"),
        ("name::TIMESTAMPTZ > '2001-01-01'", "converts to TIMESTAMPTZ; a condition may convert to BIGINT,"),
        ("CAST(name AS INTEGER) > 1", "a value cannot be converted as asked; TRY_CAST makes it missing instead"),
        ("CAST(name AS x.integer) = 1", "converts to integer; a condition may convert to BIGINT,"),
    ],
)
def test_why_a_condition_is_refused_is_told(engine: DuckDBEngine, tmp_path: Path, condition: str, told: str) -> None:
    write(tmp_path, "people.csv", "age,name,t\n9,a,a\n20,b,b\n")
    assert told in refused(engine, tmp_path, {"age": NUMBER, "name": QI}, source={"where": condition})


@pytest.mark.parametrize(
    "condition",
    [
        "age IN (SELECT 1)",
        "EXISTS (FROM '/etc/passwd')",
        "getenv('HOME') = 'x'",
        "read_text('/etc/passwd') IS NULL",
        "true) UNION SELECT 1 --",
        "true; DROP TABLE x",
        "true GROUP BY age",
        "true ORDER BY age",
        "count(*) OVER () > 1",
        "nowhere > 5",
        "age = current_setting('threads')",
        "AND",
        f"name = '{SECRET}",
        "random() < 0.5",
    ],
)
def test_a_condition_sees_the_columns_of_a_row_and_nothing_else(
    engine: DuckDBEngine, tmp_path: Path, condition: str
) -> None:
    write(tmp_path, "people.csv", "age,name,t\n9,a,a\n20,b,b\n")
    assert "source.where: " in refused(engine, tmp_path, {"age": NUMBER, "name": QI}, source={"where": condition})


def test_a_condition_is_not_published_but_a_result_depends_on_it(tmp_path: Path) -> None:
    from anon_pipeline_tests.people import write_spec

    one, other = (
        write_spec(tmp_path, {"x": QI, "t": "sensitive"}, "people.csv", source={"where": f"x <> '{who}'"})
        for who in (SECRET, "Ada")
    )
    assert SECRET not in str(one.policy())
    assert one.policy_hash == other.policy_hash
    assert one.input_hash != other.input_hash


def test_thousands_and_fractions_have_signs_of_their_own() -> None:
    for stated in ({"thousands": "."}, {"thousands": ",", "decimal": ","}, {"header": 0}, {"names": ("a",)}):
        with pytest.raises(ValidationError):
            Source(path="people.csv", **stated)
    Source(path="people.csv", thousands=".", decimal=",")


# ------------------------------------------------------------------ folders, databases


def test_files_of_a_folder_that_differ_are_refused_unless_it_is_asked_for(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(tmp_path, "parts/a.parquet", pa.table({"x": [1, 2], "t": ["a", "b"]}))
    write(tmp_path, "parts/b.parquet", pa.table({"x": [3], "z": [1], "t": ["a"]}))
    columns = {"x": QI, "z": QI}
    message = refused(engine, tmp_path, columns, name="parts")
    assert "b.parquet has the column z, which a.parquet has not" in message
    assert "source.union_by_name" in message
    facts, _ = stored(engine, tmp_path, columns, "parts", source={"union_by_name": True})
    assert facts.rows == 3
    write(tmp_path, "parts/b.parquet", pa.table({"x": ["3"], "t": ["a"]}))
    assert "column x is string in b.parquet and int64 in a.parquet" in refused(
        engine, tmp_path, {"x": QI}, name="parts"
    )


def test_folders_are_columns_where_that_is_asked_for(engine: DuckDBEngine, tmp_path: Path) -> None:
    for year in ("1999", "007"):
        (tmp_path / f"parts/year={year}").mkdir(parents=True)
        write(tmp_path, f"parts/year={year}/a.parquet", pa.table({"x": [1, 2], "t": ["a", "b"]}))
    _, table = stored(engine, tmp_path, {"year": QI, "x": QI}, "parts", source={"partitions": True})
    assert rows(table.select(["year", "x"])) == [("007", 1), ("007", 2), ("1999", 1), ("1999", 2)]
    _, table = stored(engine, tmp_path, {"x": QI}, "parts")
    assert table.num_rows == 4


@pytest.mark.long
def test_a_database_with_one_table_needs_no_query(engine: DuckDBEngine, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "people.db")) as database:
        database.execute("CREATE TABLE \"my people\" AS SELECT 1 AS x, 'a' AS t UNION SELECT 2, 'b'")
    facts, _ = stored(engine, tmp_path, {"x": QI}, "people.db")
    assert facts.rows == 2
    with duckdb.connect(str(tmp_path / "people.db")) as database:
        database.execute("CREATE VIEW more AS SELECT 1 AS x")
    with pytest.raises(InputError, match=r"people\.db is a database with the tables more, my people; say which rows"):
        stored(engine, tmp_path, {"x": QI}, "people.db")


@pytest.mark.long
def test_the_same_table_gives_the_same_content_hash_however_it_is_written(engine: DuckDBEngine, tmp_path: Path) -> None:
    """So it gives the same release: all that follows starts from the stored table."""
    people = [(age, 1000.5 + 100 * age, date(1999, 1, 1 + age % 28), "Köln" if age % 2 else "Ulm") for age in range(60)]
    columns = {"age": QI, "pay": NUMBER, "born": {"role": QI, "type": "date", "format": "%d.%m.%Y"}}
    table = pa.table(dict(zip(("age", "pay", "born", "t"), map(list, zip(*people, strict=True)), strict=True)))
    write(tmp_path, "people.parquet", table)
    lines = ["Bericht;;;", "age;pay;born;t"]
    for age, pay, born, town in people:
        lines.append(
            f"{age};{pay:,.2f};{born:%d.%m.%Y};{town}".replace(",", "_").replace(".", ",", 1).replace("_", ".")
        )
    write(tmp_path, "people.csv", "\r\n".join([*lines, ";;;", "Summe;;;"]) + "\r\n", "cp1252")
    source = {"encoding": "cp1252", "delimiter": ";", "decimal": ",", "thousands": ".", "skip": 1}
    one, _ = stored(engine, tmp_path, columns, "people.parquet")
    other, _ = stored(engine, tmp_path, columns, source={**source, "where": "t IS NOT NULL"})
    assert one == other.typed_by_values(())
    # Of texts values decide the types, which a Parquet file states.
    by_values = [[column.name for column in facts.columns if column.by_values] for facts in (one, other)]
    assert by_values == [[], ["age", "pay", "born"]]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("x = 1", [1, 1]),
        ("x > 1", [2, 2, 3]),
        ("x <> 1", [2, 2, 3]),
        ("NOT x = 1", [2, 2, 3]),
        ("NOT x > 1", [1, 1]),
        ("x >= 1 OR x < 1", [1, 1, 2, 2, 3]),
    ],
)
@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_number_that_is_none_meets_no_condition(
    engine: DuckDBEngine, tmp_path: Path, name: str, condition: str, kept: list[float]
) -> None:
    """As polars writes such a file, whose bounds do not say that there are others; a part of it has one number only."""
    values = [1.0, float("nan"), 1.0, 2.0, 2.0, float("nan"), 3.0]
    table = polars.DataFrame({"x": values, "t": list("aababaa")})
    table.write_parquet(tmp_path / "people.parquet", row_group_size=3)
    table.write_csv(tmp_path / "people.csv")
    _, people = stored(engine, tmp_path, {"x": NUMBER}, name, source={"where": condition})
    assert alike(people["x"].to_pylist(), kept)


GAPS = "x,y,t\n1,5,a\n2,no number,\n3,6,b\n4,7,?\n5,8,a\n"


def test_people_without_a_target_are_left_out_as_if_they_had_never_been_there(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    """Also where one of them has a value that would make a column one of texts."""
    columns, source = {"x": QI, "y": QI}, {"missing": ["?"]}
    write(tmp_path, "people.csv", GAPS)
    left, table = stored(engine, tmp_path, columns, source=source, missing_target="leave_out")
    assert rows(table) == [(1, 5, "a"), (3, 6, "b"), (5, 8, "a")]
    assert (left.rows, left.left_out) == (3, 2)
    write(tmp_path, "people.csv", "x,y,t\n1,5,a\n3,6,b\n5,8,a\n")
    never, _ = stored(engine, tmp_path, columns)
    assert replace(left, left_out=0) == never


def test_people_without_a_target_are_released(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", GAPS)
    facts, table = stored(engine, tmp_path, {"x": QI, "y": QI}, source={"missing": ["?"]}, missing_target="release")
    assert alike(table["t"].to_pylist(), ["a", None, "b", None, "a"])
    assert (facts.rows, facts.left_out) == (5, 0)


def test_a_number_that_is_none_is_no_target(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "x,t\n1,0.5\n2,nan\n3,1.5\n")
    facts, table = stored(engine, tmp_path, {"x": QI}, missing_target="leave_out")
    assert alike(table["t"].to_pylist(), [0.5, 1.5]) and facts.left_out == 1
    write(tmp_path, "people.parquet", pa.table({"x": [1, 2, 3], "t": [0.5, float("nan"), 1.5]}))
    facts, table = stored(engine, tmp_path, {"x": QI}, "people.parquet", missing_target="leave_out")
    assert alike(table["t"].to_pylist(), [0.5, 1.5]) and facts.left_out == 1


def test_names_of_which_capitals_alone_differ_are_told_apart_and_equal_ones_are_not() -> None:
    with pytest.raises(NamesDifferByCapitals) as differ:
        distinct_names(["age", "Age", "t"], {}, "people.csv", "the header")
    assert differ.value.rename == {"Age": "Age_2"}
    with pytest.raises(InputError) as same:
        distinct_names(["age", "Age", "Age"], {}, "people.csv", "the header")
    assert not isinstance(same.value, NamesDifferByCapitals)
