"""The main effect of each quasi-identifier on the guidance, and its feature importance.

Columns that are more important to a model should lose less. Categories between which a model hardly distinguishes may
rather be put together than others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import FloatArray
from anon_pipeline.tables import GUIDANCE_UNIT, Cells

#: Numbers and dates are put into so many groups of about equally many people; missing values are a group of their own.
GROUPS = 16
#: Effects are shrunk towards zero, as if so many more people of each group had the mean guidance.
SHRINKAGE = 20
#: Where the guidance has several outputs, effects are measured along so many directions.
DIRECTIONS = 2


@dataclass(frozen=True, eq=False)
class FeatureImportance:
    """The main effects of the columns on the guidance, and their importance.

    Attributes
    ----------
    effects : per column, the mean guidance of people with each code less that of everybody, along the directions in
        which these differ most, shape (m + 1, 1 or 2)
    shares : the variance of each column's effect as a share of the sum over columns, 0 to 1, shape (p,); all equal
        where no column has an effect
    """

    effects: tuple[FloatArray, ...]
    shares: FloatArray

    @classmethod
    def of(cls, cells: Cells) -> FeatureImportance:
        """The main effects are means over people who share a code, in the sense of an analysis of variance."""
        effects, variance = [], np.zeros(len(cells.domains))
        guidance = (cells.guidance * GUIDANCE_UNIT).astype(np.float64)
        for column in range(len(cells.domains)):
            effect, people = _main_effect(cells, guidance, column)
            effects.append(effect)
            variance[column] = (people[:, None] * effect**2).sum()
        shares = variance / variance.sum() if variance.sum() > 0 else np.full(len(variance), 1 / len(variance))
        return cls(tuple(effects), shares)


def _main_effect(cells: Cells, guidance: FloatArray, column: int) -> tuple[FloatArray, FloatArray]:
    """The effect of each code, shape (m + 1, 1 or 2), and its people, shape (m + 1,).

    `guidance` is the summed guidance per cell, shape (C, g).
    """
    domain, code = cells.domains[column], cells.codes[:, column]
    people = np.bincount(code, weights=cells.counts, minlength=len(domain)).astype(np.float64)
    kind, kind_of_cell = np.arange(len(domain)), code
    if domain.ordered:
        known = np.r_[0.0, people[1:]]
        middle = (np.cumsum(known) - known / 2) / max(known.sum(), 1.0)
        kind = np.r_[GROUPS, np.minimum(middle[1:] * GROUPS, GROUPS - 1).astype(np.int64)]
        kind_of_cell = kind[code]
    of_kind = np.bincount(kind, weights=people)
    summed = np.stack(
        [np.bincount(kind_of_cell, weights=output, minlength=len(of_kind)) for output in guidance.T], axis=1
    )
    effect = (summed - of_kind[:, None] * guidance.sum(axis=0) / cells.n) / (of_kind + SHRINKAGE)[:, None]
    if effect.shape[1] > DIRECTIONS:
        _, _, directions = np.linalg.svd(effect * np.sqrt(of_kind)[:, None], full_matrices=False)
        effect = effect @ directions[:DIRECTIONS].T
    return np.round(effect[kind], 9), people
