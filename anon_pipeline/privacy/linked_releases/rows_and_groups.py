"""What rows tell together with several tables of groups, and with none of them alone: arrays in, a number out.

Rows of several releases that are linked are one partition of the people, by joint cells, and each table of groups is
another. With three partitions and more a known union is no cut of a graph, so it is sought by the linear program for
tables of groups: nothing is missed of unions whose parts are whole cells, and more may be found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.linked_releases.classes import LinkedClasses, as_strict, told_together
from anon_pipeline.privacy.linked_releases.tables import NOT_IN, LinkedTable, newly_known_counts


def newly_known_unions(
    candidate: LinkedClasses, rows: Sequence[LinkedClasses], groups: Sequence[LinkedClasses], *, has_rows: bool
) -> int:
    """At least how many unions of few people all tell, and neither the candidate nor the others without it.

    Parameters
    ----------
    rows, groups : the other releases
    has_rows : whether the candidate has rows, which are linked with those of others; else it is a table of groups

    Raises
    ------
    Undecided
        If it cannot be worked out.
    """
    rows, mine = [of.members for of in rows], [candidate.members] if has_rows else []
    readers = candidate.readers.union(*(of.readers for of in (*rows, *groups)))
    known = 0
    for part in as_strict(candidate, [*rows, *groups]):
        k = min(of.k for of in (candidate, *part))
        families = [[of] for of in groups if any(of is other for other in part)]
        linked = [of for of in rows if any(of is other for other in part)]
        if len(families) + (not mine) < 2 or not (mine or linked):
            continue  # what two of them tell is asked elsewhere
        families += [linked] * bool(linked)
        tables = [_as_table(family, readers, k) for family in ([*mine, *linked] if mine else [candidate], *families)]
        known = max(known, newly_known_counts(tables[0], tables[1:]))
    return known


def _as_table(releases: Sequence[LinkedClasses], readers: frozenset[str], k: int) -> LinkedTable:
    """The joint cells of releases as groups that are all shown."""
    is_in = np.any([of.is_in for of in releases], axis=0)
    cells: IntArray = np.where(is_in, told_together(releases, readers), NOT_IN)
    return LinkedTable(cells, np.ones(int(cells.max(initial=0)) + 1, dtype=bool), k)
