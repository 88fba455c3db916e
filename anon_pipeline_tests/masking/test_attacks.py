"""Attacks on single masking steps by readers of the masked column, who know the code and its parameters."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from anon_pipeline.masking.catalog import read_step
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.masking.tables import CATEGORICAL, KEY, NUMERIC, masked, step

# ------------------------------------------------------------------ coding beyond a quantile


@pytest.mark.parametrize("end", ["top", "bottom"])
def test_a_limit_does_not_tell_who_lies_beyond_it(end: str) -> None:
    """The reader knows the masked column alone: if a limit lies between two people, one shown and one hidden, it tells
    where the hidden one is. One of 30 to 94 people earns ten times as much as others; the limit itself is far from it.
    """
    random, sign = np.random.default_rng(0), 1 if end == "top" else -1
    found = 0
    for _ in range(40):
        n = int(random.integers(30, 95))
        incomes = np.round(random.lognormal(10.5, 0.4, n))
        incomes[0] = np.round(random.uniform(3e5, 5e6))
        shown, _ = masked(sign * incomes, NUMERIC, step("quantile_code", **{end: 0.01}))
        limit, next_to_it = np.sort(sign * np.array(shown.to_pylist(), dtype=np.float64))[[-1, -2]]
        part = (n - 1) * 0.99 % 1
        guess = (limit - (1 - part) * next_to_it) / part
        found += bool(abs(guess / incomes[0] - 1) < 0.05)
    assert found <= 2


def test_a_limit_is_the_same_wherever_the_people_beyond_it_are() -> None:
    others = np.random.default_rng(1).integers(20_000, 60_000, 60).astype(float)
    shown = {
        max(masked(np.r_[others, beyond], NUMERIC, step("quantile_code", top=0.01))[0].to_pylist())
        for beyond in (7e4, 3e5, 1e9)
    }
    assert len(shown) == 1


# ------------------------------------------------------------------ noise


@pytest.mark.long
@pytest.mark.parametrize("complete", [0, 1, 2, 3])
def test_noise_on_several_columns_hides_those_of_which_hardly_anybody_has_all(complete: int) -> None:
    """Incomes of employees and of the self-employed: few have both. The share is public, and so the shrinking by it."""
    near = []
    for table in range(20):
        random, shown_before = np.random.default_rng(table), random_order(table, 40)
        incomes = random.lognormal(10, 0.6, (40, 2))
        for place, person in enumerate(shown_before[complete:]):
            incomes[person, place % 2] = np.nan
        columns = {name: pa.array(incomes[:, i], from_pandas=True) for i, name in enumerate("ab")}
        steps = [step("correlated_noise", columns=["a", "b"], share=0.5)]
        made, _ = apply_steps(pa.table(columns), dict.fromkeys("ab", NUMERIC), {}, steps, Resources(key=KEY))
        shown = np.column_stack([np.array(made.column(name), dtype=float) for name in "ab"])
        guess = np.nanmean(shown, axis=0) + (shown - np.nanmean(shown, axis=0)) * np.sqrt(1.25)
        near += (np.abs(guess - incomes) / np.nanstd(incomes, axis=0))[~np.isnan(incomes)].tolist()
    assert (np.array(near) < 0.02).mean() < 0.07  # a normal number of deviation .5 is as near in 3 %


def random_order(seed: int, n: int) -> list[int]:
    return list(np.random.default_rng(seed + 1000).permutation(n).tolist())


@pytest.mark.long
def test_no_number_is_shown_doubled_by_proportional_noise() -> None:
    """Who sees a round number among noisy ones took it for twice that of its person: a factor of 2 was the largest."""
    incomes = np.random.default_rng(0).integers(15, 150, 5000) * 1000
    shown = np.array(masked(incomes, NUMERIC, step("proportional_noise", share=0.5))[0])
    is_round = (shown % 2000 == 0) & (shown > 0)
    assert (shown[is_round] == 2 * incomes[is_round]).sum() < 5  # 110 were, and hardly any other was round
    assert (shown == 0).sum() == 0


@pytest.mark.long
@pytest.mark.parametrize("technique", ["noise", "correlated_noise"])
def test_noise_hides_the_number_of_the_only_person_who_has_one(technique: str) -> None:
    """A single number has no deviation, and a share of none is no noise."""
    near = 0
    for income in range(20_340, 70_340, 1000):
        columns = {"a": pa.array([None, income, None, None], pa.float64()), "b": pa.array([1.0, 2.0, 5.0, 3.0])}
        of_column = {"a": [step("noise", share=0.5)]} if technique == "noise" else {}
        of_table = [] if of_column else [step(technique, columns=["a", "b"], share=0.5)]
        made, _ = apply_steps(pa.table(columns), dict.fromkeys("ab", NUMERIC), of_column, of_table, Resources(key=KEY))
        near += abs(made.column("a")[1].as_py() / income - 1) < 0.02
    assert near <= 6  # all 50 were


# ------------------------------------------------------------------ rank swapping


@pytest.mark.parametrize(("n", "share"), [(30, 0.05), (150, 0.01), (300, 0.003)])
def test_who_knows_their_own_value_learns_nobodys_where_few_ranks_are_swapped(n: int, share: float) -> None:
    """Between neighbours all exchanges are of pairs: the row that shows my value is that of the value I show."""
    found = tried = 0
    for table in range(20):
        values = np.random.default_rng(table).permutation(100_000)[:n]
        shown = np.array(masked(values, NUMERIC, step("rank_swap", share=share))[0])
        row_that_shows = {value: row for row, value in enumerate(shown.tolist())}
        for value, shows in zip(values.tolist(), shown.tolist(), strict=True):
            tried += value != shows
            found += value != shows and values[row_that_shows[value]] == shows
    assert found < 0.3 * tried  # all were


# ------------------------------------------------------------------ medians of groups


@pytest.mark.parametrize("k", [3, 5])
def test_a_median_is_not_the_number_of_one_person(k: int) -> None:
    """Who knows somebody's income to the last digit looks for it: where it is shown, that person is in the table."""
    random = np.random.default_rng(k)
    incomes = random.integers(15_000, 90_000, 800)
    members, others = incomes[:400], incomes[400:]
    masked_incomes, _ = masked(members.tolist(), NUMERIC, step("microaggregate", k=k, show="median"))
    seen_of_members, seen_of_others = (np.isin(some, masked_incomes.to_pylist()).mean() for some in (members, others))
    assert seen_of_members < 0.02 and seen_of_others < 0.02  # 20 % and more of the members were


# ------------------------------------------------------------------ tables of groups and what readers know

#: 16 people of a town in groups by an illness, of whom readers know the income.
OF_TOWN, MEANS = 16, {"technique": "aggregate", "columns": ["town", "ill"], "means": ["income"], "threshold": 6}


def spec_of(roles: dict[str, str], more: dict[str, Any] | None = None, **step: Any) -> ReleaseSpec:
    content = {"dataset": "people", "source": {"path": "people.csv"}, "target": "ill"} | (more or {})
    columns = {name: {"role": role} for name, role in roles.items()}
    return ReleaseSpec.model_validate(
        content | {"columns": columns, "privacy": {"k_anonymity": {"k": 5}}, "steps": [MEANS | step]}
    )


def told_for_certain(random: np.random.Generator) -> float:
    """The share of a town's people of whom a reader who knows the incomes learns for certain whether they are ill."""
    sick = int(random.integers(6, 11))
    incomes = np.round(random.lognormal(10.3, 0.5, OF_TOWN))
    table = pa.table({"town": ["Ulm"] * OF_TOWN, "ill": ["yes"] * sick + ["no"] * (OF_TOWN - sick), "income": incomes})
    kinds = {"town": CATEGORICAL, "ill": CATEGORICAL, "income": NUMERIC}
    made, _ = apply_steps(table, kinds, {}, [read_step(MEANS | {"known": ["town"]})], Resources(key=KEY))
    mean = next(row["mean_income"] for row in made.to_pylist() if row["ill"] == "yes")
    groups = np.array(list(combinations(range(OF_TOWN), sick)))
    fitting = groups[np.abs(incomes[groups].mean(axis=1) - mean) < 1e-6]
    times = np.bincount(fitting.ravel(), minlength=OF_TOWN)
    return float(np.isin(times, (0, len(fitting))).mean())


def test_means_of_what_readers_know_are_not_shown_by_what_they_do_not_know() -> None:
    """Of all ways to choose so many people of a town, hardly more than one has the mean that is shown."""
    random = np.random.default_rng(2)
    assert np.mean([told_for_certain(random) for _ in range(8)]) > 0.5
    roles = {"town": "quasi_identifier", "income": "quasi_identifier", "ill": "sensitive"}
    with pytest.raises(ValidationError, match=r"steps\.0\.means: readers know everybody's income"):
        spec_of(roles)
    with pytest.raises(ValidationError, match=r"steps\.0\.means: readers know everybody's income"):
        spec_of(roles, columns=["ill"])


def test_who_has_no_target_is_not_left_out_of_a_table_of_people_whom_readers_can_count() -> None:
    """Of twenty people in Ulm one has no value: readers who know the towns of all miss exactly one in the table."""
    ill = pa.array(["yes"] * 9 + ["no"] * 10 + [None])
    table = pa.table({"town": ["Ulm"] * 20, "ill": ill})
    step = read_step({"technique": "aggregate", "columns": ["town", "ill"], "threshold": 6, "known": ["town"]})
    kinds = {"town": CATEGORICAL, "ill": CATEGORICAL}
    shown = [apply_steps(of, kinds, {}, [step], Resources(key=KEY))[0] for of in (table, table.slice(0, 19))]
    assert [sum(made["people"].to_pylist()) for made in shown] == [10, 19]  # of twenty: two groups, or one person
    roles = {"town": "quasi_identifier", "ill": "sensitive"}
    left_out = {"missing_target": "leave_out"}
    for more in ({}, {"columns": ["town"]}, {"known": ["ill"]}):
        with pytest.raises(ValidationError, match="missing_target: readers know how many people share their"):
            spec_of(roles, left_out, **{"means": []} | more)
    assert spec_of(roles, left_out, means=[], known=[]).aggregates
    assert spec_of(roles, left_out, means=[], columns=["ill"]).aggregates
    assert spec_of(roles, {"missing_target": "release"}, means=[]).aggregates


def test_means_of_what_readers_do_not_know_or_by_what_they_know_may_be_shown() -> None:
    roles = {"town": "quasi_identifier", "income": "quasi_identifier", "ill": "sensitive"}
    assert spec_of(roles | {"income": "insensitive"}).aggregates
    assert spec_of(roles, known=["town"]).aggregates  # the spec states what readers know
    assert spec_of(roles, columns=["town"]).aggregates


@pytest.mark.parametrize("p_percent", [20, 50, 0])
def test_who_has_the_second_largest_value_of_a_group_does_not_learn_the_largest(p_percent: int) -> None:
    """They subtract their own value from the total; all others together are what keeps the largest from them."""
    random, learned, means = np.random.default_rng(3), 0, 0
    for _ in range(20):
        towns = np.repeat([f"town {number:02}" for number in range(20)], random.integers(12, 31, 20))
        fortunes = np.round(random.lognormal(10, 2, len(towns)), 2)
        rule = {"p_percent": p_percent}
        made = step("aggregate", columns=["town"], means=["fortune"], threshold=10, dominance=rule)
        table = pa.table({"town": towns, "fortune": fortunes})
        groups, _ = apply_steps(
            table, {"town": CATEGORICAL, "fortune": NUMERIC}, {}, [made], Resources("fortunes", KEY)
        )
        for town, people, mean in zip(*(groups.column(name).to_pylist() for name in groups.column_names), strict=True):
            if mean is not None:
                second, largest = np.sort(fortunes[towns == town])[-2:]
                learned += (mean * people - second) / largest - 1 < max(p_percent, 20) / 100 - 1e-6
                means += 1
    assert means > 300
    assert bool(learned) is (p_percent == 0)
