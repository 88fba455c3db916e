"""The queries that a spec may send to a server, and the server's address."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Source
from anon_pipeline.spec.source import Connection

HOW = "write one SELECT from tables and views of the database"
#: Most parts of a table's name: database, schema and table. The first of four parts would be another server.
PARTS_OF_A_NAME = 3


def query_of(source: Source, dialect: str) -> str:
    """The SELECT for the rows of a source.

    Raises
    ------
    InputError
        For a query that does more than read.
    """
    from sqlglot import exp

    if source.query is not None:
        return one_select("source.query", source.query, dialect)
    parts = str(source.table).split(".")
    if len(parts) > PARTS_OF_A_NAME or not all(parts):
        raise InputError("source.table: names a table, or schema.table; write it without further points")
    named = ".".join(exp.to_identifier(part, quoted=True).sql(dialect=dialect) for part in parts)
    return f"SELECT * FROM {named}"


def one_select(place: str, query: str, dialect: str) -> str:
    """The query, if it is a single SELECT that calls functions of standard SQL only.

    A query may come from somebody else. A server's own functions can do other things (read its files, open
    connections), so they are refused. If one is needed, make a view on the server that calls it.

    Raises
    ------
    InputError
        For anything else.
    """
    import sqlglot
    from sqlglot import exp

    try:
        statements = sqlglot.parse(query, dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise InputError(f"{place}: is not one SELECT; {HOW}") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise InputError(f"{place}: is not one SELECT; {HOW}")
    if dialect == "mysql" and "/*" in query:  # the server runs the text within /*! ... */
        raise InputError(f"{place}: has a comment in /* */, which may run there; begin it with # or leave it out")
    changing = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into, exp.Lock, exp.Command, exp.WithTableHint)
    assignment = (exp.PropertyEQ,) if dialect == "mysql" else ()
    if statements[0].find(*changing, *assignment, exp.NextValueFor):
        raise InputError(f"{place}: would write or lock; {HOW}")
    if dialect == "tsql" and (
        statements[0].ctes or (statements[0].args.get("order") and not _is_limited(statements[0]))
    ):
        raise InputError(f"{place}: begins with WITH or ends with ORDER BY; leave that out, or make a view of it")
    for called in statements[0].find_all(exp.Anonymous):
        raise InputError(
            f"{place}: calls {called.name}, which is no function of standard SQL; make a view that calls it"
        )
    if any(isinstance(table.this, exp.Dot) for table in statements[0].find_all(exp.Table)):
        raise InputError(f"{place}: names a table of another server; {HOW}")
    return query.strip().rstrip(";")


def _is_limited(query: Any) -> bool:
    return any(query.args.get(part) is not None for part in ("limit", "fetch", "offset"))


def address_of(place: Connection | None, folder: Path, field: str = "source.connection") -> str:
    """The address of a server with its secrets.

    Parameters
    ----------
    folder : the folder of the spec, to which a file's path is relative
    field : the field of the spec, for messages

    Raises
    ------
    InputError
        Where it is not there, or others may read it.
    """
    if place is None:
        raise InputError(f"{field}: is missing; say {{env: NAME}} or {{file: path}}")
    if place.env is not None:
        if not os.environ.get(place.env):
            raise Unavailable(f"{field}: the environment variable {place.env} is not set")
        return os.environ[place.env]
    path = folder / str(place.file)
    try:
        with path.open(encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise InputError(f"{field}: {place.file} can be read by others; run `chmod 600` on it")
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        raise Unavailable(f"{field}: {place.file} cannot be read") from None
