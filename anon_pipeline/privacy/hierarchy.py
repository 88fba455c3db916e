"""A generalization hierarchy of categories, read from a spec, and its subtrees as sets of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator
from scipy import sparse

from anon_pipeline.arrays import IntArray

#: A value of the table or the name of an inner node; None is the missing value.
Label = str | bool | int | float | date | None


def read_paths(value: Any) -> Any:
    """Both written forms as paths from a value up to its topmost ancestor.

    Nested: `{disease: {respiratory: [flu, bronchitis], digestive: [gastritis]}}`, where a list (or a name with nothing
    behind it) holds values. Paths: `[[flu, respiratory, disease], [bronchitis, respiratory, disease], ...]`. If several
    names stand at the top, a root is put over them.

    Raises
    ------
    ValueError
        For anything else, and for a value that stands in it twice.
    """
    paths: tuple[tuple[Any, ...], ...] = ()
    if isinstance(value, Mapping):
        paths = tuple(_leaves(value, ()))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if not all(isinstance(path, Sequence) and not isinstance(path, str) and len(path) > 0 for path in value):
            raise ValueError("each path is a list that starts with a value and goes on with its ancestors, upwards")
        paths = tuple(tuple(path) for path in value)
    if not paths:
        raise ValueError("is a nested mapping, or a list of paths from a value up through its ancestors; none is empty")
    values = [path[0] for path in paths]
    if any(isinstance(label, Mapping | list | tuple) for path in paths for label in path):
        raise ValueError("a value is a text, a number, a date or null; put inner nodes into mappings")
    if len(set(values)) < len(values):
        raise ValueError("a value stands in it twice; each value has one place")
    return paths


#: A field of a spec that holds a hierarchy.
Hierarchy = Annotated[tuple[tuple[Label, ...], ...], BeforeValidator(read_paths)]


@dataclass(frozen=True)
class Subtrees:
    """The subtrees below the root that hold a value of the table; leaves are subtrees too.

    Attributes
    ----------
    membership : sparse 0/1 array of shape (m, subtrees)
    weight : int64 array of shape (subtrees,), height of the parent less the subtree's own height
    height : height of the root; a leaf has 0, an inner node one more than its highest child
    """

    membership: sparse.csr_array
    weight: IntArray
    height: int


def subtrees(hierarchy: Sequence[Sequence[Label]], values: Sequence[object]) -> Subtrees:
    """The subtrees of a hierarchy (as paths) over the values of a table.

    A missing value without a place in the hierarchy is put directly below the root: it is as far from all others as
    possible.

    Raises
    ------
    KeyError
        If a value is not in the hierarchy; holds the number of such values, never one of them.
    """
    tops = {path[-1] for path in hierarchy}
    one_root = len(tops) == 1 and all(len(path) > 1 for path in hierarchy)
    # An inner node is identified by the labels from the root down to it, so one name may stand in two branches.
    parent_of = {path[0]: tuple(reversed(path[1:])) for path in hierarchy}
    root: tuple[Label, ...] = (next(iter(tops)),) if one_root else ()
    parent_of.setdefault(None, root)

    heights: dict[tuple[Label, ...], int] = {}
    for parent in parent_of.values():
        for depth in range(len(root), len(parent) + 1):
            heights[parent[:depth]] = max(heights.get(parent[:depth], 0), len(parent) + 1 - depth)

    unknown = sum(value not in parent_of for value in values)
    if unknown:
        raise KeyError(unknown)
    rows: list[int] = []
    sets: list[int] = []
    weights: list[int] = []
    number: dict[tuple[Label, ...], int] = {}
    for row, value in enumerate(values):
        parent = parent_of[value]  # type: ignore[index] # looked up above
        rows.append(row)
        sets.append(len(weights))
        weights.append(heights[parent])
        for depth in range(len(parent), len(root), -1):
            node = parent[:depth]
            if node not in number:
                number[node] = len(weights)
                weights.append(heights[node[:-1]] - heights[node])
            rows.append(row)
            sets.append(number[node])
    membership = sparse.csr_array(
        (np.ones(len(rows), dtype=np.int64), (rows, sets)), shape=(len(values), len(weights)), dtype=np.int64
    )
    return Subtrees(membership, np.array(weights, dtype=np.int64), heights[root])


def _leaves(node: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, Mapping):
        for label, below in node.items():
            if below is None or below == {} or below == []:
                yield (label, *above)
            else:
                yield from _leaves(below, (label, *above))
    elif isinstance(node, list | tuple):
        for value in node:
            yield (value, *above)
    else:
        yield (node, *above)
