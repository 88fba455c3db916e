"""The model of the target that guides the grouping, fitted once on everybody and once without each fold."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.learning.cells import folds_of_sample
from anon_pipeline.learning.models import name_of, task_of
from anon_pipeline.learning.targets import train_guide
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult
from anon_pipeline.release.publish import DATA
from anon_pipeline.tables import scale_of

MODEL, SAMPLE = "model.pickle", "sample.npz"


def train(run: Run, folder: Path, people: Stage) -> StepResult:
    """Write the models, and which people of the sample were in which fold."""
    spec = run.spec
    types = SourceFacts.from_json(people.facts).types()
    known = run.engine.sample(people.folder / DATA, spec, types, spec.guide.sample)
    sample, guide = folds_of_sample(known.hash, spec.guide, run.key)
    trained = train_guide(
        known.features,
        known.target,
        guide,
        task_of(types[spec.target]),
        {name: types[name] for name in spec.features},
        spec.seed,
        sample.fold,
        run.load_model,
    )
    guidance = trained.guidance(known.features, sample.fold)
    (folder / MODEL).write_bytes(pickle.dumps(trained))
    np.savez(folder / SAMPLE, hash=sample.hash, fold=sample.fold)
    facts: dict[str, Any] = {
        "model": name_of(spec.guide.model),
        "people": len(known.target),
        "scale": scale_of(guidance),
    }
    return StepResult(
        facts, metadata={**facts, "guidance": f"{spec.guide.on}, {spec.guide.predictions}"}, metrics=facts
    )


STEP = StepDef("trained_model", (PEOPLE,), frozenset({"scikitlearn"}), train)
