"""Microaggregation against enumeration, a published example, and a plain reading of MDAV."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import number_of
from anon_pipeline.masking import mdav, microaggregation
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.masking.mdav import mdav_groups
from anon_pipeline.masking.microaggregation import optimal_starts
from anon_pipeline_tests.masking.tables import CATEGORICAL, KEY, NUMERIC, masked, rows, step

Floats = npt.NDArray[np.float64]

#: Surface in square metres and employees of eleven companies: the running example of J. Domingo-Ferrer's chapters on
#: microaggregation (as in: A survey of inference control methods for privacy-preserving data mining, 2008). For k = 3
#: the groups shown there have the means (747.5, 46), (756.67, 8) and (322.5, 33).
COMPANIES = np.array(
    [
        [790, 55], [710, 44], [730, 32], [810, 17], [950, 3], [510, 25], [400, 45], [330, 50], [510, 5], [760, 52],
        [50, 12],
    ],
    dtype=float,
)  # fmt: skip
PUBLISHED = [{0, 1, 2, 9}, {3, 4, 8}, {5, 6, 7, 10}]


def error_of(points: Floats, groups: list[set[int]]) -> float:
    return sum(float(((points[list(group)] - points[list(group)].mean(axis=0)) ** 2).sum()) for group in groups)


def partitions(left: frozenset[int], k: int) -> Iterator[list[set[int]]]:
    """All ways to put things into groups of k to 2k - 1."""
    if not left:
        yield []
        return
    first, rest = min(left), sorted(left - {min(left)})
    for mask in range(2 ** len(rest)):
        group = {first, *(one for place, one in enumerate(rest) if mask >> place & 1)}
        if k <= len(group) < 2 * k and (len(left) == len(group) or len(left) - len(group) >= k):
            for others in partitions(left - group, k):
                yield [group, *others]


def sets(groups: npt.NDArray[np.int64]) -> list[set[int]]:
    return [set(np.flatnonzero(groups == one).tolist()) for one in np.unique(groups)]


def plain_mdav(points: Floats, k: int) -> list[set[int]]:
    """Domingo-Ferrer and Torra's algorithm as it is written, one person after the other."""
    left = list(range(len(points)))
    groups: list[set[int]] = []

    def distance(one: int, other: Floats) -> float:
        return float(((points[one] - other) ** 2).sum())

    def group_around(centre: int) -> None:
        near = sorted(left, key=lambda one: (distance(one, points[centre]), one))[:k]
        groups.append(set(near))
        for one in near:
            left.remove(one)

    while len(left) >= 3 * k:
        middle = points[left].mean(axis=0)
        r = max(left, key=lambda one: (distance(one, middle), -one))
        s = max(left, key=lambda one: (distance(one, points[r]), -one))
        group_around(r)
        group_around(s if s in left else left[0])
    if len(left) >= 2 * k:
        middle = points[left].mean(axis=0)
        group_around(max(left, key=lambda one: (distance(one, middle), -one)))
    groups.append(set(left))
    return groups


@pytest.mark.long
def test_the_published_grouping_is_the_optimum_of_its_example() -> None:
    scaled = mdav._scaled(COMPANIES)
    best = min(partitions(frozenset(range(11)), 3), key=lambda groups: error_of(scaled, groups))
    assert sorted(best, key=min) == sorted(PUBLISHED, key=min)
    means = {tuple(np.round(COMPANIES[list(group)].mean(axis=0), 2)) for group in best}
    assert means == {(747.5, 45.75), (756.67, 8.33), (322.5, 33.0)}


def test_the_published_example_under_mdav() -> None:
    """MDAV is greedy: of these eleven it does not find the optimum, and neither does the algorithm as written."""
    table = pa.table({"surface": COMPANIES[:, 0], "employees": COMPANIES[:, 1]})
    steps = [step("mdav", columns=["surface", "employees"], k=3)]
    kinds = {"surface": NUMERIC, "employees": NUMERIC}
    made, (report,) = apply_steps(table, kinds, {}, steps, Resources(key=KEY))
    scaled = mdav._scaled(COMPANIES)
    written = plain_mdav(scaled, 3)
    wanted = {tuple(np.round(COMPANIES[list(group)].mean(axis=0), 6)) for group in written}
    assert {(round(surface, 6), round(employees, 6)) for employees, surface in rows(made)} == wanted
    assert error_of(scaled, PUBLISHED) < error_of(scaled, written) < 1.7 * error_of(scaled, PUBLISHED)
    assert report.facts == {"groups": 3, "smallest": 3, "largest": 5, "rows_hidden": 0} and report.guarantee == "k"


@pytest.mark.parametrize("empty", [0, 1, 2, 3])
def test_people_without_any_value_have_to_be_k_as_well(empty: int) -> None:
    table = pa.table({"x": [1.0] * 3 + [None] * empty, "y": [2.0] * 3 + [None] * empty}).cast(
        pa.schema([("x", pa.float64()), ("y", pa.float64())])
    )
    steps = [step("mdav", columns=["x", "y"], k=3)]
    _, (report,) = apply_steps(table, {"x": NUMERIC, "y": NUMERIC}, {}, steps, Resources(key=KEY))
    few = empty in (1, 2)
    assert report.guarantee == ("none" if few else "k")
    assert any(note.startswith(f"{number_of(empty, 'person', 'people')}, fewer than k") for note in report.notes) == few


def test_of_nobody_with_a_value_no_group_is_made() -> None:
    table = pa.table({"x": pa.nulls(3, pa.float64()), "y": pa.nulls(3, pa.float64())})
    steps = [step("mdav", columns=["x", "y"], k=3)]
    _, (report,) = apply_steps(table, {"x": NUMERIC, "y": NUMERIC}, {}, steps, Resources(key=KEY))
    assert (report.facts["groups"], report.facts["smallest"], report.facts["largest"]) == (0, 0, 0)


def test_mdav_finds_the_optimum_where_people_stand_apart() -> None:
    centres = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    points = np.concatenate([centres + shift for shift in ([0, 0], [1, 0.3], [0.2, 1])])
    best = min(partitions(frozenset(range(9)), 3), key=lambda groups: error_of(points, groups))
    assert sorted(sets(mdav_groups(points, 3)), key=min) == sorted(best, key=min)


@pytest.mark.long
def test_one_column_of_the_published_example_is_at_its_optimum() -> None:
    for column in range(2):
        values = np.sort(COMPANIES[:, column])
        groups = [set(part) for part in np.split(np.arange(11), optimal_starts(values, 3)[1:])]
        best = min(partitions(frozenset(range(11)), 3), key=lambda one: error_of(values[:, None], one))
        assert error_of(values[:, None], groups) == pytest.approx(error_of(values[:, None], best))


@pytest.mark.parametrize(("n", "k"), [(3, 3), (5, 3), (6, 3), (8, 3), (9, 3), (40, 3), (97, 5), (60, 2)])
def test_mdav_is_what_the_paper_says(n: int, k: int) -> None:
    points = np.random.default_rng(n).normal(size=(n, 3))
    assert sorted(sets(mdav_groups(points, k)), key=min) == sorted(plain_mdav(points, k), key=min)


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 3, 10])
def test_groups_have_k_to_2k_minus_1_people_also_in_blocks(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).normal(size=(3001, 2))
    whole = mdav_groups(points, k)
    monkeypatch.setattr(mdav, "WHOLE", 1000)
    monkeypatch.setattr(mdav, "BLOCK", 500)
    blocked = mdav_groups(points, k)
    for groups in (whole, blocked):
        assert k <= np.bincount(groups).min() and np.bincount(groups).max() <= 2 * k - 1
    assert error_of(points, sets(whole)) < error_of(points, sets(blocked)) < 1.4 * error_of(points, sets(whole))


def test_mdav_of_equal_points_and_of_gaps() -> None:
    equal = mdav_groups(np.ones((50, 2)), 4)
    assert np.bincount(equal).min() >= 4 and np.bincount(equal).max() <= 7
    a = pa.array([1.0, 2, 3, None, None, None, 7, 8, None])
    b = pa.array([1.0, 2, 3, 4, 5, 6, None, None, None])
    steps = [step("mdav", columns=["a", "b"], k=3)]
    made, (report,) = apply_steps(
        pa.table({"a": a, "b": b}), {"a": NUMERIC, "b": NUMERIC}, {}, steps, Resources(key=KEY)
    )
    assert made.column("a").to_pylist() == [2.0] * 3 + [None] * 6
    assert made.column("b").to_pylist() == [2.0] * 3 + [5.0] * 3 + [None] * 3
    assert report.facts["rows_hidden"] == 2 and report.guarantee == "k", "with the one who had none they are three"
    few = pa.table({"a": a.slice(0, 8), "b": b.slice(0, 8)})
    _, (report,) = apply_steps(few, {"a": NUMERIC, "b": NUMERIC}, {}, steps, Resources(key=KEY))
    assert report.guarantee == "none" and "2 people, fewer than k" in report.notes[0]


@pytest.mark.parametrize("k", [2, 3])
def test_the_optimum_of_one_column_is_the_best_of_all_cuts(k: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(30):
        values = np.sort(rng.lognormal(0, 2, int(rng.integers(k, 13))))
        starts = optimal_starts(values, k)
        groups = [set(part) for part in np.split(np.arange(len(values)), starts[1:])]
        points = values[:, None]
        best = min(error_of(points, one) for one in cuts(len(values), k))
        assert error_of(points, groups) == pytest.approx(best)
        assert all(k <= len(group) < 2 * k for group in groups)


def cuts(n: int, k: int, start: int = 0) -> Iterator[list[set[int]]]:
    if start == n:
        yield []
    for end in range(start + k, n + 1):
        for rest in cuts(n, k, end):
            yield [set(range(start, end)), *rest]


def test_blocks_lose_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.sort(np.random.default_rng(1).lognormal(0, 1, 4000))

    def error(starts: npt.NDArray[np.int64]) -> float:
        return sum(float(((part - part.mean()) ** 2).sum()) for part in np.split(values, starts[1:]))

    whole = error(optimal_starts(values, 5))
    monkeypatch.setattr(microaggregation, "BLOCK", 1000)
    monkeypatch.setattr(microaggregation, "SHORTEST_BLOCK", 300)
    starts = optimal_starts(values, 5)
    sizes = np.diff(np.r_[starts, 4000])
    assert sizes.min() >= 5 and sizes.max() <= 9
    assert whole <= error(starts) < 1.02 * whole


def test_groups_show_means_medians_or_nothing() -> None:
    values = [1.0, 2.0, 6.0, 100.0, 104.0, 111.0, None]
    assert masked(values, NUMERIC, step("microaggregate", k=3))[0].to_pylist() == [3.0] * 3 + [105.0] * 3 + [None]
    median, _ = masked(values, NUMERIC, step("microaggregate", k=3, show="median"))
    assert median.to_pylist() == [3.0] * 3 + [105.0] * 3 + [None]  # 2 and 104 are one person's
    shared, _ = masked([1.0, 2.0, 2.0, 100.0, 100.0, 111.0], NUMERIC, step("microaggregate", k=3, show="median"))
    assert shared.to_pylist() == [2.0] * 3 + [100.0] * 3
    fixed, (report,) = masked(list(range(11)), NUMERIC, step("microaggregate", k=3, method="fixed"))
    assert fixed.to_pylist() == [1] * 3 + [4] * 3 + [8] * 5 and report.facts["largest"] == 5
    assert masked([1.0, 2.0, None], NUMERIC, step("microaggregate", k=3))[0].to_pylist() == [None] * 3


def test_values_that_cancel_out_have_the_same_groups_as_others() -> None:
    values = np.array([-3.0, -2.9, -2.8, 2.8, 2.9, 3.0])
    assert optimal_starts(values, 3).tolist() == optimal_starts(values + 10, 3).tolist() == [0, 3]


@pytest.mark.parametrize("empty", [0, 1, 2, 3])
def test_people_who_show_nothing_are_k_or_the_guarantee_is_gone(empty: int) -> None:
    table = pa.table({name: pa.array([1.0, 2.0, 6.0] + [None] * empty, pa.float64()) for name in "ab"})
    steps = [step("mdav", columns=["a", "b"], k=3)]
    _, (report,) = apply_steps(table, dict.fromkeys("ab", NUMERIC), {}, steps, Resources(key=KEY))
    alone = 0 < empty < 3
    assert report.guarantee == ("none" if alone else "k")
    assert [f"{number_of(empty, 'person', 'people')}, fewer than k" in note for note in report.notes] == [True] * alone


def test_a_column_in_which_all_are_equal_changes_no_group() -> None:
    values = np.random.default_rng(0).normal(size=(40, 2))
    assert not mdav._scaled(np.full((40, 1), 7.0)).any()
    shown = []
    for constant in ([], ["c"]):
        table = pa.table({"a": values[:, 0], "b": values[:, 1], "c": np.full(40, 7.0)})
        steps = [step("mdav", columns=["a", "b", *constant], k=4)]
        shown.append(apply_steps(table, dict.fromkeys("abc", NUMERIC), {}, steps, Resources(key=KEY))[0])
    assert shown[0].equals(shown[1])


def test_rare_values_are_hidden_and_never_alone() -> None:
    values = ["a"] * 9 + ["b"] * 5 + ["c", "d", "e"]
    shown, (report,) = masked(values, CATEGORICAL, step("suppress_rare", k=3))
    assert shown.to_pylist() == ["a"] * 9 + ["b"] * 5 + [None] * 3 and report.guarantee == "k"
    shown, (report,) = masked(values[:-1], CATEGORICAL, step("suppress_rare", k=3, by="other"))
    assert shown.to_pylist() == ["a"] * 9 + ["other"] * 7 and report.facts == {"values_hidden": 3, "rows_hidden": 7}
    already = [*values[:-2], None, None]
    assert masked(already, CATEGORICAL, step("suppress_rare", k=3))[0].to_pylist() == ["a"] * 9 + ["b"] * 5 + [None] * 3


@pytest.mark.parametrize("size", [2.0**-900, 2.0**900])
def test_groups_are_the_same_however_large_or_small_the_numbers_are(size: float) -> None:
    """Squares of such numbers would be infinite or zero."""
    values = np.random.default_rng(1).permutation(np.r_[np.arange(20.0), 50 + np.arange(21.0) ** 2])
    together = [step("mdav", columns=["a", "b"], k=3)]
    for under, steps in (({"a": [step("microaggregate", k=3)]}, []), ({}, together)):
        plain, sized = (
            apply_steps(table, dict.fromkeys("ab", NUMERIC), under, steps, Resources(key=KEY))[0].column("a")
            for table in (
                pa.table({"a": values, "b": values**2}),
                pa.table({"a": values * size, "b": values**2 * size}),
            )
        )
        assert np.allclose(np.array(plain) * size, np.array(sized), rtol=1e-12, atol=0)


def test_exactly_k_people_with_a_value_are_a_group_and_fewer_show_nothing() -> None:
    shown, (report,) = masked([1.0, 2.0, 6.0, None], NUMERIC, step("microaggregate", k=3))
    assert shown.to_pylist() == [3, 3, 3, None] and report.facts == {"groups": 1, "smallest": 3, "largest": 3}
    shown, (report,) = masked([1.0, 2.0, None, None], NUMERIC, step("microaggregate", k=3))
    assert shown.to_pylist() == [None] * 4 and report.facts == {"groups": 0, "rows_hidden": 2}
    shown, (report,) = masked(["a"] * 3 + ["b"] * 3 + ["c"] * 2 + [None], CATEGORICAL, step("suppress_rare", k=3))
    assert shown.to_pylist() == ["a"] * 3 + ["b"] * 3 + [None] * 3
    assert report.facts == {"values_hidden": 1, "rows_hidden": 2}
    for by in (None, "other"):  # two who are hidden are too few, so three more are
        shown, _ = masked(list("aaaabbbcc"), CATEGORICAL, step("suppress_rare", k=3, by=by))
        assert shown.to_pylist() == ["a"] * 4 + [by] * 5


def middle_of(group: FloatArray) -> float:
    """The median of different numbers, which is no single one of them: of the middle two or three the mean."""
    around = len(group) // 2
    return float(group[around - 1 : around + 1 + len(group) % 2].mean())


@pytest.mark.parametrize("show", ["mean", "median"])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_a_group_shows_its_mean_or_median_whether_it_is_even_or_odd(k: int, show: str) -> None:
    values = np.random.default_rng(k).lognormal(0, 2, 4 * k + 1)
    shown, _ = masked(values, NUMERIC, step("microaggregate", k=k, method="fixed", show=show))
    ordered = np.sort(values)
    groups = [*(ordered[start : start + k] for start in range(0, 3 * k, k)), ordered[3 * k :]]
    centre = np.mean if show == "mean" else middle_of
    wanted = np.concatenate([np.full(len(group), centre(group)) for group in groups])
    assert np.array(shown)[np.argsort(values)] == pytest.approx(wanted)


@pytest.mark.parametrize(
    "values",
    [[0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1, 1], [5] * 7, [0] + [1] * 11, [0] * 11 + [1]],
)
def test_equal_values_at_an_end_change_no_optimum(values: list[int]) -> None:
    ordered = np.array(values, dtype=float)
    groups = [set(part) for part in np.split(np.arange(len(values)), optimal_starts(ordered, 3)[1:])]
    best = min(error_of(ordered[:, None], groups) for groups in cuts(len(values), 3))
    assert error_of(ordered[:, None], groups) == pytest.approx(best, abs=1e-12)


def test_of_equal_values_no_group_is_larger_than_it_must_be() -> None:
    assert np.diff([*optimal_starts(np.full(20, 7.0), 3), 20]).max() <= 5
    assert np.diff([*optimal_starts(np.zeros(7), 2), 7]).max() <= 3


def test_blocks_begin_above_their_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.sort(np.random.default_rng(2).normal(size=61))
    whole = optimal_starts(values, 3).tolist()
    monkeypatch.setattr(microaggregation, "SHORTEST_BLOCK", 20)
    for block, parts in ((61, [0, 61]), (60, [0, 20, 40, 61])):
        monkeypatch.setattr(microaggregation, "BLOCK", block)
        pieces = [values[start:end] for start, end in pairwise(parts)]
        starts = [start + first for start, piece in zip(parts, pieces, strict=False)
                  for first in _whole_starts(monkeypatch, piece)]  # fmt: skip
        assert optimal_starts(values, 3).tolist() == starts
        assert (starts == whole) == (block == 61)


def _whole_starts(monkeypatch: pytest.MonkeyPatch, ordered: Floats) -> list[int]:
    with monkeypatch.context() as undone:
        undone.setattr(microaggregation, "BLOCK", 20_000)
        return optimal_starts(ordered, 3).tolist()


def test_mdav_groups_all_together_up_to_its_limit_and_blocks_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(3).normal(size=(60, 2))
    whole = mdav._grouped(points, 3)
    monkeypatch.setattr(mdav, "BLOCK", 20)
    for limit, is_whole in ((60, True), (59, False)):
        monkeypatch.setattr(mdav, "WHOLE", limit)
        assert (mdav_groups(points, 3) == whole).all() == is_whole


def test_blocks_are_halved_along_the_widest_column_until_they_fit() -> None:
    wide = np.random.default_rng(4).permutation(40)
    points = np.column_stack([np.sin(np.arange(40)), wide])
    for most, size in ((40, 40), (39, 20), (20, 20), (19, 10)):
        blocks = mdav._blocks(points, most)
        assert [len(block) for block in blocks] == [size] * (40 // size)
        assert {tuple(block) for block in blocks} == {
            tuple(np.flatnonzero(wide // size == part)) for part in range(40 // size)
        }


def test_where_the_farthest_is_among_the_nearest_the_next_group_is_around_the_first_who_is_left() -> None:
    """All are equally far from the first, who is farthest from the middle."""
    ring = [(65, 0), (63, 16), (63, -16), (60, 25), (60, -25), (56, 33), (56, -33), (52, 39)]
    for seed in range(6):
        points = np.array([(0, 0), *np.random.default_rng(seed).permutation(ring)], dtype=float)
        assert sorted(sets(mdav_groups(points, 2)), key=min) == sorted(plain_mdav(points, 2), key=min)
