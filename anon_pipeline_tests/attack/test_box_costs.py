"""What a person's cell costs against a box, beside a slow reading of the same definition, cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from anon_pipeline.attack.boxes import IMPOSSIBLE, UNIT, UNLIKE, CategoryBoxes, Domain, OrderedBoxes

NUMBERS = [1.0, 1.0, 2.0, 4.0, 4.0, 4.0, 7.0, 9.0, None, None, None]
TEXTS = ["a", "a", "a", "b", "b", "c", "d", None]


def relative(ratios: list[float], wrong: float) -> list[int]:
    """Costs of one code from its ratio in each box, in thousandths of a natural logarithm."""
    likely = [math.log((1 - wrong) * ratio + max(wrong, math.exp(-IMPOSSIBLE))) for ratio in ratios]
    return [round(UNIT * (max(likely) - one)) for one in likely]


def ordered(low: list[float], high: list[float], missing: list[bool], shown: list[float], nearest: bool = False):
    domain = Domain.learn("x", True, [pd.Series(NUMBERS)])
    return OrderedBoxes(domain, np.array(low), np.array(high), np.array(missing), np.array(shown), nearest)


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_half_of_the_people_of_an_interval_are_on_either_side_of_the_number_it_shows(wrong: float) -> None:
    inf, nan = math.inf, math.nan
    boxes = ordered(
        [1, 2, 4, -inf, inf, 7, 7, 1],
        [9, 4, 9, 4, -inf, 7, 9, 2],
        [0, 1, 0, 1, 1, 0, 0, 1],
        [4, 4, 4, nan, nan, 7, 2, 9],
    )
    people = len(NUMBERS)

    def ratio(value: float | None, low: float, high: float, missing: bool, shown: float) -> float:
        inside = [one for one in NUMBERS if (one is None and missing) or (one is not None and low <= one <= high)]
        known = [one for one in inside if one is not None]
        fits = missing if value is None else low <= value <= high
        below, above = [one for one in known if one <= shown], [one for one in known if one >= shown]
        if value is None or not below or not above:
            mass = len(inside)
        elif value == shown:
            mass = 2 * min(len(below), len(above))
        else:
            mass = 2 * len(below if value < shown else above)
        return fits / max(mass / people, 1e-12)

    values = [None, *sorted({one for one in NUMBERS if one is not None})]
    asked = zip(boxes.low, boxes.high, boxes.missing.astype(bool), boxes.representative, strict=True)
    table = list(asked)
    wanted = [relative([ratio(value, *box) for box in table], wrong) for value in values]
    found = boxes.costs(np.arange(len(values)), wrong)
    np.testing.assert_allclose(found, wanted, atol=1)


def test_numbers_cost_their_distance_in_two_deviations_where_single_values_are_shown() -> None:
    boxes = ordered([4.0, 7.0, math.nan], [4.0, 7.0, math.nan], [False, False, True], [4.0, 7.0, math.nan], True)
    reach = 2 * np.std([1.0, 2.0, 4.0, 7.0, 9.0])
    most = UNLIKE * UNIT
    wanted = [
        [most, most, 0],  # a missing value is only like a missing one
        *[
            [math.ceil(most * min(abs(value - shown) / reach, 1)) for shown in (4.0, 7.0)] + [most]
            for value in (1.0, 2.0, 4.0, 7.0, 9.0)
        ],
    ]
    assert boxes.costs(np.arange(6), 0.0).tolist() == wanted


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_half_of_the_people_of_a_set_bear_the_category_it_shows(wrong: float) -> None:
    domain = Domain.learn("c", False, [pd.Series(TEXTS)])
    codes: list[str | None] = [None, "a", "b", "c", "d"]
    told = [{"a"}, {"a", "b"}, {"b", "c", None}, {"a", "b", "c", "d"}, {"d"}, set()]
    untold, shown, rest = [False, False, False, False, True, True], ["a", "b", None, "none", "d", "none"], 0.2
    boxes = CategoryBoxes(
        domain,
        sparse.csc_array(np.array([[code in names for code in codes] for names in told])),
        np.array(untold),
        np.array([-1 if name == "none" else codes.index(name) for name in shown]),
        rest,
        False,
    )

    def share(names: set[str | None]) -> float:
        return sum(name in names for name in TEXTS) / len(TEXTS)

    def ratio(code: str | None, names: set[str | None], others: bool, representative: str | None) -> float:
        halved = representative != "none" and len(names) > 1
        inside = code in names
        told_of = (0.5 if halved else 1.0) * inside / max(share(names), 1e-12)
        told_of += 0.5 / share({code}) if halved and code == representative else 0.0
        if not others:
            return told_of
        few = rest if names else 1.0
        return (1 - few) * told_of if inside else few / max(1 - share(names), 1e-3)

    wanted = [relative([ratio(code, *box) for box in zip(told, untold, shown, strict=True)], wrong) for code in codes]
    np.testing.assert_allclose(boxes.costs(np.arange(5), wrong), wanted, atol=1)
    assert boxes.widths() == pytest.approx(
        [1.0 if any_ else share(names) for names, any_ in zip(told, untold, strict=True)]
    )
    assert boxes.points() is None


def test_a_category_costs_all_or_half_where_single_values_are_shown() -> None:
    domain = Domain.learn("c", False, [pd.Series(["a", "b"])])
    named = sparse.csc_array(np.array([[False, True, False], [False, False, False]]))
    boxes = CategoryBoxes(domain, named, np.array([False, True]), np.array([1, -1]), 0.1, True)
    most = UNLIKE * UNIT
    assert boxes.costs(np.arange(3), 0.0).tolist() == [[most, most / 2], [0, most / 2], [most, most / 2]]


def test_codes_that_boxes_show_are_those_of_the_values() -> None:
    boxes = ordered([4.0, 5.0, math.nan], [4.0, 5.0, math.nan], [False, False, True], [4.0, 5.0, math.nan], True)
    points = boxes.points()
    assert points is not None and points.tolist() == [3, -1, 0]  # nobody bears 5
    domain = Domain.learn("c", False, [pd.Series(["a", "b"])])
    named = sparse.csc_array(np.array([[True, False, False], [False, False, True], [False, False, False]]))
    of_texts = CategoryBoxes(domain, named, np.zeros(3, dtype=bool), np.array([0, 2, -1]), 0.1, True).points()
    assert of_texts is not None and of_texts.tolist() == [0, 2, -1]
