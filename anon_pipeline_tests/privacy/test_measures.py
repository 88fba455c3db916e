"""What is reported with nothing demanded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.privacy.measures import describe
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.value_counts import ValueCounts
from anon_pipeline_tests.privacy import reference
from anon_pipeline_tests.privacy.tables import COLUMN, Rows, classes_of, tables


@pytest.mark.long
@given(tables(), st.booleans())
def test_the_measures_are_the_worst_of_the_loops(rows: Rows, ordered: bool) -> None:
    distance = reference.ordered_distance if ordered else reference.equal_distance
    parts = [reference.recursive_parts(row, 2) for row in rows]
    assert describe(classes_of(rows, ordered=ordered)) == {
        COLUMN: {
            "distinct_l": min(reference.distinct(row) for row in rows),
            "entropy_l": pytest.approx(min(reference.entropy_l(row) for row in rows)),
            "recursive_c": max(top / tail if tail else math.inf for top, tail in parts),
            "alpha": pytest.approx(float(max(reference.alpha(row) for row in rows))),
            "t": pytest.approx(float(max(distance(rows, row) for row in rows))),
            "beta": pytest.approx(float(max(reference.beta(rows, row) for row in rows))),
            "delta": pytest.approx(max(reference.delta(rows, row) for row in rows)),
            "homogeneity": sum(sum(row) for row in rows if reference.distinct(row) == 1) / sum(map(sum, rows)),
        }
    }


def test_homogeneity_counts_people_and_not_classes() -> None:
    assert describe(classes_of([[6, 0], [1, 1]]))[COLUMN]["homogeneity"] == 0.75


def test_the_classes_own_measures_count_values_that_the_table_lacks() -> None:
    # Class 0 is suppressed, so the table has no third value; within the class it is still there.
    found = describe(classes_of([[1, 0, 1], [2, 2, 0]]).without(np.array([True, False])))[COLUMN]
    assert (found["distinct_l"], found["alpha"], found["homogeneity"]) == (2, 0.5, 0)
    assert (found["t"], found["beta"], found["delta"]) == (1, math.inf, math.inf)


def test_a_class_in_which_nobody_has_a_known_value_counts_none() -> None:
    histogram = classes_of([[2, 1], [0, 0], [0, 3], [0, 0]]).sensitive[COLUMN]
    counts = ValueCounts.within(histogram)
    assert counts.sizes.tolist() == [3, 0, 3, 0]
    assert counts.top.tolist() == [2, 0, 3, 0]


def test_every_sensitive_column_is_described() -> None:
    one = classes_of([[1, 1]])
    two = ClassStatistics(one.sizes, {"a": one.sensitive[COLUMN], "b": one.sensitive[COLUMN]})
    assert list(describe(two)) == ["a", "b"]
