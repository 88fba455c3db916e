"""Associations between columns, against textbook formulas on the rows themselves."""

from __future__ import annotations

import datetime
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import spearmanr
from scipy.stats.contingency import association as scipy_association

from anon_pipeline.anonymize import encoding, recode
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.grouping import Grouping
from anon_pipeline.association import Variable, association, robust_association
from anon_pipeline.keys import Key
from anon_pipeline.privacy.statistics import Histogram
from anon_pipeline.release import associations as of_release
from anon_pipeline.release import fineness
from anon_pipeline.release.associations import MEASURES, _of_values, associations
from anon_pipeline.release.noise import NO_NOISE, SCALE
from anon_pipeline_tests.examples import times
from benchmarks.source_figures import Recording, log_odds

ONES = np.ones(300, dtype=np.int64)


def people(n: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(1)
    age = random.integers(18, 80, n)
    city = np.where(age + random.normal(0, 20, n) > 50, "Ulm", "Bonn")
    job = np.where(random.random(n) < 0.7, np.where(city == "Ulm", "cook", "clerk"), "smith")
    return pd.DataFrame({"age": age, "pay": age * 100 + random.integers(0, 3000, n), "city": city, "job": job})


def found(frame: pd.DataFrame, sensitive: list[str], class_of: Any = None, k: int = 5) -> dict[str, Any]:
    kept = [name for name in frame if name not in sensitive]
    learned = [encoding.learn_domain(name, frame[name]) for name in kept]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(d for d, _ in learned), codes, np.zeros((len(frame), 1)))
    grouping = Grouping.of_tree(AnonymizerTree(k=k).fit(frame[kept]), cells)
    counted = encoding.count_sensitive(cells, cell, frame[sensitive]).sensitive
    return associations(cells, grouping.class_of_cell, grouping.summaries, grouping.sizes, counted)


def pair(content: dict[str, Any], one: str, other: str) -> dict[str, Any]:
    return next(each for each in content["pairs"] if each["columns"] == [one, other])


def eta(number: pd.Series, category: pd.Series) -> float:
    """Kelley's epsilon, by group means of those who have a number."""
    number, category = number[number.notna()], category[number.notna()]
    n, groups = len(number), category.nunique()
    within = ((number - number.groupby(category).transform("mean")) ** 2).sum() / ((number - number.mean()) ** 2).sum()
    return float(np.sqrt(max(0.0, 1 - within * (n - 1) / (n - groups))))


def test_each_kind_of_pair_has_its_measure_before_and_after() -> None:
    frame = people()
    content = found(frame, ["job"])
    assert content["columns"] == ["age", "pay", "city", "job"]
    shown = AnonymizerTree(k=5).fit(frame[["age", "pay", "city"]]).transform(frame[["age", "pay", "city"]])
    shown["job"] = frame["job"]
    for when, table in (("before", frame), ("after", shown)):
        both = table[["age", "pay"]].dropna()  # of some classes no number is told
        assert pair(content, "age", "pay")[when] == pytest.approx(spearmanr(both["age"], both["pay"])[0])
        ranks = table["age"].rank()
        assert pair(content, "age", "city")[when] == pytest.approx(eta(ranks, table["city"]))
        assert pair(content, "age", "job")[when] == pytest.approx(eta(ranks, table["job"]))
        plain = scipy_association(pd.crosstab(table["city"], table["job"]).to_numpy(), method="cramer")
        assert pair(content, "city", "job")[when] == pytest.approx(plain, abs=0.02)
    measures = [pair(content, *names)["measure"] for names in (("age", "pay"), ("age", "city"), ("city", "job"))]
    assert measures == ["spearman", "rank_correlation_ratio", "cramers_v"]
    assert pair(content, "age", "job")["measure"] == "rank_correlation_ratio"
    assert [each["people"] for each in content["pairs"]] == [len(frame)] * 6


@pytest.mark.long
def test_of_quasi_identifiers_nobody_weighs_much_and_few_are_counted() -> None:
    """A quasi-identifier can be withheld from everybody: who knows all values but one must not find the last."""
    frame = people().drop(columns=["city", "job"])
    frame["dose"] = np.where(np.arange(len(frame)) < 3, [3.0, 7.0, 2.0] * 100, np.nan)
    of_dose = pair(found(frame, []), "age", "dose")
    assert of_dose["people"] == 3
    for when in ("before", "after"):
        assert fineness.associations({"pairs": [of_dose]}, 10_000, NO_NOISE)["pairs"][0][when] is None
    rich = frame.assign(pay=frame["pay"].where(frame.index != 5, 10**9))
    plain, moved = (pair(found(table, []), "age", "pay")["before"] for table in (frame, rich))
    assert abs(plain - moved) < 20 / len(frame)


def test_counts_stand_for_so_many_rows() -> None:
    random = np.random.default_rng(0)
    x, y, people_ = random.normal(size=50), random.integers(0, 3, 50), random.integers(1, 5, 50)
    rows = np.repeat(np.arange(50), people_)
    for one, other in ((Variable(x, True), Variable(y, False)), (Variable(y % 2, False), Variable(y, False))):
        many = association(one.of(rows), other.of(rows), np.ones(len(rows), dtype=np.int64))
        assert association(one, other, people_) == pytest.approx(many)


def test_small_tables_are_corrected_for_chance() -> None:
    """Cramer's V as Bergsma corrects it (J. Korean Statistical Society 42, 2013), from a table of counts by hand."""
    table = np.array([[9, 1, 2], [2, 7, 3]])
    n, (r, c) = table.sum(), table.shape
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / n
    phi2 = max(0, ((table - expected) ** 2 / expected).sum() / n - (r - 1) * (c - 1) / (n - 1))
    corrected = [sides - (sides - 1) ** 2 / (n - 1) for sides in (r, c)]
    row, column = np.indices(table.shape).reshape(2, -1)
    found = association(Variable(row, False), Variable(column, False), table.ravel())
    assert found == pytest.approx(np.sqrt(phi2 / (min(corrected) - 1)), rel=1e-12)
    assert association(Variable(column, False), Variable(row, False), table.ravel()) == pytest.approx(found, rel=1e-12)


def test_the_unit_of_a_number_means_nothing() -> None:
    x, y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 2.0, 9.0])
    people_ = np.array([2, 1, 3])
    expected = association(Variable(x, True), Variable(y, True), people_)
    for unit in (1e-6, 1e6):
        assert association(Variable(x * unit, True), Variable(y * unit, True), people_) == pytest.approx(expected)


def test_the_unit_of_a_number_with_a_category_means_nothing() -> None:
    number, category = np.arange(8.0), np.array([0, 0, 0, 1, 1, 1, 1, 1])
    ones = np.ones(8, dtype=np.int64)
    ties = [association(Variable(number * unit, True), Variable(category, False), ones) for unit in (1e-3, 1.0, 1e3)]
    assert ties[0] is not None
    assert ties == pytest.approx([ties[0]] * 3)


def test_a_table_with_one_row_or_one_column_has_no_tie() -> None:
    ones, both, same = np.ones(4, dtype=np.int64), np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64)
    assert association(Variable(both, False), Variable(same, False), ones) is None
    assert association(Variable(same, False), Variable(both, False), ones) is None
    assert association(Variable(both, False), Variable(both, False), ones) is not None


def test_of_two_people_a_tie_can_be_told_and_of_one_none() -> None:
    two = np.arange(2)
    assert association(Variable(two * 1.0, True), Variable(two * 3.0, True), np.ones(2, dtype=np.int64)) == 1
    assert association(Variable(two, False), Variable(two, False), np.ones(2, dtype=np.int64)) is None  # r = n
    assert association(Variable(two * 1.0, True), Variable(two, False), np.ones(2, dtype=np.int64)) is None
    assert association(Variable(two[:1], False), Variable(two[:1], False), np.ones(1, dtype=np.int64)) is None


def test_a_constant_has_no_tie_with_a_category() -> None:
    one, many = Variable(np.zeros(9), False), Variable(np.arange(9) % 2, False)
    people = np.ones(9, dtype=np.int64)
    assert association(one, many, people) is None and association(many, one, people) is None
    assert association(many, many, people) == 1


def test_chance_is_no_tie() -> None:
    random = np.random.default_rng(0)
    noise = Variable(random.normal(size=300), True), Variable(random.integers(0, 30, 300), False)
    assert association(*noise, ONES) == pytest.approx(0, abs=0.15)  # uncorrected it would be .3
    assert association(noise[1], Variable(random.integers(0, 30, 300), False), ONES) == pytest.approx(0, abs=0.1)


def test_a_code_of_another_column_is_settled_by_it_and_a_constant_has_no_tie() -> None:
    code = np.arange(300) % 7
    assert association(Variable(code, False), Variable(code * 3, False), ONES) == pytest.approx(1)
    assert association(Variable(code * 2.0, True), Variable(code, False), ONES) == pytest.approx(1)
    for constant in (Variable(np.zeros(300), True), Variable(np.zeros(300, dtype=np.int64), False)):
        assert association(constant, Variable(code, False), ONES) is None
        assert association(constant, Variable(code * 1.0, True), ONES) is None


@pytest.mark.long
def test_unknown_numbers_do_not_count_and_dates_are_numbers() -> None:
    x = np.r_[np.arange(200.0), np.full(100, np.nan)]
    assert association(Variable(x, True), Variable(np.r_[-np.arange(200.0), np.zeros(100)], True), ONES) == -1
    frame = people().assign(born=lambda one: pd.Timestamp("2020-01-01") - pd.to_timedelta(one["age"], unit="D"))
    assert pair(found(frame, ["born"]), "age", "born")["before"] == pytest.approx(-1)
    frame.loc[:9, "born"] = pd.NaT  # who has no date does not count, and the others' dates stay dates
    assert pair(found(frame, ["born"]), "age", "born")["before"] == pytest.approx(-1)
    frame["pay"] /= 1e6  # fractions: whole numbers could as well be taken for dates
    frame.loc[:9, "pay"] = np.nan
    paid = frame["pay"].notna()
    expected = spearmanr(frame.loc[paid, "age"], frame.loc[paid, "pay"]).statistic
    told = pair(found(frame[["age", "city", "pay"]], ["pay"]), "age", "pay")
    assert told["before"] == pytest.approx(expected)
    assert told["measure"] == "spearman"
    assert told["people"] == paid.sum()


@pytest.mark.long
def test_a_huge_value_weighs_no_more_than_another() -> None:
    """Who knows everybody else's sensitive value must not find from the figures whose the last one is."""
    frame = people()
    plain = found(frame, ["pay"])
    for place in (0, 7, 140):
        changed = found(frame.assign(pay=np.where(np.arange(len(frame)) == place, 10**9, frame["pay"])), ["pay"])
        for name in ("age", "city", "job"):
            one, other = (pair(content, name, "pay")["before"] for content in (plain, changed))
            assert abs(one - other) < 4 / len(frame), name


@pytest.mark.long
def test_the_only_one_with_a_value_weighs_no_more_than_another() -> None:
    """Also who is known to be the only one of a place: alone in a row and a column, they would be a perfect tie."""
    frame = people(2_000)
    frame.loc[3, "city"] = "Rom"
    plain, rare = (
        found(table, ["job"]) for table in (frame, frame.assign(job=frame["job"].mask(frame.index == 3, "x")))
    )
    for name in ("age", "pay", "city"):
        one, other = (pair(content, name, "job")["before"] for content in (plain, rare))
        assert abs(one**2 - other**2) < 20 / len(frame), name


def test_rare_categories_are_put_together_until_they_are_no_longer_rare() -> None:
    values = np.repeat(np.arange(5), [1, 2, 47, 450, 500])
    ones = np.ones(len(values), dtype=np.int64)
    assert Variable(values, False).rare(ones).tolist() == [0, 1, 2]
    assert Variable(values[values > 0], False).rare(ones[values > 0]).tolist() == [1, 2, 3]  # 49 of 999 are too few
    assert Variable(values[values > 2], False).rare(ones[values > 2]).tolist() == []
    least = np.repeat(np.arange(5), [2, 3, 5, 5, 85])
    assert Variable(least, False).rare(np.ones(100, dtype=np.int64)).tolist() == [0, 1], "5 of 100 are no longer rare"
    exactly = np.repeat([0, 1], [5, 95])
    assert Variable(exactly, False).rare(np.ones(100, dtype=np.int64)).tolist() == []
    few = np.repeat([0, 1], [4, 96])
    assert Variable(few, False).rare(np.ones(100, dtype=np.int64)).tolist() == [0], "the most common one is none"
    assert Variable(few, False).rare(np.where(few == 0, 10, 1)).tolist() == []  # rows are counted by their people
    pooled = Variable(values, False).pooled(np.array([0, 1]))
    assert np.unique(pooled.values, return_counts=True)[1].tolist() == [3, 47, 450, 500]


def test_ranks_are_those_of_people() -> None:
    numbers, counts = np.array([7.0, 1.0, 7.0, 3.0]), np.array([2, 1, 1, 4])
    rows = np.repeat(np.arange(4), counts)
    ranked = Variable(numbers, True).ranked(counts).values
    assert (ranked + 0.5).tolist() == pd.Series(numbers[rows]).rank()[np.unique(rows, return_index=True)[1]].tolist()


def test_days_at_the_end_of_all_time_stay_in_order() -> None:
    """Nanoseconds since 1970 go to 2262, and then begin anew with the past."""
    days = (None, datetime.date(1600, 1, 1), datetime.date(2020, 5, 6), datetime.date(9999, 12, 31))
    told = _of_values(Histogram(days, sparse.csr_array(np.ones((1, 4), dtype=np.int64)), ordered=True))
    assert told.ordered and np.isnan(told.values[0])
    assert (np.diff(told.values[1:]) > 0).all()


@pytest.mark.long
@pytest.mark.parametrize("other", ["age", "city"])
def test_the_only_one_with_a_number_does_not_make_an_association(other: str) -> None:
    """A number that all share is associated with nothing, and that something was measured told of the only other."""
    frame = people(1_000)
    told = []
    for alike in (0, 1, 2):
        content = found(frame.assign(pay=np.where(np.arange(1_000) < alike, 1, 0)), ["pay"])
        told.append(pair(fineness.associations(content, 1_000, NO_NOISE), other, "pay"))
    assert told[0] == told[1] == told[2]
    many = found(frame.assign(pay=np.where(np.arange(1_000) < 10, 1, 0)), ["pay"])
    assert pair(many, other, "pay")["before"] is not None


def alike(n: int, columns: int, random: np.random.Generator) -> list[Variable]:
    """Columns that hang together by one factor, numbers and categories by turns."""
    factor, found = random.normal(size=n), []
    for place in range(columns):
        scores = 0.6 * factor + 0.8 * random.normal(size=n)
        coded = np.digitize(scores, [-1.2, -0.3, 0.5, 1.3]).astype(np.int64)
        found.append(Variable(coded if place % 2 else np.round(40 + 12 * scores), place % 2 == 0))
    return found


def told_of(columns: list[Variable]) -> tuple[list[float | None], np.ndarray]:
    """What a manifest tells of all pairs of these columns, rounded alone; and the same in steps, not rounded."""
    n, pairs = len(columns[0].values), []
    for one, other in combinations(range(len(columns)), 2):
        rows = (columns[one], columns[other], np.ones(n, dtype=np.int64))
        found = robust_association(rows)
        measure = MEASURES[columns[one].ordered + columns[other].ordered]
        named = {"columns": [str(one), str(other)], "measure": measure}
        pairs.append({**named, "before": found.value, "after": None, "people": n, "apart": found.apart})
    kept: dict[tuple[str, ...], float] = {}
    told = fineness.associations({"pairs": pairs}, n, Recording(Key(bytes(32)), "people", "v", kept=kept))["pairs"]
    return [each["before"] for each in told], np.array([kept[name] for name in sorted(kept)])


@pytest.mark.long
@pytest.mark.parametrize("columns", [5, 20])
def test_a_value_is_not_told_by_one_of_many_associations(columns: int) -> None:
    """It has a part in each that its column has: of twenty columns, rounded alone, one told two values apart."""
    apart, evidence = 0, []
    for seed in range(20):
        random = np.random.default_rng(seed)
        table, person = alike(200, columns, random), int(random.integers(200))
        numbers = table[0].values
        other = random.choice(numbers[numbers != numbers[person]])
        changed = Variable(np.where(np.arange(200) == person, other, numbers), True)
        (of_table, before), (of_changed, after) = told_of(table), told_of([changed, *table[1:]])
        apart += of_table != of_changed
        for odds in log_odds(np.abs(before - after) / SCALE, random, 100):  # by one release, and by any number
            evidence += odds.tolist()
    assert columns < 20 or apart >= 8
    # How often noise makes the true value twenty times as likely as the other one.
    assert np.mean(np.array(evidence) > np.log(20)) < 0.01


def test_what_is_rare_in_the_source_does_not_move_the_figure_of_the_release() -> None:
    """The release's figure has no noise, so who has the release must be able to count it again.

    Nine people of 200 live in Hof, or ten: the last is a baker of the class that shows Hof, as one of Ulm is. Nine are
    rare and were put together with those of the next rarest town, in the release's figure too.
    """
    classes = {("Hof", "baker"): 0, ("Ulm", "baker"): 0, ("Ulm", "cook"): 1, ("Bonn", "cook"): 2, ("Kiel", "clerk"): 3}
    figures = []
    for hof in (9, 10):
        people_of = dict(zip(classes, (hof, 12 - hof, 27, 60, 101), strict=True))
        frame = pd.DataFrame([tuple_ for tuple_, n in people_of.items() for _ in range(n)], columns=["city", "job"])
        learned = [encoding.learn_domain(name, frame[name]) for name in frame]
        codes = np.stack([code for _, code in learned], axis=1)
        cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((200, 1)))
        class_of_cell = np.empty(len(cells.counts), dtype=np.int64)
        class_of_cell[cell] = [classes[city, job] for city, job in frame.itertuples(index=False)]
        summaries = recode.summarize(cells, class_of_cell, 4, 9, {})
        assert [summary.domain.values[summary.representative[0] - 1] for summary in summaries] == ["Hof", "baker"]
        sizes = np.bincount(class_of_cell, weights=cells.counts).astype(np.int64)
        (of_pair,) = associations(cells, class_of_cell, summaries, sizes, {})["pairs"]
        figures.append(of_pair)
    assert figures[0]["after"] == figures[1]["after"] and figures[0]["before"] != figures[1]["before"]


@settings(max_examples=times(100))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=30),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1, 10**6]),
)
def test_pairs_of_values_counted_once_tell_what_their_rows_tell(
    rows: list[tuple[int, int, int]], first: bool, second: bool, per_row: int
) -> None:
    """Whether there is a table of all pairs that could be or only of those that occur."""
    place, other, people_ = np.array(rows).T
    values = np.array([np.nan, 2.0, 0.5, 7.0, -1.0]), np.array([3.0, np.nan, 1.0, 2.0])
    variables = tuple(
        Variable(number if ordered else np.arange(len(number)), ordered)
        for number, ordered in zip(values, (first, second), strict=True)
    )
    plain = variables[0].of(place), variables[1].of(other), people_
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_release, "PAIRS_PER_ROW", per_row)
        left, right, counted = of_release._counted(
            of_release._Column(variables[0], place), of_release._Column(variables[1], other), people_
        )
    assert len(counted) == len({row[:2] for row in rows})
    assert counted.sum() == people_.sum()
    assert association(left, right, counted) == pytest.approx(association(*plain), abs=1e-9)
    found, expected = robust_association((left, right, counted)), robust_association(plain)
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    assert (found.people, found.apart) == (expected.people, expected.apart)
