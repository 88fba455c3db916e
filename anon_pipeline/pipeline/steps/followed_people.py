"""The people who can be released, with their cohort: who was in the same class in each of the last releases.

People who are withheld are left out here, before anything is learned or grouped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.pipeline.sequential_publication import NEWEST, cohorts_of, with_company
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult, log
from anon_pipeline.pipeline.withheld_people import EVERYBODY, leave_out_withheld
from anon_pipeline.release.publish import DATA
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.row_numbers import NumberedPeople, require_no_row_numbers
from anon_pipeline.tables import HISTORY


def follow(run: Run, folder: Path, people: Stage) -> StepResult:
    """Write the people with a column for their cohort, and which class of the newest release each cohort comes from.

    Who is withheld is in a file of identifiers alone, by which `forget` sees that they are still in the source.
    """
    spec, engine = run.spec, run.engine
    key = release_history.key(run.home, spec.dataset)
    release_history.finish_forgetting(run.home, spec.dataset)
    made_from = release_history.origin(run.home, spec, people.facts["content_hash"])
    window = release_history.window(run.home, spec, made_from)
    cohorts = cohorts_of(engine.values(people.folder / DATA, str(spec.person)), key, window)
    counted: dict[str, Any] = {
        "former": [member.version for member in window.members],
        "unknown": list(window.unknown),
        "newcomers": int((cohorts.history == 0).sum()),
        "gone": int(cohorts.departed.sum()),
    }
    cohorts = with_company(cohorts, run, window)
    everybody = folder / EVERYBODY
    engine.add_column(
        people.folder / DATA,
        str(spec.person),
        HISTORY,
        lambda identifiers: cohorts.of(release_history.hashed(identifiers, key)),
        everybody,
    )
    newest = window.newest_classes()
    np.save(folder / NEWEST, newest)
    if window.members and spec.across_releases_unlike is None:
        numbered = NumberedPeople.of(everybody, str(spec.person), spec.quasi_identifiers, newest)
        if numbered is not None:
            require_no_row_numbers(numbered, str(spec.person))
    left_out = leave_out_withheld(cohorts, spec, SourceFacts.from_json(people.facts), folder)
    counted["withheld"] = left_out.people
    log.info(
        "%s: beside %s former releases %s people are new, %s have gone, and %s are held back",
        spec.dataset,
        len(window.members),
        f"{counted['newcomers']:,}",
        f"{counted['gone']:,}",
        f"{counted['withheld']:,}",
    )
    metrics = {"newcomers": counted["newcomers"], "gone": counted["gone"], "former": len(window.members)}
    columns = [
        {**column, "storage": left_out.storage.get(column["name"], column["storage"])}
        for column in people.facts["columns"]
    ]
    facts = {**people.facts, "columns": columns, **counted, "made_from": made_from}
    return StepResult(facts, metadata=counted, metrics=metrics)


STEP = StepDef("followed_people", (PEOPLE,), frozenset({"duckdb", "parquet"}), follow, makes_people=True)
