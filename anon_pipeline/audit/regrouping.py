"""The replay attack on the release at hand: whom does the grouping betray to somebody who runs it again?

The grouping is repeated around some classes of the release, under other keys, with the sensitive values of a class
handed out otherwise (attack/replay.py). A person is betrayed where every other value of their class never gives it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.attack.replay import Replay, replay
from anon_pipeline.keys import Key
from anon_pipeline.privacy.statistics import ClassStatistics

#: A value counts as ruled out that gives the class so many times more seldom than the true one.
SELDOM = 10.0
#: How many classes are attacked per sensitive column; how often each is grouped again for the truth, and for the rest,
#: and at most so many cells in all, so that an audit of large classes ends, too.
CLASSES, TRIES, WORK = 6, 800, 100_000
#: So many of the nearest classes stand around the one that is attacked; the others cannot reach it.
NEIGHBOURS = 12


@dataclass(frozen=True)
class Regrouped:
    """What grouping again says of one sensitive column.

    Attributes
    ----------
    column : the sensitive column
    people : members of the attacked classes whose class has more than one value
    certain, undecided : the share of them whose value is learned for certain; of whom the tries did not tell
    """

    column: str
    people: int
    certain: float
    undecided: float

    def to_json(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return {
            "column": self.column,
            "people": self.people,
            "certain": round(self.certain, 4),
            "undecided": round(self.undecided, 4),
        }


def regrouped(repair: Repair, class_of_cell: IntArray, key: Key) -> list[Regrouped]:
    """The attack on a sample of classes, for every sensitive column that a demand protects.

    Parameters
    ----------
    repair : the classes before the demands, and the demands
    class_of_cell : the released class of each cell, -1 where its people are left out, shape (C,)
    key : the private key, which draws the sample; it is none of the keys that are tried
    """
    return [_of_column(repair, class_of_cell, key, column) for column in repair.people.sensitive]


def _of_column(repair: Repair, class_of_cell: IntArray, key: Key, column: str) -> Regrouped:
    counts = repair.people.sensitive[column].counts
    number = int(class_of_cell.max()) + 1
    kept = class_of_cell >= 0
    chosen = sparse.csr_array((np.ones(kept.sum(), np.int64), (class_of_cell[kept], np.flatnonzero(kept))),
                              shape=(number, len(class_of_cell)))  # fmt: skip
    diverse = np.flatnonzero(np.diff(sparse.csr_array(chosen @ counts).indptr) > 1)
    if not len(diverse):
        return Regrouped(column, 0, 0.0, 0.0)
    # A person is drawn, and with them their class: who draws by weight takes the least of E / weight (Efraimidis and
    # Spirakis, 2006).
    people = np.asarray(chosen @ repair.people.sizes)[diverse]
    drawn = Chance.of(key, repair.cells).uniform(f"attacked {column}", Chance.of(key, repair.cells).joined(chosen))
    order = np.argsort(-np.log(drawn[diverse]) / people, kind="stable")
    found = [_attacked(repair, class_of_cell == one, key, column) for one in diverse[order[:CLASSES]].tolist()]
    total = sum(len(one.certain) for one in found)
    return Regrouped(
        column,
        total,
        sum(int(one.certain.sum()) for one in found) / total,
        sum(int(one.undecided.sum()) for one in found) / total,
    )


def _attacked(repair: Repair, attacked: BoolArray, key: Key, column: str) -> Replay:
    """The attack on the members of one class; only what stands around it is grouped again."""
    around = _around(repair, attacked)
    local, here = repair.around(around), np.flatnonzero(attacked[around])
    histogram = local.people.sensitive[column]
    counts = sparse.csr_array(histogram.counts[here]).tocoo()
    cell, values = (np.repeat(part, counts.data) for part in (counts.row, counts.col))
    elsewhere = sparse.csr_array(
        sparse.diags_array((~attacked[around]).astype(np.int64), dtype=np.int64) @ histogram.counts
    )

    tries = max(1, min(TRIES, WORK // int(around.sum())))

    def regroup(assigned: IntArray, attempt: int) -> IntArray:
        other = sparse.coo_array((np.ones(len(cell), np.int64), (here[cell], assigned)), shape=elsewhere.shape)
        changed = replace(histogram, counts=sparse.csr_array(elsewhere + other.tocsr()))
        people: ClassStatistics = replace(local.people, sensitive={**local.people.sensitive, column: changed})
        group = local.repaired(Key(key.derived("replay", str(attempt))), people)
        together = group[here[0]] >= 0 and np.array_equal(np.flatnonzero(group == group[here[0]]), here)
        return np.zeros(len(cell), np.int64) if together else np.full(len(cell), -1)

    return replay(np.zeros(len(cell), np.int64), values.astype(np.int64), regroup, tries, SELDOM)


def _around(repair: Repair, attacked: BoolArray) -> BoolArray:
    """The cells of the classes that an attacked one was made of, and of the nearest others, a mask of shape (C,)."""
    own = np.unique(repair.class_of_cell[attacked])
    number = int(repair.class_of_cell.max()) + 1
    weight = repair.people.sizes
    people = np.bincount(repair.class_of_cell, weights=weight, minlength=number)
    summed = np.stack(
        [np.bincount(repair.class_of_cell, weights=weight * one, minlength=number) for one in repair.outputs.T], axis=1
    )
    mean = summed / people[:, None]
    apart = np.min([((mean - mean[one]) ** 2).sum(axis=1) for one in own.tolist()], axis=0)
    near = np.argsort(apart, kind="stable")[: NEIGHBOURS + len(own)]
    return np.isin(repair.class_of_cell, np.union1d(near, own))
