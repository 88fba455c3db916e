"""Codes and columns are those of scikit-learn itself; people are counted only where categories must share one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import _encode

from anon_pipeline.learning.category_codes import CategoryCodes, CategoryColumns

SETTINGS: dict[str, Any] = {
    "handle_unknown": "use_encoded_value",
    "unknown_value": np.nan,
    "encoded_missing_value": np.nan,
}
cells = st.sampled_from(["a", "b", "c", "ä", "", np.nan])
tables = st.lists(st.tuples(cells, cells), min_size=1)


def table(rows: list[Any]) -> np.ndarray:
    return np.array(rows, dtype=object).reshape(len(rows), -1)


@pytest.mark.long
@given(known=tables, asked=tables, most=st.integers(2, 7))
def test_the_codes_are_those_of_scikit_learn(known: list[Any], asked: list[Any], most: int) -> None:
    here = CategoryCodes(**SETTINGS, max_categories=most).fit(table(known))
    there = OrdinalEncoder(**SETTINGS, max_categories=most).fit(table(known))
    for rows in (known, asked):
        np.testing.assert_array_equal(here.transform(table(rows)), there.transform(table(rows)))
    assert repr(here.get_params()) == repr(there.get_params()) == repr(clone(here).get_params())


@pytest.mark.long
@given(known=tables, asked=tables, most=st.integers(2, 7))
def test_the_columns_are_those_of_scikit_learn(known: list[Any], asked: list[Any], most: int) -> None:
    settings: dict[str, Any] = {"handle_unknown": "infrequent_if_exist", "sparse_output": False}
    here = CategoryColumns(**settings, max_categories=most).fit(table(known))
    there = OneHotEncoder(**settings, max_categories=most).fit(table(known))
    for rows in (known, asked):
        np.testing.assert_array_equal(here.transform(table(rows)), there.transform(table(rows)))
    assert list(here.get_feature_names_out()) == list(there.get_feature_names_out())


@pytest.mark.parametrize("encoder", [CategoryCodes(**SETTINGS), CategoryColumns()])
def test_nobody_is_counted_where_each_category_has_its_own(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[object] = []
    counts = _encode._get_counts
    monkeypatch.setattr(_encode, "_get_counts", lambda *given: counted.append(given) or counts(*given))
    people = table(["a", "b", "c", "a", np.nan])
    clone(encoder).set_params(max_categories=5).fit(people)
    assert not counted
    clone(encoder).set_params(max_categories=3).fit(people)
    assert counted  # else this test looks at nothing
