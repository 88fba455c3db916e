"""Tables on their way through a query, and samples of them: nobody is lost, whether equal people are grouped or not."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.expressions import PEOPLE


def stored(folder: Path, rows: int, values: int) -> Path:
    """A stored table of so many rows, each two people, with so many values."""
    codes = np.arange(rows) % values
    file = folder / "stored.parquet"
    pd.DataFrame({"code": codes, "word": [f"w{code % 7}" for code in codes], PEOPLE: 2}).to_parquet(file, index=False)
    return file


@pytest.mark.parametrize("values", [1, 50, 3_000, 5_000], ids=["all alike", "few", "many", "nobody alike"])
def test_everybody_is_there_after_a_query(tmp_path: Path, values: int) -> None:
    engine, table, made = DuckDBEngine(tmp_path), stored(tmp_path, 5_000, values), tmp_path / "made.parquet"
    engine.rewrite(table, ["word", "code"], lambda _, relation: f"SELECT * FROM {relation}", made)
    frame = pd.read_parquet(made)
    assert list(frame) == ["word", "code", PEOPLE]
    before = pd.read_parquet(table).groupby(["word", "code"])[PEOPLE].sum()
    pd.testing.assert_series_equal(frame.groupby(["word", "code"])[PEOPLE].sum(), before, check_dtype=False)
    assert len(frame) == (values if values <= 50 else 5_000)  # grouped where that makes the table smaller
    assert engine.content_hash(made)[0] == 10_000


def test_a_sample_is_the_same_people_in_every_order_of_the_file(tmp_path: Path) -> None:
    engine, table = DuckDBEngine(tmp_path, threads=2), stored(tmp_path, 20_000, 20_000)
    sample = engine.everybody(table, 1_000).to_pandas()
    assert 800 < len(sample) < 1_200
    assert PEOPLE not in sample
    pd.read_parquet(table).sample(frac=1, random_state=1).to_parquet(table, index=False)
    assert sorted(engine.everybody(table, 1_000).to_pandas()["code"]) == sorted(sample["code"])
    assert len(engine.everybody(table)) == len(engine.everybody(table, 10**9)) == 40_000


@pytest.mark.parametrize("about", [1, 3, 7, 100, 499, 500, 1_000])
def test_equal_people_are_drawn_by_their_number(tmp_path: Path, about: int) -> None:
    """All or none, a third of the table was missing in the sample, or most of it, and costs were of few kinds."""
    engine, table = DuckDBEngine(tmp_path, threads=1), tmp_path / "people.parquet"
    counts = {1: 300, 2: 200, 3: 1, **dict.fromkeys(range(4, 503), 1)}
    pq.write_table(pa.table({"code": list(counts), PEOPLE: list(counts.values())}), table)
    drawn = Counter(engine.everybody(table, about).column("code").to_pylist())
    step = max(sum(counts.values()) // about, 1)
    for code, people in counts.items():
        assert people // step <= drawn[code] <= -(-people // step)
    if step > 1:
        assert 0.7 * 500 / step - 3 < sum(drawn[code] for code in range(3, 503)) < 1.3 * 500 / step + 3
