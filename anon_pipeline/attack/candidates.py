"""The groups of a release that fit a person best: the candidate sets that every attack on a table starts from.

Boxes of a release overlap, and a person lies in many of them. An attacker does not pick one of them blindly: of the
people who fit a box, a narrow box holds a larger share than a wide one. The best group is the one in which the known
cells are likeliest (naive Bayes over the cells). If the attacker knows that some cells are wrong, a cell that does not
fit only makes a group less likely. On Adult, k = 10, this finds the right record four times as often as a draw from all
groups that fit, and with 2-diversity seven times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.attack.boxes import UNIT, UNLIKE, OrderedBoxes
from anon_pipeline.attack.released import Released, combined

#: Most costs in memory at once, in cells: 32 MB.
BLOCK = 8_000_000

#: Most cells compared for a set of people; if more would be needed, fewer people are attacked.
BUDGET = 100_000_000


@dataclass(frozen=True, eq=False)
class Candidates:
    """The best-fitting units of the first n people; a unit is all groups that are equal in the known columns.

    Attributes
    ----------
    best : people by unit, 1 where no unit fits better, sparse, shape (n, U)
    unit : the unit of each group, shape (J,)
    sizes : released rows per unit, shape (U,)
    """

    best: sparse.csr_array
    unit: IntArray
    sizes: IntArray

    def __len__(self) -> int:
        return int(self.best.shape[0])

    def records(self) -> IntArray:
        """How many released rows each person's candidates have, shape (n,)."""
        return np.asarray(self.best @ self.sizes, dtype=np.int64)

    def hits(self, units: sparse.csr_array) -> FloatArray:
        """How many rows lie in a person's best units, shape (n,); `units` has the rows by person and unit."""
        return np.asarray(self.best.multiply(units).sum(axis=1), dtype=np.float64).ravel()


def find_candidates(
    release: Released,
    codes: IntArray,
    columns: Sequence[int] | None = None,
    wrong: float = 0.0,
    rule: Literal["likeliest", "fitting"] = "likeliest",
    budget: int = BUDGET,
) -> Candidates:
    """The best units of people who are known by some quasi-identifiers.

    Parameters
    ----------
    codes : the people's quasi-identifiers, not negative, shape (n, p)
    columns : positions of the known quasi-identifiers, all if absent
    wrong : the share of known cells that the attacker takes to be wrong
    rule : "likeliest", or "fitting" for all units that agree with the most cells
    budget : cells to be compared at most; people beyond that are left out from the end
    """
    known = list(range(release.box.shape[1]) if columns is None else columns)
    unit, first = combined([release.box[:, column] for column in known])
    sizes = np.bincount(unit, weights=release.sizes).astype(np.int64)
    boxes = release.box[first][:, known]
    exact = _looked_up(release, known, boxes, codes)
    allowed = max(budget // (len(boxes) * len(known)), 1)
    last = int(np.searchsorted(np.cumsum(exact < 0), allowed, "right"))  # people who are looked up cost nothing
    exact, codes = exact[:last], codes[:last]
    rows, units = [np.flatnonzero(exact >= 0)], [exact[exact >= 0]]
    scanned = np.flatnonzero(exact < 0)
    step = max(BLOCK // len(boxes), 1)
    for start in range(0, len(scanned), step):
        block = scanned[start : start + step]
        total = np.zeros((len(block), len(boxes)), dtype=np.int32)
        for place, column in enumerate(known):
            distinct, which = np.unique(codes[block, column], return_inverse=True)
            of_boxes = release.boxes[column]
            costs = ~of_boxes.fits(distinct) if rule == "fitting" else of_boxes.costs(distinct, wrong)
            total += costs[:, boxes[:, place]][which]
        row, best = np.nonzero(total == total.min(axis=1, keepdims=True))
        rows.append(block[row])
        units.append(best)
    row, of = np.concatenate(rows), np.concatenate(units)
    return Candidates(
        sparse.csr_array((np.ones(len(row)), (row, of)), shape=(last, len(boxes))),
        unit,
        sizes,
    )


def misfit(release: Released, codes: IntArray, candidates: Candidates) -> FloatArray:
    """How many known cells do not fit a person's best groups, shape (n,).

    A number that is near to the number that a group shows counts as a fraction. Only for candidates found with all
    quasi-identifiers.
    """
    first = np.unique(candidates.unit, return_index=True)[1]
    pairs = candidates.best.tocoo()
    row, unit = pairs.coords[0], pairs.coords[1]
    total = np.zeros(len(row))
    for column, boxes in enumerate(release.boxes):
        code, box = codes[row, column], release.box[first[unit], column]
        key, at = combined([code, box])
        cost = np.empty(len(at))
        for start in range(0, len(at), 512):  # the diagonal of a square, so squares are kept small
            block = at[start : start + 512]
            has_nearest = isinstance(boxes, OrderedBoxes) and boxes.nearest
            of_block = boxes.costs(code[block], 0.0) / (UNIT * UNLIKE) if has_nearest else ~boxes.fits(code[block])
            cost[start : start + 512] = of_block[np.arange(len(block)), box[block]]
        total += cost[key]
    best = np.diff(candidates.best.indptr)
    return np.asarray(np.bincount(row, weights=total, minlength=len(best)) / best, dtype=np.float64)


def _looked_up(release: Released, known: Sequence[int], boxes: IntArray, codes: IntArray) -> IntArray:
    """The unit that shows exactly a person's values, if units show single values; -1 where there is none, (n,)."""
    columns = []
    for place, column in enumerate(known):
        points = release.boxes[column].points()
        if points is None:
            return np.full(len(codes), -1)
        columns.append(np.r_[points[boxes[:, place]], codes[:, column]])
    key, _ = combined(columns)
    unit = np.full(int(key.max()) + 1, -1)
    unit[key[: len(boxes)]] = np.arange(len(boxes))
    return unit[key[len(boxes) :]]
