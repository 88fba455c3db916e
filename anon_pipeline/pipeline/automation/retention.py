"""Retention: removes old stored results of a dataset, and other files that may quote people, from the private zone.

Releases, the ledger and the release history are not removed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from filelock import Timeout

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, remove_leftovers, scratch
from anon_pipeline.pipeline.refusals import FOLDER
from anon_pipeline.pipeline.tracking.logged_guide import guides_in
from anon_pipeline.release import comparison, known_classes
from anon_pipeline.spec import ReleaseSpec

DAY = 86_400  # seconds
#: The name of the folder of a result, which begins its identity.
RESULT = "[0-9a-f]" * 16


@dataclass(frozen=True)
class Expired:
    """The removed files: the names of stored results, and the number of files of each other kind."""

    stages: list[str] = field(default_factory=list)
    stories: int = 0
    spilled: int = 0
    refusals: int = 0
    comparisons: int = 0
    known_classes: int = 0


def expire(home: Home, spec: ReleaseSpec, now: float | None = None) -> Expired:
    """Remove files that are older than `retention.private_days` of the spec.

    Only stored results of this dataset are removed. Tables that killed commands were working on go whatever their age,
    since they are nobody's. Tracebacks of internal errors, and files that a killed engine has
    spilled, do not name their dataset, so old ones are removed for all datasets.

    Parameters
    ----------
    now : seconds since 1970; the current time if absent

    Raises
    ------
    InputError
        Where the spec states no such period.
    """
    if spec.retention is None:
        raise InputError(f"{spec.dataset}: its spec states no period; add retention: {{private_days: 30}}")
    now = time.time() if now is None else now
    before = now - spec.retention.private_days * DAY
    # The locks of a whole run and of a step, so that nothing is removed while they are running.
    with home.lock(f"run-{spec.dataset}"), home.lock(f"dataset-{spec.dataset}"):
        guides = [] if spec.is_synthetic else guides_in(home.private / "mlflow" / "artifacts" / spec.dataset)
        quoting = [
            *(home.private / name for name in ("errors", "spill")),
            *(home.private / name / spec.dataset for name in (FOLDER, comparison.FOLDER)),
            home.private / spec.dataset / known_classes.FOLDER,
        ]
        _date_back([home.private / spec.dataset, *guides, *quoting], now)
        stages = [place for place in sorted((home.private / spec.dataset).glob("*")) if is_stage(place, before)]
        for place in stages:
            remove_stage(place)
        for file in guides:
            if _touched(file) < before:
                file.unlink()
    _remove_work_of_killed_commands(home, spec.dataset)
    return Expired([place.name for place in stages], *(remove_older(folder, before) for folder in quoting))


def _remove_work_of_killed_commands(home: Home, dataset: str) -> None:
    """Remove tables that killed commands were working on; those at work hold a lock on theirs."""
    for folder in (home.private / "scratch", home.private / "mask"):
        if folder.is_dir():
            with scratch(folder):  # removes those of killed processes
                pass
    with suppress(Timeout), home.lock(f"sweep-{dataset}", timeout=0):
        remove_leftovers(home.private / dataset / "sweep")


def is_stage(place: Path, before: float) -> bool:
    """Whether this is a stored result, whole or half written by a killed step, and older than a moment.

    A step that was killed before it named its first result the current one has left the folder of this result only.
    """
    marks = [mark for mark in (place / "current", place / ".writing", *place.glob(RESULT)) if mark.exists()]
    return bool(marks) and all(_touched(mark) < before for mark in marks)


def remove_stage(place: Path) -> None:
    """Remove a stored result: the files of people first, the pointer last.

    If the process is killed in between, the next retention finds the rest, and no step loads half a result.
    """
    for path in place.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    shutil.rmtree(place)


def remove_older(folder: Path, before: float, dry: bool = False) -> int:
    """Remove files in a folder that are older than a moment, or only count them if `dry`; returns their number."""
    removed = 0
    for path in folder.glob("*"):
        with suppress(FileNotFoundError):  # another dataset's engine cleans up behind itself
            if _touched(path) >= before:
                continue
            if dry:
                pass
            elif path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
            removed += 1
    return removed


def _date_back(places: Iterable[Path], now: float) -> None:
    """Let what a clock that was ahead has dated after this moment be as old as this moment; it would never expire."""
    for path in (each for place in places for each in (place, *place.rglob("*"))):
        with suppress(FileNotFoundError):
            if path.lstat().st_mtime > now:
                os.utime(path, (now, now), follow_symlinks=False)


def _touched(path: Path) -> float:
    """When any file in it was last written, seconds since 1970; the time of the folder changes with every removal."""
    files = [file for file in path.rglob("*") if not file.is_dir()]
    return max(file.lstat().st_mtime for file in files or [path])
