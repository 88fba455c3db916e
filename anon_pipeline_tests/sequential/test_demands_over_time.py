"""What several releases under a demand tell together of why two groups of people are one class.

The attacker has all releases, knows everybody's quasi-identifiers and the code, and claims of two nodes of the tree
that are one class again and again that one of them fails the demand. `make bench-over-time` tells the same of more
tables and more releases.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize import enforce
from anon_pipeline.arrays import IntArray
from anon_pipeline_tests.examples import times
from benchmarks.merged_over_time import Pairs, counted, months

ILL = 0.15


def after_the_first(tables: range) -> Pairs:
    """What was counted of pairs that are one class in at least two releases running."""
    result = Pairs()
    for running, pairs in counted(tables, 4, ILL)[0].items():
        if running > 1:
            result.number += pairs.number
            result.single += pairs.single
            result.expected += pairs.expected
    return result


@pytest.mark.slow
def test_several_releases_hardly_tell_more_than_one_why_nodes_are_a_class() -> None:
    found = after_the_first(range(40))
    assert found.number > 150 and found.expected < 0.3 * found.number
    assert found.single < 0.75 * found.number


@pytest.mark.slow
def test_draws_that_are_new_in_every_release_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack finds what is there to find."""
    monkeypatch.setattr(enforce, "former_classes", lambda former, group, classes: np.full(classes, -1))
    found = after_the_first(range(15))
    assert found.single > 0.9 * found.number


@pytest.mark.long
@settings(max_examples=times(15))
@given(st.integers(0, 10_000))
def test_the_same_people_again_are_the_same_classes(seed: int) -> None:
    (first, *others), _ = months(seed, 3, ILL, birthdays=0.0)
    for other in others:
        both = np.unique(np.stack([first.class_, other.class_]), axis=1)
        assert both.shape[1] == len(np.unique(first.class_)) == len(np.unique(other.class_))


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 2)), min_size=1, max_size=30))
def test_the_former_class_of_a_class_is_that_of_all_its_cells(cells: list[tuple[int, int]]) -> None:
    group, former = (np.array(column) for column in zip(*cells, strict=True))
    expected = []
    for number in range(5):
        classes: set[int] = set(former[group == number].tolist())
        expected.append(classes.pop() if len(classes) == 1 else -1)
    found: IntArray = enforce.former_classes(former, group, 5)
    assert found.tolist() == expected
