"""A schema of a PostgreSQL server: the tables of the current release, swapped in within one transaction.

Beside them, the table `<dataset>_releases` has the version, the hashes and the manifest of each release that was put
there, and says which one is current. No message of the server is repeated, since it may quote a row or the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.destinations.base import ABSENT, Release
from anon_pipeline.destinations.rows import rows_of, same_rows
from anon_pipeline.engine.postgresql import PASSING
from anon_pipeline.engine.server_queries import address_of
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.release.ledger import MANIFEST
from anon_pipeline.spec import Destination
from anon_pipeline.spec.destination import NAME_BYTES
from anon_pipeline.visible import on_one_line

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor

#: Suffixes of the name of a dataset: for the table of releases, and for tables that are being filled.
RELEASES, INCOMING = "_releases", "_incoming"
#: How long a swap waits for readers of the former tables.
WAIT = "30s"
#: The number of the lock under which our transactions run one after another.
ALONE = 7302451698
#: What is recorded of a withdrawal.
REMAINS = "backups of the server, and its log of changes, hold the tables until they are removed there"
#: Messages of errors, by the beginning of the server's error code (PostgreSQL documentation, Appendix A).
SENTENCES = {
    "28": "the server does not take this user or password",
    "3D": "the server has no such database",
    "42704": "the server has no role of a name under readers; create it",
    "42501": "the user may not do that; it needs CREATE on the schema, and must own the tables that it replaces",
    "23503": "a table of others refers to the line of this release in its table of releases (a foreign key); remove "
    "what refers to it, or the key, and deliver again",
    "2BP01": "something of the server depends on the former tables (a view?); drop it, and make it again afterwards",
    "55P03": f"somebody reads the former tables, or puts another release, for longer than {WAIT}; deliver again later",
    "25006": "the server takes no changes (a standby, or set to read only); name the server that does",
    "22": "a value cannot be stored there (a text with a zero character?)",
    "53": "the server has too little memory, disk or connections left",
    "57": "the server has ended the connection",
}


class DatabaseSchema:
    """`database: postgresql`, with a schema and the roles that may read the tables."""

    keeps_former = False

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._schema = str(destination.schema_)

    def holds(self, release: Release) -> bool:
        with self._transaction() as cursor:
            if not self._exists(cursor, release.dataset + RELEASES):
                return False
            found = self._rows(
                cursor, f"SELECT version, manifest_sha256 FROM {self._named(release, RELEASES)} WHERE current"
            )
            tables = all(self._exists(cursor, release.dataset + ending) for ending in release.tables)
            return (
                found == [(release.version, release.manifest_hash)] and tables and self._only_readers(cursor, release)
            )

    def put(self, release: Release) -> None:
        for file in release.tables.values():
            for name in pq.read_schema(file).names:
                if len(name.encode()) > NAME_BYTES:
                    raise InputError(
                        f"{self._destination.label}: a column has a name of more than {NAME_BYTES} bytes, which the "
                        "server would cut off; rename it (source.rename)"
                    )
        with self._transaction() as cursor:
            self._prepare(cursor, release)
            for ending, file in release.tables.items():
                name = f"{release.dataset}{ending}{INCOMING}"
                cursor.execute(f"DROP TABLE IF EXISTS {self._qualified(name)}")
                cursor.adbc_ingest(name, rows_of(file), mode="create", db_schema_name=self._schema)
                self._describe(cursor, release, name, file)
            for ending in ("", "_classes"):  # the former release may have had one more table
                cursor.execute(f"DROP TABLE IF EXISTS {self._named(release, ending)}")
            for ending in release.tables:
                incoming = f"{release.dataset}{ending}{INCOMING}"
                cursor.execute(f"ALTER TABLE {self._qualified(incoming)} RENAME TO {quoted(release.dataset + ending)}")
            self._enter(cursor, release)
            for ending in (*release.tables, RELEASES):
                self._let_read(cursor, release.dataset + ending)

    def problems(self, release: Release, scratch: Path) -> list[str]:
        found = []
        with self._transaction() as cursor:
            if not self._exists(cursor, release.dataset + RELEASES):
                return [f"the table {release.dataset}{RELEASES} is gone"]
            entered = self._rows(
                cursor, f"SELECT version, manifest_sha256 FROM {self._named(release, RELEASES)} WHERE current"
            )
            if entered != [(release.version, release.manifest_hash)]:
                found.append(f"the table {release.dataset}{RELEASES} does not say that it stands")
            for ending, file in release.tables.items():
                name = release.dataset + ending
                if not self._exists(cursor, name):
                    found.append(f"the table {name} is gone")
                    continue
                cursor.execute(f"SELECT * FROM {self._qualified(name)}")
                if not same_rows(file, cursor.fetch_record_batch(), scratch):
                    found.append(f"the table {name} holds other rows")
            if not found and not self._only_readers(cursor, release):
                found.append("other roles than the readers of the spec may use the tables")
        return found

    def take_back(self, release: Release) -> str:
        with self._transaction() as cursor:
            is_known = self._exists(cursor, release.dataset + RELEASES)
            if is_known:
                mine = f"{self._named(release, RELEASES)} WHERE {_is(release)}"
                if self._rows(cursor, f"SELECT version FROM {mine} AND current"):
                    for ending in ("", "_classes"):
                        cursor.execute(f"DROP TABLE IF EXISTS {self._named(release, ending)}")
                self._remove_line(cursor, release)
                if not self._rows(cursor, f"SELECT version FROM {self._named(release, RELEASES)} LIMIT 1"):
                    # It stays, empty, where something of others depends on it, such as a foreign key or a view.
                    mine = self._named(release, RELEASES)
                    depending = f"FROM pg_depend WHERE refobjid = {literal(mine)}::regclass AND deptype = 'n'"
                    if not self._rows(cursor, f"SELECT 1 {depending} LIMIT 1"):
                        cursor.execute(f"DROP TABLE {mine}")
            left = self._left(cursor, release)
        if left:
            raise InputError(
                f"{self._destination.label}: others have renamed or moved tables, or changed those of releases, and a "
                f"table still says that it holds this release: {', '.join(left)}; drop it, and deliver again"
            )
        return REMAINS if is_known else ABSENT

    def _remove_line(self, cursor: Cursor, release: Release) -> None:
        """Remove the line of a release, and write the others into a new file of the table.

        A deleted line stays in the file until the server cleans up, which it never does for a few lines. A table that
        others refer to cannot be emptied; there a column, which is different in each line, has the server write them.
        """
        table = self._named(release, RELEASES)
        cursor.execute(f"LOCK TABLE {table}")  # nobody enters a line between these statements
        if self._rows(
            cursor, f"SELECT 1 FROM pg_constraint WHERE contype = 'f' AND confrelid = {literal(table)}::regclass"
        ):
            cursor.execute(f"DELETE FROM {table} WHERE {_is(release)}")
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # no table is written anew before they are checked
            cursor.execute(f'ALTER TABLE {table} ADD COLUMN "#" double precision DEFAULT random()')
            cursor.execute(f'ALTER TABLE {table} DROP COLUMN "#"')
            return
        kept = self._rows(cursor, f"SELECT line::text FROM {table} AS line WHERE NOT ({_is(release)})")
        cursor.execute(f"TRUNCATE {table}")
        for (line,) in kept:
            cursor.execute(f"INSERT INTO {table} SELECT ({literal(line)}::{table}).*")

    def remains(self, release: Release) -> bool:
        with self._transaction() as cursor:
            query = f"SELECT version FROM {self._named(release, RELEASES)} WHERE {_is(release)}"
            is_entered = self._exists(cursor, release.dataset + RELEASES) and bool(self._rows(cursor, query))
            return is_entered or bool(self._left(cursor, release))

    def _left(self, cursor: Cursor, release: Release) -> list[str]:
        """Tables of this user, in any schema, whose comment says that they hold a release, beside those that stand.

        A table keeps its comment where others rename or move it. The tables of a schema stand whose table of releases
        has this version as the current one: those of another home, or of another place of this home.
        """
        found = self._rows(
            cursor,
            "SELECT nspname::text, relname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
            f"WHERE relkind = 'r' AND {_is_about(release)} "
            "AND pg_has_role(relowner, 'USAGE') ORDER BY 1, 2",
        )
        names = {release.dataset, f"{release.dataset}_classes"}
        stand = {schema for schema, name in found if name in names and self._has_current(cursor, schema, release)}
        return [on_one_line(f"{schema}.{name}") for schema, name in found if schema not in stand or name not in names]

    def _has_current(self, cursor: Cursor, schema: str, release: Release) -> bool:
        """Whether the table of releases of a schema has a release of this version as the current one."""
        name = release.dataset + RELEASES
        query = f"SELECT 1 FROM {quoted(schema)}.{quoted(name)} WHERE current AND version = {literal(release.version)}"
        return self._exists(cursor, name, schema) and bool(self._rows(cursor, query))

    def _prepare(self, cursor: Cursor, release: Release) -> None:
        """Make the schema and the table of releases; other people's tables with the names of ours are never dropped."""
        if not self._rows(cursor, f"SELECT 1 FROM pg_namespace WHERE nspname = {literal(self._schema)}"):
            cursor.execute(f"CREATE SCHEMA {quoted(self._schema)}")
        if not self._exists(cursor, release.dataset + RELEASES):
            names = [release.dataset + ending for ending in ("", "_classes")]
            names += [name + INCOMING for name in names]
            if taken := [name for name in names if self._exists(cursor, name)]:
                raise InputError(
                    f"{self._destination.label}: the schema has a {taken[0]} that is no release of this dataset; name "
                    "another schema"
                )
            cursor.execute(
                f"CREATE TABLE {self._named(release, RELEASES)} (version text PRIMARY KEY, current boolean NOT NULL, "
                "content_sha256 text NOT NULL, manifest_sha256 text NOT NULL, manifest text NOT NULL, "
                "put timestamptz NOT NULL DEFAULT now())"
            )

    def _enter(self, cursor: Cursor, release: Release) -> None:
        """Enter this release as the only current one."""
        table = self._named(release, RELEASES)
        manifest = (release.folder / MANIFEST).read_text(encoding="utf-8")
        content = (release.version, release.data_hash, release.manifest_hash, manifest)
        columns = "version, content_sha256, manifest_sha256, manifest, current"
        values = f"{', '.join(map(literal, content))}, true"
        cursor.execute(f"UPDATE {table} SET current = false WHERE current")
        # A line of this version stays, also another home's, since others may refer to it.
        of_version = f"version = {literal(release.version)}"
        cursor.execute(f"UPDATE {table} SET ({columns}, put) = ({values}, now()) WHERE {of_version}")
        is_there = f"EXISTS (SELECT 1 FROM {table} WHERE {of_version})"
        cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {values} WHERE NOT {is_there}")
        cursor.execute(f"COMMENT ON TABLE {table} IS 'The releases that were put here, with their manifests'")

    def _describe(self, cursor: Cursor, release: Release, name: str, file: Path) -> None:
        cursor.execute(f"COMMENT ON TABLE {self._qualified(name)} IS {literal(_about(release))}")
        for field in pq.read_schema(file):
            if text := release.column(field.name, str(field.type)).description.replace(chr(0), ""):
                column = f"{self._qualified(name)}.{quoted(field.name)}"
                cursor.execute(f"COMMENT ON COLUMN {column} IS {literal(text)}")

    def _let_read(self, cursor: Cursor, name: str) -> None:
        """Grant SELECT to the readers, and revoke everything else, whatever the server grants by default."""
        table = self._qualified(name)
        for role in self._others(cursor, name):
            cursor.execute(f"REVOKE ALL ON {table} FROM {quoted(role) if role else 'PUBLIC'}")
        owned = self._rows(
            cursor,
            f"SELECT 1 FROM pg_namespace WHERE nspname = {literal(self._schema)} AND pg_has_role(nspowner, 'USAGE')",
        )
        for reader in self._destination.readers:
            if owned:
                cursor.execute(f"GRANT USAGE ON SCHEMA {quoted(self._schema)} TO {quoted(reader)}")
            cursor.execute(f"GRANT SELECT ON {table} TO {quoted(reader)}")

    def _others(self, cursor: Cursor, name: str, but: str = "") -> list[str]:
        """Roles besides the owner that have any privilege on a table; an empty name means everybody (PUBLIC)."""
        return [
            role or ""
            for (role,) in self._rows(
                cursor,
                "SELECT DISTINCT rolname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace, "
                "aclexplode(relacl) AS granted LEFT JOIN pg_roles ON pg_roles.oid = granted.grantee "
                f"WHERE nspname = {literal(self._schema)} AND relname = {literal(name)} "
                f"AND granted.grantee <> relowner{but}",
            )
        ]

    def _only_readers(self, cursor: Cursor, release: Release) -> bool:
        readers = set(self._destination.readers)
        names = [release.dataset + ending for ending in (*release.tables, RELEASES)]
        beyond = " AND granted.privilege_type <> 'SELECT'"
        return all(
            set(self._others(cursor, name)) == readers and not self._others(cursor, name, beyond) for name in names
        )

    def _exists(self, cursor: Cursor, name: str, schema: str | None = None) -> bool:
        return bool(
            self._rows(
                cursor,
                "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
                f"WHERE nspname = {literal(schema or self._schema)} AND relname = {literal(name)}",
            )
        )

    def _rows(self, cursor: Cursor, query: str) -> list[tuple[Any, ...]]:
        cursor.execute(query)
        return list(cursor.fetchall())

    def _named(self, release: Release, ending: str) -> str:
        return self._qualified(release.dataset + ending)

    def _qualified(self, name: str) -> str:
        return f"{quoted(self._schema)}.{quoted(name)}"

    @contextmanager
    def _transaction(self) -> Iterator[Cursor]:
        """A transaction: the server does all of the block, or nothing. Our transactions run one after another."""
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi

        label, reached = self._destination.label, False
        address = address_of(self._destination.connection, Path(), "publish.connection")
        try:
            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                reached = True
                for setting in ("standard_conforming_strings = on", f"lock_timeout = '{WAIT}'"):
                    cursor.execute(f"SET LOCAL {setting}")
                self._rows(cursor, f"SELECT pg_advisory_xact_lock({ALONE})")  # read, or the next statement fails for it
                yield cursor
                _commit(connection)
        except (Error, pa.ArrowException) as error:
            state = getattr(error, "sqlstate", None)
            lasting = reached and state is not None and not state.startswith(PASSING)
            raise (InputError if lasting else Unavailable)(f"{label}: {_sentence(reached, state)}") from None
        except OSError as error:  # from the stream of rows; an error of a file has a number
            if error.errno is not None:
                raise
            raise Unavailable(f"{label}: {_sentence(reached, None)}") from None


def _about(release: Release) -> str:
    """The comment on the tables of a release."""
    about = f"{release.manifest.get('description') or release.dataset} (release {release.version})"
    return about.replace(chr(0), "")


def _is_about(release: Release) -> str:
    """The condition for a table whose comment names a release; by its end alone where the manifest was altered."""
    comment = "obj_description(pg_class.oid, 'pg_class')"
    if release.has_manifest:
        return f"{comment} = {literal(_about(release))}"
    end = f" (release {release.version})"
    return f"right({comment}, {len(end)}) = {literal(end)}"


def _is(release: Release) -> str:
    """The condition for the line of a release: another home's of the same version has another manifest."""
    return f"version = {literal(release.version)} AND manifest_sha256 = {literal(release.manifest_hash)}"


def _commit(connection: Connection) -> None:
    connection.commit()


def _sentence(reached: bool, state: str | None) -> str:
    if not reached:
        return "the server cannot be reached, or does not take this user; check publish.connection"
    if state is None:
        return "the connection broke, or the server went down; deliver again"
    known = [text for code, text in SENTENCES.items() if state.startswith(code)]
    return known[0] if known else f"the server does not take the tables (SQLSTATE {state})"
