"""A query to a database gives rows of that database, and reaches nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine import databases
from anon_pipeline.engine.databases import store_duckdb, store_sqlite
from anon_pipeline.engine.sources import check_names, harmless
from anon_pipeline.errors import InputError

SECRET = "the-owners-own-words"
TABLES = [
    "CREATE TABLE people AS SELECT 1 AS age, 'a' AS t UNION ALL SELECT 2, 'b'",
    "CREATE VIEW v AS SELECT * FROM people",
]


def asked(kind: str, folder: Path, query: str) -> list[dict[str, str]]:
    """The rows of a query to a small database, as texts; beside it lies a file of the owner's."""
    (folder / "diary.csv").write_text(SECRET)
    destination, check = folder / "rows.parquet", partial(check_names, "people.db")
    if kind == "sqlite":
        with closing(sqlite3.connect(folder / "people.db")) as database:
            for statement in TABLES:
                database.execute(statement)
            database.commit()
        store_sqlite(folder / "people.db", query, destination, check)
    else:
        with closing(duckdb.connect(folder / "people.db")) as connection:
            for statement in TABLES:
                connection.execute(statement)
            connection.execute("CREATE SCHEMA more; CREATE TABLE more.homes AS SELECT 1 AS age, 'Ulm' AS town")
            connection.execute(f"CREATE VIEW seen AS SELECT * FROM '{folder}/diary.csv'")
            connection.execute(f"CREATE MACRO spy() AS TABLE SELECT * FROM read_text('{folder}/diary.csv')")
        with closing(duckdb.connect()) as reader:
            store_duckdb(reader, folder / "people.db", query, destination, check)
    return [{name: str(value) for name, value in row.items()} for row in pq.read_table(destination).to_pylist()]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM people ORDER BY age -- all of them; really",
        "SELECT * FROM v;",
        "WITH old AS (SELECT * FROM people WHERE age > 0) SELECT * FROM old",
        "SELECT age, t FROM people WHERE age IN (SELECT max(age) FROM PEOPLE UNION SELECT 1)",
        "SELECT row_number() OVER (ORDER BY t) AS age, t FROM people",
        "SELECT 1 AS age, 'a' AS t UNION ALL VALUES (2, 'b')",
        "WITH RECURSIVE n(age) AS (SELECT 1 UNION ALL SELECT age + 1 FROM n WHERE age < 2) SELECT n.age, t FROM n "
        "JOIN people ON n.age = people.age",
    ],
)
def test_a_select_gives_its_rows(kind: str, tmp_path: Path, query: str) -> None:
    rows = sorted(asked(kind, tmp_path, query), key=str)
    assert rows == [{"age": "1", "t": "a"}, {"age": "2", "t": "b"}]


def test_duckdb_reads_other_schemas_of_the_database_and_counts(tmp_path: Path) -> None:
    query = "SELECT town, age FROM source_database.more.homes JOIN range(5) AS n(i) ON n.i = age"
    assert asked("duckdb", tmp_path, query) == [{"town": "Ulm", "age": "1"}]


DENIED = [
    ("duckdb", "SELECT 1); COPY (SELECT 1) TO '{folder}/new'; DESCRIBE (SELECT 1"),
    ("duckdb", "COPY people TO '{folder}/new'"),
    ("duckdb", "SELECT 1; SELECT 2"),
    ("duckdb", "ATTACH '{folder}/new'"),
    ("duckdb", "INSTALL httpfs"),
    ("duckdb", "LOAD httpfs"),
    ("duckdb", "SET enable_external_access=true"),
    ("duckdb", "PRAGMA database_list"),
    ("duckdb", "EXPORT DATABASE '{folder}/new'"),
    ("duckdb", ""),
    ("duckdb", "SELECT * FROM read_text('{folder}/diary.csv')"),
    ("duckdb", "SELECT * FROM read_blob('{folder}/people.db')"),
    ("duckdb", "SELECT * FROM '{folder}/diary.csv'"),
    ("duckdb", "SELECT (SELECT content FROM read_text('{folder}/diary.csv')) AS x FROM people"),
    ("duckdb", "SELECT * FROM seen"),
    ("duckdb", "SELECT * FROM spy()"),
    ("duckdb", "SELECT * FROM query('SELECT 1')"),
    ("duckdb", "SELECT * FROM query_table('people')"),
    ("duckdb", "SELECT * FROM glob('/*')"),
    ("duckdb", "SELECT * FROM duckdb_settings()"),
    ("duckdb", "SELECT * FROM duckdb_databases"),
    ("duckdb", "SELECT * FROM system.information_schema.tables"),
    ("duckdb", "SELECT current_setting('temp_directory') AS x"),
    ("duckdb", "SHOW TABLES"),
    ("sqlite", "VACUUM INTO '{folder}/new'"),
    ("sqlite", "ATTACH '{folder}/new' AS other"),
    ("sqlite", "SELECT 1; SELECT 2"),
    ("sqlite", "PRAGMA database_list"),
    ("sqlite", "SELECT * FROM pragma_database_list"),
    ("sqlite", "SELECT load_extension('{folder}/new')"),
    ("sqlite", "CREATE TEMP TABLE x AS SELECT 1"),
    ("sqlite", "INSERT INTO people VALUES (3, 'c') RETURNING *"),
    ("sqlite", ""),
]


@pytest.mark.parametrize(("kind", "query"), DENIED)
def test_what_is_no_select_of_its_tables_is_denied(kind: str, query: str, tmp_path: Path) -> None:
    with pytest.raises((InputError, duckdb.Error, sqlite3.Error)) as told:
        asked(kind, tmp_path, query.format(folder=tmp_path))
    assert SECRET not in str(told.value)
    assert SECRET not in harmless(told.value)
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "rows.parquet").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "query", "sentence"),
    [
        ("duckdb", "SELECT * FROM nowhere", "names a table or column that does not exist"),
        ("duckdb", "SELECT * FROM elsewhere.people", "names a table or column that does not exist"),
        ("duckdb", "SELECT * FROM glob('/*')", "calls glob, which is no table of the database"),
        ("duckdb", "SELECT GETENV('HOME') AS x", "asks for more than rows"),
        ("duckdb", "SHOW TABLES", "asks for more than rows"),
        ("duckdb", "SELECT 1 AS x; SELECT 2 AS x", "is not one SELECT"),
        ("sqlite", "SELECT 1; SELECT 2", "is not one SELECT"),
        ("sqlite", "", "is not one SELECT"),
        ("sqlite", "DELETE FROM people", "asks for more than rows"),
    ],
)
def test_why_a_query_is_denied_is_told(kind: str, query: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as told:
        asked(kind, tmp_path, query)
    assert str(told.value) == f"source.query: {sentence}; {databases.HOW}"


@pytest.mark.parametrize("query", ["VACUUM INTO '{folder}/new'", "ATTACH '{folder}/new' AS other"])
def test_no_file_is_written_even_where_a_query_is_allowed_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """The second guard: SQLite may attach no database, whatever the first one lets through."""
    monkeypatch.setattr(databases, "READING", range(1000))
    with pytest.raises((InputError, sqlite3.Error)):
        asked("sqlite", tmp_path, query.format(folder=tmp_path))
    assert not (tmp_path / "new").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_the_only_table_of_a_database_is_read_without_a_query(kind: str, tmp_path: Path) -> None:
    """What SQLite keeps for itself is no table of people; a view is one."""
    file, destination, check = tmp_path / "people.db", tmp_path / "rows.parquet", partial(check_names, "people.db")

    def read() -> int:
        if kind == "sqlite":
            store_sqlite(file, None, destination, check, "p")
        else:
            with closing(duckdb.connect()) as reader:
                store_duckdb(reader, file, None, destination, check, "p")
        return pq.read_table(destination).num_rows

    def make(statement: str) -> None:
        opened: Any = sqlite3.connect(file) if kind == "sqlite" else duckdb.connect(file)
        with closing(opened) as database:
            database.execute(statement)
            database.commit() if kind == "sqlite" else None

    make("CREATE TABLE gone AS SELECT 1 AS x")
    make("DROP TABLE gone")
    with pytest.raises(InputError, match=r"^source\.query: p is a database without a table$"):
        read()
    if kind == "sqlite":
        make("CREATE TABLE people (id INTEGER PRIMARY KEY AUTOINCREMENT, age)")
        make("INSERT INTO people (age) VALUES (1), (2)")
    else:
        make(TABLES[0])
    assert read() == 2
    make("CREATE VIEW v AS SELECT * FROM people")
    with pytest.raises(InputError, match=r"^source\.query: p is a database with the tables people, v; say which"):
        read()


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_rows_of_sqlite_are_read_a_part_at_a_time(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "SQLITE_ROWS", rows)
    assert [row["age"] for row in asked("sqlite", tmp_path, "SELECT age FROM people ORDER BY age")] == ["1", "2"]


def test_a_file_may_be_named_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `anon-pipeline profile people.db` names it."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("people.db")) as database:
        database.execute(TABLES[0])
        database.commit()
    store_sqlite(Path("people.db"), None, Path("rows.parquet"), partial(check_names, "people.db"))
    assert pq.read_table("rows.parquet").num_rows == 2


def test_a_cell_of_sqlite_is_the_text_that_a_csv_would_have() -> None:
    cells = [None, 1.5, 1e22, 3, "a", ""]
    assert [databases._cell(cell, by_itself=False) for cell in cells] == [None, "1.5", "1e+22", "3", "a", ""]
