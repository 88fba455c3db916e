"""Intersecting releases: histories by hand, and against a plain count over tuples."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anon_pipeline.sequential.guarantees import ABSENT, histories, intersection

RELEASES = st.integers(1, 4).flatmap(
    lambda releases: st.integers(1, 30).flatmap(
        lambda people: arrays(np.int64, (releases, people), elements=st.integers(ABSENT, 3))
    )
)


def test_three_releases_by_hand() -> None:
    first = np.array([0, 0, 0, 0, 1, 1, ABSENT, ABSENT])
    second = np.array([5, 5, 5, ABSENT, 5, 5, 5, 5])
    third = np.array([2, 2, ABSENT, ABSENT, 2, 2, 2, 2])
    history = histories([first, second], 8)
    assert len(set(history[:3])) == 1 and history[3] not in history[:3]
    assert history[4] == history[5] != history[0] != history[6] == history[7]
    found = intersection([first, second], third, k=3)
    assert (found.releases, found.people, found.fewest, found.below, found.alone) == (3, 6, 2, 6, 0)
    assert (found.left, found.left_below) == (2, 2)  # both who left stand alone in how they did


def test_newcomers_are_number_zero_also_where_there_are_none() -> None:
    assert histories([], 3).tolist() == [0, 0, 0]
    assert histories([np.array([4, 4])], 2).min() == 1
    assert histories([np.array([4, ABSENT])], 2)[1] == 0


def test_nobody_in_a_release_is_no_safe_release() -> None:
    assert intersection([], np.array([ABSENT, ABSENT]), k=2).fewest == 0


@given(RELEASES)
def test_candidates_are_the_people_of_the_same_tuple(classes: np.ndarray) -> None:
    *former, new = list(classes)
    found = intersection(former, new, k=2)
    tuples = [tuple(one) for one in classes.T.tolist()]
    count = Counter(tuples)
    left = [count[one] for one in tuples if one[-1] != ABSENT]
    assert found.people == len(left)
    assert found.fewest == min(left, default=0)
    assert found.below == sum(one < 2 for one in left) == found.alone
    departed = [count[one] for one in tuples if one[-1] == ABSENT and set(one) != {ABSENT}]
    assert (found.left, found.left_below) == (len(departed), sum(one < 2 for one in departed))


@given(RELEASES)
def test_histories_number_what_is_equal_equally(classes: np.ndarray) -> None:
    history = histories(list(classes), classes.shape[1])
    tuples = [tuple(one) for one in classes.T.tolist()]
    assert len(set(zip(history.tolist(), tuples, strict=True))) == len(set(tuples)) == len(set(history.tolist()))
    assert all((number == 0) == (set(one) == {ABSENT}) for number, one in zip(history.tolist(), tuples, strict=True))
