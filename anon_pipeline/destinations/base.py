"""The interface of places: a release is put there, compared, and taken back. Each kind of place has its own module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release.descriptors.described import TableColumn, column_of
from anon_pipeline.release.ledger import MANIFEST, Entry, last_version
from anon_pipeline.release.publish import CLASSES, DATA

#: What is recorded of a withdrawal that found nothing under the name of the place.
ABSENT = "there was nothing under this name; its rows stay where it was renamed, or dropped from a catalogue only"


@dataclass(frozen=True)
class Release:
    """A release of the ledger, and its folder; the folder of a withdrawn release has only the manifest."""

    dataset: str
    version: str
    folder: Path
    manifest_hash: str  # SHA-256 of manifest.json
    current: bool  # whether it is the current release of its dataset

    @classmethod
    def of(cls, home: Home, entry: Entry) -> Release:
        """The release that a line of the ledger published."""
        return cls(
            entry.dataset,
            entry.version,
            home.releases / entry.dataset / entry.version,
            entry.manifest,
            last_version(home, entry.dataset) == entry.version,
        )

    @property
    def has_manifest(self) -> bool:
        """Whether the manifest is there, and the one that the ledger says."""
        try:
            return sha256_of(self.folder / MANIFEST) == self.manifest_hash
        except (FileNotFoundError, NotADirectoryError):
            return False

    @cached_property
    def manifest(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        return content

    @property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """Size and SHA-256 of each file except the manifest."""
        files: Mapping[str, Mapping[str, Any]] = self.manifest["files"]
        return files

    @property
    def data_hash(self) -> str:
        """SHA-256 of the file of rows."""
        return str(self.files[DATA]["sha256"])

    @property
    def tables(self) -> dict[str, Path]:
        """The files of the tables, by the suffix that a database adds to the name of the dataset."""
        return {
            ending: self.folder / file for ending, file in (("", DATA), ("_classes", CLASSES)) if file in self.files
        }

    def column(self, name: str, type_: str) -> TableColumn:
        """A column as the descriptors of the release describe it."""
        return column_of(name, type_, self.manifest)

    def altered(self) -> list[str]:
        """Files that differ from the manifest, or the manifest itself from the ledger.

        A release with such files is never delivered or compared with copies.
        """
        if not self.has_manifest:
            return [MANIFEST]
        return [
            name
            for name, facts in self.files.items()
            if not (self.folder / name).is_file() or sha256_of(self.folder / name) != facts["sha256"]
        ]


class Place(Protocol):
    """A place for the releases of datasets. Every method may be called again after its process was killed.

    All methods raise `InputError` where the place cannot be reached or refuses, and `Unavailable` where this may be
    temporary. No message of a server or of a library is repeated.
    """

    #: Whether former releases stay beside the current one.
    keeps_former: bool

    def holds(self, release: Release) -> bool:
        """Whether the current release there is this one, found out without reading its rows."""

    def put(self, release: Release) -> None:
        """Put a release there, so that a reader sees either the whole former release or the whole new one."""

    def problems(self, release: Release, scratch: Path) -> list[str]:
        """The differences between the copy and the release, a sentence for each; `scratch` is a private folder."""

    def take_back(self, release: Release) -> str:
        """Remove a release; return a sentence on what the place's history still shows of it, or an empty text."""

    def remains(self, release: Release) -> bool:
        """Whether any part of a release is there."""
