"""The model of the target that guides the grouping, fitted once on everybody and once without each fold."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.learning.cells import folds_of_sample
from anon_pipeline.learning.models import name_of
from anon_pipeline.learning.problem import Fitting, Problem
from anon_pipeline.learning.targets import train_guide
from anon_pipeline.learning.without_target import taught
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, FittedGuide, Run, StepDef, StepResult, log
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import ColumnType, LoggedModel
from anon_pipeline.tables import scale_of

MODEL, SAMPLE = "model.pickle", "sample.npz"
IN_SAMPLE = (
    "in_sample guides under no key, so who knows all quasi-identifiers can train the model again for every value of "
    "the target and see which gives the release; use it for comparisons, and out_of_fold for what is published"
)
#: Said where a target of two values, such as 0 and 1, is a number.
TWO_NUMBERS = (
    "{} has two values and is a number, so models estimate it (mae, r2); with type: categorical they classify it "
    "(accuracy, roc_auc), and the release shows it as a text"
)


def train(run: Run, folder: Path, people: Stage) -> StepResult:
    """Write the models, and which people of the sample were in which fold."""
    spec = run.spec
    types = SourceFacts.from_json(people.facts).types()
    known = run.engine.sample(people.folder / DATA, spec, types, spec.guide.sample)
    sample, guide = folds_of_sample(known.hash, spec.guide, run.key, taught(spec, known.target))
    if spec.guide.predictions == "in_sample":
        log.warning("%s: guide.predictions: %s", spec.dataset, IN_SAMPLE)
    if types[spec.target] is ColumnType.NUMERIC and known.target.nunique() == 2:
        log.info("%s: %s", spec.dataset, TWO_NUMBERS.format(spec.target))
    trained = train_guide(
        Problem.of_spec(spec, types, known.features, known.target),
        guide,
        sample.trained,
        Fitting(run.load_model, run.workers(len(known.target))),
    )
    guidance = trained.guidance(known.features, sample.fold)
    (folder / MODEL).write_bytes(pickle.dumps(trained))
    np.savez(folder / SAMPLE, hash=sample.hash, fold=sample.fold)
    facts: dict[str, Any] = {
        "model": name_of(spec.guide.model),
        "people": int((sample.trained >= 0).sum()),
        "scale": scale_of(guidance),
    }
    return StepResult(
        facts,
        metadata={**facts, "guidance": f"{spec.guide.on}, {spec.guide.predictions}"},
        metrics=facts,
        # A model from the store is registered already.
        guide=None if isinstance(spec.guide.model, LoggedModel) else FittedGuide(trained.full, types),
    )


STEP = StepDef("trained_model", (PEOPLE,), frozenset({"scikitlearn"}), train)
