"""How any release comes to stand: a folder that appears whole together with its line of the ledger, or not at all.

What is in the folder, and when it may be published, is for `publish`, `publish_synthetic` and the statistics to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anon_pipeline.errors import Refused
from anon_pipeline.home import Home, remove_leftovers, sha256_of, written_folder
from anon_pipeline.release import ledger, manifest, unfinished
from anon_pipeline.spec import ReleaseSpec

MANIFEST = ledger.MANIFEST


@dataclass(frozen=True)
class Published:
    """A release that stands in the ledger; `new` tells whether this run put it there."""

    version: str
    folder: Path
    new: bool
    manifest: dict[str, Any]


def _nothing() -> None:
    """What is kept of a release that leaves nothing behind in the private zone."""


def publish_folder(
    home: Home,
    dataset: str,
    version: str,
    write: Callable[[Path], dict[str, Any]],
    *,
    allowed: Callable[[], None] = _nothing,
    keep: Callable[[], None] = _nothing,
) -> Published:
    """Publish a folder unless the same release stands already.

    Parameters
    ----------
    write : writes all files but the manifest into the folder it is given, and returns the manifest but for the files
    allowed : raises where this release may not be published; called before anything is written
    keep : called before the release appears, to keep in the private zone what belongs to it

    Raises
    ------
    Refused
        If a published file was altered since, or the same release was withdrawn.
    InputError
        If the ledger is signed and there is no key.
    """
    folder = home.releases / dataset / version
    with home.lock("ledger"):
        unfinished.finish(home)
        remove_leftovers(folder.parent)
        if folder.exists():
            return _standing(home, dataset, version, folder)
        ledger.require_unaltered(home)
        allowed()
        folder.parent.mkdir(exist_ok=True)
        folder.parent.chmod(0o755)
        with written_folder(folder, public=True) as staged:
            content = write(staged)
            content["files"] = {
                file.name: {"sha256": sha256_of(file), "bytes": file.stat().st_size}
                for file in sorted(staged.iterdir())
            }
            (staged / MANIFEST).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
            keep()
            unfinished.note(home, ledger.PUBLISH, dataset, version, sha256_of(staged / MANIFEST))
        unfinished.finish(home)
    return Published(version, folder, True, content)


def head(home: Home, spec: ReleaseSpec, version: str) -> dict[str, Any]:
    """The first lines of the manifest of a dataset's release."""
    return {
        "format": manifest.FORMAT,
        "dataset": spec.dataset,
        "description": spec.description,
        "version": version,
        "created": created(),
        "previous": ledger.last_version(home, spec.dataset),
    }


def created() -> str:
    """The time of a publication, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _standing(home: Home, dataset: str, version: str, folder: Path) -> Published:
    """The same release stands already: verify it, and make it the current one if it no longer is.

    One that was withdrawn does not stand, nor is it published again.
    """
    withdrawn = ledger.withdrawal(home, dataset, version)
    if withdrawn is not None:
        raise Refused(
            [
                f"this is the release {dataset}/{version}, which was withdrawn on {withdrawn.time} ({withdrawn.why}); "
                "change the source or the spec"
            ]
        )
    entry = next((entry for entry in ledger.read(home) if entry.release == (dataset, version)), None)
    problems = ["the ledger does not know it"] if entry is None else ledger.verify_release(home, entry)
    if problems:
        raise Refused(
            [f"the published release {dataset}/{version} is not what it was: {problem}" for problem in problems]
        )
    if ledger.last_version(home, dataset) != version:
        unfinished.enter(home, ledger.CURRENT, dataset, version, sha256_of(folder / MANIFEST))
    return Published(version, folder, False, json.loads((folder / MANIFEST).read_text()))
