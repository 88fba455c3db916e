"""The criterion of the anonymizer tree: the outputs whose squared error its splits reduce."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
import numpy.typing as npt

from anon_pipeline.anonymize.feature_importance import FeatureImportance
from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.tables import GUIDANCE_UNIT, Cells, Domain

#: A number or date of more values than this is split at the quantiles of as many bins where counts split a group.
BINS = 1_000

#: Above this many numbers in the criterion's one-hot block it is replaced by `PROJECTIONS` random projections.
ONE_HOT_LIMIT = 40_000_000
PROJECTIONS = 24

#: Where columns are weighed: the part of their weight that follows their importance, and the weight of the guidance.
IMPORTANCE_WEIGHT, GUIDANCE_WEIGHT = 0.16, 0.06

#: Where outputs are made for a part of the cells at a time, they stay one-hot as long as the table of people by code of
#: any column and by category has at most this many numbers.
PAIRS_LIMIT = 1_000_000


class Criterion:
    """The outputs whose squared error the tree reduces, computed for any part of the cells.

    The first outputs are the guidance, scaled to a total variance of 1. Where `spread` is 0 it is not scaled, so that
    one-hot labels keep exact sums and the squared error is the Gini impurity. Then come the quasi-identifiers, each of
    total variance 1, times sqrt(spread). A number is its z-score, with an indicator where it can be missing. A lone
    extreme counts as less far away, since it would take the variance of all others (`Domain.without_extremes`). A
    category is its one-hot vector. Where these vectors would be large, all categories together are `PROJECTIONS` random
    projections. `at_once` says whether the outputs of all cells will be asked for together.

    With `weighed`, a column has more weight the larger its feature importance. The main effect of each column on the
    guidance is an output too. The guidance itself then has the weight `GUIDANCE_WEIGHT`, since the main effects cover
    much of it.
    """

    def __init__(self, cells: Cells, spread: float, seed: int, at_once: bool = True, weighed: bool = False) -> None:
        self.cells = cells
        self._centre = np.zeros(cells.guidance.shape[1])
        self._scale = 1.0
        self._ordered: list[tuple[int, FloatArray]] = []
        #: Column, the codes that occur, and scale of each category; and of the categories with one-hot outputs.
        self.categories: list[tuple[int, npt.NDArray[np.intp], float]] = []
        self.one_hot: list[tuple[int, npt.NDArray[np.intp], float]] = []
        self._projected: list[tuple[int, FloatArray]] = []
        if spread == 0:
            return
        weight = cells.counts / cells.n
        guidance = cells.mean_guidance()
        self._centre = np.einsum("c,co->o", weight, guidance)
        self._scale = _per_deviation(np.einsum("c,co->", weight, (guidance - self._centre) ** 2))
        uniform, feature_importance = spread, FeatureImportance.of(cells) if weighed else None
        for column, domain in enumerate(cells.domains):
            if feature_importance is not None:
                spread = uniform * (
                    1 + IMPORTANCE_WEIGHT * (len(cells.domains) * float(feature_importance.shares[column]) - 1)
                )
                effect = np.sqrt(uniform) * self._scale * feature_importance.effects[column]
                self._ordered.append((column, effect))
            share: FloatArray = np.bincount(cells.codes[:, column], weights=weight, minlength=len(domain)).astype(float)
            if domain.positions is not None:
                self._ordered.append((column, np.sqrt(spread) * _ordered_outputs(domain.without_extremes, share)))
            elif (gini := 1.0 - float((share * share).sum())) > 1e-12:
                self.categories.append((column, np.flatnonzero(share), float(np.sqrt(spread / gini))))
        if feature_importance is not None:
            self._scale *= np.sqrt(GUIDANCE_WEIGHT)
        width = sum(len(present) for _, present, _ in self.categories)
        pairs = width * sum(min(len(domain), BINS) if domain.ordered else len(domain) for domain in cells.domains)
        if width * len(cells.counts) <= ONE_HOT_LIMIT or (pairs <= PAIRS_LIMIT and not at_once):
            self.one_hot = self.categories
        else:
            generator = np.random.default_rng(seed)
            for column, _, scale in self.categories:
                signs = generator.choice((-1.0, 1.0), size=(len(cells.domains[column]), PROJECTIONS))
                self._projected.append((column, signs * scale / np.sqrt(PROJECTIONS)))

    def of_cells(self, part: slice | IntArray) -> Criterion:
        """The same outputs for some cells alone, by their positions; little to send to another process."""
        of_part = copy(self)
        of_part.cells = self.cells.part(part)
        return of_part

    def guidance_outputs(self, part: slice | IntArray = slice(None)) -> FloatArray:
        """The guidance of some cells, shape (c, g)."""
        counts = self.cells.counts[part]
        guidance = self.cells.guidance[part] * GUIDANCE_UNIT / counts[:, None]
        scaled: FloatArray = (guidance - self._centre) * self._scale
        return scaled

    def scores(self, part: slice | IntArray = slice(None)) -> FloatArray:
        """Guidance and ordered columns of some cells, shape (c, o'')."""
        codes = self.cells.codes[part]
        return np.hstack([self.guidance_outputs(part), *(values[codes[:, at]] for at, values in self._ordered)])

    def outputs_of(self, column: int) -> Iterator[tuple[int, FloatArray]]:
        """The positions in `scores` that depend on one column alone, and the output of each of its codes, (m + 1,)."""
        position = len(self._centre)
        for at, outputs in self._ordered:
            for output in outputs.T:
                if at == column:
                    yield position, output
                position += 1

    def projected(self, part: slice | IntArray = slice(None)) -> FloatArray:
        """The random projections of the categories of some cells, shape (c, `PROJECTIONS`), or (c, 0) without them.

        D. Achlioptas, "Database-friendly random projections" (2003): distances survive nearly unchanged.
        """
        codes = self.cells.codes[part]
        projected = np.zeros((len(codes), PROJECTIONS if self._projected else 0))
        for column, signs in self._projected:
            projected += signs[codes[:, column]]
        return projected

    def numeric(self, part: slice | IntArray = slice(None)) -> FloatArray:
        """The outputs of some cells that are not one-hot, shape (c, o')."""
        scores = self.scores(part)
        return np.hstack([scores, self.projected(part)]) if self._projected else scores

    def of(self, part: slice | IntArray = slice(None), constant: bool = True) -> FloatArray:
        """The outputs of some cells, shape (c, o).

        Without `constant`, one-hot outputs that are equal in all these cells are left out: no split changes their
        error.
        """
        codes = self.cells.codes[part]
        blocks = [self.numeric(part)]
        for column, present, scale in self.one_hot:
            code = codes[:, column]
            here = present if constant else np.flatnonzero(np.bincount(code))
            if constant or len(here) > 1:
                blocks.append((code[:, None] == here) * scale)
        return np.hstack(blocks)

    @property
    def width(self) -> int:
        """Number of outputs, o."""
        return int(self.numeric(slice(0, 1)).shape[1]) + sum(len(present) for _, present, _ in self.one_hot)


def criterion_outputs(cells: Cells, spread: float, seed: int) -> FloatArray:
    """The outputs of all cells, of columns that are not weighed, shape (C, o); see `Criterion`."""
    return Criterion(cells, spread, seed).of()


def _per_deviation(variance: float) -> float:
    return float(1 / np.sqrt(variance)) if variance > 1e-12 else 0.0


def _ordered_outputs(domain: Domain, share: FloatArray) -> FloatArray:
    """The outputs of each code of an ordered column: its z-score, and an indicator where values are missing.

    Both together have total variance 1. Shape (m + 1, 1 or 2).
    """
    code = np.flatnonzero(share).astype(np.int32)
    raw = standardized(domain, code, share[code])
    centred = raw - np.einsum("c,co->o", share[code], raw)
    outputs = np.zeros((len(domain), raw.shape[1]))
    outputs[code] = centred * _per_deviation(np.einsum("c,co->", share[code], centred**2))
    return outputs


def standardized(domain: Domain, code: npt.NDArray[np.int32], weight: FloatArray) -> FloatArray:
    """Standardized values of an ordered column, missing ones at the mean with an indicator, shape (C, 1 or 2)."""
    known = code > 0
    value = np.zeros(len(code))
    value[known] = domain.positions.astype(np.float64)[code[known] - 1]  # type: ignore[union-attr]
    if not known.any():
        return value[:, None]
    centre = float(np.average(value[known], weights=weight[known]))
    value[known] -= centre
    deviation = np.sqrt(float(np.average(value[known] ** 2, weights=weight[known])))
    if deviation > 0:
        value /= deviation
    return value[:, None] if known.all() else np.c_[value, ~known]
