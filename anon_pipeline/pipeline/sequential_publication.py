"""Sequential publication in the pipeline: people's cohorts, the demand on a candidate, and the kept release history."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.anonymize.grouping import Grouping, stored_classes
from anon_pipeline.anonymize.policy import orders_of
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import IntArray
from anon_pipeline.errors import InputError, Refused, percent
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.privacy.base import privacy_models
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.release import fineness
from anon_pipeline.release.noise import Noise
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.cohorts import MinimumCohortSize, in_company
from anon_pipeline.sequential.guarantees import Intersection, intersection
from anon_pipeline.sequential.republication import (
    Demands,
    PeopleByCohort,
    Routing,
    SequentialGrouping,
    group_sequentially,
    repair_of_release,
)
from anon_pipeline.sequential.same_people import require_same_people
from anon_pipeline.spec import AcrossReleases, ReleaseSpec
from anon_pipeline.tables import Cells

#: The blocking check, with the description that Dagster shows before it is first asked.
CHECK = "across_releases"
CHECK_DESCRIPTION = "Whoever has the former releases, too, is left with enough people who could be this one."
#: Beside the people who are followed: the class of each cohort in the newest former release.
NEWEST = "newest_classes.npy"


@dataclasses.dataclass(frozen=True, eq=False)
class Cohorts:
    """The cohort of everybody in a table.

    Attributes
    ----------
    person : keyed hashes, ascending, shape (n,)
    history : the cohort of each person, 0 for newcomers, `WITHHELD` for company of those who left, shape (n,)
    departed : number of people of each cohort who are not in the table, shape (cohorts,)
    """

    person: IntArray
    history: IntArray
    departed: IntArray

    def of(self, people: IntArray) -> IntArray:
        """The cohorts of some people of the table, who are given by their keyed hashes."""
        return self.history[np.searchsorted(self.person, people)]


def people_of(identifiers: Iterable[pa.Array], key: bytes) -> IntArray:
    """Keyed hashes of the people of a table, ascending, shape (n,); `identifiers` are those of the table, in batches.

    Raises
    ------
    InputError
        If somebody has no identifier.
    """
    parts = []
    for batch in identifiers:
        if batch.null_count:
            raise InputError("person: somebody has no identifier, and cannot be followed from release to release")
        parts.append(release_history.hashed(batch, key))
    return np.sort(np.concatenate(parts))


def cohorts_of(person: IntArray, window: release_history.Window) -> Cohorts:
    """The cohort of everybody in a table; `person` are their keyed hashes, ascending, shape (n,)."""
    return Cohorts(person, *window.histories(person))


def require_somebody_followed(cohorts: Cohorts, window: release_history.Window) -> None:
    """
    Raises
    ------
    InputError
        If nobody from the former releases is in the table.
    """
    if any(len(member.person) for member in window.members) and not cohorts.history.any():
        raise InputError(
            f"person: nobody of the last {len(window.members)} releases is in this table, so nobody can be followed; "
            "is it still the same identifier, stored as the same type? If these are other people, it is another dataset"
        )


def with_company(cohorts: Cohorts, run: Run, window: release_history.Window) -> Cohorts:
    """The cohorts after people are withheld as company of those who left, where the spec asks for it."""
    if _asked(run.spec).departures != "in_company" or not window.members:
        return cohorts
    newest = window.members[-1].version
    history = in_company(cohorts.history, cohorts.departed, cohorts.person, smallest_cohort(run.spec), run.key, newest)
    return dataclasses.replace(cohorts, history=history)


def smallest_cohort(spec: ReleaseSpec) -> int:
    """The smallest number of people of a cohort who stay together."""
    return max(spec.k, _asked(spec).k)


def group(run: Run, followed: Stage, cells: Cells, people: ClassStatistics) -> SequentialGrouping:
    """The classes under sequential publication: from the tree of the last release, or from a new one."""
    spec = run.spec
    former: list[str] = followed.facts["former"]
    routing = release_history.routing(run.home, spec.dataset, former[-1]) if former else None
    cohorts = _people_by_cohort(followed, cells, people)
    if routing is not None and spec.across_releases_unlike is None:
        require_same_people(cohorts, routing)
    sequential = group_sequentially(
        cohorts,
        routing,
        MinimumCohortSize(smallest_cohort(spec), spec.fitted_k),
        _demands(spec),
        _asked(spec).refit,
        run.key,
    )
    log.info("%s: %s", spec.dataset, which_tree(sequential.kept, sequential.lost, sequential.lost_otherwise))
    return sequential


def repair_of(run: Run, followed: Stage, tree: Stage, cells: Cells, people: ClassStatistics) -> tuple[Repair, IntArray]:
    """What was repaired for a release, and the class of each of its cells, so that an attack can group it again."""
    return repair_of_release(
        _people_by_cohort(followed, cells, people),
        Routing.load(tree.folder / release_history.ROUTING),
        MinimumCohortSize(smallest_cohort(run.spec), run.spec.fitted_k),
        _demands(run.spec),
        stored_classes(tree.folder, cells),
    )


def which_tree(kept: bool, lost: float, lost_otherwise: float | None) -> str:
    """A sentence on whether the tree of the last release was kept, and why."""
    if lost_otherwise is None or np.isnan(lost_otherwise):
        return f"a first tree, which loses {percent(lost)}"
    if kept:
        return f"the former tree is kept: it loses {percent(lost)}, a new one {percent(lost_otherwise)}"
    return f"a new tree: it loses {percent(lost)}, the former one {percent(lost_otherwise)}"


def write_members(run: Run, followed: Stage, cells: Cells, grouping: Grouping, folder: Path) -> None:
    """Write the class of each person in a candidate, for the release history if it is published."""
    people = run.engine.classes_of_people(followed.folder / DATA, cells, grouping.class_of_cell, str(run.spec.person))
    release_history.write(people, release_history.key(run.home, run.spec.dataset), folder / release_history.MEMBERS)


def measured(run: Run, candidate: Stage) -> Intersection:
    """The intersection of a candidate's classes with those of former releases, from the release history."""
    window = release_history.window(run.home, run.spec)
    new = release_history.read(candidate.folder / release_history.MEMBERS)
    people = np.unique(np.concatenate([new.person, *(member.person for member in window.members)]))
    return intersection(
        [member.classes_of(people) for member in window.members], new.classes_of(people), _asked(run.spec).k
    )


def question(run: Run, candidate: Stage) -> Question:
    """The question to a candidate together with the former releases."""
    overlap, k = measured(run, candidate), _asked(run.spec).k
    sizes = pd.read_parquet(candidate.folder / CLASSES)["class_size"].to_numpy()
    counted = np.bincount(release_history.read(candidate.folder / release_history.MEMBERS).class_, minlength=len(sizes))
    agrees = len(counted) == len(sizes) and bool((counted == sizes).all())
    return Question(
        CHECK,
        f"at least {k} people share a person's class in each of {overlap.releases} releases",
        "ExpectColumnMinToBeBetween",
        {"column": "candidates", "min_value": k},
        # The answer is published, and says no more than the manifest.
        pd.DataFrame({"candidates": [min(overlap.fewest, k) if agrees else 0]}),
        remedy="nothing was published; run followed_people again"
        if agrees
        else "the people kept of this candidate are not those of its classes; run anonymized_table again",
    )


def require_minimum_size(run: Run, candidate: Stage) -> None:
    """Measure again just before publication, since another run may have published after the checks.

    Raises
    ------
    Refused
        If the demand does not hold together with the current releases.
    """
    overlap, k = measured(run, candidate), _asked(run.spec).k
    if overlap.fewest < k:
        beside = f"{CHECK}: beside the releases that stand now somebody has"
        raise Refused(
            [f"{beside} {overlap.fewest} candidates, fewer than {k}; run the dataset again"],
            [f"{beside} fewer than {k} candidates; run the dataset again"],
        )


def manifest_entry(run: Run, followed: Stage, tree: Stage, candidate: Stage) -> dict[str, Any]:
    """The manifest's entry on the sequential publication of a release."""
    released, noise = candidate.facts["released"], run.noise(candidate.facts["version"]).of("across_releases")
    table = sum(int(candidate.facts[of]) for of in ("released", "suppressed", "waiting"))
    return {
        **_asked(run.spec).model_dump(mode="json"),
        "former": followed.facts["former"],
        "unknown": followed.facts["unknown"],
        "newcomers": fineness.coarse(followed.facts["newcomers"], table, noise.of("newcomers")),
        "waiting": candidate.facts["waiting"],
        "kept": tree.facts["kept"],
        **fineness.lost({name: tree.facts[name] for name in ("lost", "lost_otherwise")}, released, noise),
        "measured": published_intersection(measured(run, candidate), table, _asked(run.spec).k, noise),
    }


def published_intersection(overlap: Intersection, people: int, k: int, noise: Noise) -> dict[str, Any]:
    """The intersection as a manifest states it: people who left in steps, and of candidates no more than k.

    These numbers do not follow from the tables: a newcomer who is shown alike takes the place of a person who left, and
    is no candidate of theirs. With one person more who left, k - 1 others of the same history no longer stand out.

    Each of the two numbers of people who left has noise of its own. No more are said to stand out than to have left:
    the number who left, whose steps are finer, bounds the other, and no true number is looked at for that.
    """
    left = fineness.coarse(overlap.left, people, noise.of("left"))
    left_below = fineness.moved_together(overlap.left_below, people, k, noise.of("left_below"))
    if left is not None and left_below is not None:
        left_below = min(left_below, left)
    fewest = min(overlap.fewest, k)
    return dataclasses.asdict(overlap) | {"fewest": fewest, "left": left, "left_below": left_below}


def _people_by_cohort(followed: Stage, cells: Cells, people: ClassStatistics) -> PeopleByCohort:
    """The people who are followed; `cells` have their cohort as last column, and `people` are counted by them."""
    newest = np.load(followed.folder / NEWEST, allow_pickle=False)
    return PeopleByCohort(cells, people, newest, followed.facts["withheld"])


def _demands(spec: ReleaseSpec) -> Demands:
    return Demands(
        privacy_models(spec.privacy),
        spec.guide.spread,
        orders_of(spec),
        {name: column.grid for name, column in spec.columns.items() if column.grid is not None},
        spec.seed,
        spec.suppression.limit,
    )


def _asked(spec: ReleaseSpec) -> AcrossReleases:
    assert spec.across_releases is not None  # noqa: S101 (only called where it is demanded)
    return spec.across_releases
