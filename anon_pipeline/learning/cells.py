"""From the model to the cells: predictions are streamed and summed per cell, so that memory grows with cells only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.engine.base import Engine
from anon_pipeline.learning.guide import TrainedGuide
from anon_pipeline.spec import ColumnType, Guide, ReleaseSpec
from anon_pipeline.tables import Cells, IntArray, fixed_point


def folds_of_sample(hashes: IntArray, guide: Guide) -> tuple[npt.NDArray[np.int64], Guide]:
    """The fold of each person of the training sample, by the rank of their content hash (ascending), shape (n,).

    People with equal content share a fold, so nobody is predicted by a model that has seen their double. Where
    everyone is alike there is nothing to hold out, and guidance is in-sample.
    """
    folds = np.searchsorted(hashes, hashes, side="left") % guide.folds
    if len(np.unique(folds)) < 2:
        return folds, guide.model_copy(update={"predictions": "in_sample"})
    return folds, guide


def guided_cells(
    engine: Engine,
    table: Path,
    spec: ReleaseSpec,
    types: dict[str, ColumnType],
    trained: TrainedGuide,
    sample: IntArray,
    scale: float,
) -> Cells:
    """Count the cells of a table and sum the guidance of their people.

    Parameters
    ----------
    sample : ascending content hashes of the people M was trained on; everyone else is predicted by the full model
    scale : guidance is counted in units of it (`tables.scale_of` of the model's own predictions)
    """
    domains = engine.domains(table, {name: types[name] for name in spec.quasi_identifiers})
    parts = []
    for batch in engine.batches(table, spec, types, domains):
        rank = np.minimum(np.searchsorted(sample, batch.hash, side="left"), len(sample) - 1)
        fold = np.where(sample[rank] == batch.hash, rank % spec.guide.folds, -1)
        guidance = fixed_point(trained.guidance(batch.features, fold) / scale)
        parts.append(_summed(batch.key, batch.people, guidance * batch.people[:, None]))
        if len(parts) == 16:  # keep the pile small
            parts = [_merged(parts)]
    key, counts, guidance = _merged(parts)
    return engine.cells(domains, key, counts, guidance)


Sums = tuple[IntArray, IntArray, IntArray]


def _summed(key: IntArray, counts: IntArray, guidance: IntArray) -> Sums:
    """One row per distinct key, its counts and guidance added up."""
    parts = list(range(key.shape[1]))
    summed = pd.DataFrame(np.column_stack([key, counts, guidance])).groupby(parts, sort=False, as_index=False).sum()
    values = summed.to_numpy(np.int64)
    return values[:, parts], values[:, len(parts)], values[:, len(parts) + 1 :]


def _merged(parts: list[Sums]) -> Sums:
    key, counts, guidance = (np.concatenate([part[position] for part in parts]) for position in range(3))
    return _summed(key, counts, guidance)
