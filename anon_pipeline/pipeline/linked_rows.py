"""Rows of people beside the other releases of the same people: the question to a candidate, and the private files.

Rows of another dataset are judged by who shares all classes, since rows can be linked by their kept columns; tables of
groups by what follows by subtraction. A former version of the same dataset is counted and logged only: what bounds
versions of one dataset together is `across_releases`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from anon_pipeline.errors import InputError, Refused, Unavailable
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.linked_groups import AGAIN, known_beside, not_judged
from anon_pipeline.pipeline.linked_people import Linked, SamePeople, linked_classes, require_alike
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.privacy.linked_classes import LinkedClasses, known_by_difference, with_few_candidates
from anon_pipeline.release import known_classes
from anon_pipeline.release.publish import CLASSES
from anon_pipeline.release.standing_releases import standing_releases
from anon_pipeline.sequential.release_history import MEMBERS

#: The blocking check, with the description that Dagster shows before it is first asked.
CHECK = "hides_people_beside_others"
CHECK_DESCRIPTION = "Whoever has the other releases of the same people, too, is left with k people who are alike."
#: The kinds of other releases.
ROWS, GROUPS, VERSION = "rows", "groups", "version"
#: What helps where rows tell too much beside another release.
REMEDY = (
    "give these readers columns of the other release, in which people are grouped once for all, withdraw it "
    "(`anon-pipeline releases withdraw`), or say why others may be left with fewer, for everybody to read: "
    "linked_tables_accepted: <why>"
)


@dataclass
class Beside:
    """What a candidate tells together with releases of the same people.

    Attributes
    ----------
    candidates : people with fewer than k candidates, beside the rows of all other datasets together
    rows : these releases
    groups : people in unions of fewer than k people that are known beside a table of groups, by release
    unjudged : why a release of the same people cannot be judged, by release
    may_pass : whether one of these can be judged another time, so that nobody can have accepted what it tells
    """

    candidates: int = 0
    rows: tuple[str, ...] = ()
    groups: dict[str, int] = field(default_factory=dict)
    unjudged: dict[str, str] = field(default_factory=dict)
    may_pass: bool = False

    @property
    def problems(self) -> int:
        return self.candidates + sum(self.groups.values()) + len(self.unjudged)

    @property
    def wrong(self) -> str:
        """What is known, or cannot be judged, and beside which releases."""
        wrong = [f"{name} is of the same people and cannot be judged: {why}" for name, why in self.unjudged.items()]
        if self.candidates:
            wrong.append(few_candidates(self.candidates, self.rows))
        wrong += [known_beside(name, people) for name, people in self.groups.items()]
        return "; ".join(wrong)


def few_candidates(people: int, releases: tuple[str, ...]) -> str:
    """How many people are alike with too few in all releases."""
    return (
        f"beside {', '.join(releases)}, of the same people, {people:,} people share their classes with fewer than k, "
        "and their rows can be linked by the columns that are kept"
    )


def question(run: Run, raw_data: Stage, candidate: Stage) -> Question:
    """The question to a candidate beside other releases; an accepted answer is logged."""
    beside = told_beside(run, raw_data, candidate)
    problems = beside.problems
    accepted = run.spec.linked_tables_accepted is not None and not beside.may_pass
    if problems and accepted:
        # The number is not published: it would say how much there is to work out.
        log.warning("%s: accepted by linked_tables_accepted: %s", run.spec.dataset, beside.wrong)
        problems = 0
    return Question(
        CHECK,
        "beside other released datasets of the same people nobody is left with fewer than k",
        "ExpectColumnMaxToBeBetween",
        {"column": CHECK, "max_value": 0},
        pd.DataFrame({CHECK: [problems]}),
        remedy=f"{beside.wrong}; {AGAIN if beside.may_pass else REMEDY}",
        idle="the spec accepts what is known (linked_tables_accepted)" if accepted else "",
    )


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
    """Judge the stored candidate beside every release of the same people; one that stands already is not judged again.

    Raises
    ------
    Refused
        If a released manifest is not what was published.
    InputError
        If the source cannot be read again.
    """
    spec, same, beside = run.spec, SamePeople(run, raw_data), Beside()
    standing = standing_releases(run.home)
    if (spec.dataset, candidate.facts["version"]) in {(of.dataset, of.version) for of in standing}:
        return beside
    known = known_classes.FILE if spec.across_releases is None else MEMBERS
    files = candidate.folder / CLASSES, candidate.folder / known
    this = Linked("this release", spec, same.facts.types(), *files, spec.dataset)
    others = _others(run, same, this, beside)
    classes = _classes(run, same, this, others, beside) if others else {}
    if this.name not in classes:
        return beside
    mine = classes.pop(this.name)

    def of(kind: str) -> dict[str, LinkedClasses]:
        return {name: linked for name, linked in classes.items() if others[name].kind == kind}

    rows, versions = of(ROWS), of(VERSION)
    beside.candidates, beside.rows = with_few_candidates(mine, list(rows.values())), tuple(rows)
    told = {name: known_by_difference(mine, groups) for name, groups in of(GROUPS).items()}
    beside.groups = {name: people for name, people in told.items() if people}
    if few := with_few_candidates(mine, list(versions.values())):
        log.warning("%s: %s; see across_releases", spec.dataset, few_candidates(few, tuple(versions)))
    return beside


@dataclass(frozen=True, eq=False)
class _Other:
    """A release of the same people: rows of another dataset, a table of groups, or a former version."""

    kind: str
    linked: Linked


def _others(run: Run, same: SamePeople, this: Linked, beside: Beside) -> dict[str, _Other]:
    """The releases of the same people that can be judged beside this one, by name."""
    found = {}
    for released in standing_releases(run.home):
        is_version = released.dataset == run.spec.dataset and not released.is_groups
        if is_version and run.spec.across_releases is not None:
            continue  # judged by the check of that name
        kind = GROUPS if released.is_groups else VERSION if is_version else ROWS
        try:
            other = same.of(released)
            drawn = "" if other is None else this.drawn or other.drawn or (this.selection if kind == GROUPS else "")
            if drawn:
                log.warning("%s: %s", run.spec.dataset, not_judged(released.name, drawn))
            elif other is not None:
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
    try:
        people = same.everybody([this, *(other.linked for other in others.values())])
        classes[this.name] = linked_classes(run.home, this, people)
    except InputError as error:
        for name, other in others.items():
            _cannot_be_judged(run, beside, name, other.kind, error)
        return classes
    for name, other in others.items():
        try:
            classes[name] = linked_classes(run.home, other.linked, people)
        except InputError as error:
            _cannot_be_judged(run, beside, name, other.kind, error)
    return classes


def _cannot_be_judged(run: Run, beside: Beside, name: str, kind: str, error: InputError) -> None:
    """Note it: a former version of the dataset is not part of the question."""
    if kind == VERSION:
        log.info("%s: %s is of the same people and is not compared: %s", run.spec.dataset, name, error)
    else:
        beside.unjudged[name] = str(error)
        beside.may_pass |= isinstance(error, Unavailable)
