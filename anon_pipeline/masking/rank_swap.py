"""The column technique that exchanges values between people of near rank."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from anon_pipeline.masking.base import ORDERED, Applied, Columns, ColumnTechnique, Context
from anon_pipeline.masking.numbers import to_floats
from anon_pipeline.masking.order import Draws
from anon_pipeline.tables import IntArray


class RankSwap(ColumnTechnique):
    """Values are exchanged between pairs of people whose ranks differ by at most a share of all people.

    R. Moore: Controlled data-swapping techniques for masking public use microdata sets, US Census Bureau 1996. The
    column's distribution stays exactly as it was. Partners are drawn at random within stretches of ranks that begin at
    a random place, instead of one after the other: the same bound on the distance, without a loop over people. A value
    without a partner (one in an odd stretch) stays.
    """

    technique: Literal["rank_swap"] = "rank_swap"
    share: float = Field(description="the largest distance in ranks as a part of all people, above 0 and below 1")

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
        # Beyond 2^53 different whole numbers are one float; they are told apart only by their place, which is harmless.
        ranked = known[np.argsort(values[known], kind="stable")]
        partner = _partners(len(ranked), max(1, int(self.share * len(ranked))), context.draws)
        source = np.arange(len(values))
        source[ranked] = ranked[partner]
        alone = int((partner == np.arange(len(ranked))).sum())
        return Applied({name: column.take(pa.array(source))}, facts={"without_partner": alone})


def _partners(n: int, distance: int, draws: Draws) -> IntArray:
    """The rank that each rank exchanges its value with, at most `distance` away; shape (n,)."""
    length = distance + 1
    start = int(draws.uniform(1)[0] * length)
    stretch = (np.arange(n) + start) // length
    order = np.lexsort((draws.uniform(n), stretch))  # at random within each stretch
    place = np.arange(n)
    first = np.r_[0, np.flatnonzero(np.diff(stretch)) + 1] if n else np.zeros(0, dtype=np.int64)
    within = place - np.repeat(first, np.diff(np.r_[first, n]))
    paired = (within % 2 == 0) & (np.r_[stretch[1:], -1] == stretch)  # has a neighbour to its right in its stretch
    left, right = order[np.flatnonzero(paired)], order[np.flatnonzero(paired) + 1]
    partner = np.arange(n)
    partner[left], partner[right] = right, left
    return partner
