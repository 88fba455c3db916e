"""`anon-pipeline ui`, or `experiments`, as a process of its own, for as long as a test looks at it."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from anon_pipeline.home import DATA_VARIABLE, VARIABLE
from anon_pipeline_tests.end_to_end.harness import Command, Place

SCRIPT = Path(sys.executable).with_name("anon-pipeline")


#: What each server answers as soon as it is there.
FIRST = {"ui": "server_info", "experiments": "version"}


@contextmanager
def served(place: Place, log: Path, *arguments: str, command: str = "ui") -> Iterator[str]:
    """The address of `anon-pipeline ui`, or another command, for a place; nothing of it is alive afterwards."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    environment = os.environ | {VARIABLE: str(place.home.root), DATA_VARIABLE: str(place.dataset.parent)}
    environment.pop("DAGSTER_HOME", None)
    environment["DAGSTER_GRPC_TIMEOUT_SECONDS"] = "3600"  # else a busy machine shows no page
    with log.open("w") as output:
        process = subprocess.Popen(
            [SCRIPT, command, "--port", str(port), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_for(f"{address}/{FIRST[command]}", lambda: process.poll() is None, log.read_text)
            yield address
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def experiments(place: Place) -> Iterator[str]:
    """The address of `anon-pipeline experiments`, a single process, which is a fork here as other commands are."""
    port = free_port()
    server = Command("experiments", "--port", port, home=place.home.root)
    try:
        _wait_for(f"http://127.0.0.1:{port}/{FIRST['experiments']}", server.is_running, server.says)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()
        server.ended()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(url: str, is_running: Callable[[], bool], said: Callable[[], str]) -> None:
    while True:
        assert is_running(), said()
        try:
            with urllib.request.urlopen(url):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
