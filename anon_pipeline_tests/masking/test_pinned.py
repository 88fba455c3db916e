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
    "aggregate": "8a50bfa3bc13",
    "bin": "81b294fee831",
    "correlated_noise": "a57354a1c722",
    "donut": "7ab1434acf43",
    "encrypt": "743245bdfb4e",
    "grid_cell": "44bed80a08e1",
    "hierarchy": "7a0c4f9151f3",
    "keep_format": "0c5ae1a3b854",
    "local_frequencies": "ded04c31451b",
    "local_suppression": "b2ae12fe846d",
    "mask": "44357e417af8",
    "mdav": "e2b012e87bc7",
    "microaggregate": "0c780465ceee",
    "noise": "e4f9e2f6e91a",
    "planar_laplace": "10630965d0eb",
    "population_donut": "d530f75dcd50",
    "pram": "8ecc155a4035",
    "prefix": "cac13aecb7e8",
    "proportional_noise": "f2e187180299",
    "pseudonymize": "424d8c77acae",
    "quantile_bin": "31a10fd6ffcb",
    "quantile_code": "482d018e8488",
    "randomized_response": "8b4aecbfa3f0",
    "rank_swap": "08e17a20379a",
    "redact": "add44d3519ce",
    "replace": "91551cf398da",
    "round": "02a796b01af8",
    "sample": "ecf1a8474013",
    "suppress": "899ed1aa217a",
    "suppress_cells": "808fba1c1382",
    "suppress_rare": "ed54fcd418a6",
    "synthesize": "ce2c29c056d5",
    "top_bottom_code": "f55d8ba6d6d3",
    "truncate_date": "79bd3b393cd2",
    "unary_encoding": "950eb08ae1e1",
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
