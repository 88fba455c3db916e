"""The model's predictions for everybody, summed per distinct person: the cells. Later grouping reads no rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from anon_pipeline.anonymize.storage import save_cells
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.learning.cells import Sample, StoredPeople, guided_cells
from anon_pipeline.pipeline.progress import log_progress
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult, log
from anon_pipeline.pipeline.steps.trained_model import MODEL, SAMPLE
from anon_pipeline.release.publish import DATA


def predict(run: Run, folder: Path, people: Stage, trained_model: Stage) -> StepResult:
    """Write the cells with the guidance of the people in each."""
    spec = run.spec
    trained = pickle.loads((trained_model.folder / MODEL).read_bytes())  # our own file, in the private zone
    with np.load(trained_model.folder / SAMPLE) as arrays:
        sample = Sample(arrays["hash"], arrays["fold"], run.key)
    cells = guided_cells(
        StoredPeople(run.engine, people.folder / DATA, spec, SourceFacts.from_json(people.facts).types()),
        trained,
        sample,
        trained_model.facts["scale"],
        log_progress(f"{spec.dataset}: predictions", "people"),
        spec.across_releases is not None,
    )
    save_cells(cells, folder)
    coarsened = {domain.name: len(domain.values) for domain in cells.domains if domain.binned}
    log.info("%s: %s distinct people", spec.dataset, f"{len(cells.counts):,}")
    for column, bins in coarsened.items():
        log.info("%s: %s is coarsened into %s bins: too many distinct people", spec.dataset, column, bins)
    facts: dict[str, Any] = {"people": cells.n, "cells": len(cells.counts), "coarsened": coarsened}
    return StepResult(
        facts,
        cells.n,
        {"cells": len(cells.counts), "coarsened": coarsened},
        {"people": cells.n, "cells": len(cells.counts)},
    )


STEP = StepDef("predictions", (PEOPLE, "trained_model"), frozenset({"scikitlearn", "duckdb"}), predict)
