"""Rows of people beside the other releases of the same people: the question to a candidate, and the private files.

Rows of another dataset are judged by who shares all classes, since rows can be linked by their kept columns: they are k
people, and of them the demands on sensitive values hold. Tables of groups are judged by what follows by subtraction. A
former version of the same dataset is counted and logged only: what bounds versions of one dataset together is
`across_releases`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from anon_pipeline.errors import InputError, Refused, number_of
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.linked_releases.people import linked_classes
from anon_pipeline.pipeline.linked_releases.question import Beside
from anon_pipeline.pipeline.linked_releases.same_people import Linked, SamePeople, require_alike
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.privacy.linked_releases.classes import (
    LinkedClasses,
    known_by_difference,
    newly_known_beside_groups,
    with_few_candidates,
)
from anon_pipeline.privacy.linked_releases.demands import FailingDemand, failing_demands
from anon_pipeline.privacy.linked_releases.rows_and_groups import newly_known_unions
from anon_pipeline.privacy.linked_releases.values import failing_beside_groups
from anon_pipeline.release import known_classes
from anon_pipeline.release.publish import CLASSES
from anon_pipeline.release.standing_releases import releases_beside
from anon_pipeline.sequential.release_history import MEMBERS

#: The blocking check, with the description that Dagster shows before it is first asked.
CHECK = "hides_people_beside_others"
CHECK_DESCRIPTION = (
    "Whoever has the other releases of the same people, too, is left with k people who are alike, and of whom all "
    "demands hold."
)
#: The kinds of other releases.
ROWS, GROUPS, VERSION = "rows", "groups", "version"
#: What helps where rows tell too much beside another release.
REMEDY = (
    "give these readers columns of the other release, in which people are grouped once for all, withdraw it "
    "(`anon-pipeline releases withdraw`), or say why others may be left with fewer, for everybody to read: "
    "linked_tables_accepted: <why>"
)


def few_candidates(people: int, releases: tuple[str, ...], linked: Sequence[LinkedClasses] = ()) -> str:
    """How many people are alike with too few in all releases, and what readers are taken to know besides."""
    columns = _known_and_kept(*linked)
    known = f"; {', '.join(columns)} is kept in one of them and a quasi-identifier of another" if columns else ""
    known += "; readers may know who was drawn into one of them" if any(of.drawn is not None for of in linked) else ""
    return (
        f"beside {', '.join(releases)}, of the same people, "
        f"{number_of(people, 'person shares a class', 'people share their classes')} with fewer than k, and their rows "
        f"can be linked by the columns that are kept{known}"
    )


def fails_beside(failing: FailingDemand, this: str, releases: tuple[str, ...]) -> str:
    """The demand that fails on people who share their classes in all releases, and for how many people."""
    return (
        f"beside {', '.join(releases)}, of the same people, "
        f"{number_of(failing.people, 'person shares a class', 'people share their classes')} with people of whom a "
        f"demand of {(this, *releases)[failing.of]} does not hold: {failing.sentence}"
    )


def _known_and_kept(*releases: LinkedClasses) -> tuple[str, ...]:
    """The columns that a release keeps and readers of another know."""
    return tuple(
        sorted({name for of in releases for name in of.kept if any(name in beside.readers for beside in releases)})
    )


def question(run: Run, raw_data: Stage, candidate: Stage) -> Question:
    """The question to a candidate beside other releases."""
    demand = (
        "beside other released datasets of the same people nobody is left with fewer than k, nor with people of whom "
        "a demand of either does not hold"
    )
    return told_beside(run, raw_data, candidate).question(run, CHECK, demand)


def keeper(run: Run, raw_data: Stage, candidate: Stage) -> Callable[[str], None]:
    """What is done under the ledger's lock, before a release appears: it is judged again, and its classes are kept."""

    def keep(version: str) -> None:
        asked = question(run, raw_data, candidate)
        if asked.table[CHECK].sum():
            raise Refused([f"{CHECK}: {asked.demand}, but {asked.remedy}"], [asked.demand])
        keep_classes(run, candidate, version)

    return keep


def keep_classes(run: Run, candidate: Stage, version: str) -> None:
    """Keep who is in which class, unless it is known; a release that stands may be older than this check."""
    file, home, dataset = candidate.folder / known_classes.FILE, run.home, run.spec.dataset
    if file.exists() and not known_classes.kept(home, dataset, version).exists():
        known_classes.keep(home, dataset, version, file)


def told_beside(run: Run, raw_data: Stage, candidate: Stage) -> Beside:
    """Judge the stored candidate beside every release of the same people.

    Raises
    ------
    Refused
        If a released manifest is not what was published.
    """
    spec, same, beside = run.spec, SamePeople(run, raw_data), Beside(REMEDY)
    known = known_classes.FILE if spec.across_releases is None else MEMBERS
    files = candidate.folder / CLASSES, candidate.folder / known
    this = Linked("this release", spec, same.facts.types(), *files, spec.dataset, same.kinds)
    others = _others(run, same, this, candidate.facts["version"], beside)
    classes = _classes(run, same, this, others, beside) if others else {}
    if this.name not in classes:
        return beside
    mine = classes.pop(this.name)

    def of(kind: str) -> dict[str, LinkedClasses]:
        return {name: linked for name, linked in classes.items() if others[name].kind == kind}

    rows, versions = of(ROWS), of(VERSION)
    few = with_few_candidates(mine, list(rows.values()))
    beside.add(few, few_candidates(few, tuple(rows), [mine, *rows.values()]))
    for failing in failing_demands(mine, list(rows.values())):
        beside.add(failing.people, fails_beside(failing, this.name, tuple(rows)))
    for name, groups in of(GROUPS).items():
        beside.add_difference(name, known_by_difference(mine, groups))
        linked = newly_known_beside_groups(mine, list(rows.values()), groups)
        beside.add_difference(f"{name} and {', '.join(rows)}", linked)
        for failing in failing_beside_groups(mine, list(rows.values()), groups):
            beside.add_failing([name, *rows], failing, [this.name, *rows][failing.of])
    tables = of(GROUPS)
    if len(tables) > 1:
        asked = mine, list(rows.values()), list(tables.values())
        beside.add_together([*tables, *rows], lambda: newly_known_unions(*asked, has_rows=True))
    if few := with_few_candidates(mine, list(versions.values())):
        log.warning("%s: %s; see across_releases", spec.dataset, few_candidates(few, tuple(versions)))
    for failing in failing_demands(mine, list(versions.values())):
        log.warning("%s: %s", spec.dataset, fails_beside(failing, this.name, tuple(versions)))
    return beside


@dataclass(frozen=True, eq=False)
class _Other:
    """A release of the same people: rows of another dataset, a table of groups, or a former version."""

    kind: str
    linked: Linked


def _others(run: Run, same: SamePeople, this: Linked, version: str, beside: Beside) -> dict[str, _Other]:
    """The releases of the same people that can be judged beside this one, by name."""
    found = {}
    for released in releases_beside(run.home, run.spec.dataset, version):
        is_version = released.dataset == run.spec.dataset and not released.is_groups
        if is_version and run.spec.across_releases is not None:
            continue  # judged by the check of that name
        kind = GROUPS if released.is_groups else VERSION if is_version else ROWS
        try:
            other = same.of(released)
            if other is not None:
                require_alike(this, other)
                found[released.name] = _Other(kind, other)
        except InputError as error:
            _cannot_be_judged(run, beside, released.name, kind, error)
    return found


def _classes(
    run: Run, same: SamePeople, this: Linked, others: Mapping[str, _Other], beside: Beside
) -> dict[str, LinkedClasses]:
    """The classes of everybody in this release and in the others, by name; nothing where this one has none."""
    classes: dict[str, LinkedClasses] = {}
    linked = [this, *(other.linked for other in others.values())]
    readers = frozenset[str]().union(*(of.readers for of in linked))
    protected = frozenset[str]().union(*(of.protected for of in linked))
    try:
        people = same.everybody(linked)
        classes[this.name] = linked_classes(run.home, this, people, readers, protected)
    except InputError as error:
        for name, other in others.items():
            _cannot_be_judged(run, beside, name, other.kind, error)
        return classes
    for name, other in others.items():
        try:
            classes[name] = linked_classes(run.home, other.linked, people, readers, protected)
        except InputError as error:
            _cannot_be_judged(run, beside, name, other.kind, error)
    return classes


def _cannot_be_judged(run: Run, beside: Beside, name: str, kind: str, error: InputError) -> None:
    """Note it: a former version of the dataset is not part of the question."""
    if kind == VERSION:
        log.info("%s: %s is of the same people and is not compared: %s", run.spec.dataset, name, error)
    else:
        beside.add_unjudged(name, error)
