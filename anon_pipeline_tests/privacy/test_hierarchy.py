"""Both written forms of a hierarchy, and the heights of its subtrees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from anon_pipeline.privacy.hierarchy import Subtrees, read_paths, subtrees
from anon_pipeline.privacy.t_closeness import TCloseness

NESTED = {"illness": {"lung": {"infection": ["flu", "cold"], "embolism": None}, "stomach": ["ulcer"]}}
PATHS = [
    ["flu", "infection", "lung", "illness"],
    ["cold", "infection", "lung", "illness"],
    ["embolism", "lung", "illness"],
    ["ulcer", "stomach", "illness"],
]


def weights(found: Subtrees) -> list[tuple[list[int], int]]:
    """Every subtree as its values and its weight."""
    members = found.membership.toarray()
    return sorted((members[:, g].nonzero()[0].tolist(), int(found.weight[g])) for g in range(len(found.weight)))


def test_the_two_forms_are_one_hierarchy() -> None:
    assert [list(path) for path in read_paths(NESTED)] == PATHS
    nested = TCloseness.model_validate({"column": "x", "t": 0.1, "hierarchy": NESTED})
    listed = TCloseness.model_validate({"column": "x", "t": 0.1, "hierarchy": PATHS})
    assert nested == listed
    assert TCloseness.model_validate(json.loads(nested.model_dump_json())) == nested  # what a manifest stores


def test_weights_telescope_to_the_height_of_the_root() -> None:
    found = subtrees(read_paths(NESTED), ["flu", "cold", "embolism", "ulcer"])
    assert found.height == 3
    # Leaves hang at infection (1), lung (2) and stomach (1); infection below lung, lung and stomach below the root.
    expected = [([0], 1), ([1], 1), ([0, 1], 1), ([2], 2), ([0, 1, 2], 1), ([3], 1), ([3], 2)]
    assert weights(found) == sorted(expected)


def test_a_value_that_is_itself_at_the_top_gets_a_root_above_it() -> None:
    """ "ill" is no part of itself: the other values lie in it, and it lies beside them below a root."""
    found = subtrees([["flu", "ill"], ["cold", "ill"], ["ill"]], ["flu", "cold", "ill"])
    assert found.height == 2
    assert weights(found) == sorted([([0], 1), ([1], 1), ([0, 1], 1), ([2], 2)])


def test_several_names_at_the_top_get_a_root() -> None:
    forest = {"lung": ["flu"], "stomach": ["ulcer"]}
    assert subtrees(read_paths(forest), ["flu", "ulcer"]).height == 2
    assert subtrees(read_paths([["flu"], ["ulcer"]]), ["flu", "ulcer"]).height == 1


def test_a_name_may_stand_in_two_branches_and_be_a_value_too() -> None:
    nested = {"all": {"lung": {"other": ["cough"]}, "stomach": {"other": ["ache", "stomach"]}}}
    found = subtrees(read_paths(nested), ["cough", "ache", "stomach"])
    assert ([1, 2], 1) in weights(found)
    assert ([0, 1, 2], 1) not in weights(found)  # the two "other" are two nodes


def test_a_missing_value_hangs_from_the_root_unless_placed() -> None:
    assert weights(subtrees(read_paths(NESTED), [None, "flu"]))[0] == ([0], 3)
    placed = {"all": {"known": ["flu"], "unknown": [None]}}
    assert subtrees(read_paths(placed), [None, "flu"]).height == 2


def test_the_height_is_that_of_the_hierarchy_and_not_of_the_branches_in_use() -> None:
    assert subtrees(read_paths(NESTED), ["ulcer"]).height == 3


def test_a_value_without_a_place_is_counted() -> None:
    with pytest.raises(KeyError, match="2"):
        subtrees(read_paths(NESTED), ["flu", "gout", "warts"])


@pytest.mark.parametrize(
    "hierarchy",
    [
        {},
        [],
        "flu",
        3,
        [["flu"], []],
        ["flu", "cold"],
        [["flu", "a"], ["flu", "b"]],
        {"a": ["flu"], "b": ["flu"]},
        {"a": [{"b": ["c"]}]},
    ],
)
def test_what_is_no_hierarchy_is_refused(hierarchy: Any) -> None:
    with pytest.raises(ValidationError, match="hierarchy"):
        TCloseness.model_validate({"column": "x", "t": 0.1, "hierarchy": hierarchy})
