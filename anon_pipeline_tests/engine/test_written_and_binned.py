"""Rows written as often as they have people, and domains in bins, beside the same done slowly."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine import writing
from anon_pipeline.engine.binning import around, bins_of, domain_of
from anon_pipeline.engine.expressions import PEOPLE, bin_code
from anon_pipeline.spec import ColumnType


@pytest.mark.parametrize("group", [1, 3, 7, 1000])
def test_a_row_is_written_once_per_person_in_groups_of_stated_size(
    group: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP", group)
    counts = [2, 1, 9, 4, 3, 1, 7]
    table = pa.table({"x": pa.array([10, None, 12, 13, 14, 15, 16]), "t": ["a", "b", None, "a", "é", "", "b"]})
    batches = table.append_column("people", pa.array(counts)).to_batches(max_chunksize=3)
    empty = batches[0].slice(0, 0)
    file = tmp_path / "t.parquet"
    writing.write_repeated([empty, *batches], batches[0].schema, "people", file)
    assert pq.read_table(file).to_pylist() == [
        row for row, n in zip(table.to_pylist(), counts, strict=True) for _ in range(n)
    ]
    assert pq.read_schema(file).types == [pa.int64(), pa.string()]
    written = pq.ParquetFile(file).metadata
    assert max(written.row_group(place).num_rows for place in range(written.num_row_groups)) <= group


@pytest.mark.parametrize("bins", [1, 2, 5, 13])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_values_belong_to_bins_of_equally_many_people(bins: int, size: int) -> None:
    draw = np.random.default_rng(bins)
    people = draw.integers(1, 9, 30) * np.where(draw.random(30) < 0.1, 20, 1)
    values = np.sort(draw.choice(1000, 30, replace=False))
    known = int(people.sum())
    counted = pa.table({"value": pa.array([None, *values.tolist()]), "people": pa.array([6, *people.tolist()])})
    batches = counted.to_batches(max_chunksize=size)
    found = bins_of("x", ColumnType.NUMERIC, "BIGINT", batches, known, bins)
    everybody = np.repeat(values, people)
    of = {int(value): int(np.flatnonzero(everybody == value)[0]) * bins // known for value in values}
    groups = [[value for value in of if of[value] == number] for number in sorted(set(of.values()))]
    assert found.lows.tolist() == [group[0] for group in groups]
    assert found.highs.tolist() == [group[-1] for group in groups]
    assert found.counts.tolist() == [6, *[int(np.isin(everybody, group).sum()) for group in groups]]
    for number, group, shown in zip(sorted(set(of.values())), groups, found.values, strict=True):
        reached = [np.flatnonzero(everybody == value)[-1] + 1 for value in group]
        middle = [v for v, end in zip(group, reached, strict=True) if 2 * bins * end >= (2 * number + 1) * known]
        assert shown == (middle[0] if middle else group[-1])
    shown = duckdb.sql(f"SELECT list({bin_code(found, 'v')} ORDER BY v) FROM (SELECT unnest({list(of)}) AS v)")
    codes = sorted(set(of.values()))
    assert shown.fetchall()[0][0] == [codes.index(of[value]) + 1 for value in of]


@pytest.mark.parametrize("size", [1, 2])
def test_the_middle_of_a_bin_is_the_value_that_half_of_its_people_reach(size: int) -> None:
    """Exactly half of them, too, and whether or not the next value comes in the same batch."""
    counted = pa.table({"value": [1, 2, 3, 4], "people": [2, 2, 1, 3]})
    for bins, values in ((1, [2]), (2, [1, 4])):
        found = bins_of("x", ColumnType.NUMERIC, "BIGINT", counted.to_batches(max_chunksize=size), 8, bins)
        assert found.values.tolist() == values


@pytest.mark.parametrize(
    ("values", "people", "known", "counts"),
    [([None, 5, 7], [3, 1, 2], [5, 7], [3, 1, 2]), ([5, 7], [1, 2], [5, 7], [0, 1, 2]), ([None], [4], [], [4]),
     ([], [], [], [0])],
)  # fmt: skip
def test_a_domain_counts_the_missing_first(
    values: list[int | None], people: list[int], known: list[int], counts: list[int]
) -> None:
    table = pa.table({"value": pa.array(values, pa.int64()), "people": pa.array(people, pa.int64())})
    found = domain_of("x", ColumnType.NUMERIC, "BIGINT", table)
    assert (found.values.tolist(), found.counts.tolist()) == (known, counts)
    binned = bins_of("x", ColumnType.NUMERIC, "BIGINT", table.to_batches(), sum(counts[1:]), 9)
    assert (binned.values.tolist(), binned.counts.tolist()) == (known, counts)


@pytest.mark.parametrize(
    ("rows", "groups"),
    [([1, 1], [2]), ([1, 1, 1], [2, 1]), ([2, 2], [2, 2]), ([0, 3, 0, 1], [3, 1]), ([2, 1, 1], [2, 2]), ([], []),
     ([0], [])],
)  # fmt: skip
def test_batches_are_joined_until_they_are_a_row_group(
    rows: list[int], groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP", 2)
    batches = [pa.record_batch({"x": pa.array([7] * n, pa.int64())}) for n in rows]
    assert [table.num_rows for table in writing.in_groups(batches)] == groups


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.decimal128(21, 1), pa.date32(), pa.timestamp("us")])
def test_bins_have_the_ends_and_the_middle_of_some_of_their_people(kind: pa.DataType) -> None:
    """In batches, of which each has some of a value's people; a bin of which nobody is left stays as it is."""
    values, people = np.arange(0, 90, 3), np.random.default_rng(3).integers(1, 9, 30)
    counted = pa.table({"value": values, "people": people})
    found = bins_of("x", ColumnType.NUMERIC, "", counted.to_batches(), int(people.sum()), 6)
    assert found.lows is not None and found.highs is not None
    of_bin = np.searchsorted(found.highs, values)
    left = np.where((of_bin == 4) | np.isin(values, found.highs), 0, people // 2)
    column = pa.array(values, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    rows = pa.record_batch({"x": column, PEOPLE: left}).filter(pa.array(left > 0))
    missing = pa.record_batch({"x": pa.nulls(1, kind), PEOPLE: [7]})
    made = around([found], [rows.slice(9), missing, rows.slice(0, 9), rows.slice(0, 0)])["x"]
    assert made.lows is not None and made.highs is not None and made.values.dtype == np.int64
    for number in range(6):
        inside = np.repeat(values, left)[np.repeat(of_bin, left) == number]
        as_it_was = found.lows[number], found.values[number], found.highs[number]
        expected = (inside[0], inside[(len(inside) - 1) // 2], inside[-1]) if len(inside) else as_it_was
        assert (made.lows[number], made.values[number], made.highs[number]) == expected
    assert (made.values != found.values).any()
