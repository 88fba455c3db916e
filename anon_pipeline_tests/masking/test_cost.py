"""What a step cost, against cases whose answer is known."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anon_pipeline.association import Robust
from anon_pipeline.errors import InputError
from anon_pipeline.masking.cost import ColumnCost, CorrelationChange, association_of, column_cost, linkage
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import nearly_constant
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
    assert (cost.changed, cost.distance, cost.measure, cost.known) == (0.0, None, None, 0)


def test_distances_of_known_size() -> None:
    values = np.arange(100.0)
    moved = column_cost("v", {"v": pa.array(values)}, {"v": pa.array(values + 9.9)}, {"v": NUMERIC}, {"v": NUMERIC})
    # 90 values have .099 more below them, and the others everybody.
    assert moved.distance == pytest.approx((90 * 0.099 + np.arange(0.005, 0.1, 0.01).sum()) / 100)
    assert moved.measure == "earth mover's distance between ranks"
    before, after = (
        {"v": pa.array(["a"] * 6 + ["b"] * 4)},
        {"v": pa.array(["a"] * 3 + ["c"] * 3 + ["b"] * 2 + [None] * 2)},
    )
    cost = column_cost("v", before, after, {"v": CATEGORICAL}, {"v": CATEGORICAL})
    assert cost.distance == pytest.approx(0.5) and cost.measure == "total variation distance"
    assert column_cost("v", {"v": pa.array([], pa.int64())}, {"v": pa.array([], pa.int64())}, {}, {}).changed == 0


def test_associations_are_those_of_ranks_and_of_frequent_categories() -> None:
    a, b = RNG.normal(size=500), RNG.normal(size=500)
    numbers, others = pa.array(a), pa.array(np.exp(9 * (a + b)))
    found = association_of(numbers, others, NUMERIC, NUMERIC)
    assert found == Robust(pytest.approx(stats.spearmanr(a, a + b)[0]), 500, (499, 499))
    some = pa.array(a, mask=np.arange(500) < 120)
    found = association_of(some, others, NUMERIC, NUMERIC)
    assert found == Robust(pytest.approx(stats.spearmanr(a[120:], (a + b)[120:])[0]), 380, (379, 379))
    names = pa.array([str(i) for i in range(500)])
    towns = pa.array(RNG.choice(["u", "w"], 500))
    assert association_of(names, towns, CATEGORICAL, CATEGORICAL).apart[0] == 1, "all are rare"
    found = association_of(pa.array(["x"] * 500), towns, CATEGORICAL, CATEGORICAL)
    assert (found.value, found.people, found.apart[0]) == (None, 500, 0)
    assert association_of(towns, pa.nulls(500, pa.float64()), CATEGORICAL, NUMERIC) == Robust(None, 0, (0, 0))
    assert association_of(towns, towns, CATEGORICAL, CATEGORICAL).value == pytest.approx(1)


UP, DOWN = pa.array([0.0, 1.0] * 9), pa.array([1.0, 0.0] * 9)
LETTERS = pa.array(["a", "b"] * 9)


def size(cost: ColumnCost) -> float | None:
    """The largest change with a column of which more than hardly anybody differs, as it is told without noise."""

    def few(change: CorrelationChange, apart: tuple[int, int]) -> bool:
        return nearly_constant(min(apart), change.people)

    sizes = []
    for change in cost.correlations:
        if not few(change, change.apart):
            before, after = change.before, 0.0 if few(change, change.apart_after) else change.after
            sizes.append(abs(before - after) if change.signed else abs(abs(before) - abs(after)))
    return max(sizes, default=None)


@pytest.mark.parametrize(
    ("after", "kind", "other_kind", "change"),
    [
        ({"v": UP, "w": UP}, NUMERIC, NUMERIC, 0.0),
        ({"v": UP, "w": DOWN}, NUMERIC, NUMERIC, 2.0),  # of 1 is made -1
        ({"v": LETTERS, "w": DOWN}, CATEGORICAL, NUMERIC, 0.0),  # a ratio has no sign
        ({"v": UP, "w": LETTERS}, NUMERIC, CATEGORICAL, 0.0),
        ({"v": UP, "w": pa.array(["a", "a"] * 9)}, NUMERIC, CATEGORICAL, 1.0),
        ({"v": UP}, NUMERIC, NUMERIC, None),
    ],
)
def test_correlations_are_compared_with_their_sign_where_both_have_one(
    after: dict[str, pa.Array], kind: ColumnType, other_kind: ColumnType, change: float | None
) -> None:
    kinds = {"v": NUMERIC, "w": NUMERIC}
    cost = column_cost("v", {"v": UP, "w": UP}, after, kinds, {"v": kind, "w": other_kind})
    assert size(cost) == pytest.approx(change)
    cost = column_cost("v", {"v": UP, "w": DOWN}, after, kinds, {"v": kind, "w": other_kind})
    both_have = kind is other_kind is NUMERIC and change is not None
    assert size(cost) == pytest.approx(2.0 - (change or 0.0) if both_have else change)


def test_the_largest_change_counts_among_columns_that_have_a_correlation_before_and_after() -> None:
    numbers = pa.array([float(i) for i in range(300)])
    half = pa.array(["a"] * 150 + ["b"] * 150)
    names = pa.array([str(i) for i in range(300)])
    before = {"v": numbers, "half": half, "alternating": pa.array(["a", "b"] * 150), "names": names}
    kinds = {"v": NUMERIC, "half": CATEGORICAL, "alternating": CATEGORICAL, "names": CATEGORICAL}
    reversed_ = before | {"v": pa.array([float(i % 2) for i in range(300)])}
    assert size(column_cost("v", before, reversed_, kinds, kinds)) == pytest.approx(
        1, abs=0.01
    )  # of 0 with what alternates
    assert size(column_cost("v", before, before | {"names": half}, kinds, kinds)) == 0
    assert size(column_cost("v", before | {"names": half}, before, kinds, kinds)) > 0.8, "nothing is left of it"
    assert size(column_cost("names", before, before | {"names": half}, kinds, kinds)) is None


def test_distances_of_numbers_are_parts_of_the_people_and_missing_categories_count() -> None:
    before, after = {"v": pa.array([110.0, 120.0, None])}, {"v": pa.array([110.0, 115.0, None])}
    cost = column_cost("v", before, after, {"v": NUMERIC}, {"v": NUMERIC})
    assert (cost.distance, cost.people, cost.known) == (0.125, 3, 2), "from .75 of the people below to half of them"
    constant, moved = {"v": pa.array([6.0, 6.0])}, {"v": pa.array([9.0, 9.0])}
    assert column_cost("v", constant, moved, {"v": NUMERIC}, {"v": NUMERIC}).distance == 0.5
    assert column_cost("v", moved, constant, {"v": NUMERIC}, {"v": NUMERIC}).distance == 0.5
    fewer = column_cost("v", before, {"v": pa.array([110.0, None, None])}, {"v": NUMERIC}, {"v": NUMERIC})
    assert fewer.known == 1
    gone = {"v": pa.array([None, None], pa.float64())}
    for pair in ((constant, gone), (gone, constant)):
        cost = column_cost("v", *pair, {"v": NUMERIC}, {"v": NUMERIC})
        assert (cost.distance, cost.known) == (None, 0)
    texts, none = {"v": pa.array(["a", None])}, {"v": pa.nulls(2, pa.string())}
    assert column_cost("v", texts, none, {"v": CATEGORICAL}, {"v": CATEGORICAL}).distance == 0.5
    assert column_cost("v", none, none, {"v": CATEGORICAL}, {"v": CATEGORICAL}).distance == 0
    as_numbers = column_cost("v", {"v": pa.array(["1", "2"])}, moved, {"v": CATEGORICAL}, {"v": NUMERIC})
    assert as_numbers.measure == "total variation distance" and as_numbers.distance == 1 and as_numbers.known == 2


@pytest.mark.long
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1.0, -1e9, 1e300, None]),
    st.sampled_from(["a", "rare", None]),
)
def test_no_person_weighs_much_whatever_the_value(seed: int, number: float | None, letter: str | None) -> None:
    """Who knows all values but one must not read the last one off the costs."""
    random, n = np.random.default_rng(seed), 200
    letters = random.choice(["a", "b", "c"], n)
    old = {
        "x": (random.normal(size=n) + (letters == "a")).tolist(),
        "y": random.integers(0, 4, n).tolist(),
        "c": letters.tolist(),
    }
    kinds = {"x": NUMERIC, "y": NUMERIC, "c": CATEGORICAL}

    def costs_of(table: dict[str, Any]) -> tuple[ColumnCost, float]:
        before = {"x": pa.array(table["x"], pa.float64()), "y": pa.array(table["y"]), "c": pa.array(table["c"])}
        swapped = before | {"x": pa.array(table["x"][::-1], pa.float64())}
        rounded = [None if x is None else float(np.round(x, 0)) for x in table["x"]]
        linked = linkage(before, before | {"x": pa.array(rounded, pa.float64())}, kinds, ["x", "y"])
        assert linked is not None
        return column_cost("x", before, swapped, kinds, kinds), linked.rate

    (cost, linked), (other, other_linked) = (
        costs_of(old),
        costs_of(old | {"x": [number, *old["x"][1:]], "c": [letter, *old["c"][1:]]}),
    )
    assert abs(cost.changed - other.changed) <= 2 / n + 1e-9
    assert cost.distance is not None and other.distance is not None
    assert abs(cost.distance - other.distance) <= 4 / n
    largest, of_other = size(cost), size(other)
    assert largest is not None and of_other is not None and abs(largest - of_other) <= 0.1
    assert abs(linked - other_linked) <= 0.05


def plain_rate(before: dict[str, pa.Array], after: dict[str, pa.Array], texts: set[str]) -> float:
    """As `linkage` says it, one pair after the other."""
    n = len(next(iter(before.values())))
    old, new = ({name: half[name].to_pylist() for name in half} for half in (before, after))
    known = {name: sorted(x for x in old[name] if x is not None) for name in old if name not in texts}

    def rank(name: str, value: float) -> float:
        values = known[name]
        if value < values[0] or value > values[-1]:
            return float(value > values[-1])
        low = max(x for x in values if x <= value)
        high = min(x for x in values if x >= value)
        at = [np.mean([(x < end) + (x == end) / 2 for x in values]) for end in (low, high)]
        return float(at[0] + (at[1] - at[0]) * ((value - low) / (high - low) if high > low else 0.0))

    def apart(name: str, a: Any, b: Any) -> float:
        if name in texts or a is None or b is None:
            return float(a != b)
        return float(abs(rank(name, a) - rank(name, b)) * 12**0.5)

    total = 0.0
    for row in range(n):
        gaps = [sum(apart(name, new[name][row], old[name][other]) for name in old) for other in range(n)]
        equally = [other for other in range(n) if gaps[other] <= min(gaps) * (1 + 1e-9)]
        total += (row in equally) / len(equally)
    return total / n


@pytest.mark.long
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
    gone = before | {"y": pa.nulls(40, pa.float64())}
    found, without = linkage(gone, after, kinds, ["x", "y"]), linkage(before, after, kinds, ["x"])
    assert found == without, "what is known of nobody tells nobody from others"
    constant = {"v": pa.array([3.0, 3.0])}
    found = linkage(constant, constant, {"v": NUMERIC}, ["v"])
    assert found is not None and found.rate == 0.5


@pytest.mark.long
def test_a_correlation_that_is_lost_is_reported() -> None:
    x = RNG.normal(size=4000)
    table = pa.table({"x": x, "y": x, "c": RNG.choice(["a", "b"], 4000)})
    kinds = {"x": NUMERIC, "y": NUMERIC, "c": CATEGORICAL}
    _, (report,) = apply_steps(
        table, kinds, {"x": [step("noise", share=1)]}, resources=Resources(key=KEY, secrets=SECRETS)
    )
    spearman = 6 / np.pi * np.arcsin(np.sqrt(0.5) / 2)  # of normal numbers, whose r is the root of a half
    assert size(report.costs["x"]) == pytest.approx(1 - spearman, abs=0.03)
    assert report.costs["x"].changed == 1.0
    _, (alone,) = apply_steps(table.select(["x"]), {"x": NUMERIC}, {"x": [step("round", to=1)]})
    assert alone.costs["x"].correlations == ()


@pytest.mark.long
def test_no_cost_is_measured_with_a_column_that_is_not_released() -> None:
    """A weight of the survey, excluded, had the largest correlation: the published figure followed from it."""
    x = RNG.normal(size=4000)
    table = pa.table({"x": x, "y": RNG.normal(size=4000), "weight": x})
    kinds, steps = dict.fromkeys(table.column_names, NUMERIC), {"x": [step("noise", share=1)]}

    def of(weight: Any, used: bool) -> Any:
        changed = table.set_column(2, "weight", pa.array(weight))
        together = [step("correlated_noise", columns=["x", "weight"], share=0.1)] if used else []
        resources = Resources(key=KEY, secrets=SECRETS, released=["x", "y"])
        return apply_steps(changed, kinds, steps, together, resources)[1]

    (with_it,), (another,) = of(x, used=False), of(-x, used=False)
    assert size(with_it.costs["x"]) < 0.1 and set(with_it.costs) == {"x"}
    assert size(another.costs["x"]) < 0.1
    _, together = of(x, used=True)
    assert set(together.costs) == {"x", "weight"}, "a column that the step itself uses"


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
