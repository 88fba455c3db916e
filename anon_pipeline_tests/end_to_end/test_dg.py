"""Dagster's own tools work on the checkout as they are: `dg check defs`, and `dg dev` from start to page."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from anon_pipeline.home import DATA_VARIABLE, VARIABLE
from anon_pipeline_tests.end_to_end.harness import write_dataset
from anon_pipeline_tests.skips import require_package

ROOT = Path(__file__).parents[2]
DG = Path(sys.executable).with_name("dg")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A data folder with one dataset, a home and a folder for Dagster's own records; no trace in the checkout."""
    require_package("dagster_dg_cli")
    write_dataset(tmp_path / "data" / "people")
    (tmp_path / "dagster").mkdir()
    return os.environ | {
        VARIABLE: str(tmp_path / "home"),
        DATA_VARIABLE: str(tmp_path / "data"),
        "DAGSTER_HOME": str(tmp_path / "dagster"),
        "DAGSTER_GRPC_TIMEOUT_SECONDS": "3600",
        "PATH": f"{DG.parent}:{os.environ['PATH']}",
        "VIRTUAL_ENV": sys.prefix,
    }


def test_dg_check_defs_and_dg_list_defs(environment: dict[str, str]) -> None:
    for command, told in ((["check", "defs"], "loaded successfully"), (["list", "defs"], "people_release")):
        ended = subprocess.run([DG, *command], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert told in ended.stdout + ended.stderr


def test_dg_dev_serves_the_datasets(environment: dict[str, str], tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    question = '{"query": "{ repositoriesOrError { ... on RepositoryConnection { nodes { jobs { name } } } } }"}'
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql", question.encode(), {"content-type": "application/json"}
    )
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [DG, "dev", "--port", str(port), "--host", "127.0.0.1"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            answer = ""
            while "people_release" not in answer:
                assert process.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.5)
                try:
                    with urllib.request.urlopen(request) as answered:
                        answer = answered.read().decode()
                except (urllib.error.URLError, OSError):
                    continue
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
