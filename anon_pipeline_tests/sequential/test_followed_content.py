"""What a release of followed people is made from: nobody who is withheld has a part in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.arrays import BoolArray
from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.sequential.followed_content import content_of


def stays(rows: pa.RecordBatch) -> BoolArray:
    return np.asarray(rows.column("who").to_numpy(zero_copy_only=False) < "p5")


def content(folder: Path, amounts: list[float] | list[int], kind: pa.DataType) -> str:
    """Of the first five people; the others are withheld."""
    file = folder / "people.parquet"
    who = [f"p{place}" for place in range(len(amounts))]
    table = pa.table({"who": who, "amount": pa.array(amounts, kind), PEOPLE: np.ones(len(who), dtype=np.int64)})
    pq.write_table(table, file)
    return content_of(file, ["who", "amount"], stays)


@pytest.mark.parametrize("withheld", [7, 2**53 + 1, -(2**63)])
def test_no_number_of_somebody_who_is_withheld_makes_another_content(tmp_path: Path, withheld: int) -> None:
    """One that no float has kept the numbers of all others from being hashed as floats."""
    alone = content(tmp_path, [1, 2, 3, 4, 5], pa.int64())
    assert content(tmp_path, [1, 2, 3, 4, 5, withheld], pa.int64()) == alone


def test_a_fraction_of_somebody_who_is_withheld_makes_no_other_content(tmp_path: Path) -> None:
    alone = content(tmp_path, [1, 2, 3, 4, 5], pa.int64())
    assert content(tmp_path, [1, 2, 3, 4, 5, 2.5], pa.float64()) == alone


def test_another_number_of_somebody_who_stays_makes_another_content(tmp_path: Path) -> None:
    alone = content(tmp_path, [1, 2, 3, 4, 5], pa.int64())
    assert content(tmp_path, [1, 2, 3, 4, 6], pa.int64()) != alone
