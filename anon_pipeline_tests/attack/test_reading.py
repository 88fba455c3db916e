"""What a reader takes from a release: labels, boxes and representatives, on columns small enough to see."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from anon_pipeline.attack import released as module
from anon_pipeline.attack.boxes import CategoryBoxes, Domain, OrderedBoxes
from anon_pipeline.attack.released import Knowledge, Released, read_release
from anon_pipeline.errors import InputError


def read(column: list, people: list, ordered: bool = True, classes: pd.DataFrame | None = None) -> Released:
    knowledge = Knowledge(["x"], numeric=["x"] if ordered else [])
    return read_release(pd.DataFrame({"x": column}), [pd.DataFrame({"x": people})], knowledge, classes)


def ordered_boxes(release: Released) -> list[tuple[float, float, bool]]:
    boxes = release.boxes[0]
    assert isinstance(boxes, OrderedBoxes)
    return list(zip(boxes.low.tolist(), boxes.high.tolist(), boxes.missing.tolist(), strict=True))


def category_boxes(release: Released) -> tuple[list[tuple[list[int], bool, int]], bool]:
    boxes = release.boxes[0]
    assert isinstance(boxes, CategoryBoxes)
    named = [np.flatnonzero(row).tolist() for row in boxes.named.toarray()]
    return list(zip(named, boxes.others.tolist(), boxes.representative.tolist(), strict=True)), boxes.nearest


def test_attackers_know_65_columns_at_most() -> None:
    names = [f"c{number}" for number in range(66)]
    Knowledge(names[:65])
    with pytest.raises(InputError, match="know at most 65 quasi-identifiers, and 66 are named; name fewer"):
        Knowledge(names)


def test_codes_follow_the_values_in_ascending_order() -> None:
    number = Domain.learn("n", True, [pd.Series([5.0, 1.0]), pd.Series([None, 5.0])])
    assert (len(number), number.values.tolist(), number.shares.tolist()) == (3, [1, 5], [0, 0.5, 0.5])
    assert number.encode(pd.Series([1.0, 5.0, None, 3.0, 9.0, 0.0])).tolist() == [1, 2, 0, -1, -1, -1]
    text = Domain.learn("c", False, [pd.Series(["b", None, "a", "b"])])
    assert (len(text), text.values.tolist(), text.shares.tolist()) == (3, ["a", "b"], [0.25, 0.25, 0.5])
    assert text.encode(pd.Series(["b", "z", None, "a"])).tolist() == [2, -1, 0, 1]
    assert Domain.learn("n", True, [pd.Series([7])]).shares.tolist() == [0, 1]


def test_tuples_are_numbered_in_ascending_order() -> None:
    key, first = module.combined([np.array([2, 0, 2, 0]), np.array([1, 5, 1, -3]), np.array([0, 0, 0, 0])])
    assert (key.tolist(), first.tolist()) == ([2, 1, 2, 0], [3, 1, 0])
    key, first = module.combined([np.array([7, 7])])
    assert (key.tolist(), first.tolist()) == ([0, 0], [0])
    key, first = module.combined([np.array([], dtype=int), np.array([], dtype=int)])
    assert (key.tolist(), first.tolist()) == ([], [])


def test_cells_are_labelled_missing_ones_first_then_numbers_then_texts() -> None:
    label, cells = module._labels(pd.Series(["y", "3", "x", "1", "x", None]), True)
    assert (label.tolist(), cells) == ([4, 2, 3, 1, 3, 0], [None, 1.0, 3.0, "x", "y"])
    label, cells = module._labels(pd.Series(["b", "a", None, "b"]), False)
    assert (label.tolist(), cells) == ([2, 1, 0, 2], [None, "a", "b"])


def test_the_middle_of_an_interval_is_its_known_end_where_the_other_is_open() -> None:
    low, high = np.array([1, -math.inf, 3, -math.inf, -5]), np.array([5, 4, math.inf, math.inf, 2.0])
    np.testing.assert_array_equal(module._middle(low, high), [3, 4, 3, math.nan, -1.5])


def test_a_range_stands_for_its_middle_and_a_number_for_itself() -> None:
    release = read(["[1, 5]", "3", "4", "<=2", None, "?!"], [1, 2, 3, 4, 5])
    assert ordered_boxes(release) == [
        *[(-math.inf, 2, False), (-math.inf, math.inf, True), (1, 5, False), (3, 3, False), (4, 4, False)],
        (math.inf, -math.inf, True),
    ]
    assert not release.boxes[0].nearest  # a number beside ranges stands for itself alone
    np.testing.assert_array_equal(release.representative.ravel()[release.group], [3, 3, 4, 2, math.nan, math.nan])


CLASSES = pd.DataFrame(
    {"x": [1, 5, 7], "x_low": [0, None, 7], "x_high": [2, None, 9], "x_missing": [False, True, None]}
)


def test_a_published_class_says_what_it_holds() -> None:
    """An end that is missing is open, and only "False" says that nobody lacks a value."""
    people = [0, 1, 2, 5, 7, 9]
    release = read([1, 5, 7], people, classes=CLASSES)
    assert sorted(ordered_boxes(release)) == [(-math.inf, math.inf, True), (0, 2, False), (7, 9, True)]
    assert not release.boxes[0].nearest
    assert release.representative.ravel().tolist() == [1, 5, 7]
    of_first = read([1, 5, 7], people, classes=CLASSES[:1])
    assert sorted(ordered_boxes(of_first)) == [(0, 2, False), (5, 5, False), (7, 7, False)]
    assert not of_first.boxes[0].nearest
    of_last = read([1, 5, 7], people, classes=CLASSES[2:])
    assert sorted(ordered_boxes(of_last)) == [(1, 1, False), (5, 5, False), (7, 9, True)]
    for unknown in (CLASSES.assign(x=[2, 3, 4]), CLASSES[["x"]], None):
        plain = read([1, 5, 7], people, classes=unknown)
        assert sorted(ordered_boxes(plain)) == [(1, 1, False), (5, 5, False), (7, 7, False)]
        assert plain.boxes[0].nearest


def test_classes_that_lack_a_column_explain_no_row() -> None:
    table = pd.DataFrame({"x": [1, 2], "y": [1, 2]})
    classes = pd.DataFrame({"x": [1, 2], "x_low": [0, 0], "x_high": [9, 9]})
    release = read_release(table, [table], Knowledge(["x", "y"], numeric=["x", "y"]), classes)
    assert ordered_boxes(release) == [(1, 1, False), (2, 2, False)]


def test_a_set_names_codes_and_stands_for_its_first() -> None:
    people = ["a", "b", "c", "c", None]
    boxes, nearest = category_boxes(read(["{b, c}", "{a, *}", "c", "?!", None], people, ordered=False))
    assert sorted(boxes) == [([], True, -1), ([0], False, 0), ([1], True, -1), ([2, 3], False, -1), ([3], False, 3)]
    assert not nearest
    release = read(["{b, c}", "{b}", "c", "*", None], people, ordered=False)
    told = release.representative.ravel()[release.group].tolist()
    assert told[:3] == [2, 2, 3]
    assert math.isnan(told[3])
    assert told[4] == 0


@pytest.mark.parametrize(
    ("column", "nearest"),
    [(["a", "*"], True), (["a", None], True), (["a", "{b}"], True), (["a", "{a, b}"], False), (["b", "{a, *}"], False)],
)
def test_categories_stand_for_others_where_only_single_ones_are_shown(column: list, nearest: bool) -> None:
    assert category_boxes(read(column, ["a", "b", "c"], ordered=False))[1] == nearest


@pytest.mark.parametrize(("shown", "nearest"), [("a", False), ("b", False), ("c", True)])
def test_categories_of_a_published_class_stand_for_nobody_else(shown: str, nearest: bool) -> None:
    """The class of the first group counts as well as that of any other; nobody shows the class of "c"."""
    classes = pd.DataFrame({"x": [shown, "z"], "x_values": [[shown], ["z"]]})
    assert category_boxes(read(["a", "b"], ["a", "b", "c"], ordered=False, classes=classes))[1] == nearest


def test_single_values_stand_for_others_only_where_no_column_shows_more() -> None:
    people = pd.DataFrame({"n": [1, 2, 3], "c": ["a", "b", "b"], "d": ["x", "y", "y"]})
    knowledge = Knowledge(["n", "c", "d"], numeric=["n"])

    def nearest(**columns: list) -> list[bool]:
        return [boxes.nearest for boxes in read_release(people.assign(**columns), [people], knowledge).boxes]

    assert nearest() == [True, True, True]
    assert nearest(n=["[1, 2]", "[1, 2]", "3"]) == [False, False, False]
    assert nearest(c=["{a, b}", "a", "b"]) == [True, False, False]


def test_few_people_of_a_box_have_a_category_that_it_does_not_name() -> None:
    """As many as a single one in the median group."""
    boxes = read(["a"] * 6 + ["b"] * 4 + ["*"], ["a", "b", "c"], ordered=False).boxes[0]
    assert isinstance(boxes, CategoryBoxes)
    assert boxes.rest == 1 / 4


def test_published_lists_name_a_missing_value_however_it_is_written() -> None:
    assert module._listed(["a", None]) == module._listed(np.array(["a", None])) == {"a", None}
    assert module._listed(("a", math.nan, 1.0)) == {"a", None, "1"}
    assert module._listed(None) == module._listed(math.nan) == {"*"}


@pytest.mark.parametrize(
    ("named", "others", "points"),
    [
        ([[0, 1, 0], [0, 0, 1]], [False, False], [1, 2]),
        ([[0, 1, 0], [0, 0, 0]], [False, False], [1, -1]),
        ([[0, 1, 0], [0, 0, 0]], [False, True], None),
        ([[0, 1, 0], [0, 1, 1]], [False, False], None),
        ([[0, 1, 0], [1, 1, 1]], [False, False], None),
    ],
)
def test_boxes_show_points_where_each_names_a_category_at_most(
    named: list[list[int]], others: list[bool], points: list[int] | None
) -> None:
    domain = Domain.learn("c", False, [pd.Series(["a", "b"])])
    boxes = CategoryBoxes(
        domain, sparse.csc_array(np.array(named, bool)), np.array(others), np.array([1, 2]), 0.1, True
    )
    found = boxes.points()
    assert (None if found is None else found.tolist()) == points


def test_the_width_of_a_range_is_the_share_of_the_people_in_it() -> None:
    domain = Domain.learn("x", True, [pd.Series([1.0, 1.0, 2.0, 4.0, None, None, None, None])])
    low, high = np.array([1, 2, -math.inf, 3, 5.0]), np.array([2, 4, math.inf, 3, 1.0])
    boxes = OrderedBoxes(domain, low, high, np.array([False, True, True, False, False]), low, False)
    assert boxes.widths().tolist() == [3 / 8, 6 / 8, 1, 0, 0]
    assert boxes.fits(np.arange(4)).astype(int).tolist() == [
        [0, 1, 1, 0, 0],
        [1, 0, 1, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 0, 0],
    ]
