"""Tables and steps that the tests of masking share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from anon_pipeline.keys import Key, Secrets
from anon_pipeline.masking.base import Technique
from anon_pipeline.masking.catalog import read_step
from anon_pipeline.masking.execution import Resources, StepReport, apply_steps
from anon_pipeline.spec import ColumnType

NUMERIC, CATEGORICAL, DATE = ColumnType.NUMERIC, ColumnType.CATEGORICAL, ColumnType.DATE
SECRETS = Secrets({"ANON_PIPELINE_KEY": "0a" * 32})
#: Of the dataset; everything that is drawn in tests follows from it.
KEY, OTHER_KEY = Key(bytes.fromhex("1b" * 32)), Key(bytes.fromhex("2c" * 32))

#: A step of every technique that stands under a column, with a column type it takes.
COLUMN_STEPS: dict[str, tuple[ColumnType, dict[str, Any]]] = {
    "suppress": (NUMERIC, {}),
    "suppress_cells": (CATEGORICAL, {"values": ["Ulm"], "pattern": "^B"}),
    "suppress_rare": (CATEGORICAL, {"k": 3}),
    "redact": (CATEGORICAL, {}),
    "mask": (CATEGORICAL, {"first": 1, "last": 1}),
    "keep_format": (CATEGORICAL, {}),
    "replace": (CATEGORICAL, {"pattern": "[a-m]+"}),
    "pseudonymize": (CATEGORICAL, {}),
    "encrypt": (CATEGORICAL, {}),
    "fake": (CATEGORICAL, {"kind": "first_name"}),
    "round": (NUMERIC, {"to": 10}),
    "bin": (NUMERIC, {"width": 10}),
    "quantile_bin": (NUMERIC, {"bins": 4}),
    "top_bottom_code": (NUMERIC, {"top": 50, "bottom": -3}),
    "quantile_code": (NUMERIC, {"top": 0.1, "bottom": 0.1}),
    "truncate_date": (DATE, {"to": "month"}),
    "prefix": (CATEGORICAL, {"length": 2}),
    "hierarchy": (CATEGORICAL, {"groups": {"south": ["Ulm"], "west": ["Bonn"]}}),
    "noise": (NUMERIC, {"share": 0.5}),
    "proportional_noise": (NUMERIC, {"share": 0.1}),
    "rank_swap": (NUMERIC, {"share": 0.3}),
    "pram": (CATEGORICAL, {"retention": 0.7}),
    "microaggregate": (NUMERIC, {"k": 3}),
    "randomized_response": (CATEGORICAL, {"epsilon": 1, "categories": ["Ulm", "Bonn", "else"], "other": "else"}),
    "unary_encoding": (CATEGORICAL, {"epsilon": 1, "categories": ["Ulm", "Bonn", "else"], "other": "else"}),
    "local_frequencies": (CATEGORICAL, {"epsilon": 1, "categories": ["Ulm", "Bonn", "else"], "other": "else"}),
}
#: The same for techniques that stand in the table's list, on columns x and y (numbers) or c (texts) and z.
TABLE_STEPS: dict[str, dict[str, Any]] = {
    "local_suppression": {"columns": ["c", "z"], "k": 3},
    "correlated_noise": {"columns": ["x", "y"], "share": 0.5},
    "mdav": {"columns": ["x", "y"], "k": 3},
    "sample": {"columns": ["c"], "share": 0.5},
    "aggregate": {"columns": ["c"], "means": ["x"], "threshold": 3},
    "synthesize": {"columns": ["x", "c"], "given": ["y", "z"], "leaf": 3},
    "grid_cell": {"columns": ["x", "y"], "metres": 1000},
    "h3_cell": {"columns": ["x", "y"], "resolution": 5, "into": "cell"},
    "donut": {"columns": ["x", "y"], "inner": 100, "outer": 200},
    "population_donut": {"columns": ["x", "y"], "k": 3},
    "planar_laplace": {"columns": ["x", "y"], "level": 1, "radius": 500},
}


def step(technique: str, **parameters: Any) -> Technique:
    return read_step({"technique": technique, **parameters})


def masked(
    column: pa.Array | Sequence[Any],
    kind: ColumnType,
    *steps: Technique,
    key: Key = KEY,
    secrets: Secrets = SECRETS,
    others: Mapping[str, pa.Array] | None = None,
) -> tuple[pa.Array, list[StepReport]]:
    """One column `v` after its steps, beside `others` that only tell people apart."""
    column = column if isinstance(column, pa.Array) else pa.array(column)
    others = {} if others is None else others
    kinds = dict.fromkeys(others, NUMERIC) | {"v": kind}
    made, reports = apply_steps(
        pa.table({**others, "v": column}), kinds, {"v": steps}, resources=Resources(key=key, secrets=secrets)
    )
    return made.column("v").combine_chunks(), reports


def people(n: int, seed: int = 0) -> tuple[pa.Table, dict[str, ColumnType]]:
    """n people around Ulm with gaps: two numbers that are a place, a text, a skewed number and a date."""
    rng = np.random.default_rng(seed)
    x, y = 48.4 + rng.normal(0, 0.1, n), 10.0 + rng.normal(0, 0.1, n)
    towns = rng.choice(["Ulm", "Bonn", "Würzburg", "Köln"], n, p=[0.5, 0.3, 0.15, 0.05])
    table = pa.table(
        {
            "x": pa.array(x, mask=rng.random(n) < 0.05),
            "y": pa.array(y),
            "c": pa.array(towns, mask=rng.random(n) < 0.05),
            "z": pa.array(rng.integers(0, 4, n)),
            "d": pa.array(rng.integers(0, 20_000, n).astype("int32")).cast(pa.date32()),
        }
    )
    return table, {"x": NUMERIC, "y": NUMERIC, "c": CATEGORICAL, "z": NUMERIC, "d": DATE}


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as a sorted list, for comparing tables whatever their order."""
    columns = [table.column(name).to_pylist() for name in sorted(table.column_names)]
    return sorted(zip(*columns, strict=True), key=repr)
