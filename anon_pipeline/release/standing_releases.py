"""The releases that were not withdrawn, of groups and of rows, and what is needed to judge others beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
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
    kinds : the kinds in which its source was stored, by column; empty where they are not known
    """

    dataset: str
    version: str
    is_groups: bool
    table: Path
    sha256: str
    policy: dict[str, Any]
    rows: int
    content_hash: str | None
    kinds: Mapping[str, str] = field(default_factory=dict)

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

    def readings(self, spec: ReleaseSpec) -> Iterator[ReleaseSpec]:
        """Its spec, about the source of another one, for each way in which that may be written.

        The same people may lie in a file that is written in another way: so each of how the file is written, what
        marks a missing value and how dates are written is taken as the other spec says it, and as this one did.

        Raises
        ------
        InputError
            If its policy is not one that this code reads.
        """
        read = self._read(spec)
        there = in_other_capitals(spec, read)
        named = {
            name: column
            for name, column in read.columns.items()
            if name in spec.columns or name in there.values() or _is_needed(read, name)
        }
        called = called_as_there(spec, there)
        stated_names = set(ReleaseSpec.model_fields) - set(NO_POLICY) - {"source"} | {"privacy"}
        changes = {name: getattr(read, name) for name in stated_names}
        for file_of, marks_of in product((spec, read), repeat=2):
            said = {key: getattr(marks_of.source if key in MARKS else file_of.source, key) for key in SAID_OF_SOURCE}
            # The same people may have come from a text file then, and now from none.
            source = as_that_kind(spec.source.model_copy(update=said | called), spec.source_path)
            for formats_of, only_stored in product((spec, read), (True, False)):
                columns = {
                    name: column.model_copy(
                        update={
                            "missing": _said(name, "missing", marks_of, read, spec, only_stored),
                            "format": _said(name, "format", formats_of, read, spec, only_stored),
                        }
                    )
                    for name, column in named.items()
                }
                yield spec.model_copy(update=changes | {"source": source, "columns": columns})

    def _read(self, spec: ReleaseSpec) -> ReleaseSpec:
        """Its spec, without the place of its source.

        Everything that its policy does not state has its default, and is not what the other spec says.
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
        # A column that a step makes is not one of a source in other letters: beside it the spec cannot be read.
        known = {name.casefold() for name, column in columns.items() if name in spec.columns or not column.get("made")}
        others = [name for name, column in spec.columns.items() if name.casefold() not in known and not column.made]
        said = {name: value for name, value in self.policy["source"].items() if value is not None}
        try:
            return ReleaseSpec.model_validate(
                {
                    **self.policy,
                    "columns": columns | {name: {"role": "exclude"} for name in others},
                    "privacy": demands,
                    "source": {"path": "", **said},
                }
            )
        except (ValidationError, InputError):
            raise InputError("its spec cannot be read by this version") from None


#: Keys of a source that mark a value as missing.
MARKS = ("missing",)


def in_other_capitals(spec: ReleaseSpec, other: ReleaseSpec) -> dict[str, str]:
    """The columns of a source that another spec writes in other capitals, each with its name there."""
    there = {name.casefold(): name for name, column in other.columns.items() if not column.made}
    called = {name: there.get(name.casefold(), name) for name, column in spec.columns.items() if not column.made}
    return {name: named for name, named in called.items() if name != named}


def called_as_there(spec: ReleaseSpec, called: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The keys of a spec's source by which these columns have their names in another spec."""
    rename, in_file = dict(spec.source.rename), {new: old for old, new in spec.source.rename.items()}
    rename |= {in_file.get(name, name): other for name, other in called.items() if name not in spec.source.paths}
    return {"rename": rename, "paths": {called.get(name, name): path for name, path in spec.source.paths.items()}}


def _is_needed(spec: ReleaseSpec, name: str) -> bool:
    """Whether a source without this column cannot be read: it is not, if nothing is read from it."""
    return spec.columns[name].made or name in spec.stored


def _said(name: str, key: str, said_by: ReleaseSpec, own: ReleaseSpec, other: ReleaseSpec, only_stored: bool) -> Any:
    """What a spec says of how a column is written, or another one where it need not say it, since it reads no such."""
    says_nothing = name not in said_by.columns or (only_stored and said_by is other and name not in other.stored)
    return getattr((own if says_nothing else said_by).columns[name], key)


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
        content_hash, kinds = _opened(home, entry)
        is_groups, rows = content.get("groups") is not None, int(content["rows"]["source"])
        table = folder / (DATA if is_groups else CLASSES)
        sha256 = content["files"][table.name]["sha256"]
        policy = content["spec"]
        found.append(
            StandingRelease(entry.dataset, entry.version, is_groups, table, sha256, policy, rows, content_hash, kinds)
        )
    return found


def _opened(home: Home, entry: ledger.Entry) -> tuple[str | None, Mapping[str, str]]:
    """The content of the source of a release and the kinds in which it was stored, if its opening is in this home."""
    try:
        opening = opening_of(home, entry.version, entry.dataset)
    except InputError:
        return None, {}
    return opening.opens.content_hash, opening.kinds


def releases_beside(home: Home, dataset: str, version: str) -> list[StandingRelease]:
    """Those that a candidate is judged beside; none where it is one of them, since it then publishes nothing new.

    Raises
    ------
    Refused
        As `standing_releases`.
    """
    standing = standing_releases(home)
    return [] if (dataset, version) in {(of.dataset, of.version) for of in standing} else standing
