"""Releases of the same people, counted again from their source: which they are, and who is in which class or group."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import Home, scratch
from anon_pipeline.keys import Secrets
from anon_pipeline.masking.aggregation import MEAN, PEOPLE, Aggregate, aggregate_for_readers
from anon_pipeline.masking.base import RowTechnique, Technique
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.masking.grouping import groups_of
from anon_pipeline.masking.memory import require_memory, usable_memory
from anon_pipeline.masking.sampling import Sample
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run
from anon_pipeline.privacy.group_table import threshold_of
from anon_pipeline.privacy.linked_classes import LinkedClasses
from anon_pipeline.privacy.linked_tables import NOT_IN, LinkedTable
from anon_pipeline.release import known_classes
from anon_pipeline.release.publish import DATA
from anon_pipeline.release.standing_releases import StandingRelease
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.guarantees import ABSENT
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.spec.policy import SAID_OF_SOURCE

#: Why nobody can tell where the source is another one than the candidate was made from.
CHANGED = "the source has changed since it was read; run it again"


@dataclass(frozen=True, eq=False)
class Linked:
    """A release beside others of the same people, or the candidate for one.

    Attributes
    ----------
    name : what it is called in sentences
    spec : its policy, about the source of this run
    types : the types in which its source was read
    table : its table of groups, or its table of classes
    classes : the file with the class of each tuple of quasi-identifiers, or of each person who is followed; for rows
        only
    dataset : whose release it is
    """

    name: str
    spec: ReleaseSpec
    types: Mapping[str, ColumnType]
    table: Path
    classes: Path | None = None
    dataset: str = ""

    @property
    def step(self) -> Aggregate:
        return aggregate_for_readers(self.spec)

    @property
    def used(self) -> Sequence[str]:
        """The columns from which its groups and means, or its classes, are made."""
        return self.step.used if self.classes is None else self.spec.quasi_identifiers

    @property
    def selection(self) -> str:
        """By what draw only some people are in it; empty where everybody is.

        Nothing can be subtracted from it for certain. But its rows can be linked with others, by whoever knows that a
        person is in it: so it is judged beside rows as if all who have the quasi-identifiers of one in it were, too.
        """
        if self.classes is None:
            return ""
        if self.spec.audit.enabled and self.spec.audit.control == "held_out":
            return "people are held out by a draw"
        return "people are drawn by sample" if any(isinstance(step, Sample) for step in self.spec.steps) else ""

    @property
    def regroups(self) -> list[Technique]:
        """Its steps on the whole table that change quasi-identifiers."""
        changing = [step for step in self.spec.steps if not isinstance(step, Sample)]
        return [step for step in cast(list[Technique], changing) if set(step.used) & set(self.used)]

    @property
    def drawn(self) -> str:
        """Why nobody without the private key can tell who is in which of its classes; empty where they can.

        It is then not judged: no rows are linked to a joint cell for certain.
        """
        if self.classes is None:
            return ""
        of_columns = [step for name in self.used for step in self.spec.columns[name].steps]
        steps = [*self.regroups, *cast(list[Technique], of_columns)]
        drawing = [str(step.technique) for step in steps if step.random or step.key_source]
        return f"{drawing[0]} draws, or needs a key" if drawing else ""


class SamePeople:
    """Finds the releases that were made from the source of a run."""

    def __init__(self, run: Run, raw_data: Stage) -> None:
        self.run, self.facts = run, SourceFacts.from_json(raw_data.facts)
        self.rows = self.facts.rows + int(raw_data.facts["held_out"]) + self.facts.left_out
        self.content_hash = raw_data.facts["read"]
        # The same source is read once for all specs that read it in the same way.
        self._as_read: dict[str, SourceFacts | None] = {}

    def of(self, released: StandingRelease) -> Linked | None:
        """The release, if this source, read under its spec, has the content that it was made from.

        The same people may lie in a file that is written in another way, or has more columns: so this source is read
        as this run reads it, and then as the source of the release was read.

        Raises
        ------
        InputError
            If it may be of the same people, and nobody can tell.
        """
        if not self._may_be(released):
            return None
        if released.content_hash is None:
            raise InputError("its opening is not in this home, and it may be of as many people")
        self._require_unchanged()
        for written_as_here in (True, False):
            spec = released.spec_for(self.run.spec, written_as_here)
            read = self._read(spec)
            if read is not None and read.content_hash == released.content_hash:
                released.require_as_published()
                return self._linked(released, spec, read.types())
        return None

    def _may_be(self, released: StandingRelease) -> bool:
        """Whether a release can be of the same people, by their number."""
        return released.rows == self.rows or (released.leaves_out and released.rows < self.rows)

    def _require_unchanged(self) -> None:
        """Check that the source is what the candidate was made from.

        If the candidate is released a day later, it would else pass beside all releases of its people.

        Raises
        ------
        Unavailable
            If it is another one.
        """
        now = self._read(self.run.spec)
        if now is None or now.content_hash != self.content_hash:
            raise Unavailable(CHANGED)

    def _read(self, spec: ReleaseSpec) -> SourceFacts | None:
        """What the source is under another spec; None where it has other columns or values than that reads.

        Raises
        ------
        Unavailable
            If it cannot be read by its own spec now either: then nobody can tell.
        """
        reading = _reading(spec)
        if reading not in self._as_read:
            with scratch(self.run.home.private_folder("scratch")) as folder:
                try:
                    self._as_read[reading] = self.run.engine.store_source(spec, folder / DATA)
                except InputError:
                    self._store(self.run.spec, folder / "own.parquet")
                    self._as_read[reading] = None
        return self._as_read[reading]

    def _store(self, spec: ReleaseSpec, destination: Path) -> SourceFacts:
        """Store the source, which this run could read before; where it cannot now, it may another time."""
        try:
            return self.run.engine.store_source(spec, destination)
        except InputError as error:
            raise Unavailable(str(error)) from None

    def _linked(self, released: StandingRelease, spec: ReleaseSpec, types: Mapping[str, ColumnType]) -> Linked:
        if released.is_groups:
            return Linked(released.name, spec, types, released.table)
        kept = known_classes.kept if spec.across_releases is None else release_history.members
        classes = kept(self.run.home, released.dataset, released.version)
        return Linked(released.name, spec, types, released.table, classes, released.dataset)

    def everybody(self, tables: Sequence[Linked]) -> pa.Table:
        """Everybody, a row each, with the columns of all tables, as the source is read for them.

        Raises
        ------
        InputError
            If the source has changed since, or does not fit into memory.
        """
        run = self.run
        columns = {name: column for name, column in run.spec.columns.items() if not column.made}
        for table in tables:
            for name, kind in table.types.items():
                column = table.spec.columns[name].model_copy(update={"type": kind, "steps": (), "hierarchy": None})
                columns[name] = column
        columns = {
            name: column if column.steps == () else column.model_copy(update={"steps": ()})
            for name, column in columns.items()
        }
        spec = run.spec.model_copy(update={"columns": columns, "steps": (), "missing_target": "release"})
        with scratch(run.home.private_folder("scratch")) as folder:
            stored = self._store(spec, folder / DATA)
            if stored.rows != self.rows:
                raise Unavailable(CHANGED)
            require_memory(stored.rows, len(stored.columns), usable_memory(run.memory_limit))
            return run.engine.everybody(folder / DATA)


def _reading(spec: ReleaseSpec) -> str:
    """What decides how a source is read, as a text: the same for two specs that read the same source alike."""
    columns = {
        name: spec.columns[name].model_dump(mode="json", exclude={"steps", "hierarchy"}) for name in spec.columns
    }
    said = [spec.target, spec.guide.targets, spec.missing_target, spec.sampling_weight, spec.k, spec.aggregates]
    return json.dumps([columns, spec.stored, spec.source.model_dump(mode="json"), said], sort_keys=True)


def require_alike(candidate: Linked, other: Linked) -> None:
    """Check that two tables can be counted from one reading of their source, cell by cell.

    Raises
    ------
    InputError
        If the source is read in two ways, or a step makes groups that do not follow from a person's own values.
    """
    for name in SAID_OF_SOURCE:
        if getattr(candidate.spec.source, name) != getattr(other.spec.source, name):
            raise InputError(f"source.{name} is another one")
    for name in set(candidate.types) & set(other.types):
        mine, theirs = (table.spec.columns[name] for table in (candidate, other))
        if (candidate.types[name], mine.format, mine.missing) != (other.types[name], theirs.format, theirs.missing):
            raise InputError(f"the column {name} is read in another way")
    for table in (candidate, other):
        if len(table.spec.steps) > 1 if table.classes is None else table.regroups:
            raise InputError(f"{table.name} has further steps on the whole table")
        for name in table.used:
            for step in cast(tuple[Technique, ...], table.spec.columns[name].steps):
                if not isinstance(step, RowTechnique) or step.random or step.key_source is not None:
                    raise InputError(
                        f"in {table.name}, {step.technique} on {name} draws, needs a key or looks at other people"
                    )


def masked_columns(table: Linked, people: pa.Table) -> dict[str, pa.Array]:
    """The columns that it uses, as its steps show them."""
    spec = table.spec
    types = {name: table.types[name] for name in table.used}
    steps = {name: cast(tuple[Technique, ...], spec.columns[name].steps) for name in table.used}
    resources = Resources(spec.dataset, None, Secrets(folder=spec.folder), spec.folder)
    masked, _ = apply_steps(people.select(list(table.used)), types, steps, (), resources)
    return {name: masked.column(name).combine_chunks() for name in table.used}


def linked_groups(table: Linked, people: pa.Table) -> tuple[LinkedTable, dict[str, pa.Array]]:
    """A table of groups as it groups these people, compared with what it shows, and the masked columns.

    Raises
    ------
    InputError
        If its counts are not those of these people.
    """
    step, spec = table.step, table.spec
    columns = masked_columns(table, people)
    groups = groups_of([columns[name] for name in step.columns])
    is_in = _is_in(spec, people)
    counts = np.bincount(groups[is_in], minlength=int(groups.max()) + 1)
    first = np.full(len(counts), len(groups))
    np.minimum.at(first, groups, np.arange(len(groups)))
    number_of = {_key(row): number for number, row in enumerate(_rows(columns, step.columns, first))}
    is_published = np.zeros(len(counts), dtype=bool)
    means = {name: np.zeros(len(counts), dtype=bool) for name in step.means}
    for row in pq.read_table(table.table).to_pylist():
        number = number_of.get(_key(tuple(row[name] for name in step.columns)))
        if number is None or row[PEOPLE] != counts[number]:
            raise InputError("its counts are not those of this source under its spec")
        is_published[number] = True
        for name in step.means:
            means[name][number] = row[MEAN + name] is not None
    dominance = max(step.dominance.n / step.dominance.share, 2 + step.dominance.p_percent / 100)
    return LinkedTable(np.where(is_in, groups, NOT_IN), is_published, threshold_of(spec), means, dominance), columns


def linked_classes(home: Home, table: Linked, people: pa.Table) -> LinkedClasses:
    """Rows as their classes group these people, or a table of groups as it groups those whom readers can place.

    Readers can place people by the quasi-identifiers, and by what the step says that they know. Of a group by these
    alone they know all values if any of its finer groups is shown, or so it is taken.

    Raises
    ------
    InputError
        If its classes are not those of these people.
    """
    if table.classes is None:
        groups, columns = linked_groups(table, people)
        step, quasi_identifiers = table.step, table.spec.quasi_identifiers
        placed = [columns[name] for name in step.columns if name in quasi_identifiers or name in (step.known or ())]
        shown = groups.equations(groups.published) != NOT_IN
        by_readers = groups_of(placed) if placed else np.zeros(len(shown), dtype=np.int64)
        counts = np.isin(by_readers, by_readers[shown]) & (groups.groups != NOT_IN)
        return LinkedClasses(np.where(counts, by_readers, NOT_IN), groups.threshold)
    if table.spec.across_releases is not None:
        classes = _classes_of_followed(home, table, people)
    else:
        columns = masked_columns(table, people)
        names = list(columns)
        classes = known_classes.classes_of([columns[name] for name in names], names, table.classes, NOT_IN)
    classes = np.where(_is_in(table.spec, people), classes, NOT_IN)
    sizes = pq.read_table(table.table, columns=["class_size"]).column(0).to_numpy()
    counts = np.bincount(classes[classes != NOT_IN], minlength=len(sizes))
    if len(counts) != len(sizes) or ((counts < sizes) if table.selection else (counts != sizes)).any():
        raise InputError("its classes are not those of this source under its spec")
    return LinkedClasses(classes, table.spec.k)


def _classes_of_followed(home: Home, table: Linked, people: pa.Table) -> IntArray:
    """The class of each person by their identifier, since that of a followed person depends on former classes too."""
    try:
        members = release_history.read(cast(Path, table.classes))
    except (OSError, KeyError, pa.ArrowInvalid):
        raise InputError("who is in which of its classes is not known in this home") from None
    identifiers = people.column(str(table.spec.person)).combine_chunks()
    key = release_history.key(home, table.dataset)
    classes = members.classes_of(release_history.hashed(identifiers, key))
    return np.where(classes == ABSENT, NOT_IN, classes)


def _is_in(spec: ReleaseSpec, people: pa.Table) -> IntArray:
    """Who is not left out for want of a target, shape (n,)."""
    if spec.missing_target != "leave_out":
        return np.ones(len(people), dtype=bool)
    return np.asarray(pc.is_valid(people.column(spec.target)))


def _rows(columns: Mapping[str, pa.Array], names: Sequence[str], places: IntArray) -> list[tuple[Any, ...]]:
    return list(zip(*(columns[name].take(pa.array(places)).to_pylist() for name in names), strict=True))


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a group, with not-a-number as missing."""
    return tuple(None if value != value else value for value in row)
