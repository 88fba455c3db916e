"""The releases that were not withdrawn, of groups and of rows, and what is needed to judge others beside them."""

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
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.policy import NO_POLICY, SAID_OF_SOURCE


@dataclass(frozen=True)
class StandingRelease:
    """A release that stands in the ledger.

    Attributes
    ----------
    dataset, version : the release
    is_groups : whether it is a table of groups instead of rows of people
    table, sha256 : its groups, or the classes of its rows, and the hash of that file that was published
    policy : its spec as it was published
    rows : the people that were read for it
    content_hash : the content of its source as read under its spec; None where its opening is not in this home
    """

    dataset: str
    version: str
    is_groups: bool
    table: Path
    sha256: str
    policy: dict[str, Any]
    rows: int
    content_hash: str | None

    @property
    def name(self) -> str:
        return f"{self.dataset}/{self.version}"

    @property
    def leaves_out(self) -> bool:
        """Whether people without a target are not in it, nor among its rows."""
        return self.policy.get("missing_target") == "leave_out"

    def require_as_published(self) -> None:
        """
        Raises
        ------
        InputError
            If its file is not what was published, so that nobody can tell which groups or classes its readers have.
        """
        if not self.table.is_file() or sha256_of(self.table) != self.sha256:
            raise InputError(f"its {self.table.name} is not what was published; run `anon-pipeline releases verify`")

    def spec_for(self, spec: ReleaseSpec, written_as_here: bool) -> ReleaseSpec:
        """Its spec, about the source of another one, without the columns that only that one names.

        Everything that its policy does not state has its default, and is not what the other spec says.

        Parameters
        ----------
        written_as_here : the file is read as the other spec reads it; otherwise as it was read for this table

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
            # Neither groups nor known classes depend on a hierarchy, whose file may lie elsewhere.
            name: {key: value for key, value in column.items() if key != "hierarchy"}
            for name, column in self.policy["columns"].items()
        }
        others = [name for name, column in spec.columns.items() if name not in columns and not column.made]
        said = {name: value for name, value in self.policy["source"].items() if value is not None}
        try:
            read = ReleaseSpec.model_validate(
                {
                    **self.policy,
                    "columns": columns | {name: {"role": "exclude"} for name in others},
                    "privacy": demands,
                    "source": {"path": "", **said},
                }
            )
        except (ValidationError, InputError):
            raise InputError("its spec cannot be read by this version") from None
        stated_names = set(ReleaseSpec.model_fields) - set(NO_POLICY) - {"source"} | {"privacy"}
        changes = {name: getattr(read, name) for name in stated_names}
        if written_as_here:
            written = {name: {key: getattr(spec.columns[name], key) for key in WRITTEN} for name in spec.columns}
            changes["columns"] = {
                name: column.model_copy(update=written.get(name, {})) for name, column in read.columns.items()
            }
        else:
            how = {name: getattr(read.source, name) for name in SAID_OF_SOURCE}
            # The same people may have come from a text file then, and now from none.
            changes["source"] = as_that_kind(spec.source.model_copy(update=how), spec.source_path)
        return spec.model_copy(update=changes)


#: Keys of a column that say how a file writes it.
WRITTEN = ("format", "missing")


def standing_releases(home: Home) -> list[StandingRelease]:
    """All of a home, oldest first, without synthetic tables and noisy answers, which have privacy of another kind.

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
        if content.get("kind") is not None or "questions" in content:
            continue
        try:
            content_hash = opening_of(home, entry.version, entry.dataset).opens.content_hash
        except InputError:
            content_hash = None
        is_groups, rows = content.get("groups") is not None, int(content["rows"]["source"])
        table = folder / (DATA if is_groups else CLASSES)
        sha256 = content["files"][table.name]["sha256"]
        found.append(
            StandingRelease(entry.dataset, entry.version, is_groups, table, sha256, content["spec"], rows, content_hash)
        )
    return found


def releases_beside(home: Home, dataset: str, version: str) -> list[StandingRelease]:
    """Those that a candidate is judged beside; none where it is one of them, since it then publishes nothing new.

    Raises
    ------
    Refused
        As `standing_releases`.
    """
    standing = standing_releases(home)
    return [] if (dataset, version) in {(of.dataset, of.version) for of in standing} else standing
