"""Texts that differ after a character of code 0 are different people's values, wherever values are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.anonymize.encoding import learn_domain
from anon_pipeline.anonymize.recode import equivalence_classes
from anon_pipeline.attack.generalized_values import texts
from anon_pipeline.attack.model_inference import _texts
from anon_pipeline.distinct import factorized
from anon_pipeline.engine.base import ClassCounts
from anon_pipeline.privacy.judge import judge, statistics_of
from anon_pipeline.privacy.population_table import boxed
from anon_pipeline.privacy.t_closeness import TCloseness

PADDED = ["a", "a\0b", "a", "a\0"]
VALUES = st.lists(st.none() | st.text("a\0b", max_size=3), max_size=12)


@given(values=VALUES, sort=st.booleans())
def test_two_rows_have_one_place_where_they_are_equal_and_nowhere_else(values: list[Any], sort: bool) -> None:
    place, distinct = factorized(pd.Series(values, dtype=object), sort)
    assert [None if at < 0 else distinct[at] for at in place] == values
    assert len(set(distinct)) == len(distinct)
    assert not sort or list(distinct) == sorted(distinct)


@pytest.mark.parametrize("column", [pd.Series([3, 1, 3]), pd.to_datetime(pd.Series(["2020-01-02", "2020-01-01"]))])
def test_other_values_are_told_apart_as_pandas_does(column: pd.Series) -> None:
    place, distinct = factorized(column, sort=True)
    expected = pd.factorize(column, sort=True)
    assert (place.tolist(), distinct.tolist()) == (expected[0].tolist(), expected[1].tolist())


def test_a_demand_that_compares_classes_with_the_table_sees_the_difference() -> None:
    """One class has `flu` alone and the other `flu` with such a character: each is as far from the table as can be."""
    frame = pd.DataFrame({"class": [0, 1], "value": ["flu", "flu\0"], "count": [5, 5]})
    counts = ClassCounts(pd.DataFrame(), np.array([5, 5]), {"ill": frame}, frozenset())
    [found] = judge([TCloseness(column="ill", t=0.3, distance="equal")], statistics_of(counts))
    assert (found.measured, found.holds) == (0.5, False)


def test_a_population_counts_those_alone_whom_a_class_encloses() -> None:
    classes = pd.DataFrame({"class_size": [1, 1], "town_values": [["a"], ["a\0b"]]})
    people = pd.DataFrame({"town": ["a", "a\0b"], "#people": [10, 2]})
    population = boxed(classes, ["town"], people).population
    assert population is not None
    assert population.tolist() == [10, 2]


@pytest.mark.parametrize("dtype", [object, "string", "string[pyarrow]"])
def test_groups_and_attacks_see_the_difference(dtype: Any) -> None:
    column = pd.Series(PADDED, dtype=dtype)
    assert len(set(factorized(column)[0])) == 3
    domain, codes = learn_domain("town", column)
    assert (len(domain.values), codes.tolist()) == (3, [1, 3, 1, 2])
    assert equivalence_classes(pa.table({"town": PADDED})).tolist() == [0, 2, 0, 1]
    assert texts(column).tolist() == PADDED
    assert len(set(_texts(column)[0])) == 3
