"""`anon_pipeline.run`: a whole run as a function call, for notebooks and programs; the same run as the command's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from anon_pipeline.errors import InputError, NotDelivered, Refused
from anon_pipeline.home import Home
from anon_pipeline.imports import large_imports
from anon_pipeline.pipeline.before_work import require_startable
from anon_pipeline.pipeline.processes import processes, warm
from anon_pipeline.spec import ReleaseSpec

#: A run replaces for its time what the whole process shares, such as functions of Dagster and how modules are imported.
_one_at_a_time = Lock()


@dataclass(frozen=True)
class Released:
    """A published release.

    Attributes
    ----------
    version : its name, 12 hexadecimal digits
    folder : the folder of its files
    new : whether this run published it; otherwise the same release had been published before
    manifest : the content of `manifest.json`
    figures : people released and suppressed, classes, the smallest class, information lost (0 to 1), the highest
        re-identification risk (0 to 1), and the means of each utility score before and after; a release that is not
        a table of people has some of them only
    """

    version: str
    folder: Path
    new: bool
    manifest: dict[str, Any]

    @property
    def figures(self) -> dict[str, Any]:
        rows, measured = self.manifest.get("rows", {}), self.manifest.get("measured", {})
        sizes, after = measured.get("class_sizes", {}), measured.get("risk", {}).get("after", {})
        found = {
            "people": rows.get("released"),
            "suppressed": rows.get("suppressed"),
            "classes": sizes.get("classes"),
            "smallest_class": sizes.get("smallest"),
            "information_loss": measured.get("information_loss", {}).get("mean"),
            "highest_risk": after.get("prosecutor", {}).get("max"),
        }
        for name, score in self.manifest.get("utility", {}).get("metrics", {}).items():
            found |= {f"{name}_{when}": score[when]["mean"] for when in ("before", "after")}
        return {name: value for name, value in found.items() if value is not None}


def run(
    spec: str | Path | ReleaseSpec,
    *,
    home: str | Path | None = None,
    engine: str = "duckdb",
    threads: int | None = None,
    memory: str | None = None,
) -> Released:
    """Run the whole graph of a dataset and publish its release, unless the same one is already published.

    While another thread of this process runs a dataset, the call waits until that run has ended.

    Parameters
    ----------
    spec : a release.yaml, its folder, or a loaded spec
    home : the folder of everything that is produced; if None, the same as for the commands
    engine : "duckdb", or "spark" if that extra is installed
    threads : number of threads and processes; all cores if None
    memory : limit of the engine and the processes, such as "4GB"

    Raises
    ------
    InputError
        If the spec or the data cannot be used.
    NotDelivered
        If the release is published, but a destination of the spec does not have it yet.
    Refused
        If a check does not hold, so that nothing is published; `failed` has a sentence for each such check.
    RuntimeError
        For an error of our own.
    """
    with _one_at_a_time:
        policy = spec if isinstance(spec, ReleaseSpec) else ReleaseSpec.load(Path(spec))
        require_startable(policy)
        with _umask_put_back(), _script_not_run_again():
            place = (Home.default() if home is None else Home(Path(home).resolve())).prepare()
            warm(processes(policy, threads, memory))
            with large_imports():
                from anon_pipeline.pipeline.launch import launch
                from anon_pipeline.pipeline.runtime import BAD_INPUT, NOT_DELIVERED, REFUSED, Runtime

            runtime = Runtime(home=str(place.root), engine_name=engine, threads=threads, memory_limit=memory)
            outcome = launch(policy, place, runtime)
    if outcome.exit_code == REFUSED:
        raise Refused(outcome.failures)
    if outcome.exit_code == NOT_DELIVERED:
        raise NotDelivered("; ".join(outcome.failures))
    if outcome.exit_code == BAD_INPUT:
        raise InputError("; ".join(outcome.failures))
    if outcome.folder is None:
        raise RuntimeError("; ".join(outcome.failures))
    return Released(outcome.manifest["version"], outcome.folder, outcome.new, outcome.manifest)


@contextmanager
def _umask_put_back() -> Iterator[None]:
    """Give the caller's program its umask back: files that it writes later are no private files of a home."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _script_not_run_again() -> Iterator[None]:
    """Keep worker processes from importing the script that calls `run`, which would call it again in each of them.

    Their work needs nothing from that script (https://docs.python.org/3/library/multiprocessing.html#the-spawn-and-
    forkserver-start-methods).
    """
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    main.__spec__ = None
    main.__dict__.pop("__file__", None)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(main, name, value)
