"""A source that cannot be used is refused in a sentence that says why and tells nothing of a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline_tests.engine.test_sources import QI, SECRET, database, refused, stored, write

BAD_CSV = {
    "text among numbers": (
        f"x,t\n1,a\n{SECRET},b\n3,a\n",
        {"x": {"role": QI, "type": "numeric"}},
        "columns.x: 1 value is no number",
    ),
    "a number before a no-break space": (
        "x,t\n1\u00a0,a\n2,b\n3\u00a0,a\n",
        {"x": {"role": QI, "type": "numeric"}},
        "columns.x: 2 values are no numbers; declare the column categorical",
    ),
    "negative numbers of accounts": (
        "x,t\n1,a\n(5),b\n3,a\n5-,b\n\u22127,a\nn/k,b\n",
        {"x": {"role": QI, "type": "numeric"}},
        "columns.x: 4 values are no numbers; 3 of them seem to be negative, written as accounts do: where (5), 5- or a "
        "5 after a long dash means -5, write -5 in the table, or declare the column categorical",
    ),
    "negative numbers of accounts alone": (
        "x,t\n1,a\n(5),b\n3,a\n5-,b\n",
        {"x": {"role": QI, "type": "numeric"}},
        "columns.x: 2 values seem to be negative, written as accounts do: where (5), 5- or a 5 after a long dash means "
        "-5, write -5 in the table, or declare the column categorical",
    ),
    "text among dates": (
        f"x,t\n2020-01-01,a\n{SECRET},b\n2020-02-30,a\n",
        {"x": {"role": QI, "type": "date"}},
        "columns.x: 2 values are no dates",
    ),
    "infinity": ("x,t\n1,a\ninf,b\n-inf,a\n", {"x": QI}, "columns.x: 2 values are infinite"),
    "a number beyond all floats": ("x,t\n1,a\n1e400,b\n", {"x": QI}, "columns.x: 1 value is infinite"),
    "a stand-in for infinity": ("x,t\n1,a\n3.4e38,b\n", {"x": QI}, "columns.x: 1 value is infinite or beyond"),
    "an infinite date": (
        "x,t\n2020-01-01,a\ninfinity,b\n",
        {"x": {"role": QI, "type": "date"}},
        "columns.x: 1 dates are infinite",
    ),
    "columns without a role": (
        "x,name,t,zip\n1,A,a,7\n2,B,b,8\n",
        {"x": QI},
        "columns: people.csv has columns without a role: name, zip;",
    ),
    "a column that is written otherwise": (
        "town,t\n1,a\n2,b\n",
        {"twon": QI},
        "columns: people.csv has no column twon; did you mean town? correct the name",
    ),
    "an unknown column": ("x,t\n1,a\n2,b\n", {"x": QI, "y": QI}, "columns: people.csv has no column y"),
    "duplicate names": (
        "x,x,t\n1,2,a\n3,4,b\n",
        {"x": QI},
        "people.csv: the columns 1 and 2 of its first line have one name",
    ),
    "names that differ in capitals": (
        "x,X,t\n1,2,a\n3,4,b\n",
        {"x": QI},
        "people.csv: the columns 1 and 2 of its first line have one name",
    ),
    "no line": ("", {"x": QI}, "people.csv: is empty"),
    "no people": ("x,t\n", {"x": QI}, "people.csv: the table is empty"),
    "fewer than k": ("x,t\n1,a\n", {"x": QI}, "people.csv: the table has 1 row, fewer than k = 2"),
    "one class": ("x,t\n1,a\n2,a\n", {"x": QI}, "target: t has one value only"),
    "a missing target": (
        "x,t\n1,a\n2,\n3,b\n",
        {"x": QI},
        "target: t is missing in 1 row; say missing_target: leave_out",
    ),
    "a target that is a name": (
        "x,t\n" + "".join(f"{i},{SECRET}{i}\n" for i in range(200)),
        {"x": QI},
        "target: t has 200 different texts in 200 rows",
    ),
    "no header, so that the first person would be one": (
        f"39,{SECRET}\n40,b\n",
        {"x": QI},
        "columns: people.csv has none of the spec's columns; its first line must name them",
    ),
    "no header, and a person with one value twice": (
        f"{SECRET},{SECRET},39\n40,b,c\n",
        {"x": QI},
        "people.csv: the columns 1 and 2 of its first line have one name",
    ),
    "no header, and a person who bears the name of a column": (
        f"39,{SECRET},t\n40,b,c\n41,b,d\n",
        {"x": QI, "y": QI},
        "columns: people.csv has few of the spec's columns; its first line must name them",
    ),
    "a line too long": (
        f"x,t\n1,a\n2,b\n3,{SECRET},c,d\n4,a\n",
        {"x": QI},
        "people.csv: line 4 has 4 fields where the first line has 2; correct it",
    ),
    "a line too short": (
        f"x;y;t\n1;2;a\n2;3;b\n{SECRET};3\n4;4;a\n",
        {"x": QI},
        "people.csv: line 4 has 2 fields where the first line has 3; correct it",
    ),
    "one column whose name has a comma": (
        "x, in years\n1\n2\n",
        {"x": QI},
        "people.csv has none of the spec's columns; its first line must name them",
    ),
    "all lines longer than the header": (f"x,t\n1,{SECRET},c\n2,b,d\n3,b,d\n", {"x": QI}, "people.csv"),
    "a line above the header, which would be skipped": (
        f"{SECRET}\nx,t\n1,a\n2,b\n",
        {"x": QI},
        "people.csv has none of the spec's columns; its first line must name them",
    ),
    "a quote without end": (f'x,t\n1,a\n"2{SECRET},b\n3,a\n', {"x": QI}, "people.csv: cannot be read"),
}


@pytest.mark.parametrize(("text", "columns", "sentence"), BAD_CSV.values(), ids=BAD_CSV)
def test_a_table_that_cannot_be_used_is_refused_without_a_value_of_a_person(
    engine: DuckDBEngine, tmp_path: Path, text: str, columns: dict[str, Any], sentence: str
) -> None:
    write(tmp_path, "people.csv", text)
    assert sentence in refused(engine, tmp_path, columns)


@pytest.mark.parametrize("stated", [{}, {"delimiter": ","}])
def test_a_broken_line_far_down_is_named_by_its_number(
    engine: DuckDBEngine, tmp_path: Path, stated: dict[str, str]
) -> None:
    lines = [f"{i},{'ab'[i % 2]}" for i in range(60_000)]
    lines[50_000] = f"50000,a,{SECRET}"
    write(tmp_path, "people.csv", "\n".join(["x,t", *lines]))
    assert "line 50002 does not have the shape of the header" in refused(engine, tmp_path, {"x": QI}, source=stated)


@pytest.mark.parametrize(
    ("name", "content", "source", "sentence"),
    [
        ("absent.csv", None, {}, "source.path: absent.csv: there is no such file"),
        ("people.parquet", b"PAR1 " + SECRET.encode(), {}, "people.parquet: cannot be read: it is no intact Parquet"),
        ("people.csv.gz", None, {}, "people.csv.gz: cannot be read"),
        ("people.pdf", b"%PDF", {}, "people.pdf: is no table that can be read"),
        ("people.csv", b"x,t\n1,a\n", {"query": "SELECT 1"}, "source.query: only a database takes a query"),
        ("people.csv", "x,t\n1,a\n".encode("utf-16"), {}, "people.csv: cannot be read"),
        ("people.db", "sqlite", {"query": f"SELECT '{SECRET}' FROM nowhere"}, "names a table or column that does not"),
        ("people.db", "sqlite", {"query": "DELETE FROM people"}, "source.query: asks for more than rows"),
        ("people.db", "sqlite", {"query": "SELECT age AS x, t AS x, t FROM people"}, "the columns x stand twice"),
        ("people.db", "sqlite", {"query": "SELEKT"}, "the query has a syntax error"),
        ("people.db", "duckdb", {"query": f"SELECT '{SECRET}' FROM nowhere"}, "names a table or column that does not"),
        ("people.db", "duckdb", {"query": "SELECT age AS x, t AS x, t FROM people"}, "the columns x"),
        ("people.db", "duckdb", {"query": f"SELECT CAST('{SECRET}' AS INTEGER) AS x, t FROM people"}, "cannot be read"),
        ("parts", "folder", {}, "parts: the folder holds no .parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_a_reason(
    engine: DuckDBEngine, tmp_path: Path, name: str, content: object, source: dict[str, str], sentence: str
) -> None:
    if content in ("sqlite", "duckdb"):
        database(tmp_path, str(content))
        (tmp_path / "p?ople.db").rename(tmp_path / name)
    elif content == "folder":
        (tmp_path / name).mkdir()
    elif isinstance(content, bytes):
        write(tmp_path, name, content)
    elif name.endswith(".gz"):
        (tmp_path / name).write_bytes(b"no gzip " + SECRET.encode())
    assert sentence in refused(engine, tmp_path, {"x": QI}, name=name, source=source)


@pytest.mark.parametrize(
    ("values", "said", "sentence"),
    [
        (pa.array([[1], [2], [3]]), QI, "columns.x: holds BIGINT[] values; flatten or exclude it"),
        (pa.array([b"a", b"b", b"c"]), QI, "columns.x: holds BLOB values"),
        (pa.array([1, 2, 3]), {"role": QI, "type": "date"}, "columns.x.type: is date, but the source holds BIGINT"),
        (pa.array([True, False, True]), {"role": QI, "type": "numeric"}, "columns.x.type: is numeric, but the source"),
        (pa.array([1.0, np.inf, 2.0]), QI, "columns.x: 1 value is infinite"),
        (pa.array([1, 2**63 - 1, 2]), QI, "columns.x: 1 value is infinite or beyond 1e18"),
        (
            pa.array([1.0, np.nan, 2e18]),
            QI,
            "columns.x: 1 value is infinite or beyond 1e18",
        ),  # NaN is a missing value
    ],
)
def test_a_parquet_column_that_cannot_be_used_is_named(
    engine: DuckDBEngine, tmp_path: Path, values: pa.Array, said: Any, sentence: str
) -> None:
    write(tmp_path, "people.parquet", pa.table({"x": values, "t": ["a", "b", "a"]}))
    assert sentence in refused(engine, tmp_path, {"x": said}, name="people.parquet")
    # An excluded column may hold anything.
    write(tmp_path, "people.parquet", pa.table({"x": values, "y": [1, 2, 3], "t": ["a", "b", "a"]}))
    facts, _ = stored(engine, tmp_path, {"x": "exclude", "y": QI}, "people.parquet")
    assert facts.rows == 3


def test_what_is_said_of_a_name_that_stands_twice_can_be_done(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "x,x,t\n1,2,a\n3,4,b\n")
    sentence = refused(engine, tmp_path, {"x": QI})
    assert "source.names, with header: 0 and a skip of 1" in sentence
    named = {"names": ["x", "y", "t"], "header": 0, "skip": 1}
    facts, _ = stored(engine, tmp_path, {"x": QI, "y": QI}, source=named)
    assert facts.rows == 2


def test_a_condition_that_nobody_meets_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    write(tmp_path, "people.csv", "x,t\n1,a\n2,b\n")
    sentence = refused(engine, tmp_path, {"x": {"role": QI, "type": "numeric"}}, source={"where": "x > 200"})
    assert "people.csv: no row of the table meets source.where" in sentence


def test_a_number_to_be_predicted_has_a_square_that_floats_hold(engine: DuckDBEngine, tmp_path: Path) -> None:
    """What nobody learns from may be any number."""
    table = pa.table({"x": [1, 2, 3], "t": [1.0, 1e300, 3.0]})
    write(tmp_path, "people.parquet", table)
    sentence = "columns.t: 1 value is beyond 1e18, and models are to predict them"
    assert sentence in refused(engine, tmp_path, {"x": QI}, name="people.parquet")
    write(
        tmp_path, "people.parquet", table.append_column("y", [[1e300, 2.0, 3.0]]).set_column(1, "t", [[1.0, 2.0, 3.0]])
    )
    facts, _ = stored(engine, tmp_path, {"x": QI, "y": "insensitive"}, "people.parquet")
    assert facts.rows == 3


@pytest.mark.parametrize(("texts", "learnt"), [(100, True), (101, False)])
def test_a_target_of_almost_as_many_texts_as_rows_is_no_target(
    engine: DuckDBEngine, tmp_path: Path, texts: int, learnt: bool
) -> None:
    """Of a few rows a hundred texts may be learnt, of many a tenth of the rows."""
    write(tmp_path, "people.csv", "x,t\n" + "".join(f"{row % 7},name {row % texts}\n" for row in range(500)))
    if learnt:
        stored(engine, tmp_path, {"x": QI})
    else:
        assert "t has 101 different texts in 500 rows" in refused(engine, tmp_path, {"x": QI})


def test_a_column_that_a_step_makes_is_none_of_the_source(engine: DuckDBEngine, tmp_path: Path) -> None:
    columns = {"x": QI, "y": "exclude", "z": "exclude", "cell": {"role": QI, "made": True}}
    steps = [{"technique": "grid_cell", "columns": ["y", "z"], "into": "cell", "metres": 5000}]
    write(tmp_path, "people.csv", "x,y,z,cell,t\n1,48.4,10.0,here,a\n2,48.4,10.0,there,b\n")
    assert "has cell, which a step is said to make" in refused(engine, tmp_path, columns, steps=steps)
    write(tmp_path, "people.csv", "x,y,z,t\n1,48.4,10.0,a\n2,48.4,10.0,b\n")
    stored(engine, tmp_path, columns, steps=steps)
