"""The released tables of groups that were not withdrawn, and what is needed to count them again from their source."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from anon_pipeline.engine.sources import as_that_kind
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release import ledger
from anon_pipeline.release.opening import opening_of
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import ReleaseSpec


@dataclass(frozen=True)
class StandingGroups:
    """A table of groups that stands in the ledger.

    Attributes
    ----------
    dataset, version : the release
    table : its file
    policy : its spec as it was published
    rows : the people that were read for it
    content_hash : the content of its source as read under its spec; None where its opening is not in this home
    """

    dataset: str
    version: str
    table: Path
    policy: dict[str, Any]
    rows: int
    content_hash: str | None

    @property
    def name(self) -> str:
        return f"{self.dataset}/{self.version}"

    def spec_for(self, spec: ReleaseSpec) -> ReleaseSpec:
        """Its spec, about the source of another one.

        Raises
        ------
        InputError
            If its policy is not one that this code reads.
        """
        demands: dict[str, list[dict[str, Any]]] = {}
        for demand in self.policy["privacy"]:
            stated = {name: value for name, value in demand.items() if name != "model"}
            demands.setdefault(demand["model"], []).append(stated)
        columns = {
            # Groups are shown by no hierarchy, whose file may lie elsewhere.
            name: {key: value for key, value in column.items() if key != "hierarchy"}
            for name, column in self.policy["columns"].items()
        }
        try:
            read = ReleaseSpec.model_validate(
                {**self.policy, "columns": columns, "privacy": demands, "source": {"path": ""}}
            )
        except (ValidationError, InputError):
            raise InputError("its spec cannot be read by this version") from None
        said = {name: value for name, value in self.policy["source"].items() if value is not None}
        source = spec.source.model_copy(update=said | {name: tuple(said[name]) for name in LISTS & set(said)})
        # The same people may have come from a text file then, and now from none.
        source = as_that_kind(source, spec.source_path)
        return spec.model_copy(
            update={name: getattr(read, name) for name in read.model_fields_set - {"source"}} | {"source": source}
        )


#: Keys on the format of a source that are lists.
LISTS = {"missing", "symbols"}


def standing_groups(home: Home) -> list[StandingGroups]:
    """All of a home, oldest first.

    Raises
    ------
    Refused
        If a manifest is not what was published, so that nobody can tell what the release is.
    """
    entries = ledger.read(home)
    withdrawn = {entry.release for entry in entries if entry.action == ledger.WITHDRAW}
    found = []
    for entry in entries:
        if entry.action != ledger.PUBLISH or entry.release in withdrawn:
            continue
        folder = home.releases / entry.dataset / entry.version
        manifest = folder / ledger.MANIFEST
        if not manifest.is_file() or sha256_of(manifest) != entry.manifest:
            raise Refused(
                [
                    f"the manifest of {entry.dataset}/{entry.version} is not what was published, so that nobody can "
                    "tell what it shows; run `anon-pipeline releases verify`"
                ]
            )
        content = json.loads(manifest.read_text(encoding="utf-8"))
        if content.get("groups") is None or content.get("kind") is not None:
            continue
        try:
            content_hash = opening_of(home, entry.version, entry.dataset).opens.content_hash
        except InputError:
            content_hash = None
        rows = int(content["rows"]["source"])
        found.append(StandingGroups(entry.dataset, entry.version, folder / DATA, content["spec"], rows, content_hash))
    return found
