"""A PostgreSQL server of our own, on a socket in a folder of its own, with an owner and a reader who has a password."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anon_pipeline_tests.skips import require_postgresql
from anon_pipeline_tests.watchdog import generous

PASSWORD = "geheim-4711"

#: How lines of `pg_dump` begin that forbid psql its commands until the word of the first stands again.
GUARDS = ("\\restrict ", "\\unrestrict ")


class Server:
    """A server of our own, on a socket in a folder of its own."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self.folder = programs, folder
        self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self._as:
            subprocess.run(["chown", "postgres", folder], check=True)
        self._run(
            "initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "owner", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        (folder / "data/pg_hba.conf").write_text("local all owner trust\nlocal all all scram-sha-256\n")
        self.start()

    def _run(self, program: str, *arguments: str, reads: str | None = None) -> str:
        command: list[str | Path] = [*self._as, self._programs / program, *arguments]
        done = subprocess.run(command, cwd="/", input=reads, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        options = f"-c listen_addresses='' -c fsync=off -k {self.folder}"
        self._run(
            "pg_ctl",
            "-D",
            f"{self.folder}/data",
            "-o",
            options,
            "-l",
            f"{self.folder}/log",
            "-w",
            "-t",
            str(round(generous())),
            "start",
        )

    def stop(self) -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "-w", "-t", str(round(generous())), "stop")

    def address(self, user: str = "reader", password: str = PASSWORD, database: str = "postgres") -> str:
        return f"postgresql://{user}:{password}@/{database}?host={self.folder}"

    def execute(self, script: str) -> None:
        """Run statements, which are not among the arguments of the process: everybody can read those, passwords too."""
        options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-U", "owner"]
        self._run("psql", *options, "-f", "-", "postgres", reads=script)

    def ask(self, query: str, database: str) -> str:
        """What a query gives, a line for each row."""
        return self._run("psql", "-X", "-q", "-A", "-t", "-h", str(self.folder), "-U", "owner", "-c", query, database)

    def dump(self, database: str) -> str:
        """All that a database holds, as text.

        The lines with which `pg_dump` guards its output are left out: they are random, and may hold any short text.
        """
        dumped = self._run("pg_dump", "-h", str(self.folder), "-U", "owner", database)
        return "".join(line for line in dumped.splitlines(keepends=True) if not line.startswith(GUARDS))


@contextmanager
def running_server() -> Iterator[Server]:
    """A server that runs while the block lasts; without PostgreSQL the test is skipped."""
    programs = require_postgresql()
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:  # short, and open
        os.chmod(folder, 0o755)  # the server runs as another user
        server = Server(programs, Path(folder))
        server.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
        yield server
        with suppress(AssertionError):
            server.stop()
