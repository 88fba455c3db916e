"""A table of groups beside the released ones of the same people: all are counted again from the source, and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import scratch
from anon_pipeline.keys import Secrets
from anon_pipeline.masking.aggregation import MEAN, PEOPLE, Aggregate, aggregate_for_readers
from anon_pipeline.masking.base import RowTechnique, Technique
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.masking.grouping import groups_of
from anon_pipeline.masking.memory import require_memory, usable_memory
from anon_pipeline.masking.numbers import to_floats
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.privacy.group_table import threshold_of
from anon_pipeline.privacy.linked_tables import (
    NOT_IN,
    LinkedTable,
    Undecided,
    newly_known_counts,
    newly_known_means,
)
from anon_pipeline.release.publish import DATA
from anon_pipeline.release.standing_groups import StandingGroups, standing_groups
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.spec.policy import SAID_OF_SOURCE

#: What helps where a table tells too much beside another one.
REMEDY = (
    "release only the finer of the tables, group this one as the other or more coarsely, withdraw the other "
    "(`anon-pipeline releases withdraw`), or say why it may be known, for everybody to read: "
    "linked_tables_accepted: <why>"
)
#: What helps where nobody can tell now, which `linked_tables_accepted` does not speak of.
AGAIN = "run it again; what cannot be judged now is not accepted by linked_tables_accepted"
#: Why nobody can tell where the source is another one than the candidate was made from.
CHANGED = "the source has changed since it was read; run it again"


@dataclass(frozen=True)
class Together:
    """What a candidate tells together with released tables of groups of the same people.

    Attributes
    ----------
    counts, means : at least how many counts below the threshold, and hidden means, are known
    beside : the releases
    unjudged : why a release of the same people cannot be judged, by release
    may_pass : whether one of these can be judged another time, so that nobody can have accepted what it tells
    """

    counts: int = 0
    means: int = 0
    beside: tuple[str, ...] = ()
    unjudged: Mapping[str, str] | None = None
    may_pass: bool = False

    @property
    def problems(self) -> int:
        return self.counts + self.means + len(self.unjudged or {})

    @property
    def wrong(self) -> str:
        """What is known, or cannot be judged, and beside which releases."""
        wrong = [
            f"{name} is of the same people and cannot be judged: {why}" for name, why in (self.unjudged or {}).items()
        ]
        if self.counts or self.means:
            known = [f"{self.counts} counts of fewer people than the threshold"] * bool(self.counts)
            known += [f"{self.means} hidden means"] * bool(self.means)
            wrong.append(
                f"beside {', '.join(self.beside)}, of the same people, at least {' and '.join(known)} are known"
            )
        return "; ".join(wrong)

    @property
    def sentence(self) -> str:
        """What is wrong and what helps, without a value of a person; empty where nothing is."""
        return f"{self.wrong}; {AGAIN if self.may_pass else REMEDY}" if self.problems else ""


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of groups: its spec, the types in which its source was read, and the published or stored file."""

    name: str
    spec: ReleaseSpec
    types: Mapping[str, ColumnType]
    file: Path

    @property
    def step(self) -> Aggregate:
        return aggregate_for_readers(self.spec)


def told_together(run: Run, raw_data: Stage, aggregated_table: Stage) -> Together:
    """Judge the stored candidate beside every released table of groups of the same people, of any dataset.

    A candidate that stands already publishes nothing new and is not judged again.

    Raises
    ------
    Refused
        If a released manifest is not what was published.
    InputError
        If the source cannot be read again.
    """
    spec, facts = run.spec, SourceFacts.from_json(raw_data.facts)
    standing = standing_groups(run.home)
    if (spec.dataset, aggregated_table.facts["version"]) in {(of.dataset, of.version) for of in standing}:
        return Together()
    candidate = _Table("this table", spec, facts.types(), aggregated_table.folder / DATA)
    errors: dict[str, Exception] = {}
    others: list[_Table] = []
    of_others: list[StandingGroups] = []
    for released in standing:
        try:
            other = _of_same_people(run, facts, released)
            if other is not None:
                require_alike(candidate, other)
                others.append(other)
            else:
                of_others.append(released)
        except InputError as error:
            errors[released.name] = error
    errors |= _if_changed(run, raw_data, [released for released in of_others if _may_be(facts, released)])
    for released in of_others:
        if released.dataset == spec.dataset and released.name not in errors:
            log.info("%s: %s is of other people, and is not judged with this table", spec.dataset, released.version)
    together = Together()
    if others:
        try:
            people = _people(run, facts, [candidate, *others])
            judged = {table.name: _linked(table, people) for table in (candidate, *others)}
            together = _judge(candidate, others, judged)
        except (InputError, Undecided) as error:
            errors |= {table.name: error for table in others}
    return replace(
        together,
        unjudged={name: str(error) for name, error in errors.items()},
        may_pass=any(isinstance(error, Unavailable) for error in errors.values()),
    )


def _of_same_people(run: Run, facts: SourceFacts, released: StandingGroups) -> _Table | None:
    """The released table, if this source, read under its spec, has the content that it was made from.

    The same people may lie in a file that is written in another way, or has more columns: so this source is read as
    this run reads it, and then as the source of the released table was read.

    Raises
    ------
    InputError
        If it may be of the same people, and nobody can tell.
    """
    if not _may_be(facts, released):
        return None
    if released.content_hash is None:
        raise InputError("its opening is not in this home, and it may be of as many people")
    ways = [released.spec_for(run.spec, written_as_here) for written_as_here in (True, False)]
    is_one = all(getattr(ways[0], name) == getattr(ways[1], name) for name in ("source", "columns"))
    for spec in ways[:1] if is_one else ways:
        stored = _read(run, spec)
        if stored is not None and stored.content_hash == released.content_hash:
            released.require_as_published()
            return _Table(released.name, spec, stored.types(), released.table)
    return None


def _may_be(facts: SourceFacts, released: StandingGroups) -> bool:
    """Whether a released table can be of the same people, by their number."""
    everybody = facts.rows + facts.left_out
    return released.rows == everybody or (released.leaves_out and released.rows < everybody)


def _if_changed(run: Run, raw_data: Stage, of_others: Sequence[StandingGroups]) -> dict[str, Exception]:
    """Why nobody can tell of whom some tables are, which are not of the people who are in the source now, by name.

    The candidate is of the people who were in it then: if it is released a day later, it would pass beside all others.
    """
    if not of_others:
        return {}
    now = _read(run, run.spec)
    if now is not None and now.content_hash == raw_data.facts["read"]:
        return {}
    return {released.name: Unavailable(CHANGED) for released in of_others}


def _read(run: Run, spec: ReleaseSpec) -> SourceFacts | None:
    """What the source of this run is under another spec; None where it has other columns or values than that reads.

    Raises
    ------
    Unavailable
        If it cannot be read by its own spec now either: then nobody can tell.
    """
    with scratch(run.home.private_folder("scratch")) as folder:
        try:
            return run.engine.store_source(spec, folder / DATA)
        except InputError:
            _store(run, run.spec, folder / "own.parquet")
            return None


def _store(run: Run, spec: ReleaseSpec, destination: Path) -> SourceFacts:
    """Store the source, which this run could read before; where it cannot now, it may another time."""
    try:
        return run.engine.store_source(spec, destination)
    except InputError as error:
        raise Unavailable(str(error)) from None


def require_alike(candidate: _Table, other: _Table) -> None:
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
        if len(table.spec.steps) > 1:
            raise InputError(f"{table.name} has further steps on the whole table")
        for name in table.step.used:
            for step in cast(tuple[Technique, ...], table.spec.columns[name].steps):
                if not isinstance(step, RowTechnique) or step.random or step.key_source is not None:
                    raise InputError(
                        f"in {table.name}, {step.technique} on {name} draws, needs a key or looks at other people"
                    )


def _people(run: Run, facts: SourceFacts, tables: Sequence[_Table]) -> pa.Table:
    """Everybody, a row each, with the columns of all tables, as the source is read for them.

    Raises
    ------
    InputError
        If the source has changed since, or does not fit into memory.
    """
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
        stored = _store(run, spec, folder / DATA)
        if stored.rows != facts.rows + facts.left_out:
            raise Unavailable(CHANGED)
        require_memory(stored.rows, len(stored.columns), usable_memory(run.memory_limit))
        return run.engine.everybody(folder / DATA)


def _linked(table: _Table, people: pa.Table) -> tuple[LinkedTable, dict[str, pa.Array]]:
    """The table as it groups these people, compared with what it shows, and the masked columns.

    Raises
    ------
    InputError
        If its counts are not those of these people.
    """
    step, spec = table.step, table.spec
    types = {name: table.types[name] for name in step.used}
    steps = {name: cast(tuple[Technique, ...], spec.columns[name].steps) for name in step.used}
    secrets = Secrets(folder=spec.folder)
    masked, _ = apply_steps(
        people.select(step.used), types, steps, (), Resources(spec.dataset, None, secrets, spec.folder)
    )
    columns = {name: masked.column(name).combine_chunks() for name in step.used}
    groups = groups_of([columns[name] for name in step.columns])
    is_in = np.ones(len(groups), dtype=bool)
    if spec.missing_target == "leave_out":
        is_in = np.asarray(pc.is_valid(people.column(spec.target)))
    counts = np.bincount(groups[is_in], minlength=int(groups.max()) + 1)
    first = np.full(len(counts), len(groups))
    np.minimum.at(first, groups, np.arange(len(groups)))
    number_of = {_key(row): number for number, row in enumerate(_rows(columns, step.columns, first))}
    is_published = np.zeros(len(counts), dtype=bool)
    means = {name: np.zeros(len(counts), dtype=bool) for name in step.means}
    for row in pq.read_table(table.file).to_pylist():
        number = number_of.get(_key(tuple(row[name] for name in step.columns)))
        if number is None or row[PEOPLE] != counts[number]:
            raise InputError("its counts are not those of this source under its spec")
        is_published[number] = True
        for name in step.means:
            means[name][number] = row[MEAN + name] is not None
    dominance = max(step.dominance.n / step.dominance.share, 2 + step.dominance.p_percent / 100)
    return LinkedTable(np.where(is_in, groups, NOT_IN), is_published, threshold_of(spec), means, dominance), columns


def _rows(columns: Mapping[str, pa.Array], names: Sequence[str], places: IntArray) -> list[tuple[Any, ...]]:
    return list(zip(*(columns[name].take(pa.array(places)).to_pylist() for name in names), strict=True))


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a group, with not-a-number as missing."""
    return tuple(None if value != value else value for value in row)


def _judge(
    candidate: _Table,
    others: Sequence[_Table],
    judged: Mapping[str, tuple[LinkedTable, dict[str, pa.Array]]],
) -> Together:
    """The verdict on the candidate beside all others; the releases that it names are those that tell by themselves."""

    def of(beside: Sequence[_Table]) -> tuple[int, int]:
        tables = [candidate, *beside]
        linked = [judged[table.name][0] for table in tables]
        known = [
            judged[table.name][1][name]
            for table in tables
            for name in table.step.columns
            if name in (table.step.known or ())
        ]
        counts = newly_known_counts(linked[0], linked[1:], groups_of(known) if known else None)
        means = 0
        for name in candidate.step.means:
            values: FloatArray = to_floats(judged[candidate.name][1][name])
            means += newly_known_means(linked[0], linked[1:], name, values)
        return counts, means

    counts, means = of(others)
    if not counts and not means:
        return Together()
    named = [table.name for table in others if len(others) > 1 and any(of([table]))]
    return Together(counts, means, tuple(named or [table.name for table in others]))
