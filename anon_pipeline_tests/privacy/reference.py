"""The privacy measures once more, slowly: loops over Python integers and fractions, written from the definitions.

Imports nothing of the package. `table` is a list of classes, a class a list of m counts; every class has people, and
every value occurs somewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

Table = Sequence[Sequence[int]]
#: An inner node maps names to nodes; a leaf is the position of its value.
Tree = Mapping[str, "Tree | int"]


def share_in_class(row: Sequence[int], s: int) -> Fraction:
    return Fraction(row[s], sum(row))


def share_in_table(table: Table, s: int) -> Fraction:
    return Fraction(sum(row[s] for row in table), sum(sum(row) for row in table))


def distinct(row: Sequence[int]) -> int:
    return len([count for count in row if count > 0])


def entropy_l(row: Sequence[int]) -> float:
    shares = [count / sum(row) for count in row if count > 0]
    return math.exp(-math.fsum(share * math.log(share) for share in shares))


def meets_entropy(row: Sequence[int], l: Fraction) -> bool:  # noqa: E741
    """exp(H) >= l as integers: f^f >= l^f times the product of c^c."""
    size = sum(row)
    product = math.prod(count**count for count in row if count > 0)
    left: int = size**size * l.denominator**size
    right: int = l.numerator**size * product
    return left >= right


def recursive_parts(row: Sequence[int], l: int) -> tuple[int, int]:  # noqa: E741
    """r_1, and r_l + ... + r_m."""
    descending = sorted((count for count in row if count > 0), reverse=True)
    return descending[0], sum(descending[l - 1 :])


def alpha(row: Sequence[int]) -> Fraction:
    return max(share_in_class(row, s) for s in range(len(row)))


def gains(table: Table, row: Sequence[int]) -> list[tuple[Fraction, Fraction]]:
    """(gain, p_s) of every value with q_s > p_s."""
    found = []
    for s in range(len(row)):
        q, p = share_in_class(row, s), share_in_table(table, s)
        if q > p:
            found.append(((q - p) / p, p))
    return found


def beta(table: Table, row: Sequence[int]) -> Fraction:
    return max([gain for gain, _ in gains(table, row)], default=Fraction(0))


def some_enhanced_beta(table: Table, row: Sequence[int]) -> bool:
    return all(float(gain) <= -math.log(p) for gain, p in gains(table, row))


def delta(table: Table, row: Sequence[int], *, observed: bool = False) -> float:
    worst = 0.0
    for s in range(len(row)):
        q, p = share_in_class(row, s), share_in_table(table, s)
        if q > 0:
            worst = max(worst, abs(math.log(q / p)))
        elif not observed:
            worst = math.inf
    return worst


def equal_distance(table: Table, row: Sequence[int]) -> Fraction:
    return sum((abs(share_in_class(row, s) - share_in_table(table, s)) for s in range(len(row))), Fraction(0)) / 2


def ordered_distance(table: Table, row: Sequence[int]) -> Fraction:
    m = len(row)
    if m == 1:
        return Fraction(0)
    total = Fraction(0)
    for i in range(m):
        total += abs(sum((share_in_class(row, j) - share_in_table(table, j) for j in range(i + 1)), Fraction(0)))
    return total / (m - 1)


def height(tree: Tree | int) -> int:
    return 0 if isinstance(tree, int) else 1 + max(height(child) for child in tree.values())


def hierarchical_distance(table: Table, row: Sequence[int], tree: Tree) -> Fraction:
    """sum over inner nodes of height / H * min(positive, negative extras of the children)."""
    work = Fraction(0)

    def extra(node: Tree | int) -> Fraction:
        nonlocal work
        if isinstance(node, int):
            return share_in_class(row, node) - share_in_table(table, node)
        extras = [extra(child) for child in node.values()]
        surplus = sum((one for one in extras if one > 0), Fraction(0))
        deficit = -sum((one for one in extras if one < 0), Fraction(0))
        work += height(node) * min(surplus, deficit)
        return sum(extras, Fraction(0))

    extra(tree)
    return work / height(tree)


def distance_in_tree(tree: Tree, a: int, b: int) -> Fraction:
    """Height of the lowest common ancestor over the height of the root."""

    def leaves(node: Tree | int) -> set[int]:
        return {node} if isinstance(node, int) else set().union(*(leaves(child) for child in node.values()))

    if a == b:
        return Fraction(0)
    node: Tree | int = tree
    while True:
        assert not isinstance(node, int)
        below = [child for child in node.values() if {a, b} <= leaves(child)]
        if not below:
            return Fraction(height(node), height(tree))
        node = below[0]


def resolutions(row: Sequence[int]) -> list[list[int]]:
    """Every way in which the people of the first count, whose value is missing, may bear one of the others."""
    ways = [[0] * (len(row) - 1)]
    for _ in range(row[0]):
        ways = [[n + (s == t) for t, n in enumerate(way)] for way in ways for s in range(len(way))]
        ways = [list(way) for way in {tuple(way) for way in ways}]
    return [[known + more for known, more in zip(row[1:], way, strict=True)] for way in ways]


def known(table: Table) -> Table:
    """The table without those whose value, the first, is missing."""
    return [row[1:] for row in table]
