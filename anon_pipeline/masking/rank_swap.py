"""The column technique that exchanges values between people of near rank."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.masking.base import ORDERED, Applied, Columns, ColumnTechnique, Context
from anon_pipeline.masking.draws import Draws
from anon_pipeline.masking.numbers import to_floats

#: Values may move by so many ranks in any case: between neighbours all exchanges are of pairs, so that the row which
#: shows somebody's value is known to be that of the value which they show.
LEAST = 3


class RankSwap(ColumnTechnique):
    """Values are exchanged between people whose ranks differ by at most a share of all people, or by three.

    R. Moore: Controlled data-swapping techniques for masking public use microdata sets, US Census Bureau 1996. The
    column's distribution stays exactly as it was, which tells, of two releases that differ by one person, that person's
    value. Ranks are cut into stretches at people whom the key chooses, and within a stretch everybody shows the value
    of the next in an order that the key makes. So nobody learns, from their own value, whose they show; and one person
    more changes what is shown in one stretch, not in all that follow. A value that is alone in its stretch stays.
    """

    technique: Literal["rank_swap"] = "rank_swap"
    share: float = Field(description="the largest distance in ranks (at least three) as a part of all people, below 1")

    meaning: ClassVar[str] = "exchanges values between people of near rank"
    use_when: ClassVar[str] = "the distribution of a number must stay exact, and nobody's own value be certain"
    accepts: ClassVar = ORDERED
    random: ClassVar[bool] = True

    @field_validator("share")
    @classmethod
    def _is_a_share(cls, share: float) -> float:
        if not 0 < share < 1:
            raise ValueError(
                "is a share of all people and must lie above 0 and below 1: 0.05 swaps within five ranks of a hundred "
                "(sdcMicro counts in percent; divide by 100)"
            )
        return share

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        values = to_floats(column)
        known = np.flatnonzero(~np.isnan(values))
        # Beyond 2^53 distinct whole numbers can be one float; then only their place orders them, which is harmless.
        ranked = known[np.argsort(values[known], kind="stable")]
        partner = _partners(max(LEAST, int(self.share * len(ranked))), context.draws.at(ranked))
        source = np.arange(len(values))
        source[ranked] = ranked[partner]
        alone = int((partner == np.arange(len(ranked))).sum())
        return Applied({name: column.take(pa.array(source))}, facts={"without_partner": alone})


def _partners(distance: int, draws: Draws) -> IntArray:
    """For each rank the rank whose value it shows, at most `distance` away; `draws` are in this order; shape (n,)."""
    starts = _stretches(draws.uniform(), distance + 1)
    draw = draws.uniform()
    ends = np.r_[starts[1:], len(draw)][: len(starts)]
    order = np.lexsort((draw, np.repeat(np.arange(len(starts)), ends - starts)))
    following = np.arange(len(draw)) + 1
    following[ends - 1] = starts  # the last of a stretch is followed by its first
    partner = np.empty(len(draw), dtype=np.int64)
    partner[order] = order[following]
    return partner


def _stretches(priority: FloatArray, longest: int) -> IntArray:
    """The starts of stretches of at most `longest` ranks: a longer one is cut before its rank of highest priority.

    They are subtrees of a treap (R. Seidel, C. Aragon: Randomized search trees, Algorithmica 16, 1996). Its shape
    depends on its members and not on the order in which they were added, and one more person changes it in one place.
    """
    starts, pending = [], [(0, len(priority))] if len(priority) else []
    while pending:
        first, end = pending.pop()
        if end - first <= longest:
            starts.append(first)
        else:
            cut = first + 1 + int(priority[first + 1 : end].argmax())
            pending += [(first, cut), (cut, end)]
    return np.sort(np.array(starts, dtype=np.int64))
