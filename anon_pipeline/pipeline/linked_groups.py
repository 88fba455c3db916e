"""A table of groups beside the released ones of the same people: all are counted again from the source, and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.masking.grouping import groups_of
from anon_pipeline.masking.numbers import to_floats
from anon_pipeline.pipeline.linked_people import Linked, SamePeople, linked_classes, linked_groups, require_alike
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.privacy.linked_classes import known_by_difference
from anon_pipeline.privacy.linked_tables import LinkedTable, Undecided, newly_known_counts, newly_known_means
from anon_pipeline.release.publish import DATA
from anon_pipeline.release.standing_releases import StandingRelease, standing_releases

#: What helps where a table tells too much beside another one.
REMEDY = (
    "release only the finer of the tables, group this one as the other or more coarsely, withdraw the other "
    "(`anon-pipeline releases withdraw`), or say why it may be known, for everybody to read: "
    "linked_tables_accepted: <why>"
)
#: What helps where nobody can tell now, which `linked_tables_accepted` does not speak of.
AGAIN = "run it again; what cannot be judged now is not accepted by linked_tables_accepted"


def known_beside(release: str, people: int) -> str:
    """What a table of groups and rows of people tell together."""
    return (
        f"beside {release}, of the same people, what {people:,} people have in groups of fewer than k follows by "
        "subtraction"
    )


def not_judged(release: str, why: str) -> str:
    """A release of the same people of which nobody without the key knows who is in which class."""
    return f"{release} is of the same people and is not judged with this one, since {why}"


@dataclass(frozen=True)
class Together:
    """What a candidate tells together with released tables of groups of the same people.

    Attributes
    ----------
    counts, means : at least how many counts below the threshold, and hidden means, are known
    beside : the tables of groups
    unjudged : why a release of the same people cannot be judged, by release
    may_pass : whether one of these can be judged another time, so that nobody can have accepted what it tells
    rows : people in unions of fewer than k people that are known beside a release of rows, by release
    """

    counts: int = 0
    means: int = 0
    beside: tuple[str, ...] = ()
    unjudged: Mapping[str, str] | None = None
    may_pass: bool = False
    rows: Mapping[str, int] | None = None

    @property
    def problems(self) -> int:
        return self.counts + self.means + len(self.unjudged or {}) + sum((self.rows or {}).values())

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
        wrong += [known_beside(name, people) for name, people in (self.rows or {}).items()]
        return "; ".join(wrong)

    @property
    def sentence(self) -> str:
        """What is wrong and what helps, without a value of a person; empty where nothing is."""
        return f"{self.wrong}; {AGAIN if self.may_pass else REMEDY}" if self.problems else ""


def told_together(run: Run, raw_data: Stage, aggregated_table: Stage) -> Together:
    """Judge the stored candidate beside every release of the same people, of any dataset.

    A candidate that stands already publishes nothing new and is not judged again.

    Raises
    ------
    Refused
        If a released manifest is not what was published.
    InputError
        If the source cannot be read again.
    """
    spec, same = run.spec, SamePeople(run, raw_data)
    standing = standing_releases(run.home)
    if (spec.dataset, aggregated_table.facts["version"]) in {(of.dataset, of.version) for of in standing}:
        return Together()
    candidate = Linked("this table", spec, same.facts.types(), aggregated_table.folder / DATA)
    errors: dict[str, Exception] = {}
    others = _others(run, same, candidate, standing, errors)
    together = Together()
    if others:
        try:
            together = _judge_all(run, same, candidate, others, errors)
        except InputError as error:
            errors |= {other.name: error for other in others}
    return replace(
        together,
        unjudged={name: str(error) for name, error in errors.items()},
        may_pass=any(isinstance(error, Unavailable) for error in errors.values()),
    )


def _others(
    run: Run,
    same: SamePeople,
    candidate: Linked,
    standing: Sequence[StandingRelease],
    errors: dict[str, Exception],
) -> list[Linked]:
    """The releases of the same people that can be judged beside this table."""
    dataset, others = run.spec.dataset, list[Linked]()
    for released in standing:
        try:
            other = same.of(released)
            if other is None:
                if released.dataset == dataset:
                    log.info("%s: %s is of other people, and is not judged with this table", dataset, released.version)
            elif drawn := other.drawn or other.selection:
                log.warning("%s: %s", dataset, not_judged(other.name, drawn))
            else:
                require_alike(candidate, other)
                others.append(other)
        except InputError as error:
            errors[released.name] = error
    return others


def _judge_all(
    run: Run, same: SamePeople, candidate: Linked, others: Sequence[Linked], errors: dict[str, Exception]
) -> Together:
    """The verdict on the candidate beside the tables of groups, and beside each release of rows."""
    people = same.everybody([candidate, *others])
    tables = [other for other in others if other.classes is None]
    judged = {table.name: linked_groups(table, people) for table in (candidate, *tables)}
    together = Together()
    try:
        together = _judge(candidate, tables, judged) if tables else together
    except Undecided as error:
        errors |= {table.name: error for table in tables}
    rows = [other for other in others if other.classes is not None]
    return replace(together, rows=_beside_rows(run, candidate, rows, people, errors))


def _beside_rows(
    run: Run, candidate: Linked, others: Sequence[Linked], people: pa.Table, errors: dict[str, Exception]
) -> dict[str, int]:
    """People in unions of fewer than k people that are known beside a release of rows, by release."""
    known: dict[str, int] = {}
    for other in others:
        try:
            mine, rows = (linked_classes(run.home, table, people) for table in (candidate, other))
        except InputError as error:
            errors[other.name] = error
        else:
            known[other.name] = known_by_difference(mine, rows)
    return {name: told for name, told in known.items() if told}


def _judge(
    candidate: Linked,
    others: Sequence[Linked],
    judged: Mapping[str, tuple[LinkedTable, dict[str, pa.Array]]],
) -> Together:
    """The verdict on the candidate beside all others; the releases that it names are those that tell by themselves."""

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
        return Together()
    named = [table.name for table in others if len(others) > 1 and any(of([table]))]
    return Together(counts, means, tuple(named or [table.name for table in others]))
