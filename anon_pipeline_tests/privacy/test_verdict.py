"""The verdict on any table: what stands at the boundary of k, and how many rows stand below it."""

from __future__ import annotations

from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine.base import ClassCounts
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.pipeline.checks.candidate import checks_of
from anon_pipeline.privacy.judge import (
    classes_beside_population,
    judge,
    judge_classes,
    judge_release,
    names_of,
    statistics_of,
    types_of,
)
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.verdict import Verdict, verify_by_columns, verify_by_spec
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy


@pytest.mark.parametrize(
    ("k", "holds", "below"), [(2, True, 0), (3, True, 0), (4, False, 3), (5, False, 3 + 4), (9, False, 3 + 4 + 8)]
)
def test_a_class_of_exactly_k_holds_and_the_rows_of_smaller_ones_are_counted(
    engine: DuckDBEngine, tmp_path: Path, k: int, holds: bool, below: int
) -> None:
    sizes = {"a": 3, "b": 4, "c": 8}
    table = pd.DataFrame({"q": np.repeat(list(sizes), list(sizes.values())), "s": ["x"] * sum(sizes.values())})
    table.to_parquet(tmp_path / "x.parquet")
    verdict = verify_by_columns(engine, tmp_path / "x.parquet", ["q"], k)
    assert (verdict.holds, verdict.rows_below, verdict.smallest_class) == (holds, below, 3)
    assert (verdict.rows, verdict.classes, verdict.groups) == (15, 3, False)


def test_of_a_table_without_rows_it_is_told_that_it_has_none(engine: DuckDBEngine, tmp_path: Path) -> None:
    """It was told that one class of none fails, and that infinitely many people are in the smallest one."""
    pd.DataFrame({"q": np.array([], dtype=str)}).to_parquet(tmp_path / "x.parquet")
    verdict = verify_by_columns(engine, tmp_path / "x.parquet", ["q"], 2)
    assert not verdict.holds
    assert verdict.problems == ["the table has no rows, so there is nobody to judge"]


def test_counts_of_an_engine_become_the_same_statistics_with_missing_values_first() -> None:
    frame = pd.DataFrame({"class": [0, 0, 1, 1], "value": ["ill", None, "ill", "well"], "count": [2, 1, 3, 4]})
    whole = frame[frame["value"].notna()].reset_index(drop=True)
    counts = ClassCounts(pd.DataFrame(), np.array([3, 7]), {"a": frame, "b": whole}, frozenset({"b"}))
    found = statistics_of(counts, ["a"])
    assert found.sizes.tolist() == [3, 7]
    a, b = found.sensitive["a"], found.sensitive["b"]
    assert a.values == (None, "ill", "well") and a.counts.toarray().tolist() == [[1, 2, 0], [0, 3, 4]]
    assert b.values == ("ill", "well") and b.counts.toarray().tolist() == [[2, 0], [3, 4]]
    assert (a.ordered, b.ordered) == (False, True)
    assert (a.missing_is_a_value, b.missing_is_a_value) == (True, False)


def test_a_type_is_the_declared_one_or_that_of_the_stored_table() -> None:
    columns = {"code": {"role": "quasi_identifier", "type": "categorical"}, "age": {"role": "quasi_identifier"}}
    spec = ReleaseSpec.model_validate(policy() | {"columns": columns | {"ill": {"role": "sensitive"}}})
    assert types_of(spec, {"code": "BIGINT", "age": "BIGINT", "ill": "VARCHAR"}) == {
        "code": ColumnType.CATEGORICAL,
        "age": ColumnType.NUMERIC,
    }
    assert types_of(spec, {"age": "DATE"}) == {"age": ColumnType.DATE}


def test_a_table_without_classes_meets_nothing_and_has_no_risk() -> None:
    [judgement] = judge_classes([KAnonymity(k=2)], ClassStatistics(np.array([], dtype=np.int64)))
    assert (judgement.finding.measured, judgement.finding.failing, judgement.holds.tolist()) == (None, 1, [False])
    [found] = judge([KAnonymity(k=3)], ClassStatistics(np.array([2, 3, 1])))
    assert (found.name, found.measured, found.failing, found.holds) == ("k_anonymity", 1.0, 2, False)


def test_an_empty_table_is_judged_and_not_an_error(engine: DuckDBEngine, tmp_path: Path) -> None:
    pd.DataFrame({"q": pd.Series([], dtype=str)}).to_parquet(tmp_path / "x.parquet")
    verdict = verify_by_columns(engine, tmp_path / "x.parquet", ["q"], 2)
    assert (verdict.rows, verdict.classes, verdict.smallest_class, verdict.rows_below) == (0, 0, 0, 0)
    assert (verdict.holds, verdict.sensitive, verdict.risk) == (False, {}, {})


def test_a_column_that_the_table_lacks_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    pd.DataFrame({"q": ["a"], "s": ["x"]}).to_parquet(tmp_path / "x.parquet")
    for quasi_identifiers, sensitive in ((["town"], []), (["q"], ["town"])):
        with pytest.raises(InputError, match="the table has no column town;"):
            verify_by_columns(engine, tmp_path / "x.parquet", quasi_identifiers, 2, sensitive)


# Beside a population: two towns with 3 and 4 people of the table, and 6 and 8 of the population

POPULATION = ["a"] * 6 + ["b"] * 8 + ["c"] * 5
CLASSES = pd.DataFrame({"class_size": [3, 4], "town": ["a", "b"], "town_values": [["a"], ["b"]]})


def verified(
    engine: DuckDBEngine, folder: Path, classes: pd.DataFrame | None, privacy: dict[str, Any] | None = None, **more: Any
) -> Verdict:
    """The verdict on the two towns beside a class table, by k-map unless another demand is made."""
    spec = beside(folder, classes, privacy)
    table = pd.DataFrame({"town": ["a"] * 3 + ["b"] * 4, "ill": ["yes", "no", "no", "yes", "no", "no", "no"]} | more)
    table.to_parquet(folder / "data.parquet")
    return verify_by_spec(engine, folder / "data.parquet", spec, folder / "classes.parquet")


def beside(folder: Path, classes: pd.DataFrame | None, privacy: dict[str, Any] | None = None) -> ReleaseSpec:
    pd.DataFrame({"town": POPULATION}).to_csv(folder / "population.csv", index=False)
    if classes is not None:
        classes.to_parquet(folder / "classes.parquet")
    columns = {"town": {"role": "quasi_identifier", "type": "categorical"}, "ill": {"role": "sensitive"}}
    demands = {"k_map": {"k": 6, "population": str(folder / "population.csv")}} if privacy is None else privacy
    return ReleaseSpec.model_validate(
        policy() | {"columns": columns, "privacy": {"k_anonymity": {"k": 3}, **demands}, "recode": {"form": "value"}}
    )


def test_a_demand_on_a_population_is_judged_by_the_boxes_of_the_class_table(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    verdict = verified(engine, tmp_path, CLASSES)
    assert verdict.holds
    assert [(one.name, one.measured, one.failing) for one in verdict.findings] == [
        ("k_anonymity", 3.0, 0),
        ("k_map", 6.0, 0),
    ]
    assert verdict.risk["prosecutor"] == {"max": 1 / 3, "mean": 2 / 7}
    assert verdict.risk["journalist"] == {"max": 1 / 6, "mean": pytest.approx(1 / 7)}
    assert verdict.risk["marketer"] == {"mean": pytest.approx(1 / 7)}
    assert verdict.to_json()["findings"][1]["holds"] is True
    spec = beside(tmp_path, None)
    found = classes_beside_population(engine, spec, types_of(spec, {"town": "VARCHAR"}), tmp_path / "classes.parquet")
    assert found is not None and found.population is not None
    assert (found.population.tolist(), found.population_unmatched) == ([6, 8], 5)


def test_rows_that_look_alike_are_one_class_to_a_prosecutor_beside_a_population_too(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    """Two classes of the class table show the town a: the table has two classes, not three."""
    alike = pd.DataFrame({"class_size": [1, 2, 4], "town": ["a", "a", "b"], "town_values": [["a", "c"], ["a"], ["b"]]})
    verdict = verified(engine, tmp_path, alike)
    assert verdict.classes == 2
    assert verdict.risk["prosecutor"] == {"max": 1 / 3, "mean": 2 / 7}
    assert verdict.risk["journalist"] == {"max": 1 / 6, "mean": pytest.approx((1 / 11 + 2 / 6 + 4 / 8) / 7)}
    assert verdict.risk["marketer"] == {"mean": pytest.approx((1 / 11 + 2 / 6 + 4 / 8) / 7)}


def test_a_class_table_of_another_table_meets_no_demand_on_a_population(engine: DuckDBEngine, tmp_path: Path) -> None:
    verdict = verified(engine, tmp_path, CLASSES.assign(class_size=[3, 5]))
    assert not verdict.holds
    [_, finding] = verdict.findings
    assert (finding.name, finding.measured, finding.failing) == ("k_map", None, 1)
    assert "agrees with the table, and this one does not" in finding.demand
    assert list(verdict.risk) == ["prosecutor"]
    spec = beside(tmp_path, None)
    counts = engine.classes(tmp_path / "data.parquet", ["town"], ["ill"])
    judgements = judge_release(engine, spec, types_of(spec, {"town": "VARCHAR"}), counts, tmp_path / "classes.parquet")
    assert [judgement.holds.tolist() for judgement in judgements] == [[True, True], [False]]


def test_without_a_readable_class_table_a_demand_on_a_population_is_an_input_error(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"privacy\.k_map: can be judged only beside the release's classes\.parquet"):
        verified(engine, tmp_path, None)
    (tmp_path / "classes.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"classes\.parquet: cannot be read"):
        verified(engine, tmp_path, None)


def test_without_a_demand_on_a_population_no_class_table_is_asked_for(engine: DuckDBEngine, tmp_path: Path) -> None:
    verdict = verified(engine, tmp_path, None, {})
    assert verdict.holds and list(verdict.risk) == ["prosecutor"]
    assert verdict.sensitive["ill"]["distinct_l"] == 2
    spec = beside(tmp_path, None, {})
    assert classes_beside_population(engine, spec, {}, tmp_path / "classes.parquet") is None


def test_a_column_more_than_the_spec_releases_is_a_problem(engine: DuckDBEngine, tmp_path: Path) -> None:
    verdict = verified(engine, tmp_path, CLASSES, name=["x"] * 7)
    assert not verdict.holds and all(finding.holds for finding in verdict.findings)
    assert verdict.problems == ["the column name is not one that the spec releases"]


def test_a_class_that_nobody_of_the_population_is_in_has_no_risk_of_a_journalist(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    nowhere = CLASSES.assign(town=["a", "b"], town_values=[["a"], ["b"]])
    pd.DataFrame({"town": ["b"]}).to_csv(tmp_path / "few.csv", index=False)
    demand = {"k_map": {"k": 2, "population": str(tmp_path / "few.csv")}}
    verdict = verified(engine, tmp_path, nowhere, demand)
    assert (verdict.findings[1].measured, verdict.findings[1].failing) == (0.0, 2)
    assert list(verdict.risk) == ["prosecutor"]


def test_the_only_person_of_the_population_who_could_be_meant_is_at_the_highest_risk(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    pd.DataFrame({"town": ["a"] * 6 + ["b"]}).to_csv(tmp_path / "one.csv", index=False)
    spec = beside(
        tmp_path, CLASSES.assign(class_size=[3, 1]), {"k_map": {"k": 2, "population": str(tmp_path / "one.csv")}}
    )
    pd.DataFrame({"town": ["a"] * 3 + ["b"], "ill": ["yes"] * 4}).to_parquet(tmp_path / "data.parquet")
    verdict = verify_by_spec(engine, tmp_path / "data.parquet", spec, tmp_path / "classes.parquet")
    assert (verdict.findings[1].measured, verdict.findings[1].failing) == (1.0, 1)
    assert verdict.risk["journalist"]["max"] == 1


@pytest.mark.parametrize("stored", ["int64", "float64", str])
def test_codes_of_categories_are_equally_far_apart_however_they_are_stored(
    engine: DuckDBEngine, tmp_path: Path, stored: type | str
) -> None:
    codes = pd.Series([1, 1, 2, 2, 2, 3, 3, 3]).astype(stored)
    pd.DataFrame({"q": list("aaaabbbb"), "ill": codes}).to_parquet(tmp_path / "x.parquet")
    columns = {"q": {"role": "quasi_identifier"}, "ill": {"role": "sensitive", "type": "categorical"}}
    demands = {"k_anonymity": {"k": 2}, "t_closeness": {"column": "ill", "t": 0.4}}
    spec = ReleaseSpec.model_validate(policy() | {"columns": columns, "privacy": demands})
    verdict = verify_by_spec(engine, tmp_path / "x.parquet", spec, tmp_path / "classes.parquet")
    [close] = [finding for finding in verdict.findings if finding.name == "t_closeness_ill"]
    # Class a: 1/2 (1/4 + 1/8 + 3/8). Along the order of the codes it would be 1/2 (1/4 + 3/8).
    assert (close.measured, close.holds) == (0.375, True)
    assert verdict.sensitive["ill"]["t"] == 0.375


def test_demands_of_one_model_on_one_column_have_names_of_their_own() -> None:
    of_ill = {"column": "ill", "l": 2}
    columns = {"q": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}, "ill_2": {"role": "sensitive"}}
    demands = {
        "k_anonymity": {"k": 2},
        "l_diversity": [of_ill, of_ill | {"kind": "entropy"}, of_ill | {"column": "ill_2"}, of_ill | {"l": 3}],
    }
    spec = ReleaseSpec.model_validate(policy() | {"columns": columns, "privacy": demands})
    names = ["k_anonymity", "l_diversity_ill", "l_diversity_ill_3", "l_diversity_ill_2", "l_diversity_ill_4"]
    assert names_of(spec.privacy) == names
    assert list(checks_of(spec))[:5] == names


@pytest.mark.parametrize("other", [None, "", "?"])
def test_an_empty_text_and_what_the_spec_lists_are_no_values(
    engine: DuckDBEngine, tmp_path: Path, other: str | None
) -> None:
    """A class of one illness and empty texts was 2-diverse in a Parquet file, and not in a CSV of the same table."""
    table = pd.DataFrame({"q": ["a"] * 6, "s": ["hiv"] * 3 + [other] * 2 + [None]})
    table.to_parquet(tmp_path / "x.parquet")
    spec = policy() | {
        "columns": {"q": {"role": "quasi_identifier"}, "s": {"role": "sensitive", "missing": ["?"]}},
        "target": "s",
        "privacy": {"k_anonymity": {"k": 2}, "l_diversity": {"l": 2, "column": "s"}},
    }
    by_spec = verify_by_spec(engine, tmp_path / "x.parquet", ReleaseSpec.model_validate(spec), tmp_path / "none")
    assert [finding.holds for finding in by_spec.findings] == [True, False]
    assert by_spec.sensitive["s"]["distinct_l"] == 1
    if other != "?":
        by_columns = verify_by_columns(engine, tmp_path / "x.parquet", ["q"], 2, ["s"])
        assert by_columns.sensitive["s"] == by_spec.sensitive["s"]


@pytest.mark.parametrize(("grouped", "other"), [("at", "ill"), ("ill", "at")])
def test_times_of_day_are_told_apart_by_their_nanoseconds(
    engine: DuckDBEngine, tmp_path: Path, grouped: str, other: str
) -> None:
    """Python has no such times, and the command ended with an internal error."""
    times = pa.array([1, 2, 1, 2, None, None], pa.time64("ns"))
    pq.write_table(pa.table({"at": times, "ill": ["a", "a", "a", "a", "b", "b"]}), tmp_path / "people.parquet")
    verdict = verify_by_columns(engine, tmp_path / "people.parquet", [grouped], 2, [other])
    assert verdict.holds
    assert (verdict.classes, verdict.smallest_class) == ((3, 2) if grouped == "at" else (2, 2))
    distinct = engine.classes(tmp_path / "people.parquet", ["ill"], ["at"]).sensitive["at"]
    assert len(distinct) == 3


def test_times_of_day_without_nanoseconds_stay_times(engine: DuckDBEngine, tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": pa.array([time(8, 30)] * 2), "ill": ["a", "b"]}), tmp_path / "people.parquet")
    assert engine.classes(tmp_path / "people.parquet", ["at"], []).classes["at"].tolist() == [time(8, 30)]


@pytest.mark.parametrize(("digits", "is_refused"), [(38, False), (39, True), (76, True)])
@pytest.mark.parametrize(("grouped", "other"), [("x", "ill"), ("ill", "x")])
def test_decimals_of_which_digits_are_lost_are_refused(
    engine: DuckDBEngine, tmp_path: Path, grouped: str, other: str, digits: int, is_refused: bool
) -> None:
    """As floats four people who differ were a class of four, at a k of four."""
    numbers = pa.array([Decimal(10**20 + place) for place in range(4)], pa.decimal256(digits, 0))
    pq.write_table(pa.table({"x": numbers, "ill": ["a"] * 4}), tmp_path / "people.parquet")
    if is_refused:
        with pytest.raises(InputError, match=r"^x: is stored as decimals of more than 38 digits"):
            verify_by_columns(engine, tmp_path / "people.parquet", [grouped], 4, [other])
    else:
        assert verify_by_columns(engine, tmp_path / "people.parquet", [grouped], 4, [other]).holds is (other == "x")
