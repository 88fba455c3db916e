"""A MariaDB server of our own, on a socket in a folder of its own, with an owner and a reader who has a password."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anon_pipeline_tests.skips import PROGRAMS, require_mariadb

PASSWORD = "geheim/4711@x"
ADDRESS_PASSWORD = "geheim%2F4711%40x"


class Server:
    """A server of our own, on a socket in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._user = folder, "mysql" if os.geteuid() == 0 else ""
        self._environment = os.environ | {"TMPDIR": str(folder)}  # ours may be closed to another user
        if self._user:
            shutil.chown(folder, self._user)
        install = [*self._program("mariadb-install-db"), "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True, env=self._environment)
        self.start()

    def _program(self, name: str) -> list[str]:
        found = str(shutil.which(name, path=PROGRAMS))
        as_user = [f"--user={self._user}"] if self._user else []
        return [found, "--no-defaults", f"--datadir={self.folder}/data", *as_user]

    def start(self, certificate_in: Path | None = None) -> None:
        small = ["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=2", "--key-buffer-size=1M"]
        if certificate_in is not None:
            files = {name: shutil.copy(certificate_in / f"{name}.pem", self.folder) for name in ("certificate", "key")}
            if self._user:
                for file in files.values():
                    shutil.chown(file, self._user)
            small += [f"--ssl-cert={files['certificate']}", f"--ssl-key={files['key']}"]
        self._process = subprocess.Popen(
            [*self._program("mariadbd"), "--skip-networking", f"--socket={self.folder}/socket", *small],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "log").open("ab"),
            env=self._environment,
        )
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        import pymysql

        try:
            self.connect().close()
        except pymysql.Error:
            return False
        return True

    def stop(self) -> None:
        """At once, as a crash does."""
        self._process.kill()
        self._process.wait()

    def connect(self, user: str = "root", password: str = "") -> Any:
        import pymysql

        return pymysql.connect(user=user, password=password, unix_socket=f"{self.folder}/socket", autocommit=True)

    def kill_readers(self) -> list[str]:
        """The statements that end the connections of the reader."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE user = 'reader'")
            return [f"KILL {number}" for (number,) in cursor.fetchall()]

    def rows_sent(self) -> int:
        """By all connections that have ended; it waits for those of the reader to end."""
        while self.kill_readers():
            time.sleep(0.02)
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Rows_sent'")
            return int(cursor.fetchone()[1])

    def execute(self, *statements: str) -> None:
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        finally:
            connection.close()

    def address(self, user: str = "reader", password: str = ADDRESS_PASSWORD, database: str = "clinic") -> str:
        return f"mysql://{user}:{password}@localhost/{database}?unix_socket={self.folder}/socket"


def certificate(folder: Path) -> Path:
    """A new folder with a certificate of `localhost` that nobody but itself has signed, and its key."""
    folder.mkdir()
    told = ["-keyout", folder / "key.pem", "-out", folder / "certificate.pem", "-days", "2"]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*make, *told, *named], check=True, capture_output=True)
    return folder


@contextmanager
def running_server() -> Iterator[Server]:
    """A server that runs while the block lasts; without MariaDB the test is skipped."""
    require_mariadb()
    with tempfile.TemporaryDirectory(prefix="maria-", dir="/tmp", ignore_cleanup_errors=True) as folder:  # short
        os.chmod(folder, 0o755)  # the server runs as another user
        server = Server(Path(folder))
        try:
            server.execute(
                "CREATE DATABASE clinic CHARACTER SET utf8mb4",
                f"CREATE USER reader@localhost IDENTIFIED BY '{PASSWORD}'",
                f"CREATE USER owner@localhost IDENTIFIED BY '{PASSWORD}'",
                "GRANT ALL ON *.* TO owner@localhost",
            )
            yield server
        finally:
            server.stop()
