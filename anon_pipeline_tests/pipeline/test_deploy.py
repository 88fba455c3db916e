"""The files of deploy/: who sees the home, who can be reached, and that nothing secret is in them or in the image."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any

import yaml

from anon_pipeline.pipeline.instance import settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SERVICES: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
HELM: dict[str, Any] = yaml.safe_load((DEPLOY / "helm-values.yaml").read_text())
LINES = (DEPLOY / "Dockerfile").read_text().splitlines()


def test_the_code_location_alone_sees_the_home() -> None:
    seen = [
        name for name, service in SERVICES.items() if any("home:" in str(one) for one in service.get("volumes", []))
    ]
    assert seen == ["code"]
    (deployment,) = HELM["dagster-user-deployments"]["deployments"]
    assert [mount["name"] for mount in deployment["volumeMounts"]] == ["home", "data"]
    assert not any("volumeMounts" in HELM[name] for name in ("dagsterDaemon", "dagsterWebserver"))


def test_the_proxy_alone_can_be_reached_and_the_web_server_only_through_it() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert SERVICES["webserver"]["network_mode"] == "service:proxy"
    networks = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["networks"]
    assert {name for name, network in networks.items() if not network.get("internal")} == {"default"}
    assert [name for name, service in SERVICES.items() if "default" in service.get("networks", [])] == ["proxy"]


def test_every_secret_is_made_by_the_script_and_no_address_is_in_a_file() -> None:
    declared = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["secrets"]
    used = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert used == set(declared)
    script = (DEPLOY / "secrets.sh").read_text()
    for name in declared:
        assert f"/{name}" in script or f"/${{name}}_{name.partition('_')[2]}" in script, name
    for file in set(DEPLOY.iterdir()) - {DEPLOY / "secrets.sh", DEPLOY / "secrets"}:
        assert not re.search(r"postgresql(\+\w+)?://\w+:[^@P]", file.read_text()), file
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_processes_run_as_nobody_special() -> None:
    for name in ("code", "daemon", "webserver"):
        assert SERVICES[name]["read_only"] is True
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert "privileged" not in SERVICES[name]
    assert "USER 10001:10001" in LINES


def test_the_image_takes_in_the_program_and_no_people() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*", "what is not named stays out"
    copied = [word for line in LINES if re.match("COPY (?!--from)", line) for word in line.split()[1:-1]]
    assert sorted(copied) == sorted(allowed)
    assert not any(fnmatch.fnmatch(path, pattern) for path in allowed for pattern in ("data*", "var*", "*secret*", "."))
    assert all(":" in line.partition("=")[2] for line in LINES if line.startswith("ARG PYTHON="))


def test_the_chart_queues_and_watches_runs_as_the_product_does() -> None:
    ours = settings("folder")
    queue = HELM["dagsterDaemon"]["runCoordinator"]["config"]["queuedRunCoordinator"]
    assert queue["maxConcurrentRuns"] == ours["concurrency"]["runs"]["max_concurrent_runs"]
    assert queue["tagConcurrencyLimits"] == ours["concurrency"]["runs"]["tag_concurrency_limits"]
    watched = HELM["dagsterDaemon"]["runMonitoring"]
    assert {
        re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name): value for name, value in watched.items()
    } == (ours["run_monitoring"])


def test_the_image_installs_what_the_tests_ran_with() -> None:
    server, runtime = (_pins((ROOT / f"requirements/{name}.txt").read_text()) for name in ("server", "runtime"))
    assert {"dagster-postgres", "psycopg2-binary", "adbc-driver-postgresql"} <= server.keys()
    assert runtime.keys() <= server.keys()
    assert {name: server[name] for name in runtime} == runtime


def _pins(requirements: str) -> dict[str, set[str]]:
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", requirements, re.MULTILINE):
        pins.setdefault(name, set()).add(version)
    return pins
