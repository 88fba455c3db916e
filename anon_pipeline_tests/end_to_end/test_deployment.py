"""The processes of deploy/compose.yaml, started as it says, on this machine in the place of containers.

A PostgreSQL server with deploy/databases.sql, the three processes, and Caddy with deploy/Caddyfile before them. Nobody
enters without a login, a run that the web server is asked for is made by the code location, and only that has the home.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from anon_pipeline.home import DATA_VARIABLE, VARIABLE, Home
from anon_pipeline.release import ledger
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.served_ui import free_port
from anon_pipeline_tests.end_to_end.test_ui import LAUNCH
from anon_pipeline_tests.postgresql import Server, running_server
from anon_pipeline_tests.skips import require_package, require_program

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SECRETS = "/run/secrets"
LOGIN = ("steward", "let me in")
#: Of the password, as `caddy hash-password` makes it; of the least cost, since Caddy counts it anew for each request.
HASHED = "$2b$04$TZAc5ag1vu36vWxkjTdTGeuxQufA82bWbW.jPnfKQY.DxevkUSjkq"
STATES = "{ runsOrError { ... on Runs { results { status } } } }"


@dataclass
class Deployment:
    """The services of the compose file as processes, each with a home of its own, all but one of them empty."""

    folder: Path
    server: Server
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in ("code", "web", "proxy")})

    @property
    def secrets(self) -> Path:
        return self.folder / "deploy/secrets"

    def home(self, service: str) -> Home:
        return Home(self.folder / service)

    def said(self, service: str) -> str:
        return (self.folder / f"{service}.log").read_text()

    def prepare(self) -> None:
        shutil.copytree(DEPLOY, self.folder / "deploy", ignore=shutil.ignore_patterns("secrets"))
        shim = self.folder / "bin"
        shim.mkdir()
        (shim / "chown").symlink_to("/bin/true")  # here all processes are one user's
        path = f"{shim}:{os.environ['PATH']}"
        subprocess.run(["sh", self.folder / "deploy/secrets.sh"], env=os.environ | {"PATH": path}, check=True)
        for name in ("dagster", "mlflow"):
            file = self.secrets / f"{name}_database"
            file.write_text(file.read_text().strip().replace("@database/", "@/") + f"?host={self.server.folder}\n")
        (self.secrets / "proxy_users").write_text(f"{LOGIN[0]} {HASHED}\n")
        databases = (DEPLOY / "databases.sql").read_text().replace(SECRETS, str(self.secrets))
        (self.folder / "databases.sql").write_text(databases)
        asked = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.server.folder, "-U", "owner"]
        subprocess.run([*asked, "-f", self.folder / "databases.sql", "postgres"], check=True)
        workspace = (DEPLOY / "workspace.yaml").read_text().replace("host: code", "host: localhost")
        (self.folder / "workspace.yaml").write_text(workspace.replace("4000", str(self.ports["code"])))

    @contextmanager
    def process(self, service: str) -> Iterator[None]:
        told = COMPOSE["services"][service]
        command = [self._here(str(word)) for word in told["command"]]
        command = [str(self.ports["code"]) if word == "4000" else word for word in command]
        command += ["-p", str(self.ports["web"])] if service == "webserver" else []
        given = {name: self._here(str(value)) for name, value in told["environment"].items()}
        own = {VARIABLE: str(self.home(service).root), DATA_VARIABLE: str(self.folder / "data")}
        own |= {"DAGSTER_GRPC_TIMEOUT_SECONDS": "3600", "ANON_PIPELINE_ALLOW_HOSTS": f"localhost:{self.ports['proxy']}"}
        with (self.folder / f"{service}.log").open("w") as log:
            process = harness.forked(_serve, command, self._environment(given | own), self.folder, log.name)
        try:
            yield
            assert process.is_alive(), self.said(service)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()

    @contextmanager
    def proxy(self) -> Iterator[None]:
        content = self._here((DEPLOY / "Caddyfile").read_text()).replace(":3000", f":{self.ports['web']}")
        version = re.match(r"v?2\.(\d+)", subprocess.run(["caddy", "version"], capture_output=True, text=True).stdout)
        if version and int(version[1]) < 8:  # what it called it then
            content = content.replace("basic_auth", "basicauth")
        file = self.folder / "Caddyfile"
        file.write_text("{\n\tadmin off\n}\n" + content)
        address = f"http://localhost:{self.ports['proxy']}"
        command, environment = ["caddy", "run", "--config", str(file)], self._environment({"SERVER_NAME": address})
        with (self.folder / "proxy.log").open("w") as log:
            process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log)
        try:
            yield
            assert process.poll() is None, self.said("proxy")
        finally:
            process.kill()
            process.wait()

    def _environment(self, given: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"} | given

    def _here(self, text: str) -> str:
        return text.replace(SECRETS, str(self.secrets)).replace("/etc/anon-pipeline", str(self.folder))

    def answer(self, query: str | None = None, login: tuple[str, str] | None = LOGIN) -> tuple[int, Any]:
        """What the proxy answers to a question, or at its first page; status 0 where nobody does."""
        connection = http.client.HTTPConnection("localhost", self.ports["proxy"])
        headers = {"Content-Type": "application/json"} if query else {}
        if login:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
        try:
            connection.request(
                *(("POST", "/graphql", json.dumps({"query": query})) if query else ("GET", "/")), headers=headers
            )
            answered = connection.getresponse()
            text = answered.read().decode()
        except OSError:
            return 0, ""
        return answered.status, json.loads(text) if query and answered.status == 200 else text


def _serve(command: list[str], environment: dict[str, str], folder: Path, log: str) -> None:
    """`python -m MODULE ...` of the compose file, in a process in which our libraries are imported already.

    Where it replaces itself by another such command, it goes on as that one.
    """
    os.setsid()
    for number in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), number)
    os.environ.clear()
    os.environ |= environment
    os.chdir(folder)
    os.execv = _go_on_as  # type: ignore[assignment]
    _go_on_as(sys.executable, command)


def _go_on_as(_program: str, command: list[str]) -> None:
    python, option, name, *arguments = command
    assert (Path(python).name[:6], option) == ("python", "-m")
    sys.argv[1:] = arguments
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    sys.exit()


@pytest.fixture
def deployment(folder: Path) -> Iterator[Deployment]:
    require_package("dagster_postgres")
    require_program("caddy")
    harness.write_dataset(folder / "data/people", spec=harness.brief_policy())
    with running_server() as server, ExitStack() as processes:
        deployed = Deployment(folder, server)
        deployed.prepare()
        for service in ("code", "daemon", "webserver"):
            processes.enter_context(deployed.process(service))
        processes.enter_context(deployed.proxy())
        yield deployed


def test_a_run_asked_for_behind_the_login_is_made_where_the_home_is(deployment: Deployment) -> None:
    while deployment.answer("{ version }")[0] != 200:
        time.sleep(0.5)
    assert deployment.answer("{ version }", login=None)[0] == 401
    assert deployment.answer(login=("steward", "another"))[0] == 401
    while "LaunchRunSuccess" not in json.dumps(deployment.answer(LAUNCH)):  # until the code location has loaded
        time.sleep(1)
    passwords = [(deployment.secrets / name).read_text().strip() for name in ("database_password", "database_owner")]
    listed = []
    while (states := _states(deployment)) not in (["SUCCESS"], ["FAILURE"]):
        listed.append(harness.command_lines())
        time.sleep(1)
    assert any("anon_pipeline.definitions" in lines for lines in listed)
    said = "".join(deployment.said(service) for service in ("code", "daemon", "webserver", "proxy"))
    assert states == ["SUCCESS"], said
    assert [entry.dataset for entry in ledger.read(deployment.home("code"))] == ["people"]
    assert ledger.verify(deployment.home("code")) == []
    for service in ("daemon", "webserver"):
        left = [file for file in deployment.home(service).root.rglob("*") if file.is_file()]
        assert {file.name for file in left} <= {"dagster.yaml", "postgresql", "dagster.lock"}, "it has seen nobody"
    homes = [deployment.home(service).root for service in ("code", "daemon", "webserver")]
    written = [file.read_bytes() for home in homes for file in home.rglob("*") if file.is_file()]
    for password in passwords:
        assert not [lines for lines in listed if password in lines]
        assert password not in said
        assert not [content for content in written if password.encode() in content]


def _states(deployment: Deployment) -> list[str]:
    results = deployment.answer(STATES)[1]["data"]["runsOrError"]["results"]
    return [run["status"] for run in results]
