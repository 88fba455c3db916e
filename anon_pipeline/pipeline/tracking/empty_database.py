"""The MLflow database of a home: MLflow makes an empty one once per user and version, and then it is copied.

MLflow makes one by applying all migrations to its first schema, which would take a second for every new home.
"""

import atexit
import os
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from anon_pipeline.home import is_own_folder, write_file

#: How the names of the files end that SQLite keeps beside a database (https://www.sqlite.org/tempfiles.html).
LOGS = ("-wal", "-shm", "-journal")


def lay_empty_database(database: Path) -> None:
    """Copy an empty database to a place without one; if no copy can be kept, do nothing, so that MLflow makes its own.

    MLflow checks the version of the schema whenever it opens a database, so a copy with another version is noticed.
    """
    if database.exists():
        return
    try:
        copy = _kept()
        if copy is None:
            return
        if not _is_whole(copy):
            write_file(copy, _made(database.parent))
        for ending in LOGS:  # those of a database that was removed after a kill would be taken for this one's
            database.with_name(f"{database.name}{ending}").unlink(missing_ok=True)
        write_file(database, copy.read_bytes())
    except (OSError, sqlite3.Error):
        return


def write_ahead(database: Path) -> None:
    """Give a database a write-ahead log, so that a transaction waits for the disk once in place of five times.

    The file says so from then on (https://www.sqlite.org/wal.html). While another process uses it, it stays as it is.
    MLflow closes no connection at the end, so the log is copied into the file when this process ends.

    Raises
    ------
    sqlite3.OperationalError
        If the database cannot be opened.
    """
    if not database.exists():
        return
    try:
        _execute(database, "PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CANTOPEN:
            raise  # MLflow would try again for two minutes
    atexit.register(_empty_log, database)


def _empty_log(database: Path) -> None:
    with suppress(sqlite3.OperationalError):
        _execute(database, "PRAGMA wal_checkpoint(TRUNCATE)")


def _execute(database: Path, statement: str) -> None:
    address = f"{database.as_uri()}?mode=rw"  # it is not made if it is absent
    with closing(sqlite3.connect(address, uri=True, timeout=0)) as opened:
        opened.execute(statement)


def _kept() -> Path | None:
    """The file of the copy for this version of MLflow and of SQLite; None if others could write there."""
    from mlflow.version import VERSION

    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return None
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = cache / "anon-pipeline"
    return folder / f"mlflow-{VERSION}-sqlite-{sqlite3.sqlite_version}.db" if is_own_folder(folder) else None


def _is_whole(copy: Path) -> bool:
    if not copy.is_file():
        return False
    try:
        with closing(sqlite3.connect(copy)) as connection:
            sound = connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
            return sound and connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)
    except sqlite3.DatabaseError:
        return False


def _made(folder: Path) -> bytes:
    """The bytes of a database that MLflow makes in a folder; the folder is left unchanged."""
    from anon_pipeline.pipeline.tracking.mlflow_client import SqlAlchemyStore

    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        database = Path(scratch) / "mlflow.db"
        SqlAlchemyStore(f"sqlite:///{database}", scratch).engine.dispose()
        with closing(sqlite3.connect(database)) as connection, connection:
            # The default experiment has the path of this folder; each home gets its own when it is first opened.
            connection.execute("DELETE FROM experiments")
        return database.read_bytes()
