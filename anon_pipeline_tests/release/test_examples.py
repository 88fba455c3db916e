"""The classes that a report shows: whole, published, and in an order that tells nothing of the source."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.engine.base import ClassCounts
from anon_pipeline.release.examples import CLASSES, VALUES, examples_of

SHOWN = pd.DataFrame(
    {
        "age": [40.0, np.nan, 9.5, 40.0],
        "born": pd.to_datetime(["2001-02-03", "1999-01-01", None, "2000-02-03"]),
        "city": ["Ulm", "Bonn", None, "Ulm"],
    }
)
VALUE = pd.DataFrame(
    {
        "class": [0, 0, 1, 2, 3, 3, 3, 3],
        "value": ["no", None, "no", "yes", *"abcd"],
        "count": [9, 1, 10, 12, 1, 5, 3, 3],
    }
)


def counted(order: list[int]) -> ClassCounts:
    """The same classes, counted in another order."""
    place = {old: new for new, old in enumerate(order)}
    value = VALUE.assign(**{"class": VALUE["class"].map(place)}).sample(frac=1, random_state=sum(order[:2]))
    sizes = np.array([10, 10, 12, 12])[order]
    return ClassCounts(SHOWN.iloc[order].reset_index(drop=True), sizes, {"ill": value}, frozenset())


@given(st.permutations(range(4)))
def test_the_order_in_which_classes_were_counted_means_nothing(order: list[int]) -> None:
    assert examples_of(counted(order)) == examples_of(counted([0, 1, 2, 3]))


def test_whole_classes_come_in_the_order_of_what_they_show() -> None:
    examples = examples_of(counted([0, 1, 2, 3]))
    assert len(examples) == CLASSES
    assert [one["recoded"]["age"] for one in examples] == ["9.5", "40", "40"]
    assert [one["recoded"]["born"] for one in examples] == [None, "2000-02-03", "2001-02-03"]
    assert [one["people"] for one in examples] == [12, 12, 10]
    assert examples[1]["kept"]["ill"] == {"values": [["b", 5], ["c", 3], ["d", 3]][:VALUES], "others": 1}
    assert examples[2]["kept"]["ill"] == {"values": [["no", 9], [None, 1]], "others": 0}


def test_a_table_without_classes_has_none() -> None:
    empty = ClassCounts(SHOWN.iloc[:0], np.array([], dtype=np.int64), {"ill": VALUE.iloc[:0]}, frozenset())
    assert examples_of(empty) == []
