"""The same input, spec and key show the same everywhere and in every version: what each technique shows is pinned.

A change here changes what a masked release shows when it is made anew. That is decided, never stumbled upon, and is
told in the changelog as **release**.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

import pytest

from anon_pipeline.masking.execution import Resources, StepReport, apply_steps
from anon_pipeline_tests.masking.tables import (
    CATEGORICAL,
    COLUMN_STEPS,
    DATE,
    KEY,
    NUMERIC,
    SECRETS,
    TABLE_STEPS,
    people,
    step,
)

COLUMN_OF = {NUMERIC: "x", CATEGORICAL: "c", DATE: "d"}

#: Of what a technique shows, and of what is reported of it. Not `fake`, whose names are Faker's and not ours, and not
#: `h3_cell`, for which not everybody has a library.
PINNED = {
    "aggregate": "e06caf7c7c43",
    "bin": "4a2bb9b4ce9b",
    "correlated_noise": "5d9858342aa0",
    "donut": "5621b71b4f77",
    "encrypt": "a058084aab63",
    "grid_cell": "d5f12c7fd6fa",
    "hierarchy": "4f2503b2275a",
    "keep_format": "232920abc8bb",
    "local_frequencies": "25d383da7063",
    "local_suppression": "912c1e566196",
    "mask": "2275bd4f97d5",
    "mdav": "bfa98947fcc5",
    "microaggregate": "dffa4a32c85f",
    "noise": "b4083b28b2bb",
    "planar_laplace": "e108e3bbc075",
    "population_donut": "23767485be9b",
    "pram": "c0fe23f76c1f",
    "prefix": "9eb86907e53a",
    "proportional_noise": "0b89133aa5d5",
    "pseudonymize": "db2cc7cf9139",
    "quantile_bin": "96b1c3e5d9eb",
    "quantile_code": "6bb43e82a93b",
    "randomized_response": "003f603f9ffe",
    "rank_swap": "0adcb6cceb65",
    "redact": "6c0ab31d829b",
    "replace": "4d4b45c4b2bd",
    "round": "70236a3182a9",
    "sample": "2822a0434933",
    "suppress": "3d41f8836455",
    "suppress_cells": "723408871912",
    "suppress_rare": "249aa378bd41",
    "synthesize": "21b94f4f5b35",
    "top_bottom_code": "03ccf1ced74a",
    "truncate_date": "f9954d4a87b3",
    "unary_encoding": "2b97bcc51243",
}


def plain(value: Any) -> Any:
    """Floats with nine digits, which every processor gives; everything else as it is."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def shown(technique: str) -> str:
    table, kinds = people(120)
    if technique in COLUMN_STEPS:
        kind, parameters = COLUMN_STEPS[technique]
        under: dict[str, Any] = {COLUMN_OF[kind]: [step(technique, **parameters)]}
        made, reports = apply_steps(table, kinds, under, resources=Resources(key=KEY, secrets=SECRETS))
    else:
        steps = [step(technique, **TABLE_STEPS[technique])]
        made, reports = apply_steps(table, kinds, {}, steps, Resources(key=KEY, secrets=SECRETS))
    return digest([made.column(name).to_pylist() for name in made.column_names], *reports)


def digest(values: list[Any], report: StepReport) -> str:
    told = [report.guarantee, report.facts, {name: asdict(cost) for name, cost in report.costs.items()}]
    told.append(None if report.linkage is None else asdict(report.linkage))
    return hashlib.sha256(repr(plain([values, told])).encode()).hexdigest()[:12]


@pytest.mark.parametrize("technique", sorted(PINNED))
def test_a_technique_shows_and_reports_the_same_in_every_version(technique: str) -> None:
    assert shown(technique) == PINNED[technique]


def test_every_technique_of_ours_is_pinned() -> None:
    assert set(PINNED) == {*COLUMN_STEPS, *TABLE_STEPS} - {"fake", "h3_cell"}
