"""The expected number of correct links is the analytic one, and draws, wrong cells and control people bear it out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.attack import linkage
from anon_pipeline.attack.candidates import find_candidates
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.targets import Tables, content_order, read_attacked, with_wrong_cells
from anon_pipeline_tests.attack.tables import KNOWLEDGE, QUASI, anonymized, people

GRID = Knowledge(["x", "y"], sensitive=["s"], numeric=["x", "y", "s"])


def grid(n: int = 600, seed: int = 0):
    """People in disjoint boxes of different sizes, nobody equal to anyone."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame({"x": draw.permutation(n) + 0.5, "y": draw.permutation(n) * 1.0, "s": draw.permutation(n)})
    edges = np.r_[0, np.sort(draw.choice(np.arange(5, n), 40, replace=False)), n]
    box = np.searchsorted(edges, table.x, "right") - 1
    released = pd.DataFrame({"x": [f"[{edges[b]}, {edges[b + 1]}[" for b in box], "y": [f"[0, {n}]"] * n, "s": table.s})
    return table, released, len(np.unique(box))


def test_with_disjoint_boxes_the_expected_links_are_the_marketer_risk():
    table, released, groups = grid()
    attacked = read_attacked(Tables(released, table, None, np.arange(600)), GRID)
    complete = linkage.linkage(attacked, 600)[0]
    assert complete.attack.rate == pytest.approx(groups / 600)
    assert complete.details["own_record"] == pytest.approx(groups / 600)
    assert complete.details["marketer_risk"] == pytest.approx(groups / 600)
    assert complete.details["expected_links"] == pytest.approx(groups)
    assert complete.details["own_group_is_best"] == 1
    assert complete.control is None


def test_people_who_were_left_out_of_the_release_have_no_own_record_and_hide_that_of_nobody_else():
    table, released, _ = grid()
    there = released.x != released.x.iloc[0]
    attacked = read_attacked(Tables(released[there], table, None, np.flatnonzero(there)), GRID)
    complete = linkage.linkage(attacked, 600)[0]
    assert complete.details["own_record"] == pytest.approx(released.x[there].nunique() / there.sum())
    assert complete.details["own_group_is_best"] == 1


def test_without_knowing_who_is_behind_a_row_the_expectation_is_the_same_where_kept_values_are_anyones():
    table, released, groups = grid()
    attacked = read_attacked(Tables(released, table), GRID)
    assert linkage.linkage(attacked, 600)[0].attack.rate == pytest.approx(groups / 600)


@pytest.mark.long
def test_links_that_are_drawn_agree_with_those_expected():
    table = people(1500, 1)
    released, classes, origin = anonymized(table)
    found = linkage.linkage(read_attacked(Tables(released, table, None, origin, classes), KNOWLEDGE), 1500)
    for one in found:
        expected, drawn = one.details["expected_links_of_targets"], one.details["drawn_links_of_targets"]
        assert abs(drawn - expected) < 4 * np.sqrt(expected)


@pytest.mark.long
def test_an_anonymized_person_is_found_about_as_often_as_groups_per_person():
    table = people(2000, 1)
    released, classes, origin = anonymized(table)
    attacked = read_attacked(Tables(released, table, people(500, 2), origin, classes), KNOWLEDGE)
    complete = next(one for one in linkage.linkage(attacked, 2000) if "own_record" in one.details)
    risk = len(released.drop_duplicates([*QUASI])) / 2000
    assert 0.6 * risk < complete.details["own_record"] <= risk * 1.01
    assert complete.details["alone"] == 0
    assert complete.control.rate < 0.002


@pytest.mark.long
def test_raw_people_are_linked_and_control_people_are_not():
    table = people(2000, 1)
    origin = np.random.default_rng(0).permutation(2000)
    attacked = read_attacked(Tables(table.iloc[origin], table, people(500, 2), origin), KNOWLEDGE)
    found = {one.name: one for one in linkage.linkage(attacked, 400)}
    assert found["linkage, all quasi-identifiers"].attack.rate > 0.98
    assert found["linkage, all quasi-identifiers"].leak.low > 0.97
    assert found["linkage, all quasi-identifiers"].control.rate < 0.01
    two, wrong = found["linkage, 2 quasi-identifiers"], found["linkage, all quasi-identifiers, 10% wrong"]
    assert 0.5 < two.attack.rate < 0.97
    assert 0.5 < wrong.attack.rate < 0.97
    assert found["linkage, all quasi-identifiers, 5% wrong"].attack.rate > wrong.attack.rate


def test_a_double_counts_as_the_person_for_members_and_control_people_alike():
    table = pd.DataFrame({"x": [1, 1, 1, 2], "s": ["a", "a", "b", "c"]})
    knowledge = Knowledge(["x"], ["s"], numeric=["x"])
    control = pd.DataFrame({"x": [1, 2, 3], "s": ["a", "b", "c"]})
    attacked = read_attacked(Tables(table, table, control, np.arange(4)), knowledge)
    links = linkage.linkage(attacked, 10)[0]
    assert links.attack.rate == pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1) / 4)
    assert links.control.rate == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert links.baseline.rate == pytest.approx((2 + 2 + 1 + 1) / 16)


def test_one_record_is_taken_for_the_persons_where_several_could_be_theirs_in_a_table_of_others():
    """Who is behind a record is unknown there: several that agree in all kept columns are no better than one."""
    table = pd.DataFrame({"x": [1, 1, 1, 2], "s": ["a", "a", "b", "c"]})
    control = pd.DataFrame({"x": [1, 2, 3], "s": ["a", "b", "c"]})
    attacked = read_attacked(Tables(table, table, control), Knowledge(["x"], ["s"], numeric=["x"]))
    links = linkage.linkage(attacked, 10)[0]
    assert links.attack.rate == pytest.approx((1 / 3 + 1 / 3 + 1 / 3 + 1) / 4)
    assert links.control.rate == pytest.approx((1 / 3 + 0 + 1) / 3)
    assert links.baseline.rate == pytest.approx(1 / 4)


def test_cells_are_wrong_as_often_as_they_should_be():
    table = people(3000, 1)
    attacked = read_attacked(Tables(table, table), KNOWLEDGE)
    believed = with_wrong_cells(attacked.members, attacked.release.domains, 0.1, 0)
    distinct = [domain.shares for domain in attacked.release.domains]
    expected = [0.1 * (1 - (shares**2).sum()) for shares in distinct]  # a draw may be right by chance
    np.testing.assert_allclose((believed != attacked.members.codes).mean(axis=0), expected, atol=0.015)


ORDER = [2, 1, 6, 3, 0, 10, 7, 4, 9, 5, 11, 8]


def test_the_targets_drawn_follow_from_their_content_and_the_seed_on_every_machine():
    table = pd.DataFrame({"x": np.arange(12), "c": list("abcabcabcabc")})
    order = content_order(table, 0)
    assert order.tolist() == ORDER
    assert sorted(order) == list(range(12))
    assert content_order(table, 1).tolist() != ORDER
    shuffled = np.random.default_rng(0).permutation(12)
    assert shuffled[content_order(table.iloc[shuffled], 0)].tolist() == ORDER


def test_the_first_people_of_a_few_kinds_are_of_all_kinds() -> None:
    table = pd.DataFrame({"kind": np.repeat(["a", "b", "c", "d"], [400, 300, 200, 100])})
    first = table["kind"].iloc[content_order(table, 0)[:200]].value_counts()
    assert (first - [80, 60, 40, 20]).abs().max() < 25  # four standard deviations of the first


def test_sizes_that_are_not_reported_are_tried_on_a_quarter_of_the_targets(monkeypatch):
    table = people(60, 1)
    tried, attempt = [], linkage._attempt

    def watched(attacked, people, columns, wrong=0.0):
        tried.append((len(columns), len(people)))
        return attempt(attacked, people, columns, wrong)

    monkeypatch.setattr(linkage, "_attempt", watched)
    found = linkage.linkage(read_attacked(Tables(table, table, people(60, 2)), KNOWLEDGE), 40)
    reported = [(size, 40) for size in (2, 3, 5, 5, 5) for _ in range(2)]  # all five thrice: as they are, and wrong
    few = [(4, 10)] * 2 + [(size, 10) for size in (2, 3, 4) for _ in range(2 * linkage.RANDOM_SETS)]
    assert sorted(tried) == sorted(reported + few)
    assert ["marketer_risk" in one.details for one in found] == [False, False, True, False, False]
    assert [one["known"] for one in found[2].details["by_knowledge"]] == [2, 3, 4, 5]


def test_the_most_identifying_columns_come_first():
    codes = np.stack([np.zeros(100), np.arange(100) % 2, np.arange(100) // 2, np.arange(100) // 10], axis=1)
    assert linkage.most_identifying(codes.astype(np.int64)) == [2, 1, 0, 3]


@pytest.mark.long
def test_the_source_order_is_found_even_where_people_were_left_out():
    table = people(400, 1)
    kept = np.flatnonzero(np.random.default_rng(1).random(400) < 0.9)
    released = anonymized(table)[0].sort_index()
    shuffled, _, origin = anonymized(table)
    in_order = shuffled.iloc[np.argsort(origin)].reset_index(drop=True).iloc[kept]
    whole, within = linkage.row_order(read_attacked(Tables(in_order, table, None, kept), KNOWLEDGE))
    assert (whole.attack.rate, whole.verdict, whole.details["neighbours_in_source_order"]) == (1, "leak", 1)
    assert (within.attack.rate, within.verdict) == (1, "leak")
    for one in linkage.row_order(read_attacked(Tables(released, table, None, origin), KNOWLEDGE)):
        assert one.verdict != "leak"
        assert one.leak.low <= 0 <= one.leak.high


def test_an_order_needs_two_people():
    table = pd.DataFrame({"x": [1, 9], "s": ["a", "b"]})
    knowledge = Knowledge(["x"], ["s"], numeric=["x"])
    whole, within = linkage.row_order(read_attacked(Tables(table, table, None, np.arange(2)), knowledge))
    assert (whole.attack.successes, whole.attack.trials, within.attack.trials) == (2, 2, 0)
    assert linkage.row_order(read_attacked(Tables(table[:1], table, None, np.arange(1)), knowledge)) == []


def test_the_order_within_groups_is_found_where_groups_are_sorted():
    table = people(400, 1)
    shuffled, _, origin = anonymized(table)
    order = np.lexsort((origin, *[shuffled[name].astype(str) for name in QUASI]))
    by_group = read_attacked(Tables(shuffled.iloc[order], table, None, origin[order]), KNOWLEDGE)
    whole, within = linkage.row_order(by_group)
    assert whole.attack.rate < 0.1
    assert within.attack.rate == 1
    assert within.verdict == "leak"


@pytest.mark.long
def test_equal_people_who_stand_side_by_side_in_both_orders_are_no_order_that_was_kept():
    """Adult at k = 10 was once said to give away its order: it is sorted by value, its source by a hash."""
    distinct = people(60, 1)[["age", "city", "sex", "ill"]].assign(age=30, city="Ulm", sex="f")
    distinct["ill"] = np.arange(60).astype(str)
    knowledge = Knowledge(["age", "city", "sex"], ["ill"])
    found = []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        table = distinct.loc[np.repeat(draw.permutation(60), draw.permutation(60) % 6 + 1)].reset_index(drop=True)
        origin = np.lexsort((draw.random(len(table)), table["ill"]))
        _, within = linkage.row_order(read_attacked(Tables(table.iloc[origin], table, None, origin), knowledge))
        assert within.details["distinct_people"] == 60
        found.append(within.attack.rate)
    chance = 1 / 60
    assert np.mean(found) == pytest.approx(chance, abs=4 * np.sqrt(chance / 60 / 60))


def test_what_is_looked_up_and_what_is_compared_agree():
    table = people(300, 1).drop(columns=["joined"])
    knowledge = Knowledge(["age", "city", "sex", "member"], ["ill"], numeric=["age"])
    attacked = read_attacked(Tables(table, table), knowledge)
    looked_up = find_candidates(attacked.release, attacked.members.codes)
    as_ranges = table.astype({"age": str})
    as_ranges["age"] = "[" + as_ranges["age"] + ", " + as_ranges["age"] + "]"
    compared = read_attacked(Tables(as_ranges, table), knowledge)
    assert (find_candidates(compared.release, compared.members.codes).records() == looked_up.records()).all()


def noisy(extreme: float | None, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People, and a table of another tool that shows two numbers of each with little noise."""
    draw, n = np.random.default_rng(seed), 400
    table = pd.DataFrame({"x": np.round(draw.lognormal(10.5, 0.4, n)), "y": draw.integers(0, 2000, n) * 1.0})
    if extreme is not None:
        table.loc[0, "x"] = extreme
    released = table.assign(x=table.x * (1 + draw.normal(0, 0.02, n)), y=table.y + draw.normal(0, 20, n))
    return table, released.round()


def test_a_lone_extreme_does_not_hide_all_others_from_who_looks_for_near_numbers():
    """One income of 100 million made all others near to each other: .16 were found in place of .73."""
    found = []
    for extreme in (None, 1e8):
        table, released = noisy(extreme, 3)
        attacked = read_attacked(
            Tables(released, table, None, np.arange(400)), Knowledge(["x", "y"], numeric=["x", "y"])
        )
        found.append(linkage.linkage(attacked, 400)[0].attack.rate)
    assert found[0] > 0.65 and abs(found[1] - found[0]) < 0.02
