"""From the model to the cells: predictions are streamed and summed per cell, so that memory grows with cells only."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from anon_pipeline.anonymize.description import described, hierarchies_of, levels_of
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import InputError
from anon_pipeline.keys import Key
from anon_pipeline.learning.guide import TrainedGuide
from anon_pipeline.learning.targets import JointGuide
from anon_pipeline.spec import ColumnType, Guide, ReleaseSpec
from anon_pipeline.tables import HISTORY, Cells, Domain, fixed_point

#: Numbers of bins for columns with too many values; the finest that fits is taken.
BINS = (1024, 256, 64, 16, 4)

#: Rows that are gathered before they are added up per cell.
PILE = 4_000_000


@dataclass(frozen=True, eq=False)
class Sample:
    """The people that M was trained on, and the fold that each was left out of.

    Attributes
    ----------
    hash : their content hashes, ascending, shape (n,)
    fold : the fold of each, shape (n,)
    key : draws a fold for people who are not in the sample; None where a single model predicts everybody
    known : whether M learns each person's target, shape (n,); everybody's where None. The other people get predictions
        like everybody, from a model that did not see their fold
    """

    hash: IntArray
    fold: IntArray
    key: Key | None
    known: BoolArray | None = None

    @property
    def trained(self) -> IntArray:
        """The fold of the people from whom M learns, -1 for the others, shape (n,)."""
        return self.fold if self.known is None else np.where(self.known, self.fold, -1)

    def fold_of(self, hashes: IntArray) -> IntArray:
        """The fold of people by their content hashes, shape (m,); -1 where a single model predicts everybody.

        People who are not in the sample get a fold too, drawn under the key. No model has seen them, but the
        predictions of the full model for them could be found out without the key.
        """
        if not len(self.hash) or self.key is None:
            return np.full(len(hashes), -1)
        place = np.minimum(np.searchsorted(self.hash, hashes), len(self.hash) - 1)
        fold = self.fold[place].astype(np.int64)
        others = np.flatnonzero(self.hash[place] != hashes)
        drawn = self.key.pseudorandom("guide", "others", _blocks(hashes[others]))[:, 0]
        fold[others] = drawn % np.uint64(self.fold.max() + 1)
        return fold


@dataclass(frozen=True)
class StoredPeople:
    """A table of people as the engine stores it.

    Attributes
    ----------
    engine : the engine that reads it
    table : its path, as `Engine.store_source` writes it
    spec : the policy, with the roles of the columns
    types : the types of its columns
    """

    engine: Engine
    table: Path
    spec: ReleaseSpec
    types: dict[str, ColumnType]


#: An empty sample: every person is predicted by the full model.
NOBODY = Sample(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), None)


def _blocks(hashes: IntArray) -> npt.NDArray[np.uint64]:
    """A block of 128 bits for each content hash, shape (m, 2)."""
    return np.stack([hashes, np.zeros_like(hashes)], axis=1).view(np.uint64)


def folds_of_sample(hashes: IntArray, guide: Guide, key: Key, known: BoolArray | None = None) -> tuple[Sample, Guide]:
    """The fold of each person of the training sample, drawn by their content hash (ascending, shape (n,)).

    Folds are drawn under the private key. Predictions, and the tree that they guide, depend on the folds; so nobody
    without the key can train the models again and try which values give the release. People with equal content share a
    fold, so that nobody is predicted by a model that has seen their double. Where all people are equal there is nothing
    to hold out, and guidance is in-sample.

    People without a target (not `known`, shape (n,)) have a fold too: the predictions of the full model for them could
    be found out without the key.
    """
    different, first, person = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(key.pseudorandom("guide", "folds", _blocks(different))[:, 0], kind="stable")
    fold = np.empty(len(different), dtype=np.int64)
    teaches = np.ones(len(different), dtype=bool) if known is None else known[first]
    folds = min(guide.folds, max(int(teaches.sum()), 1))
    for part in (order[teaches[order]], order[~teaches[order]]):  # every fold has people with a target
        fold[part] = np.arange(len(part)) % folds
    if teaches.sum() < 2:
        guide = guide.model_copy(update={"predictions": "in_sample"})
    return Sample(hashes, fold[person], key, known), guide


def fitting_domains(
    engine: Engine, table: Path, types: dict[str, ColumnType], limit: int, whole: Collection[str] = (HISTORY,)
) -> tuple[Domain, ...]:
    """The quasi-identifiers' values; ordered columns are coarsened if there would be more than `limit` distinct tuples.

    A column is coarsened into bins of about equally many people. Still, all people are counted to see whether a class
    has k of them, and its published interval encloses every value of its bins. The columns `whole` stay as they are.

    Raises
    ------
    InputError
        Where even a few bins per column leave too many tuples.
    """
    domains = engine.domains(table, types)
    if engine.rows(table) <= limit or engine.count_cells(table, domains) <= limit:
        return domains
    for bins in BINS:
        coarse = {
            domain.name: bins
            for domain in domains
            if domain.ordered and len(domain.values) > bins and domain.name not in whole
        }
        if coarse:
            coarsened = engine.domains(table, types, coarse)
            if engine.count_cells(table, coarsened) <= limit:
                return coarsened
    largest = sorted(domains, key=len, reverse=True)[:3]
    raise InputError(
        f"grouping.cells: the quasi-identifiers have more than {limit:,} distinct tuples even with {BINS[-1]} values "
        f"per number or date; {', '.join(f'{domain.name} has {len(domain.values):,} values' for domain in largest)}: "
        "shorten such a column to a prefix, exclude it, or raise grouping.cells (a million needs about half a gigabyte)"
    )


def guided_cells(
    stored: StoredPeople,
    trained: TrainedGuide | JointGuide,
    sample: Sample,
    scale: float,
    progress: Callable[[int, int], None] | None = None,
    followed: bool = False,
) -> Cells:
    """Count the cells of a table and sum the guidance of their people.

    Parameters
    ----------
    sample : the people M was trained on, and by which model everybody is predicted
    scale : guidance is counted in units of it (`tables.scale_of` of the model's own predictions)
    progress : called with (people done, people) after each batch
    followed : whether the table has everybody's cohort, which is then counted as a further quasi-identifier, the last
    """
    engine, table, spec, types = stored.engine, stored.table, stored.spec, stored.types
    quasi_identifiers = {name: types[name] for name in spec.quasi_identifiers}
    if followed:
        quasi_identifiers[HISTORY] = ColumnType.NUMERIC
    hierarchies = hierarchies_of(spec)
    whole = (HISTORY, *hierarchies)  # a bin could lie across nodes
    domains = fitting_domains(engine, table, quasi_identifiers, spec.grouping.cells, whole)
    domains = described(domains, levels_of(spec), hierarchies)
    parts: list[Sums] = []
    gathered, done, people = 0, 0, int(domains[0].counts.sum())
    for batch in engine.batches(table, spec, types, domains, hashed=len(sample.hash) > 0):
        fold = sample.fold_of(batch.hash) if len(sample.hash) else np.full(len(batch.people), -1)
        guidance = fixed_point(trained.guidance(batch.features, fold) / scale)
        parts.append((batch.key, batch.people, guidance * batch.people[:, None]))
        gathered += len(fold)
        done += int(batch.people.sum())
        if progress is not None:
            progress(done, people)
        if gathered > PILE:
            parts = [_merged(parts)]
            gathered = len(parts[0][0])
    return engine.cells(domains, *_merged(parts))


Sums = tuple[IntArray, IntArray, IntArray]


def _merged(parts: list[Sums]) -> Sums:
    """One row per distinct key, in ascending order, with the sums of its counts and guidance."""
    key, counts, guidance = (np.concatenate([part[position] for part in parts]) for position in range(3))
    # Sums of whole numbers do not depend on the order of equal keys, so the faster sort is taken.
    order = np.argsort(key[:, 0]) if key.shape[1] == 1 else np.lexsort(key.T[::-1])
    key = key[order]
    first = np.flatnonzero(np.r_[True, (key[1:] != key[:-1]).any(axis=1)])
    return key[first], np.add.reduceat(counts[order], first), np.add.reduceat(guidance[order], first, axis=0)
