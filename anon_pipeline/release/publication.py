"""The publication of any release: a folder that appears as a whole together with its line in the ledger, or not at all.

`publish`, `publish_synthetic` and the statistics decide what is in the folder and when it may be published.
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
    """A release that is in the ledger; `new` says whether this run entered it."""

    version: str
    folder: Path
    new: bool
    manifest: dict[str, Any]


def _nothing() -> None:
    """Does nothing: the default if a release has no conditions and keeps nothing in the private zone."""


def publish_folder(
    home: Home,
    dataset: str,
    version: str,
    write: Callable[[Path], dict[str, Any]],
    *,
    allowed: Callable[[], None] = _nothing,
    keep: Callable[[], None] = _nothing,
) -> Published:
    """Publish a folder unless the same release is already published.

    Parameters
    ----------
    write : writes all files except the manifest into its folder, and returns the manifest without the hashes of files
    allowed : raises if this release may not be published; called before anything is written
    keep : called before the release appears, to store its private files

    Raises
    ------
    Refused
        If a published file was altered, or the same release was withdrawn.
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
    """Handle a release that is already published: verify it, and make it the current one if it no longer is.

    A withdrawn release is refused, and not published again.
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
