"""The policy: the part of a spec that a release depends on, as plain data, in the published form of the manifest."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from anon_pipeline.errors import InputError
from anon_pipeline.spec.parts import MOST_LOST, HierarchyFile
from anon_pipeline.spec.source import Source
from anon_pipeline.spec.synthesis import Synthesis

if TYPE_CHECKING:
    from anon_pipeline.spec.release import ReleaseSpec

#: The keys on the format of a source that are part of the published policy.
SAID_OF_SOURCE = {"missing", "delimiter", "encoding", "decimal", "thousands", "symbols"}

#: Keys that cannot change a grouped release, or are published in another form.
NO_POLICY = (
    *("release", "synthesis", "model", "differential_privacy"),
    *("publish", "schedule", "retention", "engine", "frontier", "privacy"),
)


def published_policy(spec: ReleaseSpec) -> dict[str, Any]:
    """A spec without keys that cannot change a release, such as schedule, engine and source path.

    It also lacks keys that select rows of a source (a query, a condition), which may quote unreleased values, and the
    content of files of lists (`hashes_of_lists`).
    """
    if spec.is_synthetic:
        kept = spec.model_dump(mode="json", by_alias=True, include=Synthesis.published, exclude_none=True)
        _drop(kept, ("recipients",), [])
        return kept | {"source": {"missing": list(spec.source.missing)}}
    of_source = set(Source.model_fields) - SAID_OF_SOURCE
    excluded: dict[str, Any] = {**dict.fromkeys(NO_POLICY, True), "source": of_source}
    content = spec.model_dump(mode="json", by_alias=True, exclude=excluded)
    for column in content["columns"].values():
        _drop_unstated_keys(column)
    _drop(content["source"], ("decimal", "thousands"), None)
    _drop(content["source"], ("symbols",), [])
    _drop(content["grouping"], ("most_lost",), MOST_LOST)
    _drop(content, ("person", "across_releases", "across_releases_ended", "across_releases_lowered"), None)
    _drop(content, ("across_releases_unlike", "linked_tables_accepted", "sampling_weight", "missing_target"), None)
    _drop(content, ("approver", "purpose", "license"), None)
    _drop(content, ("recipients",), [])
    if not spec.guide.targets:
        del content["guide"]["targets"]
    content["privacy"] = [{"model": demand.name, **demand.model_dump(mode="json")} for demand in spec.privacy]
    return content


def _drop_unstated_keys(column: dict[str, Any]) -> None:
    """Remove keys that a column does not state, so that new keys do not change policies without them."""
    column.pop("unit")  # only the report uses it
    for name in ("levels", "hierarchy", "format", "missing", "missing_is_a_value"):
        if not column[name]:
            del column[name]


def _drop(content: dict[str, Any], names: tuple[str, ...], value: object) -> None:
    for name in names:
        if content[name] == value:
            del content[name]


def files_of_lists(spec: ReleaseSpec) -> dict[str, str]:
    """The files of lists of values that a spec names, relative to it, by their place in the spec."""
    files = {
        f"columns.{name}.hierarchy": column.hierarchy.file
        for name, column in spec.columns.items()
        if isinstance(column.hierarchy, HierarchyFile)
    }
    steps = {f"columns.{name}.steps": column.steps for name, column in spec.columns.items()} | {"steps": spec.steps}
    for place, of_place in steps.items():
        files |= {f"{place}.{n}": step.list_file for n, step in enumerate(of_place) if step.list_file is not None}
    return files


def hashes_of_lists(spec: ReleaseSpec) -> dict[str, str]:
    """SHA-256 of each file of a list, by its place in the spec. They stay private, as the hash of the source does.

    A release depends on these files. But where one lists the values of the table, its hash would confirm a guess at
    the only person who has a value.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    hashes = {}
    for place, file in files_of_lists(spec).items():
        path = spec.folder / file
        try:
            hashes[place] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"{place}: {path}: cannot be read ({error.strerror})") from None
    return hashes
