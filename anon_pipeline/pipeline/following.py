"""Where people are followed from release to release: the asset that gives everybody their cohort, and what is kept."""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import dagster as dg
import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.anonymize.grouping import Grouping
from anon_pipeline.anonymize.policy import orders_of
from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.pipeline.expectations import Question
from anon_pipeline.pipeline.masking import MASKED, RAW
from anon_pipeline.pipeline.runtime import Runtime, log
from anon_pipeline.pipeline.stages import Stage, Stages
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.release import fineness
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.cohorts import Company
from anon_pipeline.sequential.guarantees import Intersection, intersection
from anon_pipeline.sequential.republication import Demands, Successor, succeed
from anon_pipeline.spec import AcrossReleases, ReleaseSpec
from anon_pipeline.tables import HISTORY, Cells

FOLLOWED = "followed_people"
#: The blocking check, and what Dagster shows of it before it was first asked.
CHECK = "across_releases"
CHECK_DESCRIPTION = "Whoever has the former releases, too, is left with enough people who could be this one."
GONE = "gone.npy"


def people_of(spec: ReleaseSpec) -> str:
    """The asset that holds the people who are grouped: as the source has them, masked, or followed."""
    return FOLLOWED if spec.across_releases is not None else _before(spec)


def _before(spec: ReleaseSpec) -> str:
    return MASKED if spec.masks else RAW


def people_stage(stages: Stages, spec: ReleaseSpec) -> Stage:
    """The stored people who are grouped, made of the very source that is stored now."""
    stage = stages.load(RAW)
    for name in (MASKED, FOLLOWED):
        if (name == MASKED and spec.masks) or (name == FOLLOWED and spec.across_releases is not None):
            stage = stages.load(name, {RAW: stage})
    return stage


def build_following(spec: ReleaseSpec, common: dict[str, Any]) -> list[dg.AssetsDefinition]:
    """The asset `followed_people`, where the spec demands something across releases."""
    asked = spec.across_releases
    if asked is None:
        return []

    @dg.asset(
        **common,
        name=FOLLOWED,
        deps=[dg.AssetKey([spec.dataset, _before(spec)])],
        kinds={"duckdb", "parquet"},
        description=f"The people with their cohort: who was in the same class of each of the last {asked.window - 1} "
        "releases, or in none. Private.",
    )
    def followed_people(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, FOLLOWED) as noted:
            stages, engine, home = runtime.stages(spec), runtime.engine(spec), runtime.place()
            people = stages.load(_before(spec))
            window, key = release_history.window(home, spec), release_history.key(home, spec.dataset)
            cohorts = cohorts_of(engine.values(people.folder / DATA, str(spec.person)), key, window)
            facts: dict[str, Any] = {
                **people.facts,
                "former": [one.version for one in window.members],
                "unknown": list(window.unknown),
                "newcomers": int((cohorts.history == 0).sum()),
                "gone": int(cohorts.gone.sum()),
            }
            with stages.store(FOLLOWED, {RAW: people}, facts) as folder:
                engine.add_column(
                    people.folder / DATA,
                    str(spec.person),
                    HISTORY,
                    lambda identifiers: cohorts.of(release_history.hashed(identifiers, key)),
                    folder / DATA,
                )
                np.save(folder / GONE, cohorts.gone)
            told = {name: facts[name] for name in ("former", "unknown", "newcomers", "gone")}
            noted.update(newcomers=facts["newcomers"], gone=facts["gone"], former=len(window.members))
            log.info(
                "%s: beside %s former releases %s people are new, and %s have gone",
                spec.dataset,
                len(window.members),
                f"{facts['newcomers']:,}",
                f"{facts['gone']:,}",
            )
        return dg.MaterializeResult(metadata=told)

    return [followed_people]


@dataclasses.dataclass(frozen=True, eq=False)
class Cohorts:
    """The cohort of everybody in a table.

    Attributes
    ----------
    person : keyed hashes, ascending, shape (n,)
    history : the cohort of each, 0 for newcomers, shape (n,)
    gone : people of each cohort who are not in the table, shape (cohorts,)
    """

    person: IntArray
    history: IntArray
    gone: IntArray

    def of(self, people: IntArray) -> IntArray:
        """The cohorts of some people of the table, by their keyed hashes."""
        return self.history[np.searchsorted(self.person, people)]


def cohorts_of(identifiers: Iterable[pa.Array], key: bytes, window: release_history.Window) -> Cohorts:
    """Everybody's cohort; `identifiers` are those of a table, in batches.

    Raises
    ------
    InputError
        Where somebody has no identifier, or nobody of the former releases is in the table.
    """
    parts = []
    for batch in identifiers:
        if batch.null_count:
            raise InputError("person: somebody has no identifier, and cannot be followed from release to release")
        parts.append(release_history.hashed(batch, key))
    person = np.sort(np.concatenate(parts))
    history, gone = window.histories(person)
    if any(len(one.person) for one in window.members) and not history.any():
        raise InputError(
            f"person: nobody of the last {len(window.members)} releases is in this table, so nobody can be followed; "
            "is it still the same identifier, stored as the same type? If these are other people, it is another dataset"
        )
    return Cohorts(person, history, gone)


def group(spec: ReleaseSpec, runtime: Runtime, followed: Stage, cells: Cells, people: ClassStatistics) -> Successor:
    """The classes of people who are followed: with the tree of the last release, or with a new one."""
    asked = _asked(spec)
    former: list[str] = followed.facts["former"]
    routing = release_history.routing(runtime.place(), spec.dataset, former[-1]) if former else None
    found = succeed(
        cells,
        people,
        np.load(followed.folder / GONE),
        routing,
        Company(max(spec.k, asked.k), spec.fitted_k, asked.departures == "in_company"),
        Demands(
            cast(tuple[PrivacyModel, ...], spec.privacy),
            spec.guide.spread,
            orders_of(spec),
            {name: column.grid for name, column in spec.columns.items() if column.grid is not None},
            spec.seed,
            spec.suppression.limit,
        ),
        asked.refit,
        runtime.key(spec),
    )
    log.info("%s: %s", spec.dataset, which_tree(found.kept, found.lost, found.lost_otherwise))
    return found


def which_tree(kept: bool, lost: float, lost_otherwise: float | None) -> str:
    """Whether the tree of the last release was kept, and why, in a sentence."""
    if lost_otherwise is None or np.isnan(lost_otherwise):
        return f"a first tree, which loses {lost:.1%}"
    if kept:
        return f"the former tree is kept: it loses {lost:.1%}, a new one {lost_otherwise:.1%}"
    return f"a new tree: it loses {lost:.1%}, the former one {lost_otherwise:.1%}"


def write_members(
    engine: Engine, runtime: Runtime, spec: ReleaseSpec, followed: Stage, cells: Cells, grouping: Grouping, folder: Path
) -> None:
    """Write who is in which class of a candidate, to be kept when it is published."""
    people = engine.classes_of_people(
        followed.folder / DATA, cells.domains, cells, grouping.class_of_cell, str(spec.person)
    )
    release_history.write(people, release_history.key(runtime.place(), spec.dataset), folder / release_history.MEMBERS)


def measured(spec: ReleaseSpec, runtime: Runtime, candidate: Stage) -> Intersection:
    """What a candidate would leave an attacker with who has the former releases, too, by what is kept of each."""
    window = release_history.window(runtime.place(), spec)
    new = release_history.read(candidate.folder / release_history.MEMBERS)
    people = np.unique(np.concatenate([new.person, *(one.person for one in window.members)]))
    return intersection([one.classes_of(people) for one in window.members], new.classes_of(people), _asked(spec).k)


def question(spec: ReleaseSpec, runtime: Runtime, candidate: Stage) -> Question:
    """What must hold of a candidate together with the former releases."""
    found = measured(spec, runtime, candidate)
    sizes = pd.read_parquet(candidate.folder / CLASSES)["class_size"].to_numpy()
    counted = np.bincount(release_history.read(candidate.folder / release_history.MEMBERS).class_, minlength=len(sizes))
    agrees = len(counted) == len(sizes) and bool((counted == sizes).all())
    return Question(
        CHECK,
        f"at least {_asked(spec).k} people share a person's class in each of {found.releases} releases",
        "ExpectColumnMinToBeBetween",
        {"column": "candidates", "min_value": _asked(spec).k},
        pd.DataFrame({"candidates": [found.fewest if agrees else 0]}),
        remedy="nothing was published; run followed_people again"
        if agrees
        else "the people kept of this candidate are not those of its classes; run anonymized_table again",
    )


def require_company(spec: ReleaseSpec, runtime: Runtime, candidate: Stage) -> None:
    """Measure once more at the last moment: another run may have published since the checks were asked.

    Raises
    ------
    Refused
        If the demand does not hold beside the releases that stand now.
    """
    found = measured(spec, runtime, candidate)
    if found.fewest < _asked(spec).k:
        raise Refused(
            [
                f"{CHECK}: beside the releases that stand now somebody has {found.fewest} candidates, "
                f"fewer than {_asked(spec).k}; run the dataset again"
            ]
        )


def told(spec: ReleaseSpec, runtime: Runtime, followed: Stage, tree: Stage, candidate: Stage) -> dict[str, Any]:
    """What the manifest says of a release that follows others."""
    return {
        **_asked(spec).model_dump(mode="json"),
        "former": followed.facts["former"],
        "unknown": followed.facts["unknown"],
        "newcomers": followed.facts["newcomers"],
        "waiting": candidate.facts["waiting"],
        **fineness.rounded({name: tree.facts[name] for name in ("kept", "lost", "lost_otherwise")}),
        "measured": dataclasses.asdict(measured(spec, runtime, candidate)),
    }


def forget_people(spec: ReleaseSpec, home: Home, file: Path) -> int:
    """Forget the people whose identifiers stand in a text file, one a line; how many entries that were.

    Raises
    ------
    InputError
        Where the file cannot be read, or the spec follows nobody.
    """
    if spec.person is None:
        raise InputError(f"{spec.dataset}: its spec names no person, so nothing is kept about anybody's classes")
    try:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError):
        raise InputError(f"{file}: cannot be read as a text file; write one identifier a line") from None
    numbers = [int(line) for line in lines if re.fullmatch(r"-?\d{1,18}", line)]
    with home.lock(f"run-{spec.dataset}"), home.lock(f"dataset-{spec.dataset}"):
        # Whether the source stores them as numbers or as texts is not known here, and does not matter.
        return sum(
            release_history.forget(home, spec.dataset, identifiers)
            for identifiers in (pa.array(lines, pa.string()), pa.array(numbers, pa.int64()))
        )


def _asked(spec: ReleaseSpec) -> AcrossReleases:
    assert spec.across_releases is not None  # noqa: S101 (only called where it is demanded)
    return spec.across_releases
