"""The last steps of a publication or a withdrawal; a note is written first, so that a killed one can be completed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from anon_pipeline.errors import Unavailable
from anon_pipeline.home import Home, write_file
from anon_pipeline.release import ledger


def note(home: Home, action: str, dataset: str, version: str, manifest: str, why: str | None = None) -> None:
    """Write a note on the coming line of the ledger; `finish` does the rest, now or after a kill.

    The caller holds the lock "ledger", as for `finish`.
    """
    content = {"action": action, "dataset": dataset, "version": version, "manifest": manifest, "why": why}
    write_file(_note(home), json.dumps(content))


def enter(home: Home, action: str, dataset: str, version: str, manifest: str, why: str | None = None) -> None:
    """Enter a line about a release whose folder exists, and complete all further steps."""
    note(home, action, dataset, version, manifest, why)
    finish(home)


def finish(home: Home) -> None:
    """Complete what the note says: enter the line, move the pointer, and of a withdrawn release keep its manifest only.

    A publication that was killed before its folder appeared never happened. A withdrawal needs no folder: somebody may
    have removed it by hand before.

    Raises
    ------
    Unavailable
        If files of a withdrawn release cannot be removed; the next command tries again.
    """
    ledger.finish_killed(home)
    if not _note(home).exists():
        return
    content = json.loads(_note(home).read_text())
    folder = home.releases / content["dataset"] / content["version"]
    if not _entered(home, content) and (folder.exists() or content["action"] == ledger.WITHDRAW):
        ledger.append(home, **content)
    try:
        if folder.parent.exists() or content["action"] != ledger.WITHDRAW:
            ledger.point(home, content["dataset"])
        if content["action"] == ledger.WITHDRAW:
            _remove_all_but_the_manifest(folder)
    except OSError as error:
        if content["action"] != ledger.WITHDRAW:
            raise
        raise Unavailable(
            f"{folder}: the release is withdrawn, but its files cannot be removed ({error.strerror}), and nothing else "
            "is published or withdrawn until they are; make the folder and the one above it readable and writable, "
            "and do this again"
        ) from None
    _note(home).unlink()


def coming_line(home: Home) -> tuple[str, str] | None:
    """Action and manifest of the line that a killed command has noted and the next one will enter; None if none has."""
    try:
        content = json.loads(_note(home).read_text())
    except OSError:
        return None
    return content["action"], content["manifest"]


def _entered(home: Home, content: dict[str, Any]) -> bool:
    """Whether the ledger already has this line; a release may become the current one several times."""
    if content["action"] == ledger.CURRENT:
        return ledger.last_version(home, content["dataset"]) == str(content["version"])
    return any(
        (entry.action, entry.manifest) == (content["action"], content["manifest"]) for entry in ledger.read(home)
    )


def _note(home: Home) -> Path:
    return home.private / ledger.UNFINISHED


def _remove_all_but_the_manifest(folder: Path) -> None:
    for path in sorted(folder.iterdir()) if folder.exists() else ():  # glob tells of no folder that cannot be read
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != ledger.MANIFEST:
            path.unlink()
