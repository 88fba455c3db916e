"""The utility of the release: the accuracy of a model that is trained on it, beside one trained on the source.

Only people who are released are learned from and scored on. The scores are ratios of whole numbers; together they tell
exactly how many people have which label, and so the label of somebody who is in no released row.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from anon_pipeline.anonymize.policy import anonymize_part
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.problem import Fitting, Problem, unit_of
from anon_pipeline.learning.utility import CrossValidation, measure_utility
from anon_pipeline.learning.without_target import scored
from anon_pipeline.pipeline.left_out import cells_left_out, may_leave_out
from anon_pipeline.pipeline.pages import utility_metadata
from anon_pipeline.pipeline.progress import log_progress
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult
from anon_pipeline.pipeline.tracking.utility_figures import utility_figures
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.tables import Cells


def measure(run: Run, _folder: Path, people: Stage) -> StepResult:
    """Measure in cross-validation what training on the release costs; all that it finds are facts."""
    return _measured(run, people, None)


def measure_released(run: Run, _folder: Path, people: Stage, predictions: Stage, anonymizer_tree: Stage) -> StepResult:
    """The same of the people whose cells have a class."""
    return _measured(run, people, cells_left_out(predictions, anonymizer_tree))


def _measured(run: Run, people: Stage, left_out: Cells | None) -> StepResult:
    spec = run.spec
    stored = SourceFacts.from_json(people.facts)
    types = stored.types()
    known = scored(spec, run.engine.sample(people.folder / DATA, spec, types, spec.utility.sample, left_out))
    frame = pd.concat([known.features, known.target], axis=1)
    seed = run.measuring_seed
    features = {name: types[name] for name in spec.features}
    progress = log_progress(f"{spec.dataset}: utility", "models and folds")
    storage = {column.name: column.storage for column in stored.columns}
    problem = Problem.within(frame, spec.target, task_of(types[spec.target]), features, seed)
    problem = replace(problem, unit=unit_of(types[spec.target], storage[spec.target]))
    measured = measure_utility(
        problem,
        CrossValidation(spec.guide, spec.utility.folds, spec.utility.models),
        functools.partial(anonymize_part, spec, run.key, types=types),
        Fitting(run.load_model, run.workers(len(frame)), progress),
        {name: storage[name] for name in spec.quasi_identifiers},
        spec.k,
    )
    facts = measured.as_dict()
    if len(spec.guide.targets) > 1:
        facts["targets"] = other_targets(run, frame, types, storage, seed)
    return StepResult(facts, metadata=utility_metadata(facts), metrics=utility_figures(measured))


STEP = StepDef("utility", (PEOPLE,), frozenset({"scikitlearn", "mlflow"}), measure)
#: The same where some people may be left out.
OF_RELEASED = replace(STEP, needs=(PEOPLE, "predictions", "anonymizer_tree"), make=measure_released)


def step_of(spec: ReleaseSpec) -> StepDef:
    """The step of a spec, which waits for the classes where people of the table may be missing from the release."""
    return OF_RELEASED if may_leave_out(spec) else STEP


def other_targets(
    run: Run, frame: pd.DataFrame, types: dict[str, ColumnType], storage: dict[str, str], seed: int
) -> dict[str, Any]:
    """The utility for each further target of the guide, under the same guidance."""
    spec, measured = run.spec, {}
    for name in spec.guide.targets[1:]:
        others = [other for other in spec.guide.targets if other != name]
        guide = spec.guide.model_copy(update={"targets": (name, *others)})
        looked_at = {column: types[column] for column in [*spec.features, spec.target]}
        progress = log_progress(f"{spec.dataset}: utility for {name}", "models and folds")
        problem = Problem.within(frame, name, task_of(types[name]), looked_at, seed)
        problem = replace(problem, unit=unit_of(types[name], storage[name]))
        measured[name] = measure_utility(
            problem,
            CrossValidation(guide, spec.utility.folds),
            functools.partial(anonymize_part, spec, run.key, types=types),
            Fitting(run.load_model, run.workers(len(frame)), progress),
        ).as_dict()
    return measured
