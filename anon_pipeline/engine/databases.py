"""The rows of a query to a DuckDB or SQLite file, without access to anything else on the machine.

A query may come from somebody else. It runs in a connection of its own, in which only the named database is open, for
reading. The connection has no access to files, other databases, extensions or settings.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.errors import InputError

#: The name of a DuckDB database within its connection.
NAMED = "source_database"
#: Table functions that read nothing, and functions that reveal something about the machine.
HARMLESS_TABLES, REVEALING = {"generate_series", "range", "unnest"}, {"current_setting", "getenv", "getvariable"}
#: All actions that SQLite may take for a query; it asks for permission before each action.
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
HOW = "write one SELECT from tables and views of that database"
SQLITE_ROWS = 50_000
#: What bytes become where each value is read by itself; it is no number, and no value of a domain.
NO_TEXT = "bytes, which are no text"

#: Endings of the files with changes that DuckDB and SQLite have not yet moved into the database file.
NOT_YET_MOVED = (".wal", "-wal")

#: Raises InputError for names of columns that cannot be used.
CheckNames = Callable[[list[str]], None]


def changes_beside(path: Path) -> list[Path]:
    """The files beside that of a database with changes, which its readers see though its own file is as it was."""
    beside = [path.with_name(path.name + ending) for ending in NOT_YET_MOVED]
    return [file for file in beside if file.is_file() and file.stat().st_size]


def store_duckdb(
    reader: duckdb.DuckDBPyConnection,
    path: Path,
    query: str | None,
    destination: Path,
    check_names: CheckNames,
    label: str = "it",
) -> None:
    """Write the rows of a query to the DuckDB database at `path` as a new Parquet file.

    Memory, threads and where to spill to are those of `reader`.

    Raises
    ------
    InputError
        For what is not one SELECT from tables and views of that database.
    """
    settings = {}
    for setting in ("memory_limit", "threads", "temp_directory", "TimeZone"):
        ((settings[setting],),) = reader.execute(f"SELECT current_setting({literal(setting)})").fetchall()
    with _selected(path, query, label, settings, [destination]) as (_, rows):
        check_names(rows.columns)
        rows.write_parquet(str(destination), compression="snappy")


def duckdb_head(path: Path, query: str | None, label: str) -> tuple[list[str], int | None]:
    """The columns of a query to the DuckDB database at `path`, and the rows of a table, whose number is stored in it.

    Raises
    ------
    InputError
        As `store_duckdb`.
    """
    with _selected(path, query, label, {}, []) as (connection, rows):
        views = connection.execute(
            f"SELECT 1 FROM duckdb_views() WHERE database_name = '{NAMED}' AND NOT internal LIMIT 1"
        ).fetchall()
        if query is not None or views:  # their rows can only be counted by running them
            return list(rows.columns), None
        return list(rows.columns), int(rows.aggregate("count(*)").fetchall()[0][0])


@contextmanager
def _selected(
    path: Path, query: str | None, label: str, settings: Mapping[str, object], written: Sequence[Path]
) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation]]:
    """The rows of a query, or of the only table, in a connection with access to the database and `written` alone."""
    with closing(duckdb.connect()) as connection:
        for setting, value in settings.items():
            connection.execute(f"SET {setting}={literal(str(value))}")
        connection.execute(f"ATTACH {literal(str(path))} AS {NAMED} (READ_ONLY, TYPE duckdb)")
        connection.execute(f"USE {NAMED}")
        if query is None:
            tables = connection.execute(
                f"SELECT table_name FROM duckdb_tables() WHERE database_name = '{NAMED}' UNION ALL "
                f"SELECT view_name FROM duckdb_views() WHERE database_name = '{NAMED}' AND NOT internal"
            )
            query = _only_table(label, tables.fetchall())
        for setting, locked in (
            ("allowed_paths", f"[{', '.join(literal(str(file)) for file in written)}]"),
            ("enable_external_access", "false"),
            ("python_enable_replacements", "false"),
            ("lock_configuration", "true"),
        ):
            connection.execute(f"SET {setting}={locked}")
        yield connection, connection.sql(_one_select(connection, query))


def _only_table(label: str, tables: list[tuple[str]]) -> str:
    """A query for the rows of a database's only table.

    Raises
    ------
    InputError
        Naming the tables, where there are several, or none.
    """
    if len(tables) == 1:
        return f"SELECT * FROM {quoted(tables[0][0])}"
    names = ", ".join(sorted(name for (name,) in tables))
    held = f"with the tables {names}; say which rows with a query" if tables else "without a table"
    raise InputError(f"source.query: {label} is a database {held}")


def _one_select(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    """The query as DuckDB parses it, if it is a single SELECT that names only tables of the database."""
    statements = connection.extract_statements(query)
    ((parsed,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    tree = json.loads(parsed)
    if len(statements) != 1 or tree["error"]:
        raise InputError(f"source.query: is not one SELECT; {HOW}")
    known = connection.execute(
        f"SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = '{NAMED}' "
        f"UNION SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = '{NAMED}' AND NOT internal"
    ).fetchall()
    places = {part.casefold() for part in (NAMED, *(schema for schema, _ in known))}
    parts = list(_parts(tree))
    tables = {name.casefold() for _, name in known}
    tables |= {entry["key"].casefold() for part in parts if "cte_map" in part for entry in part["cte_map"]["map"]}
    for part in parts:
        kind, function = part.get("type"), str(part.get("function_name", "")).casefold()
        if kind == "BASE_TABLE":
            *within, name = (part_of_name.casefold() for part_of_name in part["qualified_name"]["path"])
            if name not in tables or not places.issuperset(within):
                raise InputError(f"source.query: names a table or column that does not exist; {HOW}")
        elif kind == "TABLE_FUNCTION":
            called = str(part["function"]["function_name"])
            if called.casefold() not in HARMLESS_TABLES:
                raise InputError(f"source.query: calls {called}, which is no table of the database; {HOW}")
        elif kind == "SHOW_REF" or function in REVEALING:
            raise InputError(f"source.query: asks for more than rows; {HOW}")
    return statements[0]


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """All nodes of a parsed query."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending += node.values()
        elif isinstance(node, list):
            pending += node


def store_sqlite(
    path: Path,
    query: str | None,
    destination: Path,
    check_names: CheckNames,
    label: str = "it",
    by_itself: bool = False,
) -> None:
    """Write the rows of a query to the SQLite database at `path` as a new Parquet file.

    SQLite types values, not columns: everything becomes text first, and is then typed like a CSV. A column in which
    bytes (BLOB) stand is one of bytes, as in other sources, so that none are taken for missing values.

    Parameters
    ----------
    by_itself : whether each value is read by itself: bytes are then `NO_TEXT`, and all else of their column as it was

    Raises
    ------
    InputError
        For what is not one SELECT from tables and views of that database.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # VACUUM INTO needs to attach, too
        if query is None:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
            query = _only_table(label, [(name,) for (name,) in tables if not name.startswith("sqlite_")])
        rows = _sqlite_rows(database, query)
        names = [column[0] for column in rows.description]
        check_names(names)
        of_bytes: set[str] = set()
        while found := _store_rows(rows, names, of_bytes, destination, by_itself):
            of_bytes |= found
            rows = _sqlite_rows(database, query)


def _sqlite_rows(database: sqlite3.Connection, query: str) -> sqlite3.Cursor:
    """The rows of a query, if it is a single SELECT that asks for rows and nothing else."""
    denied = False

    def decide(action: int, *asked: str | None) -> int:
        nonlocal denied
        allowed = action in READING and "load_extension" not in asked
        denied = denied or not allowed
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    database.set_authorizer(decide)
    try:
        cursor = database.execute(query)
    except (sqlite3.Warning, sqlite3.ProgrammingError):  # several statements
        raise InputError(f"source.query: is not one SELECT; {HOW}") from None
    except sqlite3.DatabaseError:
        if not denied:
            raise
        raise InputError(f"source.query: asks for more than rows; {HOW}") from None
    if cursor.description is None:
        raise InputError(f"source.query: is not one SELECT; {HOW}")
    return cursor


def _store_rows(
    rows: sqlite3.Cursor, names: Sequence[str], of_bytes: Collection[str], destination: Path, by_itself: bool
) -> set[str]:
    """Write rows until bytes stand in a column that is not one of bytes; the names of such columns are returned."""
    schema = pa.schema([(name, pa.binary() if name in of_bytes else pa.string()) for name in names])
    with pq.ParquetWriter(destination, schema) as writer:
        while part := rows.fetchmany(SQLITE_ROWS):
            columns = dict(zip(names, zip(*part, strict=True), strict=True))
            if not by_itself:
                found = {name for name in names if name not in of_bytes and bytes in map(type, columns[name])}
                if found:
                    return found
            cells = ([_cell(value, by_itself) for value in columns[name]] for name in names)
            arrays = [pa.array(of_column, field.type) for of_column, field in zip(cells, schema, strict=True)]
            writer.write_table(pa.table(arrays, schema=schema))
    return set()


def _cell(value: Any, by_itself: bool) -> str | bytes | None:
    if isinstance(value, bytes):
        return NO_TEXT if by_itself else value
    return None if value is None else repr(value) if isinstance(value, float) else str(value)
