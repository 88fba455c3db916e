"""A table of groups compared with its people: by brute force on random tables, and spoilt in every way there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.expressions import PEOPLE as REPEATED
from anon_pipeline.masking.aggregation import Aggregate
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.privacy.group_table import (
    GroupsAndPeople,
    WrittenGroups,
    compare_groups,
    group_columns,
    judge_group_table,
    read_groups,
    units_of,
)
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.masking.tables import KEY

KINDS = {"town": ColumnType.CATEGORICAL, "born": ColumnType.NUMERIC, "income": ColumnType.NUMERIC}
STEP = Aggregate(columns=("town", "born"), means=("income",), threshold=3)

Row = dict[str, Any]

towns = st.sampled_from(["Ulm", "Köln", "", None])
incomes = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1e12]), st.floats(-1000, 1000, allow_nan=False))
people_tables = st.lists(
    st.fixed_dictionaries({"town": towns, "born": st.sampled_from([0.0, -0.0, 1.0, None]), "income": incomes}),
    min_size=1,
    max_size=60,
)
steps = st.builds(
    lambda threshold, n, share, p_percent, known: STEP.model_copy(
        update={
            "threshold": threshold,
            "dominance": STEP.dominance.model_copy(update={"n": n, "share": share, "p_percent": p_percent}),
            "known": known,
        }
    ),
    st.integers(2, 8),
    st.integers(1, 3),
    st.sampled_from([0.3, 0.5, 0.85]),
    st.sampled_from([0, 20, 60]),
    st.sampled_from([None, (), ("town",), ("born",), ("born", "town")]),
)


def test_a_table_without_groups_fails_and_groups_are_counted_up_to_the_threshold() -> None:
    nobody = WrittenGroups(np.array([], dtype=np.int64), 0, 0).finding(3)
    assert (nobody.failing, nobody.measured) == (1, None)
    some = WrittenGroups(np.array([2, 3, 9]), 0, 0).finding(3)
    assert (some.failing, some.measured) == (1, 2.0)


def test_only_a_whole_number_that_a_double_holds_exactly_is_a_count() -> None:
    written = [3.0, 0.0, 2.0**53 - 1, 2.0**53, 1e17, -1.0, 2.5, np.nan, np.inf]
    frame = pd.DataFrame({"people": written, "times": [1] * len(written)})
    found = read_groups(frame)
    assert found.counts.tolist() == [3, 0, 2**53 - 1, 0, 0, 0, 0, 0, 0]
    assert (found.not_whole, found.repeated) == (6, 0)
    assert read_groups(frame.assign(times=[2, 3, 0, *[1] * 6])).repeated == 2


def table_of(rows: list[Row]) -> pa.Table:
    types = {"town": pa.string(), "born": pa.float64(), "income": pa.float64()}
    return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})


def aggregated(rows: list[Row], step: Aggregate = STEP) -> pa.Table:
    return apply_steps(table_of(rows), KINDS, {}, [step], Resources(key=KEY))[0]


def judged(
    folder: Path, groups: pa.Table, rows: list[Row], step: Aggregate = STEP
) -> tuple[WrittenGroups, GroupsAndPeople]:
    """The verdict on a table of groups; of people who are alike some stand in one row."""
    repeated = table_of(rows).append_column(REPEATED, pa.array([1 + number % 2 for number in range(len(rows))]))
    pq.write_table(repeated, folder / "people.parquet")
    pq.write_table(groups, folder / "groups.parquet")
    engine, people = DuckDBEngine(folder), folder / "people.parquet"
    found = engine.groups(folder / "groups.parquet", group_columns(step), people)
    return read_groups(found), compare_groups(
        found, step, step.threshold, units_of(engine, people, folder / "groups.parquet", step)
    )


def test_the_unit_is_of_values_behind_means_that_are_shown(tmp_path: Path) -> None:
    """Steps of another unit count as finer than they may be, or as wrong; a group of days may be of moments here."""
    incomes = [100.0] * 4 + [20.0] * 2 + [7.0, 70.0, 7.0, 7.0]
    born = pa.array(["1970-01-01"] * 6 + ["1970-01-02"] * 3 + [None]).cast(pa.timestamp("us"))
    people = pa.table({"town": ["Ulm"] * 10, "born": born, "income": incomes})
    groups = pa.table({"town": ["Ulm"] * 2, "born": born.take([0, 6]).cast(pa.date32()), "mean_income": [73.0, None]})
    pq.write_table(people, tmp_path / "people.parquet")
    pq.write_table(groups, tmp_path / "groups.parquet")
    found = units_of(DuckDBEngine(tmp_path), tmp_path / "people.parquet", tmp_path / "groups.parquet", STEP)
    assert found == {"income": 100}


def test_negative_zero_is_zero_where_the_unit_is_found(tmp_path: Path) -> None:
    rows: list[Row] = [{"town": "Ulm", "born": -0.0, "income": 1.10156257}] * 3
    _, beside = judged(tmp_path, aggregated(everybody(rows)), rows)
    assert (beside.means_hidden, beside.wrong_means) == (0, 0)


def everybody(rows: list[Row]) -> list[Row]:
    """The rows with every second person standing there twice, as `judged` stores them."""
    return [row for number, row in enumerate(rows) for _ in range(1 + number % 2)]


def by_group(rows: list[Row]) -> dict[tuple[Any, Any], list[Any]]:
    groups: dict[tuple[Any, Any], list[Any]] = {}
    for row in rows:
        groups.setdefault((row["town"], row["born"]), []).append(row["income"])
    return groups


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("groups")


# The technique, judged by code of another kind


@pytest.mark.long
@settings(max_examples=times(25))
@given(rows=people_tables, step=steps)
def test_what_the_technique_makes_holds(folder: Path, rows: list[Row], step: Aggregate) -> None:
    groups = aggregated(everybody(rows), step)
    shown, beside = judged(folder, groups, rows, step)
    assert (shown.repeated, shown.not_whole) == (0, 0)
    assert all(shown.counts >= step.threshold)
    assert (beside.miscounted, beside.wrong_means, beside.means_of_few, beside.dominated_means) == (0, 0, 0, 0)
    assert shown.counts.sum() + beside.left_out_people == len(everybody(rows))
    assert beside.stays_hidden(step.threshold) or not len(groups)
    assert beside.means_hidden == groups.column("mean_income").null_count


@pytest.mark.long
@settings(max_examples=times(25))
@given(rows=people_tables, step=steps)
def test_a_table_that_shows_everything_is_judged_as_one_would_by_hand(
    folder: Path, rows: list[Row], step: Aggregate
) -> None:
    counted = by_group(everybody(rows))
    known = {group: [value for value in values if value is not None] for group, values in counted.items()}
    made = {
        "town": pa.array([town for town, _ in counted], pa.string()),
        "born": pa.array([born for _, born in counted], pa.float64()),
        "people": pa.array([len(values) for values in counted.values()]),
        "mean_income": pa.array([sum(one) / len(one) if one else None for one in known.values()], pa.float64()),
    }
    few = sum(0 < len(one) < step.threshold for one in known.values())
    dominated = 0
    for one in known.values():
        sizes = sorted(map(abs, one), reverse=True)
        few_people = sum(sizes[: step.dominance.n]) > step.dominance.share * sum(sizes) * (1 + 1e-9)
        others = sum(sizes) - sum(sizes[:2])
        worked_out = bool(sizes) and others + 1e-9 * sum(sizes) < step.dominance.p_percent / 100 * sizes[0]
        dominated += few_people or worked_out
    shown, beside = judged(folder, pa.table(made), rows, step)
    assert sorted(shown.counts) == sorted(map(len, counted.values()))
    assert (beside.means_of_few, beside.dominated_means) == (few, dominated)
    assert (beside.miscounted, beside.wrong_means, beside.left_out_groups) == (0, 0, 0)


@settings(max_examples=times(25))
@given(rows=people_tables, step=steps)
def test_who_knows_some_columns_cannot_subtract_a_small_group(folder: Path, rows: list[Row], step: Aggregate) -> None:
    """An attack: readers know how many people share each value of the known columns, and subtract what is shown."""
    if step.known is None or len(step.known) != 1:
        return
    place = step.columns.index(step.known[0])
    counted = {group: len(values) for group, values in by_group(everybody(rows)).items()}
    shown = {(row["town"], row["born"]): row["people"] for row in aggregated(everybody(rows), step).to_pylist()}
    for known in {group[place] for group in counted}:
        alike = {group: count for group, count in counted.items() if group[place] == known}
        left_out = [count for group, count in alike.items() if group not in shown]
        if len(left_out) < len(alike) and min(left_out, default=step.threshold) < step.threshold:
            assert len(left_out) > 1 and sum(left_out) >= step.threshold


# Spoilt tables

HOUSEHOLDS = [
    {"town": town, "born": born, "income": float(100 + number)}
    for town, born, number_of in (("Ulm", 0.0, 6), ("Ulm", 1.0, 4), ("Köln", None, 5), (None, 0.0, 3), ("", 1.0, 1))
    for number in range(number_of)
]


def first(groups: pd.DataFrame, column: str, value: Any) -> pd.DataFrame:
    groups = groups.astype({"people": "float64"})
    groups.loc[0, column] = value
    return groups


def with_all_digits(groups: pd.DataFrame) -> pd.DataFrame:
    """The mean of nine people as it is, a third of whom have one unit more."""
    return groups.assign(mean_income=groups["mean_income"].where(groups["people"] != 9, 102 + 2 / 3))


def without_a_group(groups: pd.DataFrame) -> pd.DataFrame:
    return groups.iloc[1:]


def with_a_group_of_nobody(groups: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([groups, groups.iloc[:1].assign(town="Rome")])


def with_a_group_twice(groups: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([groups, groups.iloc[:1]])


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda groups: first(groups, "people", 5), {"miscounted": 1}),
        (lambda groups: first(groups, "people", 6.5), {"not_whole": 1, "miscounted": 1}),
        (lambda groups: first(groups, "people", None), {"not_whole": 1, "miscounted": 1}),
        (lambda groups: first(groups, "mean_income", 102.6), {"wrong_means": 1, "exact_means": 1}),
        (lambda groups: first(groups, "mean_income", 102.5), {"wrong_means": 1}),
        (lambda groups: first(groups, "mean_income", np.inf), {"wrong_means": 1, "exact_means": 1}),
        (with_all_digits, {"exact_means": 1}),
        (lambda groups: first(groups, "mean_income", None), {"means_hidden": 1}),
        (with_a_group_of_nobody, {"miscounted": 1, "wrong_means": 1, "means_of_few": 1, "dominated_means": 1}),
        (with_a_group_twice, {"repeated": 1}),
    ],
    ids=[
        "a count",
        "half a person",
        "no count",
        "a mean",
        "a whole step",
        "no number",
        "all digits",
        "a hidden mean",
        "nobody",
        "twice",
    ],
)
def test_whatever_is_spoilt_is_found(
    folder: Path, spoil: Callable[[pd.DataFrame], pd.DataFrame], found: dict[str, int]
) -> None:
    groups = spoil(aggregated(everybody(HOUSEHOLDS)).to_pandas())
    shown, beside = judged(folder, pa.Table.from_pandas(groups, preserve_index=False), HOUSEHOLDS)
    sums = {name: getattr(beside, name) for name in ("miscounted", "wrong_means", "means_of_few", "dominated_means")}
    sums |= {
        "exact_means": beside.exact_means,
        "repeated": shown.repeated,
        "not_whole": shown.not_whole,
        "means_hidden": beside.means_hidden,
    }
    assert {name: number for name, number in sums.items() if number} == found


@pytest.mark.parametrize(
    ("left_out_groups", "left_out_people", "hidden"), [(0, 0, True), (1, 50, False), (2, 9, False), (2, 10, True)]
)
def test_a_difference_is_of_several_groups_with_enough_people(
    left_out_groups: int, left_out_people: int, hidden: bool
) -> None:
    assert GroupsAndPeople(0, left_out_groups, left_out_people, 0, 0, 0, 0).stays_hidden(10) is hidden


def test_a_small_group_left_out_beside_shown_ones_of_the_same_known_values_is_found(folder: Path) -> None:
    """Everybody knows that ten people live in Ulm; where six are shown, the four others are no secret."""
    shown = aggregated(everybody(HOUSEHOLDS), STEP).to_pandas()
    spared = shown[(shown["town"] != "Ulm") | (shown["born"] == 0.0)]
    exposed = {}
    for known in (None, ("town",), ("born",), ("town", "born")):
        step = STEP.model_copy(update={"threshold": 7, "known": known})
        groups = pa.Table.from_pandas(spared[spared["town"] == "Ulm"], preserve_index=False)
        beside = judged(folder, groups, HOUSEHOLDS, step)[1]
        assert beside.stays_hidden(7) is not bool(beside.exposed)
        exposed[known] = beside.exposed
    assert exposed == {None: 0, ("town",): 1, ("born",): 1, ("town", "born"): 0}


# A file, without the people


def verdict_on(folder: Path, table: pd.DataFrame) -> Any:
    steps = [{"technique": "aggregate", "columns": ["city"], "means": ["visits"]}]
    file = folder / "table.parquet"
    table.to_parquet(file, index=False)
    return judge_group_table(DuckDBEngine(folder), file, ReleaseSpec.model_validate(policy() | {"steps": steps}))


GOOD = pd.DataFrame({"city": ["Bergen", None], "people": [10, 12], "mean_visits": [1.5, None]})


def test_a_table_of_groups_is_judged_by_its_counts(folder: Path) -> None:
    verdict = verdict_on(folder, GOOD)
    assert verdict.holds and verdict.groups
    assert (verdict.rows, verdict.smallest_class, verdict.rows_below) == (2, 10, 0)
    assert verdict_on(folder, GOOD.astype({"people": str})).holds  # a CSV holds texts


@pytest.mark.parametrize(
    "table",
    [
        GOOD.assign(people=[9, 12]),
        GOOD.assign(people=[10.5, 12]),
        GOOD.assign(people=["ten", "12"]),
        GOOD.assign(people=[-10, 12]),
        GOOD.assign(city="Bergen"),
        GOOD.assign(ill="yes"),
        GOOD.drop(columns="mean_visits"),
        GOOD.iloc[:0],
    ],
    ids=["too few", "half a person", "a word", "fewer than nobody", "twice", "a column more", "one less", "empty"],
)
def test_a_table_that_breaks_a_rule_does_not_hold(folder: Path, table: pd.DataFrame) -> None:
    assert not verdict_on(folder, table).holds


def test_a_table_without_groups_has_no_smallest_one(folder: Path) -> None:
    verdict = verdict_on(folder, GOOD.drop(columns="mean_visits"))
    assert (verdict.rows, verdict.classes, verdict.smallest_class, verdict.rows_below) == (0, 0, 0, 0)
