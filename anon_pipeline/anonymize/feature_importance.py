"""What each quasi-identifier tells of the guidance by itself: its main effect, and how much that is.

Columns that tell a model more should lose less, and categories that a model takes for one another may rather be put
together than others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import FloatArray
from anon_pipeline.tables import GUIDANCE_UNIT, Cells

#: Numbers and dates are told in so many groups of about as many people, and missing values apart from them.
GROUPS = 16
#: Effects are drawn towards none as if so many more people of each kind had the mean guidance.
SHRINKAGE = 20
#: Of guidance with several outputs, effects are told along so many directions.
DIRECTIONS = 2


@dataclass(frozen=True, eq=False)
class FeatureImportance:
    """What the columns tell of the guidance.

    Attributes
    ----------
    effects : per column, the guidance of people with each code less that of all, along the directions in which these
        differ most, shape (m + 1, 1 or 2)
    shares : each column's part of what they tell one by one, 0 to 1, sum 1, shape (p,); all alike where none tells
    """

    effects: tuple[FloatArray, ...]
    shares: FloatArray

    @classmethod
    def of(cls, cells: Cells) -> FeatureImportance:
        """The main effects are means over people who share a code, in the sense of an analysis of variance."""
        effects, variance = [], np.zeros(len(cells.domains))
        for column in range(len(cells.domains)):
            effect, people = _main_effect(cells, column)
            effects.append(effect)
            variance[column] = (people[:, None] * effect**2).sum()
        shares = variance / variance.sum() if variance.sum() > 0 else np.full(len(variance), 1 / len(variance))
        return cls(tuple(effects), shares)


def _main_effect(cells: Cells, column: int) -> tuple[FloatArray, FloatArray]:
    """The effect of each code, shape (m + 1, 1 or 2), and its people, shape (m + 1,)."""
    domain, code = cells.domains[column], cells.codes[:, column]
    people = np.bincount(code, weights=cells.counts, minlength=len(domain)).astype(np.float64)
    kind = np.arange(len(domain))
    if domain.ordered:
        known = np.r_[0.0, people[1:]]
        middle = (np.cumsum(known) - known / 2) / max(known.sum(), 1.0)
        kind = np.r_[GROUPS, np.minimum(middle[1:] * GROUPS, GROUPS - 1).astype(np.int64)]
    of_kind = np.bincount(kind, weights=people)
    guidance = cells.guidance * GUIDANCE_UNIT
    summed = np.stack(
        [np.bincount(kind[code], weights=output, minlength=len(of_kind)) for output in guidance.T], axis=1
    )
    effect = (summed - of_kind[:, None] * guidance.sum(axis=0) / cells.n) / (of_kind + SHRINKAGE)[:, None]
    if effect.shape[1] > DIRECTIONS:
        _, _, directions = np.linalg.svd(effect * np.sqrt(of_kind)[:, None], full_matrices=False)
        effect = effect @ directions[:DIRECTIONS].T
    return np.round(effect[kind], 9), people
