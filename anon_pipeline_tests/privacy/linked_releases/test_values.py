"""Demands on what is left of classes of rows less groups of a table, however many people that is."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.alpha_k import AlphaKAnonymity
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.beta_likeness import BetaLikeness
from anon_pipeline.privacy.delta_disclosure import DeltaDisclosure
from anon_pipeline.privacy.k_map import KMap
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.linked_releases.classes import CountedColumn, KeptValues, LinkedClasses, known_by_difference
from anon_pipeline.privacy.linked_releases.demands import failing_demands
from anon_pipeline.privacy.linked_releases.tables import NOT_IN
from anon_pipeline.privacy.linked_releases.values import failing_beside_groups
from anon_pipeline.privacy.t_closeness import TCloseness
from anon_pipeline_tests.privacy.linked_releases.test_demands import DEMANDS

TWO = LDiversity(column="ill", l=2)
#: 24 people of 30, of whom half are ill, twelve of 31, of whom nobody is, and 24 of 40, of whom half are.
AGES, ILL = np.repeat([0, 1, 2], [24, 12, 24]), np.r_[[1, 0] * 12, [0] * 12, [1, 0] * 12]


def rows(classes: Sequence[int] | IntArray, ill: Sequence[int] | IntArray, *demands: PrivacyModel) -> LinkedClasses:
    """Rows that show these values of people in these classes."""
    values = tuple("abcdef"[: int(max(ill)) + 1])
    return LinkedClasses(np.array(classes), 10, demands=demands, protected={"ill": KeptValues(np.array(ill), values)})


def table(groups: Sequence[int] | IntArray, hidden: Sequence[int] = ()) -> LinkedClasses:
    """A table by these groups and by illness, which shows all people but some."""
    published = ~np.isin(np.arange(len(groups)), hidden)
    counted = CountedColumn(np.array(groups), published, np.zeros(len(groups), dtype=np.int64))
    return LinkedClasses(np.array(groups), 10, published={"ill": counted})


def failing(candidate: LinkedClasses, others: Sequence[LinkedClasses], groups: LinkedClasses) -> list[int]:
    return [of.people for of in failing_beside_groups(candidate, others, groups)]


@pytest.mark.parametrize("demand", DEMANDS, ids=lambda demand: demand.name)
def test_a_class_less_a_group_leaves_people_of_one_value(demand: PrivacyModel) -> None:
    """The class of those who are 30 and 31 less the group of 30: twelve people of 31, of whom nobody is ill."""
    by_class, by_group = rows(AGES // 2, ILL, demand), table(np.minimum(AGES, 1))
    assert known_by_difference(by_class, by_group) == 0
    for candidate, others in ((by_class, []), (by_group, [by_class])):
        (found,) = failing_beside_groups(candidate, others, by_group)
        assert (found.people, found.is_counted, found.demand) == (12, True, demand.demand())
        assert (candidate, *others)[found.of] is by_class


def test_the_same_groups_coarser_ones_and_other_columns_tell_nothing() -> None:
    by_class = rows(AGES // 2, ILL, TWO)
    for groups in (AGES // 2, np.zeros(60), np.r_[AGES[:36], np.repeat([2, 3], 12)]):
        by_group = table(groups.astype(np.int64))
        assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == []
    by_group = replace(table(np.minimum(AGES, 1)), published={})  # it does not say who is ill
    assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == []


def test_a_code_from_which_the_column_follows_tells_it() -> None:
    """The table has no diagnosis and a code of it, with two codes of those who are not ill."""
    by_class, groups = rows(AGES // 2, ILL, TWO), np.minimum(AGES, 1)
    for codes, told in ((np.where(ILL == 1, 0, 1 + np.arange(60) % 2), [12]), (np.arange(60) % 4 // 2, [])):
        counted = CountedColumn(groups, np.ones(60, dtype=bool), codes)
        by_group = replace(table(groups), published={"code": counted})
        assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == told


def test_what_the_table_tells_alone_is_not_held_against_either() -> None:
    """Of those who are 31 nobody is ill: the table shows that."""
    by_class, by_group = rows(AGES // 2, ILL, TWO), table(AGES)
    assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == []


def test_but_a_larger_share_is() -> None:
    """Eight of ten of a group are ill; of the six who are in a class with them all are."""
    most = AlphaKAnonymity(column="ill", alpha=0.75, k=2)
    ill = np.array([1, 0] * 6 + [1] * 6 + [1, 1, 0, 0])
    by_class, by_group = rows(np.repeat([0, 1], [18, 4]), ill, most), table(np.repeat([0, 1], [12, 10]))
    assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == [6]
    milder = table(np.repeat([0, 1, 2], [12, 6, 4]))  # it tells of these six alone
    assert failing(by_class, [], milder) == failing(milder, [by_class], milder) == []


def test_a_group_that_is_told_does_not_make_others_fail() -> None:
    """With a group of which all are ill, a class of which half are: together more than the demand allows."""
    most = AlphaKAnonymity(column="ill", alpha=0.75, k=2)
    ill = np.array([1] * 10 + [1, 0] * 5 + [0] * 10)
    by_class, by_group = rows(np.repeat([0, 1], [20, 10]), ill, most), table([0] * 10 + [1] * 20)
    assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == []


def test_nor_does_a_part_of_it_beside_people_who_hold() -> None:
    """A class has twenty of forty people of whom the table shows 80 % ill, ten of 70 %, and a group of twenty."""
    most = AlphaKAnonymity(column="ill", alpha=0.75, k=2)
    ill = np.repeat([1, 0, 1, 0, 1, 0, 1, 0], [16, 4, 7, 3, 5, 15, 16, 4])
    by_class = rows(np.repeat([0, NOT_IN], [50, 20]), ill, most)
    assert failing(by_class, [], table(np.repeat([0, NOT_IN, 1, 0], [20, 10, 20, 20]))) == []


def test_whoever_is_in_a_group_of_one_value_is_subtracted_alone() -> None:
    """Of a class of twelve one is ill, and eleven are in a group of fifteen of which nobody is: it is the last one."""
    by_class = rows(np.repeat([0, 1], [12, 14]), np.r_[1, [0] * 15, [1, 0] * 5], TWO)
    by_group = table(np.r_[1, [0] * 15, [1] * 10])
    assert known_by_difference(by_class, by_group) == 0
    assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == [1]
    diverse = replace(by_class, protected={"ill": KeptValues(np.r_[1, [0] * 14, [1, 0] * 5, 1], ("no", "yes"))})
    assert failing(diverse, [], by_group) == []  # the group is of two values


def test_so_is_whoever_is_in_a_class_of_one_value() -> None:
    """A group of twelve, of whom eleven are in a class of fifteen that is homogeneous, as its spec allows."""
    first = rows(np.r_[1, [0] * 15, [1] * 10], np.r_[1, [0] * 15, [1, 0] * 5])
    linked = rows(np.zeros(26, dtype=int), np.r_[1, [0] * 15, [1, 0] * 5], TWO)
    by_group = table(np.repeat([0, 1], [12, 14]))
    assert failing(by_group, [first, linked], by_group) == [1]


def test_who_has_a_value_is_known_where_all_of_them_are_shown_or_all_others() -> None:
    """A group hides some people: it is known how many of it are ill, or it is not."""
    by_class, groups = rows(AGES // 2, ILL, TWO), np.minimum(AGES, 1)
    ill, well = np.flatnonzero(ILL == 1), np.flatnonzero(ILL == 0)
    for hidden, told in ((ill, [12]), (well, [12]), (np.r_[ill[::2], well[::3]], [])):
        by_group = table(groups, hidden.tolist())
        assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == told


def test_rows_of_two_releases_are_linked_first() -> None:
    """Of 24 who share both classes a group has half, of whom half are ill; nobody of the others is."""
    cells = np.repeat(np.arange(5), [12, 12, 24, 24, 24])
    ill = np.r_[[1, 0] * 6, [0] * 12, [1, 0] * 36]
    by_age, by_town = rows(np.isin(cells, [0, 1, 2]).astype(int), ill, TWO), rows(cells % 3 == 2, ill)
    by_town = replace(by_town, classes=np.isin(cells, [0, 1, 3]).astype(np.int64))
    by_group = table((cells > 0).astype(np.int64))
    assert failing_demands(by_age, [by_town]) == []
    assert failing(by_age, [], by_group) == failing(by_town, [], by_group) == []
    for candidate, others in ((by_age, [by_town]), (by_town, [by_age]), (by_group, [by_age, by_town])):
        (found,) = failing_beside_groups(candidate, others, by_group)
        assert found.people == 12 and (candidate, *others)[found.of] is by_age


def test_what_others_tell_without_the_candidate_is_not_held_against_it() -> None:
    by_class, by_group = rows(AGES // 2, ILL, TWO), table(np.minimum(AGES, 1))
    everybody = rows(np.zeros(60, dtype=int), ILL, TWO)
    assert failing(everybody, [by_class], by_group) == []
    assert failing(by_class, [everybody], by_group) == [12, 12]


def test_others_who_show_less_of_the_column_do_not_tell_it() -> None:
    by_class, by_group = rows(AGES // 2, np.zeros(60, dtype=int)), table(np.minimum(AGES, 1))
    assert failing(rows(np.zeros(60, dtype=int), ILL, TWO), [by_class], by_group) == [12]


def test_a_demand_on_a_population_is_not_asked_beside_a_table() -> None:
    by_class = rows(AGES // 2, ILL, KMap(k=20, population="register.csv"))
    assert failing(by_class, [], table(np.minimum(AGES, 1))) == []


def test_who_is_in_no_class_is_what_a_group_has_more() -> None:
    """A demand is asked of the people of its own release, and a group that is not within its classes stays."""
    classes = np.where(AGES == 1, NOT_IN, AGES)
    by_class, by_group = rows(classes, ILL, TWO), table(np.minimum(AGES, 1))
    assert failing(by_class, [], by_group) == []
    by_class = rows(np.where(AGES == 2, NOT_IN, 0), ILL, TWO)
    assert failing(by_class, [], by_group) == [12]
    assert failing(by_class, [], table(np.minimum(AGES, 1), np.flatnonzero(AGES == 0).tolist())) == []
    half = (np.arange(60) % 2 == 0) & (AGES != 1)
    assert failing(rows(np.where(half, NOT_IN, AGES // 2), ILL, TWO), [], by_group) == []


def test_values_that_steps_draw_cannot_be_counted() -> None:
    by_group = table(np.minimum(AGES, 1))
    drawn = replace(rows(AGES // 2, ILL, TWO), protected={})
    (found,) = failing_beside_groups(drawn, [], by_group)
    assert (found.people, found.is_counted) == (60, False)


@pytest.mark.long
def test_values_are_asked_as_the_demand_sees_them() -> None:
    """Twelve numbers of twelve people lie in one interval; of twelve people only one has a known value."""
    numbers = np.r_[np.arange(12), np.arange(112, 124), np.arange(24, 36), np.arange(12), np.arange(112, 124)]
    values, codes = np.unique(numbers, return_inverse=True)
    column = KeptValues(codes, tuple(values.tolist()), ordered=True)
    by_group = table(np.minimum(AGES, 1))
    for demand, told in ((TWO, []), (LDiversity(column="ill", l=2, bins=(100.0,)), [12])):
        by_class = replace(rows(AGES // 2, ILL, demand), protected={"ill": column})
        assert failing(by_class, [], by_group) == told
    gaps = KeptValues(np.where(AGES == 1, np.r_[[1] * 25, [0] * 35], ILL + 1), (None, "no", "yes"))
    by_class = replace(rows(AGES // 2, ILL, TWO), protected={"ill": gaps})
    assert failing(by_class, [], by_group) == [12]
    answers = replace(by_class, protected={"ill": replace(gaps, missing_is_a_value=True)})
    assert failing(answers, [], by_group) == []


def by_definition(by_class: IntArray, by_group: IntArray, ill: IntArray, alpha: float) -> bool:
    """Whether some union tells more than a share, by the definition: every union of joint cells is tried."""
    joint = np.unique(np.stack([by_class, by_group], axis=1), axis=0, return_inverse=True)[1]
    first = np.unique(joint, return_index=True)[1]
    columns = [of[first] == value for of in (by_class, by_group) for value in np.unique(of)]
    # Of who is in a class or group of one value, each joint cell is known as well.
    of_one = [len(set(ill[of == of[person]])) == 1 for person in first for of in (by_class, by_group)]
    columns += [first == person for person, *known in zip(first, of_one[::2], of_one[1::2], strict=True) if any(known)]
    span = np.array(columns, dtype=float).T
    unions = np.array(list(product((0, 1), repeat=len(first))), dtype=float)
    unions = unions[np.abs(unions @ span @ np.linalg.pinv(span) - unions).max(axis=1) < 1e-9]
    for value in (0, 1):
        most = np.full(len(ill), alpha)
        for of in (by_class, by_group):
            most = np.maximum(most, (np.bincount(of, ill == value) / np.maximum(np.bincount(of), 1))[of])
        if (unions @ np.bincount(joint, (ill == value) - most) > 1e-9).any():
            return True
    return False


@pytest.mark.parametrize("alpha", [0.6, 0.75, 0.9, 0.999])
def test_some_union_in_the_span_of_classes_and_groups_fails_where_one_is_found_and_else_none(alpha: float) -> None:
    draws, newly = np.random.default_rng(int(1000 * alpha)), 0
    demand = AlphaKAnonymity(column="ill", alpha=alpha, k=2)
    for number in range(12):
        by_class, by_group = draws.integers(0, 3, 12), draws.integers(0, 3, 12)
        if number % 2:  # nearly each group lies within a class
            by_group = np.where(draws.random(12) < 0.9, 2 * by_class + by_group // 2, by_group)
        ill = draws.integers(0, 2, 12)
        of_rows, groups = rows(by_class, np.r_[ill], demand), table(by_group)
        expected = by_definition(by_class, by_group, ill, alpha)
        assert bool(failing(of_rows, [], groups)) == bool(failing(groups, [of_rows], groups)) == expected
        newly += expected
    assert newly


#: Twelve people who follow, and two classes in which a value has a larger share than any has among them.
BESIDE = np.r_[AGES, [3] * 20, [4] * 20]


def beside_larger_shares(others: Sequence[int]) -> IntArray:
    """Values of the first 36, of whom the last twelve follow, and of classes in which one or another is common."""
    return np.r_[np.array(others), np.arange(24) % 3, [0] * 14, [1, 2] * 3, [1] * 14, [0, 2] * 3]


def test_two_values_of_three_are_asked_together() -> None:
    ill = beside_larger_shares([*(np.arange(24) % 3), *[0, 1] * 6])
    by_class = rows(np.maximum(BESIDE, 1), ill, LDiversity(column="ill", l=3))
    by_group = table(np.minimum(BESIDE, 1) + np.maximum(BESIDE - 2, 0))
    assert failing(by_class, [], by_group) == [12]


def test_intervals_of_numbers_are_asked_where_no_number_is_common() -> None:
    """Twelve people have two each of six numbers below a hundred; six classes have more of one, and 101 or 102."""
    classes = [[of] * 14 + [6 + of % 2] * 6 for of in range(6)]
    codes = np.concatenate([np.arange(24) % 8, np.arange(12) % 6, np.arange(24) % 8, *classes])
    ages = np.r_[AGES, np.repeat(np.arange(3, 9), 20)]
    by_class = rows(np.maximum(ages, 1), ILL, LDiversity(column="ill", l=2, bins=(100.0,)))
    numbers = KeptValues(codes, (1, 2, 3, 4, 5, 6, 101, 102), ordered=True)
    by_group = table(np.minimum(ages, 1) + np.maximum(ages - 2, 0))
    assert failing(replace(by_class, protected={"ill": numbers}), [], by_group) == [12]


def test_a_gap_may_be_any_value() -> None:
    """Of twelve people a third is ill, a third is not, and of a third nobody knows; of all others half are ill."""
    codes = np.r_[[1, 2] * 12, [0, 1, 2] * 4, [1, 2] * 12]
    column = KeptValues(codes, (None, "no", "yes"))
    by_class = rows(AGES // 2, ILL, AlphaKAnonymity(column="ill", alpha=0.6, k=10))
    assert failing(replace(by_class, protected={"ill": column}), [], table(np.minimum(AGES, 1))) == [12]


@pytest.mark.parametrize(
    "demand",
    [
        LDiversity(column="ill", l=3),
        LDiversity(column="ill", kind="entropy", l=2.5),
        TCloseness(column="ill", t=0.2),
        BetaLikeness(column="ill", beta=0.3),
        DeltaDisclosure(column="ill", delta=0.6),
    ],
    ids=lambda demand: demand.name,
)
def test_sets_of_a_few_values_are_asked_too(demand: PrivacyModel) -> None:
    """Of twelve people of 31 half have one value, half another, and nobody the third."""
    ill = np.r_[np.arange(24) % 3, [0, 1] * 6, np.arange(24) % 3]
    by_class, by_group = rows(AGES // 2, ill, demand), table(np.minimum(AGES, 1))
    assert failing(by_class, [], by_group) == failing(by_group, [by_class], by_group) == [12]
