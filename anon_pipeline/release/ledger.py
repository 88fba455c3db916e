"""The ledger: one line per release, each holding the hash of the one before, so that no line can change unseen."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, remove_leftovers, sha256_of, write_file

FIRST = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    sequence: int
    time: str
    action: str
    dataset: str
    version: str
    manifest: str  # SHA-256 of manifest.json
    previous: str  # SHA-256 of the line before


def read(home: Home) -> list[Entry]:
    """All lines, oldest first, without judging them.

    Raises
    ------
    InputError
        For a line that is no entry; `verify` says more.
    """
    entries = []
    for number, line in enumerate(_lines(home), start=1):
        try:
            entries.append(Entry(**json.loads(line)))
        except (ValueError, TypeError):
            raise InputError(
                f"{home.ledger}: line {number} is no ledger entry; run `anon-pipeline releases verify`"
            ) from None
    return entries


def append(home: Home, action: str, dataset: str, version: str, manifest: str) -> Entry:
    """Add a line; the caller holds the lock "ledger"."""
    lines = _lines(home)
    entry = Entry(
        sequence=len(lines) + 1,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        action=action,
        dataset=dataset,
        version=version,
        manifest=manifest,
        previous=hash_of(lines[-1]) if lines else FIRST,
    )
    # Written as a whole and renamed: a line is there or it is not, whatever kills the process.
    remove_leftovers(home.releases, of=home.ledger.name)
    lines.append(json.dumps(vars(entry), sort_keys=True))
    write_file(home.ledger, "".join(f"{line}\n" for line in lines), public=True)
    write_file(_head(home), hash_of(lines[-1]))
    return entry


def _head(home: Home) -> Path:
    """The hash of the newest line, kept in the private zone: no line after it vouches for that one."""
    return home.private / "ledger.head"


def last_version(home: Home, dataset: str) -> str | None:
    """The newest published version of a dataset."""
    return next((entry.version for entry in reversed(read(home)) if entry.dataset == dataset), None)


def hash_of(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()


def verify(home: Home) -> list[str]:
    """Re-check every line and every file it answers for.

    Returns
    -------
    One sentence per problem; an empty list when ledger and folders are what they were.
    """
    problems: list[str] = []
    previous = FIRST
    listed: set[tuple[str, str]] = set()
    for number, line in enumerate(_lines(home), start=1):
        try:
            entry = Entry(**json.loads(line))
        except (ValueError, TypeError):
            problems.append(f"ledger line {number} is not readable")
            previous = hash_of(line)
            continue
        if entry.previous != previous:
            problems.append(f"ledger line {number} does not continue line {number - 1}: a line was altered or removed")
        if entry.sequence != number:
            problems.append(f"ledger line {number} says that it is line {entry.sequence}")
        previous = hash_of(line)
        listed.add((entry.dataset, entry.version))
        problems += [f"{entry.dataset}/{entry.version}: {problem}" for problem in verify_release(home, entry)]
    return [*problems, *_broken_head(home, previous), *_unknown(home, listed)]


def _broken_head(home: Home, last: str) -> list[str]:
    """Whether the newest line is another than the one this home wrote last; says nothing where the home is not at hand.

    A run that was killed just after the ledger was written leaves a head that is one line behind.
    """
    try:
        head = _head(home).read_text()
    except OSError:
        return []
    lines = _lines(home)
    try:
        continued = bool(lines) and json.loads(lines[-1]).get("previous") == head
    except (ValueError, AttributeError):
        continued = False
    return [] if head == last or continued else ["the last ledger line is not the one that was written last"]


def _unknown(home: Home, listed: set[tuple[str, str]]) -> list[str]:
    """What lies among the releases and stands in no line; hidden names are writes under way, or what is left of one."""
    datasets = {path for path in home.releases.glob("*") if path.is_dir()}
    return [
        f"{path.relative_to(home.releases)}: the ledger does not know it"
        for path in sorted([*home.releases.glob("*"), *home.releases.glob("*/*")])
        if path not in {home.ledger, *datasets}
        and (path.parent.name, path.name) not in listed
        and not path.name.startswith(".")
    ]


def verify_release(home: Home, entry: Entry) -> list[str]:
    """Re-check the files of one release against its manifest, and the manifest against the ledger."""
    folder = home.releases / entry.dataset / entry.version
    file = folder / "manifest.json"
    if not file.is_file():
        return ["manifest.json is gone"]
    if sha256_of(file) != entry.manifest:
        return ["manifest.json was altered"]
    files: dict[str, Any] = json.loads(file.read_text())["files"]
    problems = []
    for name, facts in files.items():
        if not (folder / name).is_file():
            problems.append(f"{name} is gone")
        elif sha256_of(folder / name) != facts["sha256"]:
            problems.append(f"{name} was altered")
    extra = {path.name for path in folder.iterdir()} - {"manifest.json", *files}
    return [*problems, *(f"{name} was added" for name in sorted(extra))]


def _lines(home: Home) -> list[str]:
    if not home.ledger.exists():
        return []
    # Nothing but a line feed ends a line, and a byte that is no text is an altered one.
    return home.ledger.read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
