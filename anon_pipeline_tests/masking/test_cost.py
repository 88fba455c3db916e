"""What a step cost, against cases whose answer is known."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from anon_pipeline.errors import InputError
from anon_pipeline.masking.cost import association, column_cost, linkage
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.spec import ColumnType
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


def test_what_is_the_same_everywhere_has_no_association_and_what_names_people_none_that_means_anything() -> None:
    constant, towns = pa.array(["x"] * 4), pa.array(["u", "w", "u", "w"])
    assert association(constant, towns, CATEGORICAL, CATEGORICAL) == 0
    assert association(towns, constant, CATEGORICAL, CATEGORICAL) == 0
    assert association(towns, pa.array([3.0] * 4), CATEGORICAL, NUMERIC) == 0
    assert association(constant, pa.array([1.0, 2.0, 3.0, 4.0]), CATEGORICAL, NUMERIC) == 0
    assert association(towns, pa.array([1.0, 5.0, None, None]), CATEGORICAL, NUMERIC) == 1
    assert association(towns, pa.array([1.0, None, None, None]), CATEGORICAL, NUMERIC) is None
    assert association(pa.array([1.0, None]), pa.array([1.0, 2.0]), NUMERIC, NUMERIC) is None
    for categories, is_known in ((200, True), (201, False)):
        names, numbers = pa.array([f"{i % categories}" for i in range(402)]), pa.array(np.arange(402.0))
        halves = pa.array(["u", "w"] * 201)
        assert (association(names, halves, CATEGORICAL, CATEGORICAL) is not None) == is_known
        assert (association(halves, names, CATEGORICAL, CATEGORICAL) is not None) == is_known
        assert (association(names, numbers, CATEGORICAL, NUMERIC) is not None) == is_known


@pytest.mark.parametrize("size", [2.0**-900, 2.0**900])
def test_a_correlation_ratio_is_the_same_however_large_or_small_the_numbers_are(size: float) -> None:
    numbers = np.array([1.0, 2.0, 5.0, 7.0])
    found = association(pa.array(["u", "u", "w", "w"]), pa.array(numbers * size), CATEGORICAL, NUMERIC)
    assert found == pytest.approx(np.sqrt(4 * 2.25**2 / ((numbers - 3.75) ** 2).sum()))


UP, DOWN = pa.array([0.0, 1.0]), pa.array([1.0, 0.0])


@pytest.mark.parametrize(
    ("after", "kind", "other_kind", "change"),
    [
        ({"v": UP, "w": UP}, NUMERIC, NUMERIC, 0.0),
        ({"v": UP, "w": DOWN}, NUMERIC, NUMERIC, 2.0),  # of 1 is made -1
        ({"v": pa.array(["a", "b"]), "w": DOWN}, CATEGORICAL, NUMERIC, 0.0),  # a ratio has no sign
        ({"v": UP, "w": pa.array(["a", "b"])}, NUMERIC, CATEGORICAL, 0.0),
        ({"v": UP, "w": pa.array(["a", "a"])}, NUMERIC, CATEGORICAL, 1.0),
        ({"v": UP}, NUMERIC, NUMERIC, None),
    ],
)
def test_correlations_are_compared_with_their_sign_where_both_have_one(
    after: dict[str, pa.Array], kind: ColumnType, other_kind: ColumnType, change: float | None
) -> None:
    kinds = {"v": NUMERIC, "w": NUMERIC}
    cost = column_cost("v", {"v": UP, "w": UP}, after, kinds, {"v": kind, "w": other_kind})
    assert cost.correlation == pytest.approx(change)
    cost = column_cost("v", {"v": UP, "w": DOWN}, after, kinds, {"v": kind, "w": other_kind})
    both_have = kind is other_kind is NUMERIC and change is not None
    assert cost.correlation == pytest.approx(2.0 - (change or 0.0) if both_have else change)


def test_the_largest_change_counts_among_columns_that_have_a_correlation_before_and_after() -> None:
    numbers = pa.array([float(i) for i in range(300)])
    half = pa.array(["a"] * 150 + ["b"] * 150)
    names = pa.array([str(i) for i in range(300)])
    before = {"v": numbers, "half": half, "alternating": pa.array(["a", "b"] * 150), "names": names}
    kinds = {"v": NUMERIC, "half": CATEGORICAL, "alternating": CATEGORICAL, "names": CATEGORICAL}
    reversed_ = before | {"v": pa.array([float(i % 2) for i in range(300)])}
    assert column_cost("v", before, reversed_, kinds, kinds).correlation == 0.99  # of .006 with what alternates
    assert column_cost("v", before, before | {"names": half}, kinds, kinds).correlation == 0
    assert column_cost("v", before | {"names": half}, before, kinds, kinds).correlation == 0
    assert column_cost("names", before, before | {"names": half}, kinds, kinds).correlation is None


def test_distances_of_numbers_are_parts_of_the_old_range_and_missing_categories_count() -> None:
    before, after = {"v": pa.array([110.0, 120.0, None])}, {"v": pa.array([110.0, 115.0, None])}
    assert column_cost("v", before, after, {"v": NUMERIC}, {"v": NUMERIC}).distance == 0.25
    constant, moved = {"v": pa.array([6.0, 6.0])}, {"v": pa.array([9.0, 9.0])}
    assert column_cost("v", constant, moved, {"v": NUMERIC}, {"v": NUMERIC}).distance == pytest.approx(3 / 8, abs=0.01)
    gone = {"v": pa.array([None, None], pa.float64())}
    for pair in ((constant, gone), (gone, constant)):
        assert column_cost("v", *pair, {"v": NUMERIC}, {"v": NUMERIC}).distance is None
    texts, none = {"v": pa.array(["a", None])}, {"v": pa.nulls(2, pa.string())}
    assert column_cost("v", texts, none, {"v": CATEGORICAL}, {"v": CATEGORICAL}).distance == 0.5
    assert column_cost("v", none, none, {"v": CATEGORICAL}, {"v": CATEGORICAL}).distance == 0
    as_numbers = column_cost("v", {"v": pa.array(["1", "2"])}, moved, {"v": CATEGORICAL}, {"v": NUMERIC})
    assert as_numbers.measure == "total variation distance" and as_numbers.distance == 1


def plain_rate(before: dict[str, pa.Array], after: dict[str, pa.Array], texts: set[str]) -> float:
    """As `linkage` says it, one pair after the other."""
    n = len(next(iter(before.values())))
    old, new = ({name: half[name].to_pylist() for name in half} for half in (before, after))
    known = {name: np.array([x for x in old[name] if x is not None]) for name in old if name not in texts}

    def apart(name: str, a: Any, b: Any) -> float:
        if name in texts or a is None or b is None:
            return float(a != b)
        return float(abs(a / known[name].std() - b / known[name].std()))

    total = 0.0
    for row in range(n):
        gaps = [sum(apart(name, new[name][row], old[name][other]) for name in old) for other in range(n)]
        equally = [other for other in range(n) if gaps[other] <= min(gaps) * (1 + 1e-9)]
        total += (row in equally) / len(equally)
    return total / n


def test_who_is_nearest_is_judged_by_all_columns_in_their_own_measure_and_by_gaps() -> None:
    random = np.random.default_rng(5)
    x, y, z = random.normal(size=40), random.normal(size=40) * 1000, random.integers(0, 3, 40)
    before = {
        "x": pa.array(x, mask=random.random(40) < 0.2),
        "y": pa.array(y),
        "z": pa.array(z.astype(float)),
        "c": pa.array(random.choice(["a", "b"], 40), mask=random.random(40) < 0.2),
    }
    after = before | {
        "x": pa.array(x + random.normal(size=40) * 0.3, mask=random.random(40) < 0.2),
        "y": pa.array(y + random.normal(size=40) * 300),
        "c": pa.array(random.choice(["a", "b"], 40)),
    }
    kinds = {"x": NUMERIC, "y": NUMERIC, "z": NUMERIC, "c": CATEGORICAL}
    for columns in (["x"], ["y"], ["z"], ["c"], ["x", "z"], ["x", "c"], ["x", "y", "z", "c"]):
        parts = [{name: half[name] for name in columns} for half in (before, after)]
        found = linkage(before, after, kinds, columns)
        assert found is not None and found.rate == pytest.approx(plain_rate(parts[0], parts[1], {"c"})), columns
    constant = {"v": pa.array([3.0, 3.0])}
    found = linkage(constant, constant, {"v": NUMERIC}, ["v"])
    assert found is not None and found.rate == 0.5


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


@pytest.mark.long
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
