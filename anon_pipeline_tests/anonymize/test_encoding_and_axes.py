"""Codes of values that were not seen when the tree was fitted, and the orders that categories are split in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from anon_pipeline.anonymize.axes import feature_matrix, split_features
from anon_pipeline.anonymize.column_types import in_type_of
from anon_pipeline.anonymize.criterion import standardized
from anon_pipeline.anonymize.encoding import apply_domain, count_cells, learn_domain
from anon_pipeline.anonymize.recode import CategorySummary
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Cells, Domain


def cells_of(frame: pd.DataFrame, guidance: np.ndarray) -> Cells:
    learned = [learn_domain(name, frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    return count_cells(tuple(domain for domain, _ in learned), codes, guidance)[0]


# Codes


@pytest.mark.parametrize(
    ("value", "taken_for"),
    [(10, 10), (12, 10), (15, 10), (15.5, 20), (16, 20), (20, 20), (24, 20), (25, 20), (26, 30), (-5, 10), (99, 30)],
)
def test_a_number_takes_the_code_of_the_nearest_and_the_lower_one_on_a_tie(value: float, taken_for: int) -> None:
    domain, codes = learn_domain("age", pd.Series([10, 20, 30, 30]))
    assert codes.tolist() == [1, 2, 3, 3]
    (code,) = apply_domain(domain, pd.Series([value]))
    assert domain.values[code - 1] == taken_for


def test_moments_of_a_frame_take_the_codes_of_days_that_an_engine_has_counted() -> None:
    days = np.array([-1, 0, 19_000])  # since 1970
    domain = Domain("born", ColumnType.DATE, days, np.array([1, 1, 1, 1]), storage="DATE")
    column = pd.Series(pd.to_datetime(["1969-12-31", "1970-01-01", "2022-01-08", None]))
    assert apply_domain(domain, column).tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize("dtype", ["bool", "boolean", "object", "bool[pyarrow]"])
def test_true_and_false_of_a_frame_take_the_codes_that_an_engine_has_counted(dtype: str) -> None:
    texts = np.array(["false", "true"], dtype=object)
    domain = Domain("member", ColumnType.CATEGORICAL, texts, np.array([1, 5, 2]), storage="BOOLEAN")
    column = pd.Series([True, False], dtype=dtype)
    assert apply_domain(domain, column).tolist() == [2, 1]
    one_each = CategorySummary(domain, np.array([1, 2]), csr_array(np.eye(2, 3, 1)), np.ones(3, dtype=bool))
    assert pd.Series(in_type_of(column, one_each, np.array([1, 0]))).tolist() == [True, False]
    if dtype != "bool":
        gaps = pd.Series([None, True, False], dtype=dtype)
        assert apply_domain(domain, gaps).tolist() == [0, 2, 1]


def test_neighbouring_floats_and_large_whole_numbers_are_not_taken_for_one_another() -> None:
    near = [0.1, np.nextafter(0.1, 1), 2.0**53]
    domain, codes = learn_domain("x", pd.Series(near))
    assert apply_domain(domain, pd.Series(near)).tolist() == codes.tolist() == [1, 2, 3]
    large = pd.Series([2**53, 2**53 + 1])
    domain, codes = learn_domain("x", large)
    assert apply_domain(domain, large).tolist() == codes.tolist() == [1, 2]


def test_what_is_unknown_is_taken_for_the_most_common_and_a_gap_stays_one_where_gaps_are_known() -> None:
    with_gaps, _ = learn_domain("city", pd.Series(["Ulm", "Bonn", "Bonn", None, None, None]))
    assert apply_domain(with_gaps, pd.Series(["Oslo", None, "Ulm"])).tolist() == [1, 0, 2]
    without, _ = learn_domain("city", pd.Series(["Ulm", "Ulm", "Bonn"]))
    assert apply_domain(without, pd.Series(["Oslo", None, "Bonn"])).tolist() == [2, 2, 1]
    numbers, _ = learn_domain("age", pd.Series([1.0, 2.0, 2.0]))
    assert apply_domain(numbers, pd.Series([np.nan, 1.0])).tolist() == [2, 1]
    nobody, _ = learn_domain("age", pd.Series([np.nan, np.nan]))
    assert apply_domain(nobody, pd.Series([np.nan, 7.0])).tolist() == [0, 0]


def test_a_column_of_another_kind_is_refused_unless_it_is_empty() -> None:
    domain, _ = learn_domain("age", pd.Series([1, 2, 2]))
    with pytest.raises(InputError, match="the column age was numeric"):
        apply_domain(domain, pd.Series(["one", None]))
    assert apply_domain(domain, pd.Series([None, None], dtype=object)).tolist() == [2, 2]


def test_rows_of_one_tuple_are_one_cell_with_the_sum_of_their_guidance() -> None:
    frame = pd.DataFrame({"a": [2, 1, 2, 2], "b": ["x", "x", "x", "y"]})
    learned = [learn_domain(name, frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = count_cells(tuple(domain for domain, _ in learned), codes, np.array([[0.5], [0.25], [1.0], [0.0]]))
    assert cell.tolist() == [1, 0, 1, 2]
    assert cells.counts.tolist() == [1, 2, 1]
    assert cells.mean_guidance().ravel().tolist() == [0.25, 0.75, 0.0]


# Axes

CITIES = [f"city {number:02}" for number in range(40)]


@pytest.mark.parametrize("width", [1, 2])
def test_categories_that_tie_stand_in_the_order_of_their_values(width: int) -> None:
    """Forty at once: a sort that is not stable mixes them."""
    frame = pd.DataFrame({"city": CITIES * 3})
    guidance = np.tile([0.3, 0.7][:width], (120, 1))
    for axis in split_features(cells_of(frame, guidance), "both"):
        assert axis.rank[1:].tolist() == sorted(axis.rank[1:].tolist())


def test_categories_that_differ_by_rounding_alone_tie() -> None:
    frame = pd.DataFrame({"city": CITIES})
    guidance = np.stack([np.full(40, 0.3), 0.7 + 1e-13 * np.arange(40)[::-1]], axis=1)
    guidance[-1] = [0.9, 0.1]
    (axis,) = split_features(cells_of(frame, guidance), "guidance")
    assert axis.rank[1:40].tolist() == sorted(axis.rank[1:40].tolist())


def test_categories_stand_by_guidance_and_by_how_many_bear_them() -> None:
    frame = pd.DataFrame({"city": ["a", "b", "c", "c", "d", "d"]})
    guidance = np.array([0.5, 0.1, 0.9, 0.9, 0.3, 0.3])[:, None]
    by_guidance, by_frequency = split_features(cells_of(frame, guidance), "both")
    order = np.argsort(by_guidance.rank[1:])
    assert "".join("abcd"[place] for place in order) == "bdac"
    assert "".join("abcd"[place] for place in np.argsort(by_frequency.rank[1:])) == "abcd"
    matrix = feature_matrix((by_guidance, by_frequency), np.array([[1], [2]], dtype=np.int32))
    assert matrix.dtype == np.float32
    assert matrix[:, 0].tolist() == [by_guidance.rank[1], by_guidance.rank[2]]


@pytest.mark.parametrize(("orders", "axes"), [("guidance", 1), ("both", 2), ("each", 4)])
def test_how_many_orders_a_category_has(orders: str, axes: int) -> None:
    frame = pd.DataFrame({"city": ["a", "b", "c", "c"]})
    guidance = np.array([[0.1, 0.5], [0.2, 0.1], [0.9, 0.9], [0.9, 0.9]])
    assert len(split_features(cells_of(frame, guidance), orders)) == axes  # type: ignore[arg-type]


def test_numbers_are_split_by_value_with_gaps_below_all() -> None:
    frame = pd.DataFrame({"age": [30.0, 10.0, np.nan, 20.0]})
    (axis,) = split_features(cells_of(frame, np.array([[0.9], [0.1], [0.5], [0.7]])), "both")
    assert np.argsort(axis.rank).tolist() == [0, 1, 2, 3]


def test_a_number_is_standardized_among_those_who_have_one_and_a_gap_is_told() -> None:
    domain, code = learn_domain("x", pd.Series([1.0, 3.0, None, 3.0]))
    scaled = standardized(domain, code, np.ones(4))
    known = np.array([1.0, 3.0, 3.0])
    assert scaled[:, 0] == pytest.approx(np.insert((known - known.mean()) / known.std(), 2, 0.0))
    assert scaled[:, 1].tolist() == [0, 0, 1, 0]
    whole, everybody = learn_domain("x", pd.Series([1.0, 3.0]))
    assert standardized(whole, everybody, np.ones(2)).tolist() == [[-1.0], [1.0]]


def test_a_city_of_a_single_person_stands_where_that_person_does() -> None:
    frame = pd.DataFrame({"city": ["a", "b", "b", "c", "c"]})
    (axis,) = split_features(cells_of(frame, np.array([[0.9], [0.6], [0.6], [0.7], [0.7]])), "guidance")
    assert np.argsort(axis.rank[1:]).tolist() == [1, 2, 0]


def test_whether_two_categories_tie_does_not_depend_on_the_unit_of_the_guidance() -> None:
    frame = pd.DataFrame({"city": CITIES})
    guidance = 1e6 * np.stack([np.full(40, 0.3), 0.7 + 1e-12 * np.arange(40)[::-1]], axis=1)
    assert len(np.unique(guidance[:, 1] * 2**24 // 1)) > 10
    guidance[-1] = [9e5, 1e5]
    (axis,) = split_features(cells_of(frame, guidance), "guidance")
    assert axis.rank[1:40].tolist() == sorted(axis.rank[1:40].tolist())


@pytest.mark.parametrize(
    ("value", "code"), [(-5, 1), (0, 1), (5, 1), (10, 1), (15, 1), (15.5, 2), (20, 2), (25, 2), (30, 2), (35, 2)]
)
def test_where_several_numbers_share_a_code_the_nearest_range_counts(value: float, code: int) -> None:
    ends = {"lows": np.array([0, 20]), "highs": np.array([10, 30])}
    domain = Domain("age", ColumnType.NUMERIC, np.array([3, 28]), np.array([0, 4, 9]), **ends)
    assert apply_domain(domain, pd.Series([value])).tolist() == [code]


def test_the_lowest_of_several_most_common_values_is_taken() -> None:
    domain, _ = learn_domain("city", pd.Series(["Ulm", "Bonn", "Kiel", "Kiel", "Ulm"]))
    assert apply_domain(domain, pd.Series(["Oslo", None])).tolist() == [2, 2]
    nobody, _ = learn_domain("city", pd.Series([None, None], dtype=object))
    assert apply_domain(nobody, pd.Series(["Oslo", None])).tolist() == [0, 0]
