"""The verdict on any table: what stands at the boundary of k, and how many rows stand below it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.privacy.judge import types_of
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


def test_a_type_is_the_declared_one_or_that_of_the_stored_table() -> None:
    columns = {"code": {"role": "quasi_identifier", "type": "categorical"}, "age": {"role": "quasi_identifier"}}
    spec = ReleaseSpec.model_validate(policy() | {"columns": columns | {"ill": {"role": "sensitive"}}})
    assert types_of(spec, {"code": "BIGINT", "age": "BIGINT", "ill": "VARCHAR"}) == {
        "code": ColumnType.CATEGORICAL,
        "age": ColumnType.NUMERIC,
    }
    assert types_of(spec, {"age": "DATE"}) == {"age": ColumnType.DATE}
