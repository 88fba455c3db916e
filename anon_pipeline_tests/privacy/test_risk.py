"""Re-identification and inference risk against loops over people, and against published numbers on Adult."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.risk import (
    ProsecutorRisk,
    attribute_inference,
    journalist,
    marketer,
    prosecutor,
    records_by_class_size,
    reidentification_risk,
)
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram, histogram

ADULT = Path(__file__).resolve().parents[2] / "data" / "adult" / "adult.parquet"
NINE = ["sex", "age", "race", "marital_status", "education", "native_country", "workclass", "occupation", "income"]

some_sizes = st.lists(st.one_of(st.integers(1, 25), st.integers(1, 700)), min_size=1, max_size=40)
#: People as (class, value); classes and values that do not occur are left out by the helper below.
some_people = st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abcd")), min_size=1, max_size=60)


def ints(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


def table(people: list[tuple[int, str]]) -> ClassStatistics:
    names, values = sorted({name for name, _ in people}), sorted({value for _, value in people})
    group = ints(*(names.index(name) for name, _ in people))
    code = ints(*(values.index(value) for _, value in people))
    counts = histogram(group, code, np.ones(len(people), dtype=np.int64), (len(names), len(values)))
    return ClassStatistics(np.bincount(group).astype(np.int64), {"x": Histogram(tuple(values), counts, False)})


@pytest.mark.long
@given(some_sizes)
def test_prosecutor_is_one_over_the_class_of_each_person(sizes: list[int]) -> None:
    people, of_each = sum(sizes), [(size, Fraction(1, size)) for size in sizes]
    risk = prosecutor(ints(*sizes))
    assert risk.max == float(max(share for _, share in of_each))
    assert risk.mean == pytest.approx(float(sum(size * share for size, share in of_each) / people), rel=1e-15)
    for threshold, above in risk.share_above.items():
        assert above == sum(size for size, share in of_each if share > Fraction(threshold)) / people


@pytest.mark.parametrize(
    ("threshold", "largest_above"), [(0.05, 19), (0.09, 11), (0.2, 4), (0.33, 3), (0.1, 9), (0.07, 14), (1.0, 0)]
)
def test_a_record_exactly_at_the_threshold_is_not_above_it(threshold: float, largest_above: int) -> None:
    sizes = np.arange(1, 60)
    assert prosecutor(sizes, [threshold]).share_above == {str(threshold): sizes[:largest_above].sum() / sizes.sum()}


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 50)), min_size=1, max_size=30))
def test_journalist_and_marketer_follow_each_record_into_the_population(classes: list[tuple[int, int]]) -> None:
    sizes, population = [f for f, _ in classes], [f + more for f, more in classes]
    per_record = [Fraction(1, F) for f, F in zip(sizes, population, strict=True) for _ in range(f)]
    mean = sum(per_record) / len(per_record)
    risk = journalist(ints(*sizes), ints(*population))
    assert risk.max == float(max(per_record))
    assert risk.mean == pytest.approx(float(max(mean, Fraction(len(sizes), sum(population)))), rel=1e-14)
    assert marketer(ints(*sizes), ints(*population)) == pytest.approx(float(mean), rel=1e-14)
    # More people outside the table never make it less safe.
    assert risk.max <= prosecutor(ints(*sizes)).max
    assert risk.mean <= prosecutor(ints(*sizes)).mean * (1 + 1e-14)


def test_the_mean_of_a_journalist_is_the_larger_of_the_two_directions() -> None:
    # From the table: one person at 1/2 and 99 at 1/200. From the population it would be 2/202.
    assert journalist(ints(1, 99), ints(2, 200)).mean == pytest.approx((1 / 2 + 99 / 200) / 100)
    # From the population: 2/1010. From the table it would be (1/10 + 1) / 1001.
    assert journalist(ints(1, 1000), ints(10, 1000)).mean == pytest.approx(2 / 1010)


@given(some_sizes)
def test_if_the_population_is_the_table_all_three_agree(sizes: list[int]) -> None:
    f = ints(*sizes)
    assert journalist(f, f).max == prosecutor(f).max
    assert journalist(f, f).mean == pytest.approx(prosecutor(f).mean)
    assert marketer(f, f) == pytest.approx(marketer(f)) == pytest.approx(prosecutor(f).mean)


@given(some_sizes)
def test_buckets_hold_every_record_once(sizes: list[int]) -> None:
    limits = {"1": (1, 1), "2": (2, 2), "3-4": (3, 4), "5-9": (5, 9), "10-19": (10, 19), "20-49": (20, 49)}
    limits |= {
        "50-99": (50, 99),
        "100-199": (100, 199),
        "200-499": (200, 499),
        "500-999": (500, 999),
        "1000+": (1000, 10**9),
    }
    expected = {label: sum(size for size in sizes if low <= size <= high) for label, (low, high) in limits.items()}
    assert records_by_class_size(ints(*sizes)) == expected


@given(st.permutations([1, 1, 2, 3, 7, 19, 20, 21, 600]))
def test_the_order_of_the_classes_means_nothing(sizes: list[int]) -> None:
    f = ints(*sizes)
    risk = reidentification_risk(ClassStatistics(f, {}, 3 * f + f % 7))
    f = np.sort(f)
    assert risk == reidentification_risk(ClassStatistics(f, {}, 3 * f + f % 7))


@given(some_people)
def test_inference_guesses_the_value_most_frequent_around_each_person(people: list[tuple[int, str]]) -> None:
    best, alone = Fraction(0), 0
    for name, _ in people:
        around = Counter(value for other, value in people if other == name)
        best += Fraction(max(around.values()), sum(around.values()))
        alone += len(around) == 1
    found = attribute_inference(table(people))["x"]
    assert found.best_guess == pytest.approx(float(best / len(people)), rel=1e-14)
    assert found.homogeneous == alone / len(people)
    assert found.baseline == max(Counter(value for _, value in people).values()) / len(people)
    # Knowing the class never makes the guess worse.
    assert found.baseline <= found.best_guess <= 1
    assert found.homogeneous <= found.best_guess


@given(some_people)
def test_merging_classes_lowers_every_risk(people: list[tuple[int, str]]) -> None:
    fine = table(people)
    group = np.arange(len(fine.sizes)) // 2
    coarse = fine.merge(group, int(group.max()) + 1)
    assert prosecutor(coarse.sizes).max <= prosecutor(fine.sizes).max
    assert prosecutor(coarse.sizes).mean <= prosecutor(fine.sizes).mean
    assert attribute_inference(coarse)["x"].best_guess <= attribute_inference(fine)["x"].best_guess
    assert attribute_inference(coarse)["x"].homogeneous <= attribute_inference(fine)["x"].homogeneous


def test_all_unique_and_all_alike() -> None:
    alone = reidentification_risk(ClassStatistics(np.ones(7, dtype=np.int64)))
    assert alone.prosecutor == ProsecutorRisk(1.0, 1.0, {"0.05": 1.0, "0.09": 1.0, "0.2": 1.0, "0.33": 1.0})
    assert (alone.unique_records, alone.marketer, alone.journalist) == (7, 1.0, None)
    alike = reidentification_risk(ClassStatistics(ints(1000)))
    assert alike.prosecutor == ProsecutorRisk(0.001, 0.001, {"0.05": 0.0, "0.09": 0.0, "0.2": 0.0, "0.33": 0.0})
    assert (alike.unique_records, alike.records_by_class_size["1000+"]) == (0, 1000)


def test_a_table_with_nobody_in_it_has_no_risk() -> None:
    nobody = reidentification_risk(ClassStatistics(ints(), {}, ints()))
    assert (nobody.prosecutor.max, nobody.prosecutor.mean, nobody.marketer, nobody.records) == (0, 0, 0, 0)
    empty = histogram(ints(), ints(), ints(), (0, 0))
    assert attribute_inference(ClassStatistics(ints(), {"x": Histogram((), empty, False)}))["x"].best_guess == 0


@pytest.mark.parametrize(
    ("sizes", "population"), [(ints(1, 0), ints(1, 1)), (ints(1, 2), ints(1, 0)), (ints(1, 2), ints(3))]
)
def test_counts_that_cannot_be_are_refused(sizes: IntArray, population: IntArray) -> None:
    with pytest.raises(ValueError, match=r"class size|population"):
        reidentification_risk(ClassStatistics(sizes, {}, population))


def test_the_result_is_json() -> None:
    risk = reidentification_risk(ClassStatistics(ints(1, 5, 30), {}, ints(2, 5, 300)))
    read = json.loads(json.dumps(asdict(risk), allow_nan=False))
    assert read["journalist"] == {"max": 0.5, "mean": pytest.approx((0.5 + 1 + 0.1) / 36)}
    assert read["records_by_class_size"]["20-49"] == 30
    assert json.dumps({column: asdict(one) for column, one in attribute_inference(table([(0, "a")])).items()})


def test_mean_risk_of_adult_is_the_published_one() -> None:
    adult = pd.read_parquet(ADULT)
    complete = adult[(adult.split == "train") & ~(adult == "?").any(axis=1)]
    assert len(complete) == 30_162
    sizes = np.asarray(complete.groupby(NINE, sort=False).size(), dtype=np.int64)
    assert round(prosecutor(sizes).mean, 6) == 0.646575
    assert prosecutor(sizes).max == 1.0


@pytest.mark.parametrize(
    ("rows", "baseline"), [([[5, 3, 2]], 8 / 10), ([[5, 2, 3]], 8 / 10), ([[4]], 1.0), ([[1, 1], [0, 4]], 1.0)]
)
def test_a_missing_value_is_guessed_as_the_most_frequent_of_the_table(rows: list[list[int]], baseline: float) -> None:
    counts = sparse.csr_array(np.array(rows, dtype=np.int64))
    values = (None, "a", "b")[: counts.shape[1]]
    classes = ClassStatistics(ints(*(sum(row) for row in rows)), {"x": Histogram(values, counts, False)})
    assert attribute_inference(classes)["x"].baseline == baseline


def test_a_histogram_counts_people_who_stand_in_several_places_once_each() -> None:
    counts = histogram(ints(0, 1, 1, 1), ints(1, 0, 0, 1), ints(2, 3, 4, 0), (2, 2))
    assert counts.toarray().tolist() == [[0, 2], [7, 0]]
    assert counts.nnz == 2


def test_classes_keep_their_population_when_pooled_and_lose_to_nobody_when_left_out() -> None:
    counts = sparse.csr_array(np.array([[1, 2], [3, 0], [0, 5]]))
    classes = ClassStatistics(ints(3, 3, 5), {"x": Histogram(("a", "b"), counts, False)}, ints(10, 20, 30), 4)
    pooled = classes.merge(ints(1, 0, 1), 2)
    assert pooled.sizes.tolist() == [3, 8]
    assert pooled.population is not None and pooled.population.tolist() == [20, 40]
    assert pooled.sensitive["x"].counts.toarray().tolist() == [[3, 0], [1, 7]]
    rest = classes.without(np.array([False, True, False]))
    assert (rest.population_unmatched, rest.sensitive["x"].total.tolist()) == (24, [1, 7])
    assert ClassStatistics(ints(3), {}, ints(9)).without(np.array([True])).population_unmatched == 9
    assert ClassStatistics(ints(3)).without(np.array([True])).population_unmatched is None
    some = classes.some(ints(2, 0))
    assert (some.sizes.tolist(), some.sensitive["x"].total.tolist()) == ([5, 3], [4, 7])
