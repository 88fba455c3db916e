"""Packing loses nothing, however wide the columns are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.engine import packing as packing_module
from anon_pipeline.engine.packing import Packing, is_dense, radix_of
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain
from anon_pipeline_tests.examples import times


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    kind = draw(st.sampled_from(["dense", "run", "wide", "floats", "texts", "empty"]))
    whole = st.integers(-(10**18), 10**18)
    if kind == "dense":
        start = draw(whole)
        values = [start + step for step in draw(st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=6))]
    elif kind == "run":
        start = draw(whole)
        values = list(range(start, start + draw(st.integers(1, 6))))
        if draw(st.booleans()) and len(values) > 2:
            values.pop(1)  # and then it is none
    elif kind == "wide":
        values = list(draw(st.sets(whole, min_size=1, max_size=6)))
    elif kind == "floats":
        values = list(draw(st.sets(st.floats(-1e18, 1e18), min_size=1, max_size=6)))
    else:
        values = [] if kind == "empty" else [f"text {i}" for i in range(draw(st.integers(1, 6)))]
    array = np.array(
        sorted(values), dtype={"dense": np.int64, "run": np.int64, "wide": np.int64, "floats": float}.get(kind, object)
    )
    type_ = ColumnType.CATEGORICAL if array.dtype == object else ColumnType.NUMERIC
    return Domain(kind, type_, array, np.ones(len(array) + 1, dtype=np.int64))


@pytest.mark.long
@settings(max_examples=times(150))
@given(st.lists(domains(), min_size=1, max_size=9), st.integers(0, 999), st.sampled_from([7, packing_module.CACHED]))
def test_a_key_stands_for_one_tuple_only_else_strangers_share_a_cell(
    columns: list[Domain], seed: int, together: int
) -> None:
    packing = Packing.plan(tuple(columns))
    generator = np.random.default_rng(seed)
    codes = np.stack([generator.integers(0, len(domain), 50) for domain in columns], axis=1).astype(np.int32)
    # The corners, where an overflow would show.
    codes[0], codes[1] = 0, [len(domain) - 1 for domain in columns]
    key = packing.pack(codes)
    assert key.min() >= 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(packing_module, "CACHED", together)
        assert (packing.unpack(key) == codes).all()
    assert len(np.unique(key, axis=0)) == len(np.unique(codes, axis=0))
    assert sorted(position for part in packing.parts for position in part) == list(range(len(columns)))


def test_columns_too_wide_for_one_integer_take_several() -> None:
    wide = Domain("x", ColumnType.NUMERIC, np.array([0, 2**31 - 1]), np.ones(3, dtype=np.int64))
    assert is_dense(wide)
    assert radix_of(wide) == 2**31 + 1
    assert [len(Packing.plan((wide,) * number).parts) for number in (1, 2, 3, 5)] == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("values", "dense"),
    [([5], True), ([-3, 2**31 - 4], True), ([-3, 2**31 - 3], False), ([], False), ([0, 1, 2], True)],
)
def test_whole_numbers_near_one_another_are_packed_by_their_distance(values: list[int], dense: bool) -> None:
    numbers = np.array(values, dtype=np.int64)
    domain = Domain("x", ColumnType.NUMERIC, numbers, np.ones(len(values) + 1, dtype=np.int64))
    assert is_dense(domain) is dense
    assert radix_of(domain) == (values[-1] - values[0] + 2 if dense else len(values) + 1)
    assert not is_dense(
        Domain("x", ColumnType.NUMERIC, numbers.astype(float), np.ones(len(values) + 1, dtype=np.int64))
    )


@pytest.mark.parametrize(
    ("radixes", "parts"),
    [
        ([7, 73, 127, 337, 92_737, 649_657], [6]),  # 2^63 - 1 tuples
        ([2**21, 2**21, 2**21], [2, 1]),  # 2^63 tuples
        ([2**31, 2**31, 4], [2, 1]),
        ([2**31, 2**31], [2]),
    ],
)
def test_as_many_columns_as_fit_are_packed_together(radixes: list[int], parts: list[int]) -> None:
    columns = [
        Domain(f"x{place}", ColumnType.NUMERIC, np.array([0, radix - 2]), np.ones(3, dtype=np.int64))
        for place, radix in enumerate(radixes)
    ]
    packing = Packing.plan(tuple(columns))
    assert [radix_of(column) for column in columns] == radixes
    assert [len(part) for part in packing.parts] == parts
    largest = np.full((1, len(radixes)), 2, dtype=np.int32)
    assert (packing.unpack(packing.pack(largest)) == largest).all()
