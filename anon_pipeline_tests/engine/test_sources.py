"""Every kind of source is read whole and typed as stated, or refused in a sentence that tells nothing of a person."""

from __future__ import annotations

import gzip
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, nullcontext
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine.base import Repetition, SourceFacts
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.sources import opened
from anon_pipeline.engine.text_files import joined_header
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline_tests.people import write_spec

QI, TARGET = "quasi_identifier", {"t": "sensitive"}
PEOPLE = [(7, "Ulm", "ill"), (8, "Łódź, PL", "well"), (9, 'the "old"\ntown', "ill")]
#: A value of a person that no message may repeat.
SECRET = "Ottilie-W-HIV"


def write(folder: Path, name: str, content: str | bytes | pa.Table, encoding: str = "utf-8") -> None:
    if isinstance(content, pa.Table):
        pq.write_table(content, folder / name)
    else:
        data = content.encode(encoding) if isinstance(content, str) else content
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def stored(
    engine: DuckDBEngine, folder: Path, columns: dict[str, Any], name: str = "people.csv", **more: Any
) -> tuple[SourceFacts, pa.Table]:
    spec = write_spec(folder, {**columns, **TARGET}, name, **more)
    facts = engine.store_source(spec, folder / "stored.parquet")
    table = pq.read_table(folder / "stored.parquet")
    everybody = np.repeat(np.arange(table.num_rows), table["#people"].to_numpy())
    return facts, table.take(everybody).drop_columns(["#people"])


def alike(values: list[Any], others: list[Any]) -> bool:
    """Whether both hold the same values, as often: a stored table has no order."""
    return Counter(values) == Counter(others)


def column(engine: DuckDBEngine, folder: Path, values: str, said: Any = QI, **more: Any) -> tuple[str, list[Any]]:
    """Storage type and values of the column `x` of a CSV."""
    lines = [f"{value},{'ill' if number % 2 else 'well'},{number}" for number, value in enumerate(values.split("|"))]
    write(folder, "people.csv", "\n".join(["x,t,i", *lines]) + "\n")
    facts, table = stored(engine, folder, {"x": said, "i": "identifier"}, **more)
    return facts.columns[0].storage, table.sort_by("i")["x"].to_pylist()


def refused(engine: DuckDBEngine, folder: Path, columns: dict[str, Any], **more: Any) -> str:
    with pytest.raises(InputError) as error:
        stored(engine, folder, columns, **more)
    message = str(error.value)
    assert SECRET not in message
    assert "\n" not in message
    assert not (folder / "stored.parquet").exists()
    return message


# ------------------------------------------------------------------ kinds of files


def csv(delimiter: str) -> str:
    def field(value: object) -> str:
        text = str(value).replace('"', '""')
        return f'"{text}"' if any(sign in text for sign in ',;\t"\n') else text

    return "".join(delimiter.join(map(field, row)) + "\n" for row in [("age", "city", "t"), *PEOPLE])


TABLE = pa.Table.from_pylist([dict(zip(("age", "city", "t"), row, strict=True)) for row in PEOPLE])


def database(folder: Path, kind: str) -> None:
    connection = sqlite3.connect(folder / "p?ople.db") if kind == "sqlite" else duckdb.connect(folder / "p?ople.db")
    connection.execute("CREATE TABLE people (age INTEGER, city VARCHAR, t VARCHAR)")
    connection.executemany("INSERT INTO people VALUES (?, ?, ?)", PEOPLE)
    if kind == "sqlite":
        connection.commit()
    connection.close()


KINDS = ["comma", "semicolon", "tab", "pipe", "gzip", "utf-16", "bom", "crlf", "parquet", "folder", "sqlite", "duckdb"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_gives_the_same_people(engine: DuckDBEngine, tmp_path: Path, kind: str) -> None:
    name, source = "people.csv", {}
    if kind in ("sqlite", "duckdb"):
        database(tmp_path, kind)
        name, source = "p?ople.db", {"query": "SELECT age, city, t FROM people WHERE age > 0 -- all of them"}
    elif kind == "parquet":
        name = "people.parquet"
        write(tmp_path, name, TABLE)
    elif kind == "folder":
        name = "parts"
        (tmp_path / "parts" / "deep").mkdir(parents=True)
        write(tmp_path, "parts/a.parquet", TABLE.slice(0, 1))
        write(tmp_path, "parts/deep/b.parquet", TABLE.slice(1).select(["t", "city", "age"]))
    elif kind == "gzip":
        name = "people.csv.gz"
        write(tmp_path, name, csv(","))
    elif kind == "utf-16":
        source = {"encoding": "utf-16"}
        write(tmp_path, name, csv(","), "utf-16")
    else:
        text = csv({"semicolon": ";", "tab": "\t", "pipe": "|"}.get(kind, ","))
        source = {"delimiter": "|"} if kind == "pipe" else {}
        text = text.replace("\n", "\r\n").replace('old""\r\n', 'old""\n') if kind == "crlf" else text
        write(tmp_path, name, ("\ufeff" if kind == "bom" else "") + text)
    facts, table = stored(engine, tmp_path, {"age": QI, "city": QI}, name, source=source)
    assert facts.rows == 3
    assert sorted(zip(*(table[c].to_pylist() for c in ("age", "city", "t")), strict=True)) == PEOPLE
    assert [one.storage for one in facts.columns][1:] == ["VARCHAR", "VARCHAR"]
    assert facts.columns[0].storage in ("BIGINT", "INTEGER")
    assert not (tmp_path / "sqlite.parquet").exists()
    assert not (tmp_path / "duckdb.parquet").exists()


def test_a_delimiter_of_two_letters_that_is_not_the_files_is_told(engine: DuckDBEngine, tmp_path: Path) -> None:
    """It ended with an internal error, since only delimiters of one letter were looked for."""
    write(tmp_path, "people.csv", f"city,t\nUlm,ill,{SECRET}\nUlm,well\n")
    assert SECRET not in refused(engine, tmp_path, {"city": QI}, source={"delimiter": "ab"})


def test_latin_1_is_read_where_stated_and_refused_where_not(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", f"city,t\nKöln,ill\n{SECRET}ß,well\n", "latin-1")
    message = refused(engine, tmp_path, {"city": QI})
    told = "people.csv: cannot be read: line 2 is not in the encoding asked for; state the file's"
    assert message == f"source.encoding: {told}"
    assert "kwerty is no encoding" in refused(engine, tmp_path, {"city": QI}, source={"encoding": "kwerty"})
    message = refused(engine, tmp_path, {"city": QI}, source={"encoding": "ascii"})
    assert "line 2 is not in the encoding asked for" in message
    assert "line 2 is not in the encoding shift_jis" in refused(
        engine, tmp_path, {"city": QI}, source={"encoding": "shift_jis"}
    )
    message = refused(engine, tmp_path, {"city": QI}, source={"encoding": "utf-16"})  # no mark of the byte order
    assert "line 1 is not in the encoding utf-16" in message
    _, table = stored(engine, tmp_path, {"city": QI}, source={"encoding": "cp1252"})
    assert alike(table["city"].to_pylist(), ["Köln", f"{SECRET}ß"])
    _, table = stored(engine, tmp_path, {"city": QI}, source={"encoding": "latin-1"})
    assert alike(table["city"].to_pylist(), ["Köln", f"{SECRET}ß"])


def test_an_excluded_column_is_not_even_copied(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "name,age,t\nA,1,x\nB,2,y\n")
    facts, table = stored(engine, tmp_path, {"name": "exclude", "age": QI})
    assert table.column_names == ["age", "t"]
    assert [one.name for one in facts.columns] == ["age", "t"]


def test_the_same_person_twice_is_counted(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "id,age,t\n1,3,x\n1,4,y\n2,3,x\n,3,x\n,3,x\n")
    facts, _ = stored(engine, tmp_path, {"id": "identifier", "age": QI})
    assert facts.duplicate_persons == 2
    assert facts.columns[0].missing == 2


def test_each_identifier_is_looked_at_alone(engine: DuckDBEngine, tmp_path: Path) -> None:
    """One of them that never repeats, or is not known, does not hide that another does."""
    write(tmp_path, "people.csv", "ssn,email,age,t\n1,a,3,x\n1,b,4,y\n1,,4,y\n2,d,3,x\n3,e,3,x\n,e,3,x\n,,3,x\n")
    facts, _ = stored(engine, tmp_path, {"ssn": "identifier", "email": "identifier", "age": QI})
    assert facts.identifiers == (Repetition("ssn", 3, 3), Repetition("email", 2, 2))
    assert facts.duplicate_persons == 3


# ------------------------------------------------------------------ typing


@pytest.mark.parametrize(
    ("values", "said", "storage", "expected"),
    {
        "whole numbers stay whole": ("5|-3|+7", QI, "BIGINT", [5, -3, 7]),
        "numbers with spaces": (" 5|3 |7", QI, "BIGINT", [5, 3, 7]),
        "fractions": ("1.5|2|-0.0", QI, "DOUBLE", [1.5, 2.0, 0.0]),
        "nan is missing, not a number": ("1|nan|3", QI, "DOUBLE", [1.0, None, 3.0]),
        "leading zeros are a code": ("007|7|08", QI, "VARCHAR", ["007", "7", "08"]),
        "zero and its fractions are numbers": ("0|0.5|-0.5", QI, "DOUBLE", [0.0, 0.5, -0.5]),
        "more digits than a number holds": (
            "12345678901234567890|12345678901234567891|1",
            QI,
            "VARCHAR",
            ["12345678901234567890", "12345678901234567891", "1"],
        ),
        "numbers as texts where stated": (
            "7|8|9.0",
            {"role": QI, "type": "categorical"},
            "VARCHAR",
            ["7", "8", "9.0"],
        ),
        "codes as numbers where stated": ("007|7|08", {"role": QI, "type": "numeric"}, "BIGINT", [7, 7, 8]),
        "truths": ("true|false|true", QI, "VARCHAR", ["true", "false", "true"]),
        "dates": (
            "2020-01-31|2019-02-28|",
            {"role": QI, "type": "date"},
            "DATE",
            [date(2020, 1, 31), date(2019, 2, 28), None],
        ),
        "moments": (
            "2020-01-31 10:30:00|2019-02-28|",
            {"role": QI, "type": "date"},
            "TIMESTAMP",
            [datetime(2020, 1, 31, 10, 30), datetime(2019, 2, 28), None],
        ),
        "texts like missing values": ("NULL|None|nan", QI, "VARCHAR", ["NULL", "None", "nan"]),
    }.values(),
    ids=lambda value: value.replace("|", " ") if isinstance(value, str) else "",
)
def test_a_csv_column_gets_a_type_that_loses_something(
    engine: DuckDBEngine, tmp_path: Path, values: str, said: Any, storage: str, expected: list[Any]
) -> None:
    assert column(engine, tmp_path, values, said) == (storage, expected)


@pytest.mark.long
def test_missing_markers_are_taken_for_values(engine: DuckDBEngine, tmp_path: Path) -> None:
    assert column(engine, tmp_path, "5|?|-|7|", source={"missing": ["?", "-"]}) == ("BIGINT", [5, None, None, 7, None])
    assert column(engine, tmp_path, "a|?| ?|A", source={"missing": ["?"]}) == ("VARCHAR", ["a", None, " ?", "A"])
    facts, _ = stored(engine, tmp_path, {"x": QI, "i": "identifier"}, source={"missing": ["?"]})
    assert (facts.columns[0].missing, facts.columns[0].distinct) == (1, 3)


@pytest.mark.parametrize(
    ("values", "storage", "expected"),
    [
        (pa.array([1, -2, None], pa.int8()), "TINYINT", None),
        (pa.array([1, 2**32 - 1, None], pa.uint32()), "UINTEGER", None),
        (pa.array([0, 10**18 - 1, None], pa.uint64()), "BIGINT", None),
        (pa.array([Decimal(5), Decimal(-(10**18)), None], pa.decimal128(38, 0)), "BIGINT", None),
        (pa.array([True, False, None]), "BOOLEAN", None),
        (pa.array([Decimal("1.25"), Decimal("-99999999.99"), None], pa.decimal128(10, 2)), "DECIMAL(10,2)", None),
        (pa.array([1.5, float("nan"), None], pa.float32()), "FLOAT", [1.5, None, None]),
        (pa.array([1.5, float("nan"), 2.5]), "DOUBLE", [1.5, None, 2.5]),
        (pa.array([date(2020, 1, 31), None, date(1900, 1, 1)]), "DATE", None),
        (pa.array([datetime(2020, 1, 31, 1), None, None], pa.timestamp("ns")), "TIMESTAMP", None),
        (pa.array([datetime(2020, 1, 31, 1), None, None], pa.timestamp("us", "UTC")), "TIMESTAMP",
         [datetime(2020, 1, 31, 1), None, None]),
        (pa.array(["b", "a", None]).dictionary_encode(), "VARCHAR", ["b", "a", None]),
        (pa.array(["", "007", " "]), "VARCHAR", [None, "007", " "]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)  # fmt: skip
def test_a_parquet_column_loses_its_type(
    engine: DuckDBEngine, tmp_path: Path, values: pa.Array, storage: str, expected: list[Any] | None
) -> None:
    write(tmp_path, "people.parquet", pa.table({"x": values, "t": [True, False, True]}))
    facts, table = stored(engine, tmp_path, {"x": QI}, "people.parquet")
    assert facts.columns[0].storage == storage
    assert alike(table["x"].to_pylist(), values.to_pylist() if expected is None else expected)
    assert facts.columns[1].storage == "BOOLEAN"


def test_a_sensitive_number_is_rounded_although_it_is_kept(engine: DuckDBEngine, tmp_path: Path) -> None:
    exact = [Decimal("12345678901234567890.12"), Decimal("0.01")]
    key = [2**64 - 1, 2**64 - 2]
    data = {"x": [1, 2], "salary": pa.array(exact, pa.decimal128(30, 2)), "key": pa.array(key, pa.uint64())}
    write(tmp_path, "people.parquet", pa.table({**data, "t": ["a", "b"]}))
    _, table = stored(engine, tmp_path, {"x": QI, "salary": "sensitive", "key": "insensitive"}, "people.parquet")
    assert alike(table["salary"].to_pylist(), exact)
    assert alike(table["key"].to_pylist(), key)


# ------------------------------------------------------------------ lines and headers


@pytest.mark.long
def test_the_header_of_a_large_csv_is_its_first_line_however_many_threads_read_it(tmp_path: Path) -> None:
    """Several threads read a file of many megabytes, and the lines of a later part may come first."""
    line = f"{SECRET},{SECRET},7,ill\n{SECRET},b,8,well\n"
    (tmp_path / "people.csv").write_text("name,other,x,t\n" + line * 600_000)
    engine = DuckDBEngine(tmp_path / "spill", threads=8)
    with engine._session() as session:
        for _ in range(20):
            with opened(
                session.connection, write_spec(tmp_path, {"x": QI, **TARGET}, "people.csv"), tmp_path
            ) as source:
                assert list(session.storage(source.relation)) == ["name", "other", "x", "t"]


def test_lines_that_look_like_comments_are_people_too(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "x,t\n#1,a\n#2,b\n3,a\n")
    facts, table = stored(engine, tmp_path, {"x": QI})
    assert facts.rows == 3
    assert alike(table["x"].to_pylist(), ["#1", "#2", "3"])


def test_what_does_not_fit_into_memory_goes_to_the_folder_that_was_named_for_it(tmp_path: Path) -> None:
    engine = DuckDBEngine(tmp_path / "spill", memory_limit="50MB", threads=1)
    with engine._session() as session:
        ((where,),) = session.rows("SELECT current_setting('temp_directory')")
    assert where == str(tmp_path / "spill")


def test_a_name_of_a_header_of_several_lines_spreads_only_above_other_names() -> None:
    assert joined_header([("name", "income", None), (None, "gross", "net")]) == ["name", "income gross", "income net"]
    assert joined_header([("a", "b"), ("c", None)]) == ["a c", "b"]
    assert joined_header([("a", None), (None, None), ("b", "c")]) == ["a b", "a c"]


def test_only_a_database_takes_a_query(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "x,t\n1,ill\n")
    spec = write_spec(tmp_path, {"x": QI, **TARGET}, "people.csv", source={"query": "SELECT * FROM people"})
    with pytest.raises(InputError, match=r"source\.query: only a database takes a query"):
        engine.store_source(spec, tmp_path / "stored.parquet")


def test_people_are_counted_in_a_source_that_is_not_stored(tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "x,t\n1,ill\n2,well\n1,ill\n")
    spec = write_spec(tmp_path, {"x": QI, **TARGET}, "people.csv")
    counting = DuckDBEngine(tmp_path / "not" / "there yet")
    for _ in range(2):  # the folder is there the second time
        found = counting.aggregated(
            spec, lambda reader, relation: f"SELECT t, count(*) AS n FROM {relation} GROUP BY t"
        )
        assert sorted(map(str, found.to_pylist())) == ["{'t': 'ill', 'n': 2}", "{'t': 'well', 'n': 1}"]


def _appended(folder: Path) -> None:
    with (folder / "people.csv").open("a") as file:
        file.write("4,b\n")


def _replaced(folder: Path) -> None:
    (folder / "other.csv").write_text("x,t\n1,a\n2,b\n9,b\n")
    (folder / "other.csv").rename(folder / "people.csv")


def _added(folder: Path) -> None:
    pq.write_table(pa.table({"x": [9], "t": ["b"]}), folder / "parts" / "b.parquet")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_appended, "people.csv"),
        (_replaced, "people.csv"),
        (lambda folder: (folder / "people.csv").unlink(), "people.csv"),
        (_added, "parts"),
    ],
)
def test_what_is_changed_while_it_is_read_is_nobodys_table(
    engine: DuckDBEngine, tmp_path: Path, change: Callable[[Path], None], name: str
) -> None:
    (tmp_path / "people.csv").write_text("x,t\n1,a\n2,b\n3,b\n")
    (tmp_path / "parts").mkdir()
    pq.write_table(pa.table({"x": [1, 2, 3], "t": ["a", "b", "b"]}), tmp_path / "parts" / "a.parquet")
    spec = write_spec(tmp_path, {"x": QI, **TARGET}, name)

    def read(meanwhile: Callable[[Path], None]) -> int:
        with duckdb.connect() as connection, opened(connection, spec, tmp_path) as source:
            meanwhile(tmp_path)
            return len(connection.execute(f"FROM {source.relation}").fetchall())

    assert read(lambda _: None) == 3
    with pytest.raises(Unavailable, match=rf"^{name}: was changed while it was read; run again$"):
        read(change)


def test_a_database_may_be_written_to_while_it_is_read(engine: DuckDBEngine, tmp_path: Path) -> None:
    """It shows one state to who reads it."""
    with closing(sqlite3.connect(tmp_path / "people.db")) as database:
        database.execute("CREATE TABLE people AS SELECT 1 AS x, 'a' AS t UNION SELECT 2, 'b'")
        database.commit()
    spec = write_spec(tmp_path, {"x": QI, **TARGET}, "people.db")
    with duckdb.connect() as connection, opened(connection, spec, tmp_path) as source:
        with closing(sqlite3.connect(tmp_path / "people.db")) as database:
            database.execute("INSERT INTO people VALUES (3, 'b')")
            database.commit()
        assert len(connection.execute(f"FROM {source.relation}").fetchall()) == 2


def test_a_weight_is_a_number(engine: DuckDBEngine, tmp_path: Path) -> None:
    columns = {"age": QI, "w": "exclude", "t": "sensitive"}
    for weight, refused in (("3", False), ("three", True)):
        write(tmp_path, "people.csv", f"age,w,t\n30,2,a\n40,{weight},b\n")
        spec = write_spec(tmp_path, columns, "people.csv", sampling_weight="w")
        with pytest.raises(InputError, match="w holds texts") if refused else nullcontext():
            engine.store_source(spec, tmp_path / "stored.parquet")


HEAD, BODY = "city,note,t", [f"Bergen,{row},{'ab'[row % 2]}" for row in range(40)]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "\n" + "".join(f"{line}\r\n" for line in BODY),
        HEAD + "\r\n" + "".join(f"{line}\n" for line in BODY),
        HEAD + "\n" + "".join(line + "\r\n"[row % 2 :] for row, line in enumerate(BODY)),
        "\n".join([HEAD, *BODY[:-1]]) + "\n" + BODY[-1] + "\r\n",
    ],
    ids=["header", "body", "alternating", "tail"],
)
@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-8", "people.csv"), ("cp1252", "people.csv"), ("utf-8", "p.csv.gz")]
)
def test_lines_may_end_in_two_ways(engine: DuckDBEngine, tmp_path: Path, text: str, encoding: str, name: str) -> None:
    """As in a file of which two programs wrote parts."""
    content = text.replace("Bergen", "Bærum").encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    facts, table = stored(engine, tmp_path, {"city": QI, "note": QI}, name, source={"encoding": encoding})
    assert facts.rows == 40 and set(table.column("city").to_pylist()) == {"Bærum"}
    assert sorted(table.column("note").to_pylist()) == list(range(40))
    assert set(table.column("t").to_pylist()) == {"a", "b"}


def test_another_end_of_a_line_far_down_is_told(engine: DuckDBEngine, tmp_path: Path) -> None:
    lines = [HEAD, *(f"Bergen,{row},{'ab'[row % 2]}" for row in range(60_000))]
    (tmp_path / "people.csv").write_bytes("\n".join([*lines[:-1], "Cork,1,a\r", lines[-1]]).encode())
    with pytest.raises(InputError, match="a line far down ends otherwise than the first"):
        stored(engine, tmp_path, {"city": QI, "note": QI})
