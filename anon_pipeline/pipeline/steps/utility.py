"""What a model is worth that is trained on the release, beside one trained on the source."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pandas as pd

from anon_pipeline.anonymize.policy import anonymize_part
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.utility import measure_utility
from anon_pipeline.pipeline.pages import utility_metadata
from anon_pipeline.pipeline.progress import log_progress
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult
from anon_pipeline.pipeline.utility_figures import utility_figures
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import ColumnType


def measure(run: Run, _folder: Path, people: Stage) -> StepResult:
    """Measure in cross-validation what training on the release costs; all that it finds are facts."""
    spec = run.spec
    stored = SourceFacts.from_json(people.facts)
    types = stored.types()
    known = run.engine.sample(people.folder / DATA, spec, types, spec.utility.sample)
    frame = pd.concat([known.features, known.target], axis=1)
    seed = run.measuring_seed
    measured = measure_utility(
        frame,
        spec.target,
        {name: types[name] for name in spec.features},
        task_of(types[spec.target]),
        spec.guide,
        spec.utility.folds,
        seed,
        functools.partial(anonymize_part, spec, run.key),
        run.load_model,
        log_progress(f"{spec.dataset}: utility", "models and folds"),
        spec.utility.models,
        {column.name: column.storage for column in stored.columns if column.name in spec.quasi_identifiers},
        spec.k,
        run.workers(len(frame)),
    )
    facts = measured.as_dict()
    if len(spec.guide.targets) > 1:
        facts["targets"] = other_targets(run, frame, types, seed)
    return StepResult(facts, metadata=utility_metadata(facts), metrics=utility_figures(measured))


STEP = StepDef("utility", (PEOPLE,), frozenset({"scikitlearn", "mlflow"}), measure)


def other_targets(run: Run, frame: pd.DataFrame, types: dict[str, ColumnType], seed: int) -> dict[str, Any]:
    """The utility for each further target of the guide, under the same guidance."""
    spec, measured = run.spec, {}
    for name in spec.guide.targets[1:]:
        others = [other for other in spec.guide.targets if other != name]
        measured[name] = measure_utility(
            frame,
            name,
            {column: types[column] for column in [*spec.features, spec.target]},
            task_of(types[name]),
            spec.guide.model_copy(update={"targets": (name, *others)}),
            spec.utility.folds,
            seed,
            functools.partial(anonymize_part, spec, run.key),
            run.load_model,
            log_progress(f"{spec.dataset}: utility for {name}", "models and folds"),
            workers=run.workers(len(frame)),
        ).as_dict()
    return measured
