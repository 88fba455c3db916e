"""Local differential privacy with a large epsilon: what is hardly ever drawn can still be drawn.

The attacker reads a masked column and knows the code. With epsilon 37 another category than the true one has a
probability below 2^-53. Drawn in 52 bits it never came out, so that whatever was shown was true for certain, where
`epsilon: 37` was stated. The specs allow 50.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.keys import Key
from anon_pipeline.masking import local_randomizers
from anon_pipeline.masking.draws import ALL, Blocks, Draws, places
from anon_pipeline.masking.local_randomizers import LocalRandomizer, RandomizedResponse, UnaryEncoding
from anon_pipeline.masking.planar_laplace import PlanarLaplace, laplace_radius
from anon_pipeline.masking.pram import LEAST, Pram, ends_of, epsilon_of

EPSILONS = [1e-9, 0.1, 1, 10, 30, 35.7, 36, 37, 44, 50]


class Forced(Draws):
    """Draws whose bits the test chooses, call by call; `any_of` and all else follow from them."""

    def __init__(self, *numbers: int) -> None:
        super().__init__(Key(b"k" * 32), [], np.zeros((1, 2), dtype=np.uint64))
        self.left = list(numbers)

    def _bits(self) -> Blocks:
        number = self.left.pop(0)
        return np.array([[number >> 64, number % 2**64]], dtype=np.uint64)


def report(step: LocalRandomizer, true: int, *numbers: int) -> str:
    (reported,) = step.reports(np.array([true]), Forced(*numbers)).to_pylist()
    return str(reported)


def at_most(ratio: Fraction, epsilon: float) -> bool:
    """Whether a ratio of probabilities is at most e^epsilon, in more digits than either has."""
    with localcontext(prec=120):
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) <= Decimal(epsilon).exp()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 7, 2000])
def test_randomized_response_keeps_the_epsilon_that_it_states(epsilon: float, k: int) -> None:
    step = RandomizedResponse(epsilon=epsilon, categories=tuple(f"c{number}" for number in range(k)))
    stays = ALL - (k - 1) * local_randomizers.part_of_another(epsilon, k - 1)
    assert report(step, 0, stays - 1, 0) == "c0"
    assert report(step, 0, stays, 0) == "c1"  # so this is where it ceases to stay
    assert report(step, 0, ALL - 1, ALL - 1) == f"c{k - 1}"
    least = Fraction(ALL - stays, ALL) * Fraction(ALL // (k - 1), ALL)  # of any other category
    assert at_most(Fraction(stays, ALL) / least, epsilon)
    assert Fraction(stays, ALL) / least > Fraction(math.exp(epsilon)) * (1 - Fraction(1, 10**9))  # and no more is lost


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_unary_encoding_keeps_the_epsilon_that_it_states(epsilon: float) -> None:
    step = UnaryEncoding(epsilon=epsilon, categories=("a", "b"))
    q, half = local_randomizers.part_of_another(epsilon, 1), ALL // 2
    q = min(q, half)
    assert report(step, 0, half - 1, q - 1) == "11"
    assert report(step, 0, half, q) == "00"
    assert at_most(Fraction(ALL - q, q), epsilon)


def test_a_category_with_hardly_any_probability_is_drawn_by_pram() -> None:
    rare = 1e-20
    step = Pram(matrix={"a": {"a": 1 - rare, "b": rare}, "b": {"a": rare, "b": 1 - rare}})
    assert step.is_locally_private
    first, _ = (ends_of(row)[0] for row in step._matrix(["a", "b"]))
    assert 0 < ALL - first < ALL * 1e-15
    matrix = step._matrix(["a", "b"])
    parts = [ends_of(row)[0] for row in matrix]
    assert math.log(parts[0] / parts[1]) == pytest.approx(epsilon_of(matrix), abs=1e-9)


def test_rows_that_do_not_add_up_exactly_take_no_category_away() -> None:
    """The last one of a row had what was left of 1, which was nothing here, and an epsilon of 23 was stated."""
    row = np.array([1.0, 1e-10])
    (end,) = ends_of(row)
    assert (ALL - end) / ALL == pytest.approx(1e-10)
    assert epsilon_of(np.array([row, row[::-1]])) == pytest.approx(math.log(1e10))


def test_a_probability_that_is_too_small_to_be_drawn_promises_nothing() -> None:
    row = np.array([1.0, 1e-30])
    assert ends_of(row) == [ALL]
    assert epsilon_of(np.array([row, row[::-1]])) == math.inf
    stated = {"a": {"a": 1.0, "b": 1e-30}, "b": {"a": 1e-30, "b": 1.0}}
    assert not Pram(matrix=stated).is_locally_private


def test_places_are_those_of_whole_numbers() -> None:
    ends = [0, 5, 2**64, 2**64 + 7, 3 * 2**64, ALL - 1, ALL]
    numbers = sorted({max(0, min(ALL - 1, end + off)) for end in ends for off in (-1, 0, 1)})
    drawn = np.array([[number >> 64, number % 2**64] for number in numbers], dtype=np.uint64)
    assert places(drawn, ends).tolist() == [sum(end <= number for end in ends) for number in numbers]
    assert places(drawn, []).tolist() == [0] * len(numbers)


@pytest.mark.parametrize("number", [1, 2, 3, 1999, 2**31])
def test_any_of_divides_128_bits_evenly(number: int) -> None:
    for drawn in (0, 1, ALL // 3, ALL // 2 - 1, ALL // 2, ALL - 1, -(-ALL // number) - 1, -(-ALL // number) % ALL):
        assert Forced(drawn).any_of(number).tolist() == [drawn * number // ALL]


def test_the_first_52_bits_decide_as_they_did() -> None:
    """Answers under the same key stay: a draw in 128 bits begins with the bits that `uniform` has."""
    things = np.arange(20_000, dtype=np.uint64).reshape(-1, 2)
    wide, narrow = (Draws(Key(b"k" * 32), ["step"], things) for _ in range(2))
    for part in (0.5, 0.1, 1e-3):
        assert (places(wide.blocks(), [round(part * ALL)]) == 0).tolist() == (narrow.uniform() < part).tolist()
    assert wide.any_of(7).tolist() == narrow.below(np.full(len(things), 7)).tolist()


def test_a_position_can_move_as_far_as_a_large_level_says() -> None:
    """At a level of 50 a place at the distance `radius` has e^-50 of the density here; in 52 bits it had none."""
    step = PlanarLaplace(columns=("lat", "lon"), level=50, radius=1000)
    (far,) = step.distance(np.zeros(1), Forced(ALL - 1 - 2**50))  # of which 2^-78 are farther away
    assert far == pytest.approx(planar_radius_of(2.0**-78, 0.05), rel=1e-6)
    assert far > 1000
    (usual,) = step.distance(np.zeros(1), Forced(ALL // 3))
    assert usual == laplace_radius((np.array([(ALL // 3) >> 76]) + 0.5) * 2.0**-52, 0.05)[0]  # as it was


def planar_radius_of(part: float, epsilon: float) -> float:
    """Where (1 + epsilon r) e^(-epsilon r) is this part, by Newton's method in logarithms."""
    reach = -math.log(part)
    for _ in range(50):
        reach -= (reach - math.log1p(reach) + math.log(part)) / (1 - 1 / (1 + reach))
    return reach / epsilon


def test_laplace_noise_has_no_gaps_where_64_bits_left_some() -> None:
    """Beside the largest noise, 45 scales, 64 bits had only 44 and 43.4, and whoever knew both values could tell them
    apart by what neither 44 nor 43.4 away can come from."""
    for high, low in ((0, 2**62), (1, 2**62), (3, 12345), (2**31, 2**62)):
        (drawn,) = Forced((high << 64) + low).laplace()
        assert -drawn == pytest.approx(-math.log((high + low / 2**63) / 2**64), abs=1e-12)
    (usual,) = Forced((2**40 << 64) + 2**62).laplace()
    assert -usual == -np.log((2.0**40 + 0.5) * 2.0**-64)  # as it was


def test_reports_are_texts_of_the_categories() -> None:
    step = RandomizedResponse(epsilon=50, categories=("a", "b"))
    assert step.reports(np.array([1]), Forced(0, 0)).equals(pa.array(["b"]))


def test_pram_claims_no_epsilon_for_a_category_that_its_rounded_row_cannot_draw() -> None:
    """A row may miss 1 by 1e-9: made to add up first, its least probability would count as one that is drawn."""
    row = np.array([LEAST * (1 - 1e-10), 1 - 2e-10])
    assert row[0] / row.sum() >= LEAST
    assert ends_of(row) == [0]
    assert epsilon_of(np.array([row, [0.5, 0.5]])) == math.inf
