"""Every value that classes name is shared by k people, by a definition that counts them one by one."""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.classes import class_table, sizes
from anon_pipeline.anonymize.encoding import count_cells, learn_domain
from anon_pipeline.anonymize.hierarchy import Calendar, Prefixes
from anon_pipeline.anonymize.naming import LARGEST, Values, _Line, coarser, scale
from anon_pipeline.anonymize.recode import default_grid, grid_index, summarize
from anon_pipeline.privacy.named_values import unshared_numbers
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import COLUMNS, Table, tables

ORDERED = [
    kind for kind in COLUMNS if kind not in ("boolean", "nullable_boolean", "text", "string", "category", "one_text")
]


def as_numbers(column: pd.Series) -> list[Any]:
    """Known values as plain numbers, dates as microseconds since 1970."""
    column = column.dropna()
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None) if column.dt.tz is not None else column
        return column.to_numpy("datetime64[us]").astype(np.int64).tolist()
    return column.tolist()


def check_numbers(told: pd.DataFrame, name: str, values: list[Any], k: int, grid: float) -> None:
    """The rule, value by value: `told` is the table of classes, `values` what people have."""
    whole = all(isinstance(one, int) for one in values)
    dust, step = (0 if whole else 1e-15), (int(grid) if whole and grid >= 1 else grid)
    low, high, shown = (as_numbers(told[column]) for column in (f"{name}_low", f"{name}_high", name))
    ends = sorted({*low, *high})

    def over(number: float) -> float:
        return number + dust * abs(number) if dust and np.isfinite(number) else number

    def under(number: float) -> float:
        return number - dust * abs(number) if dust and np.isfinite(number) else number

    for end in sorted(set(high)):
        smaller = max((one for one in high if one < end), default=-np.inf)
        assert sum(over(smaller) < one <= over(end) for one in values) >= k, "an upper end of a few"
    for end in sorted(set(low)):
        larger = min((one for one in low if one > end), default=np.inf)
        assert sum(under(end) <= one < under(larger) for one in values) >= k, "a lower end of a few"
    for number in set(shown):
        below = max((one for one in ends if one < number), default=-np.inf)
        above = min((one for one in ends if one > number), default=np.inf)
        assert sum(over(below) < one < under(above) for one in values) >= k, "a representative of a few"
    for number in {*low, *high, *shown}:
        bearers = sum(under(number) <= one <= over(number) for one in values)
        on_step = sum(under(number) <= one < under(number + step) for one in values)
        assert bearers == 0 or bearers >= k or on_step >= k, "a value of a few, and few are on its step"
    some = told[told[[f"{name}_low", f"{name}_high"]].notna().any(axis=1)]
    if some[f"{name}_low"].isna().any():
        assert sum(one < min(low, default=np.inf) for one in values) >= k, "a few are below all ends"
    if some[f"{name}_high"].isna().any():
        assert sum(one > max(high, default=-np.inf) for one in values) >= k, "a few are above all ends"


@pytest.mark.long
@settings(max_examples=times(150))
@given(tables(), st.sampled_from([None, 0.25, 1.0, 5.0]))
def test_every_value_that_classes_name_is_shared_by_k_people(table: Table, grid: float | None) -> None:
    frame = table.frame
    numbers = [n for n in frame if pd.api.types.is_numeric_dtype(frame[n]) and not pd.api.types.is_bool_dtype(frame[n])]
    grids = {n: grid for n in numbers if grid is not None and (frame[n].abs() < 1e12).all()}
    tree = AnonymizerTree(k=table.k, grids=grids).fit(frame, table.guidance)
    told = tree.classes_
    for domain in tree.domains_:
        name, column = domain.name, frame[domain.name]
        if domain.ordered:
            step = grids.get(name) or default_grid(domain, table.k)
            check_numbers(told, name, as_numbers(column), table.k, step)
            assert not unshared_numbers(domain, told, table.k, 0), "the check of a candidate sees it as well"
            named_missing = told[f"{name}_missing"].fillna(False).any()
        else:
            counts = column.astype(object).map(str, na_action="ignore").value_counts()
            named = {one for texts in told[f"{name}_values"] for one in texts} | set(told[name])
            assert all(counts[one] >= table.k for one in named if one not in (None, "*")), "a category of a few"
            named_missing = None in named
        assert not named_missing or column.isna().sum() >= table.k


@pytest.mark.long
@settings(max_examples=times(30))
@given(tables(kinds=ORDERED), st.integers(0, 99))
def test_who_is_left_out_is_not_among_those_who_share(table: Table, seed: int) -> None:
    """Values of suppressed people are not published, so they hide nobody."""
    learned = [learn_domain(name, table.frame[name]) for name in table.frame]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = count_cells(tuple(domain for domain, _ in learned), codes, table.guidance)
    class_of_cell = np.random.default_rng(seed).integers(-1, 2, len(cells.counts))
    assume({0, 1} <= set(class_of_cell.tolist()))
    told = class_table(sizes(cells, class_of_cell, 2), summarize(cells, class_of_cell, 2, table.k, {}))
    released = table.frame[class_of_cell[cell] >= 0]
    for name in table.frame:
        values = as_numbers(released[name])
        if len(values) >= table.k:
            step = default_grid(learn_domain(name, released[name])[0], table.k)
            check_numbers(told, name, values, table.k, step)
        else:
            assert told[[name, f"{name}_low", f"{name}_high"]].isna().all(axis=None)


@pytest.mark.long
@settings(max_examples=times(100))
@given(st.lists(st.tuples(st.integers(-300, 300), st.integers(1, 12)), min_size=1, max_size=40), st.integers(2, 12))
@example([(0, 1)], 2)
@example([(value, 1) for value in range(40)], 5)
def test_each_use_of_a_number_is_shared(counted: list[tuple[int, int]], k: int) -> None:
    """The same of the scale itself: over all people, whatever the classes are."""
    people = pd.Series(dict(reversed(counted))).sort_index()
    at = people.index.to_numpy(np.int64)
    found = scale(Values(2 * at, 2 * at, at, people.to_numpy(np.int64)), k)
    for ends, open_ in (found.lower(2 * at), found.upper(2 * at)):
        uses = pd.Series(people.to_numpy()).groupby(np.where(open_, 10**6, ends)).sum()
        assert (uses >= k).all() or people.sum() < k
    assert (found.lower(2 * at)[0] <= at)[~found.lower(2 * at)[1]].all()
    assert (found.upper(2 * at)[0] >= at)[~found.upper(2 * at)[1]].all()
    shown = found.stand_in(2 * at, 2 * at, at)
    assert len(found.points) or people.sum() < k
    if len(found.points):
        assert (pd.Series(people.to_numpy()).groupby(shown).sum() >= k).all()
        assert all(people.get(one, k) >= k for one in [*found.points.tolist(), *shown.tolist()])
    own = people[people >= k].index
    assert set(own) <= set(found.points.tolist()), "what k people have may be named"


@pytest.mark.long
@settings(max_examples=times(200))
@given(
    st.dictionaries(st.integers(-200, 200), st.integers(1, 4), min_size=1, max_size=150),
    st.integers(2, 12),
    st.sampled_from([2, 5, 10]),
    st.sampled_from([1, 1, 3, 7]),
)
@example(dict.fromkeys(range(100), 1), 4, 5, 1)
def test_each_use_of_a_number_is_shared_on_a_coarser_grid(
    counted: dict[int, int], k: int, grid: int, together: int
) -> None:
    """Also where one code stands for several numbers, of which it is not told who has which."""
    people = pd.Series(counted).sort_index()
    value, of = people.index.to_numpy(np.int64), people.to_numpy(np.int64)
    below, above, nearest = value // grid, -(-value // grid), (2 * value + grid) // (2 * grid)
    starts = np.arange(0, len(value), together)
    ends = np.append(starts[1:], len(value)) - 1
    place = below + above
    codes = Values(place[starts], place[ends], nearest[starts], np.add.reduceat(of, starts))
    found = scale(codes, k)
    lows, open_low = found.lower(codes.first)
    highs, open_high = found.upper(codes.last)
    told = of.sum() >= k
    assert (len(found.points) > 0) == told
    for uses in (np.where(open_low, 10**6, lows), np.where(open_high, 10**6, highs)):
        assert not told or (pd.Series(codes.people).groupby(uses).sum() >= k).all()
    assert (open_low | (lows <= below[starts])).all()
    assert (open_high | (highs >= above[ends])).all()
    shown = found.stand_in(codes.first, codes.last, codes.nearest)
    assert not told or (pd.Series(codes.people).groupby(shown).sum() >= k).all()
    for point in {*found.points.tolist(), *shown.tolist()} if told else ():
        bearers, on_step = of[value == point * grid].sum(), of[below == point].sum()
        assert bearers == 0 or on_step >= k, "a number of a few, and few are on its step"
        exactly = (lows == point) & (highs == point) & ~open_low & ~open_high
        assert not exactly.any() or bearers >= k, "an interval of a number that a few have"


@settings(max_examples=times(100))
@given(st.lists(st.tuples(st.integers(-300, 300), st.integers(1, 12)), min_size=1, max_size=40), st.integers(2, 12))
@example([(value, 1) for value in range(20, 25)] + [(value, 1) for value in range(60, 65)], 5)
def test_where_people_begin_is_told_as_finely_as_k_people_lie(counted: list[tuple[int, int]], k: int) -> None:
    """An end just below a lone person would say which value that person has."""
    people = pd.Series(dict(reversed(counted))).sort_index()
    at = people.index.to_numpy(np.int64)
    points = scale(Values(2 * at, 2 * at, at, people.to_numpy(np.int64)), k).points
    for before, point in pairwise(np.r_[-(10**6), points]):
        if not people[(at >= before) & (at < point)].any():  # people begin above this point
            steps = (step for step in takewhile(lambda step: step < 10**6, coarser()) if point % step == 0)
            assert any(people[(at >= point) & (at < point + 2 * step)].sum() >= k for step in steps)


@pytest.mark.long
@pytest.mark.parametrize(("people", "k", "most"), [(120, 5, 0.15), (120, 10, 0.3), (300, 10, 0.2)])
def test_ages_of_few_people_are_told_although_most_round_numbers_are_some_of_theirs(
    people: int, k: int, most: float
) -> None:
    """With the nearest multiple of each step alone these lost .24, .47 and .47 of the variance on average."""
    lost = []
    for seed in range(20):
        ages = pd.DataFrame({"age": np.random.default_rng(seed).integers(20, 80, people)})
        shown = AnonymizerTree(k=k).fit_transform(ages)["age"].astype(float)
        lost.append(((shown - ages["age"]) ** 2).mean() / ages["age"].var())
    assert np.mean(lost) < most


def scale_of(numbers: np.ndarray, k: int) -> np.ndarray:
    """The numbers that may be named of a column of floats, in its own unit."""
    domain, _ = learn_domain("x", pd.Series(numbers))
    grid = default_grid(domain, k, domain.counts[1:])
    places = grid_index(domain.values, grid, 0.0) + grid_index(domain.values, grid, 1.0)
    return scale(Values(places, places, grid_index(domain.values, grid), domain.counts[1:]), k).points * grid


INCOMES = np.random.default_rng(0).lognormal(10, 0.7, 3000).round(2)


@pytest.mark.parametrize("k", [5, 10])
@pytest.mark.parametrize(
    "numbers",
    [
        np.r_[-2500.55, INCOMES],
        np.r_[-2500.55, -10, -3, INCOMES],
        np.r_[-0.01, -0.02, -0.03, np.random.default_rng(1).uniform(0.01, 2, 3000)],
        *(np.random.default_rng(seed).normal(-0.1, 0.1, 3000).round(6) for seed in range(4)),
        *(np.random.default_rng(seed).integers(-40 * 365, 40 * 365, 3000).astype(float) for seed in range(4)),
    ],
)
def test_a_few_people_below_a_round_number_do_not_make_the_others_alike(numbers: np.ndarray, k: int) -> None:
    """Steps have round numbers in common: all of them had zero, and everybody above it stood together."""
    gap = np.searchsorted(scale_of(numbers, k), numbers, "right")
    assert np.bincount(gap).max() < 0.1 * len(numbers)


#: Ages of 189 mothers: hardly ten of them share an age beyond 25, and nobody is 37 to 44.
MOTHERS = np.repeat(
    [*range(14, 37), 45], [3, 3, 7, 12, 10, 16, 18, 12, 13, 13, 13, 15, 8, 3, 9, 7, 7, 5, 6, 3, 1, 2, 2, 1]
)


@pytest.mark.long
@settings(max_examples=times(200))
@given(st.dictionaries(st.integers(-200, 200), st.integers(1, 12), min_size=1, max_size=60), st.integers(2, 12))
@example({int(age): int((age == MOTHERS).sum()) for age in np.unique(MOTHERS)}, 10)
def test_what_stands_for_people_between_two_numbers_is_no_farther_from_them_than_these(
    counted: dict[int, int], k: int
) -> None:
    """Mothers of 26 to 36 were shown as 40, an age that nobody has: their own round ages are those of a few."""
    people = pd.Series(counted).sort_index()
    at, of = people.index.to_numpy(np.int64), people.to_numpy(np.int64)
    found = scale(Values(2 * at, 2 * at, at, of), k)
    for gap in np.flatnonzero(found.apart):
        low, high = found.points[gap : gap + 2]
        inside = (at > low) & (at < high)
        mean = np.average(at[inside], weights=of[inside])
        assert abs(found.between[gap] - mean) <= min(mean - low, high - mean) + 1e-9


@pytest.mark.parametrize("k", [5, 10])
@pytest.mark.parametrize("n", [500, 2000])
def test_a_few_people_at_a_round_number_do_not_make_the_others_alike(n: int, k: int) -> None:
    """Every step has zero, which only these have; with the next number behind it, half of a table stood together."""
    for seed in range(10):
        draw = np.random.default_rng(seed)
        numbers = np.r_[(draw.standard_t(1.5, n) * 100 + 95).round(2), np.zeros(draw.integers(1, 4))]
        gap = np.searchsorted(scale_of(numbers, k), numbers, "right")
        assert np.bincount(gap).max() < 0.3 * len(numbers)


@pytest.mark.long
@pytest.mark.parametrize("k", [5, 25])
def test_a_few_people_below_each_of_many_round_numbers_end_in_an_error(k: int) -> None:
    """Each was passed over within the passing over of the one before, until Python refused to go deeper."""
    at = np.arange(20_000) * 10
    assert len(scale(Values(2 * at, 2 * at, at, np.ones(len(at), dtype=np.int64)), k).points)


def test_a_few_people_above_all_others_do_not_make_these_alike() -> None:
    """The points enclosed nobody between 0 and 500, since twelve weigh more than 200 and k is 25."""
    draw = np.random.default_rng(0)
    weights = np.r_[draw.normal(125, 18, 180).round(), draw.integers(201, 260, 12)]
    gap = np.searchsorted(scale_of(weights, 25), weights, "right")
    assert np.bincount(gap).max() < 0.9 * len(weights)


def test_the_points_say_that_a_few_are_below_a_round_number_and_not_where() -> None:
    points = [scale_of(np.r_[lowest, -3, INCOMES], 10).tolist() for lowest in (-1, -40, -2500.55, -9000, -70_000)]
    assert all(of_one == points[0] for of_one in points)


def test_numbers_that_many_have_are_told_as_they_are_and_lone_ones_are_not() -> None:
    ages = [30] * 40 + [50] * 40 + [33, 34, 36, 76, 77]
    tree = AnonymizerTree(k=10, grids={"age": 1}, form="range").fit(pd.DataFrame({"age": ages}))
    assert set(tree.transform(pd.DataFrame({"age": ages}))["age"]) == {"≥ 30", "≥ 50"}
    assert set(tree.classes_["age"]) == {30, 50}


@pytest.mark.parametrize(("last", "at"), [([30, 30], 7), ([21, 30], 4), ([21, 22], 0)])
def test_people_stand_together_where_they_begin_and_end_alike(last: list[int], at: int) -> None:
    """Who has a number and who has one of several that begin in the same place are two groups of people."""
    first, people = np.array([21, 21]), np.array([3, 4])
    found = scale(Values(first, np.array(last), np.array([10, 12]), people), 20)
    assert not found.points.tolist()
    line = _Line.of(Values(first, np.array(last), np.array([10, 12]), people))
    assert line.people.tolist() == ([7] if last[0] == last[1] else [3, 4])
    assert line.at(np.array([10, 13, 16])).tolist() == [0, at, 0]
    turned = _Line.of(Values(np.array([12, 21]), np.array([30, 30]), np.array([10, 12]), people))
    assert turned.people.tolist() == [3, 4]


@pytest.mark.parametrize(("lowest", "points"), [(1, [10, 11, 15]), (0, [10, 11, 15]), (5, [10, 11, 15])])
def test_the_lowest_number_is_an_end_where_enough_people_lie_on_the_step_that_begins_there(
    lowest: int, points: list[int]
) -> None:
    place = np.array([20, 21, 30])  # exactly 10, between 10 and 11, exactly 15
    found = scale(Values(place, place, (place + 1) // 2, np.array([lowest, 12, 12])), 5)
    assert found.points.tolist() == points
    assert found.of_few.tolist() == [lowest == 1, False, False]


@pytest.mark.long
def test_numbers_that_nobody_shares_are_told_on_coarser_steps_where_they_lie_apart() -> None:
    pay = pd.DataFrame({"pay": np.exp(np.random.default_rng(0).normal(11, 1, 2000))})
    told = AnonymizerTree(k=10).fit(pay).classes_
    assert told[["pay_low", "pay_high"]].notna().to_numpy().all()
    assert told["pay"].notna().mean() > 0.95
    width = (told["pay_high"] - told["pay_low"]) / told["pay"].clip(lower=1)
    assert width.median() < 0.2, "the finest steps that are safe"
    grid = default_grid(learn_domain("pay", pay["pay"])[0], 10)
    check_numbers(told, "pay", pay["pay"].tolist(), 10, grid)


@pytest.mark.parametrize("k", [3, 8])
def test_ends_of_levels_and_labels_of_hierarchies_are_shared(k: int) -> None:
    random = np.random.default_rng(k)
    n = 120
    frame = pd.DataFrame(
        {
            "size": random.choice(["xs", "s", "m", "l", "xl"], n, p=[0.01, 0.4, 0.4, 0.17, 0.02]),
            "zip": random.choice(
                ["01234", "01239", "01999", "55111", "55112", "99999"], n, p=[0.4, 0.02, 0.2, 0.3, 0.06, 0.02]
            ),
            "day": pd.Timestamp("2001-01-01") + pd.to_timedelta((random.exponential(900, n)).astype(int), "D"),
        }
    )
    levels = ["xs", "s", "m", "l", "xl"]
    tree = AnonymizerTree(
        k=k,
        levels={"size": levels},
        hierarchies={"zip": Prefixes((3, 2)), "day": Calendar()},
        form="range",
    ).fit(frame)
    shown = tree.transform(frame)

    def bearers(name: str, text: str) -> int:
        if name == "size":
            return int((frame["size"] == text).sum())
        if name == "zip":
            return int(frame["zip"].str.startswith(text.rstrip("*")).sum())
        if "Q" in text:
            return int((frame["day"].dt.to_period("Q").astype(str) == text.replace(" ", "")).sum())
        texts = frame["day"].astype(str)
        return int(texts.str.startswith(text.removesuffix("0s") if text.endswith("0s") else text).sum())

    for name in frame:
        for text in shown[name].unique():
            for one in text.removeprefix("≥ ").removeprefix("≤ ").split(" .. "):
                assert one == "*" or bearers(name, one) >= k, (name, text)
    assert (shown != "*").mean().min() > 0.5


@pytest.mark.parametrize(
    ("place", "points"),
    [(2 * LARGEST - 1, [LARGEST - 1, LARGEST]), (2 * LARGEST + 1, []), (1 - 2 * LARGEST, [-LARGEST, 1 - LARGEST])],
)
def test_no_number_beyond_the_largest_is_named(place: int, points: list[int]) -> None:
    at = np.array([place])
    assert scale(Values(at, at, (at + 1) // 2, np.array([5])), 5).points.tolist() == points
