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
    "bin": "597c9c9b0f46",
    "correlated_noise": "cf2993f4cd8d",
    "donut": "284c013d6469",
    "encrypt": "6acfd97b9fff",
    "grid_cell": "def7446012c7",
    "hierarchy": "e4323d2292e0",
    "keep_format": "647560a60170",
    "local_frequencies": "25d383da7063",
    "local_suppression": "2c9d09b88a19",
    "mask": "5dc44dccd6ae",
    "mdav": "376904b3863f",
    "microaggregate": "8087ee94286c",
    "noise": "3294bea78d91",
    "planar_laplace": "e108e3bbc075",
    "population_donut": "c55b700225e8",
    "pram": "0d3869047ab0",
    "prefix": "c2d5812ec5af",
    "proportional_noise": "dfa8a594d3c0",
    "pseudonymize": "b114dcca7799",
    "quantile_bin": "6b5a7e6dedb4",
    "quantile_code": "fe94c980eb0a",
    "randomized_response": "003f603f9ffe",
    "rank_swap": "5bbc80c9ea33",
    "redact": "e6e48b7d8049",
    "replace": "e1270dcfb638",
    "round": "bb3498aca5b9",
    "sample": "2822a0434933",
    "suppress": "11fcbfed1036",
    "suppress_cells": "2b62e578abe9",
    "suppress_rare": "f0f8748e6105",
    "synthesize": "f47271e2fa73",
    "top_bottom_code": "f6d16f2f2c0b",
    "truncate_date": "8524d383cf6b",
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
