"""What is imported, and when: small commands need no large library, and no library loads what nobody here uses."""

from __future__ import annotations

import gc
import runpy
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from anon_pipeline import imports
from anon_pipeline.imports import large_imports
from anon_pipeline_tests.end_to_end.harness import policy, write_dataset

ROOT = Path(__file__).parents[1]
LARGE = ("dagster", "great_expectations", "mlflow", "sklearn", "scipy.stats", "pyspark")

#: Commands of one interpreter, and then what a run imports besides.
COMMANDS = """
import os, sys
from pathlib import Path
import anon_pipeline.cli

def command(*arguments):
    sys.argv = ["anon-pipeline", *arguments]
    try:
        anon_pipeline.cli.command()
    except SystemExit as end:
        assert end.code == 0, arguments
    large = [name for name in LARGE if name in sys.modules]
    assert not large, (arguments[0], large)

command("--version")
command("--help")
command("releases", "list")
command("steps")
command("init", "ours", "--from", "people.csv")
command("verify", "release.csv", "--quasi-identifiers", "city,sex", "--k", "10")
command("verify", "release.csv", "--spec", "dataset")

import anon_pipeline.pipeline.expectations.great_expectations, anon_pipeline.pipeline.tracking.mlflow_client
assert "pyspark" not in sys.modules
assert not [name for name in sys.modules if name.startswith(("altair.", "numpy.f2py."))]
import pyspark  # it is there all along
import altair
assert altair.__version__
"""


@pytest.mark.long
def test_small_commands_import_no_large_library_and_no_library_what_nobody_uses(tmp_path: Path) -> None:
    people = pd.DataFrame({"city": ["Cork", "Bergen"] * 20, "sex": ["f"] * 40, "ill": ["yes", "yes", "no", "no"] * 10})
    spec = policy()
    spec["columns"] = {name: spec["columns"][name] for name in people}
    write_dataset(tmp_path / "dataset", people, spec)
    people.to_csv(tmp_path / "release.csv", index=False)
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "home" / "releases").mkdir(parents=True)
    ended = subprocess.run(
        [sys.executable, "-c", f"LARGE = {LARGE!r}\n{COMMANDS}"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "ANON_PIPELINE_HOME": "home", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that can do without an optional one, and imports a large one."""
    (tmp_path / "library_here.py").write_text(
        "try:\n    import optional_here\nexcept ImportError:\n    optional_here = None\nimport large_here\n"
    )
    (tmp_path / "optional_here.py").write_text("")
    (tmp_path / "large_here.py").write_text("import builtins\nbuiltins.loaded_here = True\nname = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("library_here", "optional_here", "large_here"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr("builtins.loaded_here", raising=False)


@pytest.mark.usefixtures("modules")
def test_what_is_absent_is_there_again_afterwards_and_what_is_later_comes_when_asked_for() -> None:
    import builtins

    found: list[object] = []
    with large_imports(absent=["optional_here"], later=["large_here"]):
        import library_here  # type: ignore[import-not-found]

        other = threading.Thread(target=lambda: found.append(__import__("optional_here")))
        other.start()
        other.join()
    assert library_here.optional_here is None
    assert found  # other threads import what they like
    assert not hasattr(builtins, "loaded_here")
    assert library_here.large_here.name == 1
    assert hasattr(builtins, "loaded_here")


def test_garbage_is_collected_again_and_imports_are_ordinary_however_the_block_ends() -> None:
    before = list(sys.meta_path)
    with suppress(ZeroDivisionError), large_imports(absent=["json"]):
        assert not gc.isenabled()
        with large_imports():
            pass
        assert not gc.isenabled()  # the outer block is not over
        1 / 0  # noqa: B018
    assert gc.isenabled()
    assert sys.meta_path == before


@pytest.mark.long
def test_a_command_alone_never_looks_through_its_imports_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "_is_command", False)
    before = gc.get_freeze_count()
    with large_imports():
        made = [[number] for number in range(5000)]
    assert gc.get_freeze_count() <= before
    imports.keep_imports()
    with large_imports():
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() >= before + len(made) / 2


@pytest.mark.long
def test_the_package_is_a_command_and_its_workers_are_not() -> None:
    ended = subprocess.run([sys.executable, "-m", "anon_pipeline", "--version"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.split()[0]) == (0, "anon-pipeline")
    runpy.run_module("anon_pipeline.__main__", run_name="__mp_main__")  # it would read pytest's arguments
