"""Demands on sensitive values of people who share their classes in several releases."""

from collections import Counter
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
from anon_pipeline.privacy.linked_releases.classes import KeptValues, LinkedClasses
from anon_pipeline.privacy.linked_releases.demands import failing_demands
from anon_pipeline.privacy.linked_releases.tables import NOT_IN
from anon_pipeline.privacy.t_closeness import TCloseness

TWO = LDiversity(column="ill", l=2)
HALF = AlphaKAnonymity(column="ill", alpha=0.5, k=2)
#: Demands that a class of which half is ill meets, and one of which all are ill does not.
DEMANDS: list[PrivacyModel] = [
    TWO,
    LDiversity(column="ill", kind="entropy", l=1.9),
    LDiversity(column="ill", kind="recursive", l=2, c=2),
    AlphaKAnonymity(column="ill", alpha=0.6, k=10),
    TCloseness(column="ill", t=0.2),
    BetaLikeness(column="ill", beta=0.5),
    DeltaDisclosure(column="ill", delta=0.5),
]


def release(
    classes: Sequence[int], ill: Sequence[int] | None, *demands: PrivacyModel, known: Sequence[int] = ()
) -> LinkedClasses:
    """A release that shows these values (or no column of that name), of people in these classes."""
    values = {} if ill is None else {"ill": KeptValues(np.array(ill), tuple("abcdef"[: max(ill) + 1]))}
    return LinkedClasses(np.array(classes), 2, frozenset(known and ["ill"]), {}, demands, values)


def failing(candidate: LinkedClasses, *others: LinkedClasses) -> list[int]:
    return [of.people for of in failing_demands(candidate, others)]


#: Everybody of the same age and town is ill, or nobody.
AGE, TOWN, ILL = (np.repeat(of, 12).tolist() for of in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]))


@pytest.mark.parametrize("demand", DEMANDS, ids=lambda demand: demand.name)
def test_a_demand_that_each_class_meets_and_no_joint_cell_does(demand: PrivacyModel) -> None:
    by_age, by_town = release(AGE, ILL), release(TOWN, ILL, demand)
    for candidate, other in ((by_age, by_town), (by_town, by_age)):
        (found,) = failing_demands(candidate, [other])
        assert (found.people, found.is_counted, found.demand) == (48, True, demand.demand())
        assert (candidate, other)[found.of] is by_town
    assert failing(by_town, by_town) == failing(by_town) == failing(by_age, by_age) == []
    everybody = release([0] * 48, ILL, demand)
    assert failing(by_age, everybody) == failing(everybody, by_age) == []


def test_rows_that_lack_the_column_are_linked_with_those_that_have_it() -> None:
    by_age, by_town = release(AGE, ILL, TWO), release(TOWN, None)
    assert failing(by_age, by_town) == failing(by_town, by_age) == [48]


def test_a_finer_release_without_the_column_tells_nothing_alone() -> None:
    """Its classes of twelve are homogeneous, and who has its rows alone does not see it."""
    finer = [0] * 12 + [1] * 12 + [2] * 12 + [3] * 12
    by_age = release(AGE, ILL, TWO)
    assert failing(release(finer, None), by_age) == failing(by_age, release(finer, None)) == [48]
    assert failing(release(finer, ILL), by_age) == []  # it tells this alone, as its spec allows
    assert failing(by_age, release(finer, ILL)) == []


def test_a_coarser_form_of_the_column_does_not_tell_the_finer_one_alone() -> None:
    """Of 24 classes of two people, each has two values that the other release shows as one."""
    pairs, fine = np.repeat(np.arange(4), 2).tolist(), [0, 1, 2, 2, 0, 1, 3, 3]
    coarse = [0, 0, 1, 1, 0, 0, 1, 1]
    by_pairs, everybody = release(pairs, coarse), release([0] * 8, fine, TWO)
    assert failing(by_pairs, everybody) == [4]
    assert failing(release(pairs, fine), everybody) == []


def test_part_of_a_homogeneous_class_tells_no_more_than_the_class() -> None:
    by_age = release([0] * 6 + [1] * 4, [0] * 6 + [0, 1, 0, 1])
    by_town = release([0, 0, 0, 1, 1, 1, 0, 0, 1, 1], [0] * 6 + [0, 1, 0, 1], TWO)
    assert failing(by_age, by_town) == []
    assert failing(by_town, by_age) == []


def test_but_a_share_that_grows_counts_also_where_the_class_alone_fails() -> None:
    by_age = release([0] * 9, [0, 0, 0, 0, 0, 0, 1, 1, 1])
    by_town = release([0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1, 1, 1], HALF)
    assert failing(by_age, by_town) == []  # three alike: the other release tells it alone
    crossed = release([0, 0, 0, 0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1], HALF)
    other = release([0, 0, 0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 1, 1, 1])
    assert failing(crossed, other) == [7]  # not the last two, whose class has one value in the other release


def test_too_few_people_with_the_same_shares_are_too_few() -> None:
    """Its own k is larger than the one that is asked of the releases."""
    many = AlphaKAnonymity(column="ill", alpha=0.5, k=4)
    by_age, by_town = release([0] * 4 + [1] * 4, [0, 1] * 4, many), release([0, 0, 1, 1] * 2, [0, 1] * 4)
    assert failing(by_age, by_town) == failing(by_town, by_age) == [8]


def test_only_people_of_its_own_release_are_asked_about() -> None:
    first = release([0, 0, NOT_IN, NOT_IN], [0, 1, 2, 2], TWO)
    assert failing(first, release([0, 0, 1, 1], [0, 1, 2, 2])) == []
    assert failing(first, release([0, 1, 0, 1], [0, 1, 2, 2])) == [2]


def test_values_that_cannot_be_counted_fail_where_the_joint_cell_is_of_both() -> None:
    drawn = replace(release(AGE, ILL, TWO), protected={})
    (found,) = failing_demands(drawn, [release(TOWN, ILL)])
    assert (found.people, found.is_counted) == (48, False)
    assert failing(drawn, release(AGE, ILL)) == failing(drawn, release([0] * 48, ILL)) == []


MAP = KMap(k=20, population="register.csv")


def test_nobody_has_counted_who_of_a_population_matches_the_classes_of_both() -> None:
    """Each class matches twenty people of a register, and both together fewer; not where one says what both say."""
    by_age, by_town = release(AGE, None), release(TOWN, None, MAP)
    for candidate, other in ((by_age, by_town), (by_town, by_age)):
        (found,) = failing_demands(candidate, [other])
        assert (found.people, found.is_counted) == (48, False) and "nobody has counted" in found.sentence
    assert failing(by_town, by_town) == failing(release([0] * 48, None), by_town) == []
    assert failing(by_age, by_age, by_town) == []  # the others tell it without the candidate


def test_nor_who_matches_a_column_that_the_other_release_has_besides() -> None:
    """The people of a class are all in Ulm, and of the register only some of those who match it."""
    by_age = replace(release(AGE, None, MAP), readers=frozenset({"age"}))
    same_people = replace(release(AGE, None), readers=frozenset({"age", "town"}))
    assert failing(by_age, same_people) == failing(same_people, by_age) == [48]
    assert failing(by_age, replace(same_people, readers=frozenset({"age"}))) == []


def test_what_one_release_keeps_and_readers_of_another_know_is_homogeneous() -> None:
    keeps = replace(release(AGE, ILL, TWO), kept={"ill": np.array(ILL)})
    assert failing(keeps, release([0] * 48, None, known=[1])) == [48]


def test_of_a_sample_those_who_are_in_it_are_asked_about_and_those_who_are_not() -> None:
    """Half of each town is ill; of the first those were drawn who are not, of the second those who are."""
    ill = [0, 0, 1, 1, 1, 1, 0, 0]
    drawn = np.array([True, True, False, False] * 2)
    towns = [0] * 4 + [1] * 4
    for demands, people in (([TWO], 4), ([], 0)):
        everybody, sample = release(towns, ill), release([0] * 8, ill, *demands)
        assert failing(everybody, sample) == []
        sample = replace(sample, drawn=drawn)
        assert failing(everybody, sample) == failing(sample, everybody) == [people] * bool(people)
        assert failing(release(towns, ill, TWO), sample) == [8, 4][: 1 + len(demands)]


def possible(releases: Sequence[LinkedClasses], values: IntArray) -> list[set[int]]:
    """The values that a person may have, whose readers cannot link a row: every assignment is tried."""
    possible_values = [set[int]() for _ in values]
    counted = [_counts(of.classes, values) for of in releases if "ill" in of.protected]
    shows = [of for of in releases if "ill" in of.protected]
    for world in product(range(3), repeat=len(values)):
        if all(_counts(of.classes, np.array(world)) == counts for of, counts in zip(shows, counted, strict=True)):
            for person, value in enumerate(world):
                possible_values[person].add(value)
    return possible_values


def _counts(classes: IntArray, values: IntArray) -> Counter[tuple[int, int]]:
    return Counter(zip(classes.tolist(), values.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_whoever_has_one_possible_value_is_counted_and_so_are_all_who_link_rows(seed: int) -> None:
    """The textbook: of people whose rows are linked, all values of their joint cell are possible."""
    draws, certain, linked = np.random.default_rng(seed), 0, 0
    for _ in range(6):
        values, count = draws.integers(0, 3, 6), int(draws.integers(2, 4))
        everything = [release(draws.integers(0, 2, 6).tolist(), values.tolist(), TWO) for _ in range(count)]
        candidate, *others = everything
        known = [possible(part, values) for part in (everything, [candidate], others)]
        newly = sum(len(all_of) == 1 < min(len(mine), len(theirs)) for all_of, mine, theirs in zip(*known, strict=True))
        cells = [tuple(of.classes[person] for of in everything) for person in range(6)]

        def alike(person: int, of: Sequence[LinkedClasses], values: IntArray = values) -> set[int]:
            """The values of those who share the person's classes."""
            shared = np.all([part.classes == part.classes[person] for part in of], axis=0)
            return set(values[shared].tolist())

        expected = sum(
            len(alike(person, everything)) == 1 < min(len(alike(person, [candidate])), len(alike(person, others)))
            for person in range(len(cells))
        )
        assert newly <= expected
        assert all(found == expected for found in failing(candidate, *others)) and bool(expected) == bool(
            failing(candidate, *others)
        )
        certain, linked = certain + newly, linked + expected
    assert linked > certain or seed
