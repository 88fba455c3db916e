"""Dagster's own tools work on the checkout as they are: `dg check defs`, and `dg dev` from start to page."""

import os
import runpy
import sys
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from anon_pipeline.home import DATA_VARIABLE, VARIABLE
from anon_pipeline_tests.end_to_end.harness import Command, command, write_dataset
from anon_pipeline_tests.end_to_end.served_ui import free_port
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
    for words, told in ((["check", "defs"], "loaded successfully"), (["list", "defs"], "people_release")):
        ended = command(home=Path(environment[VARIABLE]), sabotage=partial(_dg, words, environment))
        assert ended.exit_code == 0, ended.said
        assert told in ended.said


def _dg(words: list[str], environment: dict[str, str]) -> None:
    """The installed script, in a process in which our own libraries are imported already."""
    os.environ |= environment
    os.chdir(ROOT)
    sys.argv = [str(DG), *words]
    runpy.run_path(str(DG), run_name="__main__")


def test_dg_dev_serves_the_datasets(environment: dict[str, str]) -> None:
    port = free_port()
    question = '{"query": "{ repositoriesOrError { ... on RepositoryConnection { nodes { jobs { name } } } } }"}'
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql", question.encode(), {"content-type": "application/json"}
    )
    words = ["dev", "--port", str(port), "--host", "127.0.0.1"]
    served = Command(home=Path(environment[VARIABLE]), sabotage=partial(_dg, words, environment))
    try:
        answer = ""
        while "people_release" not in answer:
            assert served.is_running(), served.says()
            time.sleep(0.5)
            try:
                with urllib.request.urlopen(request) as answered:
                    answer = answered.read().decode()
            except (urllib.error.URLError, OSError):
                continue
    finally:
        served.kill()
