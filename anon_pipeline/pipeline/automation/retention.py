"""Retention: removes old stored results of a dataset, and other files that may quote people, from the private zone.

Releases, the ledger and the release history are not removed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from filelock import Timeout

from anon_pipeline.errors import InputError, Unavailable
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
    Unavailable
        Where something cannot be removed; all else is.
    """
    if spec.retention is None:
        raise InputError(f"{spec.dataset}: its spec states no period; add retention: {{private_days: 30}}")
    now = time.time() if now is None else now
    before, removal = now - spec.retention.private_days * DAY, Removal()
    # The locks of a whole run and of a step, so that nothing is removed while they are running.
    with home.lock(f"run-{spec.dataset}"), home.lock(f"dataset-{spec.dataset}"):
        guides = [] if spec.is_synthetic else guides_in(home.private / "mlflow" / "artifacts" / spec.dataset)
        quoting = [
            *(home.private / name for name in ("errors", "spill")),
            *(home.private / name / spec.dataset for name in (FOLDER, comparison.FOLDER)),
            home.private / spec.dataset / known_classes.FOLDER,
        ]
        _date_back([home.private / spec.dataset, *guides, *quoting], now)
        old = removal.stages(_entries(home.private / spec.dataset), before)
        stages = removal.of(old, remove_stage)
        removal.of(file for file in guides if _is_older(file, before))
    files = [len(remove_older(folder, before, removal)) for folder in quoting]
    _remove_work_of_killed_commands(home, spec.dataset)
    removal.require_complete()
    return Expired([place.name for place in stages], *files)


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
    marks = [path for path in _entries(place) if path.name in ("current", ".writing") or fnmatch(path.name, RESULT)]
    dates = [date for mark in marks if mark.exists() and (date := _touched(mark)) is not None]
    return bool(dates) and max(dates) < before


def remove_stage(place: Path) -> None:
    """Remove a stored result: the files of people first, the pointer last.

    If the process is killed in between, the next retention finds the rest, and no step loads half a result.
    """
    for path in _entries(place):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # what is left of it is told below
    _remove(place)


@dataclass
class Removal:
    """The removal of many things, of which one that cannot be removed keeps no other.

    Attributes
    ----------
    left : what could not be removed, and what the system says of it
    """

    left: list[str] = field(default_factory=list)

    def stages(self, places: Iterable[Path], before: float) -> list[Path]:
        """The stored results among some folders that are older than a moment; what cannot be looked at is left."""
        old = []
        for place in places:
            try:
                old += [place] if is_stage(place, before) else []
            except OSError as error:
                self.left.append(f"{place} ({error.strerror})")
        return old

    def of(self, paths: Iterable[Path], remove: Callable[[Path], None] | None = None) -> list[Path]:
        """Remove files or folders, each with all that is in it; returns those that are gone."""
        gone = []
        for path in paths:
            try:
                (remove or _remove)(path)
            except OSError as error:
                if os.path.lexists(path):  # if not, somebody else was quicker
                    self.left.append(f"{path} ({error.strerror})")
                    continue
            gone.append(path)
        return gone

    def require_complete(self) -> None:
        """
        Raises
        ------
        Unavailable
            With what is left.
        """
        if self.left:
            raise Unavailable(
                f"cannot be removed: {', '.join(self.left)}; all else that is old enough is removed; make these "
                "writable, and do this again"
            )


def remove_older(folder: Path, before: float, removal: Removal | None = None) -> list[Path]:
    """Remove what is in a folder and older than a moment; returns that. Without a removal nothing is removed."""
    try:
        old = [path for path in _entries(folder) if _is_older(path, before)]
    except OSError as error:
        if removal is None:
            raise
        removal.left.append(f"{folder} ({error.strerror})")
        return []
    return old if removal is None else removal.of(old)


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, though somebody else may be removing the same.

    Raises
    ------
    OSError
        Where something of it is left.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)  # passes over what is gone before it is its turn
        if path.exists():
            shutil.rmtree(path)  # says why
    else:
        path.unlink(missing_ok=True)


def _date_back(places: Iterable[Path], now: float) -> None:
    """Let what a clock that was ahead has dated after this moment be as old as this moment; it would never expire."""
    for place in places:
        for path in (place, *_below(place)):
            with suppress(FileNotFoundError):
                if path.lstat().st_mtime > now:
                    os.utime(path, (now, now), follow_symlinks=False)


def _entries(folder: Path) -> list[Path]:
    """What is in a folder; nothing where it is none (any more)."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _below(path: Path) -> Iterator[Path]:
    """Everything below a path, also where somebody removes a part of it meanwhile, at which `rglob` ends."""
    for folder, folders, files in os.walk(path):
        yield from (Path(folder) / name for name in (*folders, *files))


def _is_older(path: Path, before: float) -> bool:
    """Whether something is there, and older than a moment."""
    date = _touched(path)
    return date is not None and date < before


def _touched(path: Path) -> float | None:
    """When any file in it was last written, seconds since 1970; the time of the folder changes with every removal.

    None where it is gone.
    """
    dates = []
    for file in _below(path):
        with suppress(FileNotFoundError):
            if not file.is_dir():
                dates.append(file.lstat().st_mtime)
    with suppress(FileNotFoundError):
        return max(dates or [path.lstat().st_mtime])
    return None
