"""The content hash of a table: the order of its rows is nothing to it, and everything else is something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.engine.content import row_hashes
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline_tests.examples import times

VALUES = st.one_of(st.none(), st.integers(-3, 3), st.just(10))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "-", "1:a", "a", "a1:", "é", "a\nb", "NULL", "0:"]))


@pytest.mark.long
@settings(max_examples=times(20))
@given(st.lists(st.tuples(VALUES, TEXTS, TEXTS), min_size=1, max_size=6), st.randoms(), st.data())
def test_the_content_hash_is_blind_to_order_and_to_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], random: Any, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("hash")
    engine = DuckDBEngine(folder, threads=1)

    def of(rows: list[tuple[Any, ...]], names: str = "abc", kind: str = "int64") -> str:
        columns = list(zip(*rows, strict=True))
        arrays = [
            pa.array(columns[0], getattr(pa, kind)()),
            pa.array(columns[1], pa.string()),
            pa.array(columns[2], pa.string()),
        ]
        pq.write_table(pa.table(arrays, names=list(names)), folder / "x.parquet")
        number, content = engine.content_hash(folder / "x.parquet")
        assert number == len(rows)
        return content

    before = of(rows)
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert of(shuffled) == before
    assert of(rows, "abd") != before
    assert of(rows, "abc", "int32") == before  # how wide an engine stores a whole number is its own affair
    assert of(rows, "abc", "float64") != before
    assert of([*rows, rows[0]]) != before  # a double counts
    place, column = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, 2))
    other = data.draw((VALUES if column == 0 else TEXTS).filter(lambda value: value != rows[place][column]))
    changed = list(rows)
    changed[place] = (*rows[place][:column], other, *rows[place][column + 1 :])
    assert (of(changed) == before) == (sorted(map(repr, changed)) == sorted(map(repr, rows)))


def test_the_content_hash_forgets_which_row_stands_twice(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Of as many rows, and of the same distinct ones."""
    hashes = set()
    for number, values in enumerate((["a", "a", "b"], ["a", "b", "b"])):
        pd.DataFrame({"x": values}).to_parquet(tmp_path / f"{number}.parquet")
        hashes.add(engine.content_hash(tmp_path / f"{number}.parquet")[1])
    assert len(hashes) == 2


def test_two_rows_that_swap_a_value_have_another_hash(engine: DuckDBEngine, tmp_path: Path) -> None:
    hashes = set()
    for name, cities in (("a", ["Ulm", "Bonn"]), ("b", ["Bonn", "Ulm"])):
        pq.write_table(pa.table({"age": [1, 2], "city": cities}), tmp_path / f"{name}.parquet")
        hashes.add(engine.content_hash(tmp_path / f"{name}.parquet")[1])
    assert len(hashes) == 2


def test_a_content_hash_is_what_it_always_was(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Releases are known by it: a change makes every source and every release another one."""
    frame = pd.DataFrame(
        {
            "age": [30, 40, None],
            "pay": [0.5, -0.0, None],
            "town": ["Ulm", None, "Zürich"],
            "born": pd.to_datetime(["1990-01-31", None, "2000-02-29"]),
            "well": [True, False, None],
        }
    )
    frame.to_parquet(tmp_path / "x.parquet", index=False)
    assert engine.content_hash(tmp_path / "x.parquet") == (
        3,
        "e99d5fea7a56ed21f1994949a24e362c9cd17a5fa8d8903e4fda1f4d9a5e4d7e",
    )


@settings(max_examples=times(100))
@given(st.lists(st.one_of(st.none(), st.lists(TEXTS, max_size=3)), max_size=8), st.integers(0, 8))
def test_lists_of_texts_are_hashed_as_json_wherever_they_stand(rows: list[Any], start: int) -> None:
    """Each different list is made once; sets of categories of a table of classes are such lists."""
    whole = pa.chunked_array([pa.array(rows, pa.list_(pa.string())), pa.array([["b"], None], pa.list_(pa.string()))])
    for part in (whole, whole.slice(start), whole.combine_chunks().slice(start)):
        texts = [None if value is None else json.dumps(value) for value in part.to_pylist()]
        as_texts = row_hashes([pa.array(texts, pa.string())], ["a"])
        assert (row_hashes([part], ["a"]) == as_texts).all()
