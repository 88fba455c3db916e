"""l-diversity against the paper's tables and against loops."""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import sparse

from anon_pipeline.errors import InputError
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline_tests.privacy import reference
from anon_pipeline_tests.privacy.tables import COLUMN, Rows, classes_of, classes_of_people, tables

HEART, VIRAL, CANCER = "heart disease", "viral infection", "cancer"
# Machanavajjhala et al., the 4-anonymous and the 3-diverse table of the same twelve inpatients.
FOUR_ANONYMOUS = [[HEART, HEART, VIRAL, VIRAL], [CANCER, HEART, VIRAL, VIRAL], [CANCER] * 4]
THREE_DIVERSE = [[HEART, VIRAL, CANCER, CANCER], [CANCER, HEART, VIRAL, VIRAL], [HEART, VIRAL, CANCER, CANCER]]


def inpatients(groups: list[list[str]]):  # type: ignore[no-untyped-def]
    return classes_of_people(groups, [CANCER, HEART, VIRAL], ordered=False)


def demand(**parameters: object) -> LDiversity:
    return LDiversity.model_validate({"column": COLUMN, **parameters})


def test_the_papers_inpatients_in_the_distinct_sense() -> None:
    assert demand(l=2).values(inpatients(FOUR_ANONYMOUS)).tolist() == [2, 3, 1]
    assert demand(l=2).holds(inpatients(FOUR_ANONYMOUS)).tolist() == [True, True, False]
    assert demand(l=3).holds(inpatients(THREE_DIVERSE)).all()


def test_the_papers_inpatients_in_the_entropy_sense() -> None:
    # Shares 1/2, 1/4, 1/4 have 1.5 bits: 2^1.5 = 2.83. Flooring it would say 2 and fail the demand of 2.8.
    model = demand(l=2.8, kind="entropy")
    np.testing.assert_allclose(model.values(inpatients(THREE_DIVERSE)), 2**1.5, rtol=1e-14)
    assert model.holds(inpatients(THREE_DIVERSE)).all()
    assert not demand(l=3, kind="entropy").holds(inpatients(THREE_DIVERSE)).any()
    assert demand(l=2, kind="entropy").values(inpatients(FOUR_ANONYMOUS)).tolist() == [2, pytest.approx(2**1.5), 1]


def test_the_papers_inpatients_in_the_recursive_sense() -> None:
    # Counts 2, 1, 1: r_1 = 2 and r_2 + r_3 = 2, so every c above 1; r_3 = 1, so every c above 2 for l = 3.
    assert demand(l=2, c=1.1, kind="recursive").values(inpatients(THREE_DIVERSE)).tolist() == [1, 1, 1]
    assert demand(l=3, c=2.1, kind="recursive").values(inpatients(THREE_DIVERSE)).tolist() == [2, 2, 2]
    assert demand(l=3, c=2.1, kind="recursive").holds(inpatients(THREE_DIVERSE)).all()
    assert not demand(l=3, c=2, kind="recursive").holds(inpatients(THREE_DIVERSE)).any()  # strictly below


def test_recursive_diversity_is_infinite_below_l_values_and_the_worst_is_the_largest() -> None:
    model = demand(l=3, c=5, kind="recursive")
    assert model.values(inpatients(FOUR_ANONYMOUS)).tolist() == [math.inf, 2, math.inf]
    assert model.measured(inpatients(FOUR_ANONYMOUS)) == math.inf
    assert model.measured(inpatients(THREE_DIVERSE)) == 2


@pytest.mark.parametrize(
    "row", [[1] * 7, [3] * 6, [4, 1, 1, 1, 1], [12, 3, 3, 3, 3], [12, 12, *[3] * 8], [9999991] * 2]
)
def test_entropy_exactly_at_a_whole_l_holds(row: list[int]) -> None:
    # exp(H) of these is 7, 6, 4, 4, 8 and 2 without a remainder, though its float may fall short.
    l = round(reference.entropy_l(row))  # noqa: E741
    assert demand(l=l, kind="entropy").holds(classes_of([row])).all()
    assert not demand(l=l + 1e-12, kind="entropy").holds(classes_of([row])).any()


def test_entropy_of_a_large_class_one_person_short_of_even_fails() -> None:
    row = [5 * 10**7 + 1, 5 * 10**7 - 1]  # exp(H) = 2 - 4e-16, which a float cannot say
    assert demand(l=2, kind="entropy").holds(classes_of([row])).tolist() == [False]


@pytest.mark.long
@given(tables(), st.integers(2, 5))
def test_distinct_agrees_with_the_loop(rows: Rows, l: int) -> None:  # noqa: E741
    values = [reference.distinct(row) for row in rows]
    assert demand(l=l).values(classes_of(rows)).tolist() == values
    assert demand(l=l).holds(classes_of(rows)).tolist() == [value >= l for value in values]


@pytest.mark.long
@given(tables(), st.sampled_from([1.1, 1.5, 2, 2.5, 3, 4, 5]))
def test_entropy_agrees_with_the_loop(rows: Rows, l: float) -> None:  # noqa: E741
    model = demand(l=l, kind="entropy")
    np.testing.assert_allclose(model.values(classes_of(rows)), [reference.entropy_l(row) for row in rows], rtol=1e-12)
    assert model.holds(classes_of(rows)).tolist() == [reference.meets_entropy(row, Fraction(str(l))) for row in rows]


@pytest.mark.long
@given(tables(), st.integers(2, 5), st.sampled_from([0.1, 0.3, 0.5, 1, 1.5, 2, 3, 10]))
def test_recursive_agrees_with_the_loop(rows: Rows, l: int, c: float) -> None:  # noqa: E741
    model = demand(l=l, c=c, kind="recursive")
    parts = [reference.recursive_parts(row, l) for row in rows]
    assert model.values(classes_of(rows)).tolist() == [top / tail if tail else math.inf for top, tail in parts]
    assert model.holds(classes_of(rows)).tolist() == [top < Fraction(str(c)) * tail for top, tail in parts]


def test_bins_count_intervals_closed_below_and_missing_as_none() -> None:
    ages = (None, 10, 17.5, 18, 40, 65, 99)
    classes = classes_of([[0, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0], [1, 1, 0, 0, 1, 1, 1]], ages, ordered=True)
    assert demand(l=2, bins=[18, 65]).values(classes).tolist() == [1, 2, 3]
    assert demand(l=2).values(classes).tolist() == [2, 2, 4]
    assert "3 bins" in str(demand(l=5, bins=[18, 65]).impossible(classes))
    binned = demand(l=2, bins=[18, 65])._binned(classes.sensitive[COLUMN], [18, 65])
    assert binned.values == (None, 1, 2, 3)
    assert binned.counts.toarray().tolist() == [[0, 2, 0, 0], [0, 1, 1, 0], [1, 1, 1, 2]]
    assert binned.total.tolist() == [1, 4, 2, 2]


@pytest.mark.parametrize("kind", [date, datetime, lambda *day: np.datetime64(date(*day))])
def test_bins_of_dates(kind) -> None:  # type: ignore[no-untyped-def]
    days = (None, kind(2019, 12, 31), kind(2020, 1, 1), kind(2021, 5, 5))
    classes = classes_of([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], days, ordered=True)
    assert demand(l=2, bins=["2020-01-01"]).values(classes).tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("values", "ordered", "bins"), [(("a", "b"), False, [1]), ((1, 2), True, [date(2020, 1, 1)]), ((1, 2), False, [1])]
)
def test_bins_that_do_not_fit_the_column_are_an_input_error(
    values: tuple[object, ...], ordered: bool, bins: list[object]
) -> None:
    with pytest.raises(InputError, match="bins"):
        demand(l=2, bins=bins).holds(classes_of([[1, 1]], values, ordered=ordered))


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"l": 2.5}, "l:"),
        ({"l": 1}, "greater than 1"),
        ({"l": 2, "kind": "recursive"}, "c:"),
        ({"l": 2, "c": 2}, "c:"),
        ({"l": 2.5, "c": 2, "kind": "recursive"}, "l:"),
        ({"l": 2, "bins": [2, 1]}, "bins"),
        ({"l": 2, "bins": [1, 1]}, "bins"),
        ({"l": 2, "bins": [1, math.nan]}, "bins"),
        ({"l": 2, "bins": []}, "bins"),
    ],
)
def test_parameters_without_sense_are_refused(parameters: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        demand(**parameters)


def test_what_the_whole_table_lacks_no_grouping_can_have() -> None:
    classes = inpatients(FOUR_ANONYMOUS)
    assert "3 distinct values in the whole table" in str(demand(l=4).impossible(classes))
    assert demand(l=3).impossible(classes) is None  # though two of the classes fail
    assert demand(l=2.9, kind="entropy").impossible(classes) is None  # 5, 3, 4 of 12: 2.94
    assert "2.93" in str(demand(l=3, kind="entropy").impossible(classes))
    assert "c above 1.66" in str(demand(l=3, c=1.6, kind="recursive").impossible(classes))  # 5 / 3
    assert demand(l=3, c=1.7, kind="recursive").impossible(classes) is None
    assert "3 distinct" in str(demand(l=4, c=9, kind="recursive").impossible(classes))


def test_what_a_model_says_of_the_whole_table_is_of_one_class_of_everybody() -> None:
    """Whatever the classes are: of these one stands in two unions and one in none."""

    class Told(LDiversity):
        def shortfall(self, everybody: ClassStatistics) -> str:
            return f"{everybody.sizes.tolist()} {everybody.sensitive[COLUMN].counts.toarray().tolist()}"

    classes = classes_of([[2, 1], [0, 4]]).pool(sparse.csr_array(np.array([[1, 0], [1, 0]])))
    assert str(Told(column=COLUMN, l=3).impossible(classes)).startswith("[7] [[2, 5]], so no grouping")


@pytest.mark.parametrize("kind", ["distinct", "entropy"])
def test_a_fraction_is_for_entropy_and_a_c_for_the_recursive_kind(kind: str) -> None:
    with pytest.raises(ValidationError, match="c:"):
        demand(l=2, c=1, kind=kind)
    assert demand(l=2, kind=kind).c is None
    assert demand(l=2.5, kind="entropy").l == 2.5
