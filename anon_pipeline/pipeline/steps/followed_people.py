"""The people with their cohort: people who were in the same class in each of the last releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from anon_pipeline.pipeline.sequential_publication import NEWEST, cohorts_of, with_company
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult, log
from anon_pipeline.release.publish import DATA
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.row_numbers import NumberedPeople, require_no_row_numbers
from anon_pipeline.tables import HISTORY


def follow(run: Run, folder: Path, people: Stage) -> StepResult:
    """Write the people with a column for their cohort, and which class of the newest release each cohort comes from."""
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
    engine.add_column(
        people.folder / DATA,
        str(spec.person),
        HISTORY,
        lambda identifiers: cohorts.of(release_history.hashed(identifiers, key)),
        folder / DATA,
    )
    newest = window.newest_classes()
    np.save(folder / NEWEST, newest)
    if window.members and spec.across_releases_unlike is None:
        numbered = NumberedPeople.of(folder / DATA, str(spec.person), spec.quasi_identifiers, newest)
        if numbered is not None:
            require_no_row_numbers(numbered, str(spec.person))
    log.info(
        "%s: beside %s former releases %s people are new, and %s have gone",
        spec.dataset,
        len(window.members),
        f"{counted['newcomers']:,}",
        f"{counted['gone']:,}",
    )
    metrics = {"newcomers": counted["newcomers"], "gone": counted["gone"], "former": len(window.members)}
    return StepResult({**people.facts, **counted, "made_from": made_from}, metadata=counted, metrics=metrics)


STEP = StepDef("followed_people", (PEOPLE,), frozenset({"duckdb", "parquet"}), follow, makes_people=True)
