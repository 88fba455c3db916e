"""Singling out, inference, membership, minimality and intersection: what each counts, on tables small enough to see."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from anon_pipeline.attack import inference, minimality, singling_out
from anon_pipeline.attack.boxes import Domain
from anon_pipeline.attack.candidates import find_candidates
from anon_pipeline.attack.intersection import Earlier, intersection
from anon_pipeline.attack.membership import membership
from anon_pipeline.attack.rates import LEAK
from anon_pipeline.attack.released import Knowledge, _group_of_class
from anon_pipeline.attack.targets import Tables, read_attacked
from anon_pipeline_tests.attack.tables import KNOWLEDGE, anonymized, people


def boxed(sizes: list[int], values: list[list]) -> tuple[pd.DataFrame, pd.DataFrame, Knowledge]:
    """People 0, 1, ... in consecutive boxes of these sizes, and their sensitive values."""
    x = np.arange(sum(sizes))
    box = np.repeat(np.arange(len(sizes)), sizes)
    ends = np.r_[0, np.cumsum(sizes)]
    sensitive = [value for group in values for value in group]
    table = pd.DataFrame({"x": x, "s": sensitive})
    released = pd.DataFrame({"x": [f"[{ends[b]}, {ends[b + 1] - 1}]" for b in box], "s": sensitive})
    ordered = not isinstance(sensitive[0], str)
    return table, released, Knowledge(["x"], ["s"], numeric=["x", "s"] if ordered else ["x"])


# --- inference


def test_the_guess_is_the_most_frequent_value_of_the_group():
    table, released, knowledge = boxed([3, 3, 2], [list("aab"), list("bbb"), list("ac")])
    control = pd.DataFrame({"x": [0, 4, 7], "s": ["a", "a", "a"]})
    within = inference.inference(read_attacked(Tables(released, table, control), knowledge), 10)[0]
    # Right are 2 of 3, 3 of 3, and 1 of 2: on a tie the value more frequent in the release, a (3 times) before c.
    assert within.attack.rate == pytest.approx(6 / 8)
    assert within.control.rate == pytest.approx(2 / 3)
    assert within.baseline.rate == pytest.approx(4 / 8)  # b, the most frequent
    assert within.details["in_homogeneous_groups"] == pytest.approx(3 / 8)
    assert within.details["guess_certain"] == pytest.approx(3 / 8)
    assert within.details["right_where_certain"] == 1


def test_a_missing_value_makes_no_group_diverse():
    table, released, knowledge = boxed([3, 3], [["a", "a", None], ["a", "b", None]])
    for answers, alike in (((), 0.5), (("s",), 0)):
        known = dataclasses.replace(knowledge, answers=answers)
        within = inference.inference(read_attacked(Tables(released, table), known), 10)[0]
        assert within.details["in_homogeneous_groups"] == alike


def test_numbers_are_guessed_within_equally_frequent_intervals():
    values = list(range(100))
    table, released, knowledge = boxed([10] * 10, [values[i : i + 10] for i in range(0, 100, 10)])
    within, *_ = inference.inference(read_attacked(Tables(released, table), knowledge), 100)
    assert within.details["labels"] == 5
    assert within.attack.rate == pytest.approx(0.96, abs=0.05)
    assert within.baseline.rate == pytest.approx(0.2, abs=0.02)


def test_numbers_are_cut_where_they_are_many_and_categories_never_are():
    values = list(range(100))
    numbers = read_attacked(Tables(*boxed([100], [values])[1::-1]), boxed([100], [values])[2])
    label = inference.outcome(numbers, 0, numbers.members, None).label
    assert sorted(np.bincount(label[1:]).tolist()) == [19, 20, 20, 20, 21]
    assert (np.flatnonzero(np.diff(label[1:])) == [20, 40, 60, 80]).all()  # neighbours are labelled alike
    few = read_attacked(Tables(*boxed([100], [[0, 1] * 50])[1::-1]), boxed([100], [[0, 1] * 50])[2])
    assert inference.outcome(few, 0, few.members, None).labels == 2
    texts = [f"v{value:02}" for value in values]
    named = read_attacked(Tables(*boxed([100], [texts])[1::-1]), boxed([100], [texts])[2])
    assert inference.outcome(named, 0, named.members, None).labels == 100


def test_where_most_values_are_missing_they_tell_nobody_apart_either():
    table, released, knowledge = boxed([3, 3], [["a", None, None], ["b", "c", None]])
    within = inference.inference(read_attacked(Tables(released, table), knowledge), 10)[0]
    assert within.details["in_homogeneous_groups"] == 0.5


def test_a_model_learns_from_the_columns_that_tell_something():
    table, released, knowledge = boxed([5] * 80, [["a"] * 5] * 40 + [["b"] * 5] * 40)
    table["y"], released["y"] = 7, "[0, 9]"
    known = dataclasses.replace(knowledge, quasi_identifiers=["x", "y"], numeric=["x", "y"])
    across = inference.inference(read_attacked(Tables(released, table), known), 400)[1]
    assert across.attack.rate > 0.95 > across.baseline.rate + 0.3


def test_similar_values_are_claimed_only_where_the_range_is_narrow():
    values = [list(range(10)), list(range(100, 110)), [0, *range(200, 280)]]
    table, released, knowledge = boxed([10, 10, 81], values)
    attacked = read_attacked(Tables(released, table, pd.DataFrame({"x": [5, 15, 30], "s": [5, 7, 250]})), knowledge)
    similar = next(one for one in inference.inference(attacked, 200) if one.name == "similarity: s")
    assert similar.attack.rate == pytest.approx(10 / 101)  # of the first group 11 of 101 have such a value: too many
    assert similar.control.rate == 0
    assert similar.details["in_narrow_groups"] == pytest.approx(10 / 101)


def test_zeros_that_most_people_have_are_not_similar_values():
    table, released, knowledge = boxed([50, 50], [[0] * 50, [0] * 40 + list(range(1, 11))])
    similar = next(
        one
        for one in inference.inference(read_attacked(Tables(released, table), knowledge), 100)
        if one.name == "similarity: s"
    )
    assert similar.attack.rate == 0


def test_people_with_a_rare_value_are_named_by_their_groups():
    table, released, knowledge = boxed([50, 50, 50], [["y"] * 15 + ["n"] * 35, ["n"] * 50, ["n"] * 50])
    skew = next(
        one
        for one in inference.inference(read_attacked(Tables(released, table), knowledge), 150)
        if one.name == "skewness: s"
    )
    # 15 people are named, by lot among the 50 of the first group.
    assert skew.attack.rate == pytest.approx(15 / 50)
    assert skew.baseline.rate == pytest.approx(0.1)
    assert skew.details["largest_gain"] == pytest.approx(0.3 - 0.1)


def test_rare_are_the_largest_tenth_of_numbers_and_the_rarest_category_that_is_not_scarce():
    numbers = Domain.learn("n", True, [pd.Series(range(100))])
    assert np.flatnonzero(inference.rare_codes(numbers, np.arange(1, 101))).tolist() == list(range(91, 101))
    zeros = np.r_[np.zeros(95, int) + 1, 2, 3, 4, 5, 6]
    assert np.flatnonzero(inference.rare_codes(numbers, zeros))[0] == 2
    thirds = np.r_[[1] * 3, [50] * 3, [51] * 3]  # where more than a tenth has the largest, it alone
    assert np.flatnonzero(inference.rare_codes(numbers, thirds)).tolist() == list(range(51, 101))
    category = Domain.learn("c", False, [pd.Series(["a", "b", "c"])])
    codes = np.r_[np.full(1000, 1), np.full(100, 2), 3]
    assert np.flatnonzero(inference.rare_codes(category, codes)).tolist() == [2]


@pytest.mark.parametrize("seed", range(6))
def test_rare_values_are_those_of_a_slow_search(seed):
    draw = np.random.default_rng(seed)
    codes = draw.choice(13, 200, p=draw.dirichlet(np.full(13, 0.5)))  # 0 is missing, and never rare
    n = Domain.learn("n", True, [pd.Series(range(12))])
    shares = [(codes >= code).mean() for code in range(13)]
    within = [code for code in range(1, 13) if 0 < shares[code] <= inference.RARE]
    start = within[0] if within else codes.max()
    assert inference.rare_codes(n, codes).tolist() == [code >= start for code in range(13)]
    c = Domain.learn("c", False, [pd.Series(list("abcdefghijkl"))])
    counted = np.bincount(codes, minlength=13)
    enough = [code for code in range(1, 13) if counted[code] >= inference.SCARCE * 200]
    rarest = min(enough, key=lambda code: (counted[code], code))
    assert np.flatnonzero(inference.rare_codes(c, codes)).tolist() == [rarest]
    with_missing = [code for code in range(13) if counted[code] >= inference.SCARCE * 200]
    rarest = min(with_missing, key=lambda code: (counted[code], code))  # a missing value that is an answer may be
    assert np.flatnonzero(inference.rare_codes(c, codes, ["c"])).tolist() == [rarest]


def test_of_people_with_a_rare_value_those_with_the_highest_scores_are_named():
    truth = np.array([True, True, False, True, False, False, False, False, False, False])
    score = np.array([9.0, 5, 8, 5, 5, 1, 1, 1, 1, 1])
    attack, control, blind = inference.named_rare([score], [truth], 0.3)  # the 9, the 8, and one of three by lot
    assert (attack.rate, attack.trials, control) == (pytest.approx((1 + 2 / 3) / 3), 3, None)
    assert (blind.rate, blind.trials) == (0.3, 3)
    nobody, everybody = (inference.named_rare([score, score], [truth, truth], share) for share in (0.0, 1.0))
    assert nobody[0].rate == nobody[1].rate == 0 and everybody[0].rate == everybody[1].rate == 1


def test_conditions_on_a_column_are_its_single_values_and_its_single_ends():
    def told(codes, ordered):
        conditions = singling_out._on_column(3, np.array(codes), 6, ordered)
        assert all(condition.columns == (3,) for condition in conditions)
        return [np.flatnonzero(condition.masks[0]).tolist() for condition in conditions]

    assert told([0, 2, 3, 3, 4], True) == [[2], [4], [4, 5], [1, 2]]
    assert told([0, 2, 3, 3, 4], False) == [[2], [4]]
    assert told([2, 2, 3, 5, 5, -1], True) == [[3]]
    assert told([0, -1, -1], True) == []


def test_of_a_column_without_values_only_the_missing_cell_is_known():
    domain = Domain.learn("n", True, [pd.Series([np.nan, np.nan])])
    assert domain.encode(pd.Series([np.nan, 3.0])).tolist() == [0, -1]


def test_rare_is_the_largest_value_of_the_release_where_even_that_is_frequent():
    domain = Domain.learn("n", True, [pd.Series(range(1, 6))])  # control people have larger ones
    assert np.flatnonzero(inference.rare_codes(domain, np.array([1, 2] * 50))).tolist() == [2, 3, 4, 5]


def test_classes_that_no_row_shows_belong_to_no_group():
    domain = Domain.learn("c", False, [pd.Series(["a", "b"])])
    released = pd.DataFrame({"c": ["a", "b"]})
    for column, groups in (("c", [1, -1, 0]), ("other", [-1, -1, -1])):
        classes = pd.DataFrame({column: ["b", "c", "a"]})
        assert _group_of_class(classes, released, [domain], [["a", "b"]]).tolist() == groups


@pytest.mark.long
def test_a_model_learns_across_groups_what_statistics_tell():
    table, control = people(1500, 1), people(800, 2)
    for frame in (table, control):
        frame["ill"] = np.where(frame.age > 60, "yes", "no")
    released, classes, origin = anonymized(table)
    found = inference.inference(read_attacked(Tables(released, table, control, origin, classes), KNOWLEDGE), 800)
    across = next(one for one in found if one.name == "inference across groups: ill")
    assert min(across.attack.rate, across.control.rate) > 0.9 > across.baseline.rate
    assert across.leak.low <= 0


# --- singling out


def test_a_condition_singles_out_whom_it_should():
    table, released, knowledge = boxed([3, 3], [list("aab"), list("bbc")])
    attacked = read_attacked(Tables(released, table), knowledge)
    conditions = singling_out.multivariate(attacked)
    # Alone with their group and value: b in the first, c in the second.
    assert singling_out.matches(conditions, attacked.members).tolist() == [1, 1]
    one_column = singling_out.univariate(attacked)
    assert len(one_column) == 1  # c; ranges are no values
    assert singling_out.matches(one_column, attacked.members).tolist() == [1]
    wider = pd.concat([table, pd.DataFrame({"x": [1], "s": ["b"]})], ignore_index=True)
    attacked = read_attacked(Tables(released, wider), knowledge)
    assert sorted(singling_out.matches(singling_out.multivariate(attacked), attacked.members)) == [1, 2]


def test_the_columns_that_single_out_are_named():
    table = pd.DataFrame({"x": [1, 1, 1, 1], "s": list("aabb"), "t": [1, 2, 3, 3]})
    attacked = read_attacked(Tables(table, table), Knowledge(["x"], ["s", "t"], numeric=["x", "t"]))
    one, every = singling_out.singling_out(attacked)
    assert one.details["by_column"] == {"t": 3}  # the only 1, the only 2, and up to 1
    # The first two rows are alone by both columns together, and by t already.
    assert every.details["by_column"] == {"s": 0.0, "t": 1.0}


def test_the_extremes_of_a_column_are_conditions():
    table = pd.DataFrame({"x": [1, 1, 5, 5, 9], "s": [1, 1, 1, 1, 1]})
    attacked = read_attacked(Tables(table, table), Knowledge(["x"], ["s"], numeric=["x", "s"]))
    conditions = singling_out.univariate(attacked)
    assert len(conditions) == 2  # the only 9, and from 9 on
    assert singling_out.matches(conditions, attacked.members).tolist() == [1, 1]


@pytest.mark.long
@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("control", [100, 500, 1000])
def test_luck_is_foretold_for_a_larger_population(spread, control):
    draw = np.random.default_rng(control)
    covered = []
    for _ in range(60):
        weights = np.exp(spread * draw.normal(size=300)) / 1000
        truth = (1000 * weights * np.exp(-1000 * weights)).mean()
        luck = singling_out.by_luck(draw.poisson(control * weights), control, 1000)
        covered.append(luck.low <= truth <= luck.high + 1e-6)
    assert np.mean(covered) >= 0.9  # of 60 samples, where 95 % are promised


@pytest.mark.parametrize("counts", [[0, 1, 1, 0], [0, 0, 0, 4, 1, 0, 0, 2]])
def test_luck_is_estimated_as_if_weights_were_gamma_distributed(counts):
    """Where counts vary no more than by chance all weights are one; of other conditions the rest is too common."""
    mean, variance, scale, others = np.mean(counts), np.var(counts), 0.5, 3
    expected = stats.poisson.pmf(1, mean / scale)
    if variance > mean:
        shape = mean**2 / (variance - mean)
        expected = stats.nbinom.pmf(1, shape, shape / (shape + mean / scale))
    found = singling_out._gamma_estimate(np.array(counts), len(counts) + others, scale)
    assert found == pytest.approx(expected * len(counts) / (len(counts) + others))


def test_luck_is_an_estimate_within_an_interval():
    counts = np.random.default_rng(1).poisson(1.0, 400)
    luck = singling_out.by_luck(counts, 1000, 1000)
    assert 0 < luck.low < luck.rate < luck.high < 1
    assert (luck.successes, luck.trials) == (pytest.approx(luck.rate * 400), 400)


def test_counts_that_chance_cannot_have_made_leave_everything_possible():
    luck = singling_out.by_luck(np.ones(2000, dtype=np.int64), 500, 5000)
    assert (luck.low, luck.high) == (0, pytest.approx(np.exp(-1)))


def test_luck_is_small_where_no_control_person_meets_a_condition():
    luck = singling_out.by_luck(np.zeros(400, dtype=np.int64), 500, 5000)
    assert luck.rate == 0
    assert luck.high < 0.2


def test_luck_is_small_where_many_control_people_meet_every_condition():
    """Of 100 people 40 meet each, and so some 400 of 1,000."""
    luck = singling_out.by_luck(np.full(400, 40, dtype=np.int64), 100, 1000)
    assert luck.rate == 0
    assert luck.high < 0.01


# --- membership


def test_raw_rows_tell_who_is_in_and_ranges_of_everyone_do_not():
    table, control = people(800, 1), people(400, 2)
    raw = membership(read_attacked(Tables(table, table, control), KNOWLEDGE), 400)[0]
    assert raw.attack.rate > 0.95
    assert raw.control.rate < 0.05
    assert raw.details["auc"].value > 0.97
    assert raw.verdict == LEAK
    released, classes, _ = anonymized(table, k=200)
    hidden = membership(read_attacked(Tables(released, table, control, None, classes), KNOWLEDGE), 400)[0]
    assert hidden.verdict != LEAK
    assert 0.4 < hidden.details["auc"].value < 0.6


@pytest.mark.parametrize(("others", "first_is_better"), [((150, 100), True), ((450, 50), False)])
def test_a_group_with_fewer_records_than_people_in_the_register_is_less_likely_theirs(others, first_is_better):
    def people_of(first, second):
        return pd.DataFrame({"x": np.r_[np.arange(first) % 50, 50 + np.arange(second) % 50]})

    table, control = people_of(300, 100), people_of(*others)
    released = pd.DataFrame({"x": [f"[{v // 50 * 50}, {v // 50 * 50 + 49}]" for v in table.x]})
    found = membership(read_attacked(Tables(released, table, control), Knowledge(["x"], numeric=["x"])), 600)[0]
    member, other = 300 / 400, others[0] / sum(others)  # shares in the first group
    won = member * (1 - other) if first_is_better else (1 - member) * other
    tied = member * other + (1 - member) * (1 - other)
    assert found.details["auc"].value == pytest.approx(won + tied / 2, abs=0.03)
    assert found.details["auc_of_fit_alone"].value == pytest.approx(0.5)


# --- minimality


def test_a_shape_that_betrays_a_rare_value_is_found():
    draw = np.random.default_rng(0)
    sizes = draw.choice([10, 20], 150, p=[0.8, 0.2]).tolist()
    # The anonymizer doubles a group where somebody in it has the rare value.
    values = [["y"] * 8 + ["n"] * 12 if size == 20 else ["n"] * 10 for size in sizes]
    table, released, knowledge = boxed(sizes, values)
    control = table.sample(frac=1, random_state=0).assign(s=draw.permutation(table.s))
    attacked = read_attacked(Tables(released, table, control), knowledge)
    found = minimality.minimality(attacked, 2000)[0]
    assert found.verdict == LEAK
    assert found.attack.rate > 1.3 * found.baseline.rate


@pytest.mark.parametrize(("size", "groups", "findings"), [(2, 40, 1), (2, 39, 0), (1, 60, 0)])
def test_shapes_are_learned_from_enough_groups_of_more_than_one_person(size: int, groups: int, findings: int):
    table, released, knowledge = boxed(
        [size] * groups, [["y"] * (g % 5 == 0) + ["n"] * (size - (g % 5 == 0)) for g in range(groups)]
    )
    control = table.sample(frac=1, random_state=0)
    assert len(minimality.minimality(read_attacked(Tables(released, table, control), knowledge), 100)) == findings


@pytest.mark.long
def test_what_a_model_has_by_heart_of_its_own_groups_is_no_finding():
    gaps = []
    for seed in range(6):
        draw = np.random.default_rng(seed)
        sizes = draw.integers(3, 9, 300).tolist()
        table, released, knowledge = boxed(sizes, [draw.choice(["y", "n"], s, p=[0.13, 0.87]).tolist() for s in sizes])
        control = table.assign(s=draw.permutation(table.s))
        found = minimality.minimality(read_attacked(Tables(released, table, control), knowledge), 2000)[0]
        gaps.append(found.attack.rate - found.control.rate)
    assert abs(np.mean(gaps)) < 0.03


def test_without_any_shape_that_differs_the_other_half_has_the_share_of_all():
    shares, sizes = np.arange(20) / 20, np.arange(1, 21)
    predicted = minimality._cross_predicted(np.ones((20, 3)), shares, SimpleNamespace(sizes=sizes), 0)
    first, second = np.unique(predicted)
    for told, learned in ((first, predicted == second), (second, predicted == first)):
        assert told == pytest.approx((shares * sizes)[learned].sum() / sizes[learned].sum())


def test_a_model_learns_the_share_of_each_group_that_is_rare(monkeypatch):
    values = [["y"] * (number % 3) + ["n"] * (4 - number % 3) for number in range(60)]
    table, released, knowledge = boxed([4] * 60, values)
    learned = []
    cross = minimality._cross_predicted
    monkeypatch.setattr(
        minimality,
        "_cross_predicted",
        lambda shapes, shares, *more: learned.append(shares) or cross(shapes, shares, *more),
    )
    minimality.minimality(read_attacked(Tables(released, table), knowledge), 100)
    assert sorted(learned[0].tolist()) == [0.0] * 20 + [0.25] * 20 + [0.5] * 20


def test_groups_of_one_shape_count_by_their_records():
    both = SimpleNamespace(unit=np.zeros(2, dtype=int), sizes=np.array([40]), best=sparse.csr_array([[1]]))
    both.records = lambda: np.array([40])
    release = SimpleNamespace(sizes=np.array([10, 30]))
    assert minimality._of_people(np.array([0.2, 0.6]), both, release).tolist() == [0.5]


# --- intersection


def test_two_groupings_of_the_same_people_leave_fewer_candidates():
    n = 60
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"x": draw.permutation(n), "y": draw.permutation(n), "s": [f"v{i}" for i in range(n)]})
    by_x = pd.DataFrame({"x": [f"[{v // 6 * 6}, {v // 6 * 6 + 5}]" for v in table.x], "y": "*", "s": table.s})
    by_y = pd.DataFrame({"x": "*", "y": [f"[{v // 6 * 6}, {v // 6 * 6 + 5}]" for v in table.y], "s": table.s})
    knowledge = Knowledge(["x", "y"], ["s"], numeric=["x", "y"])
    attacked = read_attacked(Tables(by_x, table, None, np.arange(n)), knowledge)
    assert (find_candidates(attacked.release, attacked.members.codes).records() == 6).all()
    found = intersection(attacked, [Earlier(by_y)], table, None, n)[0]
    both = [((table.x // 6 == x // 6) & (table.y // 6 == y // 6)).sum() for x, y in zip(table.x, table.y, strict=True)]
    assert found.attack.rate == pytest.approx(np.mean(1 / np.array(both)))
    assert found.details["alone"] == pytest.approx(np.mean(np.array(both) == 1))
    assert found.details["alone_without_earlier"] == 0
    assert found.details["fewer_than_smallest_group"] == pytest.approx(np.mean(np.array(both) < 6))
    assert intersection(attacked, [], table, None, n) == []
    assert found.control is None
    others = pd.DataFrame({"x": [0, 59], "y": [0, 59], "s": ["v0", "v1"]})
    beside = read_attacked(Tables(by_x, table, others, np.arange(n)), knowledge)
    assert intersection(beside, [Earlier(by_y)], table, others, n)[0].control.trials == 2


def test_an_earlier_release_without_kept_columns_narrows_nothing():
    table, released, knowledge = boxed([5, 5], [list("abcde"), list("abcde")])
    attacked = read_attacked(Tables(released, table, None, np.arange(10)), knowledge)
    found = intersection(attacked, [Earlier(released.drop(columns="s"))], table, None, 10)[0]
    assert found.attack.rate == pytest.approx(1 / 5)
