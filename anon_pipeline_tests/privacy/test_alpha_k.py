"""(alpha,k)-anonymity against hand counts and loops."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.errors import InputError
from anon_pipeline.privacy.alpha_k import AlphaKAnonymity
from anon_pipeline_tests.privacy import reference
from anon_pipeline_tests.privacy.tables import COLUMN, Rows, classes_of, tables


@given(tables(), st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 1]), st.integers(2, 20))
def test_agrees_with_the_loop(rows: Rows, alpha: float, k: int) -> None:
    model = AlphaKAnonymity(column=COLUMN, alpha=alpha, k=k)
    values = [reference.alpha(row) for row in rows]
    assert model.values(classes_of(rows)).tolist() == [float(value) for value in values]
    expected = [value <= Fraction(str(alpha)) and sum(row) >= k for value, row in zip(values, rows, strict=True)]
    assert model.holds(classes_of(rows)).tolist() == expected


def test_a_share_exactly_alpha_holds_for_every_tenth() -> None:
    # .1 * 3 and .7 as floats are off by one bit, on either side.
    for tenths in range(1, 11):
        model = AlphaKAnonymity(column=COLUMN, alpha=tenths / 10, k=2)
        even = [tenths, *[1] * (10 - tenths)]
        assert model.holds(classes_of([even])).tolist() == [True]
        if tenths < 10:
            assert model.holds(classes_of([[tenths + 1, *[1] * (10 - tenths - 1)]])).tolist() == [False]


def test_the_worst_is_the_largest_share() -> None:
    assert AlphaKAnonymity(column=COLUMN, alpha=0.5, k=2).measured(classes_of([[1, 3], [1, 1]])) == 0.75


def test_what_the_whole_table_lacks_no_grouping_can_have() -> None:
    classes = classes_of([[3, 0], [4, 3]])
    assert "0.7 in the whole table" in str(AlphaKAnonymity(column=COLUMN, alpha=0.69, k=2).impossible(classes))
    assert AlphaKAnonymity(column=COLUMN, alpha=0.7, k=10).impossible(classes) is None
    assert "10 people, fewer than k = 11" in str(AlphaKAnonymity(column=COLUMN, alpha=0.7, k=11).impossible(classes))


def test_a_column_that_is_not_counted_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"privacy\.alpha_k_anonymity\.column: 'other'"):
        AlphaKAnonymity(column="other", alpha=0.5, k=2).holds(classes_of([[1, 1]]))
