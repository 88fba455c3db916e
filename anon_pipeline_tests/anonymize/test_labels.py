"""The lowest node of a hierarchy that covers a class, by hand; nodes of a few are not named."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from anon_pipeline.anonymize.labels import NO_LABEL, Labels, lowest_labels
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain, Nodes

#: 11 and 12 lie in 1*, 21 and 22 in 2*, all in *.
NODES = Nodes(np.array([[0, 0], [0, 0], [1, 0], [1, 0]]), (("1*", "2*"), ("*",)), False, 2)
#: People of each class: missing, 11, 12, 21, 22.
CLASSES = [
    [0, 3, 0, 0, 0],
    [0, 1, 2, 0, 0],
    [0, 2, 0, 2, 0],
    [2, 0, 0, 1, 0],
    [2, 0, 0, 0, 0],
    [1, 0, 0, 2, 0],
]


def labels(nodes: Nodes, k: int) -> Labels:
    members = sparse.csr_array(np.array(CLASSES))
    counts = np.array(CLASSES).sum(axis=0)
    domain = Domain("zip", ColumnType.CATEGORICAL, np.array(["11", "12", "21", "22"]), counts, nodes=nodes)
    return lowest_labels(domain, nodes, members, k)


@pytest.mark.parametrize(
    ("k", "texts", "levels"),
    [
        (3, ["11", "1*", "*", "* or missing", "missing", "21 or *"], [0, 1, 2, NO_LABEL, NO_LABEL, 0]),
        (5, ["11", "1*", "*", "* or missing", "missing", "21 or *"], [0, 1, 2, NO_LABEL, NO_LABEL, 0]),
        (6, ["11", "1*", "*", "* or *", "*", "* or *"], [0, 1, 2, NO_LABEL, NO_LABEL, 2]),
        (7, ["1*", "1*", "*", "* or *", "*", "* or *"], [1, 1, 2, NO_LABEL, NO_LABEL, 2]),
    ],
)
def test_the_lowest_node_of_k_people_is_named(k: int, texts: list[str], levels: list[int]) -> None:
    """Six people have 11, eight 1*, five 21 and 2*, and of five no value is known."""
    found = labels(NODES, k)
    assert found.texts.tolist() == texts
    assert found.levels.tolist() == levels


def test_what_is_spread_wider_than_names_reach_is_a_range() -> None:
    nodes = Nodes(NODES.node, NODES.labels, False, 1)
    assert labels(nodes, 3).texts[[2, 5]].tolist() == ["1* .. 2*", "21 or *"]
    of_few = labels(nodes, 7).texts  # five people have 2*, fewer than are to share it
    assert not [text for text in of_few if "2" in text]


def test_some_classes_have_their_own_labels() -> None:
    some = labels(NODES, 3).of_classes(np.array([5, 0]))
    assert some.texts.tolist() == ["21 or *", "11"]
    assert some.levels.tolist() == [0, 0]


@pytest.mark.parametrize("nobody", [[0, 0, 0, 0, 0], [2, 0, 0, 1, 0]])
def test_classes_in_which_fewer_than_two_have_a_value_have_no_label(nobody: list[int]) -> None:
    counts = np.array(nobody)
    domain = Domain("zip", ColumnType.CATEGORICAL, np.array(["11", "12", "21", "22"]), counts, nodes=NODES)
    found = lowest_labels(domain, NODES, sparse.csr_array(counts[None]), 1)
    assert found.levels.tolist() == [NO_LABEL]
    assert found.texts.tolist() == ["* or missing" if nobody[0] else ""]
