"""Releases of the same people: finds those that were made from the source of a run, and whether they can be judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pyarrow as pa

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.engine.stored_kinds import content_hash_as, kinds_of
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import scratch
from anon_pipeline.masking.aggregation import Aggregate, aggregate_for_readers
from anon_pipeline.masking.base import RowTechnique, Technique
from anon_pipeline.masking.memory import require_memory, usable_memory
from anon_pipeline.masking.sampling import Sample
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run
from anon_pipeline.privacy.base import PrivacyModel, privacy_models
from anon_pipeline.release import known_classes
from anon_pipeline.release.publish import DATA
from anon_pipeline.release.spec_folders import newest_folder
from anon_pipeline.release.standing_releases import StandingRelease, in_other_capitals
from anon_pipeline.sequential import release_history
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
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
    kinds : the kinds in which its source was stored, by column; empty where they are not known
    folder : the folder of its spec, to which the files that its steps name are relative; None for that of `spec`
    """

    name: str
    spec: ReleaseSpec
    types: Mapping[str, ColumnType]
    table: Path
    classes: Path | None = None
    dataset: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def step(self) -> Aggregate:
        return aggregate_for_readers(self.spec)

    @property
    def used(self) -> Sequence[str]:
        """The columns from which its groups and means, or its classes, are made."""
        return self.step.used if self.classes is None else self.spec.quasi_identifiers

    @property
    def readers(self) -> frozenset[str]:
        """The columns whose values its readers are taken to know of everybody."""
        return frozenset([*self.spec.quasi_identifiers, *((self.step.known or ()) if self.classes is None else ())])

    @property
    def protected(self) -> frozenset[str]:
        """The columns on which it has demands beyond k; of rows only."""
        columns = {demand.sensitive_column for demand in self.demands if demand.population_file is None}
        every = self.spec.with_role(Role.SENSITIVE) if None in columns else []
        return frozenset([*every, *(column for column in columns if column is not None)])

    @property
    def demands(self) -> list[PrivacyModel]:
        """Its demands beyond k; a table of groups has none on the values it shows."""
        if self.classes is None:
            return []
        return privacy_models([demand for demand in self.spec.privacy if demand.name != "k_anonymity"])

    @property
    def selection(self) -> str:
        """By what draw only some people are in it; empty where everybody is.

        Beside rows both are judged: readers who do not know who was drawn, for whom all who have the quasi-identifiers
        of one in it may be in it, and those who know, who have fewer candidates.
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


class SamePeople:
    """Finds the releases that were made from the source of a run."""

    def __init__(self, run: Run, raw_data: Stage) -> None:
        self.run, self.facts = run, SourceFacts.from_json(raw_data.facts)
        self.rows = self.facts.rows + int(raw_data.facts["held_out"]) + self.facts.left_out
        self.content_hash = raw_data.facts["read"]
        self.kinds: Mapping[str, str] = raw_data.facts.get("kinds", {})
        # The same source is read once for all specs that read it in the same way.
        self._as_read: dict[tuple[str, frozenset[tuple[str, str]]], SourceFacts | None] = {}

    def of(self, released: StandingRelease) -> Linked | None:
        """The release, if this source, read under its spec, has the content that it was made from.

        The same people may lie in a file that is written or stored in another way, or has more columns: so this source
        is read in every way that follows from what the two specs say of it.

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
        for spec in released.readings(self.run.spec):
            read = self._read(spec, released.kinds)
            if read is not None and read.content_hash == released.content_hash:
                released.require_as_published()
                self._require_same_names(spec)
                return self._linked(released, spec, read.types())
        return None

    def _require_same_names(self, spec: ReleaseSpec) -> None:
        """Check that no column of the same people is written in other capitals: SQL would take both for one.

        Raises
        ------
        InputError
            Naming the column.
        """
        for name, other in in_other_capitals(self.run.spec, spec).items():
            raise InputError(f"the column {name} is called {other} there; call it so here, too (source.rename)")

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
        now = self._read(self.run.spec, {})
        if now is None or now.content_hash != self.content_hash:
            raise Unavailable(CHANGED)

    def _read(self, spec: ReleaseSpec, kinds: Mapping[str, str]) -> SourceFacts | None:
        """What the source is under another spec; None where it has other columns or values than that reads.

        Parameters
        ----------
        kinds : those for which its content is hashed, where its values are in others

        Raises
        ------
        Unavailable
            If it cannot be read just now, or by its own spec either: then nobody can tell.
        """
        reading, no_kinds = _reading(spec), frozenset[tuple[str, str]]()
        asked = reading, frozenset(kinds.items())
        if asked not in self._as_read:
            with scratch(self.run.home.private_folder("scratch")) as folder:
                try:
                    read = self.run.engine.store_source(spec, folder / DATA)
                    here = frozenset(kinds_of(folder / DATA).items())
                    self._as_read |= {(reading, no_kinds): read, (reading, here): read}
                    if asked not in self._as_read:
                        in_kinds = content_hash_as(folder / DATA, kinds) or read.content_hash
                        self._as_read[asked] = replace(read, content_hash=in_kinds)
                except Unavailable:
                    raise  # another spec reads more columns, for which there may be no memory left
                except InputError:
                    self._store(self.run.spec, folder / "own.parquet")
                    self._as_read[asked] = None
        return self._as_read[asked]

    def _store(self, spec: ReleaseSpec, destination: Path) -> SourceFacts:
        """Store the source, which this run could read before; where it cannot now, it may another time."""
        try:
            return self.run.engine.store_source(spec, destination)
        except InputError as error:
            raise Unavailable(str(error)) from None

    def _linked(self, released: StandingRelease, spec: ReleaseSpec, types: Mapping[str, ColumnType]) -> Linked:
        kept = known_classes.kept if spec.across_releases is None else release_history.members
        classes = None if released.is_groups else kept(self.run.home, released.dataset, released.version)
        of_dataset = released.dataset, released.kinds, newest_folder(self.run.home, released.dataset)
        return Linked(released.name, spec, types, released.table, classes, *of_dataset)

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
                if column.role is Role.EXCLUDE:  # it was read for a step only, and there is none here
                    column = column.model_copy(update={"role": Role.INSENSITIVE})
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


def follows_from_the_value(step: Technique) -> bool:
    """Whether what a step shows of a person follows from the value, with nothing drawn, secret or of other people."""
    return isinstance(step, RowTechnique) and not step.random and step.key_source is None


def require_alike(candidate: Linked, other: Linked) -> None:
    """Check that two tables can be counted from one reading of their source, cell by cell, and so judged together.

    Raises
    ------
    InputError
        If the source is read in two ways, a step makes groups that do not follow from a person's own values, or people
        are drawn: how certain it is what is left of a class less a group depends on how many are not.
    """
    for rows, groups in ((candidate, other), (other, candidate)):
        if groups.classes is None and rows.selection:
            raise InputError(f"in {rows.name}, {rows.selection}")
    for name in SAID_OF_SOURCE:
        if getattr(candidate.spec.source, name) != getattr(other.spec.source, name):
            raise InputError(f"source.{name} is another one")
    for name in set(candidate.types) & set(other.types):
        mine, theirs = (table.spec.columns[name] for table in (candidate, other))
        if (candidate.types[name], mine.format, mine.missing) != (other.types[name], theirs.format, theirs.missing):
            raise InputError(f"the column {name} is read in another way")
    for table in (candidate, other):
        _require_own_values(table)


def _require_own_values(table: Linked) -> None:
    """
    Raises
    ------
    InputError
        If its groups or classes do not follow from each person's own values.
    """
    if len(table.spec.steps) > 1 if table.classes is None else table.regroups:
        raise InputError(f"{table.name} has further steps on the whole table")
    for name in table.used:
        if table.spec.columns[name].made:
            raise InputError(f"in {table.name}, {name} is made by a step on the whole table")
        for step in cast(tuple[Technique, ...], table.spec.columns[name].steps):
            if not follows_from_the_value(step):
                raise InputError(
                    f"in {table.name}, {step.technique} on {name} draws, needs a key or looks at other people"
                )
