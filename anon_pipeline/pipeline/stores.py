"""The stores of the records of Dagster and of MLflow: files of the home, or two databases of a PostgreSQL server.

The address of a database holds a password. It is read from the environment, or from a file that the environment names.
It is written nowhere: `dagster.yaml` names only the variable, and no process gets it as an argument.
"""

import importlib.util
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.pool import NullPool

from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import Home, write_file

#: Dagster's web server needs the older driver; SQLAlchemy 2.1 takes the newer one if none is named.
DRIVER = "postgresql+psycopg2"
#: Seconds after which a silent server counts as absent (libpq's `connect_timeout`).
CONNECT_SECONDS = 10
LOST = "the database server of Dagster's or MLflow's records failed or went away; start it, and run again"
#: Name of a marker file, which says that this home keeps its records on a server and not in files.
MARK = "postgresql"


@dataclass(frozen=True)
class Store:
    """The store of a tool's records: the tool, and the variable that holds the address of the database."""

    tool: str
    variable: str

    @property
    def file_variable(self) -> str:
        """The variable that names a file with the address, which is how containers get secrets."""
        return f"{self.variable}_FILE"

    def address(self, home: Home) -> str | None:
        """The address of the database for SQLAlchemy; None if the records are files of the home.

        Raises
        ------
        InputError
            If it is no address of a PostgreSQL database, if it is that of the other tool, or if it is missing although
            this home has kept its records on a server before.
        """
        url = self._url()
        mark = home.private_folder(self.tool.lower()) / MARK
        if url is None:
            if mark.exists():
                raise InputError(
                    f"{self.variable}: is not set, but this home keeps the records of {self.tool} on a server; "
                    f"set it or {self.file_variable}, or remove {mark} to begin anew with a file"
                )
            return None
        if any(_same_database(url, other._url()) for other in STORES if other is not self):
            raise InputError(f"{self.variable}: is the database of another tool, too; give each a database of its own")
        if not mark.exists():
            write_file(mark, f"The records of {self.tool} lie in the database of {self.variable}.\n")
        return url.render_as_string(hide_password=False)

    def check_answers(self, address: str) -> None:
        """Ask the database for a connection, since MLflow would retry for a minute and more.

        Raises
        ------
        Unavailable
            If it gives none.
        """
        engine = create_engine(address, poolclass=NullPool, connect_args={"connect_timeout": CONNECT_SECONDS})
        try:
            engine.connect().close()
        except (OperationalError, InterfaceError):
            raise Unavailable(
                f"{self.variable}: the database of {self.tool}'s records cannot be reached, or does not take this user"
            ) from None

    def _url(self) -> URL | None:
        text = os.environ.get(self.variable) or self._from_file()
        if not text:
            return None
        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            url = None
        if url is None or url.get_backend_name() != "postgresql" or not url.database:
            raise InputError(
                f"{self.variable}: is no address of a PostgreSQL database; write postgresql://USER:PASSWORD@HOST/NAME"
            )
        if not all(importlib.util.find_spec(package) for package in ("dagster_postgres", "psycopg2")):
            raise InputError(f"{self.variable}: is set; install `anon-pipeline[server]` for it")
        return url.set(drivername=DRIVER)

    def _from_file(self) -> str | None:
        file = os.environ.get(self.file_variable)
        if not file:
            return None
        try:
            with Path(file).open(encoding="utf-8") as content:
                if stat.S_IMODE(os.fstat(content.fileno()).st_mode) & 0o077:
                    raise InputError(f"{self.file_variable}: {file} can be read by others; run `chmod 600` on it")
                return content.read().strip()
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{self.file_variable}: {file} cannot be read") from None


DAGSTER = Store("Dagster", "ANON_PIPELINE_DAGSTER_DATABASE")
MLFLOW = Store("MLflow", "ANON_PIPELINE_MLFLOW_DATABASE")
STORES = (DAGSTER, MLFLOW)


def server_is_lost(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, means that a database server failed or went away."""
    while error is not None:
        if (isinstance(error, DBAPIError) and error.connection_invalidated) or _of_server(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _of_server(error: BaseException) -> bool:
    return isinstance(error, OperationalError | InterfaceError) and type(error.orig).__module__.startswith("psycopg2")


def _same_database(url: URL, other: URL | None) -> bool:
    def place(of: URL) -> tuple[object, ...]:
        return of.host or of.query.get("host"), of.port or of.query.get("port") or 5432, of.database

    return other is not None and place(url) == place(other)
