"""A table of groups beside the released ones of the same people: all are counted again from the source, and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError
from anon_pipeline.masking.grouping import groups_of
from anon_pipeline.masking.numbers import to_floats
from anon_pipeline.pipeline.linked_releases.people import linked_classes, linked_groups
from anon_pipeline.pipeline.linked_releases.question import Beside
from anon_pipeline.pipeline.linked_releases.same_people import Linked, SamePeople, require_alike
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.privacy.linked_releases.classes import LinkedClasses, known_by_difference, newly_known_beside_rows
from anon_pipeline.privacy.linked_releases.rows_and_groups import newly_known_unions
from anon_pipeline.privacy.linked_releases.tables import LinkedTable, Undecided, newly_known_counts, newly_known_means
from anon_pipeline.privacy.linked_releases.values import failing_beside_groups
from anon_pipeline.release.publish import DATA
from anon_pipeline.release.standing_releases import releases_beside

#: What helps where a table tells too much beside another one.
REMEDY = (
    "release only the finer of the tables, group this one as the other or more coarsely, withdraw the other "
    "(`anon-pipeline releases withdraw`), or say why it may be known, for everybody to read: "
    "linked_tables_accepted: <why>"
)


def told_together(run: Run, raw_data: Stage, aggregated_table: Stage) -> Beside:
    """Judge the stored candidate beside every release of the same people, of any dataset.

    Raises
    ------
    Refused
        If a released manifest is not what was published.
    """
    spec, same, beside = run.spec, SamePeople(run, raw_data), Beside(REMEDY)
    candidate = Linked("this table", spec, same.facts.types(), aggregated_table.folder / DATA, kinds=same.kinds)
    others: list[Linked] = []
    for released in releases_beside(run.home, spec.dataset, aggregated_table.facts["version"]):
        try:
            other = same.of(released)
            if other is not None:
                require_alike(candidate, other)
                others.append(other)
            elif released.dataset == spec.dataset:
                log.info("%s: %s is of other people, and is not judged with this table", spec.dataset, released.version)
        except InputError as error:
            beside.add_unjudged(released.name, error)
    if others:
        try:
            _judge_all(run, same.everybody([candidate, *others]), candidate, others, beside)
        except InputError as error:
            for other in others:
                beside.add_unjudged(other.name, error)
    return beside


def _judge_all(run: Run, people: pa.Table, candidate: Linked, others: Sequence[Linked], beside: Beside) -> None:
    """Judge the candidate beside the tables of groups, and beside each release of rows."""
    tables = [other for other in others if other.classes is None]
    judged = {table.name: linked_groups(table, people) for table in (candidate, *tables)}
    try:
        counts, means, named = _judge(candidate, tables, judged) if tables else (0, 0, [])
        known = [f"{counts} counts of fewer people than the threshold"] * bool(counts)
        known += [f"{means} hidden means"] * bool(means)
        told = f"beside {', '.join(named)}, of the same people, at least {' and '.join(known)} are known"
        beside.add(counts + means, told)
    except Undecided as error:
        for table in tables:
            beside.add_unjudged(table.name, error)
    _judge_beside_rows(run, people, candidate, others, beside)


def _judge_beside_rows(run: Run, people: pa.Table, candidate: Linked, others: Sequence[Linked], beside: Beside) -> None:
    """Judge the candidate beside each release of rows, the linked rows of all of them, and these with all tables."""
    readers = candidate.readers.union(*(other.readers for other in others))
    protected = frozenset[str]().union(*(other.protected for other in others))
    rows: dict[str, LinkedClasses] = {}
    for other in (of for of in others if of.classes is not None):
        try:
            mine, rows[other.name] = (
                linked_classes(run.home, table, people, readers, protected) for table in (candidate, other)
            )
        except InputError as error:
            beside.add_unjudged(other.name, error)
        else:
            beside.add_difference(other.name, known_by_difference(mine, rows[other.name]))
    if len(rows) > 1:
        beside.add_difference(", ".join(rows), newly_known_beside_rows(mine, list(rows.values())))
    for failing in failing_beside_groups(mine, list(rows.values()), mine) if rows else []:
        beside.add_failing(list(rows), failing, list(rows)[failing.of - 1])
    tables = [other for other in others if other.classes is None]
    if rows and tables and not beside.problems:
        groups = [linked_classes(run.home, table, people, readers) for table in tables]
        asked = mine, list(rows.values()), groups
        beside.add_together(
            [*rows, *(table.name for table in tables)], lambda: newly_known_unions(*asked, has_rows=False)
        )


def _judge(
    candidate: Linked,
    others: Sequence[Linked],
    judged: Mapping[str, tuple[LinkedTable, dict[str, pa.Array]]],
) -> tuple[int, int, list[str]]:
    """Known counts and means, and the releases that tell them: those that do by themselves, if there are any."""

    def of(beside: Sequence[Linked]) -> tuple[int, int]:
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
        return 0, 0, []
    named = [table.name for table in others if len(others) > 1 and any(of([table]))]
    return counts, means, named or [table.name for table in others]
