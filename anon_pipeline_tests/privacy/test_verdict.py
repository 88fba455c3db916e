"""The verdict on any table: what stands at the boundary of k, and how many rows stand below it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.base import ClassCounts
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.privacy.judge import statistics_of, types_of
from anon_pipeline.privacy.verdict import verify_by_columns
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
