"""The quality of a synthetic table, from the noisy counts and the table itself: no exact figure of people is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import IntArray
from anon_pipeline.differential_privacy.intervals import NORMAL, half_width
from anon_pipeline.differential_privacy.synthesis.estimation import NoisyTable
from anon_pipeline.differential_privacy.synthesis.junction_tree import Clique
from anon_pipeline.differential_privacy.synthesis.measuring import column_counts


@dataclass(frozen=True)
class CountQuality:
    """The noisy and the synthetic counts of one set of columns.

    Attributes
    ----------
    error_bar : half of the 95 % interval of one noisy count
    distance : total variation between the noisy counts and the synthetic ones; about half of it may be noise
    noise : the distance that the noise alone is expected to cause
    """

    columns: Clique
    cells: int
    error_bar: float
    distance: float
    noise: float


@dataclass(frozen=True)
class ValueCount:
    """A value of a column: its noisy count with a 95 % interval, and its count in the synthetic table."""

    noisy: float
    low: float
    high: float
    synthetic: int


def count_quality(measured: Sequence[NoisyTable], codes: IntArray, total: float) -> list[CountQuality]:
    """The quality of the counts of each noisy table, in their order; `codes` are those of the synthetic rows."""
    found = []
    for table in measured:
        keys = np.ravel_multi_index(tuple(codes[:, column] for column in table.columns), table.counts.shape)
        synthetic = np.bincount(keys, minlength=table.counts.size).reshape(table.counts.shape)
        deviation = np.sqrt(table.variance)
        found.append(
            CountQuality(
                table.columns,
                table.counts.size,
                _reach(float(deviation.max())),
                float(np.abs(table.counts - synthetic).sum() / 2 / total),
                float(np.sqrt(2 / np.pi) * deviation.sum() / 2 / total),
            )
        )
    return found


def value_counts(first: Sequence[NoisyTable], codes: IntArray, column: int) -> list[ValueCount]:
    """The counts of every value of a column, in the order of its codes."""
    noisy, variance = column_counts([table for table in first if column in table.columns], column)
    synthetic = np.bincount(codes[:, column], minlength=len(noisy))
    reach = [_reach(float(deviation)) for deviation in np.sqrt(variance)]
    return [
        ValueCount(float(count), max(0.0, float(count - far)), max(0.0, float(count + far)), int(seen))
        for count, far, seen in zip(noisy, reach, synthetic, strict=True)
    ]


def _reach(deviation: float) -> float:
    """Half of the 95 % interval of a noisy count: where noise is a few people, whole steps of it matter."""
    return max(NORMAL * deviation, half_width(deviation))
