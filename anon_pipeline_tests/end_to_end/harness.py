"""A small dataset, and commands that run as processes of their own without paying for the imports each time.

Python's fork server imports the heavy libraries once; every command is then a fork of it: a process with its own
exit code, its own streams and its own death. It costs a second or two instead of eight.
"""

import multiprocessing
import os
import resource
import runpy
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import forkserver
from multiprocessing.forkserver import ForkServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from anon_pipeline.audit import regrouping
from anon_pipeline.audit.regrouping import Regrouped
from anon_pipeline.home import VARIABLE, Home
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests import fixed_keys

PRELOAD = [
    "anon_pipeline.cli",
    "anon_pipeline.engine.first_look",
    "anon_pipeline.learning.category_codes",
    "anon_pipeline.learning.linear",
    "anon_pipeline.pipeline.before_work",
    "anon_pipeline.pipeline.launch",
    "anon_pipeline.pipeline.tracking.mlflow_client",
    "anon_pipeline.privacy.k_anonymity",
    "alembic",
    "dagster._core.definitions.external_asset",
    "dagster._core.definitions.repository_definition.repository_data_builder",
    "dagster._core.instance.runs.run_domain",
    "dagster._core.execution.execute_in_process",
    "dagster._core.execution.plan.active",
    "dagster._core.executor.in_process",
    "dagster._core.instance.factory",
    "dagster._core.secrets.env_file",
    "dagster._core.storage.base_storage",
    "dagster._core.storage.noop_compute_log_manager",
    "dagster._core.storage.root",
    "dagster._core.storage.sqlite_storage",
    "dagster._core.system_config.composite_descent",
    "dagster._core.types.primitive_mapping",
    "dagster._core.types.transform_typing",
    "dagster._core.workspace.context",
    "dagster._daemon",
    "anon_pipeline.pipeline.expectations.great_expectations",
    "mlflow",
    "mlflow.pyfunc",
    "mlflow.store.model_registry.sqlalchemy_store",
    "mlflow.store.model_registry.sqlalchemy_workspace_store",
    "mlflow.store.tracking.sqlalchemy_store",
    "mlflow.store.tracking.sqlalchemy_workspace_store",
    "mlflow.tracking",
    "narwhals._interchange.dataframe",
    "narwhals._pandas_like.dataframe",
    "narwhals._pandas_like.namespace",
    "narwhals.stable.v2._namespace",
    "openlineage.client.event_v2",
    "pandas.core.arrays.arrow._arrow_utils",
    "pandas.core.arrays.arrow.extension_types",
    "pyarrow.dataset",
    "rich._emoji_codes",
    "sklearn.ensemble",
    "sklearn.frozen",
    "sklearn.impute",
    "sklearn.model_selection",
    "sklearn.tree",
    "typer._adapters",
    "typer._click.decorators",
    "upath.implementations.local",
    "anon_pipeline_tests.end_to_end.frozen",
]
MEMORY = Path("/dev/shm")

#: The assets of `policy()`, in order.
ASSETS = (
    "raw_data",
    "trained_model",
    "predictions",
    "anonymizer_tree",
    "anonymized_table",
    "utility",
    "attack_audit",
    "release",
)


def scratch() -> Path:
    """A folder to work in: in memory where possible, since a run waits hundreds of times for its databases' fsync."""
    return Path(tempfile.mkdtemp(prefix="anon-pipeline-test-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))


def people(n: int = 400, seed: int = 1) -> pd.DataFrame:
    """A table of n people, of whom the model can learn something."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, n)
    return pd.DataFrame(
        {
            "age": age,
            "city": random.choice(["Aberdeen", "Bergen", "Cork", "Delft"], n),
            "sex": random.choice(["f", "m"], n),
            "ill": np.where(age + random.normal(0, 15, n) > 50, "yes", "no"),
            "visits": random.integers(0, 5, n),
        }
    )


def policy(dataset: str = "people") -> dict[str, Any]:
    """The spec of `people()`, as plain data; it attacks tables alone, and no model but the guide is measured."""
    return {
        "dataset": dataset,
        "source": {"path": "people.csv"},
        "target": "ill",
        "columns": {
            "age": {"role": "quasi_identifier", "type": "numeric"},
            "city": {"role": "quasi_identifier", "type": "categorical"},
            "sex": {"role": "quasi_identifier", "type": "categorical"},
            "ill": {"role": "sensitive", "type": "categorical"},
            "visits": {"role": "insensitive", "type": "numeric"},
        },
        "privacy": {"k_anonymity": {"k": 10}},
        "guide": {"model": "decision_tree", "folds": 2},
        "audit": {"models": False, "people": 200, "shadows": 4, "targets": 100},
        "utility": {"folds": 2, "models": []},
    }


def brief_policy(dataset: str = "people", threshold: int = 10) -> dict[str, Any]:
    """The same people as a table of groups: nothing is trained, grouped by a tree, measured or attacked.

    For tests of what is around a release; a run of it takes half as long.
    """
    spec = policy(dataset)
    del spec["audit"], spec["guide"], spec["utility"]
    step = {"technique": "aggregate", "columns": ["city"], "means": ["visits"], "threshold": threshold}
    return spec | {"steps": [step]}


def full_policy(dataset: str = "people") -> dict[str, Any]:
    """The same with all that `policy` leaves out, which takes a quarter longer to run."""
    return policy(dataset) | {"audit": {"people": 200, "shadows": 4, "targets": 100}, "utility": {"folds": 2}}


def write_dataset(folder: Path, frame: pd.DataFrame | None = None, spec: dict[str, Any] | None = None) -> Path:
    """A dataset folder: people.csv and release.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    (people() if frame is None else frame).to_csv(folder / "people.csv", index=False)
    (folder / "release.yaml").write_text(yaml.safe_dump(policy() if spec is None else spec, sort_keys=False))
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended; a negative exit code is the signal that killed it."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        return self.stdout + self.stderr

    @property
    def sentence(self) -> str:
        """What stderr says, in one line."""
        return " ".join(self.stderr.split())


class Command:
    """A command that runs; `ended()` waits for it."""

    def __init__(
        self,
        *arguments: object,
        home: Path,
        sabotage: Callable[[], None] | None = None,
        path: Path | None = None,
        largest_file: int | None = None,
    ) -> None:
        self._streams = scratch()
        self._process = forked(
            _command,
            [str(one) for one in arguments],
            home,
            self._streams,
            sabotage,
            path,
            largest_file,
            fixed_keys.next_name(),
        )

    def is_running(self) -> bool:
        return bool(self._process.is_alive())

    def says(self) -> str:
        """What stderr says so far, in one line."""
        return " ".join(self._said("stderr").split()) if (self._streams / "stderr").exists() else ""

    def stop(self) -> None:
        """Ask it to end, as a service manager does."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once, with all that it has started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self.ended()

    def ended(self) -> Ended:
        joined(self._process, lambda: self._said("stderr"))
        ended = Ended(self._process.exitcode, self._said("stdout"), self._said("stderr"))
        shutil.rmtree(self._streams)
        return ended

    def _said(self, stream: str) -> str:
        return (self._streams / stream).read_text()


def joined(process: Any, said: Callable[[], str]) -> None:
    """Wait for a process of the fork server; if the wait is broken off, so is the process, and its last words shown."""
    try:
        process.join()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)  # its own group: see _command
        process.join()
        print(said(), file=sys.stderr)
        raise


def command(*arguments: object, home: Path, **how: Any) -> Ended:
    """Run `anon-pipeline ARGUMENTS` to its end."""
    return Command(*arguments, home=home, **how).ended()


def module(name: str, *arguments: object, home: Path, at: Path) -> Ended:
    """Run `python -m NAME ARGUMENTS` in a folder to its end, with all imported that a command imports."""
    return command(home=home, sabotage=partial(_run_module, name, [str(one) for one in arguments], at))


def _run_module(name: str, arguments: list[str], at: Path) -> None:
    os.chdir(at)
    sys.argv[1:] = arguments
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    sys.exit()  # the command that this process was meant for is not run


@cache
def _fork_server() -> ForkServer:
    server = ForkServer()
    server.set_forkserver_preload(PRELOAD)
    return server


def forked(does: Callable[..., None], *arguments: object) -> Any:
    """A process that has begun, in which all that a command imports is imported.

    Python itself keeps one fork server for a process, and the package may have started it with less: a command that
    imports the rest takes four times as long.
    """
    process = multiprocessing.get_context("forkserver").Process(target=does, args=arguments)
    its_own = forkserver.connect_to_new_process
    forkserver.connect_to_new_process = _fork_server().connect_to_new_process
    try:
        process.start()
    finally:
        forkserver.connect_to_new_process = its_own
    return process


def _command(
    arguments: list[str],
    home: Path,
    streams: Path,
    sabotage: Callable[[], None] | None,
    path: Path | None,
    largest_file: int | None,
    keys_of: str | None,
) -> None:
    os.setsid()
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(streams / name, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.environ[VARIABLE] = str(home)
    sys.argv = ["anon-pipeline", *arguments]
    if path is not None:
        sys.path.insert(0, str(path))
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    from anon_pipeline.cli import command as anon_pipeline
    from anon_pipeline.pipeline.steps import attack_audit

    attack_audit.regrouped = replayed_briefly
    if keys_of is not None:
        fixed_keys.fix(keys_of)
    if sabotage is not None:
        sabotage()
    anon_pipeline()


def replayed_briefly(*given: Any) -> list[Regrouped]:
    """The replay attack on few people: on as many as a run attacks it takes as long as many a run of a test.

    How far it sees is tested in audit/test_regrouping.py, and Adult's release is attacked in full.
    """
    regrouping.PEOPLE = 4
    return regrouping.regrouped(*given)


def command_lines() -> str:
    """What everybody on the machine may read of the processes, as `ps` shows it: a process of it costs far more."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return "\n".join(lines)


def release_folders(home: Home, dataset: str) -> list[Path]:
    """The folders of a dataset's releases; beside them lies the pointer to the current one."""
    return [one for one in (home.releases / dataset).glob("[!.]*") if not one.is_symlink()]


@dataclass(frozen=True)
class Place:
    """A home and a dataset folder."""

    home: Home
    dataset: Path

    @property
    def spec(self) -> ReleaseSpec:
        return ReleaseSpec.load(self.dataset)

    @property
    def release(self) -> Path:
        """The one release folder of the dataset."""
        (folder,) = release_folders(self.home, self.spec.dataset)
        return folder

    def run(self, *arguments: object, **how: Any) -> Ended:
        return command("run", self.dataset, *arguments, home=self.home.root, **how)

    def releases(self) -> dict[str, bytes]:
        """Everything under releases/, hidden files too."""
        return {
            str(file.relative_to(self.home.releases)): file.read_bytes()
            for file in sorted(self.home.releases.rglob("*"))
            if file.is_file()
        }

    def copy(self, to: Path) -> "Place":
        shutil.copytree(self.home.root, to / "home", symlinks=True)
        shutil.copytree(self.dataset, to / self.dataset.name)
        return Place(Home(to / "home"), to / self.dataset.name)

    def without_releases(self) -> "Place":
        shutil.rmtree(self.home.releases)
        self.home.releases.mkdir()
        (self.home.private / "ledger.head").unlink()
        return self


@cache
def released() -> tuple[Place, Ended]:
    """A home in which `people` was released once, made once per test session; copy it before you change it."""
    root = scratch()
    place = Place(Home(root / "home"), write_dataset(root / "people"))
    with fixed_keys.shared("released"):
        ended = place.run("--json")
    assert ended.exit_code == 0, ended.said
    return place, ended


def forget_released() -> None:
    """Remove what `released()` made."""
    if released.cache_info().currsize:
        shutil.rmtree(released()[0].home.root.parent, ignore_errors=True)
        released.cache_clear()
