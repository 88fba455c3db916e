"""What a class shows in the words of a hierarchy: the lowest node that covers all its members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from anon_pipeline.anonymize.hierarchy import EVERYTHING
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain, IntArray, Nodes

#: The level of a class of which no label is told.
UNTOLD = -1


@dataclass(frozen=True, eq=False)
class Labels:
    """The lowest node of a hierarchy that covers each class.

    Attributes
    ----------
    texts : its name, "or missing" where two or more members have no value, "or *" where one has, shape (J,)
    levels : its level, 0 for a value itself, UNTOLD where fewer than two members have one, shape (J,)
    """

    texts: npt.NDArray[np.object_]
    levels: IntArray

    def of_classes(self, classes: IntArray) -> Labels:
        """The labels of some classes, in the order in which they are named."""
        return Labels(self.texts[classes], self.levels[classes])


def lowest_labels(domain: Domain, nodes: Nodes, members: sparse.csr_array) -> Labels:
    """The labels of the classes whose people by code are `members`, shape (J, m + 1).

    A value that a single member has beside missing ones is not told.
    """
    classes = members.shape[0]
    known = members[:, 1:].tocsr()
    people = np.asarray(known.sum(axis=1)).ravel()
    missing = np.asarray(members[:, [0]].sum(axis=1)).ravel()
    told = np.flatnonzero(people > 1)
    known = known[told]
    levels = np.full(classes, UNTOLD, dtype=np.int64)
    first, last = np.zeros(classes, dtype=np.int64), np.zeros(classes, dtype=np.int64)
    open_ = np.ones(len(told), dtype=bool)
    for level in range(nodes.height + 1 if len(told) else 0):
        node = known.indices if level == 0 else nodes.node[known.indices, level - 1]
        low, high = (end.reduceat(node, known.indptr[:-1]) for end in (np.minimum, np.maximum))
        covered = open_ & (low == high)
        levels[told[covered]] = level
        if level <= nodes.named:
            # Above the last level with names it is the range of that level's nodes that is shown.
            first[told[open_]], last[told[open_]] = low[open_], high[open_]
        open_ &= ~covered
    texts = np.empty(classes, dtype=object)
    for one in range(classes):
        if levels[one] != UNTOLD:
            shown = min(int(levels[one]), nodes.named)
            names = [
                nodes.labels[shown - 1][end] if shown else _written(domain, int(end)) for end in (first[one], last[one])
            ]
            text = names[0] if first[one] == last[one] else " .. ".join(names)
        else:
            text = EVERYTHING if people[one] else ""
        if missing[one]:
            rest = "missing" if missing[one] > 1 else EVERYTHING
            text = f"{text} or {rest}" if text else rest
        texts[one] = text
    return Labels(texts, levels)


def _written(domain: Domain, place: int) -> str:
    """A value of the column as a text."""
    value = domain.shown(domain.values[place : place + 1])[0]
    if domain.type is ColumnType.DATE and value == value.astype("datetime64[D]"):
        value = value.astype("datetime64[D]")  # a day, where there is no time of day
    return str(value)
