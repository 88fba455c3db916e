"""Trees by construction, for tests of what walks down one."""

from __future__ import annotations

import numpy as np

from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.anonymize.tree import SplitTree


def tree_over(classes: int) -> SplitTree:
    """A tree whose leaves are the numbers 0 ... J - 1, over one column with these values."""
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    right: list[int] = []
    leaf: list[int] = []
    waiting = [(0, classes, -1, False)]
    while waiting:
        start, stop, parent, is_right = waiting.pop()
        here = len(feature)
        if parent >= 0:
            (right if is_right else left)[parent] = here
        inner = stop - start > 1
        middle = (start + stop) // 2
        feature.append(0 if inner else -1)
        threshold.append(middle - 0.5 if inner else 0.0)
        left.append(-1)
        right.append(-1)
        leaf.append(-1 if inner else start)
        if inner:
            waiting += [(middle, stop, here, True), (start, middle, here, False)]
    return SplitTree(
        (SplitFeature(0, np.arange(classes, dtype=np.int32)),),
        np.array(feature),
        np.array(threshold),
        np.array(left),
        np.array(right),
        np.array(leaf),
    )
