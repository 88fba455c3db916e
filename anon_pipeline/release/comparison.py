"""A comparison of a release with its source, column by column: only for people who may see the source.

How many people have a value in the source is in no manifest, since it does not follow from the release. But a steward
who is responsible for a release wants to see it. So it is counted from the source, in groups of at least k people, and
stays in the private zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.value_groups import group_values
from anon_pipeline.engine.base import Engine
from anon_pipeline.engine.typed import natural_type
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, write_file
from anon_pipeline.release import ledger
from anon_pipeline.release.exported_report import manifest_of
from anon_pipeline.release.marginals import NOT_NAMED
from anon_pipeline.release.opening import check_opening, opening_of
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.report import comparison as page
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.tables import Domain

#: The folder in the private zone, with one folder per dataset.
FOLDER = "comparisons"


@dataclass(frozen=True)
class ComparedColumn:
    """People by groups of values, in the source and in the release.

    Attributes
    ----------
    groups : names of the groups
    before : people of the source, at least k in each group; None if the source has no such column
    after : people of the release
    why_not : why the two cannot be compared; empty if they can
    """

    name: str
    role: str
    groups: tuple[str, ...] = ()
    before: tuple[int, ...] | None = None
    after: tuple[int, ...] = ()
    why_not: str = ""


@dataclass(frozen=True)
class Comparison:
    """The compared columns; associations between columns and utility are those of the manifest."""

    manifest: Mapping[str, Any]
    columns: tuple[ComparedColumn, ...]
    page: Path

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.manifest["dataset"],
            "version": self.manifest["version"],
            "page": str(self.page),
            "columns": [asdict(column) for column in self.columns],
            "associations": self.manifest["measured"].get("associations"),
            "utility": self.manifest.get("utility"),
        }


def compare(
    home: Home, version: str, spec: ReleaseSpec, engine: Engine, scratch: Path, dataset: str | None = None
) -> Comparison:
    """Count the source again, check it against the commitment of the release, and write the page for its owner only.

    Parameters
    ----------
    spec : the policy of the release, whose source is read into `scratch`, a private folder

    Raises
    ------
    InputError
        For another source or policy, and for a release that is withdrawn or shows no rows of people.
    Refused
        If the release was altered after its publication.
    """
    entry = ledger.published(home, version, dataset)
    manifest, data = manifest_of(home, entry), home.releases / entry.dataset / entry.version / DATA
    if manifest.get("kind") == "synthetic" or "questions" in manifest or "groups" in manifest:
        raise InputError(f"{version}: shows no rows of people, so there is nothing to put beside the source")
    if not data.exists():
        raise InputError(f"{version}: its table is gone; a release that was withdrawn cannot be compared")
    problems = check_opening(opening_of(home, version, entry.dataset), manifest, spec, engine, scratch)
    if problems:
        raise InputError(f"{version}: {'; '.join(problems)}")
    stored = scratch / "source.parquet"  # written by `check_opening`
    columns = tuple(_compared(spec, engine, stored, data, name) for name in spec.released)
    folder = home.private_folder(FOLDER, entry.dataset)
    file = folder / f"{entry.version}.html"
    write_file(file, page.render(manifest, [asdict(column) for column in columns], spec.k))
    return Comparison(manifest, columns, file)


def _compared(spec: ReleaseSpec, engine: Engine, stored: Path, data: Path, name: str) -> ComparedColumn:
    plain = ComparedColumn(name, spec.columns[name].role)
    try:
        after = _domain(engine, data, name)
        before = None if spec.columns[name].made else _domain(engine, stored, name)
    except InputError:  # more different texts than an engine can count
        return ComparedColumn(name, plain.role, why_not="it has too many different values")
    untold = _untold(data.with_name(CLASSES), name, after, before) if name in spec.quasi_identifiers else 0
    if before is None or before.type is not after.type:
        why = "a step makes it" if before is None else "the release shows values of another kind"
        return ComparedColumn(name, plain.role, *_alone(after, spec.k, untold), why)
    return ComparedColumn(name, plain.role, *side_by_side(before, after, spec.k, untold))


def _alone(after: Domain, k: int, untold: int) -> tuple[tuple[str, ...], None, tuple[int, ...]]:
    """The groups of a column's values in the release, and their people, where there is nothing to put beside them."""
    after = _without(after, untold)
    groups = group_values(after, k)
    people = _counts(after, groups.of_code, len(groups.labels))
    return ((*groups.labels, NOT_NAMED), None, (*people, untold)) if untold else (groups.labels, None, people)


def _untold(classes: Path, name: str, after: Domain, before: Domain | None) -> int:
    """How many people the release shows no value, though their class does not say that members have none.

    A table has one sign for both. Of a number, a class whose interval has no end says it, if it says that some have no
    value; a class of an interval has members with a value. Where no class names any number, none says it. A class that
    is wide enough to be open at both ends looks the same, so no more people are taken to have none than in the source,
    `before`, where it has the column.
    """
    table = pd.read_parquet(classes)
    hidden = table[name].isna()
    if f"{name}_missing" in table:
        ends = table[[f"{name}_low", f"{name}_high"]].isna().all(axis=1)
        says = table[f"{name}_missing"].fillna(False).astype(bool) & ends & (not (ends & hidden).all())
    else:  # a category of which nothing is shown is a star here
        says = hidden
    said = int(table["class_size"][hidden & says].sum())
    if before is not None:
        said = min(said, int(before.counts[0]))
    return max(int(after.counts[0]) - said, 0)


def _without(domain: Domain, people: int) -> Domain:
    """The same column without some people of those who have no value."""
    counts = domain.counts.copy()
    counts[0] -= people
    return replace(domain, counts=counts)


def _domain(engine: Engine, table: Path, name: str) -> Domain:
    """The values as they are stored, whatever type is declared: a release may show numbers as texts of ranges."""
    (domain,) = engine.domains(table, {name: natural_type(engine.columns(table)[name])})
    return domain


def side_by_side(
    before: Domain, after: Domain, k: int, untold: int = 0
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """The groups of a column's values in the source, each of at least k people, and their people on both sides.

    The last group holds people of whom the release shows no value, or one that is not in the source.

    Parameters
    ----------
    before, after : the same column with the same type
    untold : how many of those without a value in the release are not said to have none

    Returns
    -------
    labels, people before, people after, all of the same length
    """
    groups, after = group_values(before, k), _without(after, untold)
    if not groups.labels:
        return (), (), ()
    if before.type is ColumnType.DATE:  # a release may show days where the source has times, too
        unit = before.readable(before.values).dtype
        after = replace(after, values=after.readable(after.values).astype(unit).astype(np.int64))
    own = len(groups.labels)
    if groups.place is not None:
        of_value = groups.place(after.values)
    else:
        known = {value: int(groups.of_code[code]) for code, value in enumerate(before.values.tolist(), start=1)}
        of_value = np.array([known.get(value, own) for value in after.values.tolist()], dtype=np.int64)
    missing = int(groups.of_code[0]) if before.counts[0] else own
    people = _counts(after, np.r_[missing, of_value].astype(np.int64), own + 1)
    people = (*people[:-1], people[-1] + untold)
    original = _counts(before, groups.of_code, own)
    if not people[-1]:
        return groups.labels, original, people[:-1]
    return (*groups.labels, NOT_NAMED), (*original, 0), people


def _counts(domain: Domain, group_of_code: np.ndarray[Any, Any], groups: int) -> tuple[int, ...]:
    counted = np.zeros(groups, dtype=np.int64)
    held = group_of_code >= 0
    np.add.at(counted, group_of_code[held], domain.counts[held])
    return tuple(counted.tolist())
