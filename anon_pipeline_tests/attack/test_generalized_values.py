"""Ranges and sets of several tools are read for what they allow."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.attack import generalized_values
from anon_pipeline.attack.generalized_values import numbers, read_interval, read_set, texts

INF = math.inf
DAY = 18293.0  # 2020-02-01


@pytest.mark.parametrize(
    ("text", "inside", "outside", "missing"),
    [
        ("[25, 37]", [25, 37, 30.5], [24.999, 37.001], False),
        ("[20, 30[", [20, 29.999], [30, 19], False),
        ("]20, 30]", [20.001, 30], [20], False),
        ("(20,30)", [20.001, 29.999], [20, 30], False),
        ("[20;30]", [20, 30], [31], False),
        ("[-5.5, -1e2]", [], [-50], False),
        ("[-100, -5.5]", [-100, -5.5], [-5], False),
        ("(-inf, 5]", [-1e9, 5], [6], False),
        ("[5,)", [5, 1e9], [4], False),
        ("(, 5]", [-1e9, 5], [6], False),
        ("20-30", [20, 30], [19, 31], False),
        ("20 – 30", [20, 30], [19, 31], False),  # noqa: RUF001 the dash that spreadsheets write
        ("-10--5", [-10, -5], [0], False),
        ("20 to 30", [20, 30], [19], False),
        ("20..30", [20, 30], [19], False),
        (">=50", [50, 1e9], [49.9], False),
        ("> 50", [50.1], [50], False),
        ("<=50", [50, -1e9], [50.1], False),
        ("<50", [49.9], [50], False),
        ("≥50", [50, 1e9], [49], False),
        ("≤50", [50, -1e9], [51], False),
        ("< 50", [-1e9], [50], False),
        ("> 50", [1e9], [50], False),
        ("[5, ∞[", [5, 1e9], [4], False),
        ("(, )", [-1e9, 1e9], [], False),
        ("{1, missing}", [1], [0, 2], True),
        ("90+", [90, 120], [89], False),
        ("130**", [13000, 13099, 13099.5], [12999, 13100], False),
        ("37", [37], [36], False),
        ("*", [-1e9, 1e9], [], True),
        ("37 or missing", [37], [36], True),
        ("[1, 2] or *", [1, 2], [3], True),
        ("* or missing", [-1e9, 1e9], [], True),
        ("missing", [], [0], True),
        ("{1, 5, 3}", [1, 3, 5], [0, 6], False),
        ("[2020-02-01, 2020-02-03]", [DAY, DAY + 2], [DAY - 1, DAY + 3], False),
        ("2020-02-01 - 2020-02-03", [DAY, DAY + 2], [DAY + 3], False),
        ("[2020-02-01T00:00:00.000000, 2020-02-01T12:00:00]", [DAY, DAY + 0.5], [DAY + 0.6], False),
        (">=2020-02-01", [DAY, DAY + 1000], [DAY - 1], False),
        ("2020-02", [DAY, DAY + 28.99], [DAY - 0.01, DAY + 29, 2020, 2], False),
        ("0005-10", [5, 10], [DAY], False),
    ],
)
def test_ranges_of_many_tools(text, inside, outside, missing):
    read = read_interval(text)
    assert read is not None
    assert all(read.low <= value <= read.high for value in inside)
    assert not any(read.low <= value <= read.high for value in outside)
    assert read.missing == missing


@pytest.mark.parametrize(
    "text", ["young", "a-b", "[a, b]", "20-", "1-2-3", "{1, 2", "1, 2}", "{1, a}", "{}x", "a or missing", "1 or 2"]
)
def test_what_cannot_be_read_is_not_guessed(text):
    assert read_interval(text) is None


@given(st.integers(-(10**6), 10**6), st.integers(0, 1000), st.sampled_from([1, 0.1, 0.25]))
def test_our_own_ranges_enclose_their_ends(low, width, step):
    ends = low * step, (low + width) * step
    read = read_interval(f"[{ends[0]}, {ends[1]}]")
    assert read is not None
    assert [read.low, read.high] == numbers(pd.Series(ends)).tolist()  # as the numbers of people are read


BORNE = frozenset(["Ulm", "Łódź", "Smith, John", "John", "130", "1301", "1302", "{a}", "missing", "true"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Ulm", {"Ulm"}),
        ("{Ulm, Łódź}", {"Ulm", "Łódź"}),
        ("{Ulm,Łódź}", {"Ulm", "Łódź"}),
        ("{Smith, John, Ulm}", {"Smith, John", "Ulm"}),
        ("{Ulm, *}", {"Ulm", "*"}),
        ("{Ulm, Nowhere}", {"Ulm"}),
        ("{Ulm, missing}", {"Ulm", "missing", None}),
        ("{True, False}", {"true"}),
        ("{Nowhere, Ulm}", {"Ulm"}),
        ("{Nowhere, Elsewhere, Ulm}", {"Ulm"}),
        ("{Ulm, nan}", {"Ulm", None}),
        ("{missing}", {"missing", None}),
        ("missing", {"missing", None}),
        ("Ulm}", {"*"}),
        ("{Ulm", {"*"}),
        ("John*", {"John"}),
        ("130**", {"130", "1301", "1302"}),
        ("{a}", {"{a}"}),  # a category people bear, not a set
        ("130*", {"1301", "1302"}),
        ("1**", {"130"}),
        ("*", {"*"}),
        ("South", {"*"}),  # a hierarchy's word: it may be any
        ("", {None}),
    ],
)
def test_sets_of_many_tools(text, told):
    assert read_set(text, BORNE) == told


def test_columns_of_any_type_become_numbers():
    dates = ["2020-02-01", None, "2020-02-02"]
    wanted = [DAY, np.nan, DAY + 1]
    columns = [
        pd.Series(pd.to_datetime(dates)),
        pd.Series(dates, dtype=object),
        pd.Series(dates, dtype="category"),
        pd.Series([datetime.date(2020, 2, 1), None, datetime.date(2020, 2, 2)]),
        pd.Series(pd.to_datetime(dates)).astype("datetime64[s]"),
        pd.Series(pd.to_datetime(dates)).dt.tz_localize("UTC").dt.tz_convert("America/New_York"),
    ]
    for column in columns:
        np.testing.assert_array_equal(numbers(column), wanted)
    for column in (pd.Series([1, None, 3], dtype="Int64"), pd.Series([1, np.nan, 3]), pd.Series(["1", None, "3.0"])):
        np.testing.assert_array_equal(numbers(column), [1, np.nan, 3])
    np.testing.assert_array_equal(numbers(pd.Series([True, False])), [1, 0])
    stays = pd.Series(pd.to_timedelta(["36 hours", None, "2 days"]))
    np.testing.assert_array_equal(numbers(stays), [1.5, np.nan, 2])
    assert numbers(pd.Series(np.arange(-50, 50) * 0.1)).tolist() == [
        float(f"{value / 10:.1f}") for value in range(-50, 50)
    ]


@pytest.mark.parametrize("size", [0.001, 1.0, 1000.0, 1e6])
def test_numbers_lose_the_dust_of_their_arithmetic_at_any_size(size):
    written = [float(f"{count / 10:.1f}") * size for count in range(1, 60)]
    dusty = [np.nextafter(value, np.inf) for value in written]
    np.testing.assert_array_equal(numbers(pd.Series(dusty)), numbers(pd.Series(written)))


def test_categories_are_spelled_alike_however_they_are_stored():
    assert texts(pd.Series([1, None, 3])).tolist() == texts(pd.Series([1, None, 3], dtype="Int64")).tolist()
    assert texts(pd.Series(["1", None, "3"])).tolist() == ["1", None, "3"]
    assert texts(pd.Series([True, False])).tolist() == texts(pd.Series(["True", "false"])).tolist() == ["true", "false"]
    assert texts(pd.Series(["b", "a", None], dtype="category")).tolist() == ["b", "a", None]


def test_fractions_keep_fifteen_digits_and_no_more():
    exact = [0.123456789012345, 1.23456789012345, 12345.6789012345, 98765432109876.5, 0.999999999999999]
    assert numbers(pd.Series(exact)).tolist() == exact
    assert numbers(pd.Series([0.1 + 0.2, 1.1 + 2.2, 1.5e-290, 1e300 + 0.5, math.inf])).tolist() == [
        *[0.3, 3.3, 1.5e-290, 1e300, math.inf]
    ]


def test_a_whole_number_is_spelled_as_one_and_another_is_not():
    spelled = [
        generalized_values.category(value) for value in (1.0, np.float32(2), 1.5, 3, "4.0", True, "False", "TRUE")
    ]
    assert spelled == ["1", "2", "1.5", "3", "4.0", "true", "false", "TRUE"]


def test_moments_in_columns_of_objects_are_days_as_well():
    moments = [
        pd.Timestamp("2020-02-01T12:00", tz="Europe/Berlin"),
        datetime.datetime(2020, 2, 1, 6),
        "x",
        None,
        3,
        [1],
    ]
    found = [generalized_values._number(value) for value in moments]
    np.testing.assert_array_equal(found, [DAY + 11 / 24, DAY + 0.25, math.nan, math.nan, 3, math.nan])
    assert math.isnan(read_interval("2020-13-01").low)


@given(st.floats(-1e15, 1e15, allow_nan=False), st.integers(-30, 5))
def test_a_fraction_is_one_number_however_it_is_stored(number, power):
    """A CSV has 24.691358024691358 as pandas writes it, of which a column of floats kept 15 digits only."""
    number *= 10.0**power
    text = repr(number)
    expected = numbers(pd.Series([number]))[0]
    for stored in ([text], [Decimal(text)], [text, "*"]):
        assert numbers(pd.Series(stored, dtype=object))[0] == expected
    interval = read_interval(f"[{text}, {text}]")
    assert interval is not None
    assert interval.low <= expected <= interval.high
    assert read_interval(text) == read_interval("{" + text + "}") == interval


@pytest.mark.parametrize(
    "text",
    ["2020-02-01T02:00+02:00", "2020-01-31 22:30:00-0130", "2020-02-01 00:00:00Z", "2020-02-01T01:00:00.000+01"],
)
def test_moments_with_an_offset_are_taken_in_utc(text):
    assert read_interval(text).low == DAY
    assert numbers(pd.Series([text, None], dtype=object))[0] == DAY
    assert numbers(pd.Series([pd.Timestamp("2020-02-01T01:00", tz="Europe/Berlin")]))[0] == DAY


def test_times_of_day_are_spelled_alike():
    spelled = [generalized_values.category(value) for value in (datetime.time(8, 30), "08:30:00", "08:30:00.000")]
    assert set(spelled) == {"08:30:00"}
    half = [generalized_values.category(value) for value in (datetime.time(8, 30, 0, 500_000), "08:30:00.5")]
    assert set(half) == {"08:30:00.5"}
