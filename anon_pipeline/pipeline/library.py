"""`anon_pipeline.run`: a whole run as a function call, for notebooks and programs; the same run as the command's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError, NotDelivered, Refused
from anon_pipeline.home import Home
from anon_pipeline.imports import large_imports
from anon_pipeline.pipeline.before_work import require_startable
from anon_pipeline.pipeline.processes import processes, warm
from anon_pipeline.spec import ReleaseSpec


@dataclass(frozen=True)
class Released:
    """A release that stands.

    Attributes
    ----------
    version : its name, 12 hexadecimal digits
    folder : where its files lie
    new : whether this run published it; the same release may have stood already
    manifest : what `manifest.json` says
    figures : people released and suppressed, classes, the smallest class, information lost (0 to 1), the highest
        risk of being re-identified (0 to 1), and of each score of utility the means before and after; of a release
        that is no table of people, those that it has
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
    """Run the whole graph of a dataset and publish its release, unless the same one stands already.

    Parameters
    ----------
    spec : a release.yaml, the folder it lies in, or a spec that was loaded
    home : the folder of all that is produced; as the commands have it where None
    engine : "duckdb", or "spark" where that extra is installed
    threads : threads and processes; all cores where None
    memory : limit of the engine and the processes, as "4GB"

    Raises
    ------
    InputError
        Where the spec or the data cannot be used.
    NotDelivered
        Where the release stands, and a destination of the spec does not have it yet.
    Refused
        Where a check does not hold, and so nothing is published; `failed` has a sentence for each.
    RuntimeError
        For an error of our own.
    """
    policy = spec if isinstance(spec, ReleaseSpec) else ReleaseSpec.load(Path(spec))
    require_startable(policy)
    place = (Home.default() if home is None else Home(Path(home).resolve())).prepare()
    with _script_not_run_again():
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
def _script_not_run_again() -> Iterator[None]:
    """Keep the processes at work from importing the script that calls `run`, which would call it once more in each.

    Nothing that they do is defined there (https://docs.python.org/3/library/multiprocessing.html#the-spawn-and-
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
