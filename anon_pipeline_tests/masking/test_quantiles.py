"""Steps by quantiles: bins that hold equally many, and limits that tell nothing of whom they hide."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.masking.quantiles import rounded
from anon_pipeline_tests.masking.tables import DATE, NUMERIC, masked, step

RNG = np.random.default_rng(0)


def test_quantile_bins_hold_about_equally_many() -> None:
    values = RNG.lognormal(10, 1, 10_000)
    shown, (report,) = masked(values, NUMERIC, step("quantile_bin", bins=4))
    counts = {one["values"]: one["counts"] for one in shown.value_counts().to_pylist()}
    assert len(counts) == 4 == report.facts["bins"] and all(2300 < count < 2700 for count in counts.values())
    for value, label in zip(values[:100], shown.to_pylist()[:100], strict=True):
        if label.startswith("<"):
            assert value < float(label[2:])
        elif label.startswith(">="):
            assert value >= float(label[3:])
        else:
            low, high = label.strip("[)").split(", ")
            assert float(low) <= value < float(high)


def test_quantiles_of_dates_and_of_one_value() -> None:
    days = [date(2024, 1, day) for day in range(1, 31)]
    shown, _ = masked(days, DATE, step("quantile_bin", bins=2))
    assert set(shown.to_pylist()) == {"< 2024-01-16", ">= 2024-01-16"}
    assert set(masked([3.0] * 5, NUMERIC, step("quantile_bin", bins=3))[0].to_pylist()) == {"all"}


def test_people_with_the_largest_value_are_told_from_the_others_where_that_is_a_quantile() -> None:
    assert masked([0, 1, 1, 1], NUMERIC, step("quantile_bin", bins=2))[0].to_pylist() == ["< 1", *[">= 1"] * 3]


def test_quantile_coding_hides_the_tails_behind_round_limits() -> None:
    values = np.arange(1, 1001) * 1.001
    shown, (report,) = masked(values, NUMERIC, step("quantile_code", top=0.01, bottom=0.02))
    assert max(shown.to_pylist()) == 990 and min(shown.to_pylist()) == 21.1
    assert report.facts["rows_coded"] == int((values > 990).sum() + (values < 21.1).sum())
    untouched = (values >= 21.1) & (values <= 990)
    assert (np.array(shown)[untouched] == values[untouched]).all()
    mean, _ = masked(values, NUMERIC, step("quantile_code", top=0.01, show="mean"))
    assert max(mean.to_pylist()) == pytest.approx(values[values > 990].mean())
    few, _ = masked([1.0, 2.0, 3.0, 4.0, 500.0], NUMERIC, step("quantile_code", top=0.2, show="mean"))
    assert max(few.to_pylist()) == 4, "the mean of one person is that person's value"
    huge = [2**60 + 1, 2**60 + 3, 5, 6]
    assert masked(huge, NUMERIC, step("quantile_code", bottom=0.3))[0].to_pylist()[:2] == huge[:2]


def test_who_is_at_a_limit_is_not_beyond_it_and_not_in_the_mean_of_those_who_are() -> None:
    coded = step("quantile_code", bottom=0.05, top=0.05, show="mean")
    shown, (report,) = masked([float(value) for value in range(1, 101)], NUMERIC, coded)  # limits 6 and 95
    assert shown.to_pylist() == [3, 3, 3, 3, 3, *range(6, 96), 98, 98, 98, 98, 98]
    assert report.facts["rows_coded"] == 10


def test_limits_have_three_digits() -> None:
    assert rounded(np.array([123456.0, 0.0123456, -5.0, 0.0]), False).tolist() == [-5.0, 0.0, 0.0123, 123000.0]
    assert rounded(np.array([1234.0]), False, "up").tolist() == [1240.0]
    assert rounded(np.array([1230.0]), False, "up").tolist() == [1230.0]
    assert rounded(np.array([-1234.0]), False, "down").tolist() == [-1240.0]
    assert rounded(np.array([10.2, 10.4]), True).tolist() == [10.0]


def test_bins_of_nobody_of_the_least_and_of_the_largest_value() -> None:
    assert masked([0, 0, 0, 1], NUMERIC, step("quantile_bin", bins=2))[0].to_pylist() == ["all"] * 4
    shown, (report,) = masked(pa.nulls(2, pa.float64()), NUMERIC, step("quantile_bin", bins=2))
    assert shown.to_pylist() == [None, None] and report.facts == {"bins": 0}
    shown, (report,) = masked([1, 2, 3, 4, 5, 6], NUMERIC, step("quantile_bin", bins=3))
    low, middle, high = "< 2.67", "[2.67, 4.33)", ">= 4.33"
    assert shown.to_pylist() == [low, low, middle, middle, high, high] and report.facts == {"bins": 3}


@pytest.mark.parametrize(("top", "shown"), [(0.3, [7, 9, 9, 9]), (0.2, [7, 8, 8, 8])])
def test_the_mean_beyond_a_limit_is_shown_of_three_people(top: float, shown: list[float]) -> None:
    values = [float(value) for value in range(1, 11)]
    made, (report,) = masked(values, NUMERIC, step("quantile_code", top=top, show="mean"))
    assert made.to_pylist() == [*values[:6], *shown] and report.facts == {"rows_coded": round(10 * top)}
    made, _ = masked([-value for value in values], NUMERIC, step("quantile_code", bottom=top, show="mean"))
    assert made.to_pylist() == [-value for value in [*values[:6], *shown]]


def test_limits_that_cross_among_very_few_people_code_nobody() -> None:
    shown, (report,) = masked([1001.0, 1002.0], NUMERIC, step("quantile_code", bottom=0.4, top=0.4))
    assert shown.to_pylist() == [1001, 1002] and report.facts == {"rows_coded": 0}
    shown, (report,) = masked(pa.nulls(2, pa.float64()), NUMERIC, step("quantile_code", top=0.1))
    assert shown.to_pylist() == [None, None] and report.facts == {"rows_coded": 0}


def test_tails_are_coded_where_three_digits_are_coarser_than_the_column() -> None:
    """Years of one decade: limits that were 2020 and 2010 crossed, and the only one of the first year was shown."""
    years = [2011, *[2012, 2013, 2014, 2015, 2016, 2017] * 4, 2018]
    shown, (report,) = masked(years, NUMERIC, step("quantile_code", bottom=0.03, top=0.03))
    assert sorted(set(shown.to_pylist())) == [2012, 2013, 2014, 2015, 2016, 2017] and report.facts == {"rows_coded": 2}


def test_tails_of_moments_of_one_day_are_coded() -> None:
    hours = [datetime(2024, 2, 29, hour) for hour in range(24)]
    shown, (report,) = masked(hours, DATE, step("quantile_code", bottom=0.05, top=0.05))
    assert shown.to_pylist() == [hours[2], hours[2], *hours[2:22], hours[21], hours[21]]
    assert report.facts == {"rows_coded": 4}
    days = [datetime(2024, 2, day, 12) for day in range(1, 25)]
    shown, _ = masked(days, DATE, step("quantile_code", bottom=0.05, top=0.05))
    assert (min(shown.to_pylist()), max(shown.to_pylist())) == (datetime(2024, 2, 4), datetime(2024, 2, 22))


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(30, 0)], ids=str)
@pytest.mark.parametrize("coded", [{"top": 0.1, "bottom": 0.1}, {"top": 0.1}, {"bottom": 0.1}], ids=str)
def test_extremes_that_floats_take_for_one_are_refused(kind: pa.DataType, coded: dict[str, float]) -> None:
    """Nobody was coded, and the largest number was shown as it is."""
    numbers = pa.array([10**17 + place % 8 for place in range(40)], pa.int64())
    with pytest.raises(
        InputError, match=r"columns\.\w+\.steps: quantile_code: .* differ only in digits that floats do not hold"
    ):
        masked(numbers.cast(kind), NUMERIC, step("quantile_code", **coded))


def test_equal_extremes_are_not_refused() -> None:
    """Where everybody beyond the limit has the number that is shown, there is nobody to code."""
    numbers = pa.array([10**17] * 40, pa.decimal128(30, 0))
    assert masked(numbers, NUMERIC, step("quantile_code", top=0.1))[0].to_pylist() == numbers.to_pylist()
