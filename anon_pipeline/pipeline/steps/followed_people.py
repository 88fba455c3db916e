"""The people who can be released, with their cohort: who was in the same class in each of the last releases.

People who are withheld are left out here, before anything is learned or grouped.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.pipeline.sequential_publication import (
    NEWEST,
    Cohorts,
    cohorts_of,
    people_of,
    require_somebody_followed,
    with_company,
)
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult, log
from anon_pipeline.pipeline.withheld_people import EVERYBODY, LeftOut, leave_out_withheld, may_stay
from anon_pipeline.release.promises import known_by_former
from anon_pipeline.release.publish import DATA
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.followed_content import content_of
from anon_pipeline.sequential.row_numbers import NumberedPeople, require_no_row_numbers
from anon_pipeline.tables import HISTORY


def follow(run: Run, folder: Path, people: Stage) -> StepResult:
    """Write the people with a column for their cohort, and which class of the newest release each cohort comes from.

    Who is withheld is in a file of identifiers alone, by which `forget` sees that they are still in the source.
    """
    spec = run.spec
    release_history.finish_forgetting(run.home, spec.dataset)
    table = _Table.of(run, people)
    beside, left_out, made_from = _beside_former(table, folder)
    window, cohorts = beside.window, beside.cohorts
    counted: dict[str, Any] = {
        "former": [member.version for member in window.members],
        "unknown": list(window.unknown),
        "newcomers": int((cohorts.history == 0).sum()),
        "gone": int(cohorts.departed.sum()),
        "withheld": left_out.people,
    }
    np.save(folder / NEWEST, window.newest_classes())
    log.info(
        "%s: beside %s former releases %s people are new, %s have gone, and %s are held back",
        spec.dataset,
        len(window.members),
        f"{counted['newcomers']:,}",
        f"{counted['gone']:,}",
        f"{counted['withheld']:,}",
    )
    if known := known_by_former(run.home, spec, counted["former"]):
        log.warning(
            "%s: %s is kept as it is, and a former release of across_releases grouped people by it: whoever knows it "
            "tells apart rows that count as alike; make it a quasi-identifier, or leave it out",
            spec.dataset,
            ", ".join(known),
        )
    metrics = {"newcomers": counted["newcomers"], "gone": counted["gone"], "former": len(window.members)}
    columns = [
        {**column, "storage": left_out.storage.get(column["name"], column["storage"])}
        for column in people.facts["columns"]
    ]
    facts = {**people.facts, "columns": columns, **counted, "made_from": made_from}
    return StepResult(facts, metadata=counted, metrics=metrics)


@dataclass(frozen=True, eq=False)
class _Table:
    """The people of a run.

    Attributes
    ----------
    person : keyed hashes, ascending, shape (n,)
    key : with which identifiers are hashed
    """

    run: Run
    people: Stage
    person: IntArray
    key: bytes

    @classmethod
    def of(cls, run: Run, people: Stage) -> _Table:
        key = release_history.key(run.home, run.spec.dataset)
        identifiers = run.engine.values(people.folder / DATA, str(run.spec.person))
        return cls(run, people, people_of(identifiers, key), key)


@dataclass(frozen=True, eq=False)
class _Beside:
    """The people of a table beside the releases of a window: their cohorts, before anybody is withheld and after."""

    window: release_history.Window
    cohorts: Cohorts
    in_company: Cohorts

    @classmethod
    def of(cls, table: _Table, window: release_history.Window) -> _Beside:
        cohorts = cohorts_of(table.person, window)
        return cls(window, cohorts, with_company(cohorts, table.run, window))

    def staying(self, table: _Table) -> IntArray:
        """The people who can be released beside these releases, as keyed hashes, ascending."""
        return table.person[may_stay(self.in_company, table.run.spec)]


def _beside_former(table: _Table, folder: Path) -> tuple[_Beside, LeftOut, str]:
    """Write the people who can be released beside the former releases, and tell what they are a release of.

    If they are what a release that stands was made from, beside the releases before that one, it is made again.
    """
    home, spec = table.run.home, table.run.spec
    window = release_history.window(home, spec)
    released = {member.version: member.person for member in window.members}
    of_people: dict[bytes, str] = {}
    for version, made_from in release_history.may_be_made_again(home, spec.dataset).items():
        again = _Beside.of(table, release_history.window(home, spec, made_from))
        staying = again.staying(table)
        if version not in released or not np.isin(released[version], staying).all():
            continue
        if _made_from(table, staying, of_people) == made_from:
            return again, _write(table, again, folder, is_new=False), made_from
    beside = _Beside.of(table, window)
    require_somebody_followed(beside.cohorts, beside.window)
    left_out = _write(table, beside, folder, is_new=True)
    return beside, left_out, _made_from(table, beside.staying(table), of_people)


def _write(table: _Table, beside: _Beside, folder: Path, is_new: bool) -> LeftOut:
    """Write the people who can be released, with their cohort; a release that is made again was asked about them."""
    spec, engine, people = table.run.spec, table.run.engine, table.people
    everybody = folder / EVERYBODY
    engine.add_column(
        people.folder / DATA,
        str(spec.person),
        HISTORY,
        lambda identifiers: beside.in_company.of(release_history.hashed(identifiers, table.key)),
        everybody,
    )
    if is_new and beside.window.members and spec.across_releases_unlike is None:
        newest = beside.window.newest_classes()
        numbered = NumberedPeople.of(everybody, str(spec.person), spec.quasi_identifiers, newest)
        if numbered is not None:
            require_no_row_numbers(numbered, str(spec.person))
    return leave_out_withheld(beside.in_company, spec, SourceFacts.from_json(people.facts), folder)


def _made_from(table: _Table, staying: IntArray, known: dict[bytes, str]) -> str:
    """What the people who can be released are a release of; read from the table of everybody, before it is written.

    Parameters
    ----------
    staying : keyed hashes of these people, ascending
    known : the answers so far, which the table is not read for again
    """
    spec, asked = table.run.spec, staying.tobytes()
    if asked not in known:
        person = str(spec.person)

        def of(rows: pa.RecordBatch) -> BoolArray:
            return np.isin(release_history.hashed(rows.column(person), table.key), staying)

        content = content_of(table.people.folder / DATA, [person, *spec.released], of)
        known[asked] = release_history.origin(table.run.home, spec, content)
    return known[asked]


STEP = StepDef("followed_people", (PEOPLE,), frozenset({"duckdb", "parquet"}), follow, makes_people=True)
