"""The record of copies, in the private zone: one file for each release, with its places and nobody's values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anon_pipeline.home import Home, write_file
from anon_pipeline.spec import Destination

#: The states of a copy. A copy stays "being put" if the process ends during it.
PUTTING, STANDS, FAILED, REPLACED, TAKEN_BACK = "being put", "stands", "failed", "replaced", "taken back"


@dataclass(frozen=True)
class Copy:
    """A release at a place; `why` is a sentence on a failure, or on the remains of a release that was taken back."""

    place: Destination
    state: str
    time: str
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        stated = self.place.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {**asdict(replace(self, place=None)), "place": stated, "label": self.place.label}  # type: ignore[arg-type]


def read(home: Home, dataset: str, version: str) -> list[Copy]:
    """The recorded copies of a release; other users than the owner of the home see none."""
    try:
        content = json.loads(_file(home, dataset, version).read_text(encoding="utf-8"))
    except (FileNotFoundError, PermissionError):
        return []
    return [
        Copy(Destination.model_validate(copy["place"]), copy["state"], copy["time"], copy["why"]) for copy in content
    ]


def note(home: Home, dataset: str, version: str, place: Destination, state: str, why: str = "") -> None:
    """Record the state of a copy; the caller holds the lock of the dataset's destinations."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    others = [copy for copy in read(home, dataset, version) if copy.place.label != place.label]
    copies = [*others, Copy(place, state, now, why)]
    home.private_folder("destinations", dataset)
    write_file(_file(home, dataset, version), json.dumps([copy.to_json() for copy in copies], indent=2))


def recorded(home: Home) -> Iterator[tuple[str, str]]:
    """Dataset and version of all releases that were put somewhere; other users than the owner of the home see none."""
    if not home.keeps(home.private / "destinations"):
        return
    for file in sorted((home.private / "destinations").glob("*/*.json")):
        yield file.parent.name, file.stem


def _file(home: Home, dataset: str, version: str) -> Path:
    return home.private / "destinations" / dataset / f"{version}.json"
