"""Intervals against published values, and what a leak may look like."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anon_pipeline.attack.rates import (
    LEAK,
    NO_CONTROL,
    NO_LEAK,
    NOTHING,
    TOO_WEAK,
    Known,
    Leak,
    Rate,
    Rates,
    _ratio_bound,
    clopper_pearson,
    difference,
    finding,
    judged,
    known,
    leak_of,
    measured,
    percent,
    quantiles,
    wilson,
)
from anon_pipeline.errors import InputError


@pytest.mark.parametrize(
    ("interval", "successes", "trials", "low", "high"),
    [  # R. G. Newcombe, Statistics in Medicine 17 (1998), 857-872, table I: methods 3 and 5
        (wilson, 81, 263, 0.2553, 0.3662),
        (wilson, 15, 148, 0.0624, 0.1605),
        (wilson, 0, 20, 0.0, 0.1611),
        (wilson, 1, 29, 0.0061, 0.1718),
        (clopper_pearson, 81, 263, 0.2527, 0.3676),
        (clopper_pearson, 15, 148, 0.0578, 0.1617),
        (clopper_pearson, 0, 20, 0.0, 0.1684),
        (clopper_pearson, 1, 29, 0.0009, 0.1776),
    ],
)
def test_intervals_are_the_published_ones(interval, successes, trials, low, high):
    found = interval(successes, trials)
    assert found.rate == successes / trials
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


def test_nobody_and_everybody_hit_are_ends_of_their_intervals():
    for interval in (wilson, clopper_pearson):
        for trials in (1, 2, 7, 100, 5000):
            assert interval(0, trials).low == 0 < interval(0, trials).high < 1
            assert interval(trials, trials).high == 1 > interval(trials, trials).low > 0
            assert interval(1, trials).low > 0 and interval(trials - 1, trials).high < 1
    for impossible in ((-1, 5), (6, 5), (0, -1)):
        for interval in (wilson, clopper_pearson):
            with pytest.raises(InputError, match="successes"):
                interval(*impossible)


def test_the_difference_of_two_rates_is_newcombes_method_10():
    # 56/70 - 48/80, R. G. Newcombe, Statistics in Medicine 17 (1998), 873-890, table II
    gap, low, high = difference(wilson(56, 70), wilson(48, 80))
    assert (round(gap, 4), round(low, 4), round(high, 4)) == (0.2, 0.0524, 0.3339)


def test_what_is_calculated_was_tried_on_nobody():
    assert known(0.4) == Rate(0.0, 0, 0.4, 0.4, 0.4)
    assert known(0.4, 10) == Rate(4.0, 10, 0.4, 0.4, 0.4)


def test_a_rate_of_nothing_is_unknown():
    assert wilson(0, 0) == clopper_pearson(0, 0) == measured([]) == Rate(0.0, 0, 0.0, 0.0, 1.0)
    with pytest.raises(InputError, match="successes"):
        wilson(3, 2)


rates = st.integers(1, 5000).flatmap(lambda n: st.integers(0, n).map(lambda s: wilson(s, n)))


@given(rates, rates)
def test_a_leak_lies_in_its_interval_and_is_the_share_of_what_was_left(attack, control):
    leak = leak_of(attack, control)
    if control.rate == 1:
        assert leak is None
        return
    assert leak is not None
    assert -1 <= leak.low <= leak.leak <= leak.high <= 1
    assert leak.leak == pytest.approx(max(-1, (attack.rate - control.rate) / (1 - control.rate)))


@given(rates, rates)
def test_the_ends_of_a_leak_are_roots_of_the_equations_of_donner_and_zou(attack, control):
    """Ends R of the ratio (1 - attack) / (1 - control): (a - R c)^2 is the sum of the squared distances to the ends."""
    a, c = 1 - attack.rate, 1 - control.rate
    leak = leak_of(attack, control)
    assume(leak is not None)
    for side, (a_end, c_end), found in (
        (min, (1 - attack.high, 1 - control.low), leak.high),
        (max, (1 - attack.low, 1 - control.high), leak.low),
    ):
        squares = np.array([c * c - (c_end - c) ** 2, -2 * a * c, a * a - (a_end - a) ** 2])
        if squares[0] > 1e-9 and squares[1] ** 2 >= 4 * squares[0] * squares[2]:
            ratio = max(0.0, side(np.roots(squares).real))
            end = min(1 - ratio, leak.leak) if side is max else max(1 - ratio, leak.leak)
            assert found == pytest.approx(min(1.0, max(-1.0, end)), abs=1e-6)


@given(rates, rates)
def test_more_success_is_never_less_leak(attack, control):
    if attack.successes < attack.trials and control.rate < 1:
        more = leak_of(wilson(attack.successes + 1, attack.trials), control)
        less = leak_of(attack, control)
        assert less is not None
        assert more is not None
        assert less.low <= more.low + 1e-9
        assert less.high <= more.high + 1e-9


@pytest.mark.parametrize(("attack", "control"), [(0.1, 0.1), (0.3, 0.1), (0.9, 0.8), (0.5, 0.02), (0.99, 0.3)])
def test_the_leaks_interval_covers_the_truth_in_95_of_100_samples(attack, control):
    draw = np.random.default_rng(0)
    pairs = zip(draw.binomial(400, attack, 1500), draw.binomial(400, control, 1500), strict=True)
    truth = (attack - control) / (1 - control)
    covered = []
    for hits, others in pairs:
        leak = leak_of(wilson(hits, 400), wilson(others, 400))
        assert leak is not None
        covered.append(leak.low <= truth <= leak.high)
    assert 0.93 <= np.mean(covered) <= 0.985


def test_only_an_attack_that_beats_the_blind_guess_tells_anything():
    def verdict(attack, control, baseline):
        return finding("x", "inference", Known(("age",)), "guesses it", Rates(attack, control, baseline)).verdict

    assert verdict(wilson(90, 100), wilson(50, 100), known(0.4)) == LEAK
    assert verdict(wilson(90, 100), wilson(88, 100), known(0.4)) == NO_LEAK
    assert verdict(wilson(45, 100), wilson(10, 100), known(0.4)) == TOO_WEAK
    assert verdict(wilson(90, 100), None, known(0.4)) == NO_CONTROL
    assert verdict(wilson(45, 100), None, known(0.4)) == TOO_WEAK
    assert verdict(wilson(0, 0), wilson(50, 100), known(0.4)) == NOTHING
    assert verdict(wilson(0, 10), None, known(0.0)) == verdict(wilson(0, 10), wilson(0, 10), known(0.0)) == TOO_WEAK


def test_nobody_outside_to_try_it_on_is_no_control() -> None:
    nobody = wilson(0, 0)
    found = [
        finding("skewness", "inference", Known(()), "guesses it", Rates(wilson(hits, 50), nobody, known(0.1))).verdict
        for hits in (50, 5)
    ]
    assert found == [NO_CONTROL, TOO_WEAK]


def test_a_finding_says_it_in_words_and_json():
    known_columns = Known(("age", "city"), 0.05)
    details = {
        "nan": math.nan,
        "array": np.array([1, 2]),
        "one": np.float64(2),
        "rate": wilson(1, 2),
        "inf": [math.inf],
    }
    one = finding("x", "linkability", known_columns, "hits", Rates(wilson(90, 100), wilson(5, 10), known(0.1)), details)
    assert one.sentence == (
        "Knowing age, city (5 % of it wrong), an attacker hits in 90 % of the cases (82.6 % to 94.5 %), against 50 % "
        "(23.7 % to 76.3 %) for people not in it; blind guessing gives 10 %. The release itself gives away 80 % "
        "(49.5 % to 90.3 %)."
    )
    told = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert told["details"]["nan"] is None
    assert told["details"]["array"] == [1, 2]
    assert told["details"]["inf"] == [None]
    assert told["details"]["rate"]["trials"] == 2
    assert told["knowledge"] == {"columns": ["age", "city"], "wrong": 0.05}


def test_up_to_four_columns_are_named_and_more_are_counted():
    def sentence(*columns):
        rates = Rates(wilson(9, 10), None, known(0.1))
        return finding("x", "linkability", Known(columns), "hits", rates).sentence

    assert sentence("a", "b", "c", "d").startswith("Knowing a, b, c, d, an attacker")
    assert sentence("a", "b", "c", "d", "e").startswith("Knowing 5 columns, an attacker")


def test_shares_are_written_with_the_digits_they_need():
    assert [percent(x) for x in (0, 1, 0.5, 0.123, 0.0421, 0.00123, -0.2)] == [
        "0 %", "100 %", "50 %", "12.3 %", "4.21 %", "0.123 %", "-20 %",
    ]  # fmt: skip
    assert [percent(x) for x in (0.00995, 0.00994, 0.0995, 0.0994)] == ["1 %", "0.994 %", "10 %", "9.94 %"]


def test_nearly_all_is_not_all_and_hardly_any_is_not_none():
    """99.96 % was told as 100 %, and what few people of a large table lose as 0 %."""
    assert [percent(x) for x in (0.9996, 0.999, 0.000004, -1e-9)] == ["> 99.9 %", "99.9 %", "< 0.001 %", "0 %"]


def test_quantiles_can_be_weighted():
    assert quantiles([1, 2, 3, 4, 100], [0, 0, 1, 1, 0])["median"] == 3
    assert quantiles([1, 2, 3, 4, 100], [0, 0, 1, 1, 0])["max"] == 4  # nobody has the 100
    assert quantiles([1, 2, 3])["max"] == 3
    # A tenth a thousand times over adds up to a little less than a hundred, and the largest is the largest still.
    assert quantiles(np.arange(1000.0), np.full(1000, 0.1))["max"] == 999
    assert quantiles([]) is None


def test_of_nobody_attacked_and_of_a_control_that_always_succeeds_there_is_no_leak():
    nobody, always = wilson(0, 0), wilson(1, 1)
    for attack, control in ((nobody, wilson(0, 1)), (wilson(1, 1), nobody), (wilson(1, 2), always)):
        assert leak_of(attack, control) is None
    assert leak_of(wilson(1, 1), wilson(0, 1)) is not None


def test_where_a_denominator_may_be_zero_its_own_ends_bound_the_ratio():
    assert _ratio_bound(0.5, 0.25, 0.75, 0.5, 1) == 1.5
    assert _ratio_bound(0.5, 0.25, 0.25, 0.75, -1) == 0.25 / 0.75
    assert _ratio_bound(0.5, 0.25, 0.75, 0.0, 1) == math.inf


def test_verdicts_at_the_limit_are_the_harmless_ones():
    level, sure = known(0.5, 10), known(1.0, 10)
    assert judged(level, None, level) == (None, TOO_WEAK)
    assert judged(level, level, known(0.5)) == (Leak(0, 0, 0), TOO_WEAK)
    assert judged(level, level, known(0.25)) == (Leak(0, 0, 0), NO_LEAK)
    assert judged(sure, sure, known(0.25)) == (None, NO_LEAK)
    assert judged(known(0.75, 1), known(0.5, 1), known(0.25)) == (Leak(0.5, 0.5, 0.5), LEAK)
    assert judged(known(0.5, 1), None, known(0.25)) == (None, NO_CONTROL)


def test_a_finding_without_details_or_columns_says_so_in_words():
    told = finding("x", "inference", Known(()), "guesses it", Rates(wilson(0, 0), None, known(0.1)))
    assert (told.details, told.sentence) == ({}, "Here an attacker finds nothing to try.")
    about = finding("x", "inference", Known(("a",)), "guesses it", Rates(wilson(0, 0), None, known(0.1)))
    assert about.sentence == "Knowing a, an attacker finds nothing to try."
    guessed = Rates(wilson(10, 10), None, known(0.1))
    assert finding("x", "inference", Known(()), "guesses it", guessed).sentence == (
        "An attacker guesses it in 100 % of the cases (72.2 % to 100 %); blind guessing gives 10 %. Without people to "
        "compare with, how much of this the release gives away is unknown."
    )


def test_shares_are_rounded_to_the_digits_they_need():
    assert [percent(x) for x in (0.123456, 0.0123456, 0.00123456, -0.123456)] == [
        "12.3 %", "1.23 %", "0.123 %", "-12.3 %",
    ]  # fmt: skip


def test_quantiles_are_those_of_a_slow_count():
    names = ("min", "q25", "median", "q75", "max")
    assert quantiles([5, 1, 2, 3, 9]) == dict(zip(names, (1, 2, 3, 5, 9), strict=True))
    assert quantiles([3, 1, 2], [1, 1, 2]) == dict(zip(names, (1, 1, 2, 2, 3), strict=True))
    assert quantiles([7]) == quantiles([7], [2]) == dict.fromkeys(names, 7.0)


def test_json_holds_plain_numbers_and_lists_and_texts():
    held = {1: (1, "ab"), "set": [np.int64(3), -math.inf, None, True], "x": {"y": np.float64(math.nan)}}
    told = finding("x", "inference", Known(()), "hits", Rates(wilson(1, 2), None, known(0.1)), held).to_json()
    assert told["details"] == {"1": [1, "ab"], "set": [3, None, None, True], "x": {"y": None}}
    assert type(told["details"]["set"][0]) is int
