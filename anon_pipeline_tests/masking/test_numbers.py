"""Numbers, dates and texts as techniques compute with them, and the orders and codes of rows."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.masking.draws import Draws, content_of, identities
from anon_pipeline.masking.grouping import codes_of, groups_of, keys_of
from anon_pipeline.masking.numbers import deviation, from_floats, to_floats
from anon_pipeline.masking.order import canonical_order
from anon_pipeline.masking.texts import as_texts
from anon_pipeline_tests.masking.tables import KEY, OTHER_KEY

NOON = datetime(1970, 1, 2, 12)


@pytest.mark.parametrize(
    ("column", "floats"),
    [
        (pa.array([3, None], pa.int8()), [3.0, np.nan]),
        (pa.array([Decimal("1.25"), None]), [1.25, np.nan]),
        (pa.array([date(1970, 1, 3), date(1969, 12, 31), None]), [2.0, -1.0, np.nan]),
        (pa.array([NOON, None], pa.timestamp("us")), [1.5, np.nan]),
        (pa.array([NOON], pa.timestamp("s")), [1.5]),
        (pa.array([1_999], pa.timestamp("ns")), [1e-6 / 86_400]),
    ],
)
def test_numbers_and_dates_as_floats(column: pa.Array, floats: list[float]) -> None:
    assert to_floats(column) == pytest.approx(floats, nan_ok=True)


@pytest.mark.parametrize(
    ("type_", "floats", "shown"),
    [
        (pa.int8(), [1.6, -1.6, 127.0, 128.0, 1e300, -128.0, -129.0, np.nan], [2, -2, 127, 127, 127, -128, -128, None]),
        (pa.int64(), [2.0**63, -(2.0**63), -(2.0**64), 2.0**62], [2**63 - 1, -(2**63), -(2**63), 2**62]),
        (pa.uint64(), [2.0**64, -1.0, 0.0], [2**64 - 1, 0, 0]),
        (pa.float64(), [-0.0, np.inf, -np.inf], [0.0, np.finfo(float).max, -np.finfo(float).max]),
        (pa.float32(), [1e300, 0.5, np.nan], [float(np.finfo(np.float32).max), 0.5, None]),
        (pa.decimal128(4, 2), [1.256, 1000.0, -1000.0, np.nan],
         [Decimal("1.26"), Decimal("99.99"), Decimal("-99.99"), None]),
        (pa.decimal128(3, 0), [5.3, 1e9], [Decimal(5), Decimal(999)]),
        (pa.decimal128(38, 0), [1e40], [Decimal("99999999999999903301480166063129755648")]),
        (pa.date32(), [1.4, -1.4, np.nan], [date(1970, 1, 2), date(1969, 12, 31), None]),
        (pa.timestamp("us"), [1.5, np.nan], [NOON, None]),
        (pa.timestamp("s"), [1.5 + 0.4 / 86_400], [NOON]),
    ],
)  # fmt: skip
def test_floats_come_back_as_the_type_has_room_for(type_: pa.DataType, floats: list[float], shown: list[Any]) -> None:
    made = from_floats(np.array(floats), type_)
    assert made.type == type_ and made.to_pylist() == shown
    assert "-0.0" not in map(str, made.to_pylist())


def test_a_deviation_is_that_of_the_known_values() -> None:
    assert deviation(np.array([1.0, 3.0, np.nan])) == 1 and deviation(np.array([np.nan])) == 0
    assert deviation(np.array([1e300, 3e300])) == pytest.approx(1e300)


def test_finer_times_than_a_microsecond_are_written_without_the_rest() -> None:
    assert as_texts(pa.array([1_001, None], pa.timestamp("ns"))).to_pylist() == ["1970-01-01T00:00:00.000001", None]
    assert as_texts(pa.array([2.0**53, 2.0**53 + 2, -3.0, None])).to_pylist() == [
        "9007199254740992", "9007199254740994.0", "-3", None,
    ]  # fmt: skip


def test_codes_follow_the_first_appearance_and_groups_the_codes() -> None:
    codes, values = codes_of(pa.array(["b", None, "a", "b"]))
    assert codes.tolist() == [1, 0, 2, 1] and values.to_pylist() == ["b", "a"]
    codes, values = codes_of(pa.nulls(3))
    assert codes.tolist() == [0, 0, 0] and len(values) == 0
    assert groups_of([pa.array(["b", "a", "b", None])]).tolist() == [1, 2, 1, 0]
    pairs = [np.array([2, 1, 1, 0]), np.array([0, 1, 0, 2])]
    assert np.argsort(keys_of(pairs)).tolist() == [3, 2, 1, 0], "first by the first column"


def test_the_canonical_order_is_that_of_all_bits() -> None:
    rows = np.array([[2, 0], [1, 5], [1, 3], [2, 0]], dtype=np.uint64)
    assert canonical_order(rows).tolist() == [2, 1, 0, 3]


# ------------------------------------------------------------------ draws


def test_the_numbers_of_every_distribution_are_part_of_every_release() -> None:
    def draws() -> Draws:
        return Draws(KEY, ["noise"], identities(pa.table({"v": np.arange(4)}), KEY, "people"))

    assert draws().normal() == pytest.approx([-1.94898455891, 0.562101483291, 1.79710405200, -1.40760817037])
    assert draws().laplace() == pytest.approx([-2.97011776889, 0.555044217347, 2.62666697208, -1.83729802691])
    assert draws().below(np.array([1, 2, 10, 1000])).tolist() == [0, 1, 0, 159]
    assert draws().number() == pytest.approx(0.938094926848)


@pytest.mark.parametrize("limit", [1, 2, 3, 2**31, 2**53 - 1, 2**53])
def test_the_largest_number_that_is_drawn_lies_below_every_limit(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = Draws(KEY, ["noise"], identities(pa.table({"v": [1]}), KEY, "people"))
    for drawn, wanted in ((1 - 2.0**-53, limit - 1), (2.0**-53, 0 if limit < 2**53 else 1)):
        monkeypatch.setattr(draws, "uniform", lambda drawn=drawn: np.array([drawn]))
        assert draws.below(np.array([limit])).tolist() == [wanted]


def test_the_rarest_numbers_are_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = Draws(KEY, ["noise"], identities(pa.table({"v": [1, 2]}), KEY, "people"))
    monkeypatch.setattr(draws, "_bits", lambda: np.array([[0, 0], [0, 2**63]], dtype=np.uint64))
    assert draws.laplace() == pytest.approx([-128 * np.log(2), 128 * np.log(2)])
    assert draws.normal() == pytest.approx([-9.12, 9.12], abs=0.2)
    assert draws.uniform() == pytest.approx([2.0**-53] * 2, rel=1e-12)


def test_nobody_has_draws_and_equal_rows_have_different_ones() -> None:
    assert identities(pa.table({"v": pa.array([], pa.int64())}), KEY, "people").shape == (0, 2)
    rows = identities(pa.table({"v": [7, 7, 8, 7]}), KEY, "people")
    assert len(np.unique(rows, axis=0)) == 4
    assert not np.isin(rows, identities(pa.table({"v": [7, 7, 8, 7]}), OTHER_KEY, "people")).any()


def test_a_whole_number_is_one_content_until_floats_cannot_tell_it_from_the_next() -> None:
    def contents(*columns: pa.Array) -> int:
        return len({content_of(pa.table({"v": column})).tobytes() for column in columns})

    for number in (0, -3, 2**53 - 1, 1 - 2**53):
        assert contents(pa.array([number]), pa.array([float(number)]), pa.array([number], pa.float64())) == 1
    assert contents(pa.array([2**53]), pa.array([2.0**53])) == 2, "as a float this is also 2^53 + 1"
    assert contents(pa.array([0.5]), pa.array([1.5]), pa.array([-0.5]), pa.array([0]), pa.array([None, 0.5])) == 5
