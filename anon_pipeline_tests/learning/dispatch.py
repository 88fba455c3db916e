"""What the built-in models say of people, and who is grouped with whom, as hashes: `python -m ... FOLDER ORDER MODELS`.

A process of its own, because BLAS, NumPy and the C library choose their routines once, when they are loaded.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.policy import tree_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.learning.cells import StoredPeople, folds_of_sample, guided_cells
from anon_pipeline.learning.guide import train
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.problem import Problem
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import scale_of
from anon_pipeline_tests.people import KEY, write_spec

#: The models that are trained quickly, and those that are not; the slow ones call no routine of BLAS.
QUICK, SLOW = ("linear", "decision_tree"), ("gradient_boosting", "random_forest")
MODELS = (*SLOW, *QUICK)
#: Of two classes, of seven, and a number.
TARGETS = {"income": "categorical", "marital_status": "categorical", "education_num": "numeric"}
NUMBERS = ("age", "hours_per_week", "capital_gain")
CATEGORIES = ("workclass", "education", "occupation", "relationship", "race", "sex", "native_country")
ADULT = Path(__file__).parents[2] / "data/adult/adult.parquet"
PEOPLE = 1200


def spec_of(folder: Path, model: str, target: str) -> ReleaseSpec:
    columns: dict[str, Any] = {name: {"role": "quasi_identifier", "type": "numeric"} for name in NUMBERS}
    columns |= {name: {"role": "quasi_identifier", "type": "categorical"} for name in CATEGORIES}
    columns |= dict.fromkeys(TARGETS, "exclude")
    columns[target] = {"role": "sensitive", "type": TARGETS[target]}
    guide = {"model": model, "folds": 2}
    return write_spec(folder, columns, "people.parquet", k=5, target=target, guide=guide)


def write_people(folder: Path, reverse: bool) -> None:
    """Some of Adult, whose many rare categories leave a solver far to go."""
    people = pd.read_parquet(ADULT)[[*NUMBERS, *CATEGORIES, *TARGETS]].sample(PEOPLE, random_state=1)
    (people.iloc[::-1] if reverse else people).to_parquet(folder / "people.parquet", index=False)


def grouped(folder: Path, model: str, target: str) -> tuple[str, str]:
    """The hashes of the guidance of every cell, and of the published classes."""
    spec = spec_of(folder, model, target)
    engine, table = DuckDBEngine(folder / "spill", threads=2), folder / f"{model} {target}.parquet"
    types = engine.store_source(spec, table).types()
    sample = engine.sample(table, spec, types, spec.guide.sample)
    folded, guide = folds_of_sample(sample.hash, spec.guide, KEY)
    features = {name: types[name] for name in spec.features}
    trained = train(
        Problem(sample.features, sample.target, task_of(types[spec.target]), features, spec.seed), guide, folded.fold
    )
    scale = scale_of(trained.guidance(sample.features, folded.fold))
    cells = guided_cells(StoredPeople(engine, table, spec, types), trained, folded, scale)
    classes = tree_of(spec, KEY).fit_cells(cells).classes_
    return (
        hashlib.sha256(np.ascontiguousarray(cells.guidance)).hexdigest(),
        hashlib.sha256(classes.to_csv().encode()).hexdigest(),
    )


if __name__ == "__main__":
    place, order, models = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    write_people(place, order == "backwards")
    print(json.dumps({f"{model}, {target}": grouped(place, model, target) for model in models for target in TARGETS}))
