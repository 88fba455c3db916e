"""What a step cost, against cases whose answer is known."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from anon_pipeline.errors import InputError
from anon_pipeline.masking.cost import association, column_cost, linkage
from anon_pipeline.masking.execution import Resources, apply_steps
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

RNG = np.random.default_rng(4)


def test_the_share_of_cells_changed_counts_gaps_as_values() -> None:
    before = {"v": pa.array([1, 2, None, None, 5])}
    after = {"v": pa.array([1, 3, None, 4, None])}
    assert column_cost("v", before, after, {"v": NUMERIC}, {"v": NUMERIC}).changed == pytest.approx(0.6)
    texts = {"v": pa.array(["1", "2", None, None, "5"])}
    cost = column_cost("v", before, texts, {"v": NUMERIC}, {"v": CATEGORICAL})
    assert (cost.changed, cost.distance, cost.measure) == (0.0, None, None)


def test_distances_of_known_size() -> None:
    values = np.arange(100.0)
    moved = column_cost("v", {"v": pa.array(values)}, {"v": pa.array(values + 9.9)}, {"v": NUMERIC}, {"v": NUMERIC})
    assert moved.distance == pytest.approx(0.1) and moved.measure is not None and "earth" in moved.measure
    before, after = (
        {"v": pa.array(["a"] * 6 + ["b"] * 4)},
        {"v": pa.array(["a"] * 3 + ["c"] * 3 + ["b"] * 2 + [None] * 2)},
    )
    cost = column_cost("v", before, after, {"v": CATEGORICAL}, {"v": CATEGORICAL})
    assert cost.distance == pytest.approx(0.5) and cost.measure == "total variation distance"
    assert column_cost("v", {"v": pa.array([], pa.int64())}, {"v": pa.array([], pa.int64())}, {}, {}).changed == 0


@pytest.mark.parametrize("size", [2.0**-900, 2.0**900])
def test_a_correlation_is_the_same_however_large_or_small_the_numbers_are(size: float) -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 50))
    found = association(pa.array(a * size), pa.array((a + b) * size), NUMERIC, NUMERIC)
    assert found == pytest.approx(np.corrcoef(a, a + b)[0, 1])


def test_associations_are_those_of_the_textbooks() -> None:
    a, b = RNG.normal(size=500), RNG.normal(size=500)
    c = a + b
    assert association(pa.array(a), pa.array(c), NUMERIC, NUMERIC) == pytest.approx(np.corrcoef(a, c)[0, 1])
    one, other = RNG.choice(["x", "y", "z"], 500), RNG.choice(["u", "w"], 500)
    table = np.array([[((one == i) & (other == j)).sum() for j in "uw"] for i in "xyz"])
    cramer = stats.contingency.association(table, method="cramer")
    assert association(pa.array(one), pa.array(other), CATEGORICAL, CATEGORICAL) == pytest.approx(cramer)
    f = stats.f_oneway(*(a[one == i] for i in "xyz")).statistic
    ratio = np.sqrt(f * 2 / (f * 2 + 497))  # eta^2 = between / total
    assert association(pa.array(one), pa.array(a), CATEGORICAL, NUMERIC) == pytest.approx(ratio)
    assert association(pa.array([1.0, 1.0]), pa.array([1.0, 2.0]), NUMERIC, NUMERIC) == 0
    names = pa.array([str(i) for i in range(500)])
    assert association(names, pa.array(one), CATEGORICAL, CATEGORICAL) is None


def test_a_correlation_that_is_lost_is_reported() -> None:
    x = RNG.normal(size=4000)
    table = pa.table({"x": x, "y": x, "c": RNG.choice(["a", "b"], 4000)})
    kinds = {"x": NUMERIC, "y": NUMERIC, "c": CATEGORICAL}
    _, (report,) = apply_steps(
        table, kinds, {"x": [step("noise", share=1)]}, resources=Resources(key=KEY, secrets=SECRETS)
    )
    assert report.costs["x"].correlation == pytest.approx(1 - np.sqrt(0.5), abs=0.03)
    assert report.costs["x"].changed == 1.0
    _, (alone,) = apply_steps(table.select(["x"]), {"x": NUMERIC}, {"x": [step("round", to=1)]})
    assert alone.costs["x"].correlation is None


def test_who_can_be_linked_again() -> None:
    table, kinds = people(1000)
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    same = linkage(columns, columns, kinds, ["x", "y"])
    assert same is not None and same.rate == pytest.approx(1.0) and (same.rows, same.pool) == (500, 1000)
    equal = {"c": pa.array(["a"] * 100)}
    nobody = linkage(equal, equal, {"c": CATEGORICAL}, ["c"])
    assert nobody is not None and nobody.rate == pytest.approx(0.01), "one of a hundred who look alike"
    assert linkage({"v": pa.array([], pa.int64())}, {"v": pa.array([], pa.int64())}, {"v": NUMERIC}, ["v"]) is None
    rates = []
    for deviation in (1e-6, 0.01, 1.0):
        steps = [step("correlated_noise", columns=["x", "y"], share=deviation)]
        _, (report,) = apply_steps(table, kinds, {}, steps, Resources(key=KEY, secrets=SECRETS))
        assert report.linkage is not None
        rates.append(report.linkage.rate)
    assert rates[0] > rates[1] > 0.2 > rates[2] and rates[0] > 0.95


@pytest.mark.parametrize("technique", [*COLUMN_STEPS, *TABLE_STEPS])
def test_reports_are_plain_data_without_values_of_people(technique: str) -> None:
    table, kinds = people(60)
    if technique in TABLE_STEPS:
        _, (report,) = apply_steps(table, kinds, {}, [step(technique, **TABLE_STEPS[technique])], Resources(key=KEY))
    else:
        kind, parameters = COLUMN_STEPS[technique]
        column = {NUMERIC: "x", CATEGORICAL: "c", DATE: "d"}[kind]
        _, (report,) = apply_steps(
            table, kinds, {column: [step(technique, **parameters)]}, resources=Resources(key=KEY, secrets=SECRETS)
        )
    facts = dataclasses.asdict(report)
    facts.pop("parameters")
    written = json.dumps(facts, allow_nan=False)
    assert "0a0a" not in written and "Würzburg" not in json.loads(written).__repr__()


def test_a_table_and_its_types_must_agree() -> None:
    table, kinds = people(3)
    with pytest.raises(InputError, match="columns without a type: d"):
        apply_steps(
            table,
            {name: kind for name, kind in kinds.items() if name != "d"},
            {},
            resources=Resources(key=KEY, secrets=SECRETS),
        )
    with pytest.raises(InputError, match="the table has no column d"):
        apply_steps(table.drop(["d"]), kinds, {}, resources=Resources(key=KEY, secrets=SECRETS))


def test_every_step_has_a_report_in_the_order_of_the_steps() -> None:
    table, kinds = people(300)
    steps = {"z": [step("rank_swap", share=0.2), step("top_bottom_code", top=2)], "c": [step("prefix", length=1)]}
    made, reports = apply_steps(
        table, kinds, steps, [step("mdav", columns=["x", "y"], k=3)], Resources(key=KEY, secrets=SECRETS)
    )
    assert [report.place for report in reports] == [
        "columns.z.steps.0",
        "columns.z.steps.1",
        "columns.c.steps.0",
        "steps.0",
    ]
    assert reports[0].linkage is not None and reports[1].linkage is None
    assert set(reports[3].costs) == {"x", "y"} and reports[3].parameters == {
        "columns": ["x", "y"],
        "k": 3,
        "show": "mean",
    }
    assert max(made.column("z").to_pylist()) == 2 and set(made.column("c").to_pylist()) <= {"U", "B", "W", "K", None}
