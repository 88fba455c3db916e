"""What the classes show of each column: the same figures that come out of counting people one by one."""

from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from anon_pipeline.anonymize.recode import summarize_category, summarize_ordered
from anon_pipeline.anonymize.recoding_statistics import column_statistics
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain
from anon_pipeline_tests.examples import times

#: Codes of the members of each class; 0 is a missing value.
CLASSES = st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=8), min_size=1, max_size=6)
VALUES = np.array([1, 2, 4, 8, 16, 32])


def histograms(classes: list[list[int]]) -> sparse.csr_array:
    return sparse.csr_array(np.array([np.bincount(one, minlength=7) for one in classes], dtype=np.int64))


def domain(kind: ColumnType, classes: list[list[int]], storage: str = "BIGINT") -> Domain:
    values = np.array([*"abcdef"]) if kind is ColumnType.CATEGORICAL else VALUES
    counts = np.bincount(list(chain.from_iterable(classes)), minlength=7)
    return Domain("column", kind, values, counts.astype(np.int64), storage)


def shown(kind: ColumnType, classes: list[list[int]], storage: str = "BIGINT", unit: str | None = None) -> Any:
    members, sizes = histograms(classes), np.array([len(one) for one in classes])
    one = domain(kind, classes, storage)
    # With k = 1 every value may be named, so that widths are those of the people.
    summary = (
        summarize_category(one, members, 1) if kind is ColumnType.CATEGORICAL else summarize_ordered(one, members, 1, 1)
    )
    return column_statistics([summary], sizes, {"column": unit})["column"]


@settings(max_examples=times(60))
@given(CLASSES)
def test_ranges_are_those_of_people_counted_one_by_one(classes: list[list[int]]) -> None:
    people = []
    for members in classes:
        values = [int(VALUES[code - 1]) for code in members if code]
        people += [(min(values), max(values)) if len(values) > 1 else None] * len(members)  # of one, none is told
    told = shown(ColumnType.NUMERIC, classes)
    ranges = [one for one in people if one is not None]
    assert told["groups"] == len(set(ranges))
    assert told["exact"] == pytest.approx(sum(low == high for low, high in ranges) / len(people))
    expected = pd.Series([high - low for low, high in ranges], dtype=float).quantile(0.5, interpolation="lower")
    assert told["width"] == expected if ranges else told["width"] is None


@settings(max_examples=times(60))
@given(CLASSES)
def test_sets_are_those_of_people_counted_one_by_one(classes: list[list[int]]) -> None:
    people = [
        frozenset(code if members.count(code) > 1 else "*" for code in members) for members in classes for _ in members
    ]
    told = shown(ColumnType.CATEGORICAL, classes)
    assert told["groups"] == len(set(people))
    assert told["exact"] == pytest.approx(sum(len(one) == 1 and one != {"*"} for one in people) / len(people))
    middle = sorted(np.inf if one == {"*"} else len(one) for one in people)[(len(people) - 1) // 2]
    assert told["width"] == (None if middle == np.inf else middle)
    alone = sum(len(members) for members in classes if max(np.bincount(members)) == 1)
    assert told["withheld"] == pytest.approx(alone / len(people))


def test_days_are_the_unit_of_dates_and_moments_and_others_have_theirs() -> None:
    assert shown(ColumnType.NUMERIC, [[1, 4]], unit="years") | {} == {
        "groups": 1, "width": 7.0, "exact": 0.0, "withheld": 1.0, "unit": "years"
    }  # fmt: skip
    dates = shown(ColumnType.DATE, [[1, 4]], "DATE", unit="years")
    assert (dates["width"], dates["unit"]) == (7.0, "days")
    moments = shown(ColumnType.DATE, [[1, 4]], "TIMESTAMP")
    assert (moments["width"], moments["unit"]) == (7 / 86_400_000_000, "days")
    assert "unit" not in shown(ColumnType.CATEGORICAL, [[1, 4]], unit="years")
