"""The label of a class in a hierarchy: the name of the lowest node that covers all its members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.anonymize.hierarchy import EVERYTHING
from anon_pipeline.anonymize.naming import named_ends
from anon_pipeline.arrays import IntArray
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain, Nodes

#: The level of a class that has no label.
NO_LABEL = -1


@dataclass(frozen=True, eq=False)
class Labels:
    """The lowest node of a hierarchy that covers each class.

    Attributes
    ----------
    texts : its name, with "or missing" where members have no value and this is published, and with "or *" where it is
        not published, shape (J,)
    levels : its level, 0 for a value itself, NO_LABEL where fewer than two members have a value, shape (J,)
    """

    texts: npt.NDArray[np.object_]
    levels: IntArray

    def of_classes(self, classes: IntArray) -> Labels:
        """The labels of some classes, in the order in which they are named."""
        return Labels(self.texts[classes], self.levels[classes])


def lowest_labels(domain: Domain, nodes: Nodes, members: sparse.csr_array, k: int) -> Labels:
    """The labels of the classes whose people by code are `members`, shape (J, m + 1).

    Only nodes that hold k people are named. Where a single member has a value and the others have none, no node is.
    """
    classes = members.shape[0]
    known = members[:, 1:].tocsr()
    people = np.asarray(known.sum(axis=1)).ravel()
    bearers = np.asarray(known.sum(axis=0)).ravel()
    missing = np.asarray(members[:, [0]].sum(axis=1)).ravel()
    labelled = np.flatnonzero(people > 1)
    known = known[labelled]
    levels = np.full(classes, NO_LABEL, dtype=np.int64)
    first, last = np.zeros((2, classes), dtype=np.int64)  # of classes that get a level
    open_ = np.ones(len(labelled), dtype=bool)
    for level in range(nodes.height + 1):
        of_value = np.arange(len(bearers)) if level == 0 else nodes.node[:, level - 1]
        holds = np.bincount(of_value, weights=bearers)
        node = of_value[known.indices]
        low, high = (end.reduceat(node, known.indptr[:-1]) for end in (np.minimum, np.maximum))
        covered = open_ & (low == high) & (holds[low] >= k)
        levels[labelled[covered]] = level
        if level <= nodes.named:
            # Above the last level with names, a label is the range of that level's nodes.
            ends = (low, high) if level < nodes.named else named_ends(low, high, holds, holds >= k)
            alone = covered if level < nodes.named else open_
            first[labelled[alone]] = np.where(covered, low, ends[0])[alone]
            last[labelled[alone]] = np.where(covered, high, ends[1])[alone]
        open_ &= ~covered
    texts = []
    for group in range(classes):
        level_named, outer = min(int(levels[group]), nodes.named), (int(first[group]), int(last[group]))
        if levels[group] == NO_LABEL or outer == (-1, -1):
            texts.append(EVERYTHING if people[group] else "")
            continue
        lowest, highest = (_name(domain, nodes, level_named, end) for end in outer)
        whole = lowest if outer[0] == outer[1] else f"{lowest} .. {highest}"
        texts.append(f"≤ {highest}" if outer[0] == -1 else f"≥ {lowest}" if outer[1] == -1 else whole)
    rests = np.where(missing == 0, "", np.where((missing > 1) & (missing.sum() >= k), "missing", EVERYTHING))
    label_texts = [" or ".join(filter(None, pair)) for pair in zip(texts, rests.tolist(), strict=True)]
    return Labels(np.array(label_texts, dtype=object), levels)


def _name(domain: Domain, nodes: Nodes, level: int, node: int) -> str:
    return nodes.labels[level - 1][node] if level else _written(domain, node)


def _written(domain: Domain, place: int) -> str:
    """A value of the column as a text."""
    value = domain.readable(domain.values[place : place + 1])[0]
    if domain.type is ColumnType.DATE and value == value.astype("datetime64[D]"):
        value = value.astype("datetime64[D]")  # a day, where there is no time of day
    return str(value)
