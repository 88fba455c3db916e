"""What is said of a synthetic table, and which values share a count: known answers from noisy counts."""

import math

import numpy as np
import pytest

from anon_pipeline.differential_privacy.synthesis.estimation import NoisyTable
from anon_pipeline.differential_privacy.synthesis.measuring import RARE, column_counts, merged, shared_codes
from anon_pipeline.differential_privacy.synthesis.quality import count_quality, value_counts


def table(columns: tuple[int, ...], counts: list[float] | np.ndarray, variance: float = 1.0) -> NoisyTable:
    array = np.asarray(counts, dtype=float)
    return NoisyTable(columns, array, np.full(array.shape, variance))


def test_the_quality_of_counts() -> None:
    codes = np.array([[0, 1, 0]] * 30 + [[1, 0, 1]] * 50 + [[1, 1, 1]] * 20)
    of_one = NoisyTable((0,), np.array([40.0, 60.0]), np.array([4.0, 9.0]))
    one, both = count_quality([of_one, table((0, 2), [[34, 0], [0, 66]], 4.0)], codes, 100.0)
    assert (one.columns, one.cells, both.columns, both.cells) == ((0,), 2, (0, 2), 4)
    assert one.distance == pytest.approx((10 + 10) / 2 / 100)
    assert one.noise == pytest.approx(math.sqrt(2 / math.pi) * (2 + 3) / 2 / 100)
    assert one.error_bar == 6  # 5 and less have 93 % of the noise, and 1.96 * 3 is less than 6
    assert both.distance == pytest.approx((4 + 4) / 2 / 100)
    assert both.noise == pytest.approx(math.sqrt(2 / math.pi) * 4 * 2 / 2 / 100)


def test_counts_of_values_are_means_by_what_is_sure() -> None:
    codes = np.array([[0, 0]] * 70 + [[1, 0]] * 30)
    sure, vague, other = table((0,), [80, 20], 3.0), table((0,), [60, 0], 9.0), table((1,), [100])
    noisy, variance = column_counts([sure, vague], 0)
    assert noisy == pytest.approx([75, 15]) and variance == pytest.approx([2.25, 2.25])
    first, second = value_counts([sure, vague, other], codes, 0)
    assert (first.noisy, first.synthetic) == (pytest.approx(75), 70)
    assert (second.noisy, second.synthetic) == (pytest.approx(15), 30)
    reach = 3  # 2 and less have 90 % of the noise
    assert (first.low, first.high) == (pytest.approx(75 - reach, rel=1e-5), pytest.approx(75 + reach, rel=1e-5))
    (few,) = value_counts([table((0,), [0.5], 4.0)], np.zeros((1, 1), dtype=np.int64), 0)
    assert (few.low, few.high) == (0, pytest.approx(0.5 + 4))


@pytest.mark.parametrize("deviation", [0.3, 0.5, 1, 1.5, 2, 3.2, 7, 12.4, 60])
def test_intervals_of_counts_hold_95_of_100_where_noise_is_a_few_people(deviation: float) -> None:
    """Normal ones held 79 at a deviation of a half, and 88 at one of 1."""
    (count,) = value_counts([table((0,), [1000.0], deviation**2)], np.zeros((1, 1), dtype=np.int64), 0)
    noise = np.arange(-1000, 1001)
    chance = np.exp(-(noise**2) / (2 * deviation**2))
    inside = np.abs(noise) <= (count.high - count.low) / 2 + 1e-9
    assert chance[inside].sum() / chance.sum() > 0.949
    assert (count.high - count.low) / 2 < 1.96 * deviation + 0.7


def test_a_column_of_a_table_of_several_is_summed_over_the_others() -> None:
    counts, variance = column_counts([table((0, 2), [[1, 2, 3], [4, 5, 6]], 2.0)], 2)
    assert counts == pytest.approx([5, 7, 9]) and variance == pytest.approx([4, 4, 4])


@pytest.mark.parametrize(
    ("counts", "targets", "codes"),
    [
        ([100, 90, 80, 70], (), [0, 1, 2, 3]),
        ([100, 0, 90, 0], (), [0, 2, 1, 2]),  # two are rare
        ([0, 100, 0, 0], (), [1, 0, 1, 1]),
        ([100, 0, 90, 80], (), [0, 1, 2, 3]),  # nobody to share with
        ([80, 100, 90, 0], (), [0, 1, 2, 1]),  # the missing value shares the commonest value's code
        ([0, 100, 0, 0], (0,), [0, 1, 2, 1]),  # of a target, the missing value alone
        ([100, 0, 0, 90], (0,), [0, 1, 2, 3]),
        ([0, 0, 0, 0], (), [0, 1, 2, 0]),  # all are rare, so none stands for the others but for the missing one
    ],
)
def test_rare_values_share_a_code(counts: list[float], targets: tuple[int, ...], codes: list[int]) -> None:
    (found,) = shared_codes([4], [table((0,), counts)], targets)
    assert found.tolist() == codes


def test_a_value_is_rare_below_so_many_deviations() -> None:
    deviation = 5.0
    for count, alone in ((RARE * deviation, True), (RARE * deviation - 0.01, False)):
        (found,) = shared_codes([3], [table((0,), [100, count, 0], deviation**2)], ())
        assert (found[1] != found[2]) == alone


def test_a_column_that_nobody_has_counted_keeps_its_codes() -> None:
    first, second = shared_codes([2, 3], [table((0,), [10, 20])], ())
    assert (first.tolist(), second.tolist()) == ([0, 1], [0, 1, 2])


def test_counts_of_values_that_share_a_code_are_added() -> None:
    given = NoisyTable((0, 1), np.arange(6.0).reshape(2, 3), np.arange(1.0, 7).reshape(2, 3))
    found = merged(given, [np.array([0, 1]), np.array([0, 1, 0])])
    assert found.columns == (0, 1)
    assert found.counts.tolist() == [[2, 1], [8, 4]] and found.variance.tolist() == [[4, 2], [10, 5]]
