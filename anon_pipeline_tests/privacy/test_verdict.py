"""The verdict on any table: what stands at the boundary of k, and how many rows stand below it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.privacy.verdict import verify_by_columns


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
